# SPDX-License-Identifier: Apache-2.0
"""The null engine's compiled calls, by their Python twins on memory of the test's own."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from redline.hsa import null_calls
from redline.hsa.abi import AMD_SIGNAL_KIND_DOORBELL, AMD_SIGNAL_KIND_USER, amd_signal_t, hsa_queue_t
from redline.hsa.null import NullQueue

pytestmark = pytest.mark.nopython

SLOTS = 4


class Rig:
    """A ring of four slots, a queue, its doorbell and a completion signal."""

    def __init__(self, first: int = 0) -> None:
        self.ring = np.zeros((SLOTS, 16), np.uint32)
        self.ring[:, 0] = null_calls.INVALID
        base = self.ring.ctypes.data
        self.queue = NullQueue(hsa_queue_t(base_address=base, size=SLOTS), first, first)
        self.at = ctypes.addressof(self.queue)
        self.bell = amd_signal_t(kind=AMD_SIGNAL_KIND_DOORBELL, queue_ptr=self.at)
        self.done = amd_signal_t(kind=AMD_SIGNAL_KIND_USER, value=3)

    def publish(self, index: int, *, completes: bool) -> None:
        signal = ctypes.addressof(self.done) if completes else 0
        self.ring[index % SLOTS, 14:] = [signal & 0xFFFFFFFF, signal >> 32]
        self.ring[index % SLOTS, 0] = 0x1502

    def ring_bell(self, last: int) -> None:
        null_calls.signal_store(ctypes.addressof(self.bell), last)


@pytest.mark.parametrize("first", [0, 3, (1 << 40) + 2])
def test_a_doorbell_takes_what_is_published_round_the_ring(first: int) -> None:
    """Slots INVALID again, one less on each completion signal, the read index behind the last packet."""
    rig = Rig(first)
    for at in range(3):
        rig.publish(first + at, completes=at > 0)
    rig.ring_bell(first + 2)
    assert (rig.queue.read_index, rig.done.value, rig.bell.value) == (first + 3, 1, 0)
    assert rig.ring[:, 0].tolist() == [null_calls.INVALID] * SLOTS


def test_a_packet_that_is_not_published_stops_it() -> None:
    """It is taken at the next ring; nor is one taken that the doorbell does not name yet."""
    rig = Rig()
    rig.publish(0, completes=True)
    rig.publish(2, completes=True)
    rig.ring_bell(2)
    assert (rig.queue.read_index, rig.done.value) == (1, 2)
    rig.publish(1, completes=True)
    rig.ring_bell(1)
    assert (rig.queue.read_index, rig.done.value) == (2, 1)


def test_signals_and_indices() -> None:
    """Stores, loads and waits of a plain signal; the index before the addition."""
    rig = Rig()
    signal = ctypes.addressof(rig.done)
    null_calls.signal_store(signal, -5)
    assert null_calls.signal_load(signal) == rig.done.value == -5
    assert null_calls.signal_wait(signal, 2, 1, 1000, 0) == -5
    assert [null_calls.add_write_index(rig.at, n) for n in (3, 2)] == [0, 3]
    assert (null_calls.write_index(rig.at), null_calls.read_index(rig.at)) == (5, 0)


def test_offsets_are_those_of_the_structures() -> None:
    """The file of compiled code imports nothing of ours, so it states them again."""
    names = ("KIND", "VALUE", "QUEUE_PTR", "BASE", "SIZE", "WRITE", "READ", "DOORBELL")
    assert [getattr(null_calls, name) for name in names] == [
        *(amd_signal_t.kind.offset, amd_signal_t.value.offset, amd_signal_t.queue_ptr.offset),
        *(hsa_queue_t.base_address.offset, hsa_queue_t.size.offset),
        *(NullQueue.write_index.offset, NullQueue.read_index.offset, AMD_SIGNAL_KIND_DOORBELL),
    ]
