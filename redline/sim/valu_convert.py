# SPDX-License-Identifier: Apache-2.0
"""Conversions between integers and floats, and between float sizes.

To a float: rounded to nearest even (v_cvt_pk_rtz_f16_f32: toward zero). To an integer: truncated,
out-of-range values become the nearest end of the range, NaN becomes 0. Normalised formats, fp8 and bf16
are not covered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .floats import f16_to_f32, join, make_quiet
from .op import Array, Op

Unary = Callable[[Array], Array]


def to_integer(dtype: Any, rounding: Unary = np.trunc) -> Unary:
    """The saturating conversion to `dtype`; f64 holds every 32-bit integer, so the comparison is exact."""
    info = np.iinfo(dtype)
    wide = np.int64 if info.bits == 32 else np.int32

    def convert(a: Array) -> Array:
        whole = rounding(a).astype(np.float64)
        inside = np.minimum(np.maximum(np.where(whole == whole, whole, 0.0), info.min), info.max)
        return inside.astype(wide).astype(dtype)

    return convert


def to_float(dtype: Any) -> Unary:
    """From an integer or from a wider or narrower float."""

    def convert(a: Array) -> Array:
        return a.astype(dtype)

    return convert


def to_float_quiet(dtype: Any) -> Unary:
    def convert(a: Array) -> Array:
        return make_quiet(a.astype(dtype))

    return convert


def byte_to_f32(index: int) -> Unary:
    def convert(a: Array) -> Array:
        return ((a >> np.uint32(8 * index)) & np.uint32(0xFF)).astype(np.float32)

    return convert


def _nearest(a: Array) -> Array:
    """floor(a + 0.5), the sum rounded to f32."""
    return np.floor(a + np.float32(0.5))


def _f16_toward_zero(a: Array) -> Array:
    """f32 to f16 without ever growing in magnitude: infinity only from infinity."""
    nearest = a.astype(np.float16)
    grew = np.abs(nearest.astype(np.float32)) > np.abs(a)
    # One step down in magnitude is one less in the bits below the sign, from infinity to 65504 too.
    bits = nearest.view(np.uint16) - grew.astype(np.uint16)
    return make_quiet(bits.view(np.float16))


def pack_f16_toward_zero(a: Array, b: Array) -> Array:
    return join(_f16_toward_zero(a), _f16_toward_zero(b))


def _packed(convert: Unary) -> Callable[[Array, Array], Array]:
    def pair(a: Array, b: Array) -> Array:
        return join(*np.broadcast_arrays(convert(a), convert(b)))

    return pair


def _clip_to(dtype: Any) -> Unary:
    info = np.iinfo(dtype)

    def convert(a: Array) -> Array:
        return np.clip(a.astype(np.int64), info.min, info.max).astype(dtype)

    return convert


def saturate_pair_u8(a: Array) -> Array:
    """v_sat_pk_u8_i16: both signed halves into bytes 0 and 1."""
    low = np.clip(a.astype(np.uint16).view(np.int16), 0, 255).astype(np.uint16)
    high = np.clip((a >> np.uint32(16)).astype(np.uint16).view(np.int16), 0, 255).astype(np.uint16)
    return low | (high << np.uint16(8))


def _scalar_conversions() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    floats: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    integers: dict[str, Any] = {"u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32}
    for kind, whole in (("f16", "u16"), ("f16", "i16"), ("f32", "u32"), ("f32", "i32"), ("f64", "u32"), ("f64", "i32")):
        rows[f"v_cvt_{kind}_{whole}"] = Op((kind,), (whole,), to_float(floats[kind]))
        rows[f"v_cvt_{whole}_{kind}"] = Op((whole,), (kind,), to_integer(integers[whole]))
    for index in range(4):
        rows[f"v_cvt_f32_ubyte{index}"] = Op(("f32",), ("b32",), byte_to_f32(index))
    return rows | {
        "v_cvt_f32_f16": Op(("f32",), ("f16",), f16_to_f32),
        "v_cvt_f16_f32": Op(("f16",), ("f32",), to_float_quiet(np.float16)),
        "v_cvt_f64_f32": Op(("f64",), ("f32",), to_float_quiet(np.float64)),
        "v_cvt_f32_f64": Op(("f32",), ("f64",), to_float_quiet(np.float32)),
        "v_cvt_nearest_i32_f32": Op(("i32",), ("f32",), to_integer(np.int32, _nearest)),
        "v_cvt_floor_i32_f32": Op(("i32",), ("f32",), to_integer(np.int32, np.floor)),
    }


CONVERT: dict[str, Op] = _scalar_conversions() | {
    "v_cvt_pk_rtz_f16_f32": Op(("b32",), ("f32", "f32"), pack_f16_toward_zero),
    "v_cvt_pk_i16_f32": Op(("b32",), ("f32", "f32"), _packed(to_integer(np.int16))),
    "v_cvt_pk_u16_f32": Op(("b32",), ("f32", "f32"), _packed(to_integer(np.uint16))),
    "v_cvt_pk_i16_i32": Op(("b32",), ("i32", "i32"), _packed(_clip_to(np.int16))),
    "v_cvt_pk_u16_u32": Op(("b32",), ("u32", "u32"), _packed(_clip_to(np.uint16))),
    "v_sat_pk_u8_i16": Op(("b16",), ("b32",), saturate_pair_u8),
}
