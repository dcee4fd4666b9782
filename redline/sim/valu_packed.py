# SPDX-License-Identifier: Apache-2.0
"""Packed 16-bit instructions (VOP3P): one operation on the low halves and one on the high halves.

The machine arranges the halves (op_sel, op_sel_hi) and changes signs (neg_lo, neg_hi) before; it clamps
floats after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import minmax
from . import valu_int16 as half
from .floats import fma_f16
from .op import Array, Op
from .valu_int import saturating, shift_left_rev, shift_right_rev

_DTYPES: dict[str, Any] = {"b16": np.uint16, "u16": np.uint16, "i16": np.int16, "f16": np.float16}


def both_halves(function: Callable[..., Any], kinds: tuple[str, ...]) -> Callable[..., Array]:
    """`function` on 16-bit operands of `kinds`: all halves of all dwords in one call."""
    dtypes = [_DTYPES[kind] for kind in kinds]

    def packed(*sources: Array) -> Array:
        lanes = max(source.shape[1] for source in sources)
        operands = [_as_halves(source, lanes, dtype) for source, dtype in zip(sources, dtypes, strict=True)]
        result: Array = function(*operands)
        return result.view(np.uint32)

    return packed


def _as_halves(a: Array, lanes: int, dtype: Any) -> Array:
    """[wave, lane] dwords as [wave, 2 * lane] halves, low half first."""
    if a.shape[1] != lanes:
        a = np.repeat(a, lanes, axis=1)
    return np.ascontiguousarray(a).view(dtype)


def _row(result: str, kinds: tuple[str, ...], function: Callable[..., Any], clamps: bool = False) -> Op:
    clamped = both_halves(saturating(function, _DTYPES[result]), kinds) if clamps else None
    sources = tuple(f"pk_{kind}" for kind in kinds)
    return Op((f"pk_{result}",), sources, both_halves(function, kinds), saturating=clamped)


def _integer_rows() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in ("u16", "i16"):
        two, three = (kind, kind), (kind, kind, kind)
        rows[f"v_pk_add_{kind}"] = _row(kind, two, np.add, clamps=True)
        rows[f"v_pk_sub_{kind}"] = _row(kind, two, np.subtract, clamps=True)
        rows[f"v_pk_mad_{kind}"] = _row(kind, three, half.mad, clamps=True)
        rows[f"v_pk_min_{kind}"] = _row(kind, two, np.minimum)
        rows[f"v_pk_max_{kind}"] = _row(kind, two, np.maximum)
    return rows | {
        "v_pk_mul_lo_u16": _row("u16", ("u16", "u16"), np.multiply),
        "v_pk_lshlrev_b16": _row("b16", ("u16", "b16"), shift_left_rev),
        "v_pk_lshrrev_b16": _row("b16", ("u16", "b16"), shift_right_rev),
        "v_pk_ashrrev_i16": _row("i16", ("u16", "i16"), shift_right_rev),
    }


def _float_rows() -> dict[str, Op]:
    two, three = ("f16", "f16"), ("f16", "f16", "f16")
    fmac = Op(("pk_f16",), ("pk_f16", "pk_f16"), both_halves(fma_f16, three), reads_dst=True)
    return {
        "v_pk_add_f16": _row("f16", two, np.add),
        "v_pk_mul_f16": _row("f16", two, np.multiply),
        "v_pk_fma_f16": _row("f16", three, fma_f16),
        "v_pk_fmac_f16": fmac,
        "v_pk_min_f16": _row("f16", two, minmax.MIN_IEEE),
        "v_pk_max_f16": _row("f16", two, minmax.MAX_IEEE),
        "v_pk_min_num_f16": _row("f16", two, minmax.MIN_NUMBER),
        "v_pk_max_num_f16": _row("f16", two, minmax.MAX_NUMBER),
        "v_pk_minimum_f16": _row("f16", two, minmax.MIN_PROPAGATE),
        "v_pk_maximum_f16": _row("f16", two, minmax.MAX_PROPAGATE),
    }


PACKED: dict[str, Op] = _integer_rows() | _float_rows()
