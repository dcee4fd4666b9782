# SPDX-License-Identifier: Apache-2.0
"""Memory, code and signals that a live queue may touch are kept when they are closed, and not for longer.

Which call ends what is read from recorded calls; that a kernel finds its memory, from what the kernel did.
"""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline import kernels
from redline.errors import HsaError
from redline.hsa import Agent, Buffer, Queue, Runtime, Signal
from redline.sim.dispatch import Dispatch
from redline.sim.memory import Memory
from redline.sim.runtime import SimRuntime
from tests.devices import buffers, device_memory, release, two_launches, waiting_replay
from tests.hsa.fakes import recording, table_with
from tests.sim.streams import Remembering, ib_packet, launch

ENDS = ["hsa_queue_destroy", "hsa_executable_destroy", "hsa_code_object_reader_destroy", "hsa_signal_destroy"]
ENDS += ["hsa_amd_memory_pool_free"]
WORDS = launch()


class _Gate:
    """A device whose dispatches wait to be let through, and then write to `target`, whatever became of it."""

    def __init__(self) -> None:
        self.open, self.target = threading.Event(), 0

    def __call__(self, _d: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        while not self.open.wait(0.01):
            if cancelled.is_set():
                return
        memory.store(self.target, b"done")


Calls = list[tuple[str, tuple[Any, ...]]]


@contextmanager
def _gated(**replaced: Callable[..., Any]) -> Iterator[tuple[_Gate, Agent, Calls]]:
    gate, calls = _Gate(), Calls()
    sim = SimRuntime("gfx1201", Remembering(gate))
    with Runtime.of_table(table_with(sim.table, {**recording(calls, ENDS, sim), **replaced})) as runtime:
        yield gate, runtime.agents()[0], calls
    assert sim.errors == []


class _Submitted:
    """A queue with a kernel in flight that writes to a buffer; its end is told by a signal."""

    def __init__(self, agent: Agent, gate: _Gate) -> None:
        self.queue: Queue = agent.queue()
        self.signal: Signal = agent.signal(1)
        self.buffer: Buffer = agent.allocate(64, "fine")
        self.ib: Buffer = agent.allocate(4096, "kernarg", executable=True)
        self.ib.write(np.array(WORDS, np.uint32))
        gate.target = self.buffer.address
        self.last = self.queue.submit(ib_packet(self.ib.address, len(WORDS), self.signal.handle))

    def see_end(self) -> None:
        """Wait, and tell the queue."""
        self.signal.wait_below(1, 20, poll=self.queue.check)
        self.queue.completed(self.last)


def test_what_is_closed_under_a_live_queue_goes_when_it_is_idle() -> None:
    """Case 55: memory that a recorded packet names is not given to others while it may run; in the order of closing."""
    with _gated() as (gate, agent, calls):
        running = _Submitted(agent, gate)
        code = agent.load(kernels.build("copy", "gfx1201"))
        address, found = running.buffer.address, []
        for handle in (running.buffer, running.ib, code):
            handle.close()
            assert handle.closed
        with pytest.raises(HsaError, match="RL0906"):
            running.buffer.read()
        assert (calls, agent.runtime.resources.quarantined) == ([], 4)
        again = [agent.allocate(64, "fine").address for _ in range(8)]
        found.append(address in again)
        gate.open.set()
        running.see_end()
        names = [name for name, _ in calls]
        assert names == [ENDS[4], ENDS[4], ENDS[1], ENDS[2]]
        assert [args for _, args in calls][:2] == [(address,), (running.ib.address,)]
        assert (found, agent.runtime.resources.quarantined) == ([False], 0)
        running.signal.close()
        assert [name for name, _ in calls[4:]] == ["hsa_signal_destroy"]


@pytest.mark.parametrize("order", list(permutations(["queue", "signal", "buffer", "ib"])))
def test_in_any_order_of_closing_the_queue_goes_first(order: tuple[str, ...]) -> None:
    """Case 25: with the kernel in flight, and no completion that anybody has seen."""
    with _gated() as (gate, agent, calls):
        running = _Submitted(agent, gate)
        for name in order:
            getattr(running, name).close()
        assert calls[0][0] == "hsa_queue_destroy"
        assert len(calls) == 4
        assert len(agent.runtime.resources) == 0
        others = [name for name in order if name != "queue"]
        ends = {"signal": "hsa_signal_destroy"}
        assert [name for name, _ in calls][1:] == [ends.get(name, "hsa_amd_memory_pool_free") for name in others]


def test_a_dropped_queue_keeps_what_is_closed_until_the_runtime_ends() -> None:
    """Nobody can see its end; the collector is no end."""
    with _gated() as (gate, agent, calls):
        running = _Submitted(agent, gate)
        running.buffer.close()
        del running
        gc.collect()
        gate.open.set()
        late = agent.allocate(64)
        late.close()
        assert calls == []
        agent.runtime.close()
        assert [name for name, _ in calls] == ["hsa_queue_destroy"] + 2 * [ENDS[4]] + ["hsa_signal_destroy", ENDS[4]]


def test_only_the_last_packet_makes_a_queue_idle() -> None:
    """Another submit has come meanwhile: what the caller saw end is not all."""
    with _gated() as (gate, agent, calls):
        running = _Submitted(agent, gate)
        gate.open.set()
        running.signal.wait_below(1, 20, poll=running.queue.check)
        gate.open.clear()
        second = running.queue.submit(ib_packet(running.ib.address, len(WORDS), running.signal.handle))
        running.buffer.close()
        running.queue.completed(running.last)
        running.queue.completed(second + 1)
        assert calls == []
        gate.open.set()
        running.signal.wait_below(0, 20, poll=running.queue.check)
        running.queue.completed(second)
        assert [name for name, _ in calls] == ["hsa_amd_memory_pool_free"]


def test_every_queue_that_was_live_counts_and_none_that_became_so_later() -> None:
    """Two that take turns and are never both idle do not keep memory for ever."""
    with _gated() as (gate, agent, calls):
        one, two = _Submitted(agent, gate), _Submitted(agent, gate)
        gone = agent.allocate(64)
        gone.close()
        gate.open.set()
        for turn in (one, two, one, two):
            turn.see_end()
            turn.signal.store(1)
            seen = [args for name, args in calls if name == "hsa_amd_memory_pool_free"]
            assert seen == ([] if turn is one and not calls else [(gone.address,)])
            turn.last = turn.queue.submit(ib_packet(turn.ib.address, len(WORDS), turn.signal.handle))
        for turn in (one, two):
            turn.see_end()


def test_memory_stays_while_a_queue_is_not_destroyed() -> None:
    """The queue is refused: it may still run, so what was closed is kept; the next try frees it."""
    refusals = [0x1000]
    with _gated() as (gate, agent, calls):
        beneath = agent.runtime.hsa.call

        def call(name: str, *args: Any) -> Any:
            return refusals.pop() if name == "hsa_queue_destroy" and refusals else beneath(name, *args)

        running = _Submitted(agent, gate)
        running.buffer.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(agent.runtime.hsa, "call", call)
            with pytest.raises(HsaError, match="RL0902 hsa_queue_destroy"):
                running.queue.close()
            running.ib.close()
            assert (calls, agent.runtime.resources.quarantined) == ([], 2)
            running.queue.close()
        assert [name for name, _ in calls] == ["hsa_queue_destroy", *2 * ["hsa_amd_memory_pool_free"]]


def test_a_refused_release_is_not_the_fault_of_who_ended_the_queue() -> None:
    """It stays listed, and the runtime's own end asks once more."""
    asked: list[int] = []

    def free(address: int) -> int:
        asked.append(address)
        return 0x1000

    with _gated(hsa_amd_memory_pool_free=free) as (gate, agent, calls):
        running = _Submitted(agent, gate)
        running.buffer.close()
        running.queue.close()
        assert asked == [running.buffer.address]
        assert (agent.runtime.resources.quarantined, len(agent.runtime.resources)) == (0, 3)
        with pytest.raises(HsaError, match="RL0902 hsa_amd_memory_pool_free"):
            agent.runtime.close()
        assert asked[1:]
        assert [name for name, _ in calls] == ["hsa_queue_destroy", "hsa_signal_destroy"]


def test_a_replay_keeps_what_is_closed_until_a_wait_has_seen_its_end() -> None:
    """Buffers and other replays closed while one is in flight."""
    with rl.open("sim:gfx1201") as device:
        resources, graph = device.runtime.resources, two_launches()
        replay, memory = waiting_replay(device)
        with replay:
            other = device.instantiate(graph.compile(), buffers(device, graph))
            before = len(device_memory(device).allocations)
            replay.submit()
            device.buffer(64).close()
            other.close()
            assert resources.quarantined > 4
            release(device, memory)
            replay.wait(timeout=20)
            assert resources.quarantined == 0
            assert len(device_memory(device).allocations) < before
            device.buffer(64).close()
            assert resources.quarantined == 0


def test_a_batch_without_release_has_not_ended() -> None:
    """Its launches may still run when the host hears of it; the next one with a release ends both."""
    graph = two_launches()
    with rl.open("sim:gfx1201") as device:
        memory = buffers(device, graph)
        with device.instantiate(graph.compile(boundary="queue"), memory) as replay:
            replay.patch(a=1.0)
            for release_it in (False, True):
                replay.submit(release=release_it)
                replay.wait(timeout=20)
                device.buffer(64).close()
                assert device.runtime.resources.quarantined == (not release_it)


def test_a_queue_that_ends_while_memory_is_closed_is_not_missed() -> None:
    """Between the look at the live queues and the note that memory waits for them."""
    with _gated() as (gate, agent, calls):
        running = _Submitted(agent, gate)
        gate.open.set()
        running.signal.wait_below(1, 20, poll=running.queue.check)

        class Meanwhile(dict[int, frozenset[int]]):
            def setdefault(self, *args: Any) -> Any:
                running.queue.completed(running.last)
                return super().setdefault(*args)

        agent.runtime.resources._quarantined = Meanwhile()
        running.buffer.close()
        assert [name for name, _ in calls] == ["hsa_amd_memory_pool_free"]


def test_closing_in_many_threads_frees_everything_once() -> None:
    """Queues that are submitted to, end and close while others close memory: all is given back, nothing twice."""
    with _gated() as (gate, agent, calls):
        gate.open.set()
        home = agent.allocate(64, "fine")

        def work(seed: int) -> None:
            random = Random(seed)
            for _ in range(30):
                running = _Submitted(agent, gate)
                gate.target = home.address
                if random.random() < 0.7:
                    running.see_end()
                handles = [running.queue, running.buffer, running.ib, running.signal]
                random.shuffle(handles)
                for handle in handles:
                    handle.close()

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert (agent.runtime.resources.quarantined, len(agent.runtime.resources)) == (0, 1)
        assert len(calls) == 4 * 30 * 4


def test_opening_and_closing_is_flat_beside_an_idle_queue() -> None:
    """10^5 times in `tests/prove.py`; nothing is kept, neither in Python nor by the device."""
    assert flat_buffers(2000) == []


def flat_buffers(count: int) -> list[str]:
    """What grew over `count` opened and closed buffers, with a queue that is idle and one that ends."""
    with _gated() as (gate, agent, calls):
        gate.open.set()
        running = _Submitted(agent, gate)
        running.see_end()
        sim: Any = agent.runtime.hsa.table.device

        def measure(times: int) -> tuple[int, ...]:
            for _ in range(times):
                agent.allocate(64, "fine").close()
                agent.signal().close()
            calls.clear()
            gc.collect()
            return len(agent.runtime.resources), len(sim.memory.allocations), len(sim.signals._live)

        before = measure(100)
        tracemalloc.start()
        held = tracemalloc.get_traced_memory()[0]
        after = measure(count)
        grown = tracemalloc.get_traced_memory()[0] - held
        tracemalloc.stop()
    wrong = [] if after == before else [f"resources, allocations, signals: {before}, then {after}"]
    return wrong + ([] if grown < 20_000 else [f"{grown} bytes more"])
