# SPDX-License-Identifier: Apache-2.0
"""Oracles of `control.hip`: the same program, one work-item after another."""

from __future__ import annotations

import numpy as np

from tests.sim.clang_corpus.integer import M32, each
from tests.sim.clang_corpus.registry import BLOCK, Array, kernel


@kernel("control", "u32")
def collatz(a: Array) -> Array:
    def steps(x: int) -> int:
        x, count = x % 1000 + 1, 0
        while x != 1:
            x, count = (3 * x + 1 if x & 1 else x >> 1), count + 1
        return count

    return each("u4", 32, steps, a)


@kernel("control", "u32", "u32")
def many_ways(a: Array, b: Array) -> Array:
    def way(x: int, y: int) -> int:
        which = x % 7
        if which == 0:
            return y * 3 + 1
        if which in (1, 2):
            y = y ^ 0x5555 if which == 1 else y
            return y << 3 | y >> 29
        if which == 3:
            return y - x
        if which == 5:
            for k in range(x & 15):
                y = y * 5 + k & M32
            return y
        return ~y

    return each("u4", 32, way, a, b)


@kernel("control", "u32")
def early_return(a: Array) -> Array:
    def search(x: int) -> int:
        if x % 3 == 0:
            return 7
        k = 0
        while True:
            x = x * 1664525 + 1013904223 & M32
            if x % 5 != 0:
                if k > 20 or x % 11 == 3:
                    return x
                if x % 13 == 1:
                    return k
            k += 1

    return each("u4", 32, search, a)


@kernel("control", "u32", "u32")
def nested(a: Array, b: Array) -> Array:
    def total(x: int, y: int) -> int:
        found = 0
        for k in range(x % 9):
            for m in range(k, y % 7):
                found = found + k * m + 1 if (k ^ m) & 1 else found ^ m << k
        return found

    return each("u4", 32, total, a, b)


@kernel("control", "u32", "u32")
def uniform_ways(a: Array, b: Array) -> Array:
    out = b.copy()
    for group, part in enumerate(out.reshape(-1, BLOCK)):
        turns = int(a[group] % 6)
        if group & 1:
            for k in range(turns):
                part[:] = part * np.uint32(3) + np.uint32(k)
        elif turns > 2:
            part ^= np.uint32(0xFF00)
        else:
            part += np.uint32(turns)
    return out


def _mixed(x: int, y: int) -> int:
    for k in range(y & 7):
        x = x * 33 + k & M32
    return x ^ y


@kernel("control", "u32", "u32")
def calls(a: Array, b: Array) -> Array:
    def twice(x: int, y: int) -> int:
        first = _mixed(x, y)
        return _mixed(first, x ^ 5) if first & 1 else first

    return each("u4", 32, twice, a, b)


@kernel("control", "f32 mid", "f32 mid")
def call_floats(a: Array, b: Array) -> Array:
    result: Array = np.sqrt(a * a + b * b)
    return result


@kernel("control", "u32")
def call_by_pointer(a: Array) -> Array:
    return each("u4", 32, lambda x: x * 3 + 1 if x & 1 else x ^ 0x1234, a)
