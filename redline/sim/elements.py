# SPDX-License-Identifier: Apache-2.0
"""What one lane moves between memory and its registers: sizes and names, bytes to dwords, dwords to bytes.

Shared by every address space (`vmem.py`, `flat.py`, `vmem_atomic.py`, `lds.py`). Knows no addresses and touches no
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .op import U32, Array, Mask
from .state import Front


@dataclass(frozen=True)
class Shape:
    """What moves between memory and registers. `half`: None for whole registers, else the first bit of 16."""

    nbytes: int
    signed: bool = False
    half: int | None = None

    @property
    def dwords(self) -> int:
        return max(1, self.nbytes // 4)


# Loads and stores of whole elements, the same names in every address space. The spellings of 16-bit halves differ, so
# the files of the spaces add their own.
LOADS: dict[str, Shape] = {
    "u8": Shape(1),
    "i8": Shape(1, signed=True),
    "u16": Shape(2),
    "i16": Shape(2, signed=True),
    "b32": Shape(4),
    "b64": Shape(8),
    "b96": Shape(12),
    "b128": Shape(16),
}
STORES: dict[str, Shape] = {
    "b8": Shape(1),
    "b16": Shape(2),
    "b32": Shape(4),
    "b64": Shape(8),
    "b96": Shape(12),
    "b128": Shape(16),
}

Packer = Callable[[Front, Mask], NDArray[np.uint8]]


def unpacker(shape: Shape) -> Callable[[NDArray[np.uint8]], U32]:
    """Bytes from memory to register dwords [row, dword]; narrow values are extended."""
    if shape.nbytes >= 4:
        return lambda rows: rows.view(np.uint32)
    kind = "i" if shape.signed else "u"
    narrow, wide = np.dtype(f"{kind}{shape.nbytes}"), np.dtype(f"{kind}4")
    return lambda rows: rows.view(narrow).astype(wide).view(np.uint32)


def write_lanes(front: Front, lanes: Mask, index: int, shape: Shape, values: U32) -> None:
    """Row i of `values` goes to the i-th lane that is on; one row serves all lanes."""
    if shape.half is not None:
        front.u16[index][:, shape.half // 16 :: 2][lanes] = values[:, 0].astype(np.uint16)
        return
    for dword in range(shape.dwords):
        if front.full and lanes is front.exec:
            front.u32[index + dword].reshape(-1)[...] = values[:, dword]
        else:
            front.u32[index + dword][lanes] = values[:, dword]


def rows_of(front: Front, lanes: Mask, values: Array) -> Array:
    """The elements of [wave, lane] that take part, in one row."""
    return values.reshape(-1) if front.full and lanes is front.exec else values[lanes]


def packer(index: int, shape: Shape) -> Packer:
    """Register contents of the lanes that are on, as bytes for memory [row, byte]."""
    shift, nbytes = np.uint32(shape.half or 0), shape.nbytes

    def pack(front: Front, lanes: Mask) -> NDArray[np.uint8]:
        columns = [rows_of(front, lanes, front.u32[index + dword]) for dword in range(shape.dwords)]
        if shift:
            columns[0] = columns[0] >> shift
        if nbytes == 4:
            return columns[0].view(np.uint8).reshape(-1, 4)
        table = np.stack(columns, axis=1)
        return np.ascontiguousarray(table.view(np.uint8)[:, :nbytes])

    return pack
