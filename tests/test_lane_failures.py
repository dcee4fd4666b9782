# SPDX-License-Identifier: Apache-2.0
"""One lane fails while another runs: the other ends before anybody may touch the memory that it uses."""

from __future__ import annotations

from typing import Any

import pytest

import redline as rl
from redline.hsa import Runtime
from redline.hsa.lib import Hsa
from redline.sim.runtime import SimRuntime
from tests.devices import Memories, buffers, device_memory, module, spin
from tests.hsa.fakes import table_with

LANES: list[dict[str, Any]] = [{}, {"phased": True}, {"form": "aql"}]


def _half_broken(device: rl.Device, options: dict[str, Any]) -> tuple[rl.Replay, Memories]:
    """A lane that waits for ever, and one whose code is no code."""
    graph = rl.Graph()
    flag, x = graph.buffer("flag", 256, role="in"), graph.buffer("x", 256, role="in")
    z = graph.buffer("z", 256, role="out")
    graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(z), rl.read(x), 64])
    memory = buffers(device, graph)
    memory["flag"].write(bytes(256))
    replay = device.instantiate(graph.compile(queues=[0, 1], **options), memory)
    device_memory(device).store(int(replay.placed.entries[1]), b"\xff" * 4)
    return replay, memory


@pytest.mark.parametrize("options", LANES)
def test_a_failed_lane_ends_the_others(device: rl.Device, options: dict[str, Any]) -> None:
    """The kernel that still waits would read what the host writes next, and memory that it frees."""
    replay, memory = _half_broken(device, options)
    with replay:
        for _ in range(2):
            with pytest.raises(rl.QueueFailed, match=r"RL1001 .*#1 copy\)"):
                replay.run(timeout=20)
        assert all(queue.closed for queue in replay._queues)
        memory["flag"].write(bytes(256))
        replay.cancel()
        with pytest.raises(rl.QueueFailed, match="RL1001"):
            replay.patch()
    for held in memory.values():
        held.close()


def test_a_lane_that_cannot_be_ended_keeps_the_replay_in_flight() -> None:
    """As after a cancel: the host keeps out until `close` has ended it."""
    sim = SimRuntime("gfx1201")
    beneath, refusals = Hsa(sim.table), [0x1000] * 5

    def destroy(queue: int) -> int:
        return refusals.pop() if refusals else int(beneath.call("hsa_queue_destroy", queue))

    runtime = Runtime.of_table(table_with(sim.table, {"hsa_queue_destroy": destroy}))
    with rl.Device(runtime, runtime.agents()[0], "sim:gfx1201") as device:
        replay, memory = _half_broken(device, {})
        replay.submit()
        with pytest.raises(rl.QueueFailed, match="RL1001"):
            replay.wait(timeout=20)
        with pytest.raises(rl.ReplayBusy, match="RL1402"):
            memory["flag"].read()
        with pytest.raises(rl.HsaError, match="RL0902 hsa_queue_destroy"):
            replay.close()
        replay.close()
        memory["flag"].read()
