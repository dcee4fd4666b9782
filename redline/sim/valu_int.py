# SPDX-License-Identifier: Apache-2.0
"""Integer and bitwise vector instructions on 32 and 64 bits.

16-bit forms are in `valu_int16.py`, byte-wise ones and dot products in `valu_bytes.py`, packed ones in
`valu_packed.py`, comparisons in `valu_compare.py`.
Sources: AMD's RDNA3 and RDNA4 instruction set manuals, chapter "Vector ALU instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .op import Array, Mask, Op

_U31 = np.uint32(31)
_ONE = np.uint32(1)
_M24 = np.uint32(0xFFFFFF)


def mov(a: Array) -> Array:
    return a


def sub_rev(a: Array, b: Array) -> Array:
    result: Array = b - a
    return result


def saturate(wide: Array, dtype: Any) -> Array:
    """An int64 result put into the range of a narrower integer type."""
    info = np.iinfo(dtype)
    return np.clip(wide, info.min, info.max).astype(dtype)


def saturating(function: Callable[..., Array], dtype: Any) -> Callable[..., Array]:
    """`function` on int64 copies, clamped to `dtype`: what the integer `clamp` modifier does."""

    def clamped(*sources: Array) -> Array:
        return saturate(function(*(source.astype(np.int64) for source in sources)), dtype)

    return clamped


def add_carry_out(a: Array, b: Array) -> tuple[Array, Mask]:
    total: Array = a + b
    return total, total < a


def sub_borrow_out(a: Array, b: Array) -> tuple[Array, Mask]:
    difference: Array = a - b
    return difference, b > a


def sub_rev_borrow_out(a: Array, b: Array) -> tuple[Array, Mask]:
    return sub_borrow_out(b, a)


def add_carry(a: Array, b: Array, carry: Mask) -> tuple[Array, Mask]:
    partial: Array = a + b
    total: Array = partial + carry.view(np.uint8)
    return total, (partial < a) | (total < partial)


def sub_borrow(a: Array, b: Array, borrow: Mask) -> tuple[Array, Mask]:
    partial: Array = a - b
    rest: Array = partial - borrow.view(np.uint8)
    return rest, (b > a) | (rest > partial)


def sub_rev_borrow(a: Array, b: Array, borrow: Mask) -> tuple[Array, Mask]:
    return sub_borrow(b, a, borrow)


def mul_high_u32(a: Array, b: Array) -> Array:
    product: Array = a.astype(np.uint64) * b.astype(np.uint64)
    return (product >> np.uint64(32)).astype(np.uint32)


def mul_high_i32(a: Array, b: Array) -> Array:
    product: Array = a.astype(np.int64) * b.astype(np.int64)
    return (product >> np.int64(32)).astype(np.int32)


def _u24(a: Array) -> Array:
    result: Array = a & _M24
    return result


def _i24(a: Array) -> Array:
    """Bits 23:0 with bit 23 as the sign."""
    result: Array = (a << np.int32(8)) >> np.int32(8)
    return result


def mul_u24(a: Array, b: Array) -> Array:
    return np.multiply(_u24(a), _u24(b))


def mul_i24(a: Array, b: Array) -> Array:
    return np.multiply(_i24(a), _i24(b))


def mul_high_u24(a: Array, b: Array) -> Array:
    return mul_high_u32(_u24(a), _u24(b))


def mul_high_i24(a: Array, b: Array) -> Array:
    return mul_high_i32(_i24(a), _i24(b))


def mad_u24(a: Array, b: Array, c: Array) -> Array:
    return np.add(mul_u24(a, b), c)


def mad_i24(a: Array, b: Array, c: Array) -> Array:
    return np.add(mul_i24(a, b), c)


def _mad_u24_wide(a: Array, b: Array, c: Array) -> Array:
    result: Array = (a & 0xFFFFFF) * (b & 0xFFFFFF) + c
    return result


def _mad_i24_wide(a: Array, b: Array, c: Array) -> Array:
    left: Array = (a << 40) >> 40
    right: Array = (b << 40) >> 40
    result: Array = left * right + c
    return result


def mad_u64_u32(a: Array, b: Array, c: Array) -> tuple[Array, Mask]:
    """a * b + c on 65 bits: the low 64, and bit 64 as the carry."""
    total: Array = a.astype(np.uint64) * b.astype(np.uint64) + c
    return total, total < c


def mad_i64_i32(a: Array, b: Array, c: Array) -> tuple[Array, Mask]:
    """The signed form; bit 64 is the sign of the exact sum."""
    product: Array = a.astype(np.int64) * b.astype(np.int64)
    total: Array = product + c
    overflow: Array = ((product ^ total) & (c ^ total)) < 0
    return total, (total < 0) ^ overflow


def shift_left_rev(count: Array, value: Array) -> Array:
    result: Array = value << _in_width(count, value)
    return result


def shift_right_rev(count: Array, value: Array) -> Array:
    """Brings in zeros, or the sign where `value` is signed."""
    result: Array = value >> _in_width(count, value)
    return result


def _in_width(count: Array, value: Array) -> Array:
    """The low bits of a count that shift within the width of `value`, in its type."""
    kind = value.dtype.type
    low: Array = count.astype(kind, copy=False) & kind(value.dtype.itemsize * 8 - 1)
    return low


def bit_xnor(a: Array, b: Array) -> Array:
    result: Array = ~(a ^ b)
    return result


def and_or(a: Array, b: Array, c: Array) -> Array:
    result: Array = (a & b) | c
    return result


def or3(a: Array, b: Array, c: Array) -> Array:
    result: Array = a | b | c
    return result


def xor3(a: Array, b: Array, c: Array) -> Array:
    result: Array = a ^ b ^ c
    return result


def xor_add(a: Array, b: Array, c: Array) -> Array:
    result: Array = (a ^ b) + c
    return result


def add3(a: Array, b: Array, c: Array) -> Array:
    result: Array = a + b + c
    return result


def shift_add(a: Array, b: Array, c: Array) -> Array:
    return np.add(shift_left_rev(b, a), c)


def shift_or(a: Array, b: Array, c: Array) -> Array:
    return np.bitwise_or(shift_left_rev(b, a), c)


def add_shift(a: Array, b: Array, c: Array) -> Array:
    return shift_left_rev(c, np.add(a, b))


def _low_ones(width: Array) -> Array:
    result: Array = (_ONE << (width & _U31)) - _ONE
    return result


def _constants(*sources: Array) -> bool:
    """Whether each is one number for the whole batch, as an inline constant or a literal is."""
    return all(source.size == 1 for source in sources)


def extract_unsigned(a: Array, offset: Array, width: Array) -> Array:
    result: Array = (a >> (offset & _U31)) & _low_ones(width)
    return result


def extract_signed(a: Array, offset: Array, width: Array) -> Array:
    """The field with its top bit as the sign; 0 for width 0. Bits above bit 31 of the source are copies of
    it."""
    if _constants(offset, width):
        return _extract_signed_at(a, offset.item() & 31, width.item() & 31)
    field = (a >> (offset & _U31).astype(np.int32)).view(np.uint32) & _low_ones(width)
    sign: Array = (_ONE << (width & _U31)) >> _ONE
    return ((field ^ sign) - sign).view(np.int32)


def _extract_signed_at(a: Array, offset: int, width: int) -> Array:
    if width == 0:
        return np.zeros_like(a)
    if offset + width >= 32:
        return np.right_shift(a, offset)
    return np.right_shift(np.left_shift(a, 32 - offset - width), 32 - width)


def insert(mask: Array, a: Array, b: Array) -> Array:
    result: Array = b ^ (mask & (a ^ b))
    return result


def field_mask(width: Array, offset: Array) -> Array:
    result: Array = _low_ones(width) << (offset & _U31)
    return result


def align_bit(high: Array, low: Array, count: Array) -> Array:
    if _constants(count):
        shift = count.item() & 31
        result: Array = (low >> shift) | (high << (32 - shift)) if shift else low | (high & 0)
        return result
    pair = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return (pair >> (count & np.uint16(31)).astype(np.uint64)).astype(np.uint32)


def align_byte(high: Array, low: Array, count: Array) -> Array:
    return align_bit(high, low, (count & np.uint16(3)) * np.uint16(8))


def count_ones_add(a: Array, b: Array) -> Array:
    return np.add(np.bitwise_count(a).astype(np.uint32), b)


_REVERSED_BYTES = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)


def reverse_bits(a: Array) -> Array:
    return _REVERSED_BYTES[np.ascontiguousarray(a).view(np.uint8)].view(np.uint32).byteswap()


def leading_zeros(a: Array) -> Array:
    """-1 when no bit is set."""
    exponent = np.frexp(a.astype(np.float64))[1]
    return np.where(a == 0, -1, 32 - exponent).astype(np.int32)


def trailing_zeros(a: Array) -> Array:
    """-1 when no bit is set."""
    below = np.bitwise_count((a & (np.uint32(0) - a)) - _ONE)
    return np.where(a == 0, -1, below.astype(np.int32)).astype(np.int32)


def leading_sign_bits(a: Array) -> Array:
    """How many top bits equal the sign; -1 when all do."""
    flipped = np.where(a < 0, ~a, a).view(np.uint32)
    return leading_zeros(flipped)


def minimum3(a: Array, b: Array, c: Array) -> Array:
    return np.minimum(np.minimum(a, b), c)


def maximum3(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.maximum(a, b), c)


def median3(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def max_then_min(a: Array, b: Array, c: Array) -> Array:
    return np.minimum(np.maximum(a, b), c)


def min_then_max(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), c)


def select(a: Array, b: Array, mask: Mask) -> Array:
    return np.where(mask, b, a)


def select_by_vcc(a: Array, b: Array, *, vcc: Mask) -> Array:
    return np.where(vcc, b, a)


def swap(old: Array, other: Array) -> tuple[Array, Array]:
    """v_swap: both operands are destinations."""
    return other, old


def _arithmetic() -> dict[str, Op]:
    two, three = ("u32", "u32"), ("u32", "u32", "u32")
    signed, carry = ("i32", "i32"), ("u32", "mask")
    return {
        "v_add_nc_u32": Op(("u32",), two, np.add, saturating=saturating(np.add, np.uint32)),
        "v_sub_nc_u32": Op(("u32",), two, np.subtract, saturating=saturating(np.subtract, np.uint32)),
        "v_subrev_nc_u32": Op(("u32",), two, sub_rev, saturating=saturating(sub_rev, np.uint32)),
        "v_add_nc_i32": Op(("i32",), signed, np.add, saturating=saturating(np.add, np.int32)),
        "v_sub_nc_i32": Op(("i32",), signed, np.subtract, saturating=saturating(np.subtract, np.int32)),
        "v_add_co_u32": Op(carry, two, add_carry_out),
        "v_sub_co_u32": Op(carry, two, sub_borrow_out),
        "v_subrev_co_u32": Op(carry, two, sub_rev_borrow_out),
        "v_add_co_ci_u32": Op(carry, (*two, "mask"), add_carry),
        "v_sub_co_ci_u32": Op(carry, (*two, "mask"), sub_borrow),
        "v_subrev_co_ci_u32": Op(carry, (*two, "mask"), sub_rev_borrow),
        "v_add3_u32": Op(("u32",), three, add3),
        "v_xad_u32": Op(("u32",), three, xor_add),
        "v_lshl_add_u32": Op(("u32",), three, shift_add),
        "v_add_lshl_u32": Op(("u32",), three, add_shift),
    }


def _multiplication() -> dict[str, Op]:
    two, three = ("u32", "u32"), ("u32", "u32", "u32")
    signed, signed3 = ("i32", "i32"), ("i32", "i32", "i32")
    return {
        "v_mul_lo_u32": Op(("u32",), two, np.multiply),
        "v_mul_hi_u32": Op(("u32",), two, mul_high_u32),
        "v_mul_hi_i32": Op(("i32",), signed, mul_high_i32),
        "v_mul_u32_u24": Op(("u32",), two, mul_u24),
        "v_mul_i32_i24": Op(("i32",), signed, mul_i24),
        "v_mul_hi_u32_u24": Op(("u32",), two, mul_high_u24),
        "v_mul_hi_i32_i24": Op(("i32",), signed, mul_high_i24),
        "v_mad_u32_u24": Op(("u32",), three, mad_u24, saturating=saturating(_mad_u24_wide, np.uint32)),
        "v_mad_i32_i24": Op(("i32",), signed3, mad_i24, saturating=saturating(_mad_i24_wide, np.int32)),
        "v_mad_co_u64_u32": Op(("u64", "mask"), ("u32", "u32", "u64"), mad_u64_u32),
        "v_mad_co_i64_i32": Op(("i64", "mask"), ("i32", "i32", "i64"), mad_i64_i32),
    }


def _bitwise() -> dict[str, Op]:
    two, three = ("b32", "b32"), ("b32", "b32", "b32")
    return {
        "v_and_b32": Op(("b32",), two, np.bitwise_and),
        "v_or_b32": Op(("b32",), two, np.bitwise_or),
        "v_xor_b32": Op(("b32",), two, np.bitwise_xor),
        "v_xnor_b32": Op(("b32",), two, bit_xnor),
        "v_not_b32": Op(("b32",), ("b32",), np.invert),
        "v_and_or_b32": Op(("b32",), three, and_or),
        "v_or3_b32": Op(("b32",), three, or3),
        "v_xor3_b32": Op(("b32",), three, xor3),
        "v_lshl_or_b32": Op(("b32",), three, shift_or),
        "v_bfe_u32": Op(("u32",), ("u32", "u32", "u32"), extract_unsigned),
        "v_bfe_i32": Op(("i32",), ("i32", "u32", "u32"), extract_signed),
        "v_bfi_b32": Op(("b32",), three, insert),
        "v_bfm_b32": Op(("b32",), two, field_mask),
        # The count is a 16-bit operand where the assembler knows halves (v3.l); 5 bits of it count anyway.
        "v_alignbit_b32": Op(("b32",), ("b32", "b32", "u16"), align_bit),
        "v_alignbyte_b32": Op(("b32",), ("b32", "b32", "u16"), align_byte),
        "v_bfrev_b32": Op(("b32",), ("b32",), reverse_bits),
        "v_bcnt_u32_b32": Op(("u32",), ("b32", "u32"), count_ones_add),
        "v_clz_i32_u32": Op(("i32",), ("u32",), leading_zeros),
        "v_ctz_i32_b32": Op(("i32",), ("b32",), trailing_zeros),
        "v_cls_i32": Op(("i32",), ("i32",), leading_sign_bits),
    }


def _shifts() -> dict[str, Op]:
    return {
        "v_lshlrev_b32": Op(("b32",), ("u32", "b32"), shift_left_rev),
        "v_lshrrev_b32": Op(("b32",), ("u32", "b32"), shift_right_rev),
        "v_ashrrev_i32": Op(("i32",), ("u32", "i32"), shift_right_rev),
        "v_lshlrev_b64": Op(("b64",), ("u32", "b64"), shift_left_rev),
        "v_lshrrev_b64": Op(("b64",), ("u32", "b64"), shift_right_rev),
        "v_ashrrev_i64": Op(("i64",), ("u32", "i64"), shift_right_rev),
    }


def _min_max() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in ("i32", "u32"):
        two, three = (kind, kind), (kind, kind, kind)
        rows[f"v_min_{kind}"] = Op((kind,), two, np.minimum)
        rows[f"v_max_{kind}"] = Op((kind,), two, np.maximum)
        rows[f"v_min3_{kind}"] = Op((kind,), three, minimum3)
        rows[f"v_max3_{kind}"] = Op((kind,), three, maximum3)
        rows[f"v_med3_{kind}"] = Op((kind,), three, median3)
        rows[f"v_maxmin_{kind}"] = Op((kind,), three, max_then_min)
        rows[f"v_minmax_{kind}"] = Op((kind,), three, min_then_max)
    return rows


_MOVES: dict[str, Op] = {
    "v_mov_b32": Op(("b32",), ("b32",), mov),
    "v_cndmask_b32": Op(("b32",), ("b32", "b32", "mask"), select),
    "v_dual_cndmask_b32": Op(("b32",), ("b32", "b32"), select_by_vcc, needs=("vcc",)),
    "v_swap_b32": Op(("b32", "b32"), (), swap, reads_dst=True),
}

INTEGER: dict[str, Op] = _MOVES | _arithmetic() | _multiplication() | _bitwise() | _shifts() | _min_max()
