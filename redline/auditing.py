# SPDX-License-Identifier: Apache-2.0
"""Run a plan once on the software device and compare every byte that its launches touch with what they declared.

A wrong declaration gives no error anywhere else: the fences are derived from it. Needs no GPU. Sees what the given
inputs make the kernels do, and nothing of code that they do not reach. Comparing is in `judged.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import hsa
from .audited import Audit, LaunchAudit
from .device import Device, DeviceBuffer
from .errors import BindingError, QueueFailed, ReplayTimeout
from .judged import Surroundings, judge
from .observations import Observations
from .plan import Plan
from .ranges import Buffer, View, as_view

if TYPE_CHECKING:
    from .launch import Launch
    from .replay import Replay

#: What an outside buffer holds before the run: bytes, an array, or pointers to buffers, 8 bytes each.
Content: TypeAlias = "bytes | bytearray | memoryview | NDArray[Any] | np.generic | Sequence[Buffer | View]"


def audit(
    plan: Plan,
    inputs: Mapping[Buffer, Content] | Mapping[str, Content] | None = None,
    slots: Mapping[str, Any] | None = None,
    *,
    timeout: float = 60.0,
) -> Audit:
    """Run `plan` once on the software device of its target; report what its launches touched and did not declare.

    `inputs` are contents of outside buffers, by buffer or name, from their first byte on: bytes, a numpy array of any
    shape, or a list of buffers and slices whose addresses are stored; the rest is zeros. `slots` are values by name; a
    buffer or a slice stands for its address. `timeout` is in seconds. A kernel that faults or does not end is reported
    with what it did until then.

    Raises BindingError for what is no plan, a buffer that it does not have and contents that do not fit; NotRecorded
    and RecordError for slots that are missing, unknown or do not fit; UnsupportedTarget for a target that the software
    device does not have; radiowave's ToolchainError without a disassembler; and what lowering and
    `Device.instantiate` raise: HazardError, EncodeError, UnsupportedKernel, CodeObjectError, KernargPoolExhausted,
    HsaError, ReplayBusy, StalePlan.
    """
    if not isinstance(plan, Plan):
        do = "compile a graph: graph.compile()"
        raise BindingError("RL0714", where="redline.audit", seen=repr(plan), allowed="a Plan", do=do)
    plan = dataclasses.replace(plan)  # lowered anew to one stream of words, whose dispatches come in the plan's order
    seen = Observations()
    runtime = hsa.Runtime.sim(plan.target, seen)
    with Device(runtime, runtime.agents()[0], f"sim:{plan.target}") as device, ExitStack() as stack:
        memory = {b.name: stack.enter_context(device.buffer(b.nbytes, b.kind)) for b in _outside(plan)}
        for item in memory.values():
            item.write(np.zeros(item.nbytes, np.uint8))
        with device.instantiate(plan, memory) as replay:
            around = _surroundings(replay)
            _fill(plan, memory, inputs or {}, around.addresses)
            replay.patch(**{name: _value(plan, value, around.addresses) for name, value in (slots or {}).items()})
            fault = _run(replay, timeout)
        seen.settle()  # the replay is closed: nothing runs any more
    around = dataclasses.replace(around, allocations=seen.allocations)
    return Audit(plan, _judged(plan, around, seen), fault)


def _outside(plan: Plan) -> list[Buffer]:
    return [buffer for buffer in plan.buffers if buffer.role != "internal"]


def _surroundings(replay: Replay) -> Surroundings:
    placed = replay.placed
    start = placed.kernarg.ctypes.data  # on the software device, addresses are the host's
    return Surroundings(
        replay.plan, [int(at) for at in placed.addresses], (start, start + max(len(placed.kernarg), 64)), ()
    )


def _run(replay: Replay, timeout: float) -> str:
    """Run once; what stopped it, or ""."""
    try:
        replay.run(timeout)
    except (QueueFailed, ReplayTimeout) as error:
        return str(error)
    return ""


def _fill(
    plan: Plan, memory: Mapping[str, DeviceBuffer], inputs: Mapping[Any, Content], addresses: Sequence[int]
) -> None:
    for key, content in inputs.items():
        name = key if isinstance(key, str) else getattr(key, "name", "")
        if name not in memory or (not isinstance(key, str) and key not in plan.buffers):
            allowed = ", ".join(memory) or "none: the plan has no in, out or inout buffer"
            do = "give contents of in, out and inout buffers"
            raise BindingError("RL0706", where=f"input {key!s}", seen="no such outside buffer", allowed=allowed, do=do)
        memory[name].write(_bytes(plan, content, addresses))


def _bytes(plan: Plan, content: Any, addresses: Sequence[int]) -> Any:
    """A list of buffers and slices as their addresses, anything else as it is."""
    if not isinstance(content, list | tuple):
        return content
    return np.array([_value(plan, item, addresses) for item in content], np.uint64)


def _value(plan: Plan, value: Any, addresses: Sequence[int]) -> Any:
    """A buffer or a slice as its address, anything else as it is."""
    if not isinstance(value, Buffer | View):
        return value
    view = as_view(value)
    if view.buffer not in plan.buffers:
        allowed = ", ".join(buffer.name for buffer in plan.buffers)
        do = "point at a buffer of this plan"
        raise BindingError("RL0706", where=f"address of {view}", seen="no such buffer", allowed=allowed, do=do)
    return addresses[view.buffer.index] + view.start


def _judged(plan: Plan, around: Surroundings, seen: Observations) -> tuple[LaunchAudit, ...]:
    """In recorded order; dispatches come in the order of the program."""
    program, ran = plan.program, len(seen.dispatches)
    position = {launch: at for at, launch in enumerate(program.order)}

    def kernarg(launch: Launch, at: int) -> tuple[int, int]:
        start = around.arena[0] + int(program.slot_offsets[at])
        return start, start + max(-(-len(launch.kernarg) // 64), 1) * 64

    return tuple(
        judge(around, launch, seen.dispatches[at] if at < ran else None, kernarg(launch, at))
        for launch, at in ((launch, position[launch.index]) for launch in plan.launches)
    )
