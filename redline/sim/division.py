# SPDX-License-Identifier: Apache-2.0
"""The three helpers of LLVM's division sequence: v_div_scale, v_div_fmas, v_div_fixup.

LLVM divides f32 and f64 by scaling, a reciprocal, fused multiply-adds and a fixup. AMD's published text of
the three does not compose outside the middle of the range (scaling by 2**64 against an unscaling by 2**32,
for instance), so:

- both operands between 2**-45 and 2**45 (f32; 2**-300 and 2**300 for f64): nothing is scaled, and the fixup
passes
  the sequence's own quotient through. Its steps decide the result, as on hardware.
- everywhere else the fixup returns the IEEE quotient of the original operands, which is what the hardware
sequence
  is for. There the steps before it decide nothing.

f16 is divided through f32; its fixup follows the published text throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .floats import FORMATS, bits_of, ldexp, make_quiet
from .fma import fma
from .op import Array, Mask


class _Limits(NamedTuple):
    """The numbers in the published text of v_div_scale, and the middle of the range that it leaves alone."""

    middle: int  # both magnitudes in [2**-middle, 2**middle]
    scale: int  # multiply by 2**scale
    far_apart: int  # exponent difference at which the quotient nears the largest number
    small_exponent: int  # biased exponent up to which a numerator counts as tiny


_LIMITS = {4: _Limits(45, 64, 96, 23), 8: _Limits(300, 128, 768, 53)}


def _in_middle(numerator: Array, denominator: Array) -> Array:
    """Where no step of the sequence scales, overflows or loses bits."""
    limit = 2.0 ** _LIMITS[numerator.dtype.itemsize].middle
    top, bottom = np.abs(numerator), np.abs(denominator)
    result: Array = (top >= 1 / limit) & (top <= limit) & (bottom >= 1 / limit) & (bottom <= limit)
    return result


def _is_small(a: Array) -> Array:
    """Denormal, or so small that it became zero."""
    result: Array = np.abs(a) < np.finfo(a.dtype).smallest_normal
    return result


def _exponent(a: Array) -> Array:
    """The biased exponent field."""
    form = FORMATS[a.dtype]
    field: Array = (bits_of(a) & form.bits.type(form.infinity)) >> form.bits.type(form.mantissa)
    return field.astype(np.int64)


def scale(a: Array, denominator: Array, numerator: Array) -> tuple[Array, Mask]:
    """`a`, one of the other two, multiplied by a power of two where a later step would overflow or lose
    bits, and whether v_div_fmas has to undo that. In the order of the published text."""
    limits = _LIMITS[a.dtype.itemsize]
    up, down = ldexp(a, np.array([[limits.scale]])), ldexp(a, np.array([[-limits.scale]]))
    denominator_up = np.where(a == denominator, up, a)
    numerator_up = np.where(a == numerator, up, a)
    zero = (numerator == 0) | (denominator == 0)
    far_apart = _exponent(numerator) - _exponent(denominator) >= limits.far_apart
    denormal = _is_small(denominator)
    small_inverse, small_quotient = _is_small(1 / denominator), _is_small(numerator / denominator)
    tiny = _exponent(numerator) <= limits.small_exponent
    scaled = np.select(
        [zero, far_apart, denormal, small_inverse & small_quotient, small_inverse, small_quotient, tiny],
        [np.full_like(a, np.nan), denominator_up, up, denominator_up, down, numerator_up, up],
        a,
    )
    flag: Mask = ~zero & (far_apart | (~denormal & small_quotient))
    return scaled, flag


def fmas(a: Array, b: Array, c: Array, *, vcc: Mask) -> Array:
    """a * b + c; under the flag, times the power of two that undoes the scaling: up from a quotient that
    was made smaller, down from one that was made larger."""
    total = fma(a, b, c)
    power = _LIMITS[total.dtype.itemsize].scale
    return np.where(vcc, ldexp(total, np.where(np.abs(c) >= 1, power, -power)), total)


def fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The final quotient of f32 and f64; its sign is that of the operands."""
    exact = numerator / denominator
    own = np.copysign(np.abs(quotient), exact)
    return make_quiet(np.where(_in_middle(numerator, denominator), own, exact))


def fixup_f16(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The quotient with its sign, or what the operands alone decide: NaN, infinities, zeros."""
    exact = numerator / denominator
    plain = np.isfinite(numerator) & np.isfinite(denominator) & (numerator != 0) & (denominator != 0)
    return make_quiet(np.where(plain, np.copysign(np.abs(quotient), exact), exact))
