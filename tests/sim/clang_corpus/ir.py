# SPDX-License-Identifier: Apache-2.0
"""Oracles of `kernels.ll`."""

from __future__ import annotations

import numpy as np

from tests.sim.clang_corpus.floating import fused, no_signals
from tests.sim.clang_corpus.integer import M32, each, saturated, signed, words
from tests.sim.clang_corpus.registry import BLOCK, ITEMS, Array, kernel, planes


@kernel("ir", "u32", "u32")
def ir_integer(a: Array, b: Array) -> Array:
    return words(
        32,
        (a, b),
        lambda x, y: min(x + y, M32),
        lambda x, y: saturated(signed(x) - signed(y), -1 << 31, (1 << 31) - 1),
        lambda x, y: x + y & M32 ^ x + y >> 32,
        lambda x, y: x << 9 | y >> 23,
        lambda x, y: x.bit_count(),
        lambda x, y: max(signed(x), signed(y)),
    )


def _saturating(x: float, low: int, high: int) -> int:
    return 0 if np.isnan(x) else low if x <= low else high if x >= high else int(x)


@kernel("ir", "f32", "f64")
def ir_saturating(a: Array, b: Array) -> Array:
    def convert(values: Array, low: int, high: int) -> Array:
        return np.array([_saturating(x, low, high) & M32 for x in values.tolist()], np.uint32)

    low, high = -1 << 31, (1 << 31) - 1
    clean = no_signals(a).view(np.uint32)
    return planes("u4", convert(a, low, high), convert(a, 0, M32), convert(b, low, high), clean)


@kernel("ir", "f32", "f32")
def ir_float(a: Array, b: Array) -> Array:
    return planes("f4", a + b, a * b, fused(a, b, np.full_like(a, 1.5)), a / b)


@kernel("ir", "u32", "u32")
def ir_atomics(a: Array, b: Array) -> Array:
    up = np.where(a >= b, np.uint32(0), a + np.uint32(1))
    down = np.where((up == 0) | (up > a), a, up - np.uint32(1))
    last = ~(down & b)
    return planes("u4", last, a, up, down, last)


@kernel("ir", "u32")
def ir_lds(a: Array) -> Array:
    return a.reshape(-1, BLOCK)[:, ::-1].reshape(-1)


@kernel("ir", "u32")
def ir_loop(a: Array) -> Array:
    def turn(x: int) -> int:
        result = x
        for k in range(max(x & 15, 1)):
            result = result * 33 + k
        return result

    return each("u4", 32, turn, a)


@kernel("ir", "u32")
def ir_scalar_buffer(a: Array) -> Array:
    inside = np.concatenate([a[:16], np.zeros(16, np.uint32)])
    group = np.arange(ITEMS) // BLOCK * 5
    result: Array = inside[group] + inside[group + 3] + (np.arange(ITEMS) % BLOCK).astype(np.uint32)
    return result
