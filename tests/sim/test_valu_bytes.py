# SPDX-License-Identifier: Apache-2.0
"""Byte permute with every selector byte, and mixed-sign dot products with every combination of signs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from redline.sim.valu import VALU
from tests.sim.alu_cases import array, bits
from tests.sim.alu_oracles import ORACLES, signed

FIELDS = {"v_dot4_i32_iu8": 8, "v_dot8_i32_iu4": 4}


def selectors() -> list[int]:
    """Every byte value with a meaning of its own in every position, and mixtures."""
    chooser = random.Random(6)
    choices = [*range(16), 0x7F, 0x80, 0xFF]
    single = [wanted << 8 * at for wanted in choices for at in range(4)]
    mixed = [int.from_bytes(bytes(chooser.choices(choices, k=4)), "little") for _ in range(150)]
    runs = [0x07060504, 0x03020100, 0x05040100, 0x04030201, 0x0C0C0001, 0x07030602, 0x09080B0A, 0x0D0C0B0A]
    return single + mixed + runs


def test_permute_with_every_selector() -> None:
    """As a literal for all lanes and as a register of its own, on bytes whose sign bits differ."""
    chooser = random.Random(8)
    left = [0x80FF7F01, 0x017F80FE, *(chooser.getrandbits(32) for _ in range(6))]
    right = [0xFF01807F, 0x7E81FF00, *(chooser.getrandbits(32) for _ in range(6))]
    fn = VALU["v_perm_b32"].fn
    for selector in selectors():
        wanted = [ORACLES["v_perm_b32"](a, b, selector) for a, b in zip(left, right, strict=True)]
        pair = array("b32", left), array("b32", right)
        assert bits(fn(*pair, array("b32", [selector]))) == wanted, hex(selector)
        assert bits(fn(*pair, array("b32", [selector] * 8))) == wanted, hex(selector)


@pytest.mark.parametrize("signs", [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)])
@pytest.mark.parametrize("name", sorted(FIELDS))
def test_dot_product_with_each_source_signed_or_not(name: str, signs: tuple[int, int, int]) -> None:
    """neg_lo of the first two sources says signed; that of the third means nothing."""
    chooser, width = random.Random(5), FIELDS[name]
    rows = [[chooser.getrandbits(32) for _ in range(3)] for _ in range(60)]
    a, b, c = (array("b32", column) for column in zip(*rows, strict=True))
    op = VALU[name]
    assert op.saturating is not None
    wrapped = bits(op.fn(a, b, c.view(np.int32), neg_lo=signs))
    clamped = bits(op.saturating(a, b, c.view(np.int32), neg_lo=signs))
    for row, got, limited in zip(rows, wrapped, clamped, strict=True):
        total = signed(row[2], 32)
        for at in range(0, 32, width):
            left, right = ((value >> at) & ((1 << width) - 1) for value in row[:2])
            total += (signed(left, width) if signs[0] else left) * (signed(right, width) if signs[1] else right)
        assert got == total & 0xFFFFFFFF
        assert limited == min(max(total, -(1 << 31)), (1 << 31) - 1) & 0xFFFFFFFF
