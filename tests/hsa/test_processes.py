# SPDX-License-Identifier: Apache-2.0
"""A device when its process ends or forks, each case in an interpreter of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.devices import wait_until


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
        "from tests.devices import child_processes\n"
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


#: A replay in flight that ends only when `release()` is called; `memory["y"]` is what ends up in `memory["z"]`.
IN_FLIGHT = """
import os, signal, sys, threading, time
import redline as rl
from tests import devices
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
device = rl.open('sim:gfx1201')
replay, memory = devices.waiting_replay(device)
release = lambda: devices.release(device, memory)
replay.submit()
"""


def test_a_forked_child_leaves_a_replay_in_flight_to_its_parent() -> None:
    """Every use is refused, though other threads of the parent held a lock and waited; the parent's wait goes on."""
    done = run_python(
        IN_FLIGHT + "from redline import flight\n"
        "waiter = threading.Thread(target=replay.wait)\n"
        "waiter.start()\n"
        "held = threading.Thread(target=lambda: flight._lock.acquire() and time.sleep(0.5) or flight._lock.release())\n"
        "held.start()\n"
        "time.sleep(0.1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    uses = [replay.submit, replay.wait, replay.patch, replay.run, replay.cancel, lambda: replay.bind({})]\n"
        "    for use in uses:\n"
        "        try:\n"
        "            use()\n"
        "        except rl.HsaError as error:\n"
        "            print(error.code, end=' ')\n"
        "    replay.close()\n"
        "    sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
        "release()\n"
        "waiter.join()\n"
        "assert (memory['z'].read() == memory['y'].read()).all()\n"
        "replay.run(timeout=20)\n"
        "print('parent')\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "RL0913 " * 6 + "7\nparent\n"


def test_ctrl_c_leaves_a_replay_in_flight_and_another_wait_sees_its_end() -> None:
    """SIGINT at the process, as a terminal sends it, once in the wait's spin and then where it blocks."""
    done = run_python(
        IN_FLIGHT + "for pause in (0.0, 0.0, 0.05, 0.2):\n"
        "    try:\n"
        "        threading.Timer(pause, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "        replay.wait(timeout=60)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', end=' ')\n"
        "release()\n"
        "replay.wait(timeout=60)\n"
        "assert (memory['z'].read() == memory['y'].read()).all()\n"
        "replay.run(timeout=60)\n"
        "replay.close()\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "interrupted " * 4)


def test_an_interrupt_that_nobody_catches_ends_the_process_at_once() -> None:
    """As Python programs end on Ctrl-C, by the signal, with the replay in flight and the memory on the way out."""
    done = run_python(
        IN_FLIGHT + "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "with device, replay:\n"
        "    replay.wait(timeout=3000)\n"
    )
    assert done.returncode == -signal.SIGINT
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "During handling" not in done.stderr


def test_the_interpreter_ends_while_a_daemon_thread_waits() -> None:
    """At once, with code 0: the device is closed at exit, which ends the wait."""
    done = run_python(
        IN_FLIGHT + "def wait():\n"
        "    try:\n"
        "        replay.wait(timeout=3000)\n"
        "    except rl.RedlineError:\n"
        "        pass\n"
        "threading.Thread(target=wait, daemon=True).start()\n"
        "time.sleep(0.1)\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


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
