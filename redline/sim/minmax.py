# SPDX-License-Identifier: Apache-2.0
"""Minimum, maximum and median of floats under the three NaN rules of the families.

All of them put -0 below +0. They differ in NaN:

- `ieee` (v_min_f32 ..., gfx10 and gfx11 with MODE.IEEE set, as in LLVM's compute kernels): a signalling NaN
  wins and becomes quiet; a quiet NaN loses against a number.
- `number` (v_min_num_f32 ..., gfx12): any NaN loses against a number.
- `propagate` (v_minimum_f32 ..., gfx12): any NaN wins.

Sources: AMD's RDNA3 and RDNA4 instruction set manuals. MODE.IEEE = 0 does not occur here: the machine refuses it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .floats import bits_of, is_signalling, make_quiet
from .op import Array

Binary = Callable[[Array, Array], Array]
Ternary = Callable[[Array, Array, Array], Array]


def _of_numbers(largest: bool) -> Binary:
    """The larger or smaller of two numbers, or of two quiet NaNs and numbers the number."""
    extreme = np.fmax if largest else np.fmin
    # Equal numbers have equal bits, but for zeros: "and" keeps the sign if both have it, "or" if one has.
    merge = np.bitwise_and if largest else np.bitwise_or

    def choose(a: Array, b: Array) -> Array:
        merged: Array = merge(bits_of(a), bits_of(b)).view(a.dtype)
        return np.where(a == b, merged, extreme(a, b))

    return choose


def _number(largest: bool) -> Binary:
    """Of a number and any NaN the number."""
    of_numbers = _of_numbers(largest)

    def choose(a: Array, b: Array) -> Array:
        # numpy's fmax is not of one mind about signalling NaNs.
        return of_numbers(make_quiet(a), make_quiet(b))

    return choose


def _ieee(largest: bool) -> Binary:
    of_numbers = _of_numbers(largest)

    def choose(a: Array, b: Array) -> Array:
        if not np.isnan(a + b).any():
            return of_numbers(a, b)
        quiet_a, quiet_b = make_quiet(a), make_quiet(b)
        chosen = np.where(is_signalling(b), quiet_b, of_numbers(quiet_a, quiet_b))
        return np.where(is_signalling(a), quiet_a, chosen)

    return choose


def _propagate(largest: bool) -> Binary:
    number = _number(largest)

    def choose(a: Array, b: Array) -> Array:
        either = a + b  # NaN when either is (and for opposite infinities)
        return np.where(np.isnan(a) | np.isnan(b), either, number(a, b))

    return choose


MIN_IEEE, MAX_IEEE = _ieee(False), _ieee(True)
MIN_NUMBER, MAX_NUMBER = _number(False), _number(True)
MIN_PROPAGATE, MAX_PROPAGATE = _propagate(False), _propagate(True)


def nest(inner: Binary, outer: Binary) -> Ternary:
    """outer(inner(a, b), c): max3, min3, maxmin and minmax."""

    def nested(a: Array, b: Array, c: Array) -> Array:
        return outer(inner(a, b), c)

    return nested


def median(smaller: Binary) -> Ternary:
    """med3: the middle one; with a NaN among them, the minimum of the three.

    The manual picks by equality with the maximum, which matters for zeros of both signs; so does this.
    """
    larger_number = _of_numbers(True)

    def middle(a: Array, b: Array, c: Array) -> Array:
        pair = larger_number(a, b)
        top = larger_number(pair, c)
        chosen = np.where(top == b, larger_number(a, c), pair)
        chosen = np.where(top == a, larger_number(b, c), chosen)
        if not np.isnan(a + b + c).any():
            return chosen
        any_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
        return np.where(any_nan, smaller(smaller(a, b), c), chosen)

    return middle
