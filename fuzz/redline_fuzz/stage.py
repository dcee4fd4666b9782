# SPDX-License-Identifier: Apache-2.0
"""Puts a program into memory and plays the host of a case around it: writes, patches, binds, submits, reads.

The machine gets nothing but the bytes. Relocation is Redline's own, because a wrong one must show; patch points are
followed here, byte by byte.
"""

from __future__ import annotations

import struct
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

import redline as rl
from redline.encoders.emit import apply_kernarg_relocs, apply_relocs
from redline.packets import place
from redline.sim.errors import DeviceFault
from redline.sim.memory import Memory
from redline_fuzz.cases import Between, Case, number, pattern
from redline_fuzz.lane_runner import LaneRunner
from redline_fuzz.machine import HostileMachine
from redline_fuzz.patterns import Pattern
from redline_fuzz.reference import HOST_READS, HOST_WRITES, Outcome, Place, initial, patches, place_of, writes
from redline_fuzz.schedules import Schedule

#: Kinds of memory that GL2 may hold, by the first letters of the target (Linux KFD, gmc_v10_0.c to gmc_v12_0.c).
IN_L2 = {"gfx10": ("device", "host"), "gfx11": ("device", "host"), "gfx12": ("device", "host", "fine")}
#: The user SGPR with the kernarg segment's address: behind a private segment buffer up to gfx10 (LLVM AMDGPUUsage).
KERNARG_AT = {"gfx10": 4, "gfx11": 0, "gfx12": 0}
_OBJECT_BYTES = 512  # a kernel descriptor, and its code 256 bytes behind it


class Stage:
    """One program of a case in memory; use it in a `with` block. Each `run` starts from the same bytes.

    `places`: where each memory lies, by its number and which of two is bound. `settled`: the addresses of those that
    nobody fills before the first submission. `entries`, `kernarg`, `fence_word`, `ib`: addresses of what the program
    needs. `patterns`: what its kernels do.
    """

    def __init__(self, case: Case, plan: rl.Plan, program: rl.Program) -> None:
        self.case, self.plan, self.program = case, plan, program
        self.memory = Memory()
        family = case.target[:5]
        self._two = any(between.bind for between in case.between)
        self._cached: set[int] = set()  # allocations that L2 may hold
        self._held: dict[int, bool] = {}  # addresses that were asked for
        self.settled: set[int] = set()
        self.places: dict[Place, int] = {}
        for bank in range(1 + self._two):
            self._allocate_bank(bank, IN_L2[family])
        # ROCr invalidates L2 when it loads code (amd_gpu_agent.cpp, InvalidateCodeCaches): only I may be stale.
        self.objects = [self._take(_OBJECT_BYTES, cached=False, executable=True) for _ in program.kernels]
        self.entries = [at + k.entry_offset for at, k in zip(self.objects, program.kernels, strict=True)]
        self.kernarg = self._take(max(len(program.kernarg), 64), cached=False)
        self.owned = [self._take(64, cached=False) for _ in range(max(program.fence_words + program.stamps, 1))]
        self.ib = self._take(max(4 * len(program.words), 4), cached=False, executable=True)
        self.patterns = self._patterns()

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.memory.close()

    def _take(self, nbytes: int, *, cached: bool, executable: bool = False) -> int:
        address = self.memory.allocate(nbytes, executable=executable)
        if cached:
            self._cached.add(address)
        return address

    def _allocate_bank(self, bank: int, in_l2: tuple[str, ...]) -> None:
        for index, memory in enumerate(self.case.memories):
            if memory.alias is None and not (bank and memory.role == "internal"):
                self.places[index, bank] = self._take(memory.nbytes, cached=memory.kind in in_l2)
                if memory.role not in HOST_WRITES:
                    self.settled.add(self.places[index, bank])

    def may_hold(self, address: int) -> bool:
        """Whether L2 may hold the byte at an address; runs ask again and again."""
        if address not in self._held:
            row = self.memory.find(address)
            self._held[address] = row is None or row.address in self._cached
        return self._held[address]

    def address(self, memory: int, at: int, bank: int) -> int:
        """Of byte `at` of a memory, which may be a view."""
        root, offset = place_of(self.case, memory, at)
        return self.places.get((root, bank), self.places[root, 0]) + offset

    def _patterns(self) -> dict[int, Pattern]:
        made: dict[int, Pattern] = {}
        for node in self.case.nodes:
            extra = [self.address(touch.memory, touch.start, 0) for touch in node.extra]
            made[number(node)] = pattern(node, extra)
        return made

    # One run

    def run(self, schedule: Schedule) -> Outcome:
        """All replays of the case under one schedule."""
        return _Run(self, schedule).outcome()


class _Run:
    """The host of one run."""

    def __init__(self, stage: Stage, schedule: Schedule) -> None:
        self.stage, self.case, self.program = stage, stage.case, stage.program
        self.memory = stage.memory
        self.machine = HostileMachine(
            self.memory,
            stage.patterns,
            schedule,
            stage.may_hold,
            stage.settled,
            has_gl1=self.case.target[:5] != "gfx12",
            past_l2=self.case.target[:5] == "gfx12",
            kernarg_at=KERNARG_AT[self.case.target[:5]],
            launches=len(stage.plan.launches),
        )
        self.lanes = LaneRunner(self.machine, self.case.target, stage.plan, self.program)
        self.kernarg = self.program.kernarg.copy()
        self.bank = 0

    def outcome(self) -> Outcome:
        made = Outcome()
        self._load()
        try:
            for replay in range(len(self.case.between) + 1):
                between = self.case.between[replay - 1] if replay else Between(host=True)
                if replay and between.host:
                    made.host.append(self._host_reads())
                self._before(replay, between)
                self._submit(replay, between)
            made.host.append(self._host_reads())
        except DeviceFault as fault:
            made.faults.append(str(fault))
        self.machine.settle()
        self._collect(made)
        return made

    def _load(self) -> None:
        """Code, memories and the kernarg segments, before the first replay."""
        for kernel, at, entry in zip(self.program.kernels, self.stage.objects, self.stage.entries, strict=True):
            self.memory.store(at, _descriptor(kernel))
            self.memory.store(entry, struct.pack("<Q", int(kernel.name[1:], 16)))
        for (memory, bank), address in self.stage.places.items():
            self.memory.store(address, initial(self.case, memory, bank))
        for word in self.stage.owned:
            self.memory.store(word, b"\xff" * 64)
        self._bind()

    def _bind(self) -> None:
        """Apply relocations to the stream and to the kernarg segments."""
        stage, program = self.stage, self.program
        buffers = [stage.address(b.index, 0, self.bank) for b in stage.plan.buffers]
        tables: list[NDArray[np.uint64]] = [
            np.array(stage.entries, np.uint64),
            program.slot_offsets + np.uint64(stage.kernarg),
            np.array(buffers, np.uint64),
            np.array(stage.owned, np.uint64),
        ]
        self.slots = tables[1]
        words = program.words.copy()
        apply_relocs(words, program.relocs, *tables)
        apply_kernarg_relocs(self.kernarg, program.kernarg_relocs, tables[2])
        self.memory.store(stage.ib, words.tobytes() or bytes(4))
        self.memory.store(stage.kernarg, self.kernarg.tobytes() or bytes(64))

    def _before(self, replay: int, between: Between) -> None:
        if between.bind:
            self.bank ^= 1
            self._bind()
        for name, value in patches(self.case, replay, between).items():
            self._patch(name, value)
        for memory, written in writes(self.case, replay, between).items():
            address = self.stage.address(memory, 0, self.bank)
            if replay and self.case.boundary == "other-queue":
                self.machine.caches.notice_host()
                for at, byte in enumerate(written):
                    self.machine.caches.store(address + at, byte)
                self.machine.caches.write_back(range(address, address + len(written)))
            else:
                self.memory.store(address, written)

    def _patch(self, name: str, value: bytes) -> None:
        points = self.program.patches
        for row in points[points["slot"] == [slot.name for slot in self.program.slots].index(name)]:
            start = int(row["offset"])
            self.kernarg[start : start + int(row["size"])] = np.frombuffer(value, np.uint8)
        self.memory.store(self.stage.kernarg, self.kernarg.tobytes() or bytes(64))

    def _submit(self, replay: int, between: Between) -> None:
        """Cold where anything may have touched memory; without the release where nobody looks before the next."""
        cold = not replay or between.bind or between.host or self.case.boundary == "host"
        last = replay == len(self.case.between) or self.case.boundary != "queue"
        observed = last or self.case.between[replay] != Between() or not self.lanes.may_batch
        tables = np.array(self.stage.objects, np.uint64), self.slots, self.lanes.signals
        batches = place(self.program, self.stage.ib, tables, warm=not cold, release=observed)
        self.lanes.run(batches, observed=observed)

    def _host_reads(self) -> dict[int, bytes]:
        """What memory holds of the outside buffers that are bound now."""
        roots = {m: held for m, held in enumerate(self.case.memories) if held.alias is None}
        chosen = [m for m, held in roots.items() if held.role in HOST_READS]
        return {m: self.memory.bytes_at(self.stage.address(m, 0, self.bank), roots[m].nbytes) for m in chosen}

    def _collect(self, made: Outcome) -> None:
        caches = self.machine.caches
        made.seen, made.ran = dict(self.machine.seen), list(self.machine.ran)
        made.faults += self.machine.faults
        made.widest = self.machine.widest
        names = {}
        for where, address in self.stage.places.items():
            nbytes = self.case.memories[where[0]].nbytes
            made.memory[where] = bytes(caches.in_l2(address + at) for at in range(nbytes))
            names.update({address + at: (where, at) for at in range(nbytes)})
        for address, ordinals in self.machine.stores.items():
            if address in names:
                made.stores[names[address]] = ordinals
            else:
                made.faults.append(f"stored to {address:#x}, outside every buffer")


def _descriptor(kernel: rl.Kernel) -> bytes:
    """64 bytes as the packet processor reads them (LLVM AMDGPUUsage, "Kernel Descriptor")."""
    registers = kernel.rsrc3, kernel.rsrc1, kernel.rsrc2, kernel.properties
    head = kernel.group_bytes, kernel.private_bytes, kernel.kernarg_bytes
    return struct.pack("<III4xq20xIIIHH4x", *head, kernel.entry_offset, *registers, kernel.preload)
