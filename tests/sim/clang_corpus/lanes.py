# SPDX-License-Identifier: Apache-2.0
"""Oracles of `lanes.hip`, lane by lane from the words of the manuals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.sim.clang_corpus.registry import BLOCK, ITEMS, Array, kernel, planes

OLD = 0x77777777
INDEX = np.arange(ITEMS)


def moved(x: Array, source: Callable[[int], int], *, outside: Array | int, row: int = 16) -> Array:
    """Each lane from lane `source(lane)` of its row; `outside` where that is no lane of the row."""
    result = np.broadcast_to(np.asarray(outside, x.dtype), x.shape).copy()
    for i in range(len(x)):
        place = source(i % row)
        if 0 <= place < row:
            result[i] = x[i - i % row + place]
    return result


@kernel("lanes", "u32")
def dpp_moves(a: Array) -> Array:
    masked = moved(a, lambda lane: lane - 1, outside=OLD)
    on = ((0xA >> (INDEX % 64 // 16) % 4 & 1) == 1) & ((0x6 >> INDEX % 16 // 4 & 1) == 1)
    eight = [(0x2D0DF3 >> 3 * lane) & 7 for lane in range(8)]
    return planes(
        "u4",
        moved(a, lambda lane: 3 - lane, outside=0, row=4),
        moved(a, lambda lane: lane ^ 2, outside=0, row=4),
        moved(a, lambda lane: lane + 1, outside=0),
        moved(a, lambda lane: lane + 4, outside=OLD),
        moved(a, lambda lane: lane - 2, outside=0),
        moved(a, lambda lane: lane - 8, outside=OLD),
        moved(a, lambda lane: (lane - 3) % 16, outside=0),
        moved(a, lambda lane: 15 - lane, outside=0),
        moved(a, lambda lane: 7 - lane, outside=0, row=8),
        moved(a, lambda lane: 5, outside=0),
        moved(a, lambda lane: lane ^ 10, outside=0),
        np.where(on, masked, np.uint32(OLD)),
        moved(a, lambda lane: eight[lane], outside=0, row=8),
    )


@kernel("lanes", "u32")
def dpp_scan(a: Array) -> Array:
    return np.cumsum(a.reshape(-1, 16), axis=1, dtype=np.uint32).reshape(-1)


@kernel("lanes", "f32 mid")
def dpp_float(a: Array) -> Array:
    x = a + moved(a, lambda lane: lane ^ 1, outside=0, row=4)
    x = np.maximum(x, moved(x, lambda lane: lane ^ 2, outside=0, row=4))
    result: Array = x * moved(x, lambda lane: 7 - lane, outside=0, row=8)
    return result


@kernel("lanes", "u32", "u32")
def dpp_masked(a: Array, b: Array) -> Array:
    on = (b & 1) == 1
    sent = on[INDEX ^ 3]
    y = np.where(on, np.where(sent, a[INDEX ^ 3], np.uint32(0)), np.uint32(5))
    before = moved(on.astype(np.uint32), lambda lane: lane - 1, outside=0) == 1
    z = np.where(on, np.where(before, np.roll(a, 1), np.uint32(OLD)), np.uint32(6))
    return planes("u4", y, z)


def _swizzled(x: Array, offset: int) -> Array:
    """ds_swizzle_b32: quad permutation, rotation, or and-or-xor of the lane number."""

    def source(lane: int) -> int:
        if offset >> 14 == 3:
            return (lane + (offset >> 5 & 31)) % 32 if not offset >> 10 & 1 else (lane - (offset >> 5 & 31)) % 32
        if offset >> 15:
            return lane & ~3 | offset >> 2 * (lane & 3) & 3
        return ((lane & offset & 31) | offset >> 5 & 31) ^ (offset >> 10 & 31)

    return moved(x, source, outside=0, row=32)


@kernel("lanes", "u32")
def swizzles(a: Array) -> Array:
    return planes("u4", *(_swizzled(a, offset) for offset in (0x041F, 0x7C1F, 0x00F8, 0x8039, 0x1D57, 0xC120)))


@kernel("lanes", "u32", "u32")
def permutes(a: Array, b: Array) -> Array:
    base = INDEX - INDEX % 32
    pushed = np.zeros_like(a)
    pushed[base + (INDEX % 32 * 5 + 3) % 32] = a
    row, lane = INDEX - INDEX % 16, INDEX % 16
    selects = {2: (0x76543210, 0xFEDCBA98), 3: (0x01234567, 0x89ABCDEF), 4: (0x22220000, 0xBBBB9999)}

    def taken(number: int) -> Array:
        low, high = selects[number]
        return np.array([(low | high << 32) >> 4 * n & 15 for n in range(16)])[lane]

    return planes(
        "u4",
        a[base + (b & np.uint32(31)).astype(np.int64)],
        pushed,
        a[row + taken(2)],
        a[(row ^ 16) + taken(3)],
        a[row + taken(4)],
    )


@kernel("lanes", "u32", "u32", by_wave=True)
def lane_reads(a: Array, b: Array, wave: int) -> Array:
    first = INDEX - INDEX % wave
    on = ((b & 1) == 1).reshape(-1, wave)
    chosen = np.repeat(on.argmax(axis=1), wave) + first
    named = (b[INDEX // BLOCK] & np.uint32(31)).astype(np.int64)
    last = (a[first] & np.uint32(31)).astype(np.int64)
    return planes(
        "u4",
        a[first + 5],
        a[first],
        a[first + named],
        np.where(on.reshape(-1), a[chosen], np.uint32(1)),
        b[first + last],
    )


@kernel("lanes", "u32", "u32", by_wave=True)
def ballots(a: Array, b: Array, wave: int) -> Array:
    def ballot(mask: Array) -> Array:
        bits = mask.reshape(-1, wave).astype(np.uint64) << np.arange(wave, dtype=np.uint64)
        return np.repeat(np.bitwise_or.reduce(bits, axis=1), wave)

    below = [(1 << lane) - 1 for lane in (INDEX % wave).tolist()]
    counts = [
        3 + (x & mask & 0xFFFFFFFF).bit_count() + (y & mask >> 32).bit_count()
        for x, y, mask in zip(a.tolist(), b.tolist(), below, strict=True)
    ]
    on = b % 3 == 0
    return planes(
        "u8",
        ballot((a & 1) == 1),
        np.array(counts, np.uint64),
        np.where(on, ballot(on & ((a & 2) == 2)), np.uint64(9)),
    )


@kernel("lanes", "u32", by_wave=True)
def wave_sum(a: Array, wave: int) -> Array:
    return np.repeat(a.reshape(-1, wave).sum(axis=1, dtype=np.uint32), wave)
