# SPDX-License-Identifier: Apache-2.0
"""What is set on a replay reaches the next launch, in every form, and changes nothing else; no old address stays."""

from __future__ import annotations

import numpy as np
import pytest
from redline_fuzz.lane_judge import unsafe

import redline as rl
from redline.aql_lanes import AGENT, NONE, derive_aql
from redline.encoders.aql import HEADER
from redline.lanes import chains
from tests.devices import buffers
from tests.graphs import Node, build
from tests.test_replay_forms import COUNT, FORMS, expected, mixed


def _state(replay: rl.Replay) -> tuple[bytes, bytes, bytes]:
    """Words, packets and arguments as the device would read them now."""
    packets = [
        batch.tobytes() for release in (False, True) for batch in replay.placed.batches(warm=False, release=release)
    ]
    return replay.placed.words.tobytes(), b"".join(packets), replay.placed.kernarg.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_a_patch_changes_its_bytes_and_no_other(form: str, device: rl.Device) -> None:
    """Case 20: each use of the slot has the new value; words, packets and every other argument stand."""
    graph = mixed()
    with device.instantiate(graph.compile(**FORMS[form]), buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        before = _state(replay)
        replay.patch(a=-2.5)
        after = _state(replay)
        assert after[:2] == before[:2]
        points = replay.program.patches
        image = bytearray(before[2])
        for point in points:
            image[point["offset"] : point["offset"] + point["size"]] = np.float32(-2.5).tobytes()
        assert len(points) == 6
        assert bytes(image) == after[2]


@pytest.mark.parametrize("form", FORMS)
def test_a_new_binding_leaves_no_old_address(form: str, device: rl.Device) -> None:
    """Case 20: neither in arguments nor in words or packets; and the next replay computes with the new memory."""
    graph = mixed()
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(**FORMS[form]), memory) as replay:
        replay.patch(a=1.0)
        replay.run()
        fresh = device.buffer(4 * COUNT)
        fresh.write(np.arange(COUNT, dtype=np.float32))
        old = np.uint64(memory["y0"].address).tobytes()
        assert old in _state(replay)[2]
        replay.bind({"y0": fresh})
        state = _state(replay)
        assert all(old not in part for part in state)
        assert np.uint64(fresh.address).tobytes() in state[2]
        memory["y1"].write(np.arange(COUNT, dtype=np.float32))
        replay.run()
        assert np.array_equal(fresh.read("f4"), expected([1.0])[0])


def test_producers_release_and_consumers_acquire() -> None:
    """Case 39: three writers, three readers of all: the writers release and the first reader acquires, at their own
    packets; a barrier packet with fences of its own is not relied upon, and lanes without scopes are found unsafe.
    """
    items = [Node(writes=((0, at, at + 1),)) for at in range(3)]
    items += [Node(reads=((0, 0, 3),), writes=((1, at, at + 1),)) for at in range(3)]
    plan = build(items, role="internal").compile(form="aql")
    fields = [HEADER.unpack(int(word) & 0xFFFF) for word in plan.program.packets["words"][:, 0]]
    assert [row["RELEASE"] for row in fields[:3]] == [AGENT] * 3
    assert [row["ACQUIRE"] for row in fields[3:6]] == [AGENT, NONE, NONE]
    assert [row["BARRIER"] for row in fields[3:6]] == [1, 0, 0]
    (lane,) = derive_aql(plan, chains(plan, 1))
    bare = (tuple(row if at != 3 else type(row)(row.launch, barrier=True) for at, row in enumerate(lane)),)
    assert unsafe(plan, (lane,)) == []
    assert len(unsafe(plan, bare)) == 9
    assert all("not visible" in text for text in unsafe(plan, bare))
