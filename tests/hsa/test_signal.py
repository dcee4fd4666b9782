# SPDX-License-Identifier: Apache-2.0
"""Waits end: with the value, with what the queue says, or with a time-out that names all three (case 41)."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import cfunc

from redline.errors import HsaError, QueueFailed, ReplayTimeout
from redline.hsa import Runtime
from redline.hsa.abi import HSA_WAIT_STATE_ACTIVE, HSA_WAIT_STATE_BLOCKED
from redline.hsa.signal import SLICE_SECONDS, SPIN_SECONDS
from redline.sim.runtime import SimRuntime
from tests.hsa.consumer import load_acquire
from tests.hsa.fakes import fake_agent
from tests.sim.streams import Remembering, device


def test_a_wait_looks_spins_and_blocks_and_takes_up_what_ends_early() -> None:
    """Case 41: HSA waits may end with the condition unmet, also many times; the loop looks at the value.

    The first look asks for no wait; then one short active wait, then blocked ones, none longer than a slice.
    """
    values = [3, 2, *[1] * 1000, 0]
    asked: list[tuple[int, int]] = []

    def wait(_signal: int, condition: int, compare: int, hint: int, state: int) -> int:
        assert (condition, compare) == (2, 1)
        asked.append((state, hint))
        return values.pop(0)

    polls: list[int] = []
    with fake_agent({"hsa_signal_wait_scacquire": wait}) as agent, agent.signal(3) as signal:
        ticks = agent.runtime.ticks_per_second()
        assert signal.wait_below(4, 30.0) == 3
        assert asked == []
        assert signal.wait_below(1, 30.0, poll=lambda: polls.append(len(values))) == 0
    assert values == []
    assert polls == list(range(1003, 0, -1))
    (spin, spin_ticks), *blocked = asked
    assert (spin, spin_ticks) == (HSA_WAIT_STATE_ACTIVE, round(SPIN_SECONDS * ticks))
    assert {state for state, _ in blocked} == {HSA_WAIT_STATE_BLOCKED}
    assert {hint for _, hint in blocked} == {round(SLICE_SECONDS * ticks)}


def test_early_ends_do_not_outlive_the_timeout() -> None:
    """Case 41: a runtime whose waits return at once, always unmet, ends in a time-out all the same."""
    hints: list[int] = []

    def wait(_signal: int, _condition: int, _compare: int, hint: int, _state: int) -> int:
        hints.append(hint)
        return 7

    with fake_agent({"hsa_signal_wait_scacquire": wait}) as agent, agent.signal(7) as signal:
        with pytest.raises(ReplayTimeout, match="value 7 after 0.2 s"):
            signal.wait_below(1, 0.2)
        assert len(hints) > 3
        assert max(hints) <= SLICE_SECONDS * agent.runtime.ticks_per_second()
        hints.clear()
        with pytest.raises(ReplayTimeout):
            signal.wait_below(1, SLICE_SECONDS / 4)
        assert max(hints) <= SLICE_SECONDS / 4 * agent.runtime.ticks_per_second(), "never longer than what is left"


@cfunc("int64(uint64,uint32,int64,uint64,uint32)")
def _spinning_wait(handle: Any, condition: Any, compare: Any, hint: Any, state: Any) -> Any:
    """A runtime's wait that comes back only when the value is 0; gives up after some ten seconds of looking."""
    for _ in range(10_000_000_000):
        if load_acquire(handle + np.uint64(8)) == np.uint32(0):  # type: ignore[call-arg]
            return 0
    return 9


def test_a_wait_does_not_hold_the_gil() -> None:
    """Only another thread of Python ends this wait: it would never run."""
    sim = SimRuntime("gfx1201", Remembering())
    compiled: Any = _spinning_wait
    addresses = {**sim.table.addresses, "hsa_signal_wait_scacquire": compiled.address}
    table = replace(sim.table, addresses=addresses)
    with Runtime.of_table(table) as runtime, runtime.agents()[0].signal(1) as signal:
        timer = threading.Timer(0.05, signal.store, (0,))
        timer.start()
        assert signal.wait_below(1, 60) == 0
        timer.join()


def test_a_runtime_that_was_closed_meanwhile_has_no_values() -> None:
    """A signal that is destroyed under a wait reads as 0 on ROCr, which is no completion."""

    def wait(*_: int) -> int:
        agent.runtime.closed = True
        return 0

    with fake_agent({"hsa_signal_wait_scacquire": wait}) as agent:
        signal = agent.signal(1)
        with pytest.raises(HsaError, match="RL0908"):
            signal.wait_below(1, 30)
        agent.runtime.closed = False


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
