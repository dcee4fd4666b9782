# SPDX-License-Identifier: Apache-2.0
"""Scalar ALU instructions: semantics as pure functions on arrays [wave, 1], in one table.

Sources: AMD's RDNA2, RDNA3 and RDNA4 instruction set manuals, chapters SOP1, SOP2, SOPC, SOPK. What SCC becomes is part
of each row: `scc` "result" means result nonzero, "value" means the function returns it, "kept" that it stays.
Operands are compiled by `scalar.py`; jumps and waits are in `control.py`, scalar loads in `smem.py`, the functions of
scalar floats in `salu_float.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .op import OPERAND_TYPES, Array
from .salu_float import SALU_FLOAT

Scc = Literal["kept", "result", "value"]


@dataclass(frozen=True)
class Scalar:
    """One scalar instruction.

    `fn(*sources, *old_destination_if_reads_dst, *scc_if_reads_scc)` returns the result; with `scc` "value" the pair
    (result, SCC); without a destination SCC alone.
    """

    dst: str | None
    src: tuple[str, ...]
    fn: Callable[..., Any]
    scc: Scc = "kept"
    reads_scc: bool = False
    reads_dst: bool = False


def _overflow(a: Array, b: Array, total: Array) -> Array:
    """Signed overflow of a + b, from the sign bits."""
    result: Array = ((a ^ total) & (b ^ total)) < 0
    return result


def add_unsigned(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, total < a


def sub_unsigned(a: Array, b: Array) -> tuple[Array, Array]:
    return a - b, b > a


def add_carry(a: Array, b: Array, scc: Array) -> tuple[Array, Array]:
    total = a.astype(np.uint64) + b + scc
    return total.astype(np.uint32), total >> np.uint64(32) != 0


def sub_borrow(a: Array, b: Array, scc: Array) -> tuple[Array, Array]:
    needed = b.astype(np.uint64) + scc
    return (a - needed).astype(np.uint32), needed > a


def add_signed(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, _overflow(a, b, total)


def sub_signed(a: Array, b: Array) -> tuple[Array, Array]:
    difference = a - b
    return difference, _overflow(a, ~b, difference)


def absolute_difference(a: Array, b: Array) -> Array:
    result: Array = np.abs(a - b)
    return result


def shift_left_add(count: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    def compute(a: Array, b: Array) -> tuple[Array, Array]:
        total = (a.astype(np.uint64) << np.uint64(count)) + b
        return total.astype(np.uint32), total >> np.uint64(32) != 0

    return compute


def minimum(a: Array, b: Array) -> tuple[Array, Array]:
    return np.minimum(a, b), a < b


def maximum(a: Array, b: Array) -> tuple[Array, Array]:
    return np.maximum(a, b), a >= b


def _shift(function: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    """A shift whose count is masked to the width of the value."""

    def compute(value: Array, count: Array) -> Array:
        bits = value.dtype.itemsize * 8 - 1
        result: Array = function(value, (count & np.uint32(bits)).astype(value.dtype))
        return result

    return compute


def extract(value: Array, control: Array) -> Array:
    """Bit field: offset in the low 5 or 6 bits, width in bits 22:16; width 0 gives 0, signed types extend the sign."""
    bits = value.dtype.itemsize * 8
    if control.size == 1:
        return _extract_constant(value, int(control[0, 0]), bits)
    offset = (control & np.uint32(bits - 1)).astype(np.uint64)
    width = (control >> np.uint32(16) & np.uint32(0x7F)).astype(np.uint64)
    width = np.minimum(width, np.uint64(bits) - offset)
    unused = np.uint64(bits) - width
    left = np.minimum(unused - offset, np.uint64(bits - 1)).astype(value.dtype)
    moved = (value << left) >> np.minimum(unused, np.uint64(bits - 1)).astype(value.dtype)
    result: Array = np.where(width == 0, value.dtype.type(0), moved)
    return result


def _extract_constant(value: Array, control: int, bits: int) -> Array:
    offset = control & bits - 1
    width = min(control >> 16 & 0x7F, bits - offset)
    kind = value.dtype.type
    if width == 0:
        return np.zeros_like(value)
    result: Array = (value << kind(bits - width - offset)) >> kind(bits - width)
    return result


def bit_field_mask(width: Array, offset: Array) -> Array:
    bits = np.uint32(width.dtype.itemsize * 8 - 1)
    one = width.dtype.type(1)
    mask = (one << (width.astype(np.uint32) & bits).astype(width.dtype)) - one
    result: Array = mask << (offset.astype(np.uint32) & bits).astype(width.dtype)
    return result


def reverse_bits(value: Array) -> Array:
    """Bit i goes to bit 31-i (63-i)."""
    data = np.ascontiguousarray(value).view(np.uint8)
    flipped = np.packbits(np.unpackbits(data, axis=1, bitorder="little")[:, ::-1], axis=1, bitorder="little")
    result: Array = flipped.view(value.dtype)
    return result


def _highest(value: Array) -> Array:
    """Number of the highest set bit, -1 for 0."""
    bits = np.unpackbits(np.ascontiguousarray(value).view(np.uint8), axis=1, bitorder="little")
    first = np.argmax(bits[:, ::-1], axis=1, keepdims=True)
    result: Array = np.where(value == 0, -1, bits.shape[1] - 1 - first).astype(np.int32)
    return result


def leading_zeros(value: Array) -> Array:
    """Zero bits above the highest set bit; -1 for 0."""
    bits = value.dtype.itemsize * 8
    return np.where(value == 0, -1, bits - 1 - _highest(value)).astype(np.int32)


def trailing_zeros(value: Array) -> Array:
    """Zero bits below the lowest set bit; -1 for 0."""
    lowest = value & (~value + value.dtype.type(1))
    return _highest(lowest)


def leading_signs(value: Array) -> Array:
    """Bits from the top that equal the sign bit, less none; -1 when all are equal."""
    bits = value.dtype.itemsize * 8
    unsigned = value.view(np.dtype(f"u{bits // 8}"))
    changed = np.where(value < 0, ~unsigned, unsigned)
    return np.where(changed == 0, -1, bits - 1 - _highest(changed)).astype(np.int32)


def count_ones(value: Array) -> Array:
    result: Array = np.bitwise_count(value).astype(np.int32)
    return result


def count_zeros(value: Array) -> Array:
    result: Array = np.bitwise_count(~value).astype(np.int32)
    return result


def multiply_high(a: Array, b: Array) -> Array:
    wide = np.int64 if a.dtype == np.int32 else np.uint64
    product = a.astype(wide) * b.astype(wide)
    result: Array = (product >> wide(32)).astype(a.dtype)
    return result


def _pack(first_high: bool, second_high: bool) -> Callable[[Array, Array], Array]:
    def compute(a: Array, b: Array) -> Array:
        low = a >> np.uint32(16) if first_high else a & np.uint32(0xFFFF)
        high = b & np.uint32(0xFFFF0000) if second_high else b << np.uint32(16)
        result: Array = low | high
        return result

    return compute


def _sign_extend(kind: type[np.signedinteger[Any]]) -> Callable[[Array], Array]:
    return lambda value: value.astype(kind).astype(np.int32)


def quad_mask(value: Array) -> Array:
    """Bit i says whether any of bits 4i to 4i+3 is set."""
    data = np.ascontiguousarray(value).view(np.uint8)
    bits = np.unpackbits(data, axis=1, bitorder="little").reshape(len(value), -1, 4).any(axis=2)
    packed = np.packbits(bits, axis=1, bitorder="little")
    result = np.zeros_like(np.ascontiguousarray(value))
    result.view(np.uint8)[:, : packed.shape[1]] = packed
    return result


def whole_quad(value: Array) -> Array:
    """Every group of four bits that has one set becomes all ones."""
    bits = np.unpackbits(np.ascontiguousarray(value).view(np.uint8), axis=1, bitorder="little")
    spread = np.repeat(bits.reshape(len(value), -1, 4).any(axis=2), 4, axis=1)
    result: Array = np.packbits(spread, axis=1, bitorder="little").view(value.dtype)
    return result


def _and_not(a: Array, b: Array) -> Array:
    result: Array = a & ~b
    return result


def _or_not(a: Array, b: Array) -> Array:
    result: Array = a | ~b
    return result


def _nand(a: Array, b: Array) -> Array:
    result: Array = ~(a & b)
    return result


def _nor(a: Array, b: Array) -> Array:
    result: Array = ~(a | b)
    return result


def _xnor(a: Array, b: Array) -> Array:
    result: Array = ~(a ^ b)
    return result


def identity(value: Array) -> Array:
    return value


def _select(a: Array, b: Array, scc: Array) -> Array:
    return np.where(scc, a, b)


def move_if(value: Array, old: Array, scc: Array) -> Array:
    return np.where(scc, value, old)


def _bit_test(wanted: int) -> Callable[[Array, Array], Array]:
    def compute(value: Array, index: Array) -> Array:
        bits = value.dtype.itemsize * 8 - 1
        chosen = value >> (index & np.uint32(bits)).astype(value.dtype) & value.dtype.type(1)
        result: Array = chosen == wanted
        return result

    return compute


def _bit_set(value_of_bit: int) -> Callable[[Array, Array], Array]:
    def compute(index: Array, old: Array) -> Array:
        bit = old.dtype.type(1) << (index & np.uint32(old.dtype.itemsize * 8 - 1)).astype(old.dtype)
        result: Array = old | bit if value_of_bit else old & ~bit
        return result

    return compute


LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "and_not1": _and_not,
    "or_not1": _or_not,
    "nand": _nand,
    "nor": _nor,
    "xnor": _xnor,
}
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def _logic_rows() -> dict[str, Scalar]:
    rows: dict[str, Scalar] = {}
    for width in ("b32", "b64"):
        for name, function in LOGIC.items():
            rows[f"s_{name}_{width}"] = Scalar(width, (width, width), function, "result")
        rows |= {
            f"s_mov_{width}": Scalar(width, (width,), identity),
            f"s_not_{width}": Scalar(width, (width,), np.bitwise_not, "result"),
            f"s_cmov_{width}": Scalar(width, (width,), move_if, reads_scc=True, reads_dst=True),
            f"s_cselect_{width}": Scalar(width, (width, width), _select, reads_scc=True),
            f"s_lshl_{width}": Scalar(width, (width, "u32"), _shift(np.left_shift), "result"),
            f"s_lshr_{width}": Scalar(width, (width, "u32"), _shift(np.right_shift), "result"),
            f"s_bfm_{width}": Scalar(width, ("u32", "u32"), _mask_of(width)),
            f"s_brev_{width}": Scalar(width, (width,), reverse_bits),
            f"s_bcnt0_i32_{width}": Scalar("i32", (width,), count_zeros, "result"),
            f"s_bcnt1_i32_{width}": Scalar("i32", (width,), count_ones, "result"),
            f"s_ctz_i32_{width}": Scalar("i32", (width,), trailing_zeros),
            f"s_quadmask_{width}": Scalar(width, (width,), quad_mask, "result"),
            f"s_wqm_{width}": Scalar(width, (width,), whole_quad, "result"),
            f"s_bitcmp0_{width}": Scalar(None, (width, "u32"), _bit_test(0), "value"),
            f"s_bitcmp1_{width}": Scalar(None, (width, "u32"), _bit_test(1), "value"),
            f"s_bitset0_{width}": Scalar(width, ("u32",), _bit_set(0), reads_dst=True),
            f"s_bitset1_{width}": Scalar(width, ("u32",), _bit_set(1), reads_dst=True),
        }
        unsigned, signed = width.replace("b", "u"), width.replace("b", "i")
        rows |= {
            f"s_ashr_{signed}": Scalar(signed, (signed, "u32"), _shift(np.right_shift), "result"),
            f"s_bfe_{unsigned}": Scalar(unsigned, (unsigned, "u32"), extract, "result"),
            f"s_bfe_{signed}": Scalar(signed, (signed, "u32"), extract, "result"),
            f"s_clz_i32_{unsigned}": Scalar("i32", (unsigned,), leading_zeros),
        }
    rows["s_cls_i32"] = Scalar("i32", ("i32",), leading_signs)
    rows["s_cls_i32_i64"] = Scalar("i32", ("i64",), leading_signs)
    return rows


def _mask_of(width: str) -> Callable[[Array, Array], Array]:
    dtype = OPERAND_TYPES[width].dtype
    return lambda size, offset: bit_field_mask(size.astype(dtype), offset)


def _arithmetic_rows() -> dict[str, Scalar]:
    u32, i32 = ("u32", "u32"), ("i32", "i32")
    rows = {
        "s_add_co_u32": Scalar("u32", u32, add_unsigned, "value"),
        "s_sub_co_u32": Scalar("u32", u32, sub_unsigned, "value"),
        "s_add_co_ci_u32": Scalar("u32", u32, add_carry, "value", reads_scc=True),
        "s_sub_co_ci_u32": Scalar("u32", u32, sub_borrow, "value", reads_scc=True),
        "s_add_co_i32": Scalar("i32", i32, add_signed, "value"),
        "s_sub_co_i32": Scalar("i32", i32, sub_signed, "value"),
        "s_absdiff_i32": Scalar("i32", i32, absolute_difference, "result"),
        "s_abs_i32": Scalar("i32", ("i32",), np.abs, "result"),
        "s_min_u32": Scalar("u32", u32, minimum, "value"),
        "s_min_i32": Scalar("i32", i32, minimum, "value"),
        "s_max_u32": Scalar("u32", u32, maximum, "value"),
        "s_max_i32": Scalar("i32", i32, maximum, "value"),
        "s_mul_i32": Scalar("i32", i32, np.multiply),
        "s_mul_hi_u32": Scalar("u32", u32, multiply_high),
        "s_mul_hi_i32": Scalar("i32", i32, multiply_high),
        "s_add_nc_u64": Scalar("u64", ("u64", "u64"), np.add),
        "s_sub_nc_u64": Scalar("u64", ("u64", "u64"), np.subtract),
        "s_mul_u64": Scalar("u64", ("u64", "u64"), np.multiply),
        "s_sext_i32_i8": Scalar("i32", ("u32",), _sign_extend(np.int8)),
        "s_sext_i32_i16": Scalar("i32", ("u32",), _sign_extend(np.int16)),
        "s_pack_ll_b32_b16": Scalar("b32", ("b32", "b32"), _pack(False, False)),
        "s_pack_lh_b32_b16": Scalar("b32", ("b32", "b32"), _pack(False, True)),
        "s_pack_hl_b32_b16": Scalar("b32", ("b32", "b32"), _pack(True, False)),
        "s_pack_hh_b32_b16": Scalar("b32", ("b32", "b32"), _pack(True, True)),
    }
    for count in (1, 2, 3, 4):
        rows[f"s_lshl{count}_add_u32"] = Scalar("u32", u32, shift_left_add(count), "value")
    for name, function in COMPARE.items():
        for kind in ("u32", "i32"):
            rows[f"s_cmp_{name}_{kind}"] = Scalar(None, (kind, kind), function, "value")
    rows["s_cmp_eq_u64"] = Scalar(None, ("u64", "u64"), np.equal, "value")
    rows["s_cmp_lg_u64"] = Scalar(None, ("u64", "u64"), np.not_equal, "value")
    return rows


def _float_rows() -> dict[str, Scalar]:
    """Scalar floats: the vector functions; the lane mask of a comparison is SCC."""
    rows: dict[str, Scalar] = {}
    for name, op in SALU_FLOAT.items():
        dst = None if op.dst == ("mask",) else op.dst[0]
        rows[name] = Scalar(dst, op.src, op.fn, reads_dst=op.reads_dst)
    return rows


SCALAR: dict[str, Scalar] = _logic_rows() | _arithmetic_rows() | _float_rows()
