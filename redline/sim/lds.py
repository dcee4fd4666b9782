# SPDX-License-Identifier: Apache-2.0
"""DS instructions: loads, stores and atomics on the workgroup's LDS, and the lane permutations that share their unit.

Each workgroup's LDS is a range of one array; an access outside the bytes that RSRC2 gives the group is a fault, where
hardware would read 0 and drop the write. GDS is refused. The permutations are in `crosslane.py`, except swizzle.

Source: AMD's RDNA2 to RDNA4 instruction set manuals, "DS instructions".
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from . import crosslane, elements
from .atomics import ATOMICS, Atomic, act
from .elements import Packer, Shape, packer, unpacker, write_lanes
from .errors import MemoryFault
from .op import U32, Array, Mask
from .operands import Operand, Parsed, ParseError, immediate_offset, integer, only_modifiers
from .registers import Reader, check_width, reader
from .state import Front
from .step import Code, Context, Run
from .swizzle import swizzle_lanes

LOADS = elements.LOADS | {
    "u8_d16": Shape(1, half=0),
    "i8_d16": Shape(1, signed=True, half=0),
    "u16_d16": Shape(2, half=0),
    "u8_d16_hi": Shape(1, half=16),
    "i8_d16_hi": Shape(1, signed=True, half=16),
    "u16_d16_hi": Shape(2, half=16),
}
STORES = elements.STORES | {"b8_d16_hi": Shape(1, half=16), "b16_d16_hi": Shape(2, half=16)}
_TWO = re.compile(r"ds_(load|store)_2addr_(stride64_)?b(32|64)$")
_ATOMIC = re.compile(r"ds_([a-z]+(?:_num)?)(_rtn)?_([ubif](?:32|64))$")
# DS spelling -> spelling in ATOMICS
ATOMIC_NAMES = {"storexchg": "swap", "cmpstore": "cmpswap", "cmpst": "cmpswap"}
# gfx10 has the value to compare with first and the new value second, gfx11 and gfx12 the other way round.
_COMPARES_FIRST = frozenset({"cmpst"})

Places = NDArray[np.int64]  # byte positions in the LDS array, one for each lane that is on


def compile_lds(parsed: Parsed, context: Context) -> Code | None:
    """The code of a DS instruction, None when it is not one of the table."""
    name = parsed.name
    if name in PERMUTES:
        return Code(run=_permute(parsed, name, context))
    if name == "ds_swizzle_b32":
        return Code(run=_swizzle(parsed))
    if found := _TWO.match(name):
        return Code(run=_two(parsed, found[1] == "load", int(found[3]) // 8, 64 if found[2] else 1))
    action, _, what = name.removeprefix("ds_").partition("_")
    if action == "load" and what in LOADS:
        data, place = _operands(parsed, 2)
        return Code(run=_load(data, LOADS[what], reader(place, "u32"), immediate_offset(parsed)))
    if action == "store" and what in STORES:
        place, data = _operands(parsed, 2)
        return Code(run=_store(data, STORES[what], reader(place, "u32"), immediate_offset(parsed)))
    if found := _ATOMIC.match(name):
        return _atomic(parsed, found[1], found[2] is not None, found[3])
    return None


def _operands(parsed: Parsed, count: int) -> tuple[Operand, ...]:
    if len(parsed.operands) != count or any(operand.kind != "v" for operand in parsed.operands):
        raise ParseError(f"{count} vector registers are expected")
    return parsed.operands


def _reach(front: Front, fetch: Reader, offsets: tuple[int, ...], nbytes: int, access: str) -> list[Places]:
    """For each offset, where the lanes that are on access `nbytes`.

    The sum of address and offset wraps at 32 bits: LLVM gives a negative address an offset from GFX7 on
    (`llvm/test/CodeGen/AMDGPU/ds-sub-offset.ll`).
    """
    at = front.lanes_on(fetch(front)).astype(np.int64)
    limit = front.waves.lds_bytes
    reached = [at + offset if offset else at for offset in offsets]
    if len(at) and int(at.max()) + max(offsets) + nbytes > limit:
        reached = [places & 0xFFFFFFFF for places in reached]
        furthest = max(int(places.max()) for places in reached)
        if furthest + nbytes > limit:
            raise MemoryFault(furthest, nbytes, access, f"the workgroup's LDS has {limit} bytes")
    if limit < len(front.waves.lds) * 4:  # more than one workgroup is resident
        base = front.lanes_on(front.lds_base)
        reached = [places + base for places in reached]
    return reached


# Whole elements move fastest; the sixteen bytes of a complex number are only carried.
_ELEMENTS: dict[int, type[np.generic]] = {4: np.uint32, 8: np.uint64, 16: np.complex128}


def gather(front: Front, at: NDArray[np.int64], nbytes: int) -> NDArray[np.uint8]:
    lds, element = front.waves.lds, _ELEMENTS.get(nbytes)
    if element is not None and not (at & (nbytes - 1)).any():
        items: Array = lds.view(element).take(at // nbytes)
        return items.view(np.uint8).reshape(-1, nbytes)
    rows: NDArray[np.uint8] = lds.view(np.uint8)[at[:, None] + np.arange(nbytes)]
    return rows


def scatter(front: Front, at: NDArray[np.int64], rows: NDArray[np.uint8]) -> None:
    lds, nbytes = front.waves.lds, rows.shape[1]
    element = _ELEMENTS.get(nbytes)
    if element is not None and not (at & (nbytes - 1)).any():
        lds.view(element)[at // nbytes] = rows.view(element)[:, 0]
    else:
        lds.view(np.uint8)[at[:, None] + np.arange(nbytes)] = rows


def _load(data: Operand, shape: Shape, fetch: Reader, offset: int) -> Run:
    check_width(data, shape.dwords)
    unpack, index, nbytes, offsets = unpacker(shape), data.first, shape.nbytes, (offset,)

    def run(front: Front) -> None:
        (at,) = _reach(front, fetch, offsets, nbytes, "LDS read")
        write_lanes(front, front.exec, index, shape, unpack(gather(front, at, nbytes)))

    return run


def _store(data: Operand, shape: Shape, fetch: Reader, offset: int) -> Run:
    check_width(data, shape.dwords)
    pack, nbytes, offsets = packer(data.first, shape), shape.nbytes, (offset,)

    def run(front: Front) -> None:
        (at,) = _reach(front, fetch, offsets, nbytes, "LDS write")
        scatter(front, at, pack(front, front.exec))

    return run


def _two(parsed: Parsed, is_load: bool, nbytes: int, stride: int) -> Run:
    """Two elements; the offsets count elements, or 64 elements."""
    only_modifiers(parsed, frozenset({"offset0", "offset1"}))
    first, second = (integer(parsed.modifiers.get(name, "0")) for name in ("offset0", "offset1"))
    offsets, shape = (first * nbytes * stride, second * nbytes * stride), Shape(nbytes)
    if is_load:
        data, place = _operands(parsed, 2)
        check_width(data, 2 * shape.dwords)
        return _load_two(data.first, shape, reader(place, "u32"), offsets)
    place, *sources = _operands(parsed, 3)
    for source in sources:
        check_width(source, shape.dwords)
    return _store_two([packer(source.first, shape) for source in sources], nbytes, reader(place, "u32"), offsets)


def _load_two(index: int, shape: Shape, fetch: Reader, offsets: tuple[int, int]) -> Run:
    """Both are read before either register is written: the address may be one of them."""
    unpack, nbytes = unpacker(shape), shape.nbytes

    def run(front: Front) -> None:
        places = _reach(front, fetch, offsets, nbytes, "LDS read")
        values = [unpack(gather(front, at, nbytes)) for at in places]
        for number, value in enumerate(values):
            write_lanes(front, front.exec, index + number * shape.dwords, shape, value)

    return run


def _store_two(packs: list[Packer], nbytes: int, fetch: Reader, offsets: tuple[int, int]) -> Run:
    def run(front: Front) -> None:
        places = _reach(front, fetch, offsets, nbytes, "LDS write")
        for at, pack in zip(places, packs, strict=True):
            scatter(front, at, pack(front, front.exec))

    return run


def _atomic(parsed: Parsed, verb: str, returns: bool, kind: str) -> Code | None:
    atomic = ATOMICS.get(f"{ATOMIC_NAMES.get(verb, verb)}_{kind}")
    if atomic is None:
        return None
    data_count = 2 if atomic.compares else 1
    places = list(_operands(parsed, data_count + 1 + returns))
    target = places.pop(0) if returns else None
    fetch, data = reader(places[0], "u32"), places[1:]
    if verb in _COMPARES_FIRST:
        data.reverse()
    return Code(run=_atomic_run(atomic, target, fetch, immediate_offset(parsed), data))


def _atomic_run(atomic: Atomic, target: Operand | None, fetch: Reader, offset: int, data: list[Operand]) -> Run:
    shape = Shape(atomic.nbytes)
    for operand in (*data, *([target] if target else [])):
        check_width(operand, shape.dwords)
    packs, nbytes = [packer(operand.first, shape) for operand in data], atomic.nbytes

    def run(front: Front) -> None:
        (at,) = _reach(front, fetch, (offset,), nbytes, "LDS atomic")
        if not len(at):
            return
        if (at % nbytes).any():
            raise MemoryFault(int(at[0]), nbytes, "misaligned LDS atomic", "atomics are aligned to their size")
        memory = front.waves.lds.view(atomic.dtype)
        operands = tuple(pack(front, front.exec).view(atomic.dtype)[:, 0] for pack in packs)

        def put(keys: Places, values: Array) -> None:
            memory[keys // nbytes] = values

        before = act(atomic, at, operands, lambda keys: memory[keys // nbytes], put)
        if target is not None:
            write_lanes(front, front.exec, target.first, shape, before.view(np.uint32).reshape(len(at), -1))

    return run


PERMUTES = ("ds_bpermute_b32", "ds_permute_b32")


def _permute(parsed: Parsed, name: str, context: Context) -> Run:
    """Lanes exchange registers; the offset counts into the address, in bytes, four to a lane."""
    target, place, data = _operands(parsed, 3)
    offset = np.uint32(immediate_offset(parsed))
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
