# SPDX-License-Identifier: Apache-2.0
"""One entry a kernel: what it reads, what it writes, and its oracle. Makes inputs too; runs nothing.

Each kernel has 512 work-items in workgroups of 128 and takes its output first, then its inputs. An oracle gets the
inputs and returns the whole output. Inputs hold special values on purpose: NaNs of both kinds, zeros of both signs,
denormals, infinities, halfway cases, the ends of each integer type.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

ITEMS, BLOCK = 512, 128

Array = NDArray[Any]
Oracle = Callable[..., Array]


@dataclass(frozen=True)
class Kernel:
    """`inputs` name their kind in `_MAKERS`. `fill` is the byte that the output holds before.

    `tolerance` 0: to the bit, a NaN for a NaN. `by_wave`: the oracle also takes the wave size.
    """

    name: str
    source: str
    inputs: tuple[str, ...]
    oracle: Oracle
    fill: int = 0xCD
    tolerance: float = 0.0
    by_wave: bool = False

    def data(self, seed: int) -> tuple[Any, ...]:
        """The same inputs for the same seed, whatever other kernels there are."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        return tuple(_MAKERS[kind](rng) for kind in self.inputs)

    @cache  # noqa: B019 - the registry keeps its kernels for ever
    def expected(self, seed: int, wave: int) -> Array:
        """The output for the inputs of `seed`, as the oracle has it."""
        with np.errstate(all="ignore"):
            extra = {"wave": wave} if self.by_wave else {}
            return np.ascontiguousarray(self.oracle(*self.data(seed), **extra))


KERNELS: dict[str, Kernel] = {}


def kernel(source: str, *inputs: str, **options: Any) -> Callable[[Oracle], Oracle]:
    """Enter the function below as the oracle of the kernel of the same name."""

    def enter(oracle: Oracle) -> Oracle:
        name = oracle.__name__
        known = KERNELS.get(name)  # pytest may import a file twice, for its doctests
        assert known is None or known.oracle.__code__.co_filename == oracle.__code__.co_filename, name
        KERNELS[name] = Kernel(name, source, inputs, oracle, **options)
        return oracle

    return enter


def planes(dtype: str, *values: Any) -> Array:
    """OUT(0), OUT(1), ... one after another."""
    return np.concatenate([np.broadcast_to(np.asarray(value), (ITEMS,)).astype(dtype) for value in values])


def _integers(bits: int, signed: bool = False, count: int = ITEMS) -> Callable[[np.random.Generator], Array]:
    def make(rng: np.random.Generator) -> Array:
        edges = [0, 1, 2, 3, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1, (1 << bits) - 2, 1 << bits // 2]
        values = rng.integers(0, 1 << bits, count, np.uint64).astype(f"u{bits // 8}")
        small = rng.random(count) < 0.2
        values[small] >>= values.dtype.type(bits // 2)
        values[rng.random(count) < 0.05] *= values.dtype.type((1 << bits) - 1)
        chosen = rng.random(count) < 0.15
        values[chosen] = np.array(edges, values.dtype)[rng.integers(0, len(edges), int(chosen.sum()))]
        return values.view(f"i{bits // 8}") if signed else values

    return make


# Unsigned bits of special values: zeros, denormals, one and its neighbours, halves, largest, infinities, NaNs.
_SPECIAL: dict[int, str] = {
    16: "0000 0001 03ff 0400 3c00 3bff 3c01 3800 3e00 4100 7bff 7c00 7c01 7e00",
    32: "00000000 00000001 007fffff 00800000 3f800000 3f7fffff 3f800001 3f000000 3fc00000 40200000 7f7fffff "
    "7f800000 7f800001 7fc00000 38000001 33800000 477ff000",
    64: "0000000000000000 0000000000000001 000fffffffffffff 0010000000000000 3ff0000000000000 3ff0000000000001 "
    "3fe0000000000000 3ff8000000000000 4004000000000000 7fefffffffffffff 7ff0000000000000 7ff0000000000001 "
    "7ff8000000000000 36a0000000000001 3810000010000000",
}


def _floats(bits: int, span: int, special: float = 0.25, count: int = ITEMS) -> Callable[[np.random.Generator], Array]:
    """Normal values within 2^+-span, and a share of special ones of both signs."""

    def make(rng: np.random.Generator) -> Array:
        dtype = np.dtype(f"f{bits // 8}")
        values = (rng.normal(size=count) * 2.0 ** rng.uniform(-span, span, count)).astype(dtype)
        kinds = np.array([int(word, 16) for word in _SPECIAL[bits].split()], f"u{bits // 8}")
        signs = kinds | kinds.dtype.type(1 << bits - 1)
        pool = np.concatenate([kinds, signs]).view(dtype)
        chosen = rng.random(count) < special
        values.view(kinds.dtype)[chosen] = pool.view(kinds.dtype)[rng.integers(0, len(pool), int(chosen.sum()))]
        return values

    return make


def _pairs(single: Callable[[np.random.Generator], Array]) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.stack([single(rng), single(rng)], axis=1).reshape(-1)


def _small_halves(rng: np.random.Generator) -> Array:
    return rng.integers(-16, 17, 2 * ITEMS).astype(np.float16)


_MAKERS: dict[str, Callable[[np.random.Generator], Any]] = {
    "u8": _integers(8),
    "u8x4": _integers(8, count=4 * ITEMS),
    "i8": _integers(8, signed=True),
    "u16": _integers(16),
    "i16": _integers(16, signed=True),
    "u32": _integers(32),
    "u32x2": _integers(32, count=2 * ITEMS),
    "u32x4": _integers(32, count=4 * ITEMS),
    "i32": _integers(32, signed=True),
    "u64": _integers(64),
    "f16": _floats(16, 4),
    "f32": _floats(32, 12),
    "f32 mid": _floats(32, 8, special=0.0),
    "f32 to int": _floats(32, 20, special=0.0),
    "f64": _floats(64, 30),
    "f64 mid": _floats(64, 20, special=0.0),
    "f16x2": _pairs(_floats(16, 3)),
    "f16x2 small": _small_halves,
    "f32 small": lambda rng: rng.integers(-64, 65, ITEMS).astype(np.float32),
    "u16x2": _pairs(_integers(16)),
    "u8 scalar": lambda rng: np.uint8(rng.integers(1, 256)),
    "i16 scalar": lambda rng: np.int16(rng.integers(-5000, 5000)),
    "payload": lambda rng: np.void(rng.bytes(24)),
}
