# SPDX-License-Identifier: Apache-2.0
"""The three helpers of LLVM's division sequence: v_div_scale, v_div_fmas, v_div_fixup.

LLVM divides f32 and f64 by scaling, a reciprocal, fused multiply-adds and a fixup. AMD's published text of the
three does not compose outside the middle of the range (scaling by 2**64 against an unscaling by 2**32, for
instance), so:

- both operands between 2**-45 and 2**45 (f64: 2**-300 and 2**300): nothing is scaled, and the fixup passes the
  sequence's own quotient through. Its steps decide the result, as on hardware.
- everywhere else the fixup returns the IEEE quotient of the original operands, which is what the hardware
  sequence is for. There the steps before it decide nothing.

f16 is divided through f32; its fixup follows the published text throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .floats import FORMATS, bits_of, make_quiet
from .fma import fma
from .op import Array, Mask


class _Limits(NamedTuple):
    """The numbers in the published text of v_div_scale, and the middle of the range that it leaves alone."""

    middle: int  # both magnitudes in [2**-middle, 2**middle]
    scale: int  # multiply by 2**scale
    far_apart: int  # exponent difference at which the quotient nears the largest number
    small_exponent: int  # biased exponent up to which a numerator counts as tiny


_LIMITS = {4: _Limits(45, 64, 96, 23), 8: _Limits(300, 128, 768, 53)}


def _is_middle(magnitude: Array) -> Array:
    """Where no step of the sequence scales, overflows or loses bits."""
    limit = 2.0 ** _LIMITS[magnitude.dtype.itemsize].middle
    result: Array = (magnitude >= 1 / limit) & (magnitude <= limit)
    return result


def scale(a: Array, denominator: Array, numerator: Array) -> tuple[Array, Mask]:
    """`a`, one of the other two, multiplied by a power of two where a later step would overflow or lose
    bits, and whether v_div_fmas has to undo that."""
    top, bottom = np.abs(numerator), np.abs(denominator)
    middle = _is_middle(top) & _is_middle(bottom)
    if middle.all():
        return make_quiet(a), ~middle
    return _scale_far(a, denominator, numerator, top, bottom)


def _scale_far(a: Array, denominator: Array, numerator: Array, top: Array, bottom: Array) -> tuple[Array, Mask]:
    """In the order of the published text, last case first; magnitudes in `top` and `bottom`."""
    limits, smallest = _LIMITS[a.dtype.itemsize], np.finfo(a.dtype).smallest_normal
    up, down = a * 2.0**limits.scale, a * 2.0**-limits.scale
    denominator_up = np.where(a == denominator, up, a)
    far_apart = _exponent(numerator) - _exponent(denominator) >= limits.far_apart
    denormal = bottom < smallest
    small_inverse, small_quotient = np.abs(1 / bottom) < smallest, top / bottom < smallest
    scaled = np.where(_exponent(numerator) <= limits.small_exponent, up, a)
    scaled = np.where(small_quotient, np.where(a == numerator, up, a), scaled)
    scaled = np.where(small_inverse, np.where(small_quotient, denominator_up, down), scaled)
    scaled = np.where(denormal, up, scaled)
    scaled = np.where(far_apart, denominator_up, scaled)
    zero = (top == 0) | (bottom == 0)
    flag: Mask = ~zero & (far_apart | (~denormal & small_quotient))
    return make_quiet(np.where(zero, a.dtype.type(np.nan), scaled)), flag


def _exponent(a: Array) -> Array:
    """The biased exponent field."""
    form = FORMATS[a.dtype]
    signed = np.dtype(f"i{a.dtype.itemsize}")
    field: Array = (bits_of(a).view(signed) >> form.mantissa) & (form.infinity >> form.mantissa)
    return field


def fmas(a: Array, b: Array, c: Array, *, vcc: Mask) -> Array:
    """a * b + c; under the flag, times the power of two that undoes the scaling: up from a quotient that
    was made smaller, down from one that was made larger."""
    total: Array = fma(a, b, c)
    if not vcc.any():
        return total
    power = _LIMITS[total.dtype.itemsize].scale
    undone = total * np.where(np.abs(c) >= 1, total.dtype.type(2.0**power), total.dtype.type(2.0**-power))
    return np.where(vcc, undone, total)


def fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The final quotient of f32 and f64; its sign is that of the operands."""
    exact = numerator / denominator
    middle = _is_middle(np.abs(numerator)) & _is_middle(np.abs(denominator))
    return make_quiet(np.where(middle, np.copysign(quotient, exact), exact))


def fixup_f16(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The quotient with its sign, or what the operands alone decide: NaN, infinities, zeros."""
    exact = numerator / denominator
    plain = np.isfinite(numerator) & np.isfinite(denominator) & (numerator != 0) & (denominator != 0)
    return make_quiet(np.where(plain, np.copysign(np.abs(quotient), exact), exact))
