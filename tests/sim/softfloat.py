# SPDX-License-Identifier: Apache-2.0
"""IEEE arithmetic on bit patterns with exact fractions: the answers that the float tests compare with.

Written from the definition of the formats, shares nothing with the code under test, and is slow. A NaN
result is `Format.nan`; which NaN it is, is never compared.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Format(NamedTuple):
    width: int
    mantissa: int

    @property
    def bias(self) -> int:
        return int((1 << (self.width - self.mantissa - 2)) - 1)

    @property
    def infinity(self) -> int:
        return ((1 << (self.width - self.mantissa - 1)) - 1) << self.mantissa

    @property
    def nan(self) -> int:
        return self.infinity | 1 << (self.mantissa - 1)

    @property
    def lowest(self) -> int:
        """Exponent of the smallest denormal."""
        return 1 - self.bias - self.mantissa

    def sign(self, bits: int) -> int:
        return bits >> (self.width - 1)

    def magnitude(self, bits: int) -> int:
        return bits & ((1 << (self.width - 1)) - 1)

    def negative(self, bits: int) -> int:
        return bits | 1 << (self.width - 1)

    def signed(self, bits: int, sign: int) -> int:
        return self.negative(bits) if sign else self.magnitude(bits)

    def is_nan(self, bits: int) -> bool:
        return self.magnitude(bits) > self.infinity

    def is_signalling(self, bits: int) -> bool:
        return self.is_nan(bits) and not bits >> (self.mantissa - 1) & 1

    def is_infinite(self, bits: int) -> bool:
        return self.magnitude(bits) == self.infinity

    def is_zero(self, bits: int) -> bool:
        return self.magnitude(bits) == 0

    def value(self, bits: int) -> Fraction:
        """The number a finite pattern stands for."""
        exponent = self.magnitude(bits) >> self.mantissa
        significand = bits & ((1 << self.mantissa) - 1)
        if exponent:
            significand |= 1 << self.mantissa
        scale = Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissa)
        return (-1 if self.sign(bits) else 1) * significand * scale

    def round(self, value: Fraction, zero_sign: int = 0, toward_zero: bool = False) -> int:
        """The pattern nearest to `value`, ties to even; or the nearest one that is not larger in
        magnitude."""
        if value == 0:
            return self.signed(0, zero_sign)
        size = abs(value)
        unit = max(_floor_log2(size) - self.mantissa, self.lowest)
        count, rest = divmod(size / Fraction(2) ** unit, 1)
        if not toward_zero and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and count % 2)):
            count += 1
        # A carry out of the significand moves into the exponent by itself.
        pattern = int(count) + ((unit - self.lowest) << self.mantissa)
        largest = self.infinity - 1 if toward_zero else self.infinity
        return self.signed(min(pattern, largest), value < 0)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


F16, F32, F64 = Format(16, 10), Format(32, 23), Format(64, 52)
FORMATS = {"f16": F16, "f32": F32, "f64": F64}


def add(f: Format, a: int, b: int) -> int:
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_infinite(a) or f.is_infinite(b):
        clash = f.is_infinite(a) and f.is_infinite(b) and a != b
        return f.nan if clash else (a if f.is_infinite(a) else b)
    return f.round(f.value(a) + f.value(b), zero_sign=f.sign(a) & f.sign(b))


def negate(f: Format, a: int) -> int:
    return a ^ 1 << (f.width - 1)


def multiply(f: Format, a: int, b: int) -> int:
    sign = f.sign(a) ^ f.sign(b)
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_infinite(a) or f.is_infinite(b):
        return f.nan if f.is_zero(a) or f.is_zero(b) else f.signed(f.infinity, sign)
    return f.round(f.value(a) * f.value(b), zero_sign=sign)


def fma(f: Format, a: int, b: int, c: int) -> int:
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
        return f.nan
    sign = f.sign(a) ^ f.sign(b)
    if f.is_infinite(a) or f.is_infinite(b):
        product = f.nan if f.is_zero(a) or f.is_zero(b) else f.signed(f.infinity, sign)
        return add(f, product, c)
    if f.is_infinite(c):
        return c
    total = f.value(a) * f.value(b) + f.value(c)
    product_is_zero = f.is_zero(a) or f.is_zero(b)
    return f.round(total, zero_sign=f.sign(c) & sign if product_is_zero else 0)


def divide(f: Format, a: int, b: int) -> int:
    sign = f.sign(a) ^ f.sign(b)
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_infinite(a) or f.is_zero(b):
        both = (f.is_infinite(a) and f.is_infinite(b)) or (f.is_zero(a) and f.is_zero(b))
        return f.nan if both else f.signed(f.infinity, sign)
    if f.is_infinite(b):
        return f.signed(0, sign)
    return f.round(f.value(a) / f.value(b), zero_sign=sign)


def convert(to: Format, source: Format, a: int, toward_zero: bool = False) -> int:
    if source.is_nan(a):
        return to.nan
    if source.is_infinite(a):
        return to.signed(to.infinity, source.sign(a))
    return to.round(source.value(a), zero_sign=source.sign(a), toward_zero=toward_zero)
