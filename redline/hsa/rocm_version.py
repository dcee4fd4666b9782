# SPDX-License-Identifier: Apache-2.0
"""Which ROCm a runtime library belongs to, and whether it is older than the one that Redline was written with.

ROCm keeps its version in `.info/version` beside its `lib` folder; a runtime from elsewhere, such as Debian's, has none.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Final

from .lib import file_of, search_library

LEAST_ROCM: Final = (7, 14)


class OldRuntimeWarning(UserWarning):
    """A ROCm older than Redline was written with: it may work, and was never tried."""


def installed_version(library: str) -> str:
    """The version of the installation that a library file belongs to; "" where none is stated."""
    root = Path(library).resolve().parent.parent
    for folder in (root, root.parent) if library else ():
        try:
            return (folder / ".info" / "version").read_text().strip()
        except OSError:
            continue
    return ""


def what_is_old(version: str) -> str:
    """What to say about a version that is too old; "" for any other, also one without numbers."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if not numbers or numbers >= LEAST_ROCM:
        return ""
    return f"older than {'.'.join(map(str, LEAST_ROCM))}, with which Redline was written: not tried"


def warn_if_old() -> None:
    """An OldRuntimeWarning where the HSA runtime that would be loaded belongs to an old ROCm."""
    library, _ = search_library()
    version = "" if library is None else installed_version(file_of(library))
    old = what_is_old(version)
    if old:
        text = (
            f"ROCm {version} is {old}; run `redline doctor`, and `redline demo --device hsa:0` to see whether it works"
        )
        warnings.warn(text, OldRuntimeWarning, stacklevel=3)
