# SPDX-License-Identifier: Apache-2.0
"""Publication against a compiled consumer on its own thread, and that this consumer notices what it should.

Runs where code is compiled, so it is no `nopython` test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from redline.hsa.publish import publish
from tests.hsa.consumer import first_header_first, header_first
from tests.hsa.racing import Found, Submissions, empty_ring, fill, judge, race


@pytest.mark.parametrize(("count", "slots"), [(100_000, 1024), (20_000, 64), (2000, 2), (1000, 1)])
def test_a_racing_consumer_finds_every_packet_whole_and_in_order(count: int, slots: int) -> None:
    """Case 35: nothing torn, out of order, missing, doubled or split, round the ring again and again."""
    assert race(count, seed=count, slots=slots) == Found()


def test_a_racing_consumer_of_whole_submissions_finds_the_same() -> None:
    """Case 35: what a replay calls, with room, reservation and doorbell by a runtime's compiled functions."""
    submissions = Submissions(64)
    assert race(20_000, seed=3, write=submissions, slots=64) == Found()
    assert (submissions.queue.write_index, submissions.bell.value) == (20_000, 19_999)


def test_headers_stored_first_are_torn_packets() -> None:
    """Case 35: the same race with each header before its body, which waits until the consumer has been there."""
    found = race(50, seed=1, write=header_first)
    assert found.torn > 20  # on a busy machine the wait gives up now and then
    assert found.failures()[0] == f"{found.torn} packets torn"


def test_headers_stored_in_order_split_a_batch() -> None:
    """The first packet's header goes last: else a batch appears piece by piece."""
    found = race(50, seed=1, write=first_header_first)
    assert found.split > 20
    assert found.torn == found.missing == 0


def _found(numbers: list[int], change: Any = None) -> Found:
    """What the consumer makes of a ring that was written before it started; it stops where nothing is."""
    ring, rows = empty_ring(8), np.zeros((len(numbers), 16), np.uint32)
    for row, number in zip(rows, numbers, strict=True):
        fill(row[None, :], number)
    if change is not None:
        change(rows)
    publish(ring, np.uint64(0), rows)
    return judge(ring, 8, lambda _state: None, patience_s=0.2)


def test_the_consumer_counts_what_is_wrong() -> None:
    """Each kind of fault by itself; and a whole ring has none."""
    assert _found([0, 1, 2, 3, 4, 5, 6, 7]) == Found()
    assert _found([0, 2, 1, 3, 4, 5, 6, 7]) == Found(out_of_order=2)
    assert _found([0, 1, 1, 3, 4, 5, 6, 7]) == Found(out_of_order=1, missing=1, doubled=1)
    assert _found([0, 1, 2]) == Found(missing=5)
    for word in range(1, 15):
        assert _found([0, 1, 2, 3, 4, 5, 6, 7], lambda rows, word=word: rows[3].put(word, 9)) == Found(torn=1)
    assert _found([0, 1, 2, 3, 4, 5, 6, 7], lambda rows: rows[3].put(0, 0x00041500)) == Found(torn=1)
