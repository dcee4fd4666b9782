# SPDX-License-Identifier: Apache-2.0
"""Integer instructions on one 16-bit half. Which half, and keeping the other one, is the machine's part."""

from __future__ import annotations

import numpy as np

from . import valu_int as wide
from .op import Array, Op


def mad(a: Array, b: Array, c: Array) -> Array:
    result: Array = a * b + c
    return result


def mad_u32_u16(a: Array, b: Array, c: Array) -> Array:
    result: Array = a.astype(np.uint32) * b.astype(np.uint32) + c
    return result


def mad_i32_i16(a: Array, b: Array, c: Array) -> Array:
    result: Array = a.astype(np.int32) * b.astype(np.int32) + c
    return result


def extend_signed(a: Array) -> Array:
    return a.astype(np.int32)


def extend_unsigned(a: Array) -> Array:
    return a.astype(np.uint32)


def _arithmetic() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind, dtype in (("u16", np.uint16), ("i16", np.int16)):
        two, three = (kind, kind), (kind, kind, kind)
        rows[f"v_add_nc_{kind}"] = Op((kind,), two, np.add, saturating=wide.saturating(np.add, dtype))
        rows[f"v_sub_nc_{kind}"] = Op((kind,), two, np.subtract, saturating=wide.saturating(np.subtract, dtype))
        rows[f"v_mad_{kind}"] = Op((kind,), three, mad, saturating=wide.saturating(mad, dtype))
        rows[f"v_min_{kind}"] = Op((kind,), two, np.minimum)
        rows[f"v_max_{kind}"] = Op((kind,), two, np.maximum)
        rows[f"v_min3_{kind}"] = Op((kind,), three, wide.minimum3)
        rows[f"v_max3_{kind}"] = Op((kind,), three, wide.maximum3)
        rows[f"v_med3_{kind}"] = Op((kind,), three, wide.median3)
    return rows


def _bitwise() -> dict[str, Op]:
    two = ("b16", "b16")
    return {
        "v_mov_b16": Op(("b16",), ("b16",), wide.mov),
        "v_and_b16": Op(("b16",), two, np.bitwise_and),
        "v_or_b16": Op(("b16",), two, np.bitwise_or),
        "v_xor_b16": Op(("b16",), two, np.bitwise_xor),
        "v_not_b16": Op(("b16",), ("b16",), np.invert),
        "v_cndmask_b16": Op(("b16",), ("b16", "b16", "mask"), wide.select),
        "v_swap_b16": Op(("b16", "b16"), (), wide.swap, reads_dst=True),
    }


INTEGER16: dict[str, Op] = (
    _arithmetic()
    | _bitwise()
    | {
        "v_mul_lo_u16": Op(("u16",), ("u16", "u16"), np.multiply),
        "v_lshlrev_b16": Op(("b16",), ("u16", "b16"), wide.shift_left_rev),
        "v_lshrrev_b16": Op(("b16",), ("u16", "b16"), wide.shift_right_rev),
        "v_ashrrev_i16": Op(("i16",), ("u16", "i16"), wide.shift_right_rev),
        "v_mad_u32_u16": Op(("u32",), ("u16", "u16", "u32"), mad_u32_u16),
        "v_mad_i32_i16": Op(("i32",), ("i16", "i16", "i32"), mad_i32_i16),
        "v_cvt_i32_i16": Op(("i32",), ("i16",), extend_signed),
        "v_cvt_u32_u16": Op(("u32",), ("u16",), extend_unsigned),
    }
)
