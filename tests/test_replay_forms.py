# SPDX-License-Identifier: Apache-2.0
"""Every form of submission on the software device: the bits of one queue, and nothing submitted that need not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import decode
from tests.devices import buffers, device_memory, module, spin, two_launches

FORMS: dict[str, dict[str, Any]] = {
    "one queue": {},
    "lanes": {"queues": 4},
    "phases": {"queues": 3, "phased": True},
    "aql": {"form": "aql"},
    "aql lanes": {"form": "aql", "queues": 3},
}
COUNT = 64


def mixed(target: str = "gfx1201", chains: int = 3, length: int = 3) -> rl.Graph:
    """Chains of saxpy over buffers of their own, and one launch that reads the ends of the first two."""
    graph = rl.Graph()
    saxpy = module("saxpy", target)["saxpy"]
    ends = [graph.buffer(f"y{at}", 4 * COUNT, role="inout") for at in range(chains)]
    x = graph.buffer("x", 4 * COUNT, role="in")
    for step in range(length):
        for y in ends:
            args: list[Any] = [rl.update(y), rl.read(x), rl.slot("a", "f4") if step else 2.0, COUNT]
            graph.launch(saxpy, grid=1, block=128, args=args)
    graph.launch(saxpy, grid=1, block=128, args=[rl.update(ends[0]), rl.read(ends[1]), 1.0, COUNT])
    return graph


def expected(replays: list[float], chains: int = 3, length: int = 3) -> list[np.ndarray[Any, Any]]:
    """Small whole numbers: exact in float32."""
    x = np.arange(COUNT, dtype=np.float32)
    ends = [x.copy() for _ in range(chains)]
    for a in replays:
        for step in range(length):
            ends = [y + (np.float32(a) if step else np.float32(2)) * x for y in ends]
        ends[0] = ends[0] + ends[1]
    return ends


@pytest.mark.parametrize("target", ["gfx1010", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("boundary", ["host", "queue"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_bits(form: str, boundary: str, target: str) -> None:
    """Three replays with patches between them."""
    graph = mixed(target)
    with rl.open(f"sim:{target}") as device:
        memory = buffers(device, graph)
        with device.instantiate(graph.compile(boundary=boundary, **FORMS[form]), memory) as replay:
            for a in (1.0, 3.0, -2.0):
                replay.patch(a=a)
                replay.run()
        for at, wanted in enumerate(expected([1.0, 3.0, -2.0])):
            assert np.array_equal(memory[f"y{at}"].read("f4"), wanted), at


@pytest.mark.parametrize("queues", [1, 2, 3, 4])
@pytest.mark.parametrize("form", ["phases", "aql"])
def test_a_wide_fan_out_is_right_on_every_number_of_queues(form: str, queues: int, device: rl.Device) -> None:
    """Case 23: 3Q + 1 readers of one write, and one launch that reads what all of them wrote."""
    children = 3 * queues + 1
    graph = rl.Graph()
    copy = module("copy")["copy"]
    x, root = graph.buffer("x", 256, role="in"), graph.buffer("root", 256)
    wide, out = graph.buffer("wide", 256 * children), graph.buffer("out", 256 * children, role="out")
    graph.launch(copy, grid=1, block=256, args=[rl.write(root), rl.read(x), 64])
    for at in range(children):
        graph.launch(copy, grid=1, block=256, args=[rl.write(wide[256 * at : 256 * at + 256]), rl.read(root), 64])
    graph.launch(copy, grid=-(-children // 4), block=256, args=[rl.write(out), rl.read(wide), 64 * children])
    options = {"phased": True} if form == "phases" else {"form": "aql"}
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(queues=queues, **options), memory) as replay:
        replay.run()
    assert np.array_equal(memory["out"].read("f4"), np.tile(np.arange(64, dtype=np.float32), children))


def test_independent_chains_go_to_lanes_and_joined_ones_do_not() -> None:
    """Never more queues than components; "auto" knows what each target stands."""
    plan = mixed().compile(queues=4)
    assert plan.program.lanes == 2, "the first two chains are joined"
    assert [mixed(t).compile(queues="auto").program.lanes for t in ("gfx1030", "gfx1100", "gfx1151", "gfx1201")] == [
        *(1, 2, 2, 2),
    ]
    assert mixed("gfx1151", chains=6).compile(queues="auto").program.lanes == 4
    assert two_launches().compile(queues=4).program.form == "pm4"


@pytest.mark.parametrize("boundary", ["host", "queue", "other-queue"])
@pytest.mark.parametrize("form", ["one queue", "lanes", "aql"])
def test_a_batch_is_as_many_replays(form: str, boundary: str, device: rl.Device) -> None:
    """Back to back in one submission, the release at the end alone."""
    graph = mixed()
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(boundary=boundary, **FORMS[form]), memory) as replay:
        replay.patch(a=2.0)
        replay.submit(3)
        replay.wait()
        replay.submit(2)
        replay.wait()
        for at, wanted in enumerate(expected([2.0] * 5)):
            assert np.array_equal(memory[f"y{at}"].read("f4"), wanted), at


def test_a_batch_that_does_not_fit_is_refused_whole(device: rl.Device) -> None:
    """The ring's slots bound it, and lanes that wait for one another take one replay at a time."""
    graph = mixed()
    memory = buffers(device, graph)
    for options, most in (({}, 64), (FORMS["phases"], 1), (FORMS["aql lanes"], 1)):
        with device.instantiate(graph.compile(**options), memory) as replay:
            replay.patch(a=1.0)
            for times in (0, most + 1, True, 1.5):
                with pytest.raises(rl.NotRecorded, match=rf"RL1205 Replay.submit\(times=\).*allowed: 1 to {most}"):
                    replay.submit(times)  # type: ignore[arg-type]
            replay.run()


def test_without_a_release_the_host_must_not_look(device: rl.Device) -> None:
    """Reading, patching and binding wait for a submit that ends with the release; another submit does not."""
    graph = mixed()
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(boundary="queue"), memory) as replay:
        replay.patch(a=1.0)
        replay.submit(release=False)
        replay.wait()
        for forbidden in (lambda: memory["y0"].read("f4"), lambda: replay.patch(a=2.0), lambda: replay.bind({})):
            with pytest.raises(rl.ReplayBusy):
                forbidden()
        replay.submit(2, release=False)
        replay.wait()
        replay.submit()
        replay.wait()
        assert np.array_equal(memory["y0"].read("f4"), expected([1.0] * 4)[0])
        replay.patch(a=2.0)
    with device.instantiate(graph.compile(), memory) as replay:
        replay.patch(a=1.0)
        with pytest.raises(rl.NotRecorded, match="RL1205"):
            replay.submit(release=False)
        replay.run()


@pytest.mark.parametrize("target", ["gfx1010", "gfx1201"])
def test_phases_drain_without_a_release_too(target: str) -> None:
    """submit(release=False) leaves the release out, not what other lanes and the next replay wait for."""
    program = mixed(target).compile(boundary="queue", **FORMS["phases"]).program
    drain = "WAIT_REG_MEM" if target == "gfx1010" else "EVENT_WRITE"
    for row in program.ibs:
        stream = program.words[row["cold"] : row["end"]].tolist()
        assert [command.name for command in decode(stream, family_for(target))][-1] == drain


@pytest.mark.parametrize("lanes", [[1, 1], [5, 0], [63, 63]])
@pytest.mark.parametrize("form", ["lanes", "phases", "aql"])
def test_lanes_of_any_number_run(form: str, lanes: list[int], device: rl.Device) -> None:
    """Queues that no launch was given are not made."""
    graph = rl.Graph()
    x = graph.buffer("x", 256, role="in")
    ends = [graph.buffer(f"out{at}", 256, role="out") for at in range(2)]
    for end in ends:
        graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(end), rl.read(x), 64])
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(**{**FORMS[form], "queues": lanes}), memory) as replay:
        replay.run()
        replay.run()
    assert all(np.array_equal(memory[end.name].read("f4"), np.arange(64)) for end in ends)


def test_conflicting_launches_do_not_part_without_waits() -> None:
    """Lanes of one's own choice are checked; the message names both launches."""
    plan = two_launches().compile()
    with pytest.raises(rl.RecordError, match=r"RL0146 queues=: #0 saxpy on lane 0, #1 copy on lane 1"):
        rl.lower(plan, plan.fences, queues=[0, 1, 0])
    with pytest.raises(rl.RecordError, match="RL0132 phased=True with form='aql'"):
        rl.lower(plan, plan.fences, phased=True, form="aql")
    with pytest.raises(rl.EncodeError, match="RL0522"):
        rl.lower(plan, rl.Fences(), form="aql")


@pytest.mark.parametrize("fences", ["minimal", "full"])
@pytest.mark.parametrize("options", [{}, {"phased": True}, {"form": "aql"}])
def test_what_is_no_number_of_queues_is_refused(options: dict[str, Any], fences: str) -> None:
    """Whatever the form, and where one lane is taken anyway; NumPy's ints are ints."""
    graph = two_launches()
    for queues in (0, 65, True, "many", None, 1.5, [], [0, 1], [0, -1, 0], [0, 99, 0], ["a", "b", "c"], np.zeros(())):
        with pytest.raises(rl.RecordError, match="RL0132 queues="):
            graph.compile(queues=queues, fences=fences, **options)  # type: ignore[arg-type]
    for good in (np.int64(2), np.zeros(3, np.int64), iter([0, 0, 0])):
        assert graph.compile(queues=good, fences=fences, **options).program.lanes == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"phased": True}])
def test_a_list_has_no_more_lanes_than_a_number_may_ask_for(options: dict[str, Any]) -> None:
    """Five queues of indirect buffers are refused either way; AQL packets may go to five."""
    graph = rl.Graph()
    for at in range(5):
        graph.launch(rl.Kernel.synthetic("k"), grid=1, block=1, args=[rl.write(graph.buffer(f"b{at}", 4))])
    for queues in (5, [0, 1, 2, 3, 4]):
        with pytest.raises(rl.RecordError, match="RL0132 queues="):
            graph.compile(queues=queues, **options)
        assert graph.compile(queues=queues, form="aql").program.lanes == 5
    assert graph.compile(queues=[0, 1, 2, 9, 0], **options).program.lanes == 4


def test_no_more_queues_than_the_agent_has(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is allocated."""
    graph = two_copies()
    monkeypatch.setitem(vars(device.agent), "max_queues", 1)
    with pytest.raises(rl.BindingError, match="RL0717 .*a program of 2 queues; allowed: at most 1"):
        device.instantiate(graph.compile(queues=2), buffers(device, graph))


def two_copies() -> rl.Graph:
    """Two launches that share nothing but what they read."""
    graph = rl.Graph()
    x = graph.buffer("x", 256, role="in")
    for at in range(2):
        end = graph.buffer(f"out{at}", 256, role="out")
        graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(end), rl.read(x), 64])
    return graph


@pytest.mark.parametrize("option", ["elide", "phased", "form", "gfx10_wait"])
def test_options_are_what_they_say(option: str) -> None:
    """Nothing is taken for True that is not, nor compared that cannot be."""
    for value in (None, 1, "no", np.array([1, 2])):
        with pytest.raises(rl.RecordError, match=rf"RL0132 {option}="):
            two_launches().compile(**{option: value})  # type: ignore[arg-type]


def test_a_cut_stream_runs_as_one(monkeypatch: pytest.MonkeyPatch, device: rl.Device) -> None:
    """Case 62: a stream that does not fit one buffer is cut; every packet of it is submitted, cold and warm."""
    monkeypatch.setattr("redline.lowering.MAX_IB_DWORDS", 90)
    graph = mixed()
    memory = buffers(device, graph)
    plan = graph.compile(boundary="queue")
    assert len(plan.program.ibs) > 3
    with device.instantiate(plan, memory) as replay:
        replay.patch(a=2.0)
        replay.run()
        replay.submit(2)
        replay.wait()
        assert np.array_equal(memory["y0"].read("f4"), expected([2.0] * 3)[0])


def test_a_failed_lane_names_its_launch() -> None:
    """The packet that the device stopped at, and what it runs, whichever lane it is on."""
    graph = rl.Graph()
    flags = [graph.buffer(f"f{at}", 4, role="in") for at in range(2)]
    for at, flag in enumerate(flags):
        graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)], label=f"spin{at}")
    with rl.open("sim:gfx1201") as device:
        memory = {flag: device.buffer(4) for flag in flags}
        for flag in flags:
            memory[flag].write(np.ones(1, np.uint32))
        with device.instantiate(graph.compile(form="aql", queues=2), memory) as replay:
            replay.run()
            objects = device_memory(device)
            entry = int(replay.placed.entries[0])
            objects.store(entry, b"\xff" * 4)
            with pytest.raises(rl.QueueFailed, match=r"packet \d+ \(plan [0-9a-f]{16}: #0 spin0\)|#1 spin1"):
                replay.run()


@pytest.mark.parametrize("boundary", ["host", "queue"])
@pytest.mark.parametrize("form", FORMS)
def test_stats_say_what_a_replay_submits(form: str, boundary: str, device: rl.Device) -> None:
    """Counted on the rings and in what was placed, warm and cold: packets by type and by queue, signals, launches."""
    graph = mixed()
    plan = graph.compile(boundary=boundary, **FORMS[form])
    said = plan.stats()["submission"]
    with device.instantiate(plan, buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        for _ in range(2):
            before = [queue.write_index for queue in replay._queues]
            replay.run()
            published = [queue.write_index - at for queue, at in zip(replay._queues, before, strict=True)]
            assert len(published) == said["queues"]
            assert sum(published) == sum(said["packets"].values()) == replay.route_proof()["packets"]
        for warm in (False, True):
            batches = replay.placed.batches(warm=warm, release=True)
            assert [len(packets) for packets in batches] == published
            types = [int(header) & 0xFF for packets in batches for header in packets[:, 0]]
            wanted = {"VENDOR": 0, "KERNEL_DISPATCH": 2, "BARRIER_AND": 3}
            assert said["packets"] == {name: types.count(number) for name, number in wanted.items()}
        assert said["signals"] == len(replay.placed.signals) == plan.memory()["signals"]
        assert sorted(index for lane in said["launches_by_queue"] for index in lane) == list(range(len(plan.launches)))
