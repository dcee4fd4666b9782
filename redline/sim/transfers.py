# SPDX-License-Identifier: Apache-2.0
"""WRITE_DATA, COPY_DATA and RELEASE_MEM: what the packet processor itself writes to memory.

Without WR_CONFIRM a write may land at any later time: here as late as the end of the stream, so that a stream which
relies on an unconfirmed write shows it; earlier only where a chain of buffers repeats them without end. A timestamp is
taken when its packet runs, whenever it lands. Sources and destinations other than memory, immediate data and the GPU
clock are refused by name.

Every policy of the two cache fields is accepted: all four have a name on every family (LRU, STREAM, NOA, BYPASS up to
gfx11; RT, NT, HT, LU on gfx12), and no cache is modelled that they could change.

Layouts: Linux 6.12, nvd.h; GPUOpen PAL, PM4_MEC_COPY_DATA, _WRITE_DATA and _RELEASE_MEM of
gfx9_plus_merged_f32_mec_pm4_packets.h and gfx12_merged_f32_mec_pm4_packets.h.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import numpy as np

from redline.sim.clock import device_ticks
from redline.sim.dispatch import Backend
from redline.sim.families import Family
from redline.sim.memory import Memory
from redline.sim.packet import Packet

# EVENT_TYPE values of soc21_enum.h, equal in navi10_enum.h.
CACHE_FLUSH_AND_INV_TS = 0x14
BOTTOM_OF_PIPE_TS = 0x28
END_OF_PIPE_INDEX = 5

RELEASE_GL2_DISCARD = 1 << 19  # drops dirty lines: refused, as in ACQUIRE_MEM
RELEASE_GL2_INV, RELEASE_GL2_WB = 20, 21  # bit numbers
RELEASE_WAIT_SYNC, RELEASE_EXECUTE = 1 << 7, 1 << 28  # exist, and are not covered

# Of packets whose writes have not landed, between two chained buffers: as many as one holds, whose IB_SIZE has 20
# bits. Buffers that chain in a circle would keep gigabytes.
MOST_LATE_DWORDS = 0xFFFFF

_COPY_SOURCES = {2: "TC_L2", 5: "immediate data", 9: "GPU clock"}
_TC_L2, _IMMEDIATE, _GPU_CLOCK = 2, 5, 9


class Transfers:
    """Handlers of the three packets, and the writes that have not landed yet."""

    def __init__(self, memory: Memory, family: Family, backend: Backend) -> None:
        self._memory, self._family, self._backend = memory, family, backend
        self._late: deque[tuple[Packet, int, bytes]] = deque()
        self._late_dwords = 0

    def drop(self) -> None:
        """Forget unconfirmed writes: those of a stream that a fault ended."""
        self._late.clear()
        self._late_dwords = 0

    def land(self, most_dwords: int = 0) -> None:
        """Let unconfirmed writes happen, in order, until packets of `most_dwords` are left."""
        while self._late_dwords > most_dwords:
            packet, address, data = self._late.popleft()
            self._late_dwords -= len(packet.words)
            with packet.noted():
                self._memory.store(address, data)

    def write_data(self, packet: Packet, _cancelled: threading.Event) -> None:
        if len(packet.words) < 5:
            raise packet.fault(0, "count", "an address and at least one word of data")
        packet.require(1, 0x06110F00, "control")
        if packet.field(1, 8, 4) not in (2, 5):
            raise packet.fault(1, "DST_SEL", "2 (TC_L2) or 5 (memory)")
        address = packet.address(2, 4)
        # ADDR_INCR = 1 means "do not increment": all words go to one address, and the last stays.
        words = packet.words[-1:] if packet.field(1, 16, 1) else packet.words[4:]
        self._store(packet, address, np.array(words, "<u4").tobytes())

    def copy_data(self, packet: Packet, _cancelled: threading.Event) -> None:
        packet.require(1, 0x06116F0F, "control")
        source, nbytes = packet.field(1, 0, 4), 8 if packet.field(1, 16, 1) else 4
        if source not in _COPY_SOURCES:
            names = ", ".join(f"{number} ({name})" for number, name in _COPY_SOURCES.items())
            raise packet.fault(1, "SRC_SEL", names)
        if packet.field(1, 8, 4) != _TC_L2:
            raise packet.fault(1, "DST_SEL", "2 (TC_L2); 5 is its obsolete form")
        target = packet.address(4, nbytes)
        self._store(packet, target, self._copy_source(packet, source, nbytes))

    def release_mem(self, packet: Packet, _cancelled: threading.Event) -> None:
        not_covered = RELEASE_GL2_DISCARD | RELEASE_WAIT_SYNC | RELEASE_EXECUTE
        packet.require(1, self._family.release_mask & ~not_covered, "event and GCR (never GL2_DISCARD)")
        event, index = packet.field(1, 0, 6), packet.field(1, 8, 4)
        if event not in (BOTTOM_OF_PIPE_TS, CACHE_FLUSH_AND_INV_TS) or index != END_OF_PIPE_INDEX:
            raise packet.fault(1, "event", "BOTTOM_OF_PIPE_TS or CACHE_FLUSH_AND_INV_TS with index 5")
        if packet.field(1, 12, 2) == 1:
            raise packet.fault(1, "GCR", "GLM_WB together with GLM_INV alone")
        if packet.field(1, 22, 2) == 3:
            raise packet.fault(1, "GCR SEQ", "0 parallel, 1 forward, 2 reverse")
        packet.require(2, 0xE7030000, "selectors")
        if packet.field(2, 16, 2) > 1 or packet.field(2, 24, 3) not in (0, 3):
            raise packet.fault(2, "selectors", "destination 0 or 1; interrupt 0 or 3 (data after confirm)")
        packet.require(7, 0, "INT_CTXID")
        self._end_of_pipe_write(packet)

    def _end_of_pipe_write(self, packet: Packet) -> None:
        nbytes, data = self._release_data(packet)
        address = packet.address(3, nbytes) if nbytes else 0

        def write() -> None:
            if nbytes:
                with packet.noted():
                    self._memory.store(address, data().to_bytes(nbytes, "little"))

        self._backend.at_end_of_pipe(_gcr_cntl(packet.words[1]), write)

    def _release_data(self, packet: Packet) -> tuple[int, Callable[[], int]]:
        forms: dict[int, tuple[int, Callable[[], int]]] = {
            0: (0, lambda: 0),
            1: (4, lambda: packet.words[5]),
            2: (8, lambda: packet.u64(5)),
            3: (8, device_ticks),
        }
        selected = packet.field(2, 29, 3)
        if selected not in forms:
            raise packet.fault(2, "DATA_SEL", "0 none, 1 32 bits, 2 64 bits, 3 GPU clock")
        return forms[selected]

    def _copy_source(self, packet: Packet, source: int, nbytes: int) -> bytes:
        if source == _TC_L2:
            return self._memory.bytes_at(packet.address(2, nbytes), nbytes)
        if source == _IMMEDIATE:
            if nbytes == 4:
                packet.require(3, 0, "high half of 32 bits of immediate data")
            return packet.u64(2).to_bytes(8, "little")[:nbytes]
        if nbytes != 8:
            raise packet.fault(1, "COUNT_SEL", "1 (64 bits) for the GPU clock")
        for word in (2, 3):
            packet.require(word, 0, "source of a clock")
        return device_ticks().to_bytes(8, "little")

    def _store(self, packet: Packet, address: int, data: bytes) -> None:
        if packet.field(1, 20, 1):  # WR_CONFIRM
            self._memory.store(address, data)
        else:
            self._late.append((packet, address, data))
            self._late_dwords += len(packet.words)


def _gcr_cntl(event: int) -> int:
    """The cache bits of RELEASE_MEM where GCR_CNTL of ACQUIRE_MEM has them: GL2_INV and GL2_WB."""
    return (event >> RELEASE_GL2_INV & 1) << 14 | (event >> RELEASE_GL2_WB & 1) << 15
