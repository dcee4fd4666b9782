# SPDX-License-Identifier: Apache-2.0
"""Instructions on the bytes or nibbles of a dword: byte permute, differences, averages, dot products.

The float dot products round after each product is added, in the order of the manual's text; whether
hardware does is not verified, so `INEXACT_DOT` lists them beside the approximate instructions.
"""

from __future__ import annotations

from collections.abc import Callable

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


def permute(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes picked from {a, b}; byte 0 is the lowest of `b`. 8-11 copy a sign bit, 12 is 0, above it
    is 0xff."""
    pair = (a.astype(np.uint64) << np.uint64(32)) | b.astype(np.uint64)
    result = np.zeros(np.broadcast_shapes(pair.shape, selector.shape), np.uint32)
    for position in range(4):
        wanted = (selector >> np.uint32(8 * position)) & np.uint32(0xFF)
        byte = (pair >> ((wanted & np.uint32(7)) * np.uint32(8)).astype(np.uint64)) & np.uint64(0xFF)
        sign_at = np.uint32(15) + (wanted & np.uint32(3)) * np.uint32(16)
        sign = ((pair >> sign_at.astype(np.uint64)) & np.uint64(1)) * np.uint64(0xFF)
        picked = np.where(wanted < 8, byte, np.where(wanted < 12, sign, np.where(wanted == 12, 0, 0xFF)))
        result |= picked.astype(np.uint32) << np.uint32(8 * position)
    return result


def _difference_sum(bits: int, skip_zero: bool = False) -> Callable[[Array, Array, Array], Array]:
    def summed(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64)
        for index in range(32 // bits):
            right = field(b, index, bits, False)
            difference = np.abs(field(a, index, bits, False) - right)
            total = total + (np.where(right == 0, 0, difference) if skip_zero else difference)
        return total.astype(np.uint32)

    return summed


sad_u8 = _difference_sum(8)


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
    total = c.astype(np.int64)
    for index in range(32 // bits):
        total = total + field(a, index, bits, signed[0]) * field(b, index, bits, signed[1])
    return total


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
    "v_sad_u16": Op(("u32",), _THREE, _difference_sum(16)),
    "v_sad_u32": Op(("u32",), _THREE, _difference_sum(32)),
    "v_msad_u8": Op(("u32",), _THREE, _difference_sum(8, skip_zero=True)),
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
