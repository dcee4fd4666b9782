# SPDX-License-Identifier: Apache-2.0
"""Faults of a device that took the work: errors in a batch, lost doorbells and signals, lost devices, noise in rings.

In every form of submission. `test_faults_in_calls.py` has calls that are refused, `test_replay_stops.py` cancel, close
and kernels that do not end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline.hsa.abi import Status
from redline.sim.dispatch import Dispatch
from tests.devices import Memories, module
from tests.faulty import Faulty, write_far_outside
from tests.sim.streams import ib_packet, launch
from tests.test_replay_forms import FORMS

LANES = 3
CHAIN = 2
BY_LEVEL = [0, 2, 4, 1, 3, 5]  # launches as one queue runs them
#: Forms whose lanes do not wait for one another within a replay: several replays are one submission.
BATCHED = ["one queue", "lanes", "aql"]


@pytest.fixture
def faulty() -> Iterator[tuple[Faulty, rl.Device]]:
    """A device that computes nothing and fails as told; nothing of the test's may be left at the end."""
    made = Faulty()
    with made.device() as device:
        before = made.holds()
        yield made, device
        assert len(device.runtime.resources) == 0
        assert made.holds() == before
    assert made.errors == made.sim.errors == []


def _graph() -> rl.Graph:
    """Chains of two launches. Launch n has n + 1 workgroups, so that a dispatch tells which it is."""
    graph = rl.Graph()
    copy = module("copy")["copy"]
    for lane in range(LANES):
        x, y, z = (graph.buffer(f"{name}{lane}", 1 << 16, role="out") for name in "xyz")
        for step, (into, out_of) in enumerate([(y, x), (z, y)]):
            at = CHAIN * lane + step
            args: list[Any] = [rl.write(into), rl.read(out_of), rl.slot("count", "u4", default=4)]
            graph.launch(copy, grid=at + 1, block=256, args=args, label=f"k{at}")
    return graph


def _memories(device: rl.Device, graph: rl.Graph) -> Memories:
    return {buffer.name: device.buffer(buffer.nbytes) for buffer in graph.buffers}


class _Opened:
    """A replay in a form, its memory, and everything that can be asked of it."""

    def __init__(self, device: rl.Device, form: str) -> None:
        graph = _graph()
        self.memory = _memories(device, graph)
        self.replay = device.instantiate(graph.compile(**FORMS[form]), self.memory)

    def __enter__(self) -> rl.Replay:
        return self.replay

    def __exit__(self, *_: object) -> None:
        """Close everything, memory last."""
        self.replay.close()
        for held in self.memory.values():
            held.read("u4", 0, 1)
            held.close()

    def refusals(self) -> set[str]:
        """What later uses say; each is refused, at once."""
        replay = self.replay
        uses: list[Callable[[], None]] = [
            lambda: replay.patch(count=3),
            lambda: replay.bind({"x0": self.memory["x0"]}),
            replay.submit,
            lambda: replay.wait(timeout=60),
            lambda: replay.run(timeout=60),
        ]
        return {_refused(use) for use in uses}


def _refused(use: Callable[[], None]) -> str:
    started = time.monotonic()
    with pytest.raises(rl.QueueFailed) as caught:
        use()
    assert time.monotonic() - started < 30
    return str(caught.value)


def _works(device: rl.Device, form: str) -> None:
    with _Opened(device, form) as replay:
        replay.run(timeout=20)


@pytest.mark.parametrize("launch", range(LANES * CHAIN))
@pytest.mark.parametrize("round_", range(3))
@pytest.mark.parametrize("form", BATCHED)
def test_an_error_within_a_batch_names_its_packet_and_launch(
    form: str, round_: int, launch: int, faulty: tuple[Faulty, rl.Device]
) -> None:
    """Case 44: the replay of the batch and the launch in it at which the device stopped, in every later use too."""
    made, device = faulty
    seen = [0] * (LANES * CHAIN)

    def act(dispatch: Dispatch) -> None:
        at = dispatch.dims[0] - 1
        seen[at] += 1
        if at == launch and seen[at] == round_ + 1:
            write_far_outside(dispatch)

    opened = _Opened(device, form)
    with opened as replay:
        packet, names = _expected(form, round_, launch)
        made.backend.act = act
        replay.submit(times=3)
        with pytest.raises(
            rl.QueueFailed, match=r"RL1001 .*MEMORY_APERTURE_VIOLATION .*write of 4 bytes at 0xbad0"
        ) as c:
            replay.wait(timeout=60)
        assert f", packet {packet} (plan {replay.plan.fingerprint[:16]}: {names})" in c.value.where
        assert opened.refusals() == {str(c.value)}
        replay.cancel()
        assert opened.refusals() == {str(c.value)}
        made.backend.act = lambda _: None
    _works(device, form)


def _expected(form: str, round_: int, launch: int) -> tuple[int, str]:
    """Index of the packet on its queue, and the launches that its message names."""
    if form == "aql":  # a packet for each launch
        return LANES * CHAIN * round_ + BY_LEVEL.index(launch), f"#{launch} k{launch}"
    if form == "lanes":
        first = launch // CHAIN * CHAIN
        return round_, f"#{first} k{first}, #{first + 1} k{first + 1}"
    return round_, "#0 k0, #2 k2, #4 k4, #1 k1 and 2 more"


@pytest.mark.parametrize("lost", ["doorbell", "completion"])
@pytest.mark.parametrize("form", FORMS)
def test_a_signal_that_never_fires_ends_in_a_timeout_and_cancel_works(
    form: str, lost: str, faulty: tuple[Faulty, rl.Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 25, case 44: work that the device never heard of, and work that it never reports."""
    made, device = faulty
    opened = _Opened(device, form)
    with opened as replay, monkeypatch.context() as patch:
        if lost == "doorbell":
            made.lost_doorbells = []
        else:
            patch.setattr(made.sim.signals, "subtract", lambda *_: None)
        replay.submit()
        for _ in range(2):
            with pytest.raises(rl.ReplayTimeout, match=r"RL1101 .*it is still in flight"):
                replay.wait(timeout=0.05)
        with pytest.raises(rl.ReplayBusy, match="RL1401 .*not done after 0.05 s"):
            replay.submit()
        replay.cancel()
        (said,) = opened.refusals()
        assert said.startswith("RL1002 ")
        assert "cancelled in flight" in said
        made.lost_doorbells = None
    _works(device, form)


@pytest.mark.parametrize("form", ["lanes", "phases", "aql lanes"])
def test_a_queue_that_cannot_be_destroyed_keeps_no_other_running(form: str, faulty: tuple[Faulty, rl.Device]) -> None:
    """Cancel ends what it can and says so; the replay stays in flight for the rest, and is asked again by close."""
    made, device = faulty
    opened = _Opened(device, form)
    with opened as replay:
        lanes = len(made.queues)
        assert lanes > 1
        made.lost_doorbells = []
        replay.submit()
        made.count_from_here(refuse=1)
        with pytest.raises(rl.HsaError, match="RL0902 hsa_queue_destroy"):
            replay.cancel()
        assert made.calls == ["hsa_queue_destroy"] * lanes
        assert len(made.queues) == 1
        with pytest.raises(rl.ReplayBusy, match="RL1402"):
            opened.memory["x0"].read("u4")
        made.lost_doorbells = None
    _works(device, form)


@pytest.mark.parametrize("form", FORMS)
def test_a_late_doorbell_is_no_loss(form: str, faulty: tuple[Faulty, rl.Device]) -> None:
    """After the time-out the work is still in flight, and ends as any other."""
    made, device = faulty
    with _Opened(device, form) as replay:
        made.lost_doorbells = []
        replay.submit()
        with pytest.raises(rl.ReplayTimeout):
            replay.wait(timeout=0.02)
        made.ring_lost_doorbells()
        replay.wait(timeout=20)
        replay.run(timeout=20)


@pytest.mark.parametrize("how", ["memory fault event", "queue errors"])
def test_a_lost_device_fails_every_replay_at_once(how: str, faulty: tuple[Faulty, rl.Device]) -> None:
    """Case 44: in flight or between replays, in all forms, with one cause each; memory and replays then close."""
    made, device = faulty
    opened = [_Opened(device, form) for form in FORMS]
    made.lost_doorbells = []
    for one in opened[1:]:
        one.replay.submit()
    if how == "memory fault event":
        made.report_memory_fault(device.agent.handle, 0x7F00DEAD0000)
        cause = "HSA_STATUS_ERROR_MEMORY_FAULT (0x2b): memory fault at 0x7f00dead0000"
    else:
        made.report_queue_errors(Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES)
        cause = "HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)"
    for one in opened:
        (said,) = one.refusals()
        assert cause in said
        assert f"(plan {one.replay.plan.fingerprint[:16]}: " in said or one is opened[0]
    for one in opened:
        with one:
            pass
    made.lost_doorbells = None
    for form in FORMS:
        _works(device, form)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", FORMS)
def test_noise_in_a_ring_fails_the_replay(form: str, seed: int, faulty: tuple[Faulty, rl.Device]) -> None:
    """Case 62: a packet overwritten between its publication and the device's look at it is an error, no hang."""
    made, device = faulty
    random = Random(seed)
    opened = _Opened(device, form)
    with opened as replay:
        made.lost_doorbells = []
        replay.submit()
        queue = random.choice(replay._queues)
        noise = np.frombuffer(random.randbytes(64), np.uint32).copy()
        at = random.randrange(queue.write_index)
        noise[0] = noise[0] & ~np.uint32(0xFF) | np.uint32(random.choice([0, 2, 3, 4, 5, 6, 255]))
        queue.ring[16 * at : 16 * at + 16] = noise
        made.ring_lost_doorbells()
        (said,) = {_refused(lambda: replay.wait(timeout=60))} | opened.refusals()
        assert f"RL1001 queue {queue.id} on gfx1201, packet {at} (plan " in said
    _works(device, form)


@pytest.mark.parametrize("form", FORMS)
def test_a_packet_that_turns_invalid_is_waited_for_no_longer_than_asked(
    form: str, faulty: tuple[Faulty, rl.Device]
) -> None:
    """Case 62: an INVALID header holds the processor for good, as a hole would; the wait and the replay end."""
    made, device = faulty
    with _Opened(device, form) as replay:
        made.lost_doorbells = []
        replay.submit()
        replay._queues[0].ring[0] = 1
        made.ring_lost_doorbells()
        with pytest.raises(rl.ReplayTimeout, match="RL1101"):
            replay.wait(timeout=0.1)
    _works(device, form)


@pytest.mark.parametrize(("faulting", "sound"), [("low", "high"), ("high", "low")])
def test_a_fault_on_a_queue_of_one_priority_leaves_the_other_alone(
    faulting: str, sound: str, faulty: tuple[Faulty, rl.Device]
) -> None:
    """Case 45: the wait for the one ends with its error, the wait for the other with its work."""
    made, device = faulty
    agent = device.agent
    made.backend.act = lambda dispatch: write_far_outside(dispatch) if dispatch.dims[0] == 5 else None
    with (
        agent.allocate(4096, "kernarg", executable=True) as bad,
        agent.allocate(4096, "kernarg", executable=True) as good,
        agent.signal(1) as never,
        agent.signal(3) as done,
        agent.queue(priority=faulting) as stopped,
        agent.queue(priority=sound) as going,
    ):
        for memory, groups in ((bad, 5), (good, 4)):
            memory.write(np.array(launch(groups=groups), np.uint32))
        going.submit(ib_packet(good.address, len(launch()), done.handle))
        stopped.submit(ib_packet(bad.address, len(launch()), never.handle))
        with pytest.raises(rl.QueueFailed, match="MEMORY_APERTURE_VIOLATION"):
            never.wait_below(1, 60, poll=stopped.check)
        for _ in range(2):
            going.submit(ib_packet(good.address, len(launch()), done.handle))
        done.wait_below(1, 60, poll=going.check)


def test_a_full_ring_refuses_a_batch_whole_and_takes_it_later(faulty: tuple[Faulty, rl.Device]) -> None:
    """Case 62: packets of a user's own fill a replay's ring; nothing is reserved, and the replay is not in flight."""
    made, device = faulty
    with _Opened(device, "aql") as replay:
        (queue,) = replay._queues
        made.lost_doorbells = []
        barrier = np.zeros((60, 16), np.uint32)
        barrier[:, 0] = 0x1503
        queue.submit(barrier)
        with pytest.raises(rl.ReplayTimeout, match="RL1102 .*4 free slots"):
            replay.submit()
        assert queue.write_index == 60
        with pytest.raises(rl.NotRecorded, match="RL1203"):
            replay.wait(timeout=1)
        replay.patch(count=3)
        made.ring_lost_doorbells()
        replay.run(timeout=20)
