# SPDX-License-Identifier: Apache-2.0
"""A case through the real `Device` and `Replay`, with the hostile machine below the HSA table.

Where `stage.py` plays the host itself, here Redline does: it chooses cold or warm, patches, binds, copies, submits and
waits. Kernels are compiled ones that do nothing; what stands at their entry names the pattern that the machine runs.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import redline as rl
from radiowave import compile_ir
from redline import hsa
from redline.errors import QueueFailed
from redline.sim.dispatch import Dispatch, InOrder
from redline.sim.memory import Memory
from redline.sim.runtime import SimRuntime
from redline_fuzz.cases import READERS, Between, Case, Node, number, pattern, record
from redline_fuzz.machine import HostileMachine
from redline_fuzz.patterns import CODE_BYTES
from redline_fuzz.reference import HOST_READS, HOST_WRITES, Outcome, initial, patches, writes
from redline_fuzz.schedules import Schedule
from redline_fuzz.stage import IN_L2, KERNARG_AT

MOST_POINTERS, COPIES = 3, 6
_PATIENCE_S, _SECONDS = 0.05, 10.0

_HEAD = """
target triple = "amdgcn-amd-amdhsa"
declare void @llvm.amdgcn.s.sleep(i32 immarg)
"""
_KERNEL = """
define amdgpu_kernel void @k{number}({parameters}) {{
  call void @llvm.amdgcn.s.sleep(i32 {code})
  ret void
}}
"""


def fits(case: Case) -> bool:
    """Whether there are kernels enough, and nobody but the host between replays."""
    shapes = {number(node): (len(node.touches), bool(node.slot)) for node in case.nodes}
    kinds = list(shapes.values())
    few = all(kinds.count(kind) <= COPIES and kind[0] <= MOST_POINTERS for kind in kinds)
    return few and case.boundary != "other-queue"


@cache
def module(target: str) -> rl.Module:
    """Kernels k0, k1, ... of 0 to 3 pointers, without and with an i32 behind them, some of each."""
    text = _HEAD
    for index in range((MOST_POINTERS + 1) * 2 * COPIES):
        pointers, slot = index // (2 * COPIES), index // COPIES % 2
        parameters = [f"ptr addrspace(1) %p{at}" for at in range(pointers)] + ["i32 %s"] * slot
        text += _KERNEL.format(number=index, parameters=", ".join(parameters), code=index + 1)
    return rl.load(compile_ir(text, target=target))


class _Unplugged(InOrder):
    """Stands where the machine comes, until the device has memory."""

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Never called."""

    def close(self) -> None:
        """Nothing is held."""


class DeviceStage:
    """A case that `fits`. Each `run` opens a device of its own."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._kernels: dict[int, rl.Kernel] = {}
        graph = record(case, self._kernel)
        self.plan = graph.compile(
            boundary=case.boundary,
            schedule=case.schedule,
            fences=case.fences,
            gfx10_wait=case.gfx10_wait,
            elide=case.elide,
        )

    def _kernel(self, node: Node) -> rl.Kernel:
        """The next kernel of its arguments that no other shape has taken."""
        if number(node) not in self._kernels:
            first = (len(node.touches) * 2 + bool(node.slot)) * COPIES
            taken = {kernel.name for kernel in self._kernels.values()}
            name = next(f"k{at}" for at in range(first, first + COPIES) if f"k{at}" not in taken)
            made = replace(module(self.case.target)[name], certificate=READERS[node.reader])
            self._kernels[number(node)] = made
        return self._kernels[number(node)]

    def run(self, schedule: Schedule) -> Outcome:
        """All replays of the case under one schedule."""
        sim = SimRuntime(self.case.target, _Unplugged(), patience_s=_PATIENCE_S)
        runtime = hsa.Runtime.of_table(sim.table)
        with rl.Device(runtime, runtime.agents()[0], "fuzz") as device:
            run = _Run(self, schedule, sim, device)
            sim.backend = run.machine.queue()
            return run.outcome()


class _Run:
    """Redline's host around one run."""

    def __init__(self, stage: DeviceStage, schedule: Schedule, sim: SimRuntime, device: rl.Device) -> None:
        self.stage, self.case, self.sim, self.device = stage, stage.case, sim, device
        self.held: set[int] = set()
        self.settled: set[int] = set()
        self.machine = HostileMachine(
            sim.memory,
            {},
            schedule,
            self._is_held,
            self.settled,
            has_gl1=self.case.target[:5] != "gfx12",
            past_l2=self.case.target[:5] == "gfx12",
            kernarg_at=KERNARG_AT[self.case.target[:5]],
            launches=len(self.case.nodes),
        )
        self.bank = 0
        two = any(between.bind for between in self.case.between)
        self.bound = [self._outside(bank) for bank in range(1 + two)]

    def _is_held(self, address: int) -> bool:
        row = self.sim.memory.find(address)
        return row is not None and row.address in self.held

    def _outside(self, bank: int) -> dict[int, rl.DeviceBuffer]:
        """Memory of every root that is bound, filled as the reference says."""
        made = {}
        for index, memory in enumerate(self.case.memories):
            if memory.alias is None and memory.role != "internal":
                made[index] = self.device.buffer(memory.nbytes, kind=memory.kind)  # type: ignore[arg-type]
                self._note(index, bank, made[index].address)
        return made

    def _note(self, index: int, bank: int, address: int) -> None:
        memory = self.case.memories[index]
        self.sim.memory.store(address, initial(self.case, index, bank))
        if memory.kind in IN_L2[self.case.target[:5]]:
            self.held.add(address)
        if memory.role not in HOST_WRITES:
            self.settled.add(address)

    def _names(self, bank: int) -> dict[str, rl.DeviceBuffer]:
        return {f"m{index}": buffer for index, buffer in self.bound[bank].items()}

    def outcome(self) -> Outcome:
        made = Outcome()
        with self.device.instantiate(self.stage.plan, self._names(0)) as replay:
            self._learn(replay)
            try:
                for turn in range(len(self.case.between) + 1):
                    self._turn(replay, turn, made)
                made.host.append(self._host_reads())
            except QueueFailed as error:
                made.faults.append(str(error))
            self.machine.settle()
            self._collect(replay, made)
        for buffers in self.bound:
            for buffer in buffers.values():
                buffer.close()
        return made

    def _learn(self, replay: rl.Replay) -> None:
        """What stands at each kernel's entry, and the addresses of what Redline has allocated."""
        addresses = replay.placed.addresses.tolist()
        for index, memory in enumerate(self.case.memories):
            if memory.alias is None and memory.role == "internal":
                self._note(index, 0, addresses[index])
        entries = dict(zip(replay.program.kernels, replay.placed.entries.tolist(), strict=True))
        for node in self.case.nodes:
            entry = entries[self.stage._kernel(node)]
            code = int.from_bytes(self.sim.memory.bytes_at(entry, CODE_BYTES), "little")
            extra = [addresses[touch.memory] + touch.start for touch in node.extra]
            self.machine.patterns[code] = pattern(node, extra)

    def _turn(self, replay: rl.Replay, turn: int, made: Outcome) -> None:
        between = self.case.between[turn - 1] if turn else Between(host=True)
        if turn and between.host:
            made.host.append(self._host_reads())
        if between.bind:
            self.bank ^= 1
            replay.bind(self._names(self.bank))
        values: dict[str, Any] = {
            name: int.from_bytes(value, "little", signed=True)
            for name, value in patches(self.case, turn, between).items()
        }
        replay.patch(**values)
        for index, written in writes(self.case, turn, between).items():
            self.bound[self.bank][index].write(written)
        replay.run(_SECONDS)

    def _host_reads(self) -> dict[int, bytes]:
        buffers = self.bound[self.bank].items()
        return {m: buffer.read(np.uint8).tobytes() for m, buffer in buffers if self.case.memories[m].role in HOST_READS}

    def _collect(self, replay: rl.Replay, made: Outcome) -> None:
        made.seen, made.ran, made.widest = dict(self.machine.seen), list(self.machine.ran), self.machine.widest
        made.faults += self.machine.faults
        places: dict[int, tuple[tuple[int, int], int]] = {}
        for index, memory in enumerate(self.case.memories):
            if memory.alias is not None:
                continue
            internal = memory.role == "internal"
            for bank in range(1 if internal else len(self.bound)):
                address = int(replay.placed.addresses[index]) if internal else self.bound[bank][index].address
                bytes_now = bytes(self.machine.caches.in_l2(address + at) for at in range(memory.nbytes))
                made.memory[index, bank] = bytes_now
                places.update({address + at: ((index, bank), at) for at in range(memory.nbytes)})
        for address, ordinals in self.machine.stores.items():
            if address in places:
                made.stores[places[address]] = ordinals
            else:
                made.faults.append(f"stored to {address:#x}, outside every buffer")
