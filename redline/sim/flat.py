# SPDX-License-Identifier: Apache-2.0
"""Flat accesses: each lane's address says whether it is LDS or global memory.

An address whose high half is that of `src_shared_base` is an offset into the workgroup's LDS; every other one goes to
memory, which refuses scratch addresses because nothing is allocated there. Global and buffer accesses are in `vmem.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .atomics import Atomic, act
from .elements import Shape, packer, unpacker, write_lanes
from .errors import MemoryFault
from .lds import Places, gather, scatter
from .memory import Memory
from .op import U64, Array, Mask
from .operands import APERTURES, Operand, Parsed
from .state import Front
from .step import Code, MemoryRun
from .vmem import LOADS, NAME, STORES, Address, address_of, data_and_places

_SHARED_HIGH = np.uint64(APERTURES["src_shared_base"] >> 32)


def compile_flat(parsed: Parsed) -> Code | None:
    """The code of a flat load or store, None when it is not one."""
    found = NAME.match(parsed.name)
    if not found or found[1] != "flat":
        return None
    action, what = found[2], found[3]
    shape = (LOADS if action == "load" else STORES).get(what)
    if shape is None:
        return None
    data, places = data_and_places(parsed, "flat", action, shape)
    address = address_of(parsed, "flat", places)
    return Code(touch=_load(data, shape, address) if action == "load" else _store(data, shape, address))


def _in_lds(at: U64) -> Mask:
    high: Mask = at >> np.uint64(32) == _SHARED_HIGH
    return high


def _lds_places(front: Front, lanes: Mask, at: U64, nbytes: int, access: str) -> Places:
    """Where lanes of LDS addresses access it; `at` has one address for each of `lanes`."""
    places = (at & np.uint64(0xFFFFFFFF)).astype(np.int64)
    limit = front.waves.lds_bytes
    if len(places) and int(places.max()) + nbytes > limit:
        last = int(places.max())
        raise MemoryFault(last, nbytes, access, f"a flat address; the workgroup's LDS has {limit} bytes")
    result: Places = places + front.lds_base[lanes]
    return result


def _split(lanes: Mask, at: U64) -> tuple[Mask, Mask]:
    """The lanes that go to memory, and those that go to LDS."""
    shared = _in_lds(at) & lanes
    return lanes & ~shared, shared


def _load(data: Operand, shape: Shape, address: Address) -> MemoryRun:
    unpack, index, nbytes = unpacker(shape), data.first, shape.nbytes

    def touch(front: Front, memory: Memory) -> None:
        lanes, at = address(front)
        outside, shared = _split(lanes, at)
        places = _lds_places(front, shared, at[shared], nbytes, "flat LDS read")
        from_memory = unpack(memory.read(at[outside], nbytes))
        from_lds = unpack(np.ascontiguousarray(gather(front, places, nbytes)))
        write_lanes(front, outside, index, shape, from_memory)
        write_lanes(front, shared, index, shape, from_lds)

    return touch


def _store(data: Operand, shape: Shape, address: Address) -> MemoryRun:
    pack, nbytes = packer(data.first, shape), shape.nbytes

    def touch(front: Front, memory: Memory) -> None:
        lanes, at = address(front)
        outside, shared = _split(lanes, at)
        places = _lds_places(front, shared, at[shared], nbytes, "flat LDS write")
        memory.write(at[outside], pack(front, outside))
        scatter(front, places, pack(front, shared))

    return touch


def act_on_memory(atomic: Atomic, memory: Memory, keys: U64, operands: tuple[Array, ...]) -> Array:
    """An atomic on memory; returns what stood there."""

    def fetch(places: NDArray[np.int64]) -> Array:
        return memory.read(places.view(np.uint64), atomic.nbytes).view(atomic.dtype)[:, 0]

    def put(places: NDArray[np.int64], values: Array) -> None:
        memory.write(places.view(np.uint64), values.view(np.uint8).reshape(len(places), -1))

    return act(atomic, keys.view(np.int64), operands, fetch, put)


def exchange_flat(
    atomic: Atomic, front: Front, memory: Memory, lanes: Mask, keys: U64, operands: tuple[Array, ...]
) -> Array:
    """An atomic on flat addresses, one for each of `lanes`: memory's first, then those in LDS."""
    shared = _in_lds(keys)
    before = np.empty(len(keys), atomic.dtype)
    if not shared.all():
        before[~shared] = act_on_memory(atomic, memory, keys[~shared], tuple(o[~shared] for o in operands))
    if shared.any():
        chosen = lanes.copy()
        chosen[lanes] = shared
        places = _lds_places(front, chosen, keys[shared], atomic.nbytes, "flat LDS atomic")
        before[shared] = _act_on_lds(atomic, front, places, tuple(o[shared] for o in operands))
    return before


def _act_on_lds(atomic: Atomic, front: Front, places: Places, operands: tuple[Array, ...]) -> Array:
    def fetch(at: NDArray[np.int64]) -> Array:
        return np.ascontiguousarray(gather(front, at, atomic.nbytes)).view(atomic.dtype)[:, 0]

    def put(at: NDArray[np.int64], values: Array) -> None:
        scatter(front, at, values.view(np.uint8).reshape(len(at), -1))

    return act(atomic, places, operands, fetch, put)
