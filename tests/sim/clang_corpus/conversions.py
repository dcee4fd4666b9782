# SPDX-License-Identifier: Apache-2.0
"""Oracles of `conversions.hip`. Values outside the integer type have no meaning in C and are not given."""

from __future__ import annotations

import numpy as np

from tests.sim.clang_corpus.registry import Array, kernel, planes


@kernel("conversions", "f32 to int", "f64 mid")
def to_integer(a: Array, b: Array) -> Array:
    half = (a * np.float32(0.00001)).astype(np.float16)
    wide = (a * np.float32(65536)).astype(np.int64)
    unsigned = (np.abs(b) * 4096).astype(np.uint64)
    return planes(
        "i4",
        a.astype(np.int32),
        np.abs(a).astype(np.uint32).view(np.int32),
        b.astype(np.int32),
        np.abs(b).astype(np.uint32).view(np.int32),
        wide >> 8,
        unsigned >> np.uint64(4),
        half.astype(np.int16),
        np.floor(a),
    )


@kernel("conversions", "u32", "u64")
def from_integer(a: Array, b: Array) -> Array:
    halves = (a & np.uint32(0xFFF)).astype(np.int16)
    return planes(
        "f4",
        a,
        a.view(np.int32),
        b,
        b.view(np.int64),
        a.view(np.int32).astype(np.float64),
        a & np.uint32(255),
        a >> np.uint32(8) & np.uint32(255),
        a >> np.uint32(16) & np.uint32(255),
        a >> np.uint32(24),
        a.astype(np.uint16).view(np.int16),
        halves.astype(np.float16),
    )


@kernel("conversions", "u32", "u64")
def wide_from_integer(a: Array, b: Array) -> Array:
    return planes("f8", a, a.view(np.int32), b, b.view(np.int64))


@kernel("conversions", "f32", "f64", "f16")
def between_floats(a: Array, b: Array, c: Array) -> Array:
    return planes(
        "f8",
        a,
        b.astype(np.float32),
        c,
        a.astype(np.float16),
        (b * 0.25).astype(np.float32).astype(np.float16),
    )


def toward_zero(x: Array) -> Array:
    """f32 to f16 without rounding up: what overflows becomes the largest number."""
    near = x.astype(np.float16)
    bits = near.view(np.uint16).copy()
    bits[np.abs(near.astype(np.float32)) > np.abs(x)] -= np.uint16(1)
    return bits.view(np.float16)


@kernel("conversions", "f32 to int", "f32 mid")
def packed_conversions(a: Array, b: Array) -> Array:
    truncated = np.stack([toward_zero(a), toward_zero(b)], axis=1).reshape(-1).view(np.uint32)
    nearest = np.stack([a.astype(np.float16), b.astype(np.float16)], axis=1).reshape(-1).view(np.uint32)
    return planes("u4", truncated, nearest)


@kernel("conversions", "u32", "i8", "u16")
def extensions(a: Array, b: Array, c: Array) -> Array:
    return planes(
        "u4",
        a.astype(np.int8),
        a.astype(np.int16),
        (a & np.uint32(255)) + (a >> np.uint32(8) & np.uint32(0xFFFF)),
        b.astype(np.int32) * 3,
        c.astype(np.uint32) << np.uint32(4),
        a.view(np.int32).astype(np.int64) >> 36,
        a.astype(np.uint64) << np.uint64(9) >> np.uint64(32),
    )
