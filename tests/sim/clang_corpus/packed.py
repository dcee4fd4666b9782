# SPDX-License-Identifier: Apache-2.0
"""Oracles of `packed.hip`: arrays of single halves, low half first."""

from __future__ import annotations

import numpy as np

from tests.sim.clang_corpus.floating import fused, maximum, minimum, no_signals
from tests.sim.clang_corpus.registry import Array, kernel


def _swapped(x: Array) -> Array:
    return x.reshape(-1, 2)[:, ::-1].reshape(-1)


def _doubled(x: Array, half: int) -> Array:
    return np.repeat(x.reshape(-1, 2)[:, half], 2)


@kernel("packed", "f16x2", "f16x2", "f16x2")
def packed_f16(a: Array, b: Array, c: Array) -> Array:
    x, y = no_signals(a), no_signals(b)
    results = (
        a + b,
        a - b,
        a * b,
        fused(a, b, c),
        minimum(x, y),
        maximum(x, y),
        _swapped(a) + b,
        a * _doubled(b, 0),
        fused(-a, _doubled(b, 1), _swapped(c)),
        a + np.float16(1.5),
    )
    return np.concatenate(results).astype(np.float16)


@kernel("packed", "u16x2", "u16x2", "u16x2")
def packed_i16(a: Array, b: Array, c: Array) -> Array:
    p, q, n = a.view(np.int16), b.view(np.int16), c & np.uint16(15)
    total = a.astype(np.int32) + b
    less = p.astype(np.int32) - q
    results = (
        a + b,
        a - b,
        a * b,
        a * b + c,
        a << n,
        a >> n,
        p >> n.view(np.int16),
        np.minimum(a, b),
        np.maximum(a, b),
        np.minimum(p, q),
        np.maximum(p, q),
        np.minimum(total, 0xFFFF),
        np.clip(less, -0x8000, 0x7FFF),
        _swapped(a) + _doubled(b, 0),
        a & np.uint16(0xFF) | _swapped(b),
    )
    return np.concatenate([result.astype(np.uint16) for result in results])


def _parts(x: Array, bits: int, signed: bool) -> list[Array]:
    """The fields of each word, low ones first, as int64."""
    mask, sign = (1 << bits) - 1, 1 << bits - 1
    fields = [x.astype(np.int64) >> shift & mask for shift in range(0, 32, bits)]
    return [(field ^ sign) - sign for field in fields] if signed else fields


def _dot(a: Array, b: Array, c: Array, bits: int, signs: tuple[bool, bool]) -> Array:
    pairs = zip(_parts(a, bits, signs[0]), _parts(b, bits, signs[1]), strict=True)
    return (sum(x * y for x, y in pairs) + c.astype(np.int64)).astype(np.uint32)


@kernel("packed", "u32", "u32", "u32")
def dot_integer(a: Array, b: Array, c: Array) -> Array:
    kinds = ((8, (False, False)), (8, (True, True)), (8, (True, False)), (4, (False, False)), (4, (True, True)))
    return np.concatenate([_dot(a, b, c, bits, signs) for bits, signs in kinds])


@kernel("packed", "f16x2 small", "f16x2 small", "f32 small")
def dot_float(a: Array, b: Array, c: Array) -> Array:
    products = (a.astype(np.float32) * b.astype(np.float32)).reshape(-1, 2)
    result: Array = products.sum(axis=1) + c
    return result
