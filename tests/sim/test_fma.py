# SPDX-License-Identifier: Apache-2.0
"""The fused multiply-add against exact fractions, compiled and plain."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.sim import fma as module
from redline.sim.fma import exact_fma, fma
from tests.sim import softfloat as sf
from tests.sim.alu_cases import array, bits, edges, same

pytestmark = pytest.mark.nopython

KINDS = ("f32", "f64")
PRECISION = {"f32": 24, "f64": 53}


def halfway_triples(kind: str, count: int) -> list[tuple[int, int, int]]:
    """a * b + c within a hair of the middle between two results: where rounding twice goes wrong.

    The product has one bit more than a result keeps; c pushes it off the tie by far less than that bit.
    """
    f, chooser = sf.FORMATS[kind], random.Random(7)
    keep = f.mantissa + 1
    triples: list[tuple[int, int, int]] = []
    while len(triples) < count:
        a = chooser.getrandbits(keep // 2) | 1 << (keep // 2)
        b = chooser.getrandbits(keep // 2) | 1 << (keep // 2) | 1
        a, b = a | 1, b << (keep + 1 - (a * b).bit_length()) if (a * b).bit_length() <= keep else b
        c = Fraction(chooser.choice([1, -1, 0]), 1 << chooser.randrange(2, 2 * keep))
        triples.append((f.round(Fraction(a)), f.round(Fraction(b)), f.round(c)))
    return triples


def check(kind: str, triples: list[tuple[int, int, int]], function: Any) -> list[str]:
    f = sf.FORMATS[kind]
    sources = [array(kind, column) for column in zip(*triples, strict=True)]
    with np.errstate(all="ignore"):
        got = bits(function(*sources))
    wanted = [sf.fma(f, *triple) for triple in triples]
    rows = zip(triples, got, wanted, strict=True)
    return [f"{[hex(v) for v in t]} gave {g:#x}, wanted {w:#x}" for t, g, w in rows if not same(kind, g, w)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [fma, module._plain])
def test_every_triple_of_edges(kind: str, function: Any) -> None:
    """Zeros of both signs, denormals, the largest numbers, infinities and NaN, in every place."""
    values = edges(kind)
    chooser = random.Random(3)
    triples = [(a, b, chooser.choice(values)) for a in values for b in values]
    assert check(kind, triples, function)[:5] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [fma, module._plain])
def test_sums_near_a_tie_round_once(kind: str, function: Any) -> None:
    """The product ends on a tie and the addend decides; a product rounded by itself would lose it."""
    triples = halfway_triples(kind, 400)
    assert check(kind, triples, function)[:5] == []
    with np.errstate(all="ignore"):
        rounded_twice = check(kind, triples, lambda a, b, c: a * b + c)
    assert rounded_twice, "these triples would not notice a second rounding"


@given(st.lists(st.tuples(*[st.floats(width=32)] * 3), min_size=1, max_size=30))
def test_any_f32(triples: list[tuple[float, float, float]]) -> None:
    """Drawn triples, exact and compiled alike."""
    rows = [tuple(int(np.float32(x).view(np.uint32)) for x in triple) for triple in triples]
    assert check("f32", [(a, b, c) for a, b, c in rows], fma) == []


@given(st.lists(st.tuples(*[st.floats()] * 3), min_size=1, max_size=30))
def test_any_f64(triples: list[tuple[float, float, float]]) -> None:
    """Drawn triples in double precision."""
    rows = [tuple(int(np.float64(x).view(np.uint64)) for x in triple) for triple in triples]
    assert check("f64", [(a, b, c) for a, b, c in rows], fma) == []


@pytest.mark.parametrize("kind", KINDS)
def test_denormal_results_and_overflow_round_once(kind: str) -> None:
    """At the bottom of the range ties are between denormals; at the top half a unit more is infinity."""
    f = sf.FORMATS[kind]
    one, half, largest = f.round(Fraction(1)), f.round(Fraction(1, 2)), f.infinity - 1
    unit_of_largest = f.round(Fraction(2) ** (f.bias - f.mantissa))
    triples = [(3, half, 0), (1, half, 0), (1, half, 1), (f.negative(1), half, 0), (5, half, f.negative(2))]
    triples += [(half, unit_of_largest, largest), (half, unit_of_largest - 1, largest), (one, largest, largest)]
    assert check(kind, triples, fma) == []


def test_plain_form_broadcasts_and_keeps_the_type() -> None:
    """A scalar column counts for every lane; f32 stays f32."""
    a, b, c = np.full((2, 1), 3, np.float32), np.ones((1, 4), np.float32), np.full((2, 4), 2, np.float32)
    for function in (fma, module._plain):
        result = function(a, b, c)
        assert result.dtype == np.float32
        assert result.tolist() == [[5.0] * 4] * 2


def test_exact_form_refuses_nothing_finite() -> None:
    """The extremes of f64: a product far below the smallest number, and one far above the largest."""
    assert exact_fma(5e-324, 5e-324, 0.0, PRECISION["f64"]) == 0.0
    assert exact_fma(-5e-324, 5e-324, 0.0, PRECISION["f64"]).hex() == "-0x0.0p+0"
    assert exact_fma(1.7e308, 1.7e308, -1.7e308, PRECISION["f64"]) == float("inf")


def test_compiled_form_is_used_unless_the_compiler_is_off() -> None:
    """The ufunc that the machine calls with `out=`."""
    settings: Any = numba.config
    assert isinstance(fma, np.ufunc) == (not settings.DISABLE_JIT)
