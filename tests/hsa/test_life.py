# SPDX-License-Identifier: Apache-2.0
"""How resources end: in order, once, with or without `close`, at the interpreter's end and in a forked child.

Orders are read from recorded calls into the runtime, ends from threads, processes and memory that are gone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
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
from tests.devices import buffers, two_launches
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


def wait_until(done: Callable[[], bool]) -> bool:
    """Whether `done()` came true within ten seconds."""
    deadline = time.monotonic() + 10
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def has_ended(thread: str) -> bool:
    """Whether no thread has this name."""
    return thread not in [running.name for running in threading.enumerate()]


def child_processes() -> set[int]:
    """Processes whose parent is this one."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        if int(status.rsplit(")", 1)[1].split()[1]) == os.getpid():
            found.add(int(name))
    return found


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


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    """The script in an interpreter of its own, which must end by itself."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


# Whether weakref's own hook is registered before ours decides which of the two runs first at exit.
HOOKS = ["", "import weakref, fractions\nweakref.finalize(fractions.Fraction, int)\n"]


@pytest.mark.parametrize("hooks", HOOKS)
def test_the_interpreter_ends_with_a_device_open_and_a_kernel_that_never_does(hooks: str) -> None:
    """At once, without a word, and the disassembler's process is gone; whoever is asked first to clean up."""
    done = run_python(
        hooks + "import time\n"
        "import redline as rl\n"
        "from tests.devices import spin\n"
        "from tests.hsa.test_life import child_processes\n"
        "device = rl.open('sim:gfx1201')\n"
        "graph = rl.Graph()\n"
        "flag = graph.buffer('flag', 4, role='inout')\n"
        "graph.launch(spin()['spin'], grid=1, block=32, args=[rl.update(flag)])\n"
        "memory = device.buffer(4)\n"
        "memory.write(bytes(4))\n"
        "replay = device.instantiate(graph.compile(), {flag: memory})\n"
        "replay.submit()\n"
        "time.sleep(0.2)\n"
        "print(*child_processes())\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    children = [int(number) for number in done.stdout.split()]
    assert children
    assert wait_until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children))


def test_a_forked_child_refuses_the_parents_device_and_does_not_hang() -> None:
    """Neither use nor close nor exit waits for threads that are not there, and the parent's device goes on."""
    done = run_python(
        "import os, sys\n"
        "import numpy as np\n"
        "import redline as rl\n"
        "from tests.devices import buffers, two_launches\n"
        "device = rl.open('sim:gfx1201')\n"
        "graph = two_launches()\n"
        "bound = buffers(device, graph)\n"
        "replay = device.instantiate(graph.compile(), bound)\n"
        "replay.run(timeout=60) if not replay.patch(a=1.0) else None\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for use in (replay.run, lambda: device.buffer(4), lambda: bound['x'].read()):\n"
        "        try:\n"
        "            use()\n"
        "        except rl.HsaError as error:\n"
        "            print(error.code, error.seen)\n"
        "    replay.close()\n"
        "    bound['x'].close()\n"
        "    device.close()\n"
        "    with rl.open('sim:gfx1030') as own:\n"
        "        memory = own.buffer(4)\n"
        "        memory.write(b'here')\n"
        "        print(memory.read().tobytes())\n"
        "    sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
        "before = bound['z'].read('f4')\n"
        "replay.run(timeout=60)\n"
        "assert (bound['z'].read('f4') != before).any()\n"
        "graph = two_launches(wave=64)\n"
        "with device.instantiate(graph.compile(), buffers(device, graph)) as other:\n"
        "    other.patch(a=1.0)\n"
        "    other.run(timeout=60)\n"
        "print('parent')\n"
    )
    refused = "RL0913 opened by the process that this one was forked from\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == 3 * refused + "b'here'\n7\nparent\n"


def test_the_real_runtime_belongs_to_the_process_that_opened_it() -> None:
    """hsa_init of a parent is of no use to its child: said at once, not by a hang in the driver."""
    done = run_python(
        "import os, sys\n"
        "from redline.hsa import Runtime, runtime\n"
        "from redline.sim.runtime import SimRuntime\n"
        "from tests.sim.streams import Remembering\n"
        "runtime.load_real_table = lambda: SimRuntime('gfx1201', Remembering()).table\n"
        "opened = Runtime.real()\n"
        "if os.fork() == 0:\n"
        "    for use in (Runtime.real, opened.agents):\n"
        "        try:\n"
        "            use()\n"
        "        except Exception as error:\n"
        "            print(error.code, error.do)\n"
        "    sys.exit(0)\n"
        "os.wait()\n"
        "print(len(opened.agents()))\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    spawn = "RL0913 start the process with the multiprocessing method spawn\n"
    assert done.stdout == spawn + "RL0913 open a device in this process\n1\n"


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
