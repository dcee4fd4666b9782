# SPDX-License-Identifier: Apache-2.0
"""Waits end: with the value, with what the queue says, or with a time-out that names all three (case 41)."""

from __future__ import annotations

import threading
import time

import pytest

from redline.errors import HsaError, QueueFailed, ReplayTimeout
from tests.hsa.fakes import fake_agent
from tests.sim.streams import device


def test_a_wait_that_returns_early_is_taken_up_again() -> None:
    """Case 41: HSA waits may end with the condition unmet; the loop looks at the value."""
    values = [3, 2, 0]
    hints: list[int] = []

    def wait(_signal: int, condition: int, compare: int, hint: int, _state: int) -> int:
        assert (condition, compare) == (2, 1)
        hints.append(hint)
        return values.pop(0)

    polls: list[int] = []
    with fake_agent({"hsa_signal_wait_scacquire": wait}) as agent, agent.signal(3) as signal:
        assert signal.wait_below(1, 30.0, poll=lambda: polls.append(len(values))) == 0
    assert values == []
    assert polls == [2, 1]
    assert all(0 < hint <= 30 * 100_000_000 for hint in hints)


def test_a_wait_times_out_with_wanted_seen_and_after() -> None:
    """No wait is without an end, and the message has what a user needs to judge."""
    with device() as (_, agent), agent.signal(5) as signal:
        started = time.monotonic()
        with pytest.raises(ReplayTimeout) as caught:
            signal.wait_below(2, 0.05)
        assert 0.04 < time.monotonic() - started < 20
        assert (caught.value.code, caught.value.seen, caught.value.allowed) == (
            "RL1101",
            "value 5 after 0.05 s",
            "a value below 2",
        )
        assert f"{signal.handle:#x}" in caught.value.where
        with pytest.raises(ReplayTimeout, match="after 0 s"):
            signal.wait_below(5, 0)
        assert signal.wait_below(6, 0) == 5


def test_a_wait_sees_a_store_of_another_thread_at_once() -> None:
    """The condition variable wakes it; it does not sleep out its slice."""
    with device() as (_, agent), agent.signal(1) as signal:
        timer = threading.Timer(0.05, signal.store, (0,))
        timer.start()
        started = time.monotonic()
        assert signal.wait_below(1, 20) == 0
        assert time.monotonic() - started < 10
        timer.join()


def test_a_wait_ends_with_what_poll_raises() -> None:
    """A failed queue ends the wait long before its time-out."""

    def poll() -> None:
        raise QueueFailed("RL1001", where="queue 1", seen="x", allowed="y", do="z")

    with device() as (_, agent), agent.signal(1) as signal:
        started = time.monotonic()
        with pytest.raises(QueueFailed):
            signal.wait_below(1, 60, poll=poll)
        assert time.monotonic() - started < 10


def test_values_are_signed_and_survive_the_round_trip() -> None:
    """64 bits, two's complement."""
    with device() as (_, agent), agent.signal(-7) as signal:
        assert signal.load() == -7
        for value in (2**63 - 1, -(2**63), 0):
            signal.store(value)
            assert signal.load() == value


def test_signals_are_given_back() -> None:
    """Case 41: many thousand signals one after another use the memory of one."""
    with device() as (sim, agent):
        before = len(sim.memory.allocations)
        for _ in range(2000):
            agent.signal(1).close()
        assert len(sim.memory.allocations) == before
        with agent.signal(1) as signal:
            handle = signal.handle
        signal.close()
        with pytest.raises(HsaError, match=r"RL0902 hsa_signal_destroy: HSA_STATUS_ERROR_INVALID_SIGNAL"):
            agent.runtime.hsa.check("hsa_signal_destroy", handle)
