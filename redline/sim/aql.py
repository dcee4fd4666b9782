# SPDX-License-Identifier: Apache-2.0
"""Reads one AQL packet and does what it says: the packet processor above the PM4 reader.

Covered: the vendor packet with a PM4 indirect buffer (format 1) and barrier-AND. A kernel dispatch packet and every
other type stop the queue with their name. All reserved fields must be zero. Packets run one at a time and to their
end, which satisfies every barrier bit and every fence scope.

Layouts: hsa.h (headers, barrier-AND) and ROCr's amd_aql_queue.cpp, ExecutePM4 (the vendor packet).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from redline.sim.errors import Cancelled, PacketFault, WaitExpired
from redline.sim.packets import Pm4Reader
from redline.sim.signals import Signals

PACKET_BYTES = 64
PACKET_WORDS = 16
HEADER_TYPE = 0xFF
HEADER_RESERVED = 0xE000  # bits 15:13
TYPE_VENDOR, TYPE_INVALID, TYPE_BARRIER_AND = 0, 1, 3
_TYPE_NAMES = {
    2: "HSA_PACKET_TYPE_KERNEL_DISPATCH",
    4: "HSA_PACKET_TYPE_AGENT_DISPATCH",
    5: "HSA_PACKET_TYPE_BARRIER_OR",
}

FORMAT_PM4_IB = 1
INDIRECT_BUFFER_HEADER = 0xC0023F00
INDIRECT_BUFFER_VALID = 1 << 23
DW_CNT_REMAIN = 0xA


@dataclass(frozen=True)
class AqlPacket:
    """Sixteen words of a ring and where they stood."""

    index: int  # absolute packet index
    words: tuple[int, ...]

    @property
    def type(self) -> int:
        return self.words[0] & HEADER_TYPE

    @property
    def completion_signal(self) -> int:
        return self.words[14] | self.words[15] << 32

    def fault(self, word: int, name: str, allowed: str) -> PacketFault:
        return PacketFault(f"AQL packet {self.index}, dword {word}: {name}", f"{self.words[word]:#010x}", allowed)

    def require(self, word: int, mask: int, name: str) -> None:
        if self.words[word] & ~mask & 0xFFFFFFFF:
            raise self.fault(word, name, f"bits within {mask:#010x}; the others are reserved")


class AqlProcessor:
    """Runs packets for one queue. `patience_s` bounds how long a barrier waits."""

    def __init__(self, reader: Pm4Reader, signals: Signals, patience_s: float) -> None:
        self._reader, self._signals, self._patience_s = reader, signals, patience_s

    def run(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        """Do the packet's work and complete its signal, or raise what stops the queue."""
        self._check_header(packet)
        signal = packet.completion_signal
        if signal and not self._signals.is_alive(signal):
            raise packet.fault(14, f"completion signal {signal:#x}", "0 or the handle of a live signal")
        if packet.type == TYPE_VENDOR:
            self._run_indirect_buffer(packet, cancelled)
        elif packet.type == TYPE_BARRIER_AND:
            self._wait_for_signals(packet, cancelled)
        else:
            name = _TYPE_NAMES.get(packet.type, f"type {packet.type}")
            raise packet.fault(0, name, "a PM4 indirect buffer (vendor, format 1) or barrier-AND")
        if signal:
            self._signals.subtract(signal, 1)

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

    def _wait_for_signals(self, packet: AqlPacket, cancelled: threading.Event) -> None:
        if packet.words[0] >> 16:
            raise packet.fault(0, "reserved", "0 in bits 31:16")
        for word in (1, 12, 13):
            packet.require(word, 0, "reserved")
        handles = [packet.words[2 + 2 * i] | packet.words[3 + 2 * i] << 32 for i in range(5)]
        wanted = [handle for handle in handles if handle]  # a null handle counts as satisfied
        for handle in wanted:
            if not self._signals.is_alive(handle):
                raise packet.fault(2, f"dep_signal {handle:#x}", "0 or the handle of a live signal")

        def satisfied() -> bool:
            return cancelled.is_set() or all(self._signals.load(handle) == 0 for handle in wanted)

        in_time = self._signals.wait_until(satisfied, self._patience_s)
        if cancelled.is_set():
            raise Cancelled
        if not in_time:
            seen = ", ".join(f"{handle:#x} = {self._signals.load(handle)}" for handle in wanted)
            where = f"AQL packet {packet.index}: barrier-AND"
            raise WaitExpired(where, "all signals to be 0", seen, self._patience_s)
