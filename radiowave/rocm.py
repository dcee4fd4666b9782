# SPDX-License-Identifier: Apache-2.0
"""Where a ROCm installation may be, best first: for compilers, for LLVM, and for Redline's HSA runtime.

Names places and looks at none of them.
"""

from __future__ import annotations

import os

VARIABLES = ("ROCM_PATH", "ROCM_HOME")
# The ROCm Core SDK's layout (from 7.14 on), then the older one.
ROOTS = ("/opt/rocm/core", "/opt/rocm/core-7.14", "/opt/rocm")


def places(path: str) -> list[str]:
    """`path` below every root; what the environment names comes first.

    >>> places("lib/libhsa-runtime64.so.1")[-1]
    '/opt/rocm/lib/libhsa-runtime64.so.1'
    """
    chosen = [os.environ[name] for name in VARIABLES if os.environ.get(name)]
    return [os.path.join(root, path) for root in dict.fromkeys([*chosen, *ROOTS])]
