# SPDX-License-Identifier: Apache-2.0
"""Oracles of `floating.hip`.

A fused multiply-add is computed with exact fractions and rounded once. `minimum` and `maximum` are C's: a NaN loses.
LLVM may make either zero of two, so inputs that are both zero are compared as numbers by giving both sides +0.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.sim.clang_corpus.integer import predicates
from tests.sim.clang_corpus.registry import BLOCK, ITEMS, Array, kernel, planes


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once, to the type of `a`."""
    dtype = a.dtype
    wide = np.longdouble  # no product overflows: what stays here are infinities, NaNs and zeros
    plain = a.astype(wide) * b.astype(wide) + c.astype(wide)
    result = plain.astype(dtype)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    for at in np.flatnonzero(finite):
        exact = Fraction(float(a[at])) * Fraction(float(b[at])) + Fraction(float(c[at]))
        result[at] = rounded(exact, dtype) if exact else result[at]
    return result


def rounded(exact: Fraction, dtype: np.dtype[np.generic]) -> float:
    """The nearest value of a type, ties to even, denormals kept."""
    bits, low = {2: (11, -24), 4: (24, -149), 8: (53, -1074)}[dtype.itemsize]
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = max(exponent - bits + 1, low)
    whole = round(size / Fraction(2) ** unit)
    top = Fraction(2) ** {2: 16, 4: 128, 8: 1024}[dtype.itemsize]
    value = whole * Fraction(2) ** unit
    size_as_float = float("inf") if value >= top else float(value)
    return -size_as_float if exact < 0 else size_as_float


def minimum(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x), y, np.where(np.isnan(y) | (x < y) | ((x == y) & np.signbit(x)), x, y))


def maximum(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x), y, np.where(np.isnan(y) | (x > y) | ((x == y) & ~np.signbit(x)), x, y))


def no_signals(x: Array) -> Array:
    """Signalling NaNs quieted."""
    unsigned = x.view(f"u{x.itemsize}").copy()
    quiet = {2: 0x0200, 4: 0x00400000, 8: 0x0008000000000000}[x.itemsize]
    unsigned[np.isnan(x)] |= unsigned.dtype.type(quiet)
    return unsigned.view(x.dtype)


@kernel("floating", "f32", "f32", "f32")
def f32_arithmetic(a: Array, b: Array, c: Array) -> Array:
    full, third = np.full_like(a, 3.25), np.full_like(a, 0.3)
    return planes(
        "f4",
        a + b,
        a - b,
        a * b,
        fused(a, b, c),
        a * b + c,
        -a,
        np.abs(a),
        fused(-a, b, np.abs(c)),
        fused(a, full, c),
        fused(a, b, third),
        a * np.float32(0.5),
        np.copysign(a, b),
    )


@kernel("floating", "f32", "i32")
def f32_rounding(a: Array, b: Array) -> Array:
    away = np.where(np.abs(a) < 2**23, np.copysign(np.floor(np.abs(a).astype(np.float64) + 0.5), a), a)
    mantissa, exponent = np.frexp(a)
    special = ~np.isfinite(a)
    steps = np.fmod(b, 400)
    return planes(
        "f4",
        np.floor(a),
        np.ceil(a),
        np.trunc(a),
        np.rint(a),
        away,
        (a.astype(np.longdouble) * np.longdouble(2) ** steps).astype(np.float32),
        np.where(special, a, mantissa),
        np.where(special, 0, exponent),
    )


@kernel("floating", "f32", "f32", "f32")
def f32_minmax(a: Array, b: Array, c: Array) -> Array:
    def between(x: Array, low: float, high: float) -> Array:
        return minimum(maximum(x, np.full_like(x, low)), np.full_like(x, high))

    return planes(
        "f4",
        minimum(a, b),
        maximum(a, b),
        np.where(a < b, a, b),
        np.where(a > b, a, b),
        maximum(maximum(a, b), c),
        between(a, 0, 1),
        between(a, -2.5, 7),
        between(a + b, 0, 1),
    )


def _bits(*tests: Array) -> Array:
    result: Array = np.sum([np.asarray(test).astype(np.uint32) << k for k, test in enumerate(tests)], axis=0)
    return result


def _float_predicates(x: Array, y: Array) -> tuple[Array, Array]:
    unordered = np.isnan(x) | np.isnan(y)
    negated = _bits(~(x < y), ~(x <= y), ~(x > y), ~(x >= y), unordered, ~unordered, (x < y) | (x > y))
    return predicates(x, y), negated


def _classes(x: Array) -> tuple[Array, ...]:
    """Signalling NaN, quiet NaN, -inf, -denormal, -0, +0, +denormal, +inf."""
    bits = x.view(np.uint32)
    nan, quiet, tiny = np.isnan(x), (bits & 0x400000) != 0, np.finfo(np.float32).smallest_normal
    denormal, minus = (np.abs(x) < tiny) & (x != 0), np.signbit(x)
    return (
        nan & ~quiet,
        nan & quiet,
        x == -np.inf,
        denormal & minus,
        (x == 0) & minus,
        (x == 0) & ~minus,
        denormal & ~minus,
        x == np.inf,
    )


@kernel("floating", "f32", "f32")
def f32_compare(a: Array, b: Array) -> Array:
    plain, negated = _float_predicates(a, b)
    normal = np.isfinite(a) & (np.abs(a) >= np.finfo(np.float32).smallest_normal)
    kinds = _bits(np.isnan(a), np.isinf(a), np.isfinite(a), normal)
    return planes("u4", plain, negated, kinds, _bits(*_classes(a)), a < b, ~(a > b), a == b, a >= b, ~(a == b))


@kernel("floating", "f32", "f32")
def f32_division(a: Array, b: Array) -> Array:
    return planes("f4", a / b, np.float32(1) / a, np.sqrt(a), a / np.float32(3))


@kernel("floating", "f32 mid", tolerance=2e-6)
def f32_approximate(a: Array) -> Array:
    x = a.astype(np.float64)
    return planes(
        "f4",
        1 / x,
        1 / np.sqrt(x),
        np.sqrt(x),
        np.exp2(x),
        np.log2(x),
        np.sin(2 * np.pi * x),
        np.cos(2 * np.pi * x),
        np.minimum(a - np.floor(a), np.nextafter(np.float32(1), np.float32(0))),
    )


@kernel("floating", "f64", "f64", "f64")
def f64_arithmetic(a: Array, b: Array, c: Array) -> Array:
    return planes(
        "f8",
        a + b,
        a - b,
        a * b,
        fused(a, b, c),
        a * 1.5 + 2.0,
        minimum(a, b),
        maximum(-a, b),
        np.floor(a),
        np.ceil(a),
        np.trunc(a),
        np.rint(a),
        np.ldexp(a, 7),
        np.abs(a) - 0.1,
    )


@kernel("floating", "f64", "f64")
def f64_division(a: Array, b: Array) -> Array:
    return planes("f8", a / b, np.sqrt(a))


@kernel("floating", "f64", "f64")
def f64_compare(a: Array, b: Array) -> Array:
    plain, negated = _float_predicates(a, b)
    normal = np.isfinite(a) & (np.abs(a) >= np.finfo(np.float64).smallest_normal)
    return planes("u4", plain, negated & 31, _bits(np.isnan(a), np.isinf(a), normal), a <= b)


@kernel("floating", "f16", "f16", "f16")
def f16_arithmetic(a: Array, b: Array, c: Array) -> Array:
    x, y = no_signals(a), no_signals(b)
    return planes(
        "f2",
        a + b,
        a - b,
        a * b,
        fused(a, b, c),
        minimum(x, y),
        maximum(x, y),
        (a.astype(np.float64) / b.astype(np.float64)).astype(np.float16),
        np.sqrt(a.astype(np.float64)).astype(np.float16),
        np.floor(a),
        np.rint(a),
        np.where(a < b, c, a),
        np.abs(a) * np.float16(2),
    )


@kernel("floating", "f16", "f16", "f32")
def f16_mixed(a: Array, b: Array, c: Array) -> Array:
    x, y = a.astype(np.float32), b.astype(np.float32)
    return planes("f4", fused(x, y, c), fused(-x, c, y), fused(x, y, c).astype(np.float16))


@kernel("floating", "f32 mid", "f32 mid")
def uniform_floats(a: Array, b: Array) -> Array:
    x, y = (np.repeat(v[: ITEMS // BLOCK], BLOCK) for v in (a, b))
    return planes(
        "f4",
        x + y,
        x * y,
        x - np.float32(1.5),
        fused(x, y, np.full_like(x, 2.25)),
        np.where(x < y, x, y),
        np.ceil(x),
        np.trunc(np.clip(x, -1000, 1000)) + np.float32(0),
        np.rint(y),
        x.astype(np.float16),
    )
