# SPDX-License-Identifier: Apache-2.0
"""Reads a PM4 stream from memory and does what it says: the compute micro engine of the software device.

Its own reader: nothing is shared with `redline/encoders`. A word that is not understood, a reserved bit, a register
that belongs to the queue or one that a dispatch needs and nobody wrote stops the stream with its place and value. Here
are framing, chains, registers, caches and dispatches; `transfers.py` has what packets write, `waits.py` what they wait
for. Executes no kernel and models no cache: dispatches, drains and acquires go to the back end.

Packet layouts: drivers/gpu/drm/amd/amdgpu/nvd.h of Linux 6.12, and the MEC structures of GPUOpen PAL
(gfx9_plus_merged_f32_mec_pm4_packets.h, gfx12_merged_f32_mec_pm4_packets.h).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from redline.sim.dispatch import Backend
from redline.sim.dispatch_registers import DispatchRegisters
from redline.sim.errors import Cancelled, DeviceFault, PacketFault
from redline.sim.families import Family
from redline.sim.memory import Memory
from redline.sim.packet import Executed, Packet
from redline.sim.transfers import MOST_LATE_DWORDS, Transfers
from redline.sim.waits import Waits

MAX_CHAIN = 4096

CS_PARTIAL_FLUSH = 0x07  # EVENT_TYPE of soc21_enum.h, equal in navi10_enum.h
NOP_PAD_COUNT = 0x3FFF  # a NOP whose count is all ones is one dword long

# DISPATCH_INITIATOR bits this device acts on: COMPUTE_SHADER_EN, PARTIAL_TG_EN, FORCE_START_AT_000,
# USE_THREAD_DIMENSIONS, ORDER_MODE (a scheduling hint), CS_W32_EN.
INITIATOR_ALLOWED = 0x8067

GL2_DISCARD = 1 << 13
EVERY_ADDRESS = (1 << 40) - 1  # COHER_SIZE counts 256 bytes, and addresses have 48 bits

# Packets whose header may carry the shader type (bit 1): drivers set it there, and MEC ignores it.
_MAY_SAY_COMPUTE = frozenset({"DISPATCH_DIRECT", "DISPATCH_INDIRECT", "SET_SH_REG"})

_Handler = Callable[[Packet, threading.Event], None]


class Pm4Reader:
    """Runs streams for one queue. `patience_s` bounds every wait inside a stream."""

    def __init__(
        self,
        family: Family,
        memory: Memory,
        backend: Backend,
        record: Callable[[Executed], object],
        patience_s: float,
    ) -> None:
        self.family, self.memory = family, memory
        self.backend, self._record = backend, record
        self._transfers = Transfers(memory, family, backend)
        waits = Waits(memory, backend, patience_s)
        self._handlers: dict[int, tuple[str, int | None, _Handler]] = {
            # opcode: name, dwords (None: any), what it does
            0x10: ("NOP", None, self._nop),
            0x15: ("DISPATCH_DIRECT", 5, self._dispatch_direct),
            0x16: ("DISPATCH_INDIRECT", 4, self._dispatch_indirect),
            0x37: ("WRITE_DATA", None, self._transfers.write_data),
            0x3C: ("WAIT_REG_MEM", 7, waits.wait_reg_mem),
            0x40: ("COPY_DATA", 6, self._transfers.copy_data),
            0x46: ("EVENT_WRITE", 2, self._event_write),
            0x49: ("RELEASE_MEM", 8, self._transfers.release_mem),
            0x58: ("ACQUIRE_MEM", 8, self._acquire_mem),
            0x76: ("SET_SH_REG", None, self._set_sh_reg),
            0x93: ("WAIT_REG_MEM64", 9, waits.wait_reg_mem64),
        }
        self.registers = DispatchRegisters(family)
        self.forgetful = False  # unset all registers before each buffer: hostile, and still legal

    def run(self, ib: int, dwords: int, cancelled: threading.Event) -> None:
        """Run one indirect buffer and what it chains to."""
        self._transfers.drop()
        self.backend.begin(self.memory)
        if self.forgetful:
            self.registers.forget()
        chained = 0
        next_ib: tuple[int, int] | None = (ib, dwords)
        while next_ib is not None:
            next_ib = self._run_one(*next_ib, cancelled)
            self._transfers.land(MOST_LATE_DWORDS)
            chained += 1
            if chained > MAX_CHAIN:
                raise PacketFault(f"PM4 stream at {ib:#x}", f"more than {MAX_CHAIN} chained buffers", "an end")
        self._transfers.land()

    def start(self, executed: Executed, place: str, cancelled: threading.Event) -> None:
        """Record a dispatch and start it; a fault says which dispatch, from where."""
        self._record(executed)
        dispatch = executed.dispatch
        if dispatch is None:
            return
        try:
            self.backend.dispatch(dispatch, self.memory, cancelled)
        except DeviceFault as fault:
            fault.add_note(f"in dispatch {dispatch.ordinal} of this queue, entry {dispatch.entry:#x}, {place}")
            raise

    # Framing

    def _run_one(self, ib: int, dwords: int, cancelled: threading.Event) -> tuple[int, int] | None:
        words = self._fetch(ib, dwords)
        at = 0
        while at < dwords:
            if cancelled.is_set():
                raise Cancelled
            packet = self._packet(ib, words, at)
            at += len(packet.words)
            if packet.name == "INDIRECT_BUFFER":
                return self._chain(packet, at == dwords)
            starts = packet.name.startswith("DISPATCH")
            with nullcontext() if starts else packet.noted():
                self._handlers[packet.field(0, 8, 8)][2](packet, cancelled)
            if not starts:
                self._record(Executed(packet.name, ib, packet.dword, packet.words))
        return None

    def _fetch(self, ib: int, dwords: int) -> tuple[int, ...]:
        """The buffer's words. It must lie in one allocation that the device may execute."""
        allocation = self.memory.find(ib, 4 * dwords)
        if allocation is None or not allocation.executable or not allocation.mapped or ib % 4 or not dwords:
            raise PacketFault(
                f"indirect buffer at {ib:#x}",
                f"{dwords} dwords"
                + (" in memory without the executable flag" if allocation and not allocation.executable else ""),
                "a dword-aligned range inside one allocation with HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG",
            )
        raw = self.memory.bytes_at(ib, 4 * dwords)
        return tuple(np.frombuffer(raw, "<u4").tolist())

    def _packet(self, ib: int, words: tuple[int, ...], at: int) -> Packet:
        """The packet whose header is word `at`, complete and of the right length."""
        header = words[at]
        whole = Packet("header", ib, at, words[at : at + 1])
        if header >> 30 != 3:
            raise whole.fault(0, "type", "3 in bits 31:30")
        name, dwords = self._name_and_length(whole)
        if header & (0xFD if name in _MAY_SAY_COMPUTE else 0xFF):
            allowed = f"0 (shader type, bit 1, on {', '.join(sorted(_MAY_SAY_COMPUTE))} alone)"
            raise whole.fault(0, f"{name} bits 7:0", allowed)
        if at + dwords > len(words):
            raise whole.fault(0, f"{name} of {dwords} dwords", f"at most the {len(words) - at} that are left")
        return Packet(name, ib, at, words[at : at + dwords])

    def _name_and_length(self, header: Packet) -> tuple[str, int]:
        opcode, count = header.field(0, 8, 8), header.field(0, 16, 14)
        if opcode == 0x3F:
            name, fixed = "INDIRECT_BUFFER", 4
        elif opcode in self._handlers:
            name, any_or_fixed, _ = self._handlers[opcode]
            if any_or_fixed is None:
                return name, 1 if name == "NOP" and count == NOP_PAD_COUNT else count + 2
            fixed = any_or_fixed
        else:
            raise header.fault(0, f"opcode {opcode:#04x}", "an opcode that this device covers")
        if count + 2 != fixed:
            raise header.fault(0, name, f"a count of {fixed - 2} (the packet has {fixed} dwords)")
        return name, fixed

    def _chain(self, packet: Packet, is_last: bool) -> tuple[int, int]:
        packet.require(3, 0x009FFFFF, "INDIRECT_BUFFER control")
        size, flags = packet.field(3, 0, 20), packet.words[3] >> 20
        if flags != 0x9 or not size or not is_last:
            raise packet.fault(3, "control", "VALID and CHAIN, a size, and nothing behind the packet")
        self._record(Executed(packet.name, packet.ib, packet.dword, packet.words))
        return packet.address(1, 4), size

    # Packets

    def _nop(self, packet: Packet, _cancelled: threading.Event) -> None:
        """Skips its body."""

    def _set_sh_reg(self, packet: Packet, _cancelled: threading.Event) -> None:
        packet.require(1, 0xFFFF, "REG_OFFSET")
        if len(packet.words) < 3:
            raise packet.fault(0, "count", "at least one register value")
        for index in range(2, len(packet.words)):
            offset = packet.words[1] + index - 2
            register = self.family.settable.get(offset)
            if register is None:
                owner = self.family.owned.get(offset)
                what = f"{owner}, which belongs to the queue" if owner else "no register of this family"
                raise packet.fault(index, f"register {offset:#x} ({what})", "registers of a dispatch")
            packet.require(index, register.mask, register.name)
            self.registers.write(offset, packet.words[index])

    def _acquire_mem(self, packet: Packet, _cancelled: threading.Event) -> None:
        packet.require(1, 0, "dword 1")
        packet.require(3, 0x01FFFFFF, "COHER_SIZE_HI")
        packet.require(5, 0x01FFFFFF, "COHER_BASE_HI")
        packet.require(6, 0xFFFF, "POLL_INTERVAL")
        packet.require(7, self.family.gcr_mask & ~GL2_DISCARD, "GCR_CNTL (GL2_DISCARD drops dirty lines)")
        if packet.field(7, 2, 2) == 1:
            raise packet.fault(7, "GL1_RANGE", "0 all, 2 range, 3 first and last")
        if packet.field(7, 4, 2) == 1:
            raise packet.fault(7, "GCR_CNTL", "GLM_WB together with GLM_INV alone")
        if packet.field(7, 16, 2) == 3:
            raise packet.fault(7, "SEQ", "0 parallel, 1 forward, 2 reverse")
        whole = not packet.u64(4) and packet.u64(2) >= EVERY_ADDRESS
        self.backend.acquire(packet.words[7], whole=whole)

    def _event_write(self, packet: Packet, _cancelled: threading.Event) -> None:
        if packet.words[1] != (CS_PARTIAL_FLUSH | 4 << 8):
            raise packet.fault(1, "event", "0x00000407, CS_PARTIAL_FLUSH with index 4")
        self.backend.drain()

    def _dispatch_direct(self, packet: Packet, cancelled: threading.Event) -> None:
        self._check_initiator(packet, 4)
        dims = (packet.words[1], packet.words[2], packet.words[3])
        if 0 in dims:
            raise packet.fault(1 + dims.index(0), "DIM", "at least 1")
        self._dispatch(packet, dims, cancelled)

    def _dispatch_indirect(self, packet: Packet, cancelled: threading.Event) -> None:
        """The MEC form: an address of three dwords, read now. A zero among them starts nothing."""
        self._check_initiator(packet, 3)
        address = packet.address(1, 4)
        with packet.noted():
            x, y, z = np.frombuffer(self.backend.counts(self.memory, address), "<u4").tolist()
        self._dispatch(packet, (x, y, z), cancelled, address)

    def _check_initiator(self, packet: Packet, index: int) -> None:
        packet.require(index, INITIATOR_ALLOWED & self.family.wave_initiator_mask, "DISPATCH_INITIATOR")
        if not packet.words[index] & 1:
            raise packet.fault(index, "DISPATCH_INITIATOR", "COMPUTE_SHADER_EN (bit 0)")

    def _dispatch(
        self, packet: Packet, dims: tuple[int, int, int], cancelled: threading.Event, counts_va: int = 0
    ) -> None:
        dispatch = self.registers.launch(f"{packet.place}: {packet.name}", dims, packet.words[-1], counts_va)
        self.start(Executed(packet.name, packet.ib, packet.dword, packet.words, dispatch), packet.place, cancelled)
