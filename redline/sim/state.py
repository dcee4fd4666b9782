# SPDX-License-Identifier: Apache-2.0
"""The registers of all resident waves as numpy arrays, and the `Front`: the waves that stand at one instruction.

A front is a contiguous slice of the arrays, so every register of it is a view and nothing is copied to execute.
Waves that part ways are moved apart inside the arrays (`Waves.reorder`); a boundary that already separates them
costs nothing. Knows neither instructions nor schedules: `scheduler.py` decides who runs and who is moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .op import F32, U32, U64, Array, Mask
from .operands import EXEC, SCALARS

# Registers and LDS hold this before anything writes them: visible in wrong results, and a NaN as f32 and f16.
PATTERN = 0xFFC5FEED

U8 = NDArray[np.uint8]


class Waves:
    """State of `count` resident waves. Axis order: vector registers [register, wave, lane], scalars [wave, register].

    `group` is the workgroup of each wave, numbered from 0 among the resident ones. `lds` holds `lds_bytes` for each
    workgroup, one after another.
    """

    def __init__(self, group: NDArray[np.int64], lanes: int, vgprs: int, lds_bytes: int) -> None:
        count, groups = len(group), int(group[-1]) + 1
        self.lanes, self.lds_bytes = lanes, lds_bytes
        self.vector: U32 = np.full((vgprs, count, lanes), PATTERN, np.uint32)
        self.scalar: U32 = np.full((count, SCALARS), PATTERN, np.uint32)
        self.scc: Mask = np.zeros((count, 1), np.bool_)
        self.group = group
        self.barrier_complete: Mask = np.zeros(count, np.bool_)
        self.alive: NDArray[np.int64] = np.bincount(group, minlength=groups)
        self.signalled: NDArray[np.int64] = np.zeros(groups, np.int64)
        self.lds: U32 = np.full(groups * lds_bytes // 4, PATTERN, np.uint32)

    def reorder(self, lo: int, hi: int, order: NDArray[np.int64]) -> None:
        """Move waves inside [lo, hi): place i gets the wave that stood at lo + order[i]."""
        source = order + lo
        for register in self.vector:  # one at a time: the copy in between stays in the cache
            register[lo:hi] = register[source]
        for array in (self.scalar, self.scc, self.group, self.barrier_complete):
            array[lo:hi] = array[source]


class Front:
    """The waves [lo, hi), all at `pc`. Attributes are views; the typed ones are made at first use.

    `u32 i32 f32` are [register, wave, lane]; `u16 f16` too, with the halves of a lane side by side on the last axis;
    `s32 si32 sf32 s64 s16 s8` are [wave, column]. `exec` holds the bits of the EXEC columns spread over the lanes, and
    `full` says that every lane of every wave is on. `lds_base` is where each lane's workgroup begins in the LDS array.
    """

    exec: Mask
    full: bool

    u32: U32
    i32: NDArray[np.int32]
    f32: F32
    u16: NDArray[np.uint16]
    i16: NDArray[np.int16]
    f16: NDArray[np.float16]
    s32: U32
    si32: NDArray[np.int32]
    sf32: F32
    s64: U64
    si64: NDArray[np.int64]
    s16: NDArray[np.uint16]
    s8: U8
    group: NDArray[np.int64]
    lds_base: NDArray[np.int64]

    def __init__(self, waves: Waves, lo: int, hi: int, pc: int) -> None:
        self.waves, self.lo, self.hi, self.pc = waves, lo, hi, pc
        self.count, self.lanes = hi - lo, waves.lanes
        self.shape = (hi - lo, waves.lanes)
        self.scc: Mask = waves.scc[lo:hi]
        self.exec_written()
        self.last_run = 0  # the scheduler's clock when it ran last

    def __getattr__(self, name: str) -> Array:
        """Make a view when it is first asked for."""
        make = _VIEWS.get(name)
        if make is None:
            raise AttributeError(name)
        view: Array = make(self.waves, self.lo, self.hi)
        setattr(self, name, view)
        return view

    def exec_written(self) -> None:
        """The EXEC columns of the scalar file changed: spread their bits over the lanes."""
        self.exec = self.mask(EXEC)
        self.full = bool(self.exec.all())

    def set_exec(self, mask: Mask) -> None:
        """Turn lanes on or off, one bool a lane."""
        self.exec = mask
        self.full = bool(mask.all())
        self.set_mask(EXEC, mask)

    def lanes_on(self, values: Array) -> Array:
        """The elements of a [wave, lane] array whose lanes are on, in one row."""
        return values.reshape(-1) if self.full else values[self.exec]

    def set_mask(self, column: int, mask: Mask) -> None:
        """Store one bit a lane into the scalar register (pair) at `column`."""
        packed = np.packbits(mask, axis=1, bitorder="little")
        self.s8[:, column * 4 : column * 4 + self.lanes // 8] = packed

    def mask(self, column: int) -> Mask:
        """The bits of a scalar register (pair), one bool a lane."""
        bits = self.s8[:, column * 4 : column * 4 + self.lanes // 8]
        return np.unpackbits(bits, axis=1, bitorder="little").view(np.bool_)


def _vector(kind: type[np.generic]) -> Any:
    return lambda waves, lo, hi: waves.vector.view(kind)[:, lo:hi]


def _scalar(kind: type[np.generic]) -> Any:
    return lambda waves, lo, hi: waves.scalar.view(kind)[lo:hi]


_VIEWS: dict[str, Any] = {
    "u32": _vector(np.uint32),
    "i32": _vector(np.int32),
    "f32": _vector(np.float32),
    "u16": _vector(np.uint16),
    "i16": _vector(np.int16),
    "f16": _vector(np.float16),
    "s32": _scalar(np.uint32),
    "si32": _scalar(np.int32),
    "sf32": _scalar(np.float32),
    "s64": _scalar(np.uint64),
    "si64": _scalar(np.int64),
    "s16": _scalar(np.uint16),
    "s8": _scalar(np.uint8),
    "group": lambda waves, lo, hi: waves.group[lo:hi],
    "lds_base": lambda waves, lo, hi: np.repeat(waves.group[lo:hi, None] * waves.lds_bytes, waves.lanes, axis=1),
}
