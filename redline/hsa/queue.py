# SPDX-License-Identifier: Apache-2.0
"""A user mode queue: its ring, who may submit to it, and what is known of failures.

A queue error poisons the queue: `check`, and with it every wait that polls it and every later submit, raises
`QueueFailed`. How packets get into the ring is `submission.py`'s, what one means the caller's business
(`redline/encoders/aql.py`). Source of the protocol: the HSA Runtime specification's user mode queues, and
ROCR-Runtime's hsa.h.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from redline.errors import HsaError, QueueFailed
from redline.hsa.abi import (
    HSA_QUEUE_TYPE_MULTI,
    QUEUE_ERROR_CALLBACK,
    QueuePriority,
    Status,
    hsa_queue_t,
    status_text,
)
from redline.hsa.callbacks import guarded
from redline.hsa.handle import Handle, Rank
from redline.hsa.submission import PACKET_WORDS, Describe, Submission

if TYPE_CHECKING:
    from redline.hsa.agent import Agent

#: Words for hsa_amd_queue_priority_t.
PRIORITIES = {
    "low": QueuePriority.HSA_AMD_QUEUE_PRIORITY_LOW,
    "normal": QueuePriority.HSA_AMD_QUEUE_PRIORITY_NORMAL,
    "high": QueuePriority.HSA_AMD_QUEUE_PRIORITY_HIGH,
}
UNLIMITED = 0xFFFFFFFF  # segment sizes left to the runtime
REMEMBERED_BATCHES = 64


@dataclass(frozen=True)
class _Failure:
    status: int
    detail: str
    packet: int | None  # the nearest guess; None when even that could not be had
    cause: BaseException | None = None


class Queue(Handle):
    """One ring of `packets` slots (a power of two) on one agent. Any thread may call its methods.

    `cu_mask`: a flag for each compute unit that may run its work, in ROCr's order; None for all. From gfx10 on units
    come in pairs (one WGP), and the driver takes whole pairs only (Linux, pqm_update_mqd). `priority`: "low",
    "normal" or "high" among queues. Raises HsaError for a number of packets that the agent's limits do not allow, for a
    mask or a priority that there is not, or when the runtime makes no queue.
    """

    def __init__(
        self,
        agent: Agent,
        packets: int = 64,
        *,
        cu_mask: Sequence[bool] | None = None,
        priority: str = "normal",
    ) -> None:
        super().__init__(agent.runtime)
        self.agent, self.packets = agent, packets
        self.lock = threading.Lock()
        self.failure: _Failure | None = None
        self._batches: deque[tuple[int, int, Describe]] = deque(maxlen=REMEMBERED_BATCHES)
        self._last = -1  # index of the last packet published
        self._check_size(packets)
        mask = None if cu_mask is None else self._checked_mask(cu_mask)
        if priority not in PRIORITIES:
            raise self._bad_option("priority=", repr(priority), f"one of {', '.join(PRIORITIES)}")
        on_error = _error_callback(self)
        pointer = c_void_p()
        self.runtime.hsa.check(
            "hsa_queue_create",
            agent.handle,
            packets,
            HSA_QUEUE_TYPE_MULTI,
            on_error,
            None,
            UNLIMITED,
            UNLIMITED,
            byref(pointer),
        )
        self.address = int(pointer.value or 0)
        # The runtime has the callback's address until the queue is destroyed, with or without this handle.
        self._number = self._own(Rank.QUEUE, "hsa_queue_destroy", self.address, keep=on_error)
        public = hsa_queue_t.from_address(self.address)
        self.doorbell, self.id = int(public.doorbell_signal), int(public.id)
        words = (ctypes.c_uint32 * (int(public.size) * PACKET_WORDS)).from_address(int(public.base_address))
        self.ring: NDArray[np.uint32] = np.ctypeslib.as_array(words)
        self.runtime.watch(self)
        try:
            self._set(mask, priority)
        except HsaError:
            self.abandon()
            raise

    def profile(self, *, on: bool = True) -> None:
        """Let the runtime note when dispatches with a completion signal begin and end (`Signal.dispatch_time`).

        Raises HsaError when the runtime refuses. Only AQL dispatches are noted, not what an indirect buffer launches.
        """
        self.runtime.require_open()
        self.runtime.hsa.check("hsa_amd_profiling_set_profiler_enabled", self.address, int(on))

    def _set(self, mask: list[int] | None, priority: str) -> None:
        """What was checked already; a call only where it is not the default."""
        hsa = self.runtime.hsa
        if mask is not None:
            words = (ctypes.c_uint32 * len(mask))(*mask)
            hsa.check("hsa_amd_queue_cu_set_mask", self.address, 32 * len(mask), words)
        if priority != "normal":
            hsa.check("hsa_amd_queue_set_priority", self.address, PRIORITIES[priority])

    def __repr__(self) -> str:
        return f"<Queue {self.id} of {self.packets} packets on {self.agent.target}>"

    def submit(self, packets: NDArray[np.uint32], *, timeout_s: float = 1.0, describe: Describe | None = None) -> int:
        """Publish `packets` (n rows of 16 words) as one batch; the index of the last.

        Waits at most `timeout_s` seconds for free slots. `describe` names a packet of the batch should the queue
        fail. Raises HsaError for packets of another shape or more than the ring holds and for a closed queue,
        ReplayTimeout when the ring stays full, QueueFailed when the device has stopped the queue. Nothing was
        published then.
        """
        return Submission([(self, packets, describe)]).submit(timeout_s)[0]

    def check(self) -> None:
        """Raise `QueueFailed` if the device has reported an error, `HsaError` if the queue or its runtime is closed."""
        if not self.sound:
            raise self._unusable()

    @property
    def sound(self) -> bool:
        """Whether `check` raises nothing."""
        return self.failure is None and not self.closed and not self.runtime.closed

    def _unusable(self) -> QueueFailed | HsaError:
        self.runtime.require_open()
        if self.failure is not None:
            failed = self._failed(self.failure)
            failed.__cause__ = self.failure.cause
            return failed
        return self.refused("closed", "an open queue", "make a new queue on the agent")

    def live(self) -> bool:
        """The holder of `lock` is about to submit: what is closed from now on stays allocated. Whether that is new."""
        return self.runtime.resources.live(self._number)

    def idle(self) -> None:
        """The holder of `lock` knows that nothing runs here."""
        self.runtime.resources.idle(self._number)

    def submitted(self, count: int, last: int, describe: Describe | None) -> None:
        """The holder of `lock` has published `count` packets, as many items in the ring, up to index `last`."""
        self._last = last
        if describe is not None:
            self._batches.append((last - count + 1, last, describe))

    def completed(self, last: int) -> None:
        """The caller has seen packet `last` end, and all before it: none of them touches memory any more.

        Where it is the last one submitted, the queue is idle. Until somebody says so, or the queue is closed, what is
        closed on the runtime stays allocated (`handle.py`).
        """
        if self.lock.acquire(blocking=False):  # whoever holds it is submitting
            try:
                if last == self._last:
                    self.idle()
            finally:
                self.lock.release()

    @property
    def read_index(self) -> int:
        """Packets that the device took; it moves at any time after that and says nothing about completion."""
        return int(self.runtime.hsa.call("hsa_queue_load_read_index_scacquire", self.address))

    @property
    def write_index(self) -> int:
        """Packets that were ever reserved."""
        return int(self.runtime.hsa.call("hsa_queue_load_write_index_relaxed", self.address))

    def memory_fault(self, agent: int, address: int) -> None:
        """The runtime reported a memory fault of `agent`; it does not say whose, so all its queues fail.

        `address` is the byte address that the event names.
        """
        if agent == self.agent.handle:
            self._fail(Status.HSA_STATUS_ERROR_MEMORY_FAULT, f"memory fault at {address:#x}")

    def error(self, status: int) -> None:
        """The runtime called the error callback."""
        self._fail(status, self.runtime.fault_text())

    def lost(self, error: BaseException) -> None:
        """An error was reported and reporting it failed: the queue counts as failed, for this reason."""
        if self.failure is None and not self.closed:
            detail = f"an error callback failed: {error!r}"
            self.failure = _Failure(Status.HSA_STATUS_ERROR, detail, None, error)

    def _fail(self, status: int, detail: str) -> None:
        """Keep the first failure, and now: later the queue may be gone, and the indices with it.

        HSA does not say which packet failed. A stopped packet processor has not moved past it; where it moved
        on early (the read index may), the last packet reserved is the nearest guess.
        """
        if self.failure is None and not self.closed:
            self.failure = _Failure(status, detail, min(self.read_index, max(self.write_index - 1, 0)))

    def _failed(self, failure: _Failure) -> QueueFailed:
        known = failure.packet is not None
        at = f"packet {failure.packet}{self._describe(failure.packet or 0)}" if known else "packet unknown"
        return QueueFailed(
            "RL1001",
            where=f"queue {self.id} on {self.agent.target}, {at}",
            seen=status_text(failure.status) + (f": {failure.detail}" if failure.detail else ""),
            allowed="HSA_STATUS_SUCCESS (0x0)",
            do="close the replay and instantiate again (a queue of your own: close it, make a new one);"
            " nothing pending will finish",
        )

    def _describe(self, index: int) -> str:
        for first, last, describe in reversed(self._batches):
            if first <= index <= last:
                return f" ({describe(index - first)})"
        return ""

    def refused(self, seen: str, allowed: str, do: str) -> HsaError:
        """The error for a use of this queue."""
        return HsaError("RL0910", where=repr(self), seen=seen, allowed=allowed, do=do)

    def _checked_mask(self, flags: Sequence[bool]) -> list[int]:
        """Words of 32 bits, the first unit lowest."""
        units = self.agent.compute_units
        given = [bool(flag) for flag in flags]
        if len(given) != units or not any(given) or given[::2] != given[1::2]:
            seen = f"{sum(given)} of {len(given)} flags set" + (
                "" if given[::2] == given[1::2] else ", half a pair among them"
            )
            allowed = (
                f"{units} flags, one for each compute unit, set in pairs (0 and 1, 2 and 3, ...) and at least one pair"
            )
            raise self._bad_option("cu_mask=", seen, allowed)
        return [sum(flag << at for at, flag in enumerate(given[first : first + 32])) for first in range(0, units, 32)]

    def _bad_option(self, name: str, seen: str, allowed: str) -> HsaError:
        where = f"{name} of a queue on {self.agent.target}"
        return HsaError("RL0910", where=where, seen=seen, allowed=allowed, do="leave it out for the default")

    def _check_size(self, packets: int) -> None:
        smallest, largest = self.agent.queue_min_size, self.agent.queue_max_size
        if packets < 1 or packets & (packets - 1) or not smallest <= packets <= largest:
            allowed = f"a power of two from {smallest} to {largest}"
            raise HsaError(
                "RL0910",
                where=f"queue on {self.agent.target}",
                seen=f"{packets} packets",
                allowed=allowed,
                do="round the number of packets up to a power of two",
            )


def _error_callback(queue: Queue) -> Any:
    """What the runtime calls when it stops the queue. Does not keep the queue's handle alive."""
    found = weakref.ref(queue)

    def error(status: int, _queue: int, _data: object) -> None:
        handle = found()
        if handle is not None:
            handle.error(status)

    def lost(error: BaseException) -> None:
        handle = found()
        if handle is not None:
            handle.lost(error)

    return guarded(QUEUE_ERROR_CALLBACK, error, lost)
