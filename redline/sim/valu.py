# SPDX-License-Identifier: Apache-2.0
"""The whole vector ALU in one table, by instruction name without encoding suffix (see `names.normalise`).

The rows are written in the `valu_*.py` files, each of which states its own subject.
"""

from __future__ import annotations

from .op import Op
from .valu_compare import COMPARE
from .valu_float import FLOAT
from .valu_int import INTEGER

VALU: dict[str, Op] = INTEGER | FLOAT | COMPARE
