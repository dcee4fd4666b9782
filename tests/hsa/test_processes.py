# SPDX-License-Identifier: Apache-2.0
"""A device when its process ends or forks, each case in an interpreter of its own."""

from __future__ import annotations

import os
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
