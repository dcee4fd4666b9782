# SPDX-License-Identifier: Apache-2.0
"""Reads a PM4 stream from memory and does what it says: the compute micro engine of the software device.

Its own reader: nothing is shared with `redline/encoders`. A word that is not understood, a reserved bit, a
register that belongs to the queue or one that a dispatch needs and nobody wrote stops the stream with its
place and value. Does not model caches: an acquire is checked and recorded, no more. Does not execute
kernels: a dispatch goes to the back end, which returns when all of its waves have ended, so every drain is
satisfied at once.

Packet layouts: drivers/gpu/drm/amd/amdgpu/nvd.h of Linux 6.12, and the MEC structures of GPUOpen PAL
(gfx9_f32_mec_pm4_packets.h, gfx12_f32_mec_pm4_packets.h).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from redline.sim.dispatch import Backend, Dispatch
from redline.sim.dispatch_registers import DispatchRegisters
from redline.sim.errors import Cancelled, DeviceFault, PacketFault, WaitExpired
from redline.sim.families import Family
from redline.sim.memory import Memory

MAX_CHAIN = 4096
DEVICE_TICKS_PER_SECOND = 100_000_000

# EVENT_TYPE values of soc21_enum.h, equal in navi10_enum.h.
CS_PARTIAL_FLUSH = 0x07
CACHE_FLUSH_AND_INV_TS = 0x14
BOTTOM_OF_PIPE_TS = 0x28

# DISPATCH_INITIATOR bits this device acts on: COMPUTE_SHADER_EN, PARTIAL_TG_EN, FORCE_START_AT_000,
# USE_THREAD_DIMENSIONS, ORDER_MODE (a scheduling hint), CS_W32_EN.
INITIATOR_ALLOWED = 0x8067

GL2_DISCARD = 1 << 13


@dataclass(frozen=True)
class Executed:
    """One packet that the stream ran, for tests and traces."""

    name: str
    ib: int
    dword: int  # place of its header in the indirect buffer
    words: tuple[int, ...]
    dispatch: Dispatch | None = None


@dataclass(frozen=True)
class _Packet:
    """A packet under the reader's eye."""

    name: str
    ib: int
    dword: int
    words: tuple[int, ...]

    def fault(self, index: int, name: str, allowed: str) -> PacketFault:
        """A fault at word `index` of this packet, in the field or thing called `name`."""
        return PacketFault(
            f"PM4 stream at {self.ib:#x}, dword {self.dword + index}: {self.name} {name}",
            f"{self.words[index]:#010x}",
            allowed,
        )

    def require(self, index: int, mask: int, name: str) -> None:
        """Bits outside `mask` of word `index` must be clear."""
        if self.words[index] & ~mask & 0xFFFFFFFF:
            raise self.fault(index, name, f"bits within {mask:#010x}; the others are reserved")

    def address(self, index: int, align: int) -> int:
        """The 48-bit address in words `index` and `index + 1`."""
        self.require(index + 1, 0xFFFF, "address high half")
        address = self.words[index] | self.words[index + 1] << 32
        if address % align:
            raise self.fault(index, "address", f"a multiple of {align}")
        return address


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
        self._family, self._memory, self._backend = family, memory, backend
        self._record, self._patience_s = record, patience_s
        self._late: list[tuple[int, bytes]] = []
        self._handlers: dict[int, tuple[str, int | None, Callable[[_Packet, threading.Event], None]]] = {
            # opcode: name, dwords (None: any), what it does
            0x10: ("NOP", None, self._nop),
            0x15: ("DISPATCH_DIRECT", 5, self._dispatch_direct),
            0x37: ("WRITE_DATA", None, self._write_data),
            0x3C: ("WAIT_REG_MEM", 7, self._wait_reg_mem),
            0x46: ("EVENT_WRITE", 2, self._event_write),
            0x49: ("RELEASE_MEM", 8, self._release_mem),
            0x58: ("ACQUIRE_MEM", 8, self._acquire_mem),
            0x76: ("SET_SH_REG", None, self._set_sh_reg),
        }
        self.registers = DispatchRegisters(family)
        self.forgetful = False  # unset all registers before each buffer: hostile, and still legal

    def run(self, ib: int, dwords: int, cancelled: threading.Event) -> None:
        """Run one indirect buffer and what it chains to."""
        self._late.clear()
        if self.forgetful:
            self.registers.forget()
        chained = 0
        next_ib: tuple[int, int] | None = (ib, dwords)
        while next_ib is not None:
            next_ib = self._run_one(*next_ib, cancelled)
            chained += 1
            if chained > MAX_CHAIN:
                raise PacketFault(f"PM4 stream at {ib:#x}", f"more than {MAX_CHAIN} chained buffers", "an end")
        for address, data in self._late:
            self._memory.store(address, data)

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
            opcode = packet.words[0] >> 8 & 0xFF
            self._handlers[opcode][2](packet, cancelled)
            if packet.name != "DISPATCH_DIRECT":
                self._record(Executed(packet.name, ib, packet.dword, packet.words))
        return None

    def _fetch(self, ib: int, dwords: int) -> tuple[int, ...]:
        """The buffer's words. It must lie in one allocation that the device may execute."""
        allocation = self._memory.find(ib, 4 * dwords)
        if allocation is None or not allocation.executable or not allocation.mapped or ib % 4 or not dwords:
            raise PacketFault(
                f"indirect buffer at {ib:#x}",
                f"{dwords} dwords"
                + (" in memory without the executable flag" if allocation and not allocation.executable else ""),
                "a dword-aligned range inside one allocation with HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG",
            )
        raw = self._memory.bytes_at(ib, 4 * dwords)
        return tuple(np.frombuffer(raw, "<u4").tolist())

    def _packet(self, ib: int, words: tuple[int, ...], at: int) -> _Packet:
        """The packet whose header is word `at`, complete and of the right length."""
        header = words[at]
        opcode, count = header >> 8 & 0xFF, header >> 16 & 0x3FFF
        whole = _Packet("header", ib, at, words[at : at + 1])
        if header >> 30 != 3:
            raise whole.fault(0, "type", "3 in bits 31:30")
        if opcode == 0x3F:
            name, dwords = "INDIRECT_BUFFER", 4
        elif opcode in self._handlers:
            name, fixed, _ = self._handlers[opcode]
            # A NOP whose count is all ones is one dword long: padding.
            dwords = 1 if name == "NOP" and count == 0x3FFF else count + 2
            if fixed is not None and dwords != fixed:
                raise whole.fault(0, name, f"a count of {fixed - 2} (the packet has {fixed} dwords)")
        else:
            raise whole.fault(0, f"opcode {opcode:#04x}", "an opcode that this device covers")
        # Bit 1 is the shader type; drivers set it on dispatches and register writes, and MEC ignores it.
        if header & (0xFD if name in ("DISPATCH_DIRECT", "SET_SH_REG") else 0xFF):
            raise whole.fault(0, f"{name} bits 7:0", "0 (shader type on DISPATCH_DIRECT and SET_SH_REG alone)")
        if at + dwords > len(words):
            raise whole.fault(0, f"{name} of {dwords} dwords", f"at most the {len(words) - at} that are left")
        return _Packet(name, ib, at, words[at : at + dwords])

    # Packets

    def _nop(self, packet: _Packet, _cancelled: threading.Event) -> None:
        """Skips its body."""

    def _set_sh_reg(self, packet: _Packet, _cancelled: threading.Event) -> None:
        packet.require(1, 0xFFFF, "REG_OFFSET")
        if len(packet.words) < 3:
            raise packet.fault(0, "count", "at least one register value")
        for index in range(2, len(packet.words)):
            offset = packet.words[1] + index - 2
            register = self._family.settable.get(offset)
            if register is None:
                owner = self._family.owned.get(offset)
                what = f"{owner}, which belongs to the queue" if owner else "no register of this family"
                raise packet.fault(index, f"register {offset:#x} ({what})", "registers of a dispatch")
            packet.require(index, register.mask, register.name)
            self.registers.write(offset, packet.words[index])

    def _acquire_mem(self, packet: _Packet, _cancelled: threading.Event) -> None:
        packet.require(1, 0, "dword 1")
        packet.require(3, 0x01FFFFFF, "COHER_SIZE_HI")
        packet.require(5, 0x01FFFFFF, "COHER_BASE_HI")
        packet.require(6, 0xFFFF, "POLL_INTERVAL")
        packet.require(7, self._family.gcr_mask & ~GL2_DISCARD, "GCR_CNTL (GL2_DISCARD drops dirty lines)")

    def _event_write(self, packet: _Packet, _cancelled: threading.Event) -> None:
        """Dispatches end before the next packet is read, so the flush has nothing to wait for."""
        if packet.words[1] != (CS_PARTIAL_FLUSH | 4 << 8):
            raise packet.fault(1, "event", "0x00000407, CS_PARTIAL_FLUSH with index 4")

    def _release_mem(self, packet: _Packet, _cancelled: threading.Event) -> None:
        packet.require(1, self._family.release_mask & ~(1 << 19), "event and GCR (never GL2_DISCARD)")
        event, index = packet.words[1] & 0x3F, packet.words[1] >> 8 & 0xF
        if event not in (BOTTOM_OF_PIPE_TS, CACHE_FLUSH_AND_INV_TS) or index != 5:
            raise packet.fault(1, "event", "BOTTOM_OF_PIPE_TS or CACHE_FLUSH_AND_INV_TS with index 5")
        packet.require(2, 0xE7030000, "selectors")
        if packet.words[2] >> 16 & 3 > 1 or packet.words[2] >> 24 & 7 not in (0, 3):
            raise packet.fault(2, "selectors", "destination 0 or 1; interrupt 0 or 3 (data after confirm)")
        packet.require(7, 0, "INT_CTXID")
        self._end_of_pipe_write(packet, packet.words[2] >> 29)

    def _end_of_pipe_write(self, packet: _Packet, data_sel: int) -> None:
        if data_sel == 0:
            return
        address = packet.address(3, 4 if data_sel == 1 else 8)
        if data_sel == 1:
            self._memory.store(address, packet.words[5].to_bytes(4, "little"))
        elif data_sel == 2:
            self._memory.store(address, (packet.words[5] | packet.words[6] << 32).to_bytes(8, "little"))
        elif data_sel == 3:
            self._memory.store(address, device_ticks().to_bytes(8, "little"))
        else:
            raise packet.fault(2, "DATA_SEL", "0 none, 1 32 bits, 2 64 bits, 3 GPU clock")

    def _write_data(self, packet: _Packet, _cancelled: threading.Event) -> None:
        """Without WR_CONFIRM the write may land at any later time: here as late as the stream's end."""
        if len(packet.words) < 5:
            raise packet.fault(0, "count", "an address and at least one word of data")
        packet.require(1, 0x06100F00, "control")
        if packet.words[1] >> 8 & 0xF not in (2, 5):
            raise packet.fault(1, "DST_SEL", "2 (TC_L2) or 5 (memory)")
        address = packet.address(2, 4)
        data = np.array(packet.words[4:], "<u4").tobytes()
        if packet.words[1] >> 20 & 1:
            self._memory.store(address, data)
        else:
            self._late.append((address, data))

    def _wait_reg_mem(self, packet: _Packet, cancelled: threading.Event) -> None:
        packet.require(1, 0x37, "control (WAIT_REG_MEM in memory space, operation 0)")
        if packet.words[1] >> 4 & 3 != 1:
            raise packet.fault(1, "MEM_SPACE", "1 (memory)")
        packet.require(6, 0x8000FFFF, "POLL_INTERVAL")
        function = packet.words[1] & 7
        if function not in _COMPARE:
            raise packet.fault(1, "FUNCTION", "0 to 6")
        sign, holds = _COMPARE[function]
        address, reference, mask = packet.address(2, 4), packet.words[4], packet.words[5]
        started = time.monotonic()
        while True:
            seen = self._memory.u32_at(address)
            if holds(seen & mask, reference):
                return
            if time.monotonic() - started > self._patience_s:
                where = f"PM4 stream at {packet.ib:#x}, dword {packet.dword}: WAIT_REG_MEM"
                wanted = f"[{address:#x}] & {mask:#x} {sign} {reference:#x}"
                raise WaitExpired(where, wanted, f"{seen:#x}", self._patience_s)
            if cancelled.wait(0.0005):
                raise Cancelled

    def _chain(self, packet: _Packet, is_last: bool) -> tuple[int, int]:
        packet.require(3, 0x009FFFFF | 1 << 20, "INDIRECT_BUFFER control")
        size, flags = packet.words[3] & 0xFFFFF, packet.words[3] >> 20
        if flags != 0x9 or not size or not is_last:
            raise packet.fault(3, "control", "VALID and CHAIN, a size, and nothing behind the packet")
        self._record(Executed(packet.name, packet.ib, packet.dword, packet.words))
        return packet.address(1, 4), size

    def _dispatch_direct(self, packet: _Packet, cancelled: threading.Event) -> None:
        initiator = packet.words[4]
        packet.require(4, INITIATOR_ALLOWED & self._family.wave_initiator_mask, "DISPATCH_INITIATOR")
        if not initiator & 1:
            raise packet.fault(4, "DISPATCH_INITIATOR", "COMPUTE_SHADER_EN (bit 0)")
        if 0 in packet.words[1:4]:
            raise packet.fault(1 + packet.words[1:4].index(0), "DIM", "at least 1")
        place = f"PM4 stream at {packet.ib:#x}, dword {packet.dword}"
        dims = (packet.words[1], packet.words[2], packet.words[3])
        dispatch = self.registers.launch(f"{place}: DISPATCH_DIRECT", dims, initiator)
        self._record(Executed(packet.name, packet.ib, packet.dword, packet.words, dispatch))
        try:
            self._backend.dispatch(dispatch, self._memory, cancelled)
        except DeviceFault as fault:
            fault.add_note(f"in dispatch {dispatch.ordinal} of this queue, entry {dispatch.entry:#x}, {place}")
            raise


_COMPARE: dict[int, tuple[str, Callable[[int, int], bool]]] = {
    0: ("always", lambda _seen, _reference: True),
    1: ("<", lambda seen, reference: seen < reference),
    2: ("<=", lambda seen, reference: seen <= reference),
    3: ("==", lambda seen, reference: seen == reference),
    4: ("!=", lambda seen, reference: seen != reference),
    5: (">=", lambda seen, reference: seen >= reference),
    6: (">", lambda seen, reference: seen > reference),
}


def device_ticks() -> int:
    """The constant-rate clock that timestamps and wait hints count in."""
    return time.monotonic_ns() * DEVICE_TICKS_PER_SECOND // 1_000_000_000
