# SPDX-License-Identifier: Apache-2.0
"""Integer and bitwise vector instructions on 32 and 64 bits.

16-bit forms are in `valu_int16.py`, packed ones in `valu_packed.py`, comparisons in `valu_compare.py`.
Sources: AMD's RDNA3 and RDNA4 instruction set manuals, chapter "Vector ALU instructions".
"""

from __future__ import annotations

import numpy as np

from .op import Array, Op


def mov(a: Array) -> Array:
    return a


def add(a: Array, b: Array) -> Array:
    result: Array = a + b
    return result


def add_carry_out(a: Array, b: Array) -> tuple[Array, Array]:
    total: Array = a + b
    return total, total < a


def mul_low(a: Array, b: Array) -> Array:
    result: Array = a * b
    return result


def shift_left_64_rev(count: Array, value: Array) -> Array:
    result: Array = value << (count & np.uint32(63)).astype(np.uint64)
    return result


INTEGER: dict[str, Op] = {
    "v_mov_b32": Op(("b32",), ("b32",), mov),
    "v_add_nc_u32": Op(("u32",), ("u32", "u32"), add),
    "v_add_co_u32": Op(("u32", "mask"), ("u32", "u32"), add_carry_out),
    "v_mul_lo_u32": Op(("u32",), ("u32", "u32"), mul_low),
    "v_lshlrev_b64": Op(("b64",), ("u32", "b64"), shift_left_64_rev),
}
