# SPDX-License-Identifier: Apache-2.0
"""Packets for one or several queues, prepared once and submitted any number of times.

Whatever can be refused is refused before a slot of any ring is reserved; what follows is one call of compiled code
(`publish.py`). Knows no packet and waits for no completion. Source of the protocol: the HSA Runtime specification's
user mode queues, and ROCR-Runtime's hsa.h.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from redline.errors import ReplayTimeout
from redline.hsa import publish
from redline.hsa.callbacks import interrupts

if TYPE_CHECKING:
    from redline.hsa.queue import Queue
    from redline.hsa.signal import Signal

PACKET_WORDS: Final = 16
_WORD: Final = np.dtype(np.uint32)

Describe = Callable[[int], str]  # place of a packet in its batch -> what it runs, for messages
Part = tuple["Queue", NDArray[np.uint32], Describe | None]


class Submission:
    """A batch for each of one or more queues, all different, and the signals that are set to 1 before any of them runs.

    `parts`: queue, packets of shape (n, 16), and what names a packet of the batch in messages. They are read at
    every submit. Raises HsaError for packets of another shape or more than a ring holds.
    """

    def __init__(self, parts: Sequence[Part], signals: Sequence[Signal] = ()) -> None:
        self.parts = [(queue, _checked(queue, packets), describe) for queue, packets, describe in parts]
        self._in_order = sorted((queue for queue, _, _ in parts), key=id)  # of locking: one order for all threads
        addresses = parts[0][0].runtime.hsa.table.addresses
        words = [*(addresses[name] for name in publish.FUNCTIONS), len(parts), len(signals)]
        for queue, packets, _ in self.parts:
            words += _row(queue, packets)
        words += [signal.handle for signal in signals]
        self._words = np.array(words, np.uint64).view(np.int64)
        self._numbers = self._words.data  # the same; much faster for single words
        lasts = range(publish.HEAD + publish.LAST, len(words), publish.ROW)
        self._noted = [
            (queue, len(packets), at, describe)
            for (queue, packets, describe), at in zip(self.parts, lasts, strict=False)  # signals stand behind
        ]

    def submit(self, timeout_s: float = 1.0) -> list[int]:
        """Publish each batch on its queue, all or none; the indices of the last packets.

        No slot of any queue is reserved before all batches have room, and no doorbell rings before all are published.
        Waits at most `timeout_s` seconds for room. Raises HsaError when a queue is closed, ReplayTimeout when a ring
        stays full, QueueFailed when the device has stopped a queue; nothing was published then.
        """
        first = self._in_order[0]
        if first.runtime.closed:  # in a forked child, whoever held the lock is not there to give it back
            first.check()
        with first.lock:
            return self._submit(timeout_s) if len(self._in_order) == 1 else self._submit_holding(1, timeout_s)

    def _submit_holding(self, held: int, timeout_s: float) -> list[int]:
        """Submit with the locks of all queues held, one `with` for each: nothing interrupts a `with`."""
        if held == len(self._in_order):
            return self._submit(timeout_s)
        with self._in_order[held].lock:
            return self._submit_holding(held + 1, timeout_s)

    def _submit(self, timeout_s: float) -> list[int]:
        awakened = []
        for queue in self._in_order:
            if not queue.sound:
                queue.check()
            if queue.live():
                awakened.append(queue)
        full = publish.submit(self._words)
        if full >= 0:
            try:
                self._wait_for_room(full, timeout_s)
            except BaseException:
                for queue in awakened:
                    queue.idle()
                raise
        lasts = []
        for queue, count, at, describe in self._noted:
            last = self._numbers[at]
            lasts.append(last)
            queue.submitted(count, last, describe)
        if interrupts:  # what a signal handler raised in a callback of a software device
            raise interrupts.pop()
        return lasts

    def _wait_for_room(self, full: int, timeout_s: float) -> None:
        """Returns once all batches are published; `full` is the place of the first queue without room."""
        started = time.monotonic()
        pause = 0.0
        while full >= 0:
            queue, packets, _ = self.parts[full]
            queue.check()
            after = time.monotonic() - started
            if after >= timeout_s:
                raise _full(queue, len(packets), timeout_s)
            time.sleep(pause)
            pause = min(0.001, pause + 0.00005)
            full = publish.submit(self._words)


def _checked(queue: Queue, packets: NDArray[Any]) -> NDArray[np.uint32]:
    batch = np.ascontiguousarray(packets)
    if batch.ndim == 1:
        batch = batch.reshape(1, -1)
    if batch.dtype != _WORD or batch.ndim != 2 or batch.shape[1] != PACKET_WORDS:
        seen = f"{batch.dtype} of shape {batch.shape}"
        raise queue.refused(seen, "uint32 rows of 16 words", "build packets as numpy.uint32, 16 words each")
    if not 1 <= len(batch) <= queue.packets:
        seen, allowed = f"a batch of {len(batch)} packets", f"1 to {queue.packets}, the ring's size"
        raise queue.refused(seen, allowed, "split the batch, or make a larger queue")
    return batch


def _row(queue: Queue, packets: NDArray[np.uint32]) -> list[int]:
    ring = queue.ring.ctypes.data
    return [queue.address, queue.doorbell, ring, queue.packets, packets.ctypes.data, len(packets), 0]


def _full(queue: Queue, wanted: int, after: float) -> ReplayTimeout:
    free = queue.packets - (queue.write_index - queue.read_index)
    return ReplayTimeout(
        "RL1102",
        where=f"ring of queue {queue.id} on {queue.agent.target}",
        seen=f"{free} free slots after {after:g} s",
        allowed=f"{wanted} free slots for the batch (nothing was reserved)",
        do="wait for earlier work, or make the queue larger",
    )
