# SPDX-License-Identifier: Apache-2.0
"""Scalar loads: one address a wave, straight into scalar registers.

Writes nothing to memory: scalar stores and atomics (gfx10) are refused with every other unknown name. What a buffer
descriptor allows is said by `buffers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .buffers import scalar_in_range
from .memory import Memory
from .op import U32, U64
from .operands import SCALARS, Operand, Parsed, ParseError, immediate_offset, integer
from .registers import Reader, check_width, reader
from .state import Front
from .step import Code, MemoryRun

_LOAD = re.compile(r"s_load_b(32|64|96|128|256|512)$")
_BUFFER = re.compile(r"s_buffer_load_b(32|64|96|128|256|512)$")
_NARROW = re.compile(r"s_load_([ui])(8|16)$")
# Cache policy: nothing is cached here.
_NO_EFFECT = frozenset({"glc", "dlc", "th", "scope", "nv"})


def compile_smem(parsed: Parsed) -> Code | None:
    """The code of a scalar load, None when it is not one."""
    if found := _LOAD.match(parsed.name):
        return Code(touch=_wide(parsed, int(found[1]) // 8))
    if found := _BUFFER.match(parsed.name):
        return Code(touch=_buffer(parsed, int(found[1]) // 8))
    if found := _NARROW.match(parsed.name):
        return Code(touch=_narrow(parsed, np.dtype(f"{found[1]}{int(found[2]) // 8}")))
    return None


def _places(parsed: Parsed) -> tuple[Operand, Operand, Callable[[Front], U64]]:
    """Destination, base, and what is added to the base: an optional register and an immediate."""
    if len(parsed.operands) != 3:
        raise ParseError(f"{len(parsed.operands)} operands where 3 are expected")
    destination, base, offset = parsed.operands
    if destination.kind != "s" or base.kind != "s":
        raise ParseError("destination and base of a scalar load are scalar registers")
    constant = immediate_offset(parsed, _NO_EFFECT)
    if offset.kind == "const":
        constant += integer(offset.token)
    elif offset.kind not in ("s", "null"):
        raise ParseError(f"offset {offset.token!r}")
    added = np.full((1, 1), constant & (1 << 64) - 1, np.uint64)
    if offset.kind != "s":
        return destination, base, lambda front: added
    fetch = reader(offset, "u32")
    return destination, base, lambda front: fetch(front) + added


def _address(base: Operand, offset: Callable[[Front], U64], granule: int) -> Callable[[Front], U64]:
    """base + offset; the low bits are dropped."""
    fetch: Reader = reader(base, "u64")
    aligned = np.uint64((1 << 64) - granule)

    def address(front: Front) -> U64:
        total: U64 = (fetch(front) + offset(front)) & aligned
        return total[:, 0]

    return address


def _columns(destination: Operand, dwords: int) -> tuple[slice, slice]:
    check_width(destination, dwords)
    if destination.first + dwords > SCALARS - 2:  # a load into EXEC would have to spread its bits
        raise ParseError(f"destination {destination.token} of a scalar load")
    return slice(None), slice(destination.first, destination.first + dwords)


def _wide(parsed: Parsed, nbytes: int) -> MemoryRun:
    destination, base, offset = _places(parsed)
    address, place = _address(base, offset, 4), _columns(destination, nbytes // 4)

    def touch(front: Front, memory: Memory) -> None:
        at = address(front)
        if (at == at[0]).all():  # mostly all waves want the same, as with kernel arguments
            front.s32[place] = np.frombuffer(memory.bytes_at(int(at[0]), nbytes), np.uint32)
        else:
            front.s32[place] = memory.read(at, nbytes).view(np.uint32)

    return touch


def _narrow(parsed: Parsed, dtype: np.dtype[np.integer]) -> MemoryRun:
    destination, base, offset = _places(parsed)
    address, place = _address(base, offset, dtype.itemsize), _columns(destination, 1)
    wide = np.int32 if dtype.kind == "i" else np.uint32

    def touch(front: Front, memory: Memory) -> None:
        value = memory.read(address(front), dtype.itemsize).view(dtype)
        front.s32[place] = value.astype(wide).view(np.uint32)

    return touch


def _buffer(parsed: Parsed, nbytes: int) -> MemoryRun:
    """Dwords outside the buffer read 0; the offset is aligned down to a dword."""
    destination, base, offset = _places(parsed)
    check_width(base, 4)
    place = _columns(destination, nbytes // 4)
    descriptor_at = slice(base.first, base.first + 4)
    steps = np.arange(0, nbytes, 4, dtype=np.uint64)

    def touch(front: Front, memory: Memory) -> None:
        descriptor = front.s32[:, descriptor_at]
        at = (offset(front) & np.uint64(0xFFFFFFFC)) + steps
        allowed, address = scalar_in_range(descriptor, at)
        values: U32 = np.zeros((front.count, nbytes // 4), np.uint32)
        values[allowed] = memory.read(address[allowed], 4).view(np.uint32)[:, 0]
        front.s32[place] = values

    return touch
