# SPDX-License-Identifier: Apache-2.0
"""Signals of the software device: 64 bytes in its arena, and one condition variable that every change wakes.

A handle is the address of an `amd_signal_t`. A doorbell is a signal whose store calls its queue instead. Does not
know what a value means: `aql.py` decrements completion signals, the host waits.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from ctypes import sizeof

from redline.hsa.abi import (
    AMD_SIGNAL_KIND_DOORBELL,
    AMD_SIGNAL_KIND_USER,
    SignalCondition,
    Status,
    amd_signal_t,
)
from redline.sim.errors import Refusal
from redline.sim.memory import Memory

RECHECK_SECONDS = 0.05  # a store by a kernel or a raw pointer wakes nobody; waits look again this often

_HOLDS: dict[int, Callable[[int, int], bool]] = {
    SignalCondition.HSA_SIGNAL_CONDITION_EQ: lambda value, compare: value == compare,
    SignalCondition.HSA_SIGNAL_CONDITION_NE: lambda value, compare: value != compare,
    SignalCondition.HSA_SIGNAL_CONDITION_LT: lambda value, compare: value < compare,
    SignalCondition.HSA_SIGNAL_CONDITION_GTE: lambda value, compare: value >= compare,
}


class Signals:
    """Create, destroy, load, store, subtract and wait, by handle."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._changed = threading.Condition()
        self._doorbells: dict[int, Callable[[int], None]] = {}
        self._live: set[int] = set()

    def create(self, initial: int, doorbell: Callable[[int], None] | None = None) -> int:
        handle = self._memory.allocate(sizeof(amd_signal_t), align=64, label="signal")
        kind = AMD_SIGNAL_KIND_USER if doorbell is None else AMD_SIGNAL_KIND_DOORBELL
        self._memory.store(handle, bytes(amd_signal_t(kind=kind, value=initial)))
        with self._changed:
            self._live.add(handle)
            if doorbell is not None:
                self._doorbells[handle] = doorbell
        return handle

    def destroy(self, handle: int) -> None:
        """End a signal of the host's; a doorbell is its queue's, which could not end without it."""
        with self._changed:
            self.require(handle)
            if handle in self._doorbells:
                text = f"signal {handle:#x} is the doorbell of a queue"
                raise Refusal(Status.HSA_STATUS_ERROR_INVALID_SIGNAL, text)
            self._live.remove(handle)
        self._memory.free(handle)

    def destroy_doorbell(self, handle: int) -> None:
        """End a doorbell with its queue."""
        with self._changed:
            del self._doorbells[handle]
        self.destroy(handle)

    def require(self, handle: int) -> None:
        """Hardware would write through a stale handle; here it is refused."""
        if handle not in self._live:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_SIGNAL, f"signal {handle:#x} is not alive")

    def is_plain(self, handle: int) -> bool:
        """Alive and no doorbell: a packet may wait for it or complete it."""
        return handle in self._live and handle not in self._doorbells

    def load(self, handle: int) -> int:
        self.require(handle)
        return int.from_bytes(self._memory.bytes_at(handle + amd_signal_t.value.offset, 8), "little", signed=True)

    def store(self, handle: int, value: int) -> None:
        self.require(handle)
        doorbell = self._doorbells.get(handle)
        if doorbell is not None:
            doorbell(value)
            return
        with self._changed:
            self._put(handle, value)

    def subtract(self, handle: int, amount: int) -> None:
        """What a packet processor does to a completion signal."""
        with self._changed:
            self._put(handle, self.load(handle) - amount)

    def note_times(self, handle: int, start: int, end: int) -> None:
        """What a packet processor leaves in the completion signal of a profiled dispatch, in ticks."""
        with self._changed:  # one that is destroyed meanwhile may be other memory already
            self.require(handle)
            self._memory.store(handle + amd_signal_t.start_ts.offset, struct.pack("<QQ", start, end))

    def times(self, handle: int) -> bytes:
        """Start and end, 16 bytes."""
        self.require(handle)
        return self._memory.bytes_at(handle + amd_signal_t.start_ts.offset, 16)

    def wait(self, handle: int, condition: int, compare: int, seconds: float) -> int:
        """The value seen last; the caller must look at it, for the wait may have ended early."""
        if condition not in _HOLDS:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, f"signal condition {condition}")
        self.wait_until(lambda: _HOLDS[condition](self.load(handle), compare), seconds)
        return self.load(handle)

    def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether `holds()` came true in time. Woken by every change of a signal and by `wake`."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not holds():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, RECHECK_SECONDS))
        return True

    def wake(self) -> None:
        """Make every wait look again."""
        with self._changed:
            self._changed.notify_all()

    def _put(self, handle: int, value: int) -> None:
        wrapped = (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
        self._memory.store(handle + amd_signal_t.value.offset, wrapped)
        self._changed.notify_all()
