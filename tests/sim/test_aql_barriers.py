# SPDX-License-Identifier: Apache-2.0
"""AQL barrier packets on the software device: what they wait for, and what stops their queue."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from redline.errors import QueueFailed
from redline.sim.dispatch import Dispatch
from tests.sim.aql_kernels import kernel
from tests.sim.streams import Remembering, bare_signal, destroy_signal, device

# Barriers


def barrier(kind: int, dependencies: list[int], signal: int = 0) -> NDArray[np.uint32]:
    """Type 3 (AND) or 5 (OR) with the barrier bit and system scopes."""
    words = [0x1500 | kind, 0]
    for handle in [*dependencies, *[0] * (5 - len(dependencies)), 0, signal]:
        words += [handle & 0xFFFFFFFF, handle >> 32]
    return np.array(words, np.uint32)


@pytest.mark.parametrize("kind", [3, 5])
def test_barriers_wait_for_all_or_for_one(kind: int) -> None:
    """AND needs every signal at 0, OR any; null handles are passed over, in whatever place."""
    with device() as (_, agent), agent.queue() as queue, agent.signal(1) as done:
        signals = [agent.signal(2) for _ in range(3)]
        handles = [0, signals[0].handle, signals[1].handle, 0, signals[2].handle]
        queue.submit(barrier(kind, handles, done.handle))
        for count, signal in enumerate(signals):
            signal.store(1)
            time.sleep(0.005)
            assert done.load() == (0 if kind == 5 and count else 1)
            signal.store(0)
            time.sleep(0.005)
            if kind == 5:
                done.wait_below(1, 10, poll=queue.check)
        done.wait_below(1, 10, poll=queue.check)
        for signal in signals:
            signal.close()


def test_a_barrier_or_of_null_handles_alone_could_never_be_satisfied() -> None:
    """hsa.h: a null handle of a barrier-OR is a dependency not satisfied. Said at once instead of waited for."""
    with device() as (_, agent), agent.queue() as queue, agent.signal(1) as done:
        queue.submit(barrier(5, [], done.handle))
        with pytest.raises(QueueFailed, match="dep_signal of a barrier-OR: .*at least one signal"):
            done.wait_below(1, 10, poll=queue.check)


def test_a_barrier_and_of_null_handles_alone_is_satisfied() -> None:
    """It only completes its signal."""
    with device() as (_, agent), agent.queue() as queue, agent.signal(1) as done:
        queue.submit(barrier(3, [], done.handle))
        assert done.wait_below(1, 10, poll=queue.check) == 0


@pytest.mark.parametrize("value", [1, -1, 1 << 40])
def test_only_zero_satisfies(value: int) -> None:
    """Not negative numbers, not zeros in the low half alone; the account names signal and value."""
    with device(patience_s=0.05) as (_, agent), agent.signal(value) as never, agent.queue() as queue:
        queue.submit(barrier(5, [0, never.handle]))
        with pytest.raises(QueueFailed, match=rf"barrier-OR: waited 0.05 s for one signal to be 0.*= {value}"):
            never.wait_below(-(1 << 62), 10, poll=queue.check)


def test_barriers_join_two_queues() -> None:
    """Two producers and a consumer behind a barrier-AND: the consumer's kernel runs last, whoever is first."""
    order: list[int] = []

    def act(seen: Dispatch, *_: object) -> None:
        time.sleep(0.01 * seen.dims[0])
        order.append(seen.dims[0])

    with (
        kernel(backend=Remembering(act)) as k,
        k.agent.signal(1) as first,
        k.agent.signal(1) as second,
        k.agent.signal(1) as done,
        k.agent.queue() as consumer,
        k.agent.queue() as a,
        k.agent.queue() as b,
    ):
        wait = barrier(3, [first.handle, second.handle])
        consumer.submit(np.vstack([wait, k.packet((256, 1, 1), signal=done.handle)]))
        a.submit(k.packet((3 * 256, 1, 1), signal=first.handle))
        b.submit(k.packet((2 * 256, 1, 1), signal=second.handle))
        done.wait_below(1, 10, poll=consumer.check)
    assert order[-1] == 1
    assert sorted(order) == [1, 2, 3]


def test_doorbells_are_no_signals_of_packets() -> None:
    """A doorbell's handle would turn a completion into a ring of that queue."""
    with device() as (_, agent), agent.queue() as queue, agent.queue() as other, agent.signal(1) as signal:
        queue.submit(barrier(3, [], other.doorbell))
        with pytest.raises(QueueFailed, match="completion signal .*a live signal"):
            signal.wait_below(1, 10, poll=queue.check)
        other.submit(barrier(5, [queue.doorbell]))
        with pytest.raises(QueueFailed, match="dword 2: dep_signal"):
            signal.wait_below(1, 10, poll=other.check)


def test_a_signal_that_is_destroyed_under_a_packet_stops_the_queue_with_its_handle() -> None:
    """As a dependency and as the completion signal: hardware would read and write freed memory."""
    with device() as (_, agent), agent.queue() as queue, agent.signal(1) as never:
        gone = bare_signal(agent)
        queue.submit(barrier(3, [gone]))
        time.sleep(0.02)
        destroy_signal(agent, gone)
        with pytest.raises(QueueFailed, match=r"dword 2: dep_signal of barrier-AND: signal 0x[0-9a-f]+ is not alive"):
            never.wait_below(1, 10, poll=queue.check)

    def destroy(*_: object) -> None:
        destroy_signal(k.agent, victims.pop())

    with kernel(backend=Remembering(destroy)) as k:
        victims = [bare_signal(k.agent)]
        with pytest.raises(QueueFailed, match=r"dword 14: completion signal 0x[0-9a-f]+, gone meanwhile"):
            k.run(k.packet(signal=victims[0]))
