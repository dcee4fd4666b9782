# SPDX-License-Identifier: Apache-2.0
"""Replay: a program with addresses. Owns its memory, code and queue; patch, submit, wait.

Everything that a submit needs is made at instantiate; after that, a replay writes nothing but patched arguments and one
AQL packet. Decides no order and no fence.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from . import hsa
from .bindings import bind
from .encoders.aql import pm4_ib_packet
from .encoders.emit import PATCH, apply_kernarg_relocs, apply_patches, apply_relocs
from .ending import Ending
from .errors import BindingError, HsaError, KernargPoolExhausted, NotRecorded, QueueFailed, ReplayTimeout
from .flight import Flight, Uses
from .kernarg import encode

if TYPE_CHECKING:
    from .device import Bindings, Device, DeviceBuffer
    from .plan import Plan
    from .ranges import Buffer

_WINDOW: Final = 1 << 32
_LONGEST_WAIT: Final = 86400.0  # a day: every wait ends


class Replay:
    """A plan on a device. Made by `Device.instantiate`; a context manager that frees everything it owns.

    One that is dropped without `close` is closed by the garbage collector. Making one raises what `Device.instantiate`
    names (each a RedlineError), the end of its `with` what `close` raises.
    """

    def __init__(self, device: Device, plan: Plan, bindings: Bindings) -> None:
        _check_plan(plan)
        self.device, self.plan, self.program = device, plan, plan.program
        self._check_target()
        self._bound = bind(plan, device, bindings)
        self._check_grid()
        self._missing = {slot.name for slot in plan.slots if slot.default is None}
        self._types = {slot.name: (index, slot.type) for index, slot in enumerate(plan.slots)}
        self._values = np.zeros(8 * max(len(plan.slots), 1), np.uint8)
        self._describe = _describer(plan)
        stack = ExitStack()
        try:
            self._build(stack)
            self._queue = device.agent.queue()
        except BaseException:
            stack.close()
            raise
        self._flight = Flight(*_touched(plan, self._bound))
        self._ending = Ending(self._flight, self._queue, self._signal, device.name, self._describe)
        # Must not hold the replay itself, nor may the queue's packet descriptions: it would never be collected.
        self._free = weakref.finalize(self, _free, self._queue, stack, self._flight)

    def __repr__(self) -> str:
        return f"<Replay of {self.plan!r} on {self.device.name}>"

    # -- instantiate --

    def _build(self, stack: ExitStack) -> None:
        agent, program = self.device.agent, self.program
        self._addresses = buffers = self._buffer_addresses(stack)
        arena = self._arena(stack, max(len(program.kernarg), 64))
        self._kernarg = arena.view(np.uint8)[: len(program.kernarg)]
        self._kernarg[:] = program.kernarg
        apply_kernarg_relocs(self._kernarg, program.kernarg_relocs, buffers)
        owned = np.zeros(1, np.uint64)
        if program.needs_fence_word:
            owned[0] = stack.enter_context(agent.allocate(64, "kernarg")).address
        ib = stack.enter_context(agent.allocate(4 * len(program.words), "kernarg", executable=True))
        self._words = ib.view(np.uint32)[: len(program.words)]
        self._words[:] = program.words
        slots = program.slot_offsets + np.uint64(arena.address)
        self._tables = self._entries(stack), slots, buffers, owned
        apply_relocs(self._words, program.relocs, *self._tables)
        self._signal = stack.enter_context(agent.signal(0))
        self._cold, self._warm = (self._packet(ib.address, start) for start in ("cold", "warm"))

    def _packet(self, ib_va: int, start: str) -> NDArray[np.uint32]:
        """The AQL packet that runs the indirect buffer from one of its starts to its release."""
        row = self.program.ibs[0]
        first, end = int(row[start]), int(row["end_release"])
        return pm4_ib_packet(ib_va + 4 * first, end - first, self._signal.handle)[None, :]

    def _entries(self, stack: ExitStack) -> NDArray[np.uint64]:
        """Entry address of each kernel: kernel object plus the descriptor's entry offset."""
        loaded: dict[str, hsa.LoadedCode] = {}
        entries = []
        for kernel in self.program.kernels:
            module = kernel.module
            if module is None:
                raise BindingError(
                    "RL0703",
                    where=f"kernel {kernel.name!r}",
                    seen="a synthetic kernel without code",
                    allowed="kernels of a loaded code object",
                    do="record kernels from rl.load(...) to run them",
                )
            if module.sha256 not in loaded:
                loaded[module.sha256] = stack.enter_context(self.device.agent.load(module.data))
            entries.append(loaded[module.sha256].kernel_object(kernel.symbol) + kernel.entry_offset)
        return np.array(entries, np.uint64)

    def _arena(self, stack: ExitStack, nbytes: int) -> hsa.Buffer:
        """Kernarg memory inside one 4 GiB window: all slots share the high half of their address."""
        agent = self.device.agent
        for _ in range(2):  # a second block cannot straddle the same boundary as the first, which is kept meanwhile
            arena = stack.enter_context(agent.allocate(nbytes, "kernarg"))
            if arena.address // _WINDOW == (arena.address + nbytes - 1) // _WINDOW:
                return arena
        raise KernargPoolExhausted(
            "RL1301",
            where="Device.instantiate",
            seen=f"{nbytes} bytes at 0x{arena.address:x} cross a 4 GiB boundary",
            allowed="one 4 GiB window",
            do="free other kernarg memory, or split the graph",
        )

    def _buffer_addresses(self, stack: ExitStack) -> NDArray[np.uint64]:
        """Address of each buffer of the plan, by index; internal ones are allocated here."""
        addresses = np.zeros(len(self.plan.buffers), np.uint64)
        for buffer in self.plan.buffers:
            if buffer.index in self._bound:
                addresses[buffer.index] = self._bound[buffer.index].address
            elif buffer.root != buffer.index:
                addresses[buffer.index] = addresses[buffer.root] + np.uint64(buffer.root_offset)
            else:
                memory = stack.enter_context(self.device.agent.allocate(buffer.nbytes, buffer.kind))
                addresses[buffer.index] = memory.address
        return addresses

    def _check_target(self) -> None:
        if self.plan.target != self.device.target:
            raise BindingError(
                "RL0704",
                where=f"instantiate on {self.device.name}",
                seen=f"a plan for {self.plan.target}",
                allowed=f"plans for {self.device.target}",
                do="compile the kernels for this device and record them again",
            )

    def _check_grid(self) -> None:
        for launch in self.plan.launches:
            limits = self.device.agent.max_grid
            if any(size > limit for size, limit in zip(launch.global_size, limits, strict=True)):
                raise BindingError(
                    "RL0705",
                    where=f"{launch} ({launch.site})",
                    seen=f"{launch.global_size} work-items",
                    allowed=f"at most {limits} on {self.device.name}",
                    do="split the launch or use a grid-stride loop",
                )

    # -- use --

    def patch(self, /, **values: Any) -> None:
        """Set slots in place, all or none.

        Raises NotRecorded for a name without a slot or a closed replay, RecordError for a value that does not fit its
        type, ReplayBusy while in flight, QueueFailed after the device stopped the queue, HsaError when the device is
        closed.
        """
        rows = [
            (self._types[name], encode(self._types[name][1], value, f"slot {name!r}"))
            for name, value in self._known(values)
        ]
        with self._flight.lock:
            self._check_usable("patch")
            for (index, _), data in rows:
                self._values[8 * index : 8 * index + len(data)] = np.frombuffer(data, np.uint8)
            apply_patches(self._kernarg, self._patch_rows({index for (index, _), _ in rows}), self._values)
            self._missing -= set(values)

    def bind(self, bindings: Bindings) -> None:
        """Bind other memory to some of the outside buffers, all or none; the next replay takes the cold entry.

        Buffers not named keep their memory. Raises ReplayBusy while in flight, BindingError as `Device.instantiate`
        does, NotRecorded when closed, QueueFailed when the queue has failed, HsaError when the runtime is closed.
        """
        with self._flight.lock:
            self._check_usable("bind")
            now = bind(self.plan, self.device, _merged(self.plan, self._bound, bindings))
            for index, memory in now.items():
                self._addresses[index] = memory.address
            for buffer in self.plan.buffers:
                if buffer.root != buffer.index:
                    self._addresses[buffer.index] = self._addresses[buffer.root] + np.uint64(buffer.root_offset)
            apply_kernarg_relocs(self._kernarg, self.program.kernarg_relocs, self._addresses)
            apply_relocs(self._words, self.program.relocs, *self._tables)
            self._bound = now
            self._flight.use(*_touched(self.plan, now))

    def submit(self) -> None:
        """Submit one replay and return.

        Raises ReplayBusy while this replay, or another that shares written memory with it, is in flight, and while
        another thread of the host reads or writes memory of it; NotRecorded
        while a slot has no value or when the replay is closed; QueueFailed when the device has stopped the queue;
        ReplayTimeout when the queue's ring stays full for a second; HsaError when the device is closed. Nothing was
        submitted then.
        """
        with self._flight.lock:
            self._check_usable("submit")
            self._check_slots()
            self._signal.store(1)
            warm = self._flight.take() and self.plan.boundary != "host"
            try:
                self._ending.submit(self._warm if warm else self._cold)
            except (HsaError, QueueFailed, ReplayTimeout):
                self._flight.give_back()  # refused before a slot of the ring was reserved
                raise
            # Anything else, such as an interrupt, may have come after the packet was published: in flight until waited
            # for or closed.

    def wait(self, timeout: float = 10.0) -> None:
        """Wait until the submitted replay is done; `timeout` in seconds.

        After a time-out the replay stays in flight: wait again, cancel or close it; until a wait has seen its end, what
        is refused in flight names the time-out as its cause. Ctrl-C leaves it in flight too.

        Raises ReplayTimeout with the packet and its launches; QueueFailed, at once and ever after with the first cause,
        when the device stopped the queue or another thread cancelled or closed the replay; NotRecorded when nothing was
        submitted or the replay is closed; HsaError for a timeout that is no number from 0 to 86400 and when the device
        is closed.
        """
        _check_timeout(timeout)
        self.device.runtime.require_open()
        self._ending.wait(timeout)

    def run(self, timeout: float = 10.0) -> None:
        """submit() and wait(); `timeout` in seconds, for the wait.

        Raises what these raise: ReplayBusy, NotRecorded, QueueFailed, ReplayTimeout, HsaError.
        """
        _check_timeout(timeout)
        self.submit()
        self.wait(timeout)

    def cancel(self) -> None:
        """End the replay for good, in flight or not, by destroying its queue. From any thread, or a signal handler.

        A thread that waits for it gets QueueFailed at once, and so does every later use; `close` frees it. What it was
        writing is undefined. Does nothing to a replay that is closed or cancelled. Raises HsaError when the queue
        cannot be destroyed (the replay then stays in flight, for the device may still run it) and when the device is
        closed; ReplayBusy in a signal handler that interrupted the replay's own submit: nothing was stopped.
        """
        self.device.runtime.require_open()
        if not self._flight.closed:
            self._ending.stop("cancelled")

    def close(self) -> None:
        """Free everything. A replay in flight is cancelled; a thread that waits for it gets QueueFailed first.

        When the queue cannot be destroyed, nothing is freed and the replay stays in flight: the device may use it.
        Raises HsaError then, and for anything else that the runtime does not give back; ReplayBusy in a signal handler
        that interrupted the replay's own submit or wait.
        """
        if not self._flight.closed:
            self._ending.stop("closed")
            if not self.device.runtime.closed:  # in a forked child there is nobody to wait for
                self._flight.end_waits()
            self._free()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside --

    def _check_slots(self) -> None:
        if self._missing:
            raise NotRecorded(
                "RL1202",
                where="Replay.submit",
                seen=f"slots without a value: {', '.join(sorted(self._missing))}",
                allowed="every slot patched once, or declared with default=",
                do="call replay.patch(...) first",
            )

    def _known(self, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        for name in values:
            if name not in self._types:
                raise NotRecorded(
                    "RL1201",
                    where="Replay.patch",
                    seen=f"slot {name!r}",
                    allowed=", ".join(sorted(self._types)) or "no slots in this plan",
                    do="use the name given to rl.slot(...)",
                )
        return list(values.items())

    def _patch_rows(self, slots: set[int]) -> NDArray[np.void]:
        points = self.program.patches
        chosen = points[np.isin(points["slot"], list(slots))]
        rows = np.zeros(len(chosen), PATCH)
        rows["offset"], rows["size"], rows["source"] = chosen["offset"], chosen["size"], 8 * chosen["slot"]
        return rows

    def _check_usable(self, what: str) -> None:
        self.device.runtime.require_open()
        self._ending.note_failure()
        self._flight.check_idle(what)


def _free(queue: hsa.Queue, stack: ExitStack, flight: Flight) -> None:
    """The queue goes first, so that nothing runs when memory is freed."""
    queue.close()
    stack.close()
    flight.close()


def _touched(plan: Plan, bound: Mapping[int, DeviceBuffer]) -> tuple[list[Uses], list[Uses]]:
    """The bound memories that the plan only reads, and those that it writes."""
    touches = [touch for launch in plan.launches for touch in launch.touches]
    written = {plan.buffers[touch.buffer].root for touch in touches if touch.writes}
    reads = [memory.uses for index, memory in bound.items() if index not in written]
    return reads, [memory.uses for index, memory in bound.items() if index in written]


def _merged(plan: Plan, bound: Mapping[int, DeviceBuffer], bindings: Bindings) -> Bindings:
    """What is bound now, by name, replaced by what is given; anything wrong in it is left for `bind` to name."""
    if not isinstance(bindings, Mapping):
        return bindings
    given = {key if isinstance(key, str) else getattr(key, "name", "") for key in bindings}
    names = {index: plan.buffers[index].name for index in bound}
    merged: dict[Buffer | str, DeviceBuffer] = {
        names[i]: memory for i, memory in bound.items() if names[i] not in given
    }
    return merged | dict(bindings)


def _describer(plan: Plan) -> Callable[[int], str]:
    """What a packet of this plan runs, for messages."""
    names = ", ".join(str(launch) for launch in plan.launches[:4])
    more = "" if len(plan.launches) <= 4 else f" and {len(plan.launches) - 4} more"
    text = f"plan {plan.fingerprint[:16]}: {names}{more}"
    return lambda _place: text


def _check_plan(plan: object) -> None:
    from .plan import Plan

    if not isinstance(plan, Plan):
        raise BindingError(
            "RL0714",
            where="Device.instantiate",
            seen=f"{type(plan).__name__} {plan!r}",
            allowed="a Plan, as graph.compile() returns it",
            do="compile the graph first",
        )


def _check_timeout(timeout: float) -> None:
    """Seconds, within a day and not negative: every wait ends."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= _LONGEST_WAIT:
        raise HsaError(
            "RL0912",
            where="timeout",
            seen=repr(timeout),
            allowed=f"a number of seconds from 0 to {_LONGEST_WAIT:.0f}",
            do="give seconds; wait again where it may take longer",
        )
