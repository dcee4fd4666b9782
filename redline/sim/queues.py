# SPDX-License-Identifier: Apache-2.0
"""Queues of the software device: a ring in its arena, and a daemon thread that the doorbell wakes.

The thread never polls: a store to the doorbell signal notifies its condition variable. It stops at the first packet
whose header says INVALID, and goes on at the next ring of the doorbell. The read index moves when a packet is
taken, not when it is done: no user may take it for completion. A fault puts it back, calls the error callback and
stops the queue for good. Destroying a queue cancels what it runs. What a packet does is `aql.py`.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from ctypes import sizeof

import numpy as np

from redline.hsa.abi import HSA_QUEUE_TYPE_MULTI, QUEUE_ERROR_CALLBACK, QueuePriority, Status, hsa_queue_t
from redline.sim.aql import AqlProcessor
from redline.sim.aql_packet import PACKET_BYTES, PACKET_WORDS, TYPE_INVALID, AqlPacket
from redline.sim.errors import Cancelled, DeviceFault
from redline.sim.memory import Memory
from redline.sim.signals import Signals

INVALID_SLOT = (TYPE_INVALID).to_bytes(4, "little")
KERNEL_DISPATCH_FEATURE = 1
JOIN_SECONDS = 10.0  # how long a destroyed queue may take to notice; the executor looks at every step


class SimQueue:
    """One user mode queue. `address` is its hsa_queue_t."""

    def __init__(
        self,
        number: int,
        slots: int,
        processor: AqlProcessor,
        memory: Memory,
        signals: Signals,
        on_error: tuple[int, int],  # address of the error callback (0: none) and its data pointer
        remember: Callable[[str], None],
    ) -> None:
        self.number, self.slots = number, slots
        self.processor, self._memory, self._signals = processor, memory, signals
        self.cu_mask: tuple[int, ...] = ()
        self.priority = int(QueuePriority.HSA_AMD_QUEUE_PRIORITY_NORMAL)
        self._on_error, self._remember = on_error, remember
        self._woken = threading.Condition()
        self._rung = 0  # packets that the doorbell has announced
        self._read = self._write = 0
        self.cancelled = threading.Event()
        self._ending = False  # whoever owns the error callback may take it away from now on
        self._ring = memory.allocate(slots * PACKET_BYTES, align=4096, label=f"ring of queue {number}")
        for slot in range(slots):
            memory.store(self._ring + slot * PACKET_BYTES, INVALID_SLOT)
        self.doorbell = signals.create(0, self.ring)
        self.address = memory.allocate(sizeof(hsa_queue_t), align=64, label=f"queue {number}")
        memory.store(self.address, bytes(self._public()))
        name = f"redline-sim-queue-{number}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # Called by the host

    def ring(self, last_packet: int) -> None:
        """The doorbell: packets up to `last_packet` are published."""
        with self._woken:
            self._rung = max(self._rung, last_packet + 1)
            self._woken.notify_all()

    def read_index(self) -> int:
        with self._woken:
            return self._read

    def write_index(self) -> int:
        with self._woken:
            return self._write

    def add_write_index(self, count: int) -> int:
        """The index before the addition."""
        with self._woken:
            before = self._write
            self._write += count
            return before

    def destroy(self) -> bool:
        """Cancel, wait for the thread, free. False if the thread did not stop: then its memory stays.

        On the queue's own thread (its collector ended the last user) the rest is left to another one, which can wait.
        """
        self._ending = True
        if threading.get_ident() == self._thread.ident:
            name = f"redline-sim-end-{self.number}"
            threading.Thread(target=self._end, name=name, daemon=True).start()
            return True
        return self._end()

    def _end(self) -> bool:
        self.cancelled.set()
        self._signals.wake()
        with self._woken:
            self._woken.notify_all()
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            return False
        self._signals.destroy_doorbell(self.doorbell)
        self._memory.free(self._ring)
        self._memory.free(self.address)
        return True

    # The device's thread

    def _run(self) -> None:
        while True:
            packet = self._next_packet()
            if packet is None:
                return
            try:
                self.processor.run(packet, self.cancelled)
            except Cancelled:
                return
            except DeviceFault as fault:
                self._fail(packet.index, fault.status, _text(fault))
                return
            except Exception:
                # A bug of ours, or a back end whose tools went away: the queue stops, the reason is kept.
                self._fail(packet.index, Status.HSA_STATUS_ERROR, traceback.format_exc())
                return

    def _next_packet(self) -> AqlPacket | None:
        """Sleep until a published packet is there and take it; None when the queue is being destroyed."""
        with self._woken:
            while not self.cancelled.is_set():
                if self._read < self._rung:
                    packet = self._peek(self._read)
                    if packet.type != TYPE_INVALID:
                        self._take(packet)
                        return packet
                self._woken.wait()
        return None

    def _peek(self, index: int) -> AqlPacket:
        raw = self._memory.bytes_at(self._slot(index), PACKET_BYTES)
        return AqlPacket(index, tuple(np.frombuffer(raw, "<u4").tolist()))

    def _take(self, packet: AqlPacket) -> None:
        self._memory.store(self._slot(packet.index), INVALID_SLOT)
        self._read = packet.index + 1

    def _slot(self, index: int) -> int:
        return self._ring + index % self.slots * PACKET_WORDS * 4

    def _fail(self, index: int, status: int, text: str) -> None:
        """Tell the host, unless it has begun to destroy the queue: then nobody listens any more."""
        if self._ending:
            return
        with self._woken:
            self._read = index
        self._remember(f"queue {self.number}, packet {index}: {text}")
        callback, data = self._on_error
        if callback:
            QUEUE_ERROR_CALLBACK(callback)(int(status), self.address, data or None)

    def _public(self) -> hsa_queue_t:
        return hsa_queue_t(
            type=HSA_QUEUE_TYPE_MULTI,
            features=KERNEL_DISPATCH_FEATURE,
            base_address=self._ring,
            doorbell_signal=self.doorbell,
            size=self.slots,
            id=self.number,
        )


def _text(fault: BaseException) -> str:
    return "; ".join([str(fault), *getattr(fault, "__notes__", [])])
