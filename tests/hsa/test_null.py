# SPDX-License-Identifier: Apache-2.0
"""The null engine as a device: replays go through it and nothing is computed. Runs where code is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import redline as rl
from redline.errors import HsaError
from redline.hsa import Runtime
from redline.hsa.prototypes import PROTOTYPES
from tests.devices import buffers, two_launches


@pytest.fixture(name="null", scope="module")
def _null() -> Iterator[rl.Device]:
    with rl.open("null:gfx1201") as opened:
        yield opened


@pytest.mark.parametrize("form", ["pm4", "aql"])
def test_replays_end_and_compute_nothing(null: rl.Device, form: str) -> None:
    """Patch, submit and wait as on any device, more packets than the ring has slots; memory stays as it was."""
    graph = two_launches()
    memory = buffers(null, graph)
    before = memory["z"].read()
    plan = graph.compile(form=form)
    with null.instantiate(plan, memory) as replay:
        for token in range(100):
            replay.patch(a=float(token))
            replay.run(timeout=1.0)
        queue = replay._queues[0]
        assert queue.read_index == queue.write_index == 100 * len(replay._batches[False, True][0])
        assert replay.placed.final.load() == 0
    assert np.array_equal(memory["z"].read(), before)
    for item in memory.values():
        item.close()


def test_lanes_end_together(null: rl.Device) -> None:
    """Four lanes that wait for one another: every signal is completed once, whatever it waits for."""
    graph = two_launches()
    plan = graph.compile(form="aql", queues=2)
    memory = buffers(null, graph)
    with null.instantiate(plan, memory) as replay:
        replay.patch(a=1.0)
        replay.run(timeout=1.0)
        assert [signal.load() for signal in replay.placed.signals] == [0] * len(replay.placed.signals)
    for item in memory.values():
        item.close()


def test_a_wait_for_what_never_comes_still_ends(null: rl.Device) -> None:
    """A signal that no packet completes: the wait's own deadline."""
    with null.agent.signal(1) as signal, pytest.raises(rl.ReplayTimeout, match="RL1101"):
        signal.wait_below(1, 0.01)


def test_the_table_is_whole_and_refuses_what_it_has_not() -> None:
    """Every call has an address; queue options and times are refused; sizes and targets as on the software device."""
    with Runtime.null("gfx1100") as runtime:
        assert (runtime.hsa.table.kind, set(runtime.hsa.table.addresses)) == ("null", set(PROTOTYPES))
        agent = runtime.agents()[0]
        assert agent.target == "gfx1100"
        with pytest.raises(HsaError, match="NOT_SUPPORTED"):
            agent.queue(priority="high")
        with agent.queue() as queue, pytest.raises(HsaError, match="NOT_SUPPORTED"):
            queue.profile()
        with pytest.raises(HsaError, match="RL0910"):
            agent.queue(48)
    with pytest.raises(rl.UnsupportedTarget):
        rl.open("null:gfx1250")


def test_without_a_compiler_it_says_so() -> None:
    """NUMBA_DISABLE_JIT=1 has no C functions to offer."""
    script = "import redline as rl\ntry: rl.open('null:gfx1201')\nexcept rl.HsaError as e: print(e.code, e.seen)"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "RL0915 NUMBA_DISABLE_JIT=1: no compiled code\n"
