# SPDX-License-Identifier: Apache-2.0
"""The instructions whose hardware result AMD only bounds: reciprocal, square root, logarithm and their kin.

They are computed here with more digits and rounded once, so a result is the correctly rounded one but for
rare cases within a hair of a tie; reciprocals and square roots are IEEE's own. Hardware may differ in the
last place, and flushes denormals in some of them; nothing that uses one of these by itself is comparable
bit for bit with a GPU. `APPROXIMATE` lists them so that a report can say so. Quotients and square roots
that LLVM builds from them with fused multiply-adds do not depend on the last place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .floats import make_quiet
from .fma import fma
from .op import Array

Unary = Callable[[Array], Array]


def _rounded_once(function: Unary) -> Unary:
    """`function` of f64, for f16 and f32 arguments, rounded to the argument's own type."""

    def approximate(a: Array) -> Array:
        return make_quiet(function(a.astype(np.float64)).astype(a.dtype))

    return approximate


def rcp(a: Array) -> Array:
    """IEEE division in the type itself: a wider one would round twice."""
    result: Array = a.dtype.type(1) / a
    return result


def _reciprocal_root(a: Array) -> Array:
    result: Array = 1 / np.sqrt(a)
    return result


def _reciprocal_root_f64(a: Array) -> Array:
    """The quotient corrected by its own error, which fused multiply-adds give nearly exactly."""
    guess = _reciprocal_root(a)
    product = a * guess
    rest = fma(a, guess, -product)
    error = fma(-product, guess, np.ones_like(a)) - rest * guess
    corrected = fma(guess * 0.5, error, guess)
    return np.where(np.isfinite(corrected), corrected, guess)


def _turn(a: Array, quarter: int) -> Array:
    """sin(2 pi a), or cos with `quarter` 1; exact at multiples of a quarter because the reduction is
    exact."""
    turns = a - np.rint(a)
    quarters = np.rint(turns * 4)
    angle = (turns - quarters / 4) * (2 * np.pi)
    sector = (np.where(np.isfinite(quarters), quarters, 0).astype(np.int64) + quarter) % 4
    sine, cosine = np.sin(angle), np.cos(angle)
    values = np.select([sector == 0, sector == 1, sector == 2], [sine, cosine, -sine], -cosine)
    return np.where(np.isfinite(a), values + 0.0, np.nan)  # + 0.0: a zero of either sign becomes +0


def _sine(a: Array) -> Array:
    return _turn(a, 0)


def _cosine(a: Array) -> Array:
    return _turn(a, 1)


_rsq_narrow = _rounded_once(_reciprocal_root)


def rsq(a: Array) -> Array:
    return _reciprocal_root_f64(a) if a.dtype == np.float64 else _rsq_narrow(a)


sqrt = np.sqrt  # correctly rounded in every type
exp2 = _rounded_once(np.exp2)
log2 = _rounded_once(np.log2)
sin_turns = _rounded_once(_sine)
cos_turns = _rounded_once(_cosine)

APPROXIMATE: frozenset[str] = frozenset(
    [f"v_{name}_{kind}" for name in ("rcp", "rsq", "sqrt") for kind in ("f16", "f32", "f64")]
    + [f"v_{name}_{kind}" for name in ("exp", "log", "sin", "cos") for kind in ("f16", "f32")]
    + [f"v_s_{name}_{kind}" for name in ("rcp", "rsq", "sqrt", "exp", "log") for kind in ("f16", "f32")]
    + ["v_rcp_iflag_f32"]
)
