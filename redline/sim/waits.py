# SPDX-License-Identifier: Apache-2.0
"""WAIT_REG_MEM and WAIT_REG_MEM64: the stream stands still until a word of memory compares as asked.

Polls memory, so that kernels, other queues and the host can all satisfy a wait. Every wait ends: as asked, by the
device's patience, or because its queue is destroyed. Waits on registers and the write-wait-write forms are refused.
Comparisons are unsigned, of the masked value with the whole reference.

Layout and functions: Linux 6.12, nvd.h, PACKET3_WAIT_REG_MEM; GPUOpen PAL, PM4_MEC_WAIT_REG_MEM and
PM4_MEC_WAIT_REG_MEM64 of gfx9_plus_merged_f32_mec_pm4_packets.h.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from redline.sim.dispatch import Backend
from redline.sim.errors import Cancelled, WaitExpired
from redline.sim.memory import Memory
from redline.sim.packet import Packet

POLL_SECONDS = 0.0005
MEMORY_SPACE = 1
CONTROL = 0x37  # FUNCTION 2:0, MEM_SPACE 5:4; OPERATION 7:6 is 0, a wait

_COMPARE: dict[int, tuple[str, Callable[[int, int], bool]]] = {
    0: ("always", lambda _seen, _reference: True),
    1: ("<", lambda seen, reference: seen < reference),
    2: ("<=", lambda seen, reference: seen <= reference),
    3: ("==", lambda seen, reference: seen == reference),
    4: ("!=", lambda seen, reference: seen != reference),
    5: (">=", lambda seen, reference: seen >= reference),
    6: (">", lambda seen, reference: seen > reference),
}


class Waits:
    """Handlers of the two packets. `patience_s` bounds each wait."""

    def __init__(self, memory: Memory, backend: Backend, patience_s: float) -> None:
        self._memory, self._backend, self._patience_s = memory, backend, patience_s

    def wait_reg_mem(self, packet: Packet, cancelled: threading.Event) -> None:
        # Bit 31, optimize_ace_offload_mode, is a hint to the scheduler.
        packet.require(6, 0x8000FFFF, "POLL_INTERVAL")
        self._wait(packet, 4, packet.words[4], packet.words[5], cancelled)

    def wait_reg_mem64(self, packet: Packet, cancelled: threading.Event) -> None:
        packet.require(8, 0x8000FFFF, "POLL_INTERVAL")
        self._wait(packet, 8, packet.u64(4), packet.u64(6), cancelled)

    def _wait(self, packet: Packet, nbytes: int, reference: int, mask: int, cancelled: threading.Event) -> None:
        sign, holds = _comparison(packet)
        address = packet.address(2, nbytes)
        deadline = time.monotonic() + self._patience_s
        while True:
            seen = int.from_bytes(self._memory.bytes_at(address, nbytes), "little")
            if holds(seen & mask, reference):
                return
            if self._backend.advance():
                continue
            if time.monotonic() > deadline:
                wanted = f"[{address:#x}] & {mask:#x} {sign} {reference:#x}"
                raise WaitExpired(f"{packet.place}: {packet.name}", wanted, f"{seen:#x}", self._patience_s)
            if cancelled.wait(POLL_SECONDS):
                raise Cancelled


def _comparison(packet: Packet) -> tuple[str, Callable[[int, int], bool]]:
    packet.require(1, CONTROL, "control (a wait: operation 0)")
    if packet.field(1, 4, 2) != MEMORY_SPACE:
        raise packet.fault(1, "MEM_SPACE", "1 (memory)")
    function = packet.field(1, 0, 3)
    if function not in _COMPARE:
        raise packet.fault(1, "FUNCTION", "0 to 6")
    return _COMPARE[function]
