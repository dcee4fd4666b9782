# SPDX-License-Identifier: Apache-2.0
"""The whole vector ALU in one table, by instruction name without encoding suffix (see `names.normalise`).

The rows are written in the `valu_*.py` files and `crosslane.py`, each of which states its own subject.
"""

from __future__ import annotations

from .approximate import APPROXIMATE
from .crosslane import CROSS_LANE
from .op import Op
from .valu_bytes import BYTES, INEXACT_DOT
from .valu_compare import COMPARE
from .valu_convert import CONVERT
from .valu_float import FLOAT
from .valu_int import INTEGER
from .valu_int16 import INTEGER16
from .valu_packed import PACKED

VALU: dict[str, Op] = INTEGER | INTEGER16 | BYTES | FLOAT | CONVERT | COMPARE | PACKED | CROSS_LANE

# What a GPU may compute with other last bits: `Executor.approximate` names those that ran.
NOT_BIT_EXACT: frozenset[str] = APPROXIMATE | INEXACT_DOT
