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

import numpy as np

from .floats import ldexp, make_quiet
from .fma import fma
from .op import Array, Mask

_MIDDLE = {4: 45, 8: 300}
_SCALE = {4: 64, 8: 128}


def _in_middle(a: Array) -> Array:
    """Magnitude in [2**-n, 2**n]: no step of the sequence scales, overflows or loses bits."""
    limit = a.dtype.type(2.0 ** _MIDDLE[a.dtype.itemsize])
    magnitude = np.abs(a)
    result: Array = (magnitude >= 1 / limit) & (magnitude <= limit)
    return result


def scale(a: Array, denominator: Array, numerator: Array) -> tuple[Array, Mask]:
    """The operand, multiplied by a power of two where a later step would overflow or lose bits, and the
    flag that v_div_fmas undoes it by. Unchanged, flag clear, when both operands are in the middle of the
    range."""
    power = _SCALE[a.dtype.itemsize]
    top, bottom = np.frexp(numerator)[1], np.frexp(denominator)[1]
    info = np.finfo(a.dtype)
    huge = (top - bottom) >= (96 if a.dtype == np.float32 else 768)
    tiny = (top - bottom) <= info.minexp
    is_denominator = a == denominator
    raise_low = (np.abs(denominator) < info.smallest_normal) | (top < info.minexp + info.nmant + 1)
    up, down = ldexp(a, np.array([power])), ldexp(a, np.array([-power]))
    scaled = np.where(raise_low, up, a)
    scaled = np.where(bottom >= info.maxexp - 1, down, scaled)
    scaled = np.where(tiny & ~is_denominator, up, scaled)
    scaled = np.where(huge, np.where(is_denominator, up, a), scaled)
    invalid = (numerator == 0) | (denominator == 0)
    middle = _in_middle(numerator) & _in_middle(denominator)
    flag: Mask = (huge | tiny) & ~invalid & ~middle
    return np.where(invalid, np.nan, np.where(middle, a, scaled)).astype(a.dtype), flag


def fmas(a: Array, b: Array, c: Array, *, vcc: Mask) -> Array:
    """a * b + c; where v_div_scale set the flag, times the power of two that undoes its scaling."""
    total = fma(a, b, c)
    power = _SCALE[total.dtype.itemsize]
    direction = np.where(np.abs(c) >= 1, power, -power)
    return np.where(vcc, ldexp(total, direction), total)


def fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The final quotient of f32 and f64."""
    exact = numerator / denominator
    middle = _in_middle(numerator) & _in_middle(denominator)
    return make_quiet(np.where(middle, np.copysign(np.abs(quotient), exact), exact))


def fixup_f16(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The quotient with its sign, or what the operands alone decide: NaN, infinities, zeros."""
    exact = numerator / denominator
    plain = np.isfinite(numerator) & np.isfinite(denominator) & (numerator != 0) & (denominator != 0)
    return make_quiet(np.where(plain, np.copysign(np.abs(quotient), exact), exact))
