# SPDX-License-Identifier: Apache-2.0
"""Every entry of the vector ALU table against an independent oracle, and what all entries have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from redline.sim import floats
from redline.sim.compiler import Compiler
from redline.sim.crosslane import CROSS_LANE
from redline.sim.generation import GENERATIONS
from redline.sim.op import OPERAND_TYPES, Op
from redline.sim.salu_float import SALU_FLOAT
from redline.sim.step import Context
from redline.sim.valu import NOT_BIT_EXACT, VALU
from tests.sim import alu_cases
from tests.sim.alu_oracles import CLAMPED, ORACLES

# Their oracles are in test_crosslane.py and test_valu_division.py, which assert that they cover these.
DIVISION = frozenset(f"v_div_{part}_{kind}" for part in ("scale", "fmas", "fixup") for kind in ("f32", "f64"))
ELSEWHERE = DIVISION | frozenset(CROSS_LANE)
# A dword made of two halves that may be NaN, and is compared as such.
HALVES = {f"{unit}_cvt_pk_rtz_f16_f32": ("pk_f16",) for unit in ("v", "s")}


def flipped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the lowest bit of its first result changed in every lane."""

    def mutant(*sources: NDArray[Any], **named: Any) -> Any:
        results = function(*sources, **named)
        first, *rest = results if isinstance(results, tuple) else (results,)
        if first.dtype == np.bool_:
            return (~first, *rest)
        unsigned = np.dtype(f"u{first.dtype.itemsize}")
        return ((first.view(unsigned) ^ unsigned.type(1)).view(first.dtype), *rest)

    return mutant


def test_every_entry_has_one_oracle() -> None:
    """No instruction is in the table without an answer from elsewhere, and no answer is left over."""
    assert set(ORACLES) | ELSEWHERE == set(VALU)
    assert not set(ORACLES) & ELSEWHERE
    assert {name for name, op in VALU.items() if op.saturating is not None} == set(CLAMPED)


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_entry_equals_its_oracle_and_a_wrong_bit_is_noticed(name: str) -> None:
    """Edge values and random bits give the oracle's bits; the same function with one bit wrong does not."""
    op = VALU[name]
    check = alu_cases.Check(op, ORACLES[name], 1, HALVES.get(name))
    assert check.differences(op.fn)[:5] == []
    assert check.differences(flipped(op.fn))


@pytest.mark.parametrize("name", sorted(CLAMPED))
def test_integer_clamp_saturates(name: str) -> None:
    """With the clamp modifier an integer result is the nearest end of its range instead of wrapping."""
    op = VALU[name]
    assert op.saturating is not None
    check = alu_cases.Check(op, CLAMPED[name], 2)
    assert check.differences(op.saturating)[:5] == []
    assert check.differences(flipped(op.saturating))


def _scalar_oracle(name: str) -> str:
    """The vector instruction that does what a scalar float instruction does."""
    stem = name.removeprefix("v_s_").removeprefix("s_")
    return f"v_{stem}"


def _of_high_half(oracle: Callable[[int], int], dword: int) -> int:
    return oracle(dword >> 16)


@pytest.mark.parametrize("name", sorted(SALU_FLOAT))
def test_scalar_float_equals_the_vector_oracle(name: str) -> None:
    """Scalar float instructions give what the vector instruction of the same name gives."""
    op = SALU_FLOAT[name]
    oracle = ORACLES["v_cvt_f32_f16"] if name == "s_cvt_hi_f32_f16" else ORACLES[_scalar_oracle(name)]
    if name == "s_cvt_hi_f32_f16":
        oracle = partial(_of_high_half, oracle)
    check = alu_cases.Check(op, oracle, 3, HALVES.get(name))
    assert check.differences(op.fn)[:5] == []
    assert check.differences(flipped(op.fn))


@pytest.mark.parametrize("name", sorted(set(VALU) - set(CROSS_LANE)))
def test_entry_keeps_its_sources(name: str) -> None:
    """Sources are not modified, nothing warns, and results have the declared type."""
    op = VALU[name]
    kinds = alu_cases.source_kinds(op)
    table = alu_cases.columns(kinds, seed=4, limit=40)
    sources = [alu_cases.array(kind, column) for kind, column in zip(kinds, table, strict=True)]
    before = [source.copy() for source in sources]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = alu_cases.call(op, op.fn, sources)
    assert [result.dtype for result in results] == [OPERAND_TYPES[kind].dtype for kind in op.dst]
    for source, copy in zip(sources, before, strict=True):
        assert alu_cases.bits(source) == alu_cases.bits(copy)


@pytest.mark.parametrize(
    "name", sorted(name for name in set(VALU) - set(CROSS_LANE) if alu_cases.source_kinds(VALU[name]))
)
def test_constants_count_for_every_lane(name: str) -> None:
    """A source of one element, as a literal or an SGPR is, gives what the same value in every lane gives."""
    op = VALU[name]
    kinds = alu_cases.source_kinds(op)
    places = range(len(kinds))
    for constant in [{place} for place in places] + [set(places) - {0}, set(places)]:
        table = alu_cases.columns(kinds, seed=sum(constant), limit=24)
        sources = [alu_cases.array(kind, column) for kind, column in zip(kinds, table, strict=True)]
        for lane in range(6):
            narrow = [s[:, lane : lane + 1] if at in constant else s for at, s in enumerate(sources)]
            wide = [np.repeat(s, 24, axis=1) if s.shape[1] == 1 else s for s in narrow]
            results = zip(op.dst, alu_cases.call(op, op.fn, narrow), alu_cases.call(op, op.fn, wide), strict=True)
            for kind, few, full in results:
                pairs = zip(alu_cases.bits(np.broadcast_to(few, full.shape)), alu_cases.bits(full), strict=True)
                assert all(alu_cases.same(kind, *pair) for pair in pairs), (constant, lane)


@pytest.mark.parametrize("name", sorted(set(VALU) - set(CROSS_LANE)))
def test_two_waves_are_independent(name: str) -> None:
    """A batch of waves gives each wave's own result."""
    op = VALU[name]
    kinds = alu_cases.source_kinds(op)
    table = alu_cases.columns(kinds, seed=5, limit=64)
    sources = [alu_cases.array(kind, column) for kind, column in zip(kinds, table, strict=True)]
    together = alu_cases.call(op, op.fn, [source.reshape(2, 32) for source in sources])
    second = alu_cases.call(op, op.fn, [source.reshape(2, 32)[1:] for source in sources])
    for both, alone in zip(together, second, strict=True):
        assert alu_cases.bits(both[1:]) == alu_cases.bits(alone)


def test_approximate_names_are_in_a_table() -> None:
    """A report can name every approximate instruction that a kernel used."""
    assert set(VALU) | set(SALU_FLOAT) >= NOT_BIT_EXACT
    assert {"v_rcp_f32", "v_rsq_f32", "v_exp_f32", "v_s_rcp_f32", "v_dot2_f32_f16"} <= NOT_BIT_EXACT
    assert "v_fma_f32" not in NOT_BIT_EXACT
    compiler = Compiler(Context(GENERATIONS["gfx1201"], 32))
    for text in ("v_fma_f32 v0, v1, v2, v3", "s_endpgm"):
        assert not compiler.compile(text, 0).approximate
    assert compiler.approximate == frozenset()
    compiler.compile("v_rcp_f32_e32 v0, v1", 0)
    compiler.compile("v_s_exp_f32 s0, s1", 0)
    assert compiler.approximate == {"v_rcp_f32", "v_s_exp_f32"}


def test_an_unknown_operand_type_is_refused() -> None:
    """A misspelt type or need fails when the table is built, not when a kernel runs."""
    with pytest.raises(KeyError, match="f33"):
        Op(("f33",), ("f32",), np.negative)
    with pytest.raises(KeyError, match="exec_mask"):
        Op(("f32",), ("f32",), np.negative, needs=("exec_mask",))


def test_clamp_modifier_on_floats() -> None:
    """Into [0, 1]; NaN and both zeros give +0."""
    values = np.array([[-1.0, -0.0, 0.0, 0.25, 1.0, 1.5, np.inf, -np.inf, np.nan]])
    wanted = np.array([[0.0, 0.0, 0.0, 0.25, 1.0, 1.0, 1.0, 0.0, 0.0]])
    for dtype in (np.float16, np.float32, np.float64):
        with floats.quiet():
            clamped = floats.clamp(values.astype(dtype))
        assert alu_cases.bits(clamped) == alu_cases.bits(wanted.astype(dtype))
    packed = floats.join(values.astype(np.float16), np.full_like(values, 2.0, np.float16))
    low, high = floats.halves(floats.clamp_packed(packed))
    assert alu_cases.bits(low) == alu_cases.bits(wanted.astype(np.float16))
    assert set(alu_cases.bits(high)) == {0x3C00}
