# SPDX-License-Identifier: Apache-2.0
"""Scalar instructions on 64 bits, and shift-and-add, against Python integers: result and SCC for several waves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.sim.machine import Machine

M64, M32 = (1 << 64) - 1, (1 << 32) - 1
VALUES = [0, 1, M64, 1 << 63, 0x0123456789ABCDEF, 0xF0F0_0000_1234_5678, 3, 0xFFFF_FFFF_0000_0000]

Rule = Callable[[int, int], int]
LOGIC: dict[str, Rule] = {
    "s_and_b64": lambda a, b: a & b,
    "s_or_b64": lambda a, b: a | b,
    "s_xor_b64": lambda a, b: a ^ b,
    "s_and_not1_b64": lambda a, b: a & ~b,
    "s_or_not1_b64": lambda a, b: a | ~b,
    "s_nand_b64": lambda a, b: ~(a & b),
    "s_nor_b64": lambda a, b: ~(a | b),
    "s_xnor_b64": lambda a, b: ~(a ^ b),
}


def _quads(a: int) -> int:
    return sum((1 << k) for k in range(16) if a >> 4 * k & 15)


def _whole_quads(a: int) -> int:
    return sum(15 << 4 * k for k in range(16) if a >> 4 * k & 15)


def _leading_signs(a: int) -> int:
    """How many bits from the top equal the sign; -1 when all do."""
    bits = f"{a:064b}"
    count = len(bits) - len(bits.lstrip(bits[0]))
    return M32 if count == 64 else count


# (result bits, function, whether SCC says that the result is nonzero)
UNARY: dict[str, tuple[int, Callable[[int], int], bool]] = {
    "s_not_b64": (64, lambda a: ~a, True),
    "s_bcnt0_i32_b64": (32, lambda a: 64 - a.bit_count(), True),
    "s_bcnt1_i32_b64": (32, int.bit_count, True),
    "s_quadmask_b64": (64, _quads, True),
    "s_wqm_b64": (64, _whole_quads, True),
    "s_cls_i32_i64": (32, _leading_signs, False),
}


def _machine(*pairs: tuple[int, list[int]]) -> Machine:
    """One wave a value; (register, values) sets a pair of scalar registers."""
    machine = Machine(waves=len(VALUES))
    for register, values in pairs:
        words = np.array(values, np.uint64).view(np.uint32).reshape(-1, 2)
        machine.state.scalar[:, register : register + 2] = words
    return machine


def _pairs(machine: Machine, register: int) -> list[int]:
    words = np.ascontiguousarray(machine.state.scalar[:, register : register + 2])
    return [int(value) for value in words.view(np.uint64)[:, 0]]


@pytest.mark.parametrize("name", LOGIC)
def test_logic(name: str) -> None:
    """SCC: the result is not zero."""
    others = VALUES[3:] + VALUES[:3]
    machine = _machine((2, VALUES), (4, others)).run(f"{name} s[0:1], s[2:3], s[4:5]")
    want = [LOGIC[name](a, b) & M64 for a, b in zip(VALUES, others, strict=True)]
    assert _pairs(machine, 0) == want
    assert machine.state.scc[:, 0].tolist() == [value != 0 for value in want]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("before", [False, True])
def test_one_source(name: str, before: bool) -> None:
    bits, rule, tells = UNARY[name]
    machine = _machine((2, VALUES))
    machine.state.scc[:] = before
    machine.run(f"{name} {'s[0:1]' if bits == 64 else 's0'}, s[2:3]")
    want = [rule(value) & (1 << bits) - 1 for value in VALUES]
    got = _pairs(machine, 0) if bits == 64 else machine.state.scalar[:, 0].tolist()
    assert got == want
    assert machine.state.scc[:, 0].tolist() == [value != 0 if tells else before for value in want]


@pytest.mark.parametrize("value", [0, 1])
def test_one_bit(value: int) -> None:
    """s_bitset changes one bit and keeps SCC; s_bitcmp puts one bit, or its opposite, into SCC. Counts wrap at 64."""
    places = [0, 1, 31, 32, 63, 64, 70, 5]
    machine = _machine((0, VALUES), (2, VALUES))
    machine.state.scalar[:, 4] = places
    machine.run(f"s_bitset{value}_b64 s[0:1], s4", f"s_bitcmp{value}_b64 s[2:3], s4")
    bits = [1 << place % 64 for place in places]
    want = [a | bit if value else a & ~bit for a, bit in zip(VALUES, bits, strict=True)]
    assert _pairs(machine, 0) == want
    scc = [((a & bit) != 0) == bool(value) for a, bit in zip(VALUES, bits, strict=True)]
    assert machine.state.scc[:, 0].tolist() == scc


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_shift_and_add(count: int) -> None:
    """SCC is the carry out of 32 bits, shifted bits counted."""
    lows, highs = [value & M32 for value in VALUES], [value >> 32 for value in VALUES]
    machine = _machine((2, VALUES)).run(f"s_lshl{count}_add_u32 s0, s2, s3")
    total = [(a << count) + b for a, b in zip(lows, highs, strict=True)]
    assert machine.state.scalar[:, 0].tolist() == [value & M32 for value in total]
    assert machine.state.scc[:, 0].tolist() == [value > M32 for value in total]
