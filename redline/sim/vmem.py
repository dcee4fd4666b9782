# SPDX-License-Identifier: Apache-2.0
"""Vector loads and stores: global and buffer, and the parts that `flat.py` shares. Atomics are in `vmem_atomic.py`.

An address is computed for every lane, and memory sees only those of lanes that are on.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from . import elements
from .buffers import vector_in_range
from .elements import Shape, packer, rows_of, unpacker, write_lanes
from .memory import Memory
from .op import U64, Mask
from .operands import Operand, Parsed, ParseError, immediate_offset
from .registers import check_width, reader
from .state import Front
from .step import Code, MemoryRun

# Cache policy: nothing is cached here. `lds` and `tfe` change what is written and are not among these.
CACHE_POLICY = frozenset({"glc", "slc", "dlc", "th", "scope", "nv"})

NAME = re.compile(r"(global|flat|buffer)_(load|store)_(.+)$")


# D16: one half of a register, and the other half stays.
LOADS = elements.LOADS | {
    "d16_u8": Shape(1, half=0),
    "d16_i8": Shape(1, signed=True, half=0),
    "d16_b16": Shape(2, half=0),
    "d16_hi_u8": Shape(1, half=16),
    "d16_hi_i8": Shape(1, signed=True, half=16),
    "d16_hi_b16": Shape(2, half=16),
}
STORES = elements.STORES | {"d16_hi_b8": Shape(1, half=16), "d16_hi_b16": Shape(2, half=16)}

# Which lanes take part, and their addresses: bool and uint64 [wave, lane].
Address = Callable[[Front], tuple[Mask, U64]]


def compile_vmem(parsed: Parsed) -> Code | None:
    """The code of a vector load or store, None when it is not one."""
    found = NAME.match(parsed.name)
    if not found or found[1] == "flat":
        return None
    space, action, what = found.groups()
    table = LOADS if action == "load" else STORES
    if what not in table:
        return None
    shape = table[what]
    data, places = data_and_places(parsed, space, action, shape)
    if space == "buffer":
        return _buffer(parsed, action, data, shape, places)
    address = address_of(parsed, space, places)
    return Code(touch=_load(data, shape, address) if action == "load" else _store(data, shape, address))


def data_and_places(parsed: Parsed, space: str, action: str, shape: Shape) -> tuple[Operand, list[Operand]]:
    """The data register and the operands that make the address.

    A global or flat store prints its address first; everything else its data.
    """
    places = list(parsed.operands)
    if not places:
        raise ParseError("no operands")
    data = places.pop(1 if space != "buffer" and action == "store" and len(places) > 1 else 0)
    if data.kind != "v":
        raise ParseError(f"data operand {data.token!r}")
    check_width(data, shape.dwords)
    return data, places


def _buffer(parsed: Parsed, action: str, data: Operand, shape: Shape, rest: list[Operand]) -> Code:
    """Range checks are made for each dword on its own, so an access of several is several accesses of one."""
    part = Shape(4) if shape.nbytes > 4 else shape
    addresses = [buffer_address(parsed, rest, part.nbytes, 4 * dword) for dword in range(shape.dwords)]
    if action == "load":
        return Code(touch=_load_parts(data.first, part, addresses))
    stores = [_store(Operand(data.token, "v", data.first + at), part, place) for at, place in enumerate(addresses)]

    def touch(front: Front, memory: Memory) -> None:
        for store in stores:
            store(front, memory)

    return Code(touch=touch)


def address_of(parsed: Parsed, space: str, rest: list[Operand]) -> Address:
    """The address operands of a global or flat access."""
    offset = immediate_offset(parsed, CACHE_POLICY)
    if space == "flat":
        if len(rest) != 1:
            raise ParseError("a flat access has one address operand")
        return _vector_address(rest[0], offset)
    if len(rest) != 2:
        raise ParseError("a global access has an address and a base")
    place, base = rest
    if base.kind == "off":
        return _vector_address(place, offset)
    return _based_address(place, base, offset)


def _vector_address(place: Operand, offset: int) -> Address:
    if place.kind != "v":
        raise ParseError(f"address operand {place.token!r}")
    fetch, added = reader(place, "u64"), np.uint64(offset & (1 << 64) - 1)
    if offset == 0:
        return lambda front: (front.exec, fetch(front))
    return lambda front: (front.exec, fetch(front) + added)


def _based_address(place: Operand, base: Operand, offset: int) -> Address:
    """Scalar base + unsigned 32-bit lane offset + immediate."""
    if place.kind != "v" or base.kind != "s":
        raise ParseError(f"address operands {place.token!r}, {base.token!r}")
    fetch, fetch_base = reader(place, "u32"), reader(base, "u64")
    added = np.uint64(offset & (1 << 64) - 1)
    return lambda front: (front.exec, fetch(front) + (fetch_base(front) + added))


def buffer_address(parsed: Parsed, rest: list[Operand], nbytes: int, further: int = 0) -> Address:
    """`off` or a lane offset (offen), a descriptor, a scalar offset, an immediate; lanes outside drop out.

    `further` bytes are added to the offset: a later dword of a wide access.
    """
    offset_bytes = immediate_offset(parsed, CACHE_POLICY | {"offen"}) + further
    if len(rest) != 3:
        raise ParseError("a buffer access has an address, a descriptor and an offset")
    place, descriptor, scalar = rest
    check_width(descriptor, 4)
    if descriptor.kind != "s" or ("offen" in parsed.modifiers) != (place.kind == "v"):
        raise ParseError(f"address operands {place.token!r}, {descriptor.token!r}")
    constant = np.full((1, 1), offset_bytes, np.uint64)
    lane = reader(place, "u32") if place.kind == "v" else None
    uniform = reader(scalar, "u32")
    columns = slice(descriptor.first, descriptor.first + 4)

    def address(front: Front) -> tuple[Mask, U64]:
        offset = constant if lane is None else lane(front) + constant
        soffset = uniform(front).astype(np.uint64)
        inside, at = vector_in_range(front.s32[:, columns], offset, soffset, nbytes)
        return front.exec & inside, np.broadcast_to(at, front.shape)

    return address


def _load(data: Operand, shape: Shape, address: Address) -> MemoryRun:
    unpack, index, nbytes = unpacker(shape), data.first, shape.nbytes

    def touch(front: Front, memory: Memory) -> None:
        lanes, at = address(front)
        write_lanes(front, lanes, index, shape, unpack(memory.read(rows_of(front, lanes, at), nbytes)))

    return touch


def _load_parts(index: int, part: Shape, addresses: list[Address]) -> MemoryRun:
    """All parts are read before any register is written; a lane that is out of range gets 0."""
    unpack = unpacker(part)

    def touch(front: Front, memory: Memory) -> None:
        fetched = []
        for address in addresses:
            lanes, at = address(front)
            fetched.append((lanes, unpack(memory.read(at[lanes], part.nbytes))))
        for dword, (lanes, values) in enumerate(fetched):
            write_lanes(front, front.exec & ~lanes, index + dword, part, np.zeros((1, 1), np.uint32))
            write_lanes(front, lanes, index + dword, part, values)

    return touch


def _store(data: Operand, shape: Shape, address: Address) -> MemoryRun:
    pack = packer(data.first, shape)

    def touch(front: Front, memory: Memory) -> None:
        lanes, at = address(front)
        memory.write(rows_of(front, lanes, at), pack(front, lanes))

    return touch
