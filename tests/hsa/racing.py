# SPDX-License-Identifier: Apache-2.0
"""The race of a publisher against a compiled consumer on a thread of its own: what the consumer found.

What it can show: a header that is visible before its body, a slot that is written before it is free, a wrong slot or
index, a batch that appears piece by piece; wherever the processor's or the compiler's order lets it happen. What it
cannot: x86 keeps the order of stores, so a missing release there goes unseen (`test_publish_code.py` reads the
compiler's output for it), and the consumer is a CPU, not a GPU behind PCIe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from ctypes import addressof
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from redline.hsa.abi import amd_signal_t
from redline.hsa.null import NullQueue
from redline.hsa.null_calls import COMPILED
from redline.hsa.publish import HEAD, LAST, publish, submit
from tests.hsa.consumer import CAUGHT_UP, INVALID, OUT_OF_ORDER, SPLIT, STOP, TORN, consume, taken

SLOTS = 1024
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Found:
    """Packets by what was wrong with them; all 0 is right. `caught_up` says how often the consumer had to wait."""

    torn: int = 0
    out_of_order: int = 0
    missing: int = 0
    doubled: int = 0
    split: int = 0
    caught_up: int = field(default=0, compare=False)

    def failures(self) -> list[str]:
        """One line for each kind that happened."""
        names = [row.name for row in fields(self) if row.compare]
        return [f"{getattr(self, name)} packets {name}" for name in names if getattr(self, name)]


def empty_ring(slots: int) -> Any:
    """INVALID headers, and bodies that are no packet's."""
    ring = np.full((slots, 16), 0xFFFFFFFF, np.uint32)
    ring[:, 0] = INVALID
    return ring.reshape(-1)


def fill(rows: Any, first: int) -> None:
    """Make `rows` the batch of packets `first`, `first` + 1, ..., as `consumer.py` tells them."""
    numbers = np.arange(first, first + len(rows), dtype=np.uint32)
    rows[:, 0] = 0x1500 | numbers << np.uint32(16)
    rows[:, 1:15] = numbers[:, None]
    rows[:, 15] = np.arange(len(rows))[::-1]


def judge(ring: Any, count: int, publishing: Callable[[Any], None], patience_s: float = PATIENCE_SECONDS) -> Found:
    """Run `publishing` against the consumer of `count` packets; `publishing` gets the consumer's state.

    A consumer that makes no progress for `patience_s` seconds is stopped: the rest is missing.
    """
    state, seen = np.zeros(STOP + 1, np.uint64), np.zeros(count, np.uint8)
    consumer = threading.Thread(target=consume, args=(ring, state, seen), name="racing-consumer")
    consumer.start()
    try:
        publishing(state)
        _wait_for(state, count, patience_s)
    finally:
        state[STOP] = 1
        consumer.join()
    torn, out_of_order, split, caught_up = (int(state[at]) for at in (TORN, OUT_OF_ORDER, SPLIT, CAUGHT_UP))
    missing, doubled = int((seen == 0).sum()) - torn, int((seen > 1).sum())
    return Found(torn, out_of_order, missing, doubled, split, caught_up)


def race(count: int, seed: int, write: Any = publish, slots: int = SLOTS) -> Found:
    """Publish `count` packets in batches of 1 to `slots`, mostly small ones, each when the ring has room for it."""
    ring, rows = empty_ring(slots), np.zeros((slots, 16), np.uint32)
    sizes = np.random.default_rng(seed)

    def publishing(state: Any) -> None:
        first = 0
        while first < count:
            size = min(int(2 ** sizes.uniform(0, np.log2(slots) + 0.01)), slots, count - first)
            fill(rows[:size], first)
            if not _wait_for(state, first + size - slots):
                return
            write(ring, first, rows[:size])
            first += size

    return judge(ring, count, publishing)


class Submissions:
    """Writes batches as a replay does, on a queue of `slots` whose calls are the null engine's.

    Its doorbell is a plain signal: what takes packets is the racing consumer.
    """

    def __init__(self, slots: int) -> None:
        self.queue, self.bell, self._slots = NullQueue(), amd_signal_t(), slots
        names = ("signal_store", "read_index", "write_index", "add_write_index")
        self._functions = [COMPILED[name].address for name in names]

    def __call__(self, ring: Any, first: int, rows: Any) -> None:
        """The caller has seen that the ring has room."""
        self.queue.read_index = first
        row = [addressof(self.queue), addressof(self.bell), ring.ctypes.data, self._slots, rows.ctypes.data, len(rows)]
        words = np.array([*self._functions, 1, 0, *row, 0], np.int64)
        assert submit(words) == -1
        assert words[HEAD + LAST] == first + len(rows) - 1


def _wait_for(state: Any, index: int, patience_s: float = PATIENCE_SECONDS) -> bool:
    """Whether the consumer took packets up to `index`; False when it gets no further."""
    before, since = -1, time.monotonic()
    while (now := int(taken(state))) < index:
        if now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > patience_s:
            return False
        time.sleep(0)
    return True
