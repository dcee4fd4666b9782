# SPDX-License-Identifier: Apache-2.0
"""StalePlan: what a replay has addresses of was closed beneath it, by handles that know no replays.

Without it the replay of the first test writes into a stranger's memory. What `DeviceBuffer.close` refuses itself is
`test_replay_lives.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline import hsa
from redline.freshness import check_fresh
from redline.hsa.handle import Rank, Resources
from tests.devices import Memories, buffers, expect, release, two_launches, waiting_replay

X = np.arange(256, dtype=np.float32)


def _over(device: rl.Device) -> tuple[rl.Replay, Memories, hsa.Buffer]:
    """A replay that has run once, and the handle below the memory of z."""
    graph = two_launches()
    memory, below = buffers(device, graph), device.agent.allocate(1024)
    memory["z"] = rl.DeviceBuffer(below, device)
    replay = device.instantiate(graph.compile(), memory)
    replay.patch(a=1.0)
    replay.run()
    return replay, memory, below


def test_a_replay_does_not_write_where_its_memory_was(device: rl.Device) -> None:
    """Somebody else has the address by then. Binding other memory mends it."""
    replay, _, below = _over(device)
    below.close()
    stranger = device.buffer(1024)
    assert stranger.address == below.address, "the case that this test is about"
    stranger.write(bytes(1024))
    with pytest.raises(rl.StalePlan, match="RL0802 Replay.submit: .* the memory of buffer 'z'; .* replay.bind"):
        replay.run()
    assert not stranger.read().any()
    with pytest.raises(rl.BindingError, match="RL0711 binding 'z': closed memory"):
        replay.bind({})
    with pytest.raises(rl.StalePlan, match="RL0802"):
        replay.submit()
    with stranger, device.buffer(1024) as other:
        replay.bind({"z": other})
        replay.run()
        assert np.array_equal(other.read("f4"), expect(2.0, X, X) - X + X)
        replay.close()


def test_every_use_of_what_was_closed_is_refused(device: rl.Device) -> None:
    """Patches and proofs too, for they touch memory in place; and again, for nothing mends a replay's own."""
    replay, _, below = _over(device)
    arena = next(handle for name, handle in replay.placed.parts if name == "the kernel arguments")
    arena.close()
    below.close()
    uses: dict[str, Callable[[], Any]] = {
        "patch": lambda: replay.patch(a=2.0),
        "bind": lambda: replay.bind({}),
        "submit": replay.submit,
        "spans": replay.spans,
        "route_proof": replay.route_proof,
    }
    for _ in range(2):
        for what, use in uses.items():
            with pytest.raises(rl.StalePlan, match=f"RL0801 Replay.{what}: .* the kernel arguments; .* instantiate"):
                use()
    replay.close()


def test_each_part_of_a_replay_is_named(device: rl.Device) -> None:
    """Everything that it owns but its queues, which fail by themselves."""
    for at in range(len(_over(device)[0].placed.parts)):
        replay, _, _ = _over(device)
        name, handle = replay.placed.parts[at]
        handle.close()
        with pytest.raises(rl.StalePlan) as raised:
            replay.submit()
        assert (raised.value.code, raised.value.where) == ("RL0801", "Replay.submit")
        assert raised.value.seen == f"closed since the plan was given its addresses: {name}"
        replay.close()
    names = {name for name, _ in replay.placed.parts}
    wanted = {"internal buffer 't'", "the kernel arguments", "the words", "signal 0"}
    assert names == wanted | {"the code of kernel 'saxpy'", "the code of kernel 'copy'"}


def test_what_was_closed_in_flight_stays_until_the_end(device: rl.Device) -> None:
    """The replay ends on the memory that it started on; the next one does not start."""
    replay, memory = waiting_replay(device)
    replay.submit()
    below: hsa.Buffer = memory["z"]._memory
    below.close()
    assert device.runtime.resources.quarantined == 1
    release(device, memory)
    replay.wait()
    assert device.runtime.resources.quarantined == 0
    with pytest.raises(rl.StalePlan, match="RL0802"):
        replay.submit()
    replay.close()


def test_a_submit_looks_again_only_when_something_was_closed(
    device: rl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One comparison of two ints otherwise. Memory of no replay, of others, and a new binding are no reason to stop."""
    replay, memory, _ = _over(device)
    looks: list[str] = []

    def look(what: str, placed: Any, bound: Any) -> None:
        looks.extend([what] if placed is replay.placed else [])
        check_fresh(what, placed, bound)

    monkeypatch.setattr("redline.replay.check_fresh", look)
    for _ in range(3):
        replay.patch(a=1.0)
        replay.run()
    assert looks == []
    device.buffer(64).close()
    _over(device)[0].close()
    for _ in range(3):
        replay.run()
    assert looks == ["submit"]
    with device.buffer(1024) as other:
        replay.bind({"z": other})
        replay.run()
        replay.bind({"z": memory["z"]})
    replay.run()
    assert looks == ["submit", "submit"]
    replay.close()


class _Calls:
    """An HSA table whose releases fail when told to."""

    def __init__(self) -> None:
        self.fails = False

    def check(self, name: str, *_: object) -> None:
        if self.fails:
            raise rl.HsaError("RL0902", where=name, seen="refused", allowed="success", do="nothing")


def test_generations_are_never_the_same_twice() -> None:
    """Every close of anything but a queue has one, quarantined or refused; a second close of the same has none."""
    calls = _Calls()
    resources = Resources(calls)  # type: ignore[arg-type]
    seen = [resources.generation]
    queue = resources.add(Rank.QUEUE, "queue", 0)
    for rank in (Rank.MEMORY, Rank.CODE, Rank.SIGNAL):
        for live in (False, True):
            if live:
                resources.live(queue)
            number = resources.add(rank, "release", 0)
            resources.release(number)
            seen.append(resources.generation)
    resources.release(queue)
    resources.release(number)
    assert resources.generation == seen[-1]
    assert len(set(seen)) == len(seen) == 7
    calls.fails = True
    with pytest.raises(rl.HsaError):
        resources.release(resources.add(Rank.MEMORY, "release", 0))
    assert resources.generation not in seen


def test_memory_that_was_not_given_back_is_not_stale(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close that failed leaves the handle open, and its address good."""
    replay, _, below = _over(device)
    with monkeypatch.context() as patched:
        patched.setattr(type(device.runtime.resources), "_release_now", _refuse)
        with pytest.raises(rl.HsaError, match="refused"):
            below.close()
    replay.run()
    replay.close()


def _refuse(*_: object) -> None:
    raise rl.HsaError("RL0902", where="hsa_amd_memory_pool_free", seen="refused", allowed="success", do="nothing")
