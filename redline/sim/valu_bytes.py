# SPDX-License-Identifier: Apache-2.0
"""Instructions on the bytes or nibbles of a dword: byte permute, differences, averages, dot products.

The float dot products round after each product is added, in the order of the manual's text; whether
hardware does is not verified, so `INEXACT_DOT` lists them beside the approximate instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .floats import fma_f16, halves
from .fma import fma
from .op import Array, Op
from .valu_int import saturate


def field(a: Array, index: int, bits: int, signed: bool) -> Array:
    """Field `index` of `bits` bits of each dword, as int64."""
    value = (a.astype(np.int64) >> (index * bits)) & ((1 << bits) - 1)
    if signed:
        sign = 1 << (bits - 1)
        value = (value ^ sign) - sign
    return value


def as_bytes(a: Array, lanes: int, dtype: Any = np.uint8) -> Array:
    """[wave, lane] dwords as [wave, lane, 4] bytes, lowest first; a scalar column is repeated."""
    if a.shape[1] != lanes:
        a = np.repeat(a, lanes, axis=1)
    separate: Array = np.ascontiguousarray(a).view(dtype)
    return separate.reshape(a.shape[0], lanes, 4)


def _lanes(*sources: Array) -> int:
    return int(max(source.shape[1] for source in sources))


def _sum_of_four(values: Array) -> Array:
    """Over the last axis; four strided additions are faster than numpy's sum over so short an axis."""
    total: Array = values[..., 0] + values[..., 1] + values[..., 2] + values[..., 3]
    return total


def permute(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes picked from {a, b}; byte 0 is the lowest of `b`. 8-11 copy a sign bit, 12 is 0, above it
    is 0xff."""
    if selector.size == 1:
        return _permute_by(a, b, selector.item())
    lanes = _lanes(a, b, selector)
    rows = max(a.shape[0], b.shape[0], selector.shape[0])
    choices = np.empty((rows, lanes, 14), np.uint8)
    choices[..., :4], choices[..., 4:8] = as_bytes(b, lanes), as_bytes(a, lanes)
    choices[..., 8:12] = np.uint8(0) - (choices[..., 1:8:2] >> 7)
    choices[..., 12], choices[..., 13] = 0, 0xFF
    wanted = np.broadcast_to(np.minimum(as_bytes(selector, lanes), 13), (rows, lanes, 4))
    return np.take_along_axis(choices, wanted.astype(np.intp), axis=2).view(np.uint32)[..., 0]


def _permute_by(a: Array, b: Array, selector: int) -> Array:
    """The same for one selector: bytes that move by the same distance move together."""
    fixed, masks = 0, dict[tuple[int, int], int]()
    signs: list[tuple[int, int]] = []
    for position, wanted in enumerate(selector.to_bytes(4, "little")):
        if wanted < 8:
            key = (wanted // 4, position - wanted % 4)
            masks[key] = masks.get(key, 0) | 0xFF << 8 * position
        elif wanted < 12:
            signs.append((wanted, position))
        elif wanted > 12:
            fixed |= 0xFF << 8 * position
    result: Array = np.full(np.broadcast_shapes(a.shape, b.shape), fixed, np.uint32)
    for (source, distance), mask in masks.items():
        dwords = (b, a)[source]
        moved = dwords << 8 * distance if distance >= 0 else dwords >> -8 * distance
        result = result | (moved & mask)
    for wanted, position in signs:
        sign = (b if wanted < 10 else a) >> (15 if wanted % 2 == 0 else 31) & np.uint32(1)
        result = result | sign * np.uint32(0xFF << 8 * position)
    return result


def _byte_distance(a: Array, b: Array, lanes: int) -> Array:
    left, right = as_bytes(a, lanes), as_bytes(b, lanes)
    distance: Array = np.maximum(left, right) - np.minimum(left, right)
    return distance


def sad_u8(a: Array, b: Array, c: Array) -> Array:
    """The sum of the four absolute differences, added to `c`."""
    result: Array = _sum_of_four(_byte_distance(a, b, _lanes(a, b)).astype(np.uint16)) + c
    return result


def msad_u8(a: Array, b: Array, c: Array) -> Array:
    """The same without the bytes where `b` is 0."""
    lanes = _lanes(a, b)
    counted = _byte_distance(a, b, lanes) * (as_bytes(b, lanes) != 0)
    result: Array = _sum_of_four(counted.astype(np.uint16)) + c
    return result


def sad_u16(a: Array, b: Array, c: Array) -> Array:
    total = c.astype(np.int64)
    for index in range(2):
        total = total + np.abs(field(a, index, 16, False) - field(b, index, 16, False))
    return total.astype(np.uint32)


def sad_u32(a: Array, b: Array, c: Array) -> Array:
    result: Array = np.maximum(a, b) - np.minimum(a, b) + c
    return result


def sad_hi_u8(a: Array, b: Array, c: Array) -> Array:
    high: Array = (sad_u8(a, b, np.zeros_like(c)) << np.uint32(16)) + c
    return high


def average_u8(a: Array, b: Array, rounding: Array) -> Array:
    """v_lerp_u8: (a + b + low bit of the third byte) / 2 in each byte."""
    total = np.zeros(np.broadcast_shapes(a.shape, b.shape, rounding.shape), np.int64)
    for index in range(4):
        carry = field(rounding, index, 8, False) & 1
        total = total + (((field(a, index, 8, False) + field(b, index, 8, False) + carry) >> 1) << (8 * index))
    return total.astype(np.uint32)


def _dot(a: Array, b: Array, c: Array, bits: int, signed: tuple[bool, bool]) -> Array:
    """c plus the products of all fields, as int64: nothing is lost."""
    if bits == 8:
        return _dot_bytes(a, b, signed) + c.astype(np.int64)
    total = c.astype(np.int64)
    for index in range(32 // bits):
        total = total + field(a, index, bits, signed[0]) * field(b, index, bits, signed[1])
    return total


def _dot_bytes(a: Array, b: Array, signed: tuple[bool, bool]) -> Array:
    lanes = _lanes(a, b)
    left, right = (as_bytes(x, lanes, np.int8 if s else np.uint8) for x, s in zip((a, b), signed, strict=True))
    return _sum_of_four(left.astype(np.int32) * right.astype(np.int32))


def _dot_row(bits: int, kind: str, reads_dst: bool = False) -> Op:
    signed, dtype = ((True, True), np.int32) if kind == "i32" else ((False, False), np.uint32)

    def plain(a: Array, b: Array, c: Array) -> Array:
        return _dot(a, b, c, bits, signed).astype(dtype)

    def clamped(a: Array, b: Array, c: Array) -> Array:
        return saturate(_dot(a, b, c, bits, signed), dtype)

    src = ("b32", "b32") if reads_dst else ("b32", "b32", kind)
    return Op((kind,), src, plain, reads_dst=reads_dst, saturating=clamped)


def _dot_mixed_row(bits: int) -> Op:
    """v_dot4_i32_iu8, v_dot8_i32_iu4: neg_lo says which of the two sources is signed."""

    def plain(a: Array, b: Array, c: Array, *, neg_lo: tuple[int, ...]) -> Array:
        return _dot(a, b, c, bits, (bool(neg_lo[0]), bool(neg_lo[1]))).astype(np.int32)

    def clamped(a: Array, b: Array, c: Array, *, neg_lo: tuple[int, ...]) -> Array:
        return saturate(_dot(a, b, c, bits, (bool(neg_lo[0]), bool(neg_lo[1]))), np.int32)

    return Op(("i32",), ("b32", "b32", "i32"), plain, needs=("neg_lo",), saturating=clamped)


def dot2_f32_f16(a: Array, b: Array, c: Array) -> Array:
    for left, right in zip(halves(a), halves(b), strict=True):
        c = fma(left.view(np.float16).astype(np.float32), right.view(np.float16).astype(np.float32), c)
    return c


def dot2_f16_f16(a: Array, b: Array, c: Array) -> Array:
    for left, right in zip(halves(a), halves(b), strict=True):
        c = fma_f16(left.view(np.float16), right.view(np.float16), c)
    return c


INEXACT_DOT: frozenset[str] = frozenset({"v_dot2_f32_f16", "v_dot2acc_f32_f16", "v_dot2_f16_f16"})

_THREE = ("u32", "u32", "u32")

BYTES: dict[str, Op] = {
    "v_perm_b32": Op(("b32",), ("b32", "b32", "b32"), permute),
    "v_sad_u8": Op(("u32",), _THREE, sad_u8),
    "v_sad_hi_u8": Op(("u32",), _THREE, sad_hi_u8),
    "v_sad_u16": Op(("u32",), _THREE, sad_u16),
    "v_sad_u32": Op(("u32",), _THREE, sad_u32),
    "v_msad_u8": Op(("u32",), _THREE, msad_u8),
    "v_lerp_u8": Op(("u32",), _THREE, average_u8),
    "v_dot4_i32_iu8": _dot_mixed_row(8),
    "v_dot8_i32_iu4": _dot_mixed_row(4),
    "v_dot4_i32_i8": _dot_row(8, "i32"),
    "v_dot4_u32_u8": _dot_row(8, "u32"),
    "v_dot8_i32_i4": _dot_row(4, "i32"),
    "v_dot8_u32_u4": _dot_row(4, "u32"),
    "v_dot2_i32_i16": _dot_row(16, "i32"),
    "v_dot2_u32_u16": _dot_row(16, "u32"),
    "v_dot4c_i32_i8": _dot_row(8, "i32", reads_dst=True),
    "v_dot2_f32_f16": Op(("f32",), ("pk_f16", "pk_f16", "f32"), dot2_f32_f16),
    "v_dot2acc_f32_f16": Op(("f32",), ("pk_f16", "pk_f16"), dot2_f32_f16, reads_dst=True),
    "v_dot2_f16_f16": Op(("f16",), ("pk_f16", "pk_f16", "f16"), dot2_f16_f16),
}
