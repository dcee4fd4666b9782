# SPDX-License-Identifier: Apache-2.0
"""Floating point as the vector ALU does it: arithmetic, NaN rules, rounding to integers, scaling, clamp.

Every function is pure and takes and returns numpy arrays of one float type (f16, f32 or f64). Callers hold
`quiet` around many calls, because entering it costs more than most calls. One mode is covered: round to
nearest even with all denormals kept (FLOAT_MODE 0xF0); the machine refuses kernels that ask for another. A
NaN result is quiet, as on the hardware: code that LLVM emits relies on it.

Minimum and maximum are in `minmax.py`, division in `division.py`, conversions in `valu_convert.py`, the fused
multiply-add of f32 and f64 in `fma.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .fma import fma
from .op import Array


def quiet() -> np.errstate:
    """A context in which numpy reports nothing: overflow and NaN are results here, not accidents."""
    return np.errstate(all="ignore")


class Format(NamedTuple):
    """The bit layout of a binary float type."""

    bits: np.dtype[Any]  # unsigned integer of the same size
    mantissa: int  # explicit bits of the significand

    @property
    def quiet_bit(self) -> int:
        return 1 << (self.mantissa - 1)

    @property
    def sign(self) -> int:
        return 1 << (self.bits.itemsize * 8 - 1)

    @property
    def infinity(self) -> int:
        return self.sign - (1 << self.mantissa)


FORMATS: dict[Any, Format] = {
    np.dtype(np.float16): Format(np.dtype(np.uint16), 10),
    np.dtype(np.float32): Format(np.dtype(np.uint32), 23),
    np.dtype(np.float64): Format(np.dtype(np.uint64), 52),
}


def bits_of(a: Array) -> Array:
    """The same memory as unsigned integers."""
    return a.view(FORMATS[a.dtype].bits)


def is_signalling(a: Array) -> Array:
    """A NaN whose quiet bit is clear."""
    form = FORMATS[a.dtype]
    kind = form.bits.type
    result: Array = np.isnan(a) & ((bits_of(a) & kind(form.quiet_bit)) == kind(0))
    return result


def make_quiet(a: Array) -> Array:
    """NaNs get their quiet bit; everything else keeps its bits, -0 included."""
    result: Array = a - 0.0
    return result


def sub_rev(a: Array, b: Array) -> Array:
    result: Array = b - a
    return result


def fma_f16(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once. The f64 product has 22 bits, so the sum is exact whenever it could tie in
    f16."""
    wide: Array = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return make_quiet(wide.astype(np.float16))


def mul_dx9_zero(a: Array, b: Array) -> Array:
    """Zero times anything, infinity and NaN included, is +0."""
    return np.where((a == 0) | (b == 0), a.dtype.type(0), a * b)


def fma_dx9_zero(a: Array, b: Array, c: Array) -> Array:
    return np.where((a == 0) | (b == 0), make_quiet(c), fma(a, b, c))


def mul_add_unfused(a: Array, b: Array, c: Array) -> Array:
    """v_mad_f32, v_mac_f32 (gfx10.1): rounds twice and flushes denormals, whatever the mode says."""
    product = flush(flush(a) * flush(b))
    total: Array = product + flush(c)
    return flush(total)


def flush(a: Array) -> Array:
    """Denormals become zeros of the same sign."""
    result: Array = a * (np.abs(a) >= np.finfo(a.dtype).smallest_normal)
    return result


def fract(a: Array) -> Array:
    """a - floor(a), kept below 1: the largest value below 1 when the difference rounds up to it."""
    difference = a - np.floor(a)
    below_one = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    return np.where(difference >= 1, below_one, difference)


def ldexp(a: Array, exponent: Array) -> Array:
    """a * 2**exponent, rounded once: multiplying by a power of two does that when the power is a normal
    number.

    f16 and f32 multiply in f64, where nothing they hold can leave the range.
    """
    power = exponent.astype(np.int64)
    if a.dtype == np.float64:
        return a * _power_of_two(power) if np.abs(power).max() < 1022 else _ldexp_far(a, power)
    wide: Array = a * _power_of_two(np.maximum(np.minimum(power, 400), -400))
    return make_quiet(wide.astype(a.dtype))


def _power_of_two(power: Array) -> Array:
    """2.0**power in f64, for powers of normal numbers."""
    return ((power + 1023) << 52).view(np.float64)


def _ldexp_far(a: Array, power: Array) -> Array:
    """f64 scaled by any power; the C library's ldexp, which numpy calls, rounds once."""
    mantissa, exponent = np.frexp(a)
    scaled = np.ldexp(mantissa, (exponent + np.clip(power, -4400, 4400)).astype(np.int32))
    return make_quiet(np.where(np.isfinite(a), scaled, a))


def frexp_mantissa(a: Array) -> Array:
    """The significand in [0.5, 1) with the sign; infinities and NaN as they are."""
    return make_quiet(np.frexp(a)[0])


def frexp_exponent(a: Array) -> Array:
    """The exponent that goes with it; 0 for zero, infinities and NaN. int16 for f16, else int32."""
    exponent: Array = np.where(np.isfinite(a), np.frexp(a)[1], 0)
    return exponent.astype(np.int16 if a.dtype == np.float16 else np.int32)


def clamp(a: Array) -> Array:
    """The `clamp` modifier: into [0, 1], with NaN and -0 to +0 (DX10_CLAMP, or gfx12)."""
    kind = a.dtype.type
    above_zero = np.where(a > 0, a, kind(0))
    return np.where(above_zero > 1, kind(1), above_zero)


def halves(a: Array) -> tuple[Array, Array]:
    """The low and the high 16 bits of a packed dword, as uint16."""
    return (a & np.uint32(0xFFFF)).astype(np.uint16), (a >> np.uint32(16)).astype(np.uint16)


def join(low: Array, high: Array) -> Array:
    """Two arrays of 16-bit elements of any type as one array of dwords."""
    packed: Array = low.view(np.uint16).astype(np.uint32) | (high.view(np.uint16).astype(np.uint32) << np.uint32(16))
    return packed


def clamp_packed(a: Array) -> Array:
    """`clamp` on both f16 halves of a dword."""
    low, high = halves(a)
    return join(clamp(low.view(np.float16)), clamp(high.view(np.float16)))


def f16_to_f32(a: Array) -> Array:
    """Exact; a signalling NaN becomes quiet."""
    return make_quiet(a.astype(np.float32))
