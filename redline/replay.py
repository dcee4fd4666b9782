# SPDX-License-Identifier: Apache-2.0
"""Replay: a program with addresses. Owns its memory, code and queue; patch, submit, wait.

Everything that a submit needs is made at instantiate; after that, a replay writes nothing but patched arguments and one
AQL packet. Decides no order and no fence.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from . import hsa
from .bindings import bind
from .encoders.aql import pm4_ib_packet
from .encoders.emit import PATCH, apply_kernarg_relocs, apply_patches, apply_relocs
from .errors import BindingError, HsaError, KernargPoolExhausted, NotRecorded, QueueFailed, ReplayBusy
from .kernarg import encode

if TYPE_CHECKING:
    from .device import Bindings, Device, DeviceBuffer
    from .plan import Plan

_WINDOW: Final = 1 << 32


class Replay:
    """A plan on a device. Made by `Device.instantiate`; a context manager that frees everything it owns."""

    def __init__(self, device: Device, plan: Plan, bindings: Bindings) -> None:
        self.device, self.plan, self.program = device, plan, plan.program
        self._check_target()
        self._bound = bind(plan, device, bindings)
        self._check_grid()
        self._lock = threading.Lock()  # of the three states below; never held while waiting
        self._in_flight = False
        self._failed: QueueFailed | None = None
        self._closed = False
        self._missing = {slot.name for slot in plan.slots if slot.default is None}
        self._types = {slot.name: (index, slot.type) for index, slot in enumerate(plan.slots)}
        self._values = np.zeros(8 * max(len(plan.slots), 1), np.uint8)
        self._stack = ExitStack()
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        for memory in self._memories():
            memory.attach(1)

    # -- instantiate --

    def _build(self) -> None:
        agent, program = self.device.agent, self.program
        buffers = self._buffer_addresses()
        arena = self._arena(max(len(program.kernarg), 64))
        self._kernarg = arena.view(np.uint8)[: len(program.kernarg)]
        self._kernarg[:] = program.kernarg
        apply_kernarg_relocs(self._kernarg, program.kernarg_relocs, buffers)
        owned = np.zeros(1, np.uint64)
        if program.needs_fence_word:
            owned[0] = self._stack.enter_context(agent.allocate(64, "kernarg")).address
        ib = self._stack.enter_context(agent.allocate(4 * len(program.words), "kernarg", executable=True))
        self._words = ib.view(np.uint32)[: len(program.words)]
        self._words[:] = program.words
        slots = program.slot_offsets + np.uint64(arena.address)
        apply_relocs(self._words, program.relocs, self._entries(), slots, buffers, owned)
        self._signal = self._stack.enter_context(agent.signal(0))
        row = program.ibs[0]
        start, end = int(row["cold"]), int(row["end_release"])
        self._packet = pm4_ib_packet(ib.address + 4 * start, end - start, self._signal.handle)[None, :]
        # Last in, first out: the queue goes first, so that nothing runs when memory is freed.
        self._queue = self._stack.enter_context(agent.queue())

    def _entries(self) -> NDArray[np.uint64]:
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
                loaded[module.sha256] = self._stack.enter_context(self.device.agent.load(module.data))
            entries.append(loaded[module.sha256].kernel_object(kernel.name) + kernel.entry_offset)
        return np.array(entries, np.uint64)

    def _arena(self, nbytes: int) -> hsa.Buffer:
        """Kernarg memory inside one 4 GiB window: all slots share the high half of their address."""
        agent = self.device.agent
        for _ in range(2):  # a second block cannot straddle the same boundary as the first, which is kept meanwhile
            arena = self._stack.enter_context(agent.allocate(nbytes, "kernarg"))
            if arena.address // _WINDOW == (arena.address + nbytes - 1) // _WINDOW:
                return arena
        raise KernargPoolExhausted(
            "RL1301",
            where="Device.instantiate",
            seen=f"{nbytes} bytes at 0x{arena.address:x} cross a 4 GiB boundary",
            allowed="one 4 GiB window",
            do="free other kernarg memory, or split the graph",
        )

    def _buffer_addresses(self) -> NDArray[np.uint64]:
        """Address of each buffer of the plan, by index; internal ones are allocated here."""
        addresses = np.zeros(len(self.plan.buffers), np.uint64)
        for buffer in self.plan.buffers:
            if buffer.index in self._bound:
                addresses[buffer.index] = self._bound[buffer.index].address
            elif buffer.root != buffer.index:
                addresses[buffer.index] = addresses[buffer.root] + np.uint64(buffer.root_offset)
            else:
                memory = self._stack.enter_context(self.device.agent.allocate(buffer.nbytes, buffer.kind))
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

    def patch(self, **values: Any) -> None:
        """Set slots in place, all or none. Refused while in flight.

        Raises NotRecorded for a name without a slot, RecordError for a value that does not fit its type.
        """
        rows = [
            (self._types[name], encode(self._types[name][1], value, f"slot {name!r}"))
            for name, value in self._known(values)
        ]
        with self._lock:
            self._check_usable("patch")
            for (index, _), data in rows:
                self._values[8 * index : 8 * index + len(data)] = np.frombuffer(data, np.uint8)
            apply_patches(self._kernarg, self._patch_rows({index for (index, _), _ in rows}), self._values)
            self._missing -= set(values)

    def submit(self) -> None:
        """Submit one replay and return. Refused while one is in flight or while a slot has no value."""
        with self._lock:
            self._check_usable("submit")
            self._check_slots()
            self._signal.store(1)
            self._hold(1)
            try:
                self._queue.submit(self._packet, describe=self._describe)
            except BaseException:
                self._hold(-1)
                self._signal.store(0)
                raise

    def wait(self, timeout: float = 10.0) -> None:
        """Wait until the submitted replay is done; `timeout` in seconds.

        Raises ReplayTimeout (the replay stays in flight; wait again or close), QueueFailed when the device stopped the
        queue, NotRecorded when nothing was submitted.
        """
        _check_timeout(timeout)
        if self._failed is not None:
            raise self._failed
        if not self._in_flight:
            raise NotRecorded(
                "RL1203",
                where="Replay.wait",
                seen="nothing in flight",
                allowed="a wait for each submit",
                do="call replay.submit() first, or replay.run()",
            )
        try:
            self._signal.wait_below(1, timeout, poll=self._queue.check)
        except QueueFailed as error:
            self._land(error)
            raise
        self._land(None)

    def run(self, timeout: float = 10.0) -> None:
        """submit() and wait()."""
        _check_timeout(timeout)
        self.submit()
        self.wait(timeout)

    def close(self) -> None:
        """Free everything. A replay in flight is cancelled by destroying its queue."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            self._stack.close()
        finally:
            self._land(None)
            for memory in self._memories():
                memory.attach(-1)

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside --

    def _memories(self) -> set[DeviceBuffer]:
        return set(self._bound.values())

    def _hold(self, change: int) -> None:
        self._in_flight = change > 0
        for memory in self._memories():
            memory.hold(change)

    def _land(self, failure: QueueFailed | None) -> None:
        """The replay is no longer in flight; the first thread to notice says so."""
        with self._lock:
            self._failed = self._failed or failure
            if self._in_flight:
                self._hold(-1)

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
        if self._closed:
            raise NotRecorded(
                "RL1204",
                where=f"Replay.{what}",
                seen="a closed replay",
                allowed="an open one",
                do="instantiate the plan again",
            )
        if self._failed is not None:
            raise self._failed
        if self._in_flight:
            raise ReplayBusy(
                "RL1401",
                where=f"Replay.{what}",
                seen="the replay is in flight",
                allowed=f"{what} between replays",
                do="call replay.wait(timeout=...) first",
            )

    def _describe(self, _place: int) -> str:
        names = ", ".join(str(launch) for launch in self.plan.launches[:4])
        more = "" if len(self.plan.launches) <= 4 else f" and {len(self.plan.launches) - 4} more"
        return f"plan {self.plan.fingerprint[:16]}: {names}{more}"


def _check_timeout(timeout: float) -> None:
    """Seconds, finite and not negative: every wait ends."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout < math.inf:
        raise HsaError(
            "RL0912",
            where="timeout",
            seen=repr(timeout),
            allowed="a finite number of seconds, 0 or more",
            do="give seconds; wait again where it may take longer",
        )
