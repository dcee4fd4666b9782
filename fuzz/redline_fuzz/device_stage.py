# SPDX-License-Identifier: Apache-2.0
"""A case through the real `Device` and `Replay`, with the hostile machine below the HSA table.

Where `stage.py` plays the host itself, here Redline does: it chooses cold or warm, patches, binds, copies, submits and
waits. Kernels are compiled ones that do nothing; what stands at their entry names the pattern that the machine runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

import redline as rl
from radiowave import CodeObject, compile_ir
from redline import hsa
from redline.errors import QueueFailed
from redline.sim.runtime import SimRuntime
from redline_fuzz.cases import READERS, Between, Case, Node, number, pattern, record
from redline_fuzz.machine import HostileMachine
from redline_fuzz.no_kernels import NoKernels
from redline_fuzz.patterns import CODE_BYTES
from redline_fuzz.reference import HOST_READS, HOST_WRITES, Outcome, Place, initial, patches, place_of, writes
from redline_fuzz.schedules import Schedule
from redline_fuzz.stage import IN_L2, KERNARG_AT

MOST_POINTERS, COPIES = 4, 8
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
    """Whether there are kernels enough."""
    shapes = {number(node): (len(node.touches), bool(node.slot)) for node in case.nodes}
    kinds = list(shapes.values())
    return all(kinds.count(kind) <= COPIES and kind[0] <= MOST_POINTERS for kind in kinds)


@cache
def module(target: str) -> rl.Module:
    """Kernels k0, k1, ... of 0 to 4 pointers, without and with an i32 behind them, some of each."""
    text = _HEAD
    for index in range((MOST_POINTERS + 1) * 2 * COPIES):
        pointers, slot = index // (2 * COPIES), index // COPIES % 2
        parameters = [f"ptr addrspace(1) %p{at}" for at in range(pointers)] + ["i32 %s"] * slot
        text += _KERNEL.format(number=index, parameters=", ".join(parameters), code=index + 1)
    return rl.load(compile_ir(text, target=target))


@cache
def codes(target: str) -> dict[str, int]:
    """What stands at each kernel's entry, by its name: no two are alike."""
    read = CodeObject.parse(module(target).data)
    return {name: int.from_bytes(read.code(facts)[:CODE_BYTES], "little") for name, facts in read.kernels.items()}


class DeviceStage:
    """A case that `fits`. Each `run` opens a device of its own."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._kernels: dict[int, rl.Kernel] = {}
        graph = record(case, self.kernel)
        self.plan = graph.compile(
            boundary=case.boundary,
            schedule=case.schedule,
            fences=case.fences,
            gfx10_wait=case.gfx10_wait,
            elide=case.elide,
        )

    def kernel(self, node: Node) -> rl.Kernel:
        """The next kernel of its arguments that no other shape has taken."""
        if number(node) not in self._kernels:
            first = (len(node.touches) * 2 + bool(node.slot)) * COPIES
            taken = {kernel.name for kernel in self._kernels.values()}
            name = next(f"k{at}" for at in range(first, first + COPIES) if f"k{at}" not in taken)
            self._kernels[number(node)] = replace(module(self.case.target)[name], certificate=READERS[node.reader])
        return self._kernels[number(node)]

    def run(self, schedule: Schedule) -> Outcome:
        """All replays of the case under one schedule."""
        sim = SimRuntime(self.case.target, NoKernels(), patience_s=_PATIENCE_S)
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
        self.internal: dict[int, int] = {}  # addresses of what Redline allocates, by memory
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
        with self._noted() as noted:
            replay = self.device.instantiate(self.stage.plan, self._names(0))
        with replay:
            self._learn(noted)
            try:
                for turn in range(len(self.case.between) + 1):
                    self._turn(replay, turn, made)
                made.host.append(self._host_reads())
            except QueueFailed as error:
                made.faults.append(str(error))
            self.machine.settle()
            self._collect(made)
        for buffers in self.bound:
            for buffer in buffers.values():
                buffer.close()
        return made

    @contextmanager
    def _noted(self) -> Iterator[list[tuple[str, int, int]]]:
        """What is allocated meanwhile, in turn: kind, bytes and address."""
        made: list[tuple[str, int, int]] = []
        allocate = self.device.agent.allocate

        def noting(nbytes: int, kind: str = "device", *, executable: bool = False) -> hsa.Buffer:
            memory = allocate(nbytes, kind, executable=executable)
            made.append((kind, nbytes, memory.address))
            return memory

        with patch.object(self.device.agent, "allocate", noting):
            yield made

    def _learn(self, noted: list[tuple[str, int, int]]) -> None:
        """Where Redline has put internal memory, which nobody else may name, and what each kernel does.

        Everything else that a replay allocates is of the kernarg kind; internal memories come in the plan's order.
        """
        wanted = [
            m for m, memory in enumerate(self.case.memories) if memory.alias is None and memory.role == "internal"
        ]
        placed = [(kind, nbytes, address) for kind, nbytes, address in noted if kind != "kernarg"]
        sizes = [(self.case.memories[m].kind, self.case.memories[m].nbytes) for m in wanted]
        if [(kind, nbytes) for kind, nbytes, _ in placed] != sizes:
            raise RuntimeError(f"a replay allocated {placed}; internal memory is {sizes}")
        for index, (_, _, address) in zip(wanted, placed, strict=True):
            self.internal[index] = address
            self._note(index, 0, address)
        for node in self.case.nodes:
            code = codes(self.case.target)[self.stage.kernel(node).name]
            extra = [self._address(touch.memory, touch.start) for touch in node.extra]
            self.machine.patterns[code] = pattern(node, extra)

    def _address(self, memory: int, at: int) -> int:
        """Of a byte of a memory, which may be a view, as it is bound first."""
        root, offset = place_of(self.case, memory, at)
        return (self.internal[root] if root in self.internal else self.bound[0][root].address) + offset

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
            if turn and self.case.boundary == "other-queue":
                self._others_write(self.bound[self.bank][index].address, written)
            else:
                self.bound[self.bank][index].write(written)
        replay.run(_SECONDS)

    def _others_write(self, address: int, written: bytes) -> None:
        """Another queue's dispatches, with the release at its end."""
        self.machine.caches.notice_host()
        for at, byte in enumerate(written):
            self.machine.caches.store(address + at, byte)
        self.machine.caches.write_back(range(address, address + len(written)))

    def _host_reads(self) -> dict[int, bytes]:
        buffers = self.bound[self.bank].items()
        return {m: buffer.read(np.uint8).tobytes() for m, buffer in buffers if self.case.memories[m].role in HOST_READS}

    def _collect(self, made: Outcome) -> None:
        made.seen, made.ran, made.widest = dict(self.machine.seen), list(self.machine.ran), self.machine.widest
        made.faults += self.machine.faults
        addresses: dict[Place, int] = {(index, 0): address for index, address in self.internal.items()}
        for bank, buffers in enumerate(self.bound):
            addresses |= {(index, bank): buffer.address for index, buffer in buffers.items()}
        places: dict[int, tuple[Place, int]] = {}
        for place, address in addresses.items():
            nbytes = self.case.memories[place[0]].nbytes
            made.memory[place] = bytes(self.machine.caches.in_l2(address + at) for at in range(nbytes))
            places.update({address + at: (place, at) for at in range(nbytes)})
        for address, ordinals in self.machine.stores.items():
            if address in places:
                made.stores[places[address]] = ordinals
            else:
                made.faults.append(f"stored to {address:#x}, outside every buffer")
