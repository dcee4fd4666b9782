# SPDX-License-Identifier: Apache-2.0
"""DS instructions: loads, stores and atomics on the workgroup's LDS, and the lane permutations that share their unit.

Each workgroup's LDS is a range of one array; an access outside the bytes that RSRC2 gives the group is a fault, where
hardware would read 0 and drop the write. GDS is refused. The permutations are in `crosslane.py`, except swizzle.

Source: AMD's RDNA2 to RDNA4 instruction set manuals, "DS instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from . import crosslane
from .atomics import ATOMICS, Atomic, act
from .errors import MemoryFault
from .op import U32, Array, Mask
from .operands import Operand, Parsed, ParseError, integer
from .registers import check_width, reader
from .state import Front
from .step import Code, Context, Run
from .swizzle import swizzle_lanes
from .vmem import Shape, packer, unpacker, write_lanes

LOADS: dict[str, Shape] = {
    "u8": Shape(1),
    "i8": Shape(1, signed=True),
    "u16": Shape(2),
    "i16": Shape(2, signed=True),
    "b32": Shape(4),
    "b64": Shape(8),
    "b96": Shape(12),
    "b128": Shape(16),
    "u8_d16": Shape(1, half=0),
    "i8_d16": Shape(1, signed=True, half=0),
    "u16_d16": Shape(2, half=0),
    "u8_d16_hi": Shape(1, half=16),
    "i8_d16_hi": Shape(1, signed=True, half=16),
    "u16_d16_hi": Shape(2, half=16),
}
STORES: dict[str, Shape] = {
    "b8": Shape(1),
    "b16": Shape(2),
    "b32": Shape(4),
    "b64": Shape(8),
    "b96": Shape(12),
    "b128": Shape(16),
    "b8_d16_hi": Shape(1, half=16),
    "b16_d16_hi": Shape(2, half=16),
}
_TWO = re.compile(r"ds_(load|store)_2addr_(stride64_)?b(32|64)$")
_ATOMIC = re.compile(r"ds_([a-z]+?)(_rtn)?_([ubif](?:32|64))$")
# DS spelling -> spelling in ATOMICS
_ATOMIC_NAMES = {"storexchg": "swap", "cmpstore": "cmpswap", "cmpst": "cmpswap"}
# gfx10 has the value to compare with first and the new value second, gfx11 and gfx12 the other way round.
_COMPARES_FIRST = frozenset({"cmpst"})

Address = Callable[[Front], NDArray[np.int64]]  # bytes from the start of the workgroup's LDS, [wave, lane]


def compile_lds(parsed: Parsed, context: Context) -> Code | None:
    """The code of a DS instruction, None when it is not one of the table."""
    name = parsed.name
    if name in _PERMUTES:
        return Code(run=_permute(parsed, name, context))
    if name == "ds_swizzle_b32":
        return Code(run=_swizzle(parsed))
    if found := _TWO.match(name):
        return Code(run=_two(parsed, found[1] == "load", int(found[3]) // 8, 64 if found[2] else 1))
    action, _, what = name.removeprefix("ds_").partition("_")
    if action == "load" and what in LOADS:
        data, place = _operands(parsed, 2)
        return Code(run=_load(data, LOADS[what], _address(place, _offset(parsed))))
    if action == "store" and what in STORES:
        place, data = _operands(parsed, 2)
        return Code(run=_store(data, STORES[what], _address(place, _offset(parsed))))
    if found := _ATOMIC.match(name):
        return _atomic(parsed, found[1], found[2] is not None, found[3])
    return None


def _operands(parsed: Parsed, count: int) -> tuple[Operand, ...]:
    if len(parsed.operands) != count or any(operand.kind != "v" for operand in parsed.operands):
        raise ParseError(f"{count} vector registers are expected")
    return parsed.operands


def _offset(parsed: Parsed) -> int:
    if unknown := set(parsed.modifiers) - {"offset"}:
        raise ParseError(f"modifier {sorted(unknown)[0]!r}")
    return integer(parsed.modifiers.get("offset", "0"))


def _address(place: Operand, offset: int) -> Address:
    """The register's unsigned 32 bits plus the offset, without wrapping."""
    fetch, added = reader(place, "u32"), np.int64(offset)
    return lambda front: fetch(front).astype(np.int64) + added


def _check(front: Front, at: NDArray[np.int64], nbytes: int, access: str) -> None:
    limit = front.waves.lds_bytes
    if len(at) and int(at.max()) + nbytes > limit:
        first = int(at[np.argmax(at + nbytes > limit)])
        raise MemoryFault(first, nbytes, access, f"the workgroup's LDS has {limit} bytes")


def _places(front: Front, address: Address, nbytes: int, access: str) -> NDArray[np.int64]:
    """Byte positions in the LDS array of the lanes that are on."""
    lanes = front.exec
    at = address(front)[lanes]
    _check(front, at, nbytes, access)
    return at + np.broadcast_to(front.lds_base, front.shape)[lanes]


def _gather(front: Front, at: NDArray[np.int64], nbytes: int) -> NDArray[np.uint8]:
    lds = front.waves.lds
    if nbytes % 4 == 0 and not (at & 3).any():
        words: U32 = lds[(at >> 2)[:, None] + np.arange(nbytes // 4)]
        return words.view(np.uint8)
    rows: NDArray[np.uint8] = lds.view(np.uint8)[at[:, None] + np.arange(nbytes)]
    return rows


def _scatter(front: Front, at: NDArray[np.int64], rows: NDArray[np.uint8]) -> None:
    lds, nbytes = front.waves.lds, rows.shape[1]
    if nbytes % 4 == 0 and not (at & 3).any():
        lds[(at >> 2)[:, None] + np.arange(nbytes // 4)] = rows.view(np.uint32)
    else:
        lds.view(np.uint8)[at[:, None] + np.arange(nbytes)] = rows


def _load(data: Operand, shape: Shape, address: Address) -> Run:
    check_width(data, shape.dwords)
    unpack, index, nbytes = unpacker(shape), data.first, shape.nbytes

    def run(front: Front) -> None:
        rows = _gather(front, _places(front, address, nbytes, "LDS read"), nbytes)
        write_lanes(front, front.exec, index, shape, unpack(rows))

    return run


def _store(data: Operand, shape: Shape, address: Address) -> Run:
    check_width(data, shape.dwords)
    pack, nbytes = packer(data.first, shape), shape.nbytes

    def run(front: Front) -> None:
        at = _places(front, address, nbytes, "LDS write")
        _scatter(front, at, pack(front, front.exec))

    return run


def _two(parsed: Parsed, is_load: bool, nbytes: int, stride: int) -> Run:
    """Two elements; the offsets count elements, or 64 elements."""
    if unknown := set(parsed.modifiers) - {"offset0", "offset1"}:
        raise ParseError(f"modifier {sorted(unknown)[0]!r}")
    offsets = [integer(parsed.modifiers.get(name, "0")) * nbytes * stride for name in ("offset0", "offset1")]
    shape, dwords = Shape(nbytes), nbytes // 4
    if is_load:
        data, place = _operands(parsed, 2)
        check_width(data, 2 * dwords)
        return _load_two(data.first, shape, [_address(place, offset) for offset in offsets])
    place, first, second = _operands(parsed, 3)
    runs = [_store(data, shape, _address(place, offset)) for data, offset in zip((first, second), offsets, strict=True)]

    def run(front: Front) -> None:
        for store in runs:
            store(front)

    return run


def _load_two(index: int, shape: Shape, addresses: list[Address]) -> Run:
    """Both addresses are read before either register is written: the address may be one of them."""
    unpack, nbytes = unpacker(shape), shape.nbytes

    def run(front: Front) -> None:
        places = [_places(front, address, nbytes, "LDS read") for address in addresses]
        values = [unpack(_gather(front, at, nbytes)) for at in places]
        for number, value in enumerate(values):
            write_lanes(front, front.exec, index + number * shape.dwords, shape, value)

    return run


def _atomic(parsed: Parsed, verb: str, returns: bool, kind: str) -> Code | None:
    atomic = ATOMICS.get(f"{_ATOMIC_NAMES.get(verb, verb)}_{kind}")
    if atomic is None:
        return None
    data_count = 2 if atomic.compares else 1
    places = list(_operands(parsed, data_count + 1 + returns))
    target = places.pop(0) if returns else None
    address, data = _address(places[0], _offset(parsed)), places[1:]
    if verb in _COMPARES_FIRST:
        data.reverse()
    return Code(run=_atomic_run(atomic, target, address, data))


def _atomic_run(atomic: Atomic, target: Operand | None, address: Address, data: list[Operand]) -> Run:
    shape = Shape(atomic.nbytes)
    for operand in (*data, *([target] if target else [])):
        check_width(operand, shape.dwords)
    packs, nbytes = [packer(operand.first, shape) for operand in data], atomic.nbytes

    def run(front: Front) -> None:
        at = _places(front, address, nbytes, "LDS atomic")
        if not len(at):
            return
        if (at % nbytes).any():
            raise MemoryFault(int(at[0]), nbytes, "misaligned LDS atomic")
        memory = front.waves.lds.view(atomic.dtype)
        operands = tuple(pack(front, front.exec).view(atomic.dtype)[:, 0] for pack in packs)

        def put(keys: NDArray[np.int64], values: Array) -> None:
            memory[keys // nbytes] = values

        before = act(atomic, at, operands, lambda keys: memory[keys // nbytes], put)
        if target is not None:
            write_lanes(front, front.exec, target.first, shape, before.view(np.uint32).reshape(len(at), -1))

    return run


_PERMUTES = ("ds_bpermute_b32", "ds_permute_b32")


def _permute(parsed: Parsed, name: str, context: Context) -> Run:
    """Lanes exchange registers; the offset counts into the address, in bytes, four to a lane."""
    target, place, data = _operands(parsed, 3)
    offset = np.uint32(_offset(parsed))
    fetch, fetch_data, index = reader(place, "u32"), reader(data, "u32"), target.first
    wave, halves = context.wave, context.gen.bpermute_per_half
    function = crosslane.bpermute if name == "ds_bpermute_b32" else crosslane.permute

    def run(front: Front) -> None:
        value = function(fetch(front) + offset, fetch_data(front), front.exec, wave=wave, halves=halves)
        np.copyto(front.u32[index], value, where=front.exec)

    return run


def _swizzle(parsed: Parsed) -> Run:
    """A fixed exchange inside each 32 lanes; a lane that is off gives 0."""
    target, source = _operands(parsed, 2)
    if set(parsed.modifiers) != {"offset"}:
        raise ParseError("a swizzle has an offset and no other modifier")
    lanes = swizzle_lanes(parsed.modifiers["offset"])
    fetch, index = reader(source, "u32"), target.first

    def run(front: Front) -> None:
        value, on = fetch(front), front.exec
        source_lane = np.concatenate([lanes + base for base in range(0, front.lanes, 32)])
        moved: U32 = value[:, source_lane]
        sent: Mask = on[:, source_lane]
        np.copyto(front.u32[index], np.where(sent, moved, np.uint32(0)), where=on)

    return run
