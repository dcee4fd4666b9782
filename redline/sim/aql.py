# SPDX-License-Identifier: Apache-2.0
"""Runs one AQL packet and completes its signal: the packet processor above the PM4 reader.

Covered: kernel dispatch, barrier-AND, barrier-OR and the vendor packet with a PM4 indirect buffer (format 1). Every
other type stops the queue with its name. All reserved fields must be zero. Packets of a queue are taken in order; what
a barrier bit and a fence scope mean is told to the back end. A barrier packet holds back all behind it. Barrier bit and
scopes of a vendor packet do nothing here: what they do to a buffer is documented nowhere.

Layouts: hsa.h (headers, kernel dispatch, barriers) and ROCr's amd_aql_queue.cpp, ExecutePM4 (the vendor packet).
Scopes: hsa.h, hsa_fence_scope_t; agent is I, K, V and L1, system GL2 too (LLVM AMDGPUUsage, "Memory Model").
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from redline.sim.aql_packet import (
    TYPE_BARRIER_AND,
    TYPE_BARRIER_OR,
    TYPE_KERNEL_DISPATCH,
    TYPE_VENDOR,
    AqlPacket,
)
from redline.sim.clock import device_ticks
from redline.sim.errors import Cancelled, Refusal, WaitExpired
from redline.sim.kernel_dispatch import kernel_dispatch
from redline.sim.packet import Executed
from redline.sim.packets import Pm4Reader
from redline.sim.signals import Signals

HEADER_RESERVED = 0xE000  # bits 15:13
BARRIER, ACQUIRE, RELEASE = 1 << 8, 9, 11  # a bit; the lowest bits of two scopes
# What a scope does, as GCR_CNTL: agent GLI_INV, GLK_INV, GLV_INV, GL1_INV; system GL2_INV and GL2_WB too.
ACQUIRES = (0, 0x381, 0xC381)
RELEASES = (0, 0, 0x8000)
_REFUSED_TYPES = {4: "HSA_PACKET_TYPE_AGENT_DISPATCH"}

FORMAT_PM4_IB = 1
INDIRECT_BUFFER_HEADER = 0xC0023F00
INDIRECT_BUFFER_VALID = 1 << 23
DW_CNT_REMAIN = 0xA
DEP_SIGNAL, DEP_SIGNALS = 2, 5


class AqlProcessor:
    """Runs packets for one queue. `patience_s` bounds how long a barrier waits."""

    def __init__(self, reader: Pm4Reader, signals: Signals, patience_s: float) -> None:
        self._reader, self._signals, self._patience_s = reader, signals, patience_s
        self.profiled = False  # completion signals of dispatches get their times
        self._handlers: dict[int, Callable[[AqlPacket, threading.Event], None]] = {
            TYPE_VENDOR: self._run_indirect_buffer,
            TYPE_KERNEL_DISPATCH: self._run_kernel,
            TYPE_BARRIER_AND: self._barrier_and,
            TYPE_BARRIER_OR: self._barrier_or,
        }

    def run(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        """Do the packet's work and complete its signal, or raise what stops the queue."""
        self._check_header(packet)
        signal = packet.completion_signal
        if signal and not self._signals.is_plain(signal):
            raise packet.fault(14, f"completion signal {signal:#x}", "0 or the handle of a live signal")
        handler = self._handlers.get(packet.type)
        if handler is None:
            name = _REFUSED_TYPES.get(packet.type, f"type {packet.type}")
            allowed = "vendor (format 1), kernel dispatch, barrier-AND or barrier-OR"
            raise packet.fault(0, name, allowed)
        handler(packet, cancelled)

    def _acquire(self, packet: AqlPacket) -> None:
        gcr = ACQUIRES[packet.words[0] >> ACQUIRE & 3]
        if gcr:
            self._reader.backend.acquire(gcr, whole=True)

    def _complete(self, packet: AqlPacket, times: tuple[int, int] | None = None) -> None:
        """Times go first: who sees the value may ask for them."""
        signal = packet.completion_signal
        if not signal:
            return
        try:
            if times:
                self._signals.note_times(signal, *times)
            self._signals.subtract(signal, 1)
        except Refusal as refusal:
            allowed = "a signal that lives until the packet is done"
            raise packet.fault(14, f"completion signal {signal:#x}, gone meanwhile", allowed) from refusal

    def _check_header(self, packet: AqlPacket) -> None:
        header = packet.words[0] & 0xFFFF
        if header & HEADER_RESERVED or header >> 9 & 3 == 3 or header >> 11 & 3 == 3:
            raise packet.fault(0, "header", "fence scopes 0 to 2 and bits 15:13 clear")

    def _run_indirect_buffer(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        if packet.words[0] >> 16 != FORMAT_PM4_IB:
            raise packet.fault(0, "vendor format", "1 (PM4 indirect buffer) in bits 31:16")
        if packet.words[1] != INDIRECT_BUFFER_HEADER:
            raise packet.fault(1, "INDIRECT_BUFFER header", f"{INDIRECT_BUFFER_HEADER:#010x}")
        packet.require(2, 0xFFFFFFFC, "IB_BASE_LO")
        packet.require(3, 0xFFFF, "IB_BASE_HI")
        packet.require(4, 0x008FFFFF, "IB control (size and VALID alone)")
        if not packet.words[4] & INDIRECT_BUFFER_VALID:
            raise packet.fault(4, "IB control", "VALID (bit 23)")
        if packet.words[5] != DW_CNT_REMAIN:
            raise packet.fault(5, "dw_cnt_remain", f"{DW_CNT_REMAIN:#x}")
        for word in range(6, 14):
            packet.require(word, 0, "reserved")
        self._reader.run(packet.words[2] | packet.words[3] << 32, packet.words[4] & 0xFFFFF, cancelled)
        self._complete(packet)

    def _run_kernel(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        """Starts as its own PM4 would, and leaves registers behind that no later stream may build on."""
        reader = self._reader
        if packet.words[0] & BARRIER:
            reader.backend.drain()
        dispatch = kernel_dispatch(packet, reader.memory, reader.family, reader.registers.count())
        reader.registers.forget()
        executed = Executed("KERNEL_DISPATCH", 0, packet.index, packet.words, dispatch)
        reader.backend.begin(reader.memory)
        self._acquire(packet)
        began = device_ticks()
        reader.start(executed, f"AQL packet {packet.index}", cancelled)

        def ended() -> None:
            self._complete(packet, (began, device_ticks()) if self.profiled else None)

        reader.backend.when_ended(RELEASES[packet.words[0] >> RELEASE & 3], ended)

    def _barrier_and(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        """A null handle counts as satisfied."""
        wanted = self._dependencies(packet)
        self._wait(packet, wanted, "barrier-AND", all, "all signals to be 0", cancelled)
        self._end_barrier(packet)

    def _barrier_or(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        """A null handle counts as not satisfied: five of them would wait for ever."""
        wanted = self._dependencies(packet)
        if not wanted:
            raise packet.fault(DEP_SIGNAL, "dep_signal of a barrier-OR", "at least one signal that can satisfy it")
        self._wait(packet, wanted, "barrier-OR", any, "one signal to be 0", cancelled)
        self._end_barrier(packet)

    def _end_barrier(self, packet: AqlPacket) -> None:
        """Acquire, then release, in the completion phase; the barrier bit waits for earlier packets before that."""
        self._acquire(packet)
        if packet.words[0] & BARRIER:
            self._reader.backend.at_end_of_pipe(
                RELEASES[packet.words[0] >> RELEASE & 3], lambda: self._complete(packet)
            )
        else:
            self._complete(packet)

    def _dependencies(self, packet: AqlPacket) -> list[int]:
        if packet.words[0] >> 16:
            raise packet.fault(0, "reserved", "0 in bits 31:16")
        for word in (1, 12, 13):
            packet.require(word, 0, "reserved")
        handles = {word: packet.u64(word) for word in range(DEP_SIGNAL, DEP_SIGNAL + 2 * DEP_SIGNALS, 2)}
        for word, handle in handles.items():
            if handle and not self._signals.is_plain(handle):
                raise packet.fault(word, f"dep_signal {handle:#x}", "0 or the handle of a live signal")
        return [handle for handle in handles.values() if handle]

    def _wait(
        self,
        packet: AqlPacket,
        wanted: list[int],
        name: str,
        enough: Callable[[list[bool]], bool],
        condition: str,
        cancelled: threading.Event,
    ) -> None:
        def satisfied() -> bool:
            return cancelled.is_set() or enough([self._signals.load(handle) == 0 for handle in wanted])

        try:
            in_time = self._signals.wait_until(satisfied, self._patience_s)
            seen = ", ".join(f"{handle:#x} = {self._signals.load(handle)}" for handle in wanted)
        except Refusal as refusal:
            allowed = "signals that live until the packet is done"
            raise packet.fault(DEP_SIGNAL, f"dep_signal of {name}: {refusal.text}", allowed) from refusal
        if cancelled.is_set():
            raise Cancelled
        if not in_time:
            raise WaitExpired(f"AQL packet {packet.index}: {name}", condition, seen, self._patience_s)
