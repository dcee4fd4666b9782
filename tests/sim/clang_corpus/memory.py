# SPDX-License-Identifier: Apache-2.0
"""Oracles of `memory.hip`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.sim.clang_corpus.registry import BLOCK, ITEMS, Array, kernel, planes

INDEX = np.arange(ITEMS)
GROUP = INDEX // BLOCK
TABLE = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53], np.uint32)


@kernel("memory", "u8x4", "u32")
def widths(a: Array, b: Array) -> Array:
    halves, rows = a.view(np.uint16), b.reshape(-1, 4).astype(np.uint64)
    two = b.reshape(-1, 2)
    return planes(
        "u4",
        a[1::4],
        a[2::4].view(np.int8),
        halves[1::2],
        halves[0::2].view(np.int16),
        np.repeat(two[:, 0] ^ two[:, 1], 2),
        np.repeat((rows * np.array([1, 3, 5, 7], np.uint64)).sum(axis=1).astype(np.uint32), 4),
        b[INDEX ^ 3],
    )


@kernel("memory", "u32")
def narrow_stores(a: Array) -> Array:
    out = np.zeros((ITEMS, 16), np.uint8)
    out[:, 0], out[:, 1] = a & 0xFF, a >> np.uint32(16) & np.uint32(0xFF)
    for at, shift in ((2, 8), (4, 16), (6, 0)):
        out[:, at : at + 2] = (a >> np.uint32(shift)).astype(np.uint16).view(np.uint8).reshape(-1, 2)
    out[:, 8:12] = (a + np.uint32(1)).view(np.uint8).reshape(-1, 4)
    out[:, 12:16] = (a ^ np.uint32(5)).view(np.uint8).reshape(-1, 4)
    return out.reshape(-1)


@kernel("memory", "u32x4", "u32x2")
def wide_stores(a: Array, b: Array) -> Array:
    x, y = a.reshape(-1, 4), b.reshape(-1, 2)
    mixed = np.stack([y[:, 0], x[:, 1], y[:, 1], x[:, 3]], axis=1)
    three = x[:, :3] + np.arange(3, dtype=np.uint32)
    return np.concatenate([x[:, ::-1].reshape(-1), mixed.reshape(-1), three.reshape(-1)])


@kernel("memory", "u16", "u16")
def half_loads(a: Array, b: Array) -> Array:
    both, swapped = np.stack([a, b], axis=1), np.stack([b[::-1], a], axis=1)
    return planes("u4", both.reshape(-1).view(np.uint32), (both + swapped).reshape(-1).view(np.uint32))


@kernel("memory", "u32", "i32")
def strided(a: Array, b: Array) -> Array:
    at = np.fmod(b.astype(np.int64), 256)
    return planes("u4", a[256 + at], a[256 + np.maximum(at - 1, 0)], a[INDEX * 7 & 511])


@kernel("memory", "u32")
def lds_reverse(a: Array) -> Array:
    return a.reshape(-1, BLOCK)[:, ::-1].reshape(-1)


@kernel("memory", "u32")
def lds_widths(a: Array) -> Array:
    other, mirror = a[INDEX ^ 65], a.reshape(-1, BLOCK)[:, ::-1].reshape(-1)
    return planes(
        "u4",
        other ^ other ^ np.uint32(3),
        (other & np.uint32(255)) + (other >> np.uint32(16) & np.uint32(255)) * np.uint32(256),
        other.astype(np.int8),
        other,
        mirror.astype(np.int16),
        a ^ np.uint32(3),
    )


@kernel("memory", "u64")
def lds_pairs(a: Array) -> Array:
    one = np.uint64(1)
    tile = np.concatenate([a.reshape(-1, BLOCK) + k for k in (np.uint64(0), one, np.uint64(2))], axis=1)
    tile = np.concatenate([tile, ~a.reshape(-1, BLOCK)], axis=1)
    j = np.arange(BLOCK) * 3 & 127
    words = np.ascontiguousarray(tile).view(np.uint32).astype(np.uint64)
    results = (
        tile[:, j] ^ tile[:, j + 384],
        tile[:, j + 128] + tile[:, j + 256],
        words[:, j] << np.uint64(32) | words[:, j + 128],
    )
    return np.concatenate([result.reshape(-1) for result in results])


@kernel("memory", "u32")
def lds_transpose(a: Array) -> Array:
    return a.reshape(-1, 8, 16).transpose(0, 2, 1).reshape(-1)


@kernel("memory", "u32")
def lds_atomics(a: Array) -> Array:
    rows = []
    for x in a.reshape(-1, BLOCK):
        s, count = x.view(np.int32), np.bincount(x & 3, minlength=4)
        total = x.sum(dtype=np.uint32)
        bins: list[Any] = [total, -total, np.bitwise_and.reduce(x | np.uint32(0xFF00FF00))]
        bins += [np.bitwise_or.reduce(x & np.uint32(0x10101)), x.min(), x.max(), np.bitwise_xor.reduce(x)]
        bins += [min(s.min(), 0), max(s.max(), 0), *count.tolist(), 3 * BLOCK, BLOCK]
        bins += [np.bitwise_xor.reduce(np.arange(BLOCK) ** 2)]
        sum_, top = sum(int(v) << 3 for v in x), max(int(v) << 5 for v in x)
        bins += [sum_, sum_ >> 32, top, top >> 32]
        rows.append([int(value) & 0xFFFFFFFF for value in bins])
    return np.array(rows, np.uint32).reshape(-1)


Steps = list[tuple[str, Any]]


def _chain(before: Array, steps: Steps) -> list[Array]:
    """What an atomic on a place of one's own returns at each step; the last entry is what is left there."""
    signed = f"i{before.itemsize}"
    rules: dict[str, Any] = {
        "swap": lambda old, x: x,
        "add": lambda old, x: old + x,
        "sub": lambda old, x: old - x,
        "and": lambda old, x: old & x,
        "or": lambda old, x: old | x,
        "xor": lambda old, x: old ^ x,
        "min": np.minimum,
        "max": np.maximum,
        "smin": lambda old, x: np.minimum(old.view(signed), x.view(signed)).view(old.dtype),
        "smax": lambda old, x: np.maximum(old.view(signed), x.view(signed)).view(old.dtype),
    }
    seen = [before]
    for name, value in steps:
        seen.append(rules[name](seen[-1], value))
    return seen


def _exchanged(last: Array, x: Array) -> tuple[Array, Array, Array]:
    """Compare and swap to 99: what is left, whether it worked, what was seen."""
    expected = np.where(x & x.dtype.type(1), x, x.dtype.type(12345))
    equal = last == expected
    return np.where(equal, x.dtype.type(99), last), equal, np.where(equal, expected, last)


@kernel("memory", "u32", "u32")
def atomics_return(a: Array, b: Array) -> Array:
    steps: Steps = [("swap", a), ("add", b), ("sub", np.uint32(77)), ("and", b), ("or", a << np.uint32(4))]
    steps += [("xor", b >> np.uint32(3)), ("min", b), ("max", a), ("smin", b), ("smax", a)]
    seen = _chain(np.full(ITEMS, 0xCDCDCDCD, np.uint32), steps)
    left, worked, found = _exchanged(seen[-1], a)
    return planes("u4", left, *seen[:-1], worked, found)


@kernel("memory", "u64", "u64")
def atomics_wide(a: Array, b: Array) -> Array:
    steps: Steps = [("swap", a), ("add", b), ("sub", np.uint64(77)), ("and", b), ("or", a << np.uint64(4))]
    steps += [("xor", b >> np.uint64(3)), ("min", b), ("smax", a)]
    seen = _chain(np.full(ITEMS, 0xCDCDCDCDCDCDCDCD, np.uint64), steps)
    left, worked, found = _exchanged(seen[-1], a)
    return planes("u8", left, *seen[:-1], worked, found)


@kernel("memory", "u32", fill=0)
def atomics_shared(a: Array) -> Array:
    odd = int((a & 1).sum())
    out = [a.sum(dtype=np.uint32), a.max(), 0, np.bitwise_or.reduce(a & np.uint32(0x0F0F0F0F))]
    out += [np.bitwise_xor.reduce(a), -(a >> np.uint32(1)).sum(dtype=np.uint32), ITEMS - odd, odd]
    return np.array(out, np.uint32)


@kernel("memory", "f32", "f32")
def atomics_float(a: Array, b: Array) -> Array:
    return planes("f4", a + b, a)


@kernel("memory", "u32x2", "u32")
def flat_pointers(a: Array, b: Array) -> Array:
    odd, j = (b & 1) == 1, INDEX ^ 9
    first = np.where(odd, b[j], a[:ITEMS])
    return planes("u4", first, first >> np.uint32(8) & np.uint32(255), first ^ np.uint32(0xABC))


@kernel("memory", "u32")
def constants(a: Array) -> Array:
    return planes("u4", TABLE[a & 15], TABLE[GROUP + 3] + a)


@kernel("memory", "payload", "u32", "u8 scalar", "i16 scalar")
def by_value(payload: np.void, a: Array, small: np.uint8, half: np.int16) -> Array:
    raw = payload.tobytes()
    wide, words = np.frombuffer(raw, np.uint32, 2), np.frombuffer(raw, np.uint32, 3, 8)
    parts = int(np.frombuffer(raw, np.uint16, 1, 20)[0]) + int(np.frombuffer(raw, np.int8, 1, 22)[0]) + raw[23]
    return planes(
        "u4",
        a + wide[0] + wide[1],
        words[0] ^ words[1] ^ words[GROUP % 3],
        np.uint32(parts & 0xFFFFFFFF),
        np.uint32(int(small) * int(half) & 0xFFFFFFFF),
    )


RECORDS = 400  # dwords of the buffers


def _words(a: Array, at: Array) -> Array:
    inside = np.where(at < RECORDS, a[np.minimum(at, RECORDS)], np.uint32(0))
    return inside.astype(np.uint64)


@kernel("memory", "u32")
def buffers(a: Array) -> Array:
    x = [_words(a, INDEX + k) for k in range(4)]
    low = x[0].astype(np.uint32)
    three, five, seven = np.uint64(3), np.uint64(5), np.uint64(7)
    stored = np.full(ITEMS, 0xCDCDCDCD, np.uint32)
    stored[:RECORDS] = a[:RECORDS] * np.uint32(3)
    return np.concatenate(
        [
            planes(
                "u4",
                low,
                low >> np.uint32(8) & np.uint32(255),
                (low >> np.uint32(16)).astype(np.uint16).view(np.int16),
                (x[0] + x[1] * three).astype(np.uint32),
                (x[1] + x[2] * three + _words(a, INDEX + 3) * five).astype(np.uint32),
                (x[0] + x[1] * three + x[2] * five + x[3] * seven).astype(np.uint32),
                a[GROUP + 4],
            ),
            stored,
        ]
    )


@kernel("memory", "u32")
def buffer_stores(a: Array) -> Array:
    out = np.full((ITEMS, 32), 0xCD, np.uint8)
    out[:, 0] = a & 0xFF
    out[:, 2:4] = (a >> np.uint32(3)).astype(np.uint16).view(np.uint8).reshape(-1, 2)
    words = [a, ~a, a, a + np.uint32(1), a + np.uint32(2), a + np.uint32(3)]
    out[:, 8:32] = np.stack(words, axis=1).view(np.uint8)
    return out.reshape(-1)
