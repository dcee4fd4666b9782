# SPDX-License-Identifier: Apache-2.0
"""Replays that do not end well: cancelled, closed in flight, late, failed; every later use tells the first cause.

`test_replay_interrupts.py` has signal handlers, `hsa/test_processes.py` Ctrl-C, exit and fork of whole processes.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import redline as rl
from redline.hsa import Runtime
from redline.hsa.lib import Hsa
from redline.sim.runtime import SimRuntime
from tests.devices import Memories, buffers, device_memory, module, release, two_launches, wait_until, waiting_replay
from tests.hsa.fakes import table_with


def _uses(replay: rl.Replay, memory: Memories) -> list[Callable[[], None]]:
    """Everything but cancel and close."""
    return [
        lambda: replay.patch(count=3),
        lambda: replay.bind({"z": memory["z"]}),
        replay.submit,
        lambda: replay.wait(timeout=30),
        lambda: replay.run(timeout=30),
    ]


class _Waiter:
    """Another thread inside `wait`, and what came of it."""

    def __init__(self, replay: rl.Replay) -> None:
        self.error: BaseException | None = None
        self._replay = replay
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        assert wait_until(lambda: bool(replay._flight.waiters))
        time.sleep(0.02)  # past the spin

    def _wait(self) -> None:
        try:
            self._replay.wait(timeout=120)
        except BaseException as error:
            self.error = error

    def ended(self) -> BaseException | None:
        """Its error, long before its timeout."""
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self.error


def test_cancel_ends_waits_at_once_and_every_use_says_why(device: rl.Device) -> None:
    """The waiting thread hears of it long before its timeout; packet and kernels are named; close frees the rest."""
    gc.collect()  # of what other tests left
    allocations = len(device_memory(device).allocations)
    replay, memory = waiting_replay(device)
    replay.submit()
    waiter = _Waiter(replay)
    replay.cancel()
    error = waiter.ended()
    assert isinstance(error, rl.QueueFailed)
    assert (error.code, error.seen) == ("RL1002", "cancelled in flight")
    assert error.where.startswith(f"replay on {device.name}, packet 0 (plan ")
    assert "#0 spin, #1 copy" in error.where
    for use in _uses(replay, memory):
        with pytest.raises(rl.QueueFailed) as caught:
            use()
        assert str(caught.value) == str(error)
    replay.cancel()
    memory["z"].read()  # nothing is in flight
    with pytest.raises(rl.ReplayBusy, match="RL1403"):
        memory["z"].close()  # nothing is freed either
    replay.close()
    replay.cancel()
    with pytest.raises(rl.NotRecorded, match="RL1204"):
        replay.submit()
    for held in memory.values():
        held.close()
    assert len(device_memory(device).allocations) == allocations


def test_cancel_between_replays_ends_them_too(device: rl.Device) -> None:
    """Whoever submits in a loop is stopped, wherever the loop is."""
    replay, memory = waiting_replay(device)
    with replay:
        release(device, memory)
        replay.run(timeout=20)
        replay.cancel()
        for use in _uses(replay, memory):
            with pytest.raises(rl.QueueFailed, match="RL1002 .*cancelled between replays"):
                use()


def test_close_in_flight_ends_waits_before_it_frees() -> None:
    """The runtime must not look at a signal that is gone: when it is destroyed, no thread is inside a wait."""
    sim = SimRuntime("gfx1201")
    beneath, inside, found = Hsa(sim.table), [0], []

    def wait(*args: int) -> int:
        inside[0] += 1
        value = int(beneath.call("hsa_signal_wait_scacquire", *args))
        inside[0] -= 1
        return value

    def destroy(handle: int) -> int:
        found.append(inside[0])
        return int(beneath.call("hsa_signal_destroy", handle))

    table = table_with(sim.table, {"hsa_signal_wait_scacquire": wait, "hsa_signal_destroy": destroy})
    runtime = Runtime.of_table(table)
    with rl.Device(runtime, runtime.agents()[0], "sim:gfx1201") as device:
        for _ in range(5):
            replay, _memory = waiting_replay(device)
            replay.submit()
            waiters = [_Waiter(replay) for _ in range(3)]
            replay.close()
            for waiter in waiters:
                error = waiter.ended()
                assert isinstance(error, rl.QueueFailed)
                assert (error.code, error.seen) == ("RL1002", "closed in flight")
            with pytest.raises(rl.NotRecorded, match="RL1204"):
                replay.wait()
    assert found == [0] * 5


def test_a_queue_that_is_not_destroyed_stays_in_flight_and_may_be_asked_again() -> None:
    """The device may still write: the host keeps out, nothing is freed, no use is allowed; the next try succeeds."""
    sim = SimRuntime("gfx1201")
    beneath, refusals = Hsa(sim.table), [0x1000] * 3

    def destroy(queue: int) -> int:
        return refusals.pop() if refusals else int(beneath.call("hsa_queue_destroy", queue))

    runtime = Runtime.of_table(table_with(sim.table, {"hsa_queue_destroy": destroy}))
    with rl.Device(runtime, runtime.agents()[0], "sim:gfx1201") as device:
        replay, memory = waiting_replay(device)
        replay.submit()
        waiter = _Waiter(replay)
        for end in (replay.cancel, replay.close, replay.cancel):
            with pytest.raises(rl.HsaError, match="RL0902 hsa_queue_destroy"):
                end()
            assert isinstance(waiter.ended(), rl.QueueFailed)
            with pytest.raises(rl.ReplayBusy, match="RL1402"):
                memory["z"].read()
            with pytest.raises(rl.QueueFailed, match="cancelled in flight"):
                replay.submit()
        assert refusals == []
        replay.close()
        memory["z"].read()
        memory["z"].close()


def _faulting(device: rl.Device) -> tuple[rl.Replay, Memories]:
    """A kernel that reads and writes far outside."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024, role="in"), graph.buffer("z", 1024, role="out")
    count = rl.slot("count", "u4", default=1 << 20)
    graph.launch(module("copy")["copy"], grid=4096, block=256, args=[rl.write(y), rl.read(x), count])
    memory = buffers(device, graph)
    return device.instantiate(graph.compile(), memory), memory


@pytest.mark.parametrize("waits", [True, False])
def test_a_queue_error_stays_the_first_cause(device: rl.Device, waits: bool) -> None:
    """Case 44: packet and kernel in every later use, whether a wait or nobody heard of it first; also after cancel."""
    replay, memory = _faulting(device)
    with replay:
        replay.submit()
        if waits:
            with pytest.raises(rl.QueueFailed):
                replay.wait(timeout=60)
        else:
            assert wait_until(lambda: replay._queues[0].failure is not None)
        texts = set()
        for _ in range(2):
            for use in _uses(replay, memory):
                with pytest.raises(rl.QueueFailed, match=r"RL1001 .*packet 0 \(plan [0-9a-f]{16}: #0 copy\)") as caught:
                    use()
                texts.add(str(caught.value))
                assert len(list(_frames(caught.value))) < 12  # the same error again would collect them
            replay.cancel()
        assert len(texts) == 1
        memory["z"].read()


def test_a_queue_error_goes_before_a_cancel(device: rl.Device) -> None:
    """The device was first, though nobody had heard of it."""
    replay, memory = _faulting(device)
    with replay:
        replay.submit()
        assert wait_until(lambda: replay._queues[0].failure is not None)
        replay.cancel()
        for use in _uses(replay, memory):
            with pytest.raises(rl.QueueFailed, match="RL1001 .*packet 0"):
                use()


def _frames(error: BaseException) -> Iterator[Any]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


@pytest.mark.parametrize("make", [waiting_replay, _faulting])
def test_a_replay_that_failed_or_is_late_can_be_collected(
    device: rl.Device, make: Callable[[rl.Device], tuple[rl.Replay, Memories]]
) -> None:
    """The cause that is kept does not hold the frames that it went through, and with them the replay."""
    replay, memory = make(device)
    found = weakref.ref(replay)
    with pytest.raises(rl.RedlineError):
        replay.run(timeout=0.3)
    with pytest.raises(rl.RedlineError):
        replay.patch(count=1)
    del replay
    gc.collect()
    assert found() is None
    memory["z"].close()


def test_after_a_timeout_every_refusal_names_it_until_a_wait_sees_the_end(device: rl.Device) -> None:
    """A late replay is in flight: it may be waited for again; patch, bind and submit say what came first, and where."""
    replay, memory = waiting_replay(device)
    with replay:
        release(device, memory)
        replay.run(timeout=20)
        memory["flag"].write(bytes(256))
        replay.submit()
        uses: list[Callable[[], None]] = [replay.submit, lambda: replay.patch(count=3)]
        for use in uses:
            with pytest.raises(rl.ReplayBusy, match="the replay is in flight; allowed") as caught:
                use()
            assert caught.value.__cause__ is None
        for timeout in (0.05, 0.06):
            with pytest.raises(rl.ReplayTimeout, match=f"packet 1 .*not done after {timeout} s"):
                replay.wait(timeout=timeout)
        where = rf"the replay is in flight, and first Replay.wait on {device.name}, packet 1 \(plan [0-9a-f]{{16}}: "
        for use in [*uses, lambda: replay.bind({"z": memory["z"]})]:
            with pytest.raises(rl.ReplayBusy, match=where + r"#0 spin, #1 copy\): not done after 0.05 s") as caught:
                use()
            assert isinstance(caught.value.__cause__, rl.ReplayTimeout)
        release(device, memory)
        replay.wait(timeout=20)
        replay.patch(count=3)
        memory["flag"].write(bytes(256))
        replay.submit()
        with pytest.raises(rl.ReplayBusy, match="the replay is in flight; allowed"):
            replay.submit()
        release(device, memory)
        replay.wait(timeout=20)


def test_many_threads_wait_and_one_cancels(device: rl.Device) -> None:
    """Again and again, at any moment of the waits: each thread hears an end or the cause, and everything is freed."""
    graph = two_launches()
    plan, memory = graph.compile(), buffers(device, graph)
    gc.collect()  # of what other tests left
    before = len(device_memory(device).allocations)
    for pause in range(12):
        replay = device.instantiate(plan, memory)
        replay.patch(a=1.0)
        seen: list[str] = []

        def use(replay: rl.Replay = replay, seen: list[str] = seen) -> None:
            while True:
                try:
                    replay.run(timeout=60)
                except rl.ReplayBusy:
                    continue
                except rl.NotRecorded as error:
                    if error.code == "RL1203":  # another thread's wait was first
                        continue
                    seen.append(error.code)
                    return
                except rl.QueueFailed as error:
                    seen.append(error.code)
                    return

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.002 * pause)
        (replay.cancel if pause % 2 else replay.close)()
        for thread in threads:
            thread.join(30)
        assert len(seen) == 3
        assert set(seen) <= ({"RL1002"} if pause % 2 else {"RL1002", "RL1204"})
        replay.close()
        assert len(device_memory(device).allocations) == before
