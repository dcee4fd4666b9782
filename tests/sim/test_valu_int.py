# SPDX-License-Identifier: Apache-2.0
"""Bit fields and shifts with every offset, width and count, as a constant for all lanes and as a register."""

from __future__ import annotations

import numpy as np
import pytest

from redline.sim.valu import VALU
from tests.sim.alu_cases import array, bits
from tests.sim.alu_oracles import ORACLES

VALUES = [0x12345678, 0xDEADBEEF, 0x80000000, 0x7FFFFFFF, 1, 0, 0xFFFFFFFF]
COUNTS = [*range(34), 63, 64, 0x80000001, 0xFFFFFFFF]


@pytest.mark.parametrize("name", ["v_bfe_u32", "v_bfe_i32"])
def test_every_bit_field(name: str) -> None:
    """Offset and width count modulo 32; a field that ends above bit 31 is filled from the sign or with zeros."""
    op = VALU[name]
    value = array(op.src[0], VALUES)
    for offset in (*range(32), 33, 0xFFFFFFFF):
        for width in (*range(32), 33, 0xFFFFFFFF):
            wanted = [ORACLES[name](v, offset, width) for v in VALUES]
            assert bits(op.fn(value, array("u32", [offset]), array("u32", [width]))) == wanted, (offset, width)
    widths = array("u32", list(range(32)) * len(VALUES))
    for offset in range(32):
        lanes = np.repeat(value, 32, axis=1)
        wanted = [ORACLES[name](v, offset, width) for v in VALUES for width in range(32)]
        assert bits(op.fn(lanes, array("u32", [offset]), widths)) == wanted, offset


@pytest.mark.parametrize("name", ["v_alignbit_b32", "v_alignbyte_b32"])
def test_every_alignment(name: str) -> None:
    """The count is a 16-bit operand; 5 or 2 bits of it count."""
    op = VALU[name]
    high, low = array("b32", VALUES), array("b32", VALUES[::-1])
    for count in [c & 0xFFFF for c in COUNTS]:
        wanted = [ORACLES[name](a, b, count) for a, b in zip(VALUES, VALUES[::-1], strict=True)]
        assert bits(op.fn(high, low, array("u16", [count]))) == wanted, count
        assert bits(op.fn(high, low, array("u16", [count] * len(VALUES)))) == wanted, count


SHIFTS = [f"v_{way}_{kind}" for way, kind in (("lshlrev", "b16"), ("lshlrev", "b32"), ("lshlrev", "b64"))]
SHIFTS += [f"v_lshrrev_b{width}" for width in (16, 32, 64)] + [f"v_ashrrev_i{width}" for width in (16, 32, 64)]


@pytest.mark.parametrize("name", SHIFTS)
def test_every_shift_count(name: str) -> None:
    """Counts are taken modulo the width: 4, 5 or 6 bits."""
    op = VALU[name]
    width = int(name[-2:])
    values = [value * 0x100000001 & ((1 << width) - 1) for value in VALUES]
    for count in COUNTS:
        count &= 0xFFFF if width == 16 else 0xFFFFFFFF
        wanted = [ORACLES[name](count, value) for value in values]
        assert bits(op.fn(array(op.src[0], [count]), array(op.src[1], values))) == wanted, count


def test_carry_chains_add_and_subtract_64_bits() -> None:
    """Low halves give the carry that the high halves take: together 64-bit arithmetic."""
    numbers = [0, 1, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x123456789]
    pairs = [(a, b) for a in numbers for b in numbers]
    low = [array("u32", [pair[at] & 0xFFFFFFFF for pair in pairs]) for at in (0, 1)]
    high = [array("u32", [pair[at] >> 32 for pair in pairs]) for at in (0, 1)]
    for way, sign in (("add", 1), ("sub", -1)):
        result, carry = VALU[f"v_{way}_co_u32"].fn(*low)
        upper, out = VALU[f"v_{way}_co_ci_u32"].fn(*high, carry)
        got = [hi << 32 | lo for lo, hi in zip(bits(result), bits(upper), strict=True)]
        assert got == [(a + sign * b) % (1 << 64) for a, b in pairs]
        assert bits(out) == [int(not 0 <= a + sign * b < 1 << 64) for a, b in pairs]
