# SPDX-License-Identifier: Apache-2.0
"""How resources end: in order, once, with or without `close`. `test_processes.py` has the ends of whole processes.

Orders are read from recorded calls into the runtime, ends from threads, processes and memory that are gone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline import kernels
from redline.errors import HsaError, QueueFailed
from redline.hsa import Agent, Runtime
from redline.hsa.lib import Hsa
from redline.sim.dispatch import Dispatch
from redline.sim.errors import MemoryFault
from redline.sim.memory import Memory
from redline.sim.runtime import SimRuntime
from tests.devices import buffers, child_processes, two_launches, wait_until
from tests.hsa.fakes import fake_agent, recording, table_with
from tests.sim.streams import PAD, Remembering, device, ib_packet, launch

ENDS = ["hsa_queue_destroy", "hsa_executable_destroy", "hsa_code_object_reader_destroy", "hsa_signal_destroy"]
ENDS += ["hsa_amd_memory_pool_free", "hsa_shut_down"]


@contextmanager
def recorded(backend: Remembering | None = None, **replaced: Callable[..., Any]) -> Iterator[tuple[list[str], Agent]]:
    """Names of the calls that end something, and an agent whose runtime the test closes."""
    sim = SimRuntime("gfx1201", backend or Remembering())
    calls: list[tuple[str, tuple[Any, ...]]] = []
    names: list[str] = []
    table = table_with(sim.table, {**recording(calls, ENDS, sim), **replaced})
    runtime = Runtime.of_table(table)
    yield names, runtime.agents()[0]
    names += [name for name, _ in calls]
    runtime.close()


def make_one_of_each(agent: Agent) -> list[Any]:
    """Memory first, queue last: as far from the order of their end as can be."""
    buffer, signal = agent.allocate(64, "fine"), agent.signal(1)
    code = agent.load(kernels.build("copy", "gfx1201"))
    return [buffer, signal, code, agent.queue()]


def test_a_runtime_ends_queues_first_and_memory_last() -> None:
    """Whatever is still open; then it shuts down, and the handles' own close has nothing left to do."""
    with recorded() as (names, agent):
        handles = make_one_of_each(agent)
        agent.runtime.close()
        for handle in handles:
            handle.close()
    assert names == ENDS


def test_handles_that_were_dropped_end_with_their_runtime_and_not_before() -> None:
    """The collector would free memory under a running kernel; an error callback must live as long as its queue."""
    with recorded() as (names, agent):
        make_one_of_each(agent)
        gc.collect()
        assert len(agent.runtime.resources) == 5
        agent.runtime.close()
    assert names == ENDS


def test_memory_stays_while_a_queue_does_not_end() -> None:
    """Its kernel may still write there: the error is raised, nothing is freed, and the other queue still ends."""
    refused: list[int] = []

    def refuse(queue: int) -> int:
        refused.append(queue)
        return 0x1000

    with recorded(hsa_queue_destroy=refuse) as (names, agent):
        handles = [*make_one_of_each(agent), agent.queue()]
        with pytest.raises(HsaError, match="RL0902 hsa_queue_destroy: HSA_STATUS_ERROR"):
            agent.runtime.close()
        assert len(refused) == 2
        assert [handle.close() for handle in handles] == [None] * 5
    assert names == ["hsa_shut_down"]


def test_a_replay_destroys_its_queue_before_it_frees_memory() -> None:
    """Also one in flight: no kernel of it may run on freed memory."""
    calls: list[tuple[str, tuple[Any, ...]]] = []
    sim = SimRuntime("gfx1201")
    runtime = Runtime.of_table(table_with(sim.table, recording(calls, ENDS, sim)))
    graph = two_launches()
    with rl.Device(runtime, runtime.agents()[0], "sim:gfx1201") as opened:
        replay = opened.instantiate(graph.compile(), buffers(opened, graph))
        replay.patch(a=2.0)
        replay.submit()
        calls.clear()
        replay.close()
        names = [name for name, _ in calls]
        assert names[0] == "hsa_queue_destroy"
        assert names.count("hsa_queue_destroy") == 1
        assert names.count("hsa_amd_memory_pool_free") >= 3
        assert "hsa_shut_down" not in names


def has_ended(thread: str) -> bool:
    """Whether no thread has this name."""
    return thread not in [running.name for running in threading.enumerate()]


def test_a_device_that_is_dropped_takes_its_threads_and_its_disassembler_along() -> None:
    """Nobody closed it: no thread, no process, no arena stays behind."""
    threads, processes = set(threading.enumerate()), child_processes()
    runtime = Runtime.sim("gfx1201")
    agent = runtime.agents()[0]
    queue, buffer = agent.queue(), agent.allocate(4096, "fine")
    assert child_processes() > processes
    assert set(threading.enumerate()) > threads
    del runtime, agent, queue, buffer
    gc.collect()
    assert wait_until(lambda: child_processes() == processes)
    assert wait_until(lambda: set(threading.enumerate()) <= threads)


def test_a_device_that_is_dropped_with_a_kernel_in_flight_ends_too() -> None:
    """The kernel is cancelled; its queue fails nobody, for nobody is left."""
    ended = threading.Event()

    def hang(_d: Dispatch, _m: Memory, cancelled: threading.Event) -> None:
        cancelled.wait(20)
        ended.set()

    def start() -> None:
        runtime = Runtime.of_table(SimRuntime("gfx1201", Remembering(hang)).table)
        agent = runtime.agents()[0]
        ib = agent.allocate(4096, "kernarg", executable=True)
        ib.write(np.array(launch(), np.uint32))
        agent.queue().submit(ib_packet(ib.address, len(launch())))
        time.sleep(0.02)

    start()
    gc.collect()
    assert ended.wait(10)


def test_ten_thousand_submits_leave_nothing_behind() -> None:
    """Objects, allocations, threads, open files and traced memory after 10,000 more than after the first 5,000."""
    with (
        device() as (sim, agent),
        agent.allocate(4096, "kernarg", executable=True) as ib,
        agent.signal(15000) as signal,
        agent.queue(64) as queue,
    ):
        ib.write(np.array(PAD, np.uint32))
        packet = ib_packet(ib.address, 1, signal.handle)

        def submit(count: int, left: int) -> tuple[int, ...]:
            for _ in range(count):
                queue.submit(packet, timeout_s=30, describe=str)
            signal.wait_below(left + 1, 60, poll=queue.check)
            gc.collect()
            files = len(os.listdir("/proc/self/fd"))
            return len(gc.get_objects()), len(sim.memory.allocations), threading.active_count(), files

        before = submit(5000, 10000)
        tracemalloc.start()
        held = tracemalloc.get_traced_memory()[0]
        after = submit(10000, 0)
        grown = tracemalloc.get_traced_memory()[0] - held
        tracemalloc.stop()
    assert after[1:] == before[1:]
    assert after[0] - before[0] < 500
    # The trace of the last 4,096 packets was filled before tracing began and is traced now: about 300 bytes each.
    assert grown < 4096 * 600


def test_a_queue_may_be_closed_on_its_own_thread_with_its_memory() -> None:
    """The collector runs there too, and ends a dropped replay under its kernel: the kernel's next access is a fault
    that nobody is told of, for the callback is gone; the thread ends, and the next queue works."""
    owned: list[Any] = []

    def close_everything(dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        if dispatch.dims[0] != 4:
            return
        address = owned[1].address
        for handle in owned:
            handle.close()
        gc.collect()
        memory.u32_at(address)

    with device(backend=Remembering(close_everything)) as (sim, agent):
        for groups in (4, 5):
            queue, ib = agent.queue(), agent.allocate(4096, "kernarg", executable=True)
            owned[:] = [queue, ib]
            words = launch(groups=groups)
            ib.write(np.array(words, np.uint32))
            with agent.signal(1) as signal:
                queue.submit(ib_packet(ib.address, len(words), signal.handle))
                if groups == 5:
                    signal.wait_below(1, 10, poll=queue.check)
                else:
                    assert wait_until(partial(has_ended, f"redline-sim-queue-{queue.id}"))
        assert wait_until(lambda: len(sim.queues) == 1)
        assert sim.errors == []
        queue.close()


# Errors in callbacks


def test_an_error_callback_that_fails_poisons_its_queue() -> None:
    """The device stopped the queue and reporting failed: the queue must not look healthy. The cause is kept."""

    def fault(_d: Dispatch, _m: Memory, _c: threading.Event) -> None:
        raise MemoryFault(0xBAD0, 4, "write")

    with device(backend=Remembering(fault)) as (_, agent):
        runtime = agent.runtime
        with agent.queue() as queue, agent.allocate(4096, "kernarg", executable=True) as ib, agent.signal(1) as signal:
            runtime.hsa = _Raising(runtime.hsa, "hsa_queue_load_read_index_scacquire")
            ib.write(np.array(launch(), np.uint32))
            queue.submit(ib_packet(ib.address, len(launch()), signal.handle))
            with pytest.raises(QueueFailed, match=r"packet unknown: HSA_STATUS_ERROR .*callback failed: KeyError") as e:
                signal.wait_below(1, 10, poll=queue.check)
            assert isinstance(e.value.__cause__, KeyError)
            with pytest.raises(QueueFailed):
                queue.submit(ib_packet(ib.address, len(launch())))


class _Raising(Hsa):
    """Calls of one name raise on the device's thread."""

    def __init__(self, hsa: Hsa, name: str) -> None:
        super().__init__(hsa.table)
        self._name = name

    def call(self, name: str, *args: Any) -> Any:
        if name == self._name and threading.current_thread().name.startswith("redline-sim-queue"):
            raise KeyError(name)
        return super().call(name, *args)


def test_a_listener_that_is_refused_is_known() -> None:
    """Another library of the process may listen already; `redline doctor` says so."""
    name = "hsa_amd_register_system_event_handler"
    with fake_agent({name: lambda *_: 0x1000}) as agent:
        assert not agent.runtime.listens
    with device() as (_, agent):
        assert agent.runtime.listens


def test_what_fails_while_a_runtime_iterates_is_raised_with_its_cause() -> None:
    """A status of the call itself, and an error inside our callback, which the runtime never hears of."""
    name = "hsa_iterate_agents"
    prototype = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    with device() as (_, agent):
        table = agent.runtime.hsa.table
        refusing = Hsa(table_with(table, {name: lambda *_: 0x1008}))
        with pytest.raises(HsaError, match=rf"RL0902 {name}: HSA_STATUS_ERROR_OUT_OF_RESOURCES .*close queues") as e:
            refusing.visited(name, prototype)
        assert e.value.__cause__ is None
        # A null where a handle is due: `int` of it fails inside the callback.
        visiting = Hsa(table_with(table, {name: lambda callback, _data: prototype(callback)(None, None) & 0}))
        with pytest.raises(HsaError, match=rf"RL0902 {name}") as e:
            visiting.visited(name, prototype)
        assert isinstance(e.value.__cause__, TypeError)
