# SPDX-License-Identifier: Apache-2.0
"""The order of the stores that publish packets (case 35), in compiled code and in its Python twin."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from redline.hsa.publish import publish

pytestmark = pytest.mark.nopython

INVALID = 1

#: The same function without the compiler (under NUMBA_DISABLE_JIT=1 it is `publish` itself).
twin = getattr(publish, "py_func", publish)


class RecordingRing:
    """A ring that notes every store as (word, value) and refuses anything wider than a dword."""

    def __init__(self, slots: int) -> None:
        self.words = np.zeros(slots * 16, np.uint32)
        self.words[::16] = INVALID
        self.stores: list[tuple[int, int]] = []
        self.headers_seen: list[int] = []
        self.shape = self.words.shape

    def __setitem__(self, word: Any, value: Any) -> None:
        assert np.ndim(word) == 0
        assert np.ndim(value) == 0
        at = int(word)
        if at % 16 == 0:
            self.headers_seen.append(int(self.words[at]) & 0xFF)
        self.stores.append((at, int(value)))
        self.words[at] = value


def packets(count: int, seed: int = 0) -> NDArray[np.uint32]:
    """Random bodies behind vendor headers."""
    rows = np.random.default_rng(seed).integers(0, 2**32, (count, 16), np.uint32)
    rows[:, 0] = 0x00011500
    return rows


@pytest.mark.parametrize(("slots", "first", "count"), [(8, 0, 1), (8, 6, 5), (8, 2**63 + 7, 8), (1024, 900, 733)])
def test_the_last_store_of_a_slot_is_its_header(slots: int, first: int, count: int) -> None:
    """Case 35: bodies while the header is INVALID, then four bytes at offset 0; the first packet's very last."""
    ring, batch = RecordingRing(slots), packets(count)
    twin(ring, np.uint64(first), batch)
    for i in range(count):
        base = (first + i) % slots * 16
        mine = [(word - base, value) for word, value in ring.stores if base <= word < base + 16]
        assert mine[-1] == (0, 0x00011500)
        before = [value for word, value in mine[:-1] if word == 0]
        assert all(value == INVALID for value in before)
        assert sorted(word for word, _ in mine[:-1] if word) == list(range(1, 16))
    assert set(ring.headers_seen) == {INVALID}
    headers = [word for word, value in ring.stores if word % 16 == 0 and value != INVALID]
    assert headers[-1] == first % slots * 16
    bodies = [at for at, (word, _) in enumerate(ring.stores) if word % 16]
    final = [at for at, (word, value) in enumerate(ring.stores) if word % 16 == 0 and value != INVALID]
    assert max(bodies) < min(final)


@given(
    bits=st.integers(0, 7),
    first=st.integers(0, 2**64 - 300),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_compiled_and_twin_leave_the_same_ring(bits: int, first: int, share: float, seed: int) -> None:
    """Any ring, any absolute index, any batch that fits: equal words, and slots outside the batch untouched."""
    slots = 1 << bits
    batch = packets(max(1, round(share * slots)), seed)
    compiled = np.full(slots * 16, 0x55555555, np.uint32)
    interpreted = compiled.copy()
    publish(compiled, np.uint64(first), batch)
    twin(interpreted, np.uint64(first), batch)
    assert (compiled == interpreted).all()
    expected = np.full((slots, 16), 0x55555555, np.uint32)
    expected[[(first + i) % slots for i in range(len(batch))]] = batch
    assert (compiled.reshape(slots, 16) == expected).all()


def test_a_consumer_never_sees_half_a_packet() -> None:
    """A thread that takes packets while they are published finds every body whole, in order, 733 of them."""
    slots = 64
    ring = np.zeros(slots * 16, np.uint32)
    ring[::16] = INVALID
    batch = np.repeat(np.arange(2, 735, dtype=np.uint32)[:, None], 16, axis=1)
    batch[:, 0] = 0x00011500
    taken: list[list[int]] = []
    free = threading.Semaphore(slots)

    def consume() -> None:
        while len(taken) < len(batch):
            at = len(taken) % slots * 16
            if ring[at] & 0xFF != INVALID:
                taken.append(ring[at + 1 : at + 16].tolist())
                ring[at] = INVALID
                free.release()

    consumer = threading.Thread(target=consume)
    consumer.start()
    for index in range(len(batch)):
        assert free.acquire(timeout=30)
        publish(ring, np.uint64(index), batch[index : index + 1])
    consumer.join(30)
    assert taken == batch[:, 1:].tolist()
