# SPDX-License-Identifier: Apache-2.0
"""Where a user's program called Redline: file and line, for messages about recordings."""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def callsite() -> str:
    """file:line of the nearest caller outside this package's own folder."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
