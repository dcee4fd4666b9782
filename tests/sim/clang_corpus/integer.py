# SPDX-License-Identifier: Apache-2.0
"""Oracles of `integer.hip`. Python integers where a type's width matters, numpy where it is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tests.sim.clang_corpus.registry import BLOCK, ITEMS, Array, kernel, planes

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def each(dtype: str, bits: int, function: Callable[..., int], *arrays: Array) -> Array:
    """One result a work-item, from Python integers, kept to its low bits."""
    rows: Iterable[tuple[int, ...]] = zip(*(array.tolist() for array in arrays), strict=True)
    return np.array([function(*row) & (1 << bits) - 1 for row in rows], dtype)


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def saturated(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def quotient(x: int, y: int) -> int:
    """C's division: toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def remainder(x: int, y: int) -> int:
    return x - y * quotient(x, y)


def leading(x: int, bits: int) -> int:
    return bits - x.bit_length()


def trailing(x: int, bits: int) -> int:
    return (x & -x).bit_length() - 1 if x else bits


def reversed_bits(x: int, bits: int) -> int:
    return int(f"{x:0{bits}b}"[::-1], 2)


def words(bits: int, arrays: tuple[Array, ...], *functions: Callable[..., int]) -> Array:
    return np.concatenate([each(f"u{bits // 8}", bits, function, *arrays) for function in functions])


@kernel("integer", "u32", "u32", "u32")
def int_arithmetic(a: Array, b: Array, c: Array) -> Array:
    return words(
        32,
        (a, b, c),
        lambda x, y, z: x + y,
        lambda x, y, z: x - y,
        lambda x, y, z: x * y,
        lambda x, y, z: x * y >> 32,
        lambda x, y, z: signed(x) * signed(y) >> 32,
        lambda x, y, z: x * 7 + z,
        lambda x, y, z: x + y + z,
        lambda x, y, z: (x & 0xFFFFFF) * (y & 0xFFFFFF),
        lambda x, y, z: (x & 0xFFFFFF) * (y & 0xFFFFFF) + z,
        lambda x, y, z: signed(x, 24) * signed(y, 24),
        lambda x, y, z: -x,
        lambda x, y, z: x - 0x12345678,
    )


@kernel("integer", "u32", "u32", "u32")
def int_logic(a: Array, b: Array, c: Array) -> Array:
    return planes("u4", a & b, a | b, a ^ b, ~(a ^ b), a & ~b, a & b | ~a & c, a ^ b ^ c, a | b | c, a & b | c, ~a)


@kernel("integer", "u32", "u32", "u32")
def int_shifts(a: Array, b: Array, c: Array) -> Array:
    return words(
        32,
        (a, b, c & 31),
        lambda x, y, n: x << n,
        lambda x, y, n: x >> n,
        lambda x, y, n: signed(x) >> n,
        lambda x, y, n: (x << 3) + y,
        lambda x, y, n: x + y << 5,
        lambda x, y, n: (x << 7) | y,
        lambda x, y, n: (x << 32 | y) >> n,
        lambda x, y, n: (x << 32 | y) >> 8 * (n & 3),
        lambda x, y, n: x << 13 | x >> 19,
        lambda x, y, n: (x << n) + y,
    )


def _field(x: int, start: int, width: int) -> int:
    return x >> start & (1 << width) - 1


@kernel("integer", "u32", "u32", "u32")
def int_bits(a: Array, b: Array, c: Array) -> Array:

    def signed_field(x: int, y: int, z: int) -> int:
        start, width = z & 31, y & 31
        width = min(width, 32 - start)
        return signed(_field(x, start, width), width) if width else 0

    return words(
        32,
        (a, b, c),
        lambda x, y, z: x.bit_count() + y,
        lambda x, y, z: leading(x, 32),
        lambda x, y, z: trailing(x, 32),
        lambda x, y, z: reversed_bits(x, 32),
        lambda x, y, z: _field(x, z & 31, y & 31),
        signed_field,
        lambda x, y, z: _select(x, y),
        lambda x, y, z: int.from_bytes(x.to_bytes(4, "little"), "big"),
        lambda x, y, z: sum(abs(p - q) for p, q in zip(_bytes(x), _bytes(y), strict=True)) + z,
        lambda x, y, z: x >> 5 & 0x7FF,
        lambda x, y, z: signed(x << 9) >> 20,
        lambda x, y, z: int.from_bytes(p + q + 1 >> 1 for p, q in zip(_bytes(x), _bytes(y), strict=True)),
    )


def _bytes(x: int) -> bytes:
    return x.to_bytes(4, "big")


def _select(x: int, y: int) -> int:
    """v_perm with selector 0x0c060105: bytes 5, 1, 6 of {x, y} and a zero."""
    both = (x << 32 | y).to_bytes(8, "little")
    return both[5] | both[1] << 8 | both[6] << 16


@kernel("integer", "u32", "u32", "u32")
def int_minmax(a: Array, b: Array, c: Array) -> Array:
    top, bottom = (1 << 31) - 1, -1 << 31
    return words(
        32,
        (a, b, c),
        lambda x, y, z: min(x, y),
        lambda x, y, z: max(x, y),
        lambda x, y, z: min(signed(x), signed(y)),
        lambda x, y, z: max(signed(x), signed(y)),
        lambda x, y, z: max(signed(x), signed(y), signed(z)),
        lambda x, y, z: min(x, y, z),
        lambda x, y, z: saturated(signed(x), -100, 1000),
        lambda x, y, z: min(x + y, M32),
        lambda x, y, z: max(x - y, 0),
        lambda x, y, z: saturated(signed(x) + signed(y), bottom, top),
        lambda x, y, z: saturated(signed(x) - signed(y), bottom, top),
        lambda x, y, z: abs(signed(x)),
    )


@kernel("integer", "u16", "i16", "u8")
def int_narrow(a: Array, b: Array, c: Array) -> Array:
    return words(
        32,
        (a, b, c),
        lambda x, y, z: x + y & 0xFFFF,
        lambda x, y, z: x - y & 0xFFFF,
        lambda x, y, z: x * y & 0xFFFF,
        lambda x, y, z: signed(x * y + z, 16),
        lambda x, y, z: x << (z & 15) & 0xFFFF,
        lambda x, y, z: x >> (z & 15),
        lambda x, y, z: y >> (z & 15),
        lambda x, y, z: min(x, y & 0xFFFF),
        lambda x, y, z: max(signed(x, 16), y),
        lambda x, y, z: signed(z + x, 8),
        lambda x, y, z: z - y & 0xFF,
        lambda x, y, z: x // (z | 1) + x % (z | 1),
    )


@kernel("integer", "u64", "u64", "u32")
def int_wide(a: Array, b: Array, c: Array) -> Array:
    return words(
        64,
        (a, b, c),
        lambda x, y, z: x + y,
        lambda x, y, z: x - y,
        lambda x, y, z: x * y,
        lambda x, y, z: x << (z & 63),
        lambda x, y, z: x >> (z & 63),
        lambda x, y, z: signed(x, 64) >> (z & 63),
        lambda x, y, z: x & y,
        lambda x, y, z: x ^ ~y,
        lambda x, y, z: min(x, y),
        lambda x, y, z: max(signed(x, 64), signed(y, 64)),
        lambda x, y, z: x.bit_count(),
        lambda x, y, z: leading(x, 64),
        lambda x, y, z: trailing(x, 64),
        lambda x, y, z: (x & M32) * z + y,
        lambda x, y, z: signed(x) * signed(z) + y,
        lambda x, y, z: x << 1,
    )


def _carries(x: int, y: int, z: int) -> tuple[int, ...]:
    total, less = ((x << 64 | y) + (z << 64 | x)), ((x << 64 | y) - (z << 64 | x))
    product, plain, minus = x * y, x + y, signed(x, 64) - signed(y, 64)
    low, high, below = (x & M32) + (y & M32), (z & M32) + (x >> 32), (x & M32) - (y & M32)
    high += low >> 32
    above = (z & M32) - (x >> 32) - (below < 0)
    small = (x & M32) * (y & M32)
    return (
        total,
        total >> 64,
        less,
        less >> 64,
        product,
        product >> 64,
        plain >> 64,
        plain,
        minus != signed(minus, 64),
        minus,
        high << 32 | low & M32,
        high >> 32,
        above << 32 | below & M32,
        above < 0,
        small >> 32 != 0,
    )


@kernel("integer", "u64", "u64", "u64")
def int_carry(a: Array, b: Array, c: Array) -> Array:
    rows = [_carries(*row) for row in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    return np.array([[value & M64 for value in row] for row in rows], np.uint64).T.reshape(-1)


@kernel("integer", "u32", "u32")
def int_division(a: Array, b: Array) -> Array:
    def safe(y: int) -> int:
        return 3 if y == M32 else signed(y | 1)

    return words(
        32,
        (a, b),
        lambda x, y: x // (y | 1),
        lambda x, y: x % (y | 1),
        lambda x, y: quotient(signed(x), safe(y)),
        lambda x, y: remainder(signed(x), safe(y)),
        lambda x, y: x // 7,
        lambda x, y: remainder(signed(x), 1000),
        lambda x, y: x // ((y | 1) >> 20 | 1),
        lambda x, y: quotient(signed(x), safe(y) >> 24 | 1),
    )


@kernel("integer", "u64", "u64")
def int_wide_division(a: Array, b: Array) -> Array:
    def narrow(y: int) -> int:
        value = signed(y | 1, 64) >> 9 | 1
        return 5 if value == -1 else value

    return words(
        64,
        (a, b),
        lambda x, y: x // (y | 1),
        lambda x, y: x % (y | 1),
        lambda x, y: quotient(signed(x, 64), narrow(y)),
        lambda x, y: remainder(signed(x, 64), narrow(y)),
        lambda x, y: x // 1000003,
        lambda x, y: x // ((y | 1) >> 40 | 1),
    )


def predicates(x: Array, y: Array) -> Array:
    """== != < <= > >= in bits 0 to 5."""
    tests = (x == y, x != y, x < y, x <= y, x > y, x >= y)
    result: Array = np.sum([test.astype(np.uint32) << k for k, test in enumerate(tests)], axis=0).astype(np.uint32)
    return result


@kernel("integer", "u32", "u32", "u64")
def int_compare(a: Array, b: Array, c: Array) -> Array:
    p, q, other = a.view(np.int32), b.view(np.int32), c[np.arange(ITEMS) ^ 1]
    s, t = c.view(np.int64), other.view(np.int64)
    g, h = a.astype(np.uint16), b.astype(np.uint16)
    ordered = [p < q, p <= q, p > q, p >= q, p == -7, p > 63]
    wide = [s < t, s <= t, s > t, s >= t]
    return planes(
        "u4",
        predicates(a, b),
        np.sum([test * (1 << k) for k, test in enumerate(ordered)], axis=0),
        predicates(c, other),
        np.sum([test * (1 << k) for k, test in enumerate(wide)], axis=0),
        predicates(g, h),
        predicates(g.view(np.int16), h.view(np.int16)),
        np.where((a < b) & (p > q), a, b),
        np.where((a < b) != (p < q), a + np.uint32(1), b - np.uint32(1)),
        a == b,
        a != b,
        a <= b,
        p >= q,
        s <= t,
        c >= other,
    )


def _uniform(x: int, y: int, n: int) -> int:
    p, q = signed(x), signed(y)
    terms = [
        x - y,
        x * y,
        x * y >> 32,
        p * q >> 32,
        x & ~y,
        x | ~y & M32,
        ~(x & y) & M32 ^ x << 4 & M32,
        ~(x | y) & M32 ^ (x + (y << 3)) & M32,
        (x << n) + (x >> n) + (p >> n),
        x.bit_count() + reversed_bits(y, 32),
        leading(x, 32) + trailing(y, 32),
        min(p, q) + max(p, q) + min(x, y) + max(x, y),
        abs(p) + signed(x, 8) + signed(y, 16),
        (x >> 7 & 0x1FF) + (signed(y << 3) >> 15),
        (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (p < q) << 4 | (p >= 40) << 5,
        (x >= 1 << 31) + (x if q == 12345 else y) + (p > -5000),
        min(x + y, M32),
        (1 << n) + (x & 0xFFFF | y << 16 & M32) + (x >> 16 | y & 0xFFFF0000),
    ]
    r = (x + y) & M32
    for term in terms:
        r = (r * 31 + term) & M32
    return r


@kernel("integer", "u32", "u32")
def uniform_arithmetic(a: Array, b: Array) -> Array:
    rows = [_uniform(int(a[g]), int(b[g]), int(b[g + 4]) & 31) for g in range(ITEMS // BLOCK)]
    return np.repeat(np.array(rows, np.uint32), BLOCK)


def _uniform_wide(x: int, y: int, n: int) -> int:
    terms = [
        x - y,
        (x & ~y) + (x ^ y) + (x | ~y & M64),
        (x << n) + (x >> n) + (signed(x, 64) >> n),
        x.bit_count() + reversed_bits(y, 64),
        leading(x, 64) + trailing(y, 64),
        (1 if x == y else 2) + min(x, y) + (3 if signed(x, 64) < signed(y, 64) else 4),
        x >> 9 & 0x1FFFFFFFF,
        x // (y >> 33 | 1) + (x & M32) % (y & M32 | 1),
    ]
    r = x + y
    for term in terms:
        r = (r * 31 + term) & M64
    return r


@kernel("integer", "u64", "u64")
def uniform_wide(a: Array, b: Array) -> Array:
    rows = [_uniform_wide(int(a[g]), int(b[g]), int(b[g + 4]) & 63) for g in range(ITEMS // BLOCK)]
    return np.repeat(np.array(rows, np.uint64), BLOCK) + np.arange(ITEMS, dtype=np.uint64)
