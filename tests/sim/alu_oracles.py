# SPDX-License-Identifier: Apache-2.0
"""What each vector ALU instruction gives, one lane at a time, on plain Python integers.

`ORACLES[name](*sources)` takes the raw bits of each source (a mask is 0 or 1), in the order of the table
under test, old destinations last, and returns the raw bits of the result, or a tuple of them. `CLAMPED`
is the same for the integer `clamp` modifier. Cross-lane instructions have their own tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.sim import softfloat as sf

Oracle = Callable[..., Any]

_32, _64, _16 = (1 << 32) - 1, (1 << 64) - 1, (1 << 16) - 1


def signed(bits: int, width: int) -> int:
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def _wrap(width: int, function: Callable[..., int], is_signed: bool) -> Oracle:
    """`function` on numbers of one width, its result cut to that width."""

    def oracle(*sources: int) -> int:
        numbers = [signed(s, width) for s in sources] if is_signed else sources
        return function(*numbers) & ((1 << width) - 1)

    return oracle


def _saturate(width: int, function: Callable[..., int], is_signed: bool) -> Oracle:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)

    def oracle(*sources: int) -> int:
        numbers = [signed(s, width) for s in sources] if is_signed else sources
        return min(max(function(*numbers), low), high) & ((1 << width) - 1)

    return oracle


def _middle(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


_MIN_MAX: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "min3": min,
    "max3": max,
    "med3": _middle,
    "maxmin": lambda a, b, c: min(max(a, b), c),
    "minmax": lambda a, b, c: max(min(a, b), c),
}


def _min_max_oracles() -> dict[str, Oracle]:
    rows: dict[str, Oracle] = {}
    for width in (16, 32):
        for letter in ("u", "i"):
            for name, function in _MIN_MAX.items():
                if width == 32 or name in ("min", "max", "min3", "max3", "med3"):
                    rows[f"v_{name}_{letter}{width}"] = _wrap(width, function, letter == "i")
    return rows


def _sub(a: int, b: int) -> int:
    return a - b


def _subrev(a: int, b: int) -> int:
    return b - a


def _add(a: int, b: int) -> int:
    return a + b


def _u24(a: int) -> int:
    return a & 0xFFFFFF


def _i24(a: int) -> int:
    return signed(a, 24)


def _carry(total: int) -> tuple[int, bool]:
    return total & _32, total > _32


def _borrow(difference: int) -> tuple[int, bool]:
    return difference & _32, difference < 0


def _mad_i64(a: int, b: int, c: int) -> tuple[int, bool]:
    total = signed(a, 32) * signed(b, 32) + signed(c, 64)
    return total & _64, bool(total >> 64 & 1)


def _bfe_i32(a: int, offset: int, width: int) -> int:
    width &= 31
    return signed(signed(a, 32) >> (offset & 31), width) & _32 if width else 0


def _leading_sign_bits(a: int) -> int:
    text = f"{a:032b}"
    same = len(text) - len(text.lstrip(text[0]))
    return _32 if same == 32 else same


_INTEGER: dict[str, Oracle] = {
    "v_mov_b32": lambda a: a,
    "v_mov_b16": lambda a: a,
    "v_cndmask_b32": lambda a, b, m: b if m else a,
    "v_cndmask_b16": lambda a, b, m: b if m else a,
    "v_dual_cndmask_b32": lambda a, b, m: b if m else a,
    "v_swap_b32": lambda a, b: (b, a),
    "v_swap_b16": lambda a, b: (b, a),
    "v_add_nc_u32": _wrap(32, _add, False),
    "v_sub_nc_u32": _wrap(32, _sub, False),
    "v_subrev_nc_u32": _wrap(32, _subrev, False),
    "v_add_nc_i32": _wrap(32, _add, True),
    "v_sub_nc_i32": _wrap(32, _sub, True),
    "v_add_co_u32": lambda a, b: _carry(a + b),
    "v_sub_co_u32": lambda a, b: _borrow(a - b),
    "v_subrev_co_u32": lambda a, b: _borrow(b - a),
    "v_add_co_ci_u32": lambda a, b, c: _carry(a + b + c),
    "v_sub_co_ci_u32": lambda a, b, c: _borrow(a - b - c),
    "v_subrev_co_ci_u32": lambda a, b, c: _borrow(b - a - c),
    "v_add3_u32": _wrap(32, lambda a, b, c: a + b + c, False),
    "v_xad_u32": _wrap(32, lambda a, b, c: (a ^ b) + c, False),
    "v_lshl_add_u32": _wrap(32, lambda a, b, c: (a << b % 32) + c, False),
    "v_add_lshl_u32": _wrap(32, lambda a, b, c: (a + b) << c % 32, False),
    "v_mul_lo_u32": _wrap(32, lambda a, b: a * b, False),
    "v_mul_hi_u32": _wrap(32, lambda a, b: a * b >> 32, False),
    "v_mul_hi_i32": _wrap(32, lambda a, b: a * b >> 32, True),
    "v_mul_u32_u24": lambda a, b: _u24(a) * _u24(b) & _32,
    "v_mul_i32_i24": lambda a, b: _i24(a) * _i24(b) & _32,
    "v_mul_hi_u32_u24": lambda a, b: _u24(a) * _u24(b) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: _i24(a) * _i24(b) >> 32 & _32,
    "v_mad_u32_u24": lambda a, b, c: (_u24(a) * _u24(b) + c) & _32,
    "v_mad_i32_i24": lambda a, b, c: (_i24(a) * _i24(b) + c) & _32,
    "v_mad_co_u64_u32": lambda a, b, c: ((a * b + c) & _64, a * b + c > _64),
    "v_mad_co_i64_i32": _mad_i64,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: a ^ b ^ _32,
    "v_not_b32": lambda a: a ^ _32,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xor3_b32": lambda a, b, c: a ^ b ^ c,
    "v_lshl_or_b32": lambda a, b, c: a << b % 32 & _32 | c,
    "v_bfe_u32": lambda a, b, c: a >> b % 32 & ((1 << c % 32) - 1),
    "v_bfe_i32": _bfe_i32,
    "v_bfi_b32": lambda a, b, c: a & b | (a ^ _32) & c,
    "v_bfm_b32": lambda a, b: ((1 << a % 32) - 1) << b % 32 & _32,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> c % 32 & _32,
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c % 4) & _32,
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_bcnt_u32_b32": lambda a, b: (a.bit_count() + b) & _32,
    "v_clz_i32_u32": lambda a: 32 - a.bit_length() if a else _32,
    "v_ctz_i32_b32": lambda a: (a & -a).bit_length() - 1 & _32,
    "v_cls_i32": _leading_sign_bits,
    "v_lshlrev_b32": lambda a, b: b << a % 32 & _32,
    "v_lshrrev_b32": lambda a, b: b >> a % 32,
    "v_ashrrev_i32": lambda a, b: signed(b, 32) >> a % 32 & _32,
    "v_lshlrev_b64": lambda a, b: b << a % 64 & _64,
    "v_lshrrev_b64": lambda a, b: b >> a % 64,
    "v_ashrrev_i64": lambda a, b: signed(b, 64) >> a % 64 & _64,
    "v_and_b16": lambda a, b: a & b,
    "v_or_b16": lambda a, b: a | b,
    "v_xor_b16": lambda a, b: a ^ b,
    "v_not_b16": lambda a: a ^ _16,
    "v_mul_lo_u16": lambda a, b: a * b & _16,
    "v_lshlrev_b16": lambda a, b: b << a % 16 & _16,
    "v_lshrrev_b16": lambda a, b: b >> a % 16,
    "v_ashrrev_i16": lambda a, b: signed(b, 16) >> a % 16 & _16,
    "v_mad_u32_u16": lambda a, b, c: (a * b + c) & _32,
    "v_mad_i32_i16": lambda a, b, c: (signed(a, 16) * signed(b, 16) + c) & _32,
    "v_cvt_i32_i16": lambda a: signed(a, 16) & _32,
    "v_cvt_u32_u16": lambda a: a,
}


def _mad(a: int, b: int, c: int) -> int:
    return a * b + c


_INTEGER16: dict[str, Oracle] = {
    f"v_{name}_{letter}16": _wrap(16, function, letter == "i")
    for letter in ("u", "i")
    for name, function in (("add_nc", _add), ("sub_nc", _sub), ("mad", _mad))
}


# Bytes and dot products.


def _fields(a: int, bits: int, is_signed: bool) -> list[int]:
    fields = [a >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [signed(field, bits) for field in fields] if is_signed else fields


def _perm(a: int, b: int, selector: int) -> int:
    data = b.to_bytes(4, "little") + a.to_bytes(4, "little")
    signs = {8: 1, 9: 3, 10: 5, 11: 7}

    def pick(wanted: int) -> int:
        if wanted >= 13:
            return 0xFF
        if wanted == 12:
            return 0
        return data[wanted] if wanted < 8 else 0xFF * (data[signs[wanted]] >> 7)

    return int.from_bytes(bytes(pick(wanted) for wanted in selector.to_bytes(4, "little")), "little")


def _distance(a: int, b: int, bits: int, skip_zero: bool = False) -> int:
    pairs = zip(_fields(a, bits, False), _fields(b, bits, False), strict=True)
    return sum(abs(x - y) for x, y in pairs if y or not skip_zero)


def _lerp(a: int, b: int, c: int) -> int:
    rows = zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), c.to_bytes(4, "little"), strict=True)
    return int.from_bytes(bytes((x + y + (z & 1)) // 2 for x, y, z in rows), "little")


def _dot(a: int, b: int, bits: int, signed_a: bool, signed_b: bool) -> int:
    return sum(x * y for x, y in zip(_fields(a, bits, signed_a), _fields(b, bits, signed_b), strict=True))


def _dot_oracle(bits: int, is_signed: bool, clamp: bool = False) -> Oracle:
    def oracle(a: int, b: int, c: int) -> int:
        total = _dot(a, b, bits, is_signed, is_signed) + (signed(c, 32) if is_signed else c)
        low, high = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, _32)
        return (min(max(total, low), high) if clamp else total) & _32

    return oracle


def _dot2_f32(a: int, b: int, c: int) -> int:
    for at in (0, 16):
        left = sf.convert(sf.F32, sf.F16, a >> at & _16)
        right = sf.convert(sf.F32, sf.F16, b >> at & _16)
        c = sf.fma(sf.F32, left, right, c)
    return c


def _dot2_f16(a: int, b: int, c: int) -> int:
    for at in (0, 16):
        c = sf.fma(sf.F16, a >> at & _16, b >> at & _16, c)
    return c


_DOTS = {"dot4_i32_i8": (8, True), "dot4_u32_u8": (8, False), "dot8_i32_i4": (4, True), "dot8_u32_u4": (4, False)}
_DOTS |= {"dot2_i32_i16": (16, True), "dot2_u32_u16": (16, False), "dot4c_i32_i8": (8, True)}
# neg_lo is [1, 0, 0] where the generic test calls these: the first source signed, the second not.
_DOTS_MIXED = {"v_dot4_i32_iu8": 8, "v_dot8_i32_iu4": 4}


def _dot_mixed(bits: int, clamp: bool = False) -> Oracle:
    def oracle(a: int, b: int, c: int) -> int:
        total = _dot(a, b, bits, True, False) + signed(c, 32)
        return (min(max(total, -(1 << 31)), (1 << 31) - 1) if clamp else total) & _32

    return oracle


_BYTES: dict[str, Oracle] = {
    "v_perm_b32": _perm,
    "v_sad_u8": lambda a, b, c: (_distance(a, b, 8) + c) & _32,
    "v_sad_hi_u8": lambda a, b, c: ((_distance(a, b, 8) << 16) + c) & _32,
    "v_sad_u16": lambda a, b, c: (_distance(a, b, 16) + c) & _32,
    "v_sad_u32": lambda a, b, c: (_distance(a, b, 32) + c) & _32,
    "v_msad_u8": lambda a, b, c: (_distance(a, b, 8, skip_zero=True) + c) & _32,
    "v_lerp_u8": _lerp,
    "v_dot2_f32_f16": _dot2_f32,
    "v_dot2acc_f32_f16": _dot2_f32,
    "v_dot2_f16_f16": _dot2_f16,
}
_BYTES |= {f"v_{name}": _dot_oracle(*shape) for name, shape in _DOTS.items()}
_BYTES |= {name: _dot_mixed(bits) for name, bits in _DOTS_MIXED.items()}


# Floats.


def _pick(f: sf.Format, a: int, b: int, largest: bool) -> int:
    """Of two numbers, -0 below +0."""
    if f.is_zero(a) and f.is_zero(b):
        return (a if f.sign(a) < f.sign(b) else b) if largest else (a if f.sign(a) > f.sign(b) else b)
    return max(a, b, key=lambda bits: _order(f, bits)) if largest else min(a, b, key=lambda bits: _order(f, bits))


def _order(f: sf.Format, bits: int) -> int:
    """Sorts the numbers of a format, infinities too."""
    return -f.magnitude(bits) if f.sign(bits) else f.magnitude(bits)


def extreme(f: sf.Format, rule: str, largest: bool) -> Callable[[int, int], int]:
    """Minimum or maximum under one NaN rule: "ieee", "num" or "imum"."""

    def choose(a: int, b: int) -> int:
        wins = {"ieee": f.is_signalling, "num": lambda bits: False, "imum": f.is_nan}[rule]
        if wins(a) or wins(b) or (f.is_nan(a) and f.is_nan(b)):
            return f.nan
        if f.is_nan(a) or f.is_nan(b):
            return b if f.is_nan(a) else a
        return _pick(f, a, b, largest)

    return choose


def _median(f: sf.Format, rule: str) -> Oracle:
    small, large = extreme(f, rule, False), extreme(f, rule, True)

    def choose(a: int, b: int, c: int) -> int:
        if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
            return small(small(a, b), c)
        top = large(large(a, b), c)
        # Equality of numbers, so either zero equals the other.
        if _order(f, top) == _order(f, a):
            return large(b, c)
        return large(a, c) if _order(f, top) == _order(f, b) else large(a, b)

    return choose


def _nested(inner: Callable[[int, int], int], outer: Callable[[int, int], int]) -> Oracle:
    return lambda a, b, c: outer(inner(a, b), c)


def _extreme_oracles(kind: str, rule: str) -> dict[str, Oracle]:
    f = sf.FORMATS[kind]
    small, large = extreme(f, rule, False), extreme(f, rule, True)
    if rule == "imum":
        low, high, end = "minimum", "maximum", kind
    else:
        low, high, end = "min", "max", kind if rule == "ieee" else f"num_{kind}"
    rows: dict[str, Oracle] = {f"v_{low}_{end}": small, f"v_{high}_{end}": large}
    if kind != "f64":
        rows[f"v_{low}3_{end}"] = _nested(small, small)
        rows[f"v_{high}3_{end}"] = _nested(large, large)
        rows[f"v_{low}{high}_{end}"] = _nested(small, large)
        rows[f"v_{high}{low}_{end}"] = _nested(large, small)
        if rule != "imum":
            rows[f"v_med3_{end}"] = _median(f, rule)
    return rows


def _integral(f: sf.Format, function: Callable[[Fraction], int]) -> Oracle:
    """Rounding to an integer in the same format; the sign survives on a zero result."""

    def oracle(a: int) -> int:
        if f.is_nan(a) or f.is_infinite(a):
            return f.nan if f.is_nan(a) else a
        return f.round(Fraction(function(f.value(a))), zero_sign=f.sign(a))

    return oracle


def _fract(f: sf.Format) -> Oracle:
    def oracle(a: int) -> int:
        if f.is_nan(a) or f.is_infinite(a):
            return f.nan
        value = f.value(a)
        below_one = f.round(Fraction(1)) - 1
        # a - floor(a) of a zero: -0 - -0 and 0 - 0 are both +0.
        return min(f.round(value - math.floor(value)), below_one)

    return oracle


def _ldexp(f: sf.Format, power_bits: int) -> Oracle:
    def oracle(a: int, power: int) -> int:
        if f.is_nan(a) or f.is_infinite(a):
            return f.nan if f.is_nan(a) else a
        exponent = min(max(signed(power, power_bits), -5000), 5000)
        return f.round(f.value(a) * Fraction(2) ** exponent, zero_sign=f.sign(a))

    return oracle


def _frexp(f: sf.Format, bits: int) -> tuple[int, int]:
    """Significand in [1/2, 1) and exponent; exponent 0 where there is no such pair."""
    if f.is_nan(bits) or f.is_infinite(bits) or f.is_zero(bits):
        return (f.nan if f.is_nan(bits) else bits), 0
    if f.magnitude(bits) >> f.mantissa:
        exponent = (f.magnitude(bits) >> f.mantissa) - f.bias + 1
    else:
        exponent = f.magnitude(bits).bit_length() + f.lowest
    return f.round(f.value(bits) / Fraction(2) ** exponent), exponent


def _unary_exact(f: sf.Format, name: str) -> Oracle:
    """Reciprocal, square root, reciprocal square root: exact, rounded once."""

    def oracle(a: int) -> int:
        if f.is_nan(a) or (name != "rcp" and f.sign(a) and not f.is_zero(a)):
            return f.nan
        if f.is_zero(a):
            return a if name == "sqrt" else f.signed(f.infinity, f.sign(a))
        if f.is_infinite(a):
            return a if name == "sqrt" else f.signed(0, f.sign(a))
        value = f.value(a)
        if name == "rcp":
            return f.round(1 / value)
        return f.round(_root(value if name == "sqrt" else 1 / value))

    return oracle


def _root(value: Fraction) -> Fraction:
    """A square root with 200 good bits, and never exactly on a tie unless the root is."""
    scaled = (value.numerator << 1400) // value.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and (value.numerator << 1400) % value.denominator == 0
    return Fraction(2 * root + (not exact), 1 << 701)


def _transcendental(f: sf.Format, name: str) -> Oracle:
    def oracle(a: int) -> int:
        if f.is_nan(a):
            return f.nan
        if f.is_infinite(a):
            return _at_infinity(f, name, f.sign(a))
        if name == "log" and (f.is_zero(a) or f.sign(a)):
            return f.negative(f.infinity) if f.is_zero(a) else f.nan
        return f.round(_PRECISE[name](f.value(a)))

    return oracle


def _at_infinity(f: sf.Format, name: str, sign: int) -> int:
    if name == "exp":
        return 0 if sign else f.infinity
    return f.nan if name != "log" or sign else f.infinity


def _exp2(value: Fraction) -> Fraction:
    if abs(value) > 20000:
        return Fraction(2) ** (20000 if value > 0 else -20000)
    with localcontext() as context:
        context.prec = 60
        whole = math.floor(value)
        rest = Decimal((value - whole).numerator) / Decimal((value - whole).denominator)
        return Fraction(Decimal(2) ** rest) * Fraction(2) ** whole


def _log2(value: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln() / Decimal(2).ln())


# Fixed point with 320 bits after the point: enough below the smallest f32 angle.
_POINT = 320
_PI_DIGITS = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
_HALF_PI = int(Fraction(_PI_DIGITS) * (1 << _POINT)) // 2


def _cos_turns(value: Fraction) -> Fraction:
    return _sin_turns(value + Fraction(1, 4))


def _sin_turns(value: Fraction) -> Fraction:
    """sin(2 pi value), by quadrants so that exact zeros and ones come out exact."""
    quarter, rest = divmod((value - math.floor(value)) * 4, 1)
    rest = 1 - rest if quarter % 2 else rest
    sine = Fraction(_sine_series(int(rest * _HALF_PI)), 1 << _POINT) if rest < 1 else Fraction(1)
    return -sine if quarter >= 2 else sine


def _sine_series(angle: int) -> int:
    total, term, n = 0, angle, 1
    while term:
        total += term
        term = -(((term * angle >> _POINT) * angle) >> _POINT) // ((n + 1) * (n + 2))
        n += 2
        if abs(term) == 1:  # floor division keeps a negative term at -1
            break
    return total


_PRECISE: dict[str, Callable[[Fraction], Fraction]] = {
    "exp": _exp2,
    "log": _log2,
    "sin": _sin_turns,
    "cos": _cos_turns,
}


def _flush(f: sf.Format, a: int) -> int:
    return f.signed(0, f.sign(a)) if f.magnitude(a) < 1 << f.mantissa else a


def _mad_f32(a: int, b: int, c: int) -> int:
    f = sf.F32
    product = _flush(f, sf.multiply(f, _flush(f, a), _flush(f, b)))
    return _flush(f, sf.add(f, product, _flush(f, c)))


def _dx9(a: int, b: int, c: int | None = None) -> int:
    f = sf.F32
    if f.is_zero(a) or f.is_zero(b):
        return 0 if c is None else c
    return sf.multiply(f, a, b) if c is None else sf.fma(f, a, b, c)


def _mixed(a: int, b: int, c: int) -> int:
    return sf.convert(sf.F16, sf.F32, sf.fma(sf.F32, a, b, c))


def _fixup_f16(quotient: int, denominator: int, numerator: int) -> int:
    f = sf.F16
    exact = sf.divide(f, numerator, denominator)
    special = any(f.is_nan(x) or f.is_infinite(x) or f.is_zero(x) for x in (numerator, denominator))
    if special:
        return exact
    return f.nan if f.is_nan(quotient) else f.signed(quotient, f.sign(numerator) ^ f.sign(denominator))


def _float_oracles(kind: str) -> dict[str, Oracle]:
    f = sf.FORMATS[kind]
    power = 16 if kind == "f16" else 32
    rows: dict[str, Oracle] = {
        f"v_add_{kind}": lambda a, b: sf.add(f, a, b),
        f"v_sub_{kind}": lambda a, b: sf.add(f, a, sf.negate(f, b)),
        f"v_subrev_{kind}": lambda a, b: sf.add(f, b, sf.negate(f, a)),
        f"v_mul_{kind}": lambda a, b: sf.multiply(f, a, b),
        f"v_fma_{kind}": lambda a, b, c: sf.fma(f, a, b, c),
        f"v_fmac_{kind}": lambda a, b, c: sf.fma(f, a, b, c),
        f"v_trunc_{kind}": _integral(f, math.trunc),
        f"v_ceil_{kind}": _integral(f, math.ceil),
        f"v_floor_{kind}": _integral(f, math.floor),
        f"v_rndne_{kind}": _integral(f, round),
        f"v_fract_{kind}": _fract(f),
        f"v_ldexp_{kind}": _ldexp(f, power),
        f"v_frexp_mant_{kind}": lambda a: _frexp(f, a)[0],
        f"v_frexp_exp_i{power}_{kind}": lambda a: _frexp(f, a)[1] & ((1 << power) - 1),
    }
    rows |= {f"v_{name}_{kind}": _unary_exact(f, name) for name in ("rcp", "sqrt", "rsq")}
    if kind != "f64":
        rows |= {f"v_{name}_{kind}": rows[f"v_fma_{kind}"] for name in ("fmaak", "fmamk")}
        rows |= {f"v_{name}_{kind}": _transcendental(f, name) for name in ("exp", "log", "sin", "cos")}
    for rule in ("ieee", "num", "imum"):
        rows |= _extreme_oracles(kind, rule)
    return rows


_FLOAT: dict[str, Oracle] = {
    "v_rcp_iflag_f32": _unary_exact(sf.F32, "rcp"),
    "v_mul_dx9_zero_f32": _dx9,
    "v_fma_dx9_zero_f32": _dx9,
    "v_fmac_dx9_zero_f32": _dx9,
    "v_mad_f32": _mad_f32,
    "v_mac_f32": _mad_f32,
    "v_madak_f32": _mad_f32,
    "v_madmk_f32": _mad_f32,
    "v_fma_mix_f32": lambda a, b, c: sf.fma(sf.F32, a, b, c),
    "v_fma_mixlo_f16": _mixed,
    "v_fma_mixhi_f16": _mixed,
    "v_pack_b32_f16": lambda a, b: a | b << 16,
    "v_div_fixup_f16": _fixup_f16,
}
for _kind in sf.FORMATS:
    _FLOAT |= _float_oracles(_kind)


# Conversions.


def _to_integer(f: sf.Format, width: int, is_signed: bool, rounding: Callable[[Fraction], int] = math.trunc) -> Oracle:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)

    def oracle(a: int) -> int:
        if f.is_nan(a):
            return 0
        if f.is_infinite(a):
            return (low if f.sign(a) else high) & ((1 << width) - 1)
        return min(max(rounding(f.value(a)), low), high) & ((1 << width) - 1)

    return oracle


def _from_integer(f: sf.Format, width: int, is_signed: bool) -> Oracle:
    return lambda a: f.round(Fraction(signed(a, width) if is_signed else a))


def _convert_oracles() -> dict[str, Oracle]:
    rows: dict[str, Oracle] = {}
    for kind, width in (("f16", 16), ("f32", 32), ("f64", 32)):
        for letter in ("u", "i"):
            f = sf.FORMATS[kind]
            rows[f"v_cvt_{kind}_{letter}{width}"] = _from_integer(f, width, letter == "i")
            rows[f"v_cvt_{letter}{width}_{kind}"] = _to_integer(f, width, letter == "i")
    for source, to in (("f16", "f32"), ("f32", "f16"), ("f32", "f64"), ("f64", "f32")):
        rows[f"v_cvt_{to}_{source}"] = _resize(sf.FORMATS[to], sf.FORMATS[source])
    for index in range(4):
        rows[f"v_cvt_f32_ubyte{index}"] = _byte(index)
    return rows


def _resize(to: sf.Format, source: sf.Format) -> Oracle:
    return lambda a: sf.convert(to, source, a)


def _byte(index: int) -> Oracle:
    return lambda a: sf.F32.round(Fraction(a >> 8 * index & 0xFF))


def _nearest(a: int) -> int:
    f = sf.F32
    total = sf.add(f, a, f.round(Fraction(1, 2)))
    return int(_to_integer(f, 32, True, math.floor)(total))


def _pair(function: Oracle) -> Oracle:
    return lambda a, b: function(a) | function(b) << 16


def _clip(width: int, is_signed: bool) -> Oracle:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    return lambda a: min(max(signed(a, 32) if is_signed else a, low), high) & ((1 << width) - 1)


def _sat_pk_u8(a: int) -> int:
    low, high = (min(max(signed(a >> at, 16), 0), 255) for at in (0, 16))
    return low | high << 8


_CONVERT: dict[str, Oracle] = _convert_oracles() | {
    "v_cvt_nearest_i32_f32": _nearest,
    "v_cvt_floor_i32_f32": _to_integer(sf.F32, 32, True, math.floor),
    "v_cvt_pk_rtz_f16_f32": _pair(lambda a: sf.convert(sf.F16, sf.F32, a, toward_zero=True)),
    "v_cvt_pk_i16_f32": _pair(_to_integer(sf.F32, 16, True)),
    "v_cvt_pk_u16_f32": _pair(_to_integer(sf.F32, 16, False)),
    "v_cvt_pk_i16_i32": _pair(_clip(16, True)),
    "v_cvt_pk_u16_u32": _pair(_clip(16, False)),
    "v_sat_pk_u8_i16": _sat_pk_u8,
}


# Comparisons.

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def float_comparison(f: sf.Format, name: str) -> Oracle:
    """The names that start with n are true with a NaN operand, and u; the rest is false."""

    def oracle(a: int, b: int) -> bool:
        unordered = f.is_nan(a) or f.is_nan(b)
        if name in ("f", "t"):
            return name == "t"
        if name in ("o", "u"):
            return unordered == (name == "u")
        if unordered:
            return name.startswith("n")
        left, right = _order(f, a), _order(f, b)
        if name == "neq":
            return left != right
        if name in ("lg", "nlg"):
            return (left != right) == (name == "lg")
        return _ORDERS[name.removeprefix("n")](left, right) != (name.startswith("n"))

    return oracle


def _integer_comparison(width: int, is_signed: bool, name: str) -> Oracle:
    def oracle(a: int, b: int) -> bool:
        if name in ("f", "t"):
            return name == "t"
        left, right = (signed(a, width), signed(b, width)) if is_signed else (a, b)
        return left != right if name == "ne" else _ORDERS[name](left, right)

    return oracle


def _class(f: sf.Format) -> Oracle:
    def oracle(a: int, wanted: int) -> bool:
        if f.is_nan(a):
            position = 0 if f.is_signalling(a) else 1
        else:
            size = f.magnitude(a)
            kind = 3 if size == f.infinity else 2 if size >> f.mantissa else 1 if size else 0
            position = 5 - kind if f.sign(a) else 6 + kind
        return bool(wanted >> position & 1)

    return oracle


FLOAT_COMPARISONS = ("lt", "eq", "le", "gt", "ge", "lg", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "f", "t")


def _compare_oracles() -> dict[str, Oracle]:
    rows: dict[str, Oracle] = {}
    for form in ("cmp", "cmpx"):
        for width in (16, 32, 64):
            for letter in ("u", "i"):
                for name in ("lt", "eq", "le", "gt", "ge", "ne", "f", "t"):
                    rows[f"v_{form}_{name}_{letter}{width}"] = _integer_comparison(width, letter == "i", name)
        for kind, f in sf.FORMATS.items():
            rows[f"v_{form}_class_{kind}"] = _class(f)
            for name in FLOAT_COMPARISONS:
                rows[f"v_{form}_{name}_{kind}"] = float_comparison(f, name)
    return rows


# Packed: the 16-bit oracle on each half.


def _both(function: Oracle) -> Oracle:
    def oracle(*sources: int) -> int:
        low = function(*(source & _16 for source in sources))
        return int(low | function(*(source >> 16 for source in sources)) << 16)

    return oracle


_PACKED_FROM = {
    "v_pk_mul_lo_u16": "v_mul_lo_u16",
    "v_pk_lshlrev_b16": "v_lshlrev_b16",
    "v_pk_lshrrev_b16": "v_lshrrev_b16",
    "v_pk_ashrrev_i16": "v_ashrrev_i16",
    "v_pk_fmac_f16": "v_fma_f16",
    "v_pk_minimum_f16": "v_minimum_f16",
    "v_pk_maximum_f16": "v_maximum_f16",
}
_PACKED_FROM |= {
    f"v_pk_{name}_f16": f"v_{name}_f16" for name in ("add", "mul", "fma", "min", "max", "min_num", "max_num")
}
for _letter in ("u", "i"):
    _PACKED_FROM |= {f"v_pk_{name}_{_letter}16": f"v_{name}_nc_{_letter}16" for name in ("add", "sub")}
    _PACKED_FROM |= {f"v_pk_{name}_{_letter}16": f"v_{name}_{_letter}16" for name in ("mad", "min", "max")}


ORACLES: dict[str, Oracle] = (
    _INTEGER | _INTEGER16 | _min_max_oracles() | _BYTES | _FLOAT | _CONVERT | _compare_oracles()
)
ORACLES |= {name: _both(ORACLES[single]) for name, single in _PACKED_FROM.items()}

CLAMPED: dict[str, Oracle] = {
    "v_add_nc_u32": _saturate(32, _add, False),
    "v_sub_nc_u32": _saturate(32, _sub, False),
    "v_subrev_nc_u32": _saturate(32, _subrev, False),
    "v_add_nc_i32": _saturate(32, _add, True),
    "v_sub_nc_i32": _saturate(32, _sub, True),
    "v_mad_u32_u24": lambda a, b, c: min(_u24(a) * _u24(b) + c, _32),
    "v_mad_i32_i24": lambda a, b, c: min(max(_i24(a) * _i24(b) + signed(c, 32), -(1 << 31)), (1 << 31) - 1) & _32,
}
for _letter in ("u", "i"):
    for _name, _function in (("add_nc", _add), ("sub_nc", _sub), ("mad", _mad)):
        _single = _saturate(16, _function, _letter == "i")
        CLAMPED[f"v_{_name}_{_letter}16"] = _single
        CLAMPED[f"v_pk_{_name.removesuffix('_nc')}_{_letter}16"] = _both(_single)
CLAMPED |= {f"v_{name}": _dot_oracle(*shape, clamp=True) for name, shape in _DOTS.items()}
CLAMPED |= {name: _dot_mixed(bits, clamp=True) for name, bits in _DOTS_MIXED.items()}
