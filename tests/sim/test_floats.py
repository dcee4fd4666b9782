# SPDX-License-Identifier: Apache-2.0
"""NaN, zero and rounding rules of the float functions, written out as tables."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.sim import approximate, floats, minmax
from redline.sim.valu import VALU
from redline.sim.valu_convert import to_integer
from tests.sim import softfloat as sf
from tests.sim.alu_cases import array, bits, edges
from tests.sim.alu_oracles import ORACLES

KINDS = ("f16", "f32", "f64")

# Operand a, operand b, then minimum and maximum under each rule. S and Q are a signalling and a quiet
# NaN; a result Q means any quiet NaN.
MIN_MAX_TABLE = """
a     b     ieee     num      imum
-0    +0    -0 +0    -0 +0    -0 +0
+0    -0    -0 +0    -0 +0    -0 +0
-0    -0    -0 -0    -0 -0    -0 -0
+0    +0    +0 +0    +0 +0    +0 +0
1     -2    -2 1     -2 1     -2 1
-inf  inf   -inf inf -inf inf -inf inf
inf   1     1 inf    1 inf    1 inf
tiny  -0    -0 tiny  -0 tiny  -0 tiny
Q     1     1 1      1 1      Q Q
1     Q     1 1      1 1      Q Q
Q     -inf  -inf -inf -inf -inf Q Q
S     1     Q Q      1 1      Q Q
1     S     Q Q      1 1      Q Q
S     Q     Q Q      Q Q      Q Q
Q     S     Q Q      Q Q      Q Q
Q     Q     Q Q      Q Q      Q Q
S     S     Q Q      Q Q      Q Q
inf   S     Q Q      inf inf  Q Q
-inf  inf   -inf inf -inf inf -inf inf
"""
RULES = {
    "ieee": (minmax.MIN_IEEE, minmax.MAX_IEEE),
    "num": (minmax.MIN_NUMBER, minmax.MAX_NUMBER),
    "imum": (minmax.MIN_PROPAGATE, minmax.MAX_PROPAGATE),
}
NAMES = {"ieee": ("v_min_{}", "v_max_{}"), "num": ("v_min_num_{}", "v_max_num_{}")}
NAMES["imum"] = ("v_minimum_{}", "v_maximum_{}")


def pattern(kind: str, word: str) -> int:
    f = sf.FORMATS[kind]
    special = {"S": f.infinity + 1, "Q": f.nan, "inf": f.infinity, "-inf": f.negative(f.infinity), "tiny": 1}
    special |= {"+0": 0, "-0": f.negative(0)}
    return special[word] if word in special else f.round(Fraction(word))


def agrees(kind: str, value: int, word: str) -> bool:
    f = sf.FORMATS[kind]
    if word == "Q":
        return f.is_nan(value) and not f.is_signalling(value)
    return value == pattern(kind, word)


def table_rows(rule: str) -> list[tuple[str, str, str, str]]:
    header, *lines = MIN_MAX_TABLE.split("\n")[1:-1]
    at = 2 + 2 * header.split()[2:].index(rule)
    return [(words[0], words[1], words[at], words[at + 1]) for words in map(str.split, lines)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lanes", [1, 4, 32])
def test_minimum_and_maximum_follow_the_table(kind: str, rule: str, lanes: int) -> None:
    """Per family's rule, whatever the width of the batch (numpy has other code for wide and narrow
    arrays)."""
    small, large = RULES[rule]
    for a, b, least, most in table_rows(rule):
        left, right = (array(kind, [pattern(kind, word)] * lanes) for word in (a, b))
        with floats.quiet():
            got = bits(small(left, right)), bits(large(left, right))
        assert all(agrees(kind, value, least) for value in got[0]), (a, b, least)
        assert all(agrees(kind, value, most) for value in got[1]), (a, b, most)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
def test_names_have_the_rule_of_their_family(kind: str, rule: str) -> None:
    """gfx10 and gfx11 print v_min_f32; gfx12 prints v_min_num_f32 and v_minimum_f32."""
    functions = tuple(VALU[name.format(kind)].fn for name in NAMES[rule])
    assert functions == RULES[rule]


@pytest.mark.parametrize("kind", KINDS)
def test_canonicalise_by_maximum_with_itself(kind: str) -> None:
    """LLVM quiets a value with v_max x, x: a number keeps its bits, -0 included, and a NaN becomes quiet."""
    values = edges(kind)
    for large in (minmax.MAX_IEEE, minmax.MAX_NUMBER):
        with floats.quiet():
            got = bits(large(array(kind, values), array(kind, values)))
        f = sf.FORMATS[kind]
        assert [g for v, g in zip(values, got, strict=True) if not f.is_nan(v) and g != v] == []
        assert all(f.is_nan(g) and not f.is_signalling(g) for v, g in zip(values, got, strict=True) if f.is_nan(v))


@pytest.mark.parametrize("kind", KINDS)
def test_signalling_and_quiet_nan_are_told_apart(kind: str) -> None:
    """make_quiet sets one bit of a NaN and none of anything else."""
    values = edges(kind)
    f = sf.FORMATS[kind]
    a = array(kind, values)
    assert floats.is_signalling(a).reshape(-1).tolist() == [f.is_signalling(v) for v in values]
    with floats.quiet():
        got = bits(floats.make_quiet(a))
    assert got == [v | f.nan if f.is_nan(v) else v for v in values]


@pytest.mark.parametrize("kind", KINDS)
def test_no_float_instruction_returns_a_signalling_nan(kind: str) -> None:
    """Whatever computes gives quiet NaNs: LLVM leaves out the canonicalisation after it."""
    f = sf.FORMATS[kind]
    nan = array(kind, [f.infinity + 1, f.negative(f.infinity + 1), f.nan] * 12)
    for name, op in VALU.items():
        if op.dst != (kind,) or op.needs or not all(source == kind for source in op.src):
            continue
        sources = [nan] * (len(op.src) + op.reads_dst)
        with floats.quiet():
            result = np.asarray(op.fn(*sources))
        assert not floats.is_signalling(result).any(), name


@given(st.lists(st.floats(width=16), min_size=3, max_size=30), st.randoms(use_true_random=False))
def test_fma_of_f16_rounds_once(values: list[float], chooser: Any) -> None:
    """Through f64, against exact fractions."""
    columns = [[chooser.choice(values) for _ in range(20)] for _ in range(3)]
    sources = [np.array([column], np.float16) for column in columns]
    with floats.quiet():
        got = bits(floats.fma_f16(*sources))
    wanted = [sf.fma(sf.F16, *row) for row in zip(*map(bits, sources), strict=True)]
    for value, want in zip(got, wanted, strict=True):
        assert value == want or (sf.F16.is_nan(value) and sf.F16.is_nan(want))


def test_every_f16_converts_exactly_and_back() -> None:
    """All 65,536 patterns widen to f32 and narrow to the same bits, but that NaN becomes quiet."""
    a = np.arange(1 << 16, dtype=np.uint16).reshape(1, -1).view(np.float16)
    with floats.quiet():
        wide = floats.f16_to_f32(a)
        back = VALU["v_cvt_f16_f32"].fn(wide)
    assert bits(back) == [v | 0x200 if v & 0x7FFF > 0x7C00 else v for v in range(1 << 16)]
    finite = np.isfinite(a)
    assert [float(x) for x in wide[finite][::97]] == [float(x) for x in a[finite][::97]]


def test_conversion_to_f16_at_ties_and_below_the_smallest() -> None:
    """f32 to f16: to even at the middle, by one f32 step otherwise; toward zero never up."""
    middles = [sf.F16.value(v) + sf.F16.value(1) / 2 for v in (0, 1, 2, 0x3FE, 0x3FF)]
    middles += [(sf.F16.value(v) + sf.F16.value(v + 1)) / 2 for v in (0x3C00, 0x3C01, 0x7BFE)] + [Fraction(65520)]
    exact = [sf.F32.round(m) for m in middles]
    values = [v + step for v in exact for step in (-1, 0, 1)]
    a = array("f32", values)
    with floats.quiet():
        nearest = bits(VALU["v_cvt_f16_f32"].fn(a))
        toward_zero = [v & 0xFFFF for v in bits(VALU["v_cvt_pk_rtz_f16_f32"].fn(a, a))]
    assert nearest == [sf.convert(sf.F16, sf.F32, v) for v in values]
    assert toward_zero == [sf.convert(sf.F16, sf.F32, v, toward_zero=True) for v in values]


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.int32, -(2**31), 2**31 - 1), (np.uint32, 0, 2**32 - 1)])
def test_conversion_to_integers_saturates(dtype: Any, low: int, high: int) -> None:
    """Truncation toward zero; beyond the range its end; NaN gives 0."""
    numbers = [0.9, -0.9, 2.5, -2.5, 1e10, -1e10, math.inf, -math.inf, math.nan, float(high), float(low)]
    with floats.quiet():
        got = to_integer(dtype)(np.array([numbers])).reshape(-1).tolist()
    wanted = [0 if math.isnan(x) else min(max(int(np.clip(x, -1e18, 1e18)), low), high) for x in numbers]
    assert got == wanted


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_sine_and_cosine_at_quarter_turns(kind: str) -> None:
    """Exact zeros and ones, and the same far from zero: the reduction loses nothing."""
    dtype = np.float16 if kind == "f16" else np.float32
    turns = np.array([[0.0, 0.25, 0.5, 0.75, 1.0, -0.25, 5.25, -3.5]], dtype)
    assert approximate.sin_turns(turns).tolist() == [[0, 1, 0, -1, 0, -1, 1, 0]]
    assert approximate.cos_turns(turns).tolist() == [[1, 0, -1, 0, 1, 0, 0, -1]]


def test_reciprocal_square_root_of_f64_is_correctly_rounded() -> None:
    """Over the whole range, the largest denormal (a near tie) included."""
    generator = np.random.default_rng(2)
    random = generator.integers(1, sf.F64.infinity, 3_000, np.uint64)
    values = [*(int(v) for v in random), (1 << 52) - 1, 1, 1 << 52, sf.F64.infinity - 1]
    with floats.quiet():
        got = bits(approximate.rsq(array("f64", values)))
    assert got == [ORACLES["v_rsq_f64"](v) for v in values]
