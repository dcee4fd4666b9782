# SPDX-License-Identifier: Apache-2.0
"""The order of the stores that publish packets (case 35), in compiled code and in its Python twin.

`test_racing.py` looks at the same from a consumer's side.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from redline.hsa import publish as publishing
from redline.hsa.lib import Hsa
from redline.hsa.publish import publish
from tests.hsa.fakes import fake_agent

pytestmark = pytest.mark.nopython

INVALID = 1
BASE = 0x7F0000000000  # where a recording ring says that it lies

#: The same function without the compiler (under NUMBA_DISABLE_JIT=1 it is `publish` itself).
twin = getattr(publish, "py_func", publish)


@dataclass(frozen=True)
class Store:
    """One store into the ring: byte address, width in bytes, the value's little-endian bytes as a number."""

    address: int
    width: int
    value: int


class RecordingRing:
    """A ring at `BASE` that notes every store, of whatever width, in the order in which they happen."""

    def __init__(self, slots: int) -> None:
        self.words = np.zeros(slots * 16, np.uint32)
        self.words[::16] = INVALID
        self.stores: list[Store] = []
        self.shape = self.words.shape

    def __setitem__(self, place: Any, value: Any) -> None:
        self.words[place] = value
        first = place.start if isinstance(place, slice) else place
        data = np.asarray(value).tobytes()
        self.stores.append(Store(BASE + 4 * int(first), len(data), int.from_bytes(data, "little")))


def packets(count: int, seed: int = 0) -> NDArray[np.uint32]:
    """Random bodies behind vendor headers."""
    rows = np.random.default_rng(seed).integers(0, 2**32, (count, 16), np.uint32)
    rows[:, 0] = 0x00011500
    return rows


def broken_rule(ring: RecordingRing, first: int, batch: NDArray[np.uint32]) -> str:
    """The first rule of publication that the recorded stores break; empty when they keep all."""
    slots = len(ring.words) // 16
    headers: list[int] = []  # places in the batch, as their headers came
    bodies: dict[int, set[int]] = {i: set() for i in range(len(batch))}
    place_of = {(first + i) % slots: i for i in range(len(batch))}
    for store in ring.stores:
        slot, offset = divmod(store.address - BASE, 64)
        at = place_of.get(slot)
        if at is None:
            return f"slot {slot} is none of the batch's"
        if store.width != 4 or offset % 4:
            return f"{store.width} bytes at offset {offset} of packet {at}"
        if offset == 0 and store.value == INVALID and at not in headers:
            continue
        if offset == 0 and store.value == int(batch[at, 0]):
            headers.append(at)
        elif headers:
            return f"packet {at}: {offset} stored behind a header"
        elif store.value != int(batch[at, offset // 4]):
            return f"packet {at}: {store.value:#x} at {offset}"
        bodies[at].add(offset)
    if any(len(offsets) != 16 for offsets in bodies.values()):
        return "words of a packet are missing"
    if sorted(headers) != list(range(len(batch))):
        return f"headers {headers}"
    return "" if headers[-1] == 0 else "the first packet's header is not the last store"


@pytest.mark.parametrize(
    ("slots", "first", "count"),
    [(8, 0, 1), (8, 6, 5), (8, 0, 8), (8, 2**63 + 7, 8), (1, 5, 1), (64, 2**64 - 130, 64), (1024, 900, 733)],
)
def test_bodies_go_before_headers_and_the_first_header_goes_last(slots: int, first: int, count: int) -> None:
    """Case 35: bodies while the header is INVALID, then four bytes at offset 0; round the ring, and a ring full.

    The last store into a slot is its header, no store is wider than four bytes, the first packet's header is the very
    last: a batch, such as the burst of 733, appears at once.
    """
    ring, batch = RecordingRing(slots), packets(count)
    twin(ring, np.uint64(first), batch)
    assert broken_rule(ring, first, batch) == ""


def _header_first(ring: Any, first: int, batch: Any) -> None:
    for i, packet in enumerate(batch):
        for j in range(16):
            ring[(first + i) % 8 * 16 + j] = packet[j]


def _whole_rows(ring: Any, first: int, batch: Any) -> None:
    for i, packet in enumerate(batch):
        at = (first + i) % 8 * 16
        ring[at : at + 16] = packet


def _headers_in_order(ring: Any, first: int, batch: Any) -> None:
    for j in [*range(1, 16), 0]:
        for i, packet in enumerate(batch):
            ring[(first + i) % 8 * 16 + j] = packet[j]


def _two_halves(ring: Any, first: int, batch: Any) -> None:
    ring[first % 8 * 16] = batch[0, 0].astype(np.uint16)


def _no_wrap(ring: Any, first: int, batch: Any) -> None:
    twin(ring, np.uint64(first - 1), batch)


def _packet_by_packet(ring: Any, first: int, batch: Any) -> None:
    for i in reversed(range(len(batch))):
        twin(ring, np.uint64(first + i), batch[i : i + 1])


def _no_body(ring: Any, first: int, batch: Any) -> None:
    for i in reversed(range(len(batch))):
        ring[(first + i) % 8 * 16] = batch[i, 0]


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (_header_first, "packet 0: 4 stored behind a header"),
        (_whole_rows, "64 bytes at offset 0 of packet 0"),
        (_headers_in_order, "the first packet's header is not the last store"),
        (_two_halves, "2 bytes at offset 0 of packet 0"),
        (_no_wrap, "slot 5 is none of the batch's"),
        (_packet_by_packet, "packet 1: 4 stored behind a header"),
        (_no_body, "words of a packet are missing"),
    ],
)
def test_the_recording_finds_every_way_to_publish_wrongly(broken: Any, rule: str) -> None:
    """Case 35: a whole-struct copy, a header first, and others: each is named."""
    ring, batch = RecordingRing(8), packets(3)
    broken(ring, 6, batch)
    assert broken_rule(ring, 6, batch) == rule


def test_a_submit_reserves_publishes_and_rings_in_this_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases 35, 37: nothing is stored before the slots are reserved, and the doorbell, with the last absolute index,
    comes behind every store; nothing comes behind it.
    """
    events: list[Any] = []
    sim: list[Hsa] = []

    def reserve(queue: int, count: int) -> int:
        events.append(("reserve", count, len(ring.stores)))
        return int(sim[0].call("hsa_queue_add_write_index_scacq_screl", queue, count))

    def doorbell(_signal: int, value: int) -> None:
        events.append(("doorbell", value, len(ring.stores)))

    # The twin of a whole submission, whose ring records; the compiled one is `test_racing.py`'s.
    words_at = publishing.words_at

    def recorded(address: int, count: int) -> Any:
        return ring if address == queue.ring.ctypes.data else words_at(address, count)

    monkeypatch.setattr(publishing, "submit", getattr(publishing.submit, "py_func", publishing.submit))
    monkeypatch.setattr(publishing, "publish", twin)
    monkeypatch.setattr(publishing, "words_at", recorded)
    replaced = {"hsa_queue_add_write_index_scacq_screl": reserve, "hsa_signal_store_screlease": doorbell}
    with fake_agent(replaced) as agent, agent.queue(64) as queue:
        beneath: Any = agent.runtime.hsa.table.device
        sim.append(Hsa(beneath.table))
        first = 0
        for count in (1, 5, 58):
            ring = RecordingRing(64)
            events.clear()
            batch = packets(count)
            assert queue.submit(batch) == first + count - 1
            assert broken_rule(ring, first, batch) == ""
            assert events == [("reserve", count, 0), ("doorbell", first + count - 1, len(ring.stores))]
            first += count


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
    publish(compiled, first, batch)
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
