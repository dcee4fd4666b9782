# SPDX-License-Identifier: Apache-2.0
"""Atomics on memory: global, flat and buffer. What each operation does is in `atomics.py`, addresses in `vmem.py`."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .atomics import ATOMICS, Atomic
from .elements import Shape, packer, write_lanes
from .errors import MemoryFault
from .flat import act_on_memory, exchange_flat
from .memory import Memory
from .op import U64, Array, Mask
from .operands import Operand, Parsed, ParseError
from .registers import check_width
from .state import Front
from .step import Code, MemoryRun
from .vmem import Address, address_of, buffer_address

# (atomic, front, memory, lanes, addresses and operands of those lanes) -> what stood there before
Exchange = Callable[[Atomic, Front, Memory, Mask, U64, tuple[Array, ...]], Array]

_NAME = re.compile(r"(global|flat|buffer)_atomic_(.+)$")


def compile_vmem_atomic(parsed: Parsed) -> Code | None:
    """The code of an atomic, None when the table lacks it."""
    found = _NAME.match(parsed.name)
    atomic = ATOMICS.get(found[2]) if found else None
    if not found or atomic is None:
        return None
    space, returns, places = found[1], _returns(parsed), list(parsed.operands)
    target: Operand | None = None
    if space == "buffer":
        data = places.pop(0)
        target = _first_half(data, atomic) if returns else None
    else:
        target = places.pop(0) if returns else None
        if len(places) < 2:
            raise ParseError("an atomic has an address and data")
        data = places.pop(1)
    _check(data, target, atomic)
    if space == "buffer":
        return Code(touch=_run(atomic, target, data, buffer_address(parsed, places, atomic.nbytes)))
    exchange = exchange_flat if space == "flat" else _exchange
    return Code(touch=_run(atomic, target, data, address_of(parsed, space, places), exchange))


def _returns(parsed: Parsed) -> bool:
    """Whether the old value comes back: glc on gfx10 and gfx11, a temporal hint on gfx12."""
    return "glc" in parsed.modifiers or "RETURN" in parsed.modifiers.get("th", "")


def _first_half(data: Operand, atomic: Atomic) -> Operand:
    """A buffer atomic returns into its data registers; into the first half of them when there are two values."""
    return Operand(data.token, data.kind, data.first, data.count // 2 if atomic.compares else data.count)


def _check(data: Operand, target: Operand | None, atomic: Atomic) -> None:
    dwords = atomic.nbytes // 4
    if data.kind != "v" or (target is not None and target.kind != "v"):
        raise ParseError("data and result of an atomic are vector registers")
    check_width(data, 2 * dwords if atomic.compares else dwords)
    if target is not None:
        check_width(target, dwords)


def _exchange(
    atomic: Atomic, front: Front, memory: Memory, lanes: Mask, keys: U64, operands: tuple[Array, ...]
) -> Array:
    return act_on_memory(atomic, memory, keys, operands)


def _run(
    atomic: Atomic, target: Operand | None, data: Operand, address: Address, exchange: Exchange = _exchange
) -> MemoryRun:
    """New value first in the data registers, then the value to compare with."""
    shape, nbytes = Shape(atomic.nbytes), atomic.nbytes
    packs = [packer(data.first + shape.dwords * number, shape) for number in range(2 if atomic.compares else 1)]

    def touch(front: Front, memory: Memory) -> None:
        lanes, at = address(front)
        keys = at[lanes]
        if (keys % np.uint64(nbytes)).any():
            raise MemoryFault(int(keys[0]), nbytes, "misaligned atomic", "atomics are aligned to their size")
        before: Array = np.zeros(0, atomic.dtype)
        if len(keys):
            operands = tuple(pack(front, lanes).view(atomic.dtype)[:, 0] for pack in packs)
            before = exchange(atomic, front, memory, lanes, keys, operands)
        if target is not None:
            if lanes is not front.exec:
                write_lanes(front, front.exec & ~lanes, target.first, shape, np.zeros((1, shape.dwords), np.uint32))
            write_lanes(front, lanes, target.first, shape, before.view(np.uint32).reshape(len(keys), -1))

    return touch
