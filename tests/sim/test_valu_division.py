# SPDX-License-Identifier: Apache-2.0
"""Division and square root as LLVM builds them from the table's instructions, against IEEE results.

The sequences are those that LLVM 22 emits for `fdiv` and `llvm.sqrt` on all five targets (f16: the gfx12
form).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from redline.sim import floats
from redline.sim.valu import VALU
from tests.sim import softfloat as sf
from tests.sim.alu_cases import array, bits, edges, same

Array = NDArray[Any]
KINDS = ("f32", "f64")
MIDDLE = {"f32": 45, "f64": 300}
DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def run(name: str, *sources: Array, **named: Any) -> Any:
    with floats.quiet():
        return VALU[name].fn(*sources, **named)


def divide(kind: str, a: Array, b: Array, rcp: Callable[[Array], Array]) -> Array:
    """fdiv: scale, reciprocal and one (f64: two) refinements, quotient, fmas, fixup."""
    one = np.ones((1, 1), a.dtype)
    fma = f"v_fma_{kind}"
    bottom, _ = run(f"v_div_scale_{kind}", b, b, a)
    inverse = rcp(bottom)
    for _ in range(1 if kind == "f32" else 2):
        inverse = run(fma, run(fma, -bottom, inverse, one), inverse, inverse)
    top, flag = run(f"v_div_scale_{kind}", a, b, a)
    quotient = run(f"v_mul_{kind}", top, inverse)
    if kind == "f32":
        quotient = run(fma, run(fma, -bottom, quotient, top), inverse, quotient)
    rest = run(fma, -bottom, quotient, top)
    return np.asarray(run(f"v_div_fixup_{kind}", run(f"v_div_fmas_{kind}", rest, inverse, quotient, vcc=flag), b, a))


def plain_rcp(kind: str) -> Callable[[Array], Array]:
    def correct(a: Array) -> Array:
        return np.asarray(run(f"v_rcp_{kind}", a))

    return correct


def rough_rcp(kind: str) -> Callable[[Array], Array]:
    """A reciprocal one unit off, up or down, as hardware may give."""

    def approximate(a: Array) -> Array:
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        steps = np.resize(np.array([0, 1, -1]), a.shape).astype(f"i{a.dtype.itemsize}").view(unsigned)
        exact = np.asarray(run(f"v_rcp_{kind}", a))
        moved: Array = exact.view(unsigned) + steps
        return moved.view(a.dtype)

    return approximate


def middle_pairs(kind: str, count: int) -> tuple[Array, Array]:
    """Numbers whose division nothing has to scale: random, few-bit and nearly-a-power-of-two significands."""
    generator = np.random.default_rng(11)
    top = MIDDLE[kind]

    def numbers() -> Array:
        significand = generator.integers(1 << 52, 1 << 53, count, dtype=np.int64)
        shape = generator.integers(0, 4, count)
        significand = np.where(shape == 1, significand & ~((1 << 44) - 1), significand)
        significand = np.where(shape == 2, (1 << 53) - 1 - generator.integers(0, 3, count), significand)
        exponent = generator.integers(-top + 1, top - 1, count)
        sign = generator.choice([-1.0, 1.0], count)
        values = np.ldexp(significand.astype(np.float64) * sign, exponent - 52).astype(DTYPES[kind])
        limit = DTYPES[kind](2.0**top)
        bounded: Array = np.where(np.abs(values) > limit, limit, values)
        return bounded.reshape(1, -1)

    return numbers(), numbers()


@pytest.mark.parametrize("kind", KINDS)
def test_division_sequence_is_ieee_in_the_middle_of_the_range(kind: str) -> None:
    """There the fixup passes the sequence's own quotient through, and that is the IEEE one."""
    a, b = middle_pairs(kind, 40_000)
    with floats.quiet():
        wanted = a / b
    assert np.array_equal(divide(kind, a, b, plain_rcp(kind)), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_quotients_do_not_depend_on_the_last_place_of_the_reciprocal(kind: str) -> None:
    """Either neighbour of the reciprocal gives the IEEE quotient too, with Markstein's exception: in f64,
    which refines the quotient once less, a power of two over a significand of all ones."""
    a, b = middle_pairs(kind, 40_000)
    if kind == "f64":
        ones = np.uint64((1 << 52) - 1)
        b = np.where(b.view(np.uint64) & ones == ones, 3.0, b)
    with floats.quiet():
        wanted = a / b
    assert np.array_equal(divide(kind, a, b, rough_rcp(kind)), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_division_sequence_is_ieee_everywhere(kind: str) -> None:
    """Zeros, denormals, infinities, NaN and numbers far apart, each with each."""
    values = edges(kind)
    a = array(kind, [x for x in values for _ in values])
    b = array(kind, [y for _ in values for y in values])
    got = bits(divide(kind, a, b, plain_rcp(kind)))
    wanted = [sf.divide(sf.FORMATS[kind], x, y) for x in values for y in values]
    assert [pair for pair in zip(got, wanted, strict=True) if not same(kind, *pair)] == []


@given(st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), min_size=1, max_size=40))
def test_division_of_any_f32(pairs: list[tuple[float, float]]) -> None:
    """Any two floats, drawn with a taste for edges."""
    a, b = (np.array([column], np.float32) for column in zip(*pairs, strict=True))
    with floats.quiet():
        wanted = a / b
    assert np.array_equal(divide("f32", a, b, plain_rcp("f32")), wanted, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_fixup_uses_the_computed_quotient_only_in_the_middle(kind: str) -> None:
    """A wrong quotient shows where nothing is scaled, with the sign of the operands; elsewhere the
    operands decide."""
    dtype, limit = DTYPES[kind], 2.0 ** MIDDLE[kind]
    denominator = np.array([[2.0, -2.0, limit, 2 * limit, 1 / limit, 0.5 / limit, 0.0, np.inf, 2.0]], dtype)
    numerator = np.array([[6.0, 6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, np.nan]], dtype)
    got = run(f"v_div_fixup_{kind}", np.full_like(denominator, 5.0), denominator, numerator)
    wanted = [5.0, -5.0, 5.0, 0.5 / limit, 5.0, 2 * limit, np.inf, 0.0, np.nan]
    assert np.array_equal(got, np.array([wanted], dtype), equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_scale_leaves_the_middle_alone(kind: str) -> None:
    """No factor and no flag, for numerator and denominator alike."""
    a, b = middle_pairs(kind, 1_000)
    for operand in (a, b):
        scaled, flag = run(f"v_div_scale_{kind}", operand, b, a)
        assert np.array_equal(scaled, operand)
        assert not flag.any()


def published_scale(kind: str, s0: float, denominator: float, numerator: float) -> tuple[int, bool]:
    """The manual's text of v_div_scale for one lane, on exact fractions; the result as bits."""
    f = sf.FORMATS[kind]
    power, apart, tiny = (64, 96, 23) if kind == "f32" else (128, 768, 53)
    d, n = Fraction(denominator), Fraction(numerator)
    if d == 0 or n == 0:
        return f.nan, False
    smallest = Fraction(2) ** (1 - f.bias)
    inverse_small, quotient_small = abs(1 / d) < smallest, abs(n / d) < smallest
    field = [max(math.frexp(x)[1] - 1 + f.bias, 0) for x in (numerator, denominator)]
    flag, exponent = False, 0
    if field[0] - field[1] >= apart:
        flag, exponent = True, power if s0 == denominator else 0
    elif abs(d) < smallest:
        exponent = power
    elif inverse_small and quotient_small:
        flag, exponent = True, power if s0 == denominator else 0
    elif inverse_small:
        exponent = -power
    elif quotient_small:
        flag, exponent = True, power if s0 == numerator else 0
    elif field[0] <= tiny:
        exponent = power
    wide = Fraction(s0) * Fraction(2) ** exponent
    return f.round(wide), flag


@pytest.mark.parametrize("kind", KINDS)
def test_scale_follows_the_published_text(kind: str) -> None:
    """Numerator and denominator, over the whole range, get the manual's factor and flag."""
    f, half = sf.FORMATS[kind], {"f32": 48, "f64": 384}[kind]
    tiny = {"f32": 23, "f64": 53}[kind] - f.bias
    exponents = [f.lowest, f.lowest + 9, 1 - f.bias, tiny - 1, tiny, tiny + 1, -half, -3, 0, half - 1, half, half + 1]
    exponents += [(1 - f.bias) // 2, (f.bias - 1) // 2, f.bias - 1, f.bias]
    values = [0.0, -1.0]
    for e in exponents:
        values += [math.ldexp(1.0, e), math.ldexp(1.25, e)] if e > f.lowest + 2 else [math.ldexp(1.0, e)]
    pairs = [(x, y) for x in values for y in values]
    a, b = (np.array([column], DTYPES[kind]) for column in zip(*pairs, strict=True))
    for operand, which in ((a, 0), (b, 1)):
        wanted = [published_scale(kind, pair[which], pair[1], pair[0]) for pair in pairs]
        scaled, flag = run(f"v_div_scale_{kind}", operand, b, a)
        assert [g for g, w in zip(bits(scaled), wanted, strict=True) if not same(kind, g, w[0])] == []
        assert flag.reshape(-1).tolist() == [w[1] for w in wanted]
        for lane in range(len(pairs)):  # alone, so that no other lane forbids the short path
            alone = [source[:, lane : lane + 1] for source in (operand, b, a)]
            scaled, flag = run(f"v_div_scale_{kind}", *alone)
            assert same(kind, bits(scaled)[0], wanted[lane][0])
            assert bool(flag[0, 0]) == wanted[lane][1]


@pytest.mark.parametrize("kind", KINDS)
def test_fmas_undoes_the_scaling_under_the_flag(kind: str) -> None:
    """Without the flag a fused multiply-add; with it times 2**64 (f64: 2**128), down for a small quotient."""
    power = {"f32": 64, "f64": 128}[kind]
    a, b = np.array([[0.5, 0.5, 0.5, 0.5]], DTYPES[kind]), np.array([[2.0**-10]], DTYPES[kind])
    c = np.array([[1.0, 0.75, 3.0, -0.75]], DTYPES[kind])
    got = run(f"v_div_fmas_{kind}", a, b, c, vcc=np.array([[True, True, False, True]]))
    total = c + 2.0**-11
    assert got.tolist() == (total * np.array([[2.0**power, 2.0**-power, 1.0, 2.0**-power]])).tolist()


def divide_f16(a: Array, b: Array) -> Array:
    """fdiv half: through f32, one refinement and a last correction cut to its exponent."""
    wide_a, wide_b = run("v_cvt_f32_f16", a), run("v_cvt_f32_f16", b)
    inverse = run("v_rcp_f32", wide_b)
    quotient = run("v_mul_f32", wide_a, inverse)
    quotient = run("v_fmac_f32", run("v_fma_mix_f32", -wide_b, quotient, wide_a), inverse, quotient)
    rest = run("v_mul_f32", run("v_fma_mix_f32", -wide_b, quotient, wide_a), inverse)
    cut = run("v_and_b32", np.array([[0xFF800000]], np.uint32), rest.view(np.uint32)).view(np.float32)
    return np.asarray(run("v_div_fixup_f16", run("v_cvt_f16_f32", run("v_add_f32", cut, quotient)), b, a))


def test_division_of_f16_is_ieee() -> None:
    """Every denominator with numerators that reach every exponent and many significands."""
    denominators = np.arange(0, 1 << 16, 3, dtype=np.uint16)
    for numerator in (0x3C01, 0x0001, 0x7BFF, 0x8400, 0x0000, 0x7C00, 0x5A5A):
        a = np.full((1, denominators.size), numerator, np.uint16).view(np.float16)
        b = denominators.reshape(1, -1).view(np.float16)
        with floats.quiet():
            wanted = a / b
        assert np.array_equal(divide_f16(a, b), wanted, equal_nan=True)


def sqrt_f32(a: Array) -> Array:
    """llvm.sqrt.f32: scaled up when small, an estimate, its two neighbours, whichever residual fits."""
    small = run("v_cmp_gt_f32", np.array([[0x0F800000]], np.uint32).view(np.float32), a)
    scaled = run("v_cndmask_b32", a, run("v_mul_f32", np.array([[2.0**32]], np.float32), a), small)
    root = run("v_sqrt_f32", scaled)
    below = run("v_add_nc_u32", np.array([[0xFFFFFFFF]], np.uint32), root.view(np.uint32)).view(np.float32)
    above = run("v_add_nc_u32", np.array([[1]], np.uint32), root.view(np.uint32)).view(np.float32)
    zero = np.zeros((1, 1), np.float32)
    lower = run("v_cmp_ge_f32", zero, run("v_fma_f32", -below, root, scaled))
    higher = run("v_cmp_lt_f32", zero, run("v_fma_f32", -above, root, scaled))
    root = run("v_cndmask_b32", run("v_cndmask_b32", root, below, lower), above, higher)
    root = run("v_cndmask_b32", root, run("v_mul_f32", np.array([[2.0**-16]], np.float32), root), small)
    special = run("v_cmp_class_f32", scaled, np.array([[0x260]], np.uint32))
    return np.asarray(run("v_cndmask_b32", root, scaled, special))


def sqrt_f64(a: Array) -> Array:
    """llvm.sqrt.f64: two refinements of a reciprocal square root."""
    small = run("v_cmp_gt_f64", np.array([[0x1000000000000000]], np.uint64).view(np.float64), a)
    scaled = run("v_ldexp_f64", a, np.where(small, 256, 0).astype(np.int32))
    inverse = run("v_rsq_f64", scaled)
    root, half = run("v_mul_f64", scaled, inverse), run("v_mul_f64", np.array([[0.5]]), inverse)
    error = run("v_fma_f64", -half, root, np.array([[0.5]]))
    root, half = run("v_fma_f64", root, error, root), run("v_fma_f64", half, error, half)
    for _ in range(2):
        root = run("v_fma_f64", run("v_fma_f64", -root, root, scaled), half, root)
    root = run("v_ldexp_f64", root, np.where(small, -128, 0).astype(np.int32))
    special = run("v_cmp_class_f64", scaled, np.array([[0x260]], np.uint32))
    return np.asarray(run("v_cndmask_b32", root, scaled, special))


@pytest.mark.parametrize(("kind", "root"), [("f32", sqrt_f32), ("f64", sqrt_f64)])
def test_square_root_sequence_is_ieee(kind: str, root: Callable[[Array], Array]) -> None:
    """Any exponent, perfect squares, denormals, zeros, infinities, negatives and NaN."""
    generator = np.random.default_rng(5)
    unsigned = np.dtype(f"u{np.dtype(DTYPES[kind]).itemsize}")
    random = generator.integers(0, np.iinfo(unsigned).max, 20_000, unsigned).view(DTYPES[kind])
    squares = generator.integers(1, 4096, 1_000).astype(DTYPES[kind]) ** 2
    a = np.concatenate([array(kind, edges(kind))[0], np.abs(random), squares, random[:500]]).reshape(1, -1)
    with floats.quiet():
        assert np.array_equal(root(a), np.sqrt(a), equal_nan=True)
