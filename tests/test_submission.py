# SPDX-License-Identifier: Apache-2.0
"""What one submit and one wait ask of the runtime, call by call: nothing that can fail behind the reservation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline.hsa import Runtime
from redline.hsa.prototypes import PROTOTYPES
from redline.sim.runtime import SimRuntime
from tests.devices import buffers, module, two_launches
from tests.hsa.fakes import recording, table_with
from tests.test_replay_forms import mixed

Calls = list[tuple[str, tuple[Any, ...]]]
RESERVE = "hsa_queue_add_write_index_scacq_screl"


@contextmanager
def _recorded(**replaced: Any) -> Iterator[tuple[rl.Device, Calls]]:
    """A device, and every call that reaches its runtime."""
    sim, calls = SimRuntime("gfx1201"), Calls()
    functions = recording(calls, list(PROTOTYPES), sim)
    for name, wrap in replaced.items():
        functions[name] = wrap(functions[name])
    runtime = Runtime.of_table(table_with(sim.table, functions))
    with rl.Device(runtime, runtime.agents()[0], "sim:gfx1201") as device:
        yield device, calls


def test_nothing_that_can_fail_comes_behind_the_reservation() -> None:
    """Case 37: slots are reserved last; then the packet is written and the doorbell rung, with its index."""
    graph = two_launches()
    with _recorded() as (device, calls), device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        for index in range(3):
            calls.clear()
            replay.submit()
            names = [name for name, _ in calls]
            assert names.count(RESERVE) == 1
            assert names[names.index(RESERVE) + 1 :] == ["hsa_signal_store_screlease"]
            assert calls[-1][1] == (replay._queues[0].doorbell, index)
            before = names[: names.index(RESERVE)]
            assert set(before) == {
                "hsa_signal_store_screlease",
                "hsa_queue_load_write_index_relaxed",
                "hsa_queue_load_read_index_scacquire",
            }
            replay.wait(timeout=20)


def test_all_packets_are_published_before_the_first_doorbell() -> None:
    """A lane that started early would not be wrong, but a full ring on another would leave half a replay."""
    graph = mixed()
    with _recorded() as (device, calls):
        plan = graph.compile(queues=2)
        with device.instantiate(plan, buffers(device, graph)) as replay:
            replay.patch(a=1.0)
            calls.clear()
            replay.submit()
            names = [name for name, _ in calls]
            replay.wait(timeout=20)
    reserved = [at for at, name in enumerate(names) if name == RESERVE]
    assert len(reserved) == 2
    assert names[reserved[-1] + 1 :] == ["hsa_signal_store_screlease"] * 2
    asked = [at for at, name in enumerate(names) if name == "hsa_queue_load_read_index_scacquire"]
    assert max(asked) < min(reserved), "room on all queues before a slot of any"


def test_a_refused_submit_reserves_nothing() -> None:
    """Case 37: a slot without a value, a replay in flight, memory that another replay uses: the write index stays."""
    graph = two_launches()
    with _recorded() as (device, calls):
        memory = buffers(device, graph)
        plan = graph.compile()
        with device.instantiate(plan, memory) as one, device.instantiate(plan, memory) as two:
            with pytest.raises(rl.NotRecorded, match="RL1202"):
                one.submit()
            one.patch(a=1.0)
            two.patch(a=1.0)
            one.submit()
            for refused in (one, two):
                with pytest.raises(rl.ReplayBusy):
                    refused.submit()
            assert [name for name, _ in calls].count(RESERVE) == 1
            assert [one._queues[0].write_index, two._queues[0].write_index] == [1, 0]
            one.wait(timeout=20)


@pytest.mark.parametrize("failing", range(3))
def test_an_allocation_that_fails_comes_before_any_queue(failing: int) -> None:
    """Case 37: kernargs, words and internal memory are there before a queue is: no slot is lost to what fails."""
    graph = two_launches()
    left = [1 << 30]

    def allocate(function: Any) -> Any:
        def limited(*args: Any) -> int:
            left[0] -= 1
            return 0x1008 if left[0] < 0 else int(function(*args))

        return limited

    with _recorded(hsa_amd_memory_pool_allocate=allocate) as (device, calls):
        memory, plan = buffers(device, graph), graph.compile()
        with device.instantiate(plan, memory) as sound:
            sound.patch(a=1.0)
            sound.run(timeout=20)
            calls.clear()
            left[0] = failing
            with pytest.raises(rl.HsaError, match="RL0902 hsa_amd_memory_pool_allocate: .*OUT_OF_RESOURCES"):
                device.instantiate(plan, memory)
            left[0] = 1 << 30
            names = [name for name, _ in calls]
            assert not {RESERVE, "hsa_queue_create"} & set(names)
            assert names.count("hsa_amd_memory_pool_free") == failing
            assert sound._queues[0].write_index == 1
            sound.run(timeout=20)


def test_any_number_of_replays_needs_one_signal() -> None:
    """Case 41: signals, memory and queues are made at instantiate; replays, patches and waits make none."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 256, role="in"), graph.buffer("y", 256, role="out")
    graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(y), rl.read(x), rl.slot("n", "u4")])
    with _recorded() as (device, calls):
        memory = buffers(device, graph)
        with device.instantiate(graph.compile(), memory) as replay:
            names = [name for name, _ in calls]
            assert [names.count(name) for name in ("hsa_signal_create", "hsa_queue_create")] == [1, 1]
            calls.clear()
            for count in range(1000):
                replay.patch(n=count % 65)
                replay.run(timeout=20)
            made = {name for name, _ in calls if "create" in name or "allocate" in name or "destroy" in name}
            assert made == set()
        assert np.array_equal(memory["y"].read("f4"), memory["x"].read("f4"))
