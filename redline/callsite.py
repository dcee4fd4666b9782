# SPDX-License-Identifier: Apache-2.0
"""Where a user's program called Redline: file and line, for messages about recordings."""

from __future__ import annotations

import os
import sys
from functools import cache

_HERE = os.path.dirname(os.path.abspath(__file__))


def callsite() -> str:
    """file:line of the nearest caller outside this package's own folder; one string for all calls of a line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return sys.intern(f"{frame.f_code.co_filename}:{frame.f_lineno}")


@cache
def _is_ours(file: str) -> bool:
    return os.path.dirname(file) == _HERE
