# SPDX-License-Identifier: Apache-2.0
"""Which memory stands for which outside buffer of a plan: matched by buffer or name, checked before anything is made.

A binding is believed only as far as the runtime confirms it: the kind that was declared decides cache maintenance, and
distinct memories must not overlap, because hazards are derived per memory. Allocates nothing.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from .device import DeviceBuffer
from .errors import BindingError
from .hsa import pointer_info
from .hsa.abi import PointerType, PoolFlags
from .ranges import Buffer

if TYPE_CHECKING:
    from .device import Bindings, Device
    from .flight import Uses
    from .plan import Plan

#: How much cache maintenance a kind needs: an uncached page is never in L2, a fine-grained one may be on gfx12,
#: coarse-grained ones always may. Memory may stand for a kind that needs at least as much.
NEED: Final = {"uncached": 0, "fine": 1, "host": 2, "device": 2}


def bind(plan: Plan, device: Device, bindings: Bindings) -> dict[int, DeviceBuffer]:
    """Buffer index -> memory, for exactly the buffers that are bound from outside. Raises BindingError."""
    if not isinstance(bindings, Mapping):
        raise _refused("RL0714", "instantiate", f"bindings {bindings!r}", "a mapping", "pass {buffer: memory}")
    bound: dict[int, DeviceBuffer] = {}
    for key, memory in bindings.items():
        buffer = _named(plan, key)
        if buffer.index in bound:
            raise _refused("RL0706", f"binding {buffer.name!r}", "bound twice", "one memory for each", "bind it once")
        _check_memory(device, buffer, memory)
        bound[buffer.index] = memory
    missing = [b.name for b in plan.buffers if b.role != "internal" and b.index not in bound]
    if missing:
        seen, do = f"not bound: {', '.join(missing)}", "pass {buffer: device.buffer(...)}"
        raise _refused("RL0707", "instantiate", seen, "every in, out and inout buffer bound", do)
    for first, second in combinations(sorted(bound), 2):
        _check_pair(bound, plan.buffers[first], plan.buffers[second])
    return bound


def _named(plan: Plan, key: Any) -> Buffer:
    """The outside buffer that a key means."""
    outside = {buffer.name: buffer for buffer in plan.buffers if buffer.role != "internal"}
    found = outside.get(key) if isinstance(key, str) else outside.get(getattr(key, "name", ""))
    if found is None or (not isinstance(key, str) and key != found):
        allowed = ", ".join(outside) or "none: the plan has no in, out or inout buffer"
        raise _refused(
            "RL0706", f"binding {key!s}", "no such outside buffer", allowed, "bind in, out and inout buffers"
        )
    return found


def _check_memory(device: Device, buffer: Buffer, memory: Any) -> None:
    where = f"binding {buffer.name!r}"
    if not isinstance(memory, DeviceBuffer) or memory.device is not device:
        seen = f"memory of another {memory.device!r}" if isinstance(memory, DeviceBuffer) else reprlib.repr(memory)
        raise _refused("RL0711", where, seen, f"memory of {device!r}", "allocate it with device.buffer(nbytes)")
    if memory.closed:
        raise _refused("RL0711", where, "closed memory", "open memory", "close buffers after the replays that use them")
    if memory.nbytes < buffer.nbytes:
        seen, allowed = f"{memory.nbytes} bytes", f"at least {buffer.nbytes}"
        raise _refused("RL0708", where, seen, allowed, "allocate a larger buffer")
    kind = _kind_by_runtime(device, memory)
    if NEED[kind] > NEED[buffer.kind]:
        allowed = f"{buffer.kind}, or a kind that is cached less"
        raise _refused("RL0709", where, f"{kind} memory", allowed, "declare the buffer with the kind that is bound")


def _kind_by_runtime(device: Device, memory: DeviceBuffer) -> str:
    """The kind that was asked for, unless the runtime knows the memory as coarse-grained or not at all."""
    info = pointer_info(device.runtime, memory.address)
    coarse = info.flags & PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED
    unknown = info.type != PointerType.HSA_EXT_POINTER_TYPE_HSA
    return "device" if (coarse or unknown) and NEED[memory.kind] < NEED["device"] else memory.kind


def _check_pair(bound: Mapping[int, DeviceBuffer], first: Buffer, second: Buffer) -> None:
    """Bound buffers are distinct memories: aliases have no binding of their own."""
    a, b = bound[first.index].address, bound[second.index].address
    if a < b + second.nbytes and b < a + first.nbytes:
        names = f"bindings {first.name!r} and {second.name!r}"
        raise _refused("RL0710", names, "overlapping memory", "separate memory", "record one as alias_of the other")


def _refused(code: str, where: str, seen: str, allowed: str, do: str) -> BindingError:
    return BindingError(code, where=where, seen=seen, allowed=allowed, do=do)


def touched(plan: Plan, bound: Mapping[int, DeviceBuffer]) -> tuple[list[Uses], list[Uses]]:
    """The bound memories that the plan only reads, and those that it writes."""
    touches = [touch for launch in plan.launches for touch in launch.touches]
    written = {plan.buffers[touch.buffer].root for touch in touches if touch.writes}
    reads = [memory.uses for index, memory in bound.items() if index not in written]
    return reads, [memory.uses for index, memory in bound.items() if index in written]


def merged(plan: Plan, bound: Mapping[int, DeviceBuffer], bindings: Bindings) -> Bindings:
    """What is bound now, by name, replaced by what is given; anything wrong in it is left for `bind` to name."""
    if not isinstance(bindings, Mapping):
        return bindings
    given = {key if isinstance(key, str) else getattr(key, "name", "") for key in bindings}
    names = {index: plan.buffers[index].name for index in bound}
    kept: dict[Buffer | str, DeviceBuffer] = {names[i]: memory for i, memory in bound.items() if names[i] not in given}
    return kept | dict(bindings)
