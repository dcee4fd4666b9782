# SPDX-License-Identifier: Apache-2.0
"""Times of launches and streams, gaps between them, and the proof of the route; none of it submits anything."""

from __future__ import annotations

from itertools import pairwise

import pytest

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import decode
from redline.spans import Span, gaps
from tests.devices import buffers, two_launches
from tests.test_replay_forms import FORMS, mixed


def test_gaps_are_told_by_percentile() -> None:
    """Case 5: nine gaps of 10 us and one of 500: the mean would say 59."""
    spans, now = [], 0.0
    for at in range(11):
        spans.append(Span(at, "k", (1, 1, 1), (1, 1, 1), 0, False, "none", now, now + 90e-6))
        now += 90e-6 + (500e-6 if at == 4 else 10e-6)
    found = gaps(spans[::-1])
    assert found["p50"] == pytest.approx(10e-6)
    assert found["p90"] == pytest.approx(10e-6)
    assert found["max"] == pytest.approx(500e-6)
    assert found["idle"] == pytest.approx(590e-6 / (590e-6 + 11 * 90e-6))
    with pytest.raises(rl.NotRecorded, match="RL1206 gaps: 1 spans"):
        gaps(spans[:1])


def test_every_aql_launch_has_a_span(device: rl.Device) -> None:
    """Case 10: index, kernel, grid, block, lane, wait and acquire beside the times; as many as launches, in order."""
    graph = mixed()
    plan = graph.compile(form="aql", queues=2, profile=True)
    with device.instantiate(plan, buffers(device, graph)) as replay:
        with pytest.raises(rl.NotRecorded, match="RL1203 Replay.spans: nothing was submitted"):
            replay.spans()
        replay.patch(a=1.0)
        replay.run()
        spans = replay.spans()
        assert sorted(span.index for span in spans) == list(range(len(plan.launches)))
        for lane in range(2):
            mine = [span for span in spans if span.lane == lane]
            assert [span.index for span in mine] == [i for i in plan.program.order if i in {s.index for s in mine}]
            assert all(span.t0 <= span.t1 for span in mine)
            assert all(a.t1 <= b.t1 for a, b in pairwise(mine))
            assert (mine[0].wait, mine[0].acquire) == (True, "system")
        assert spans[0].as_json()["kernel"] == "saxpy"
        assert replay.route_proof()["submissions"] == 1


@pytest.mark.parametrize("target", ["gfx1010", "gfx1201"])
@pytest.mark.parametrize("form", ["one queue", "lanes", "phases"])
def test_every_stream_notes_its_begin_and_end(form: str, target: str) -> None:
    """The GPU clock in words of the replay's own: at each start, cold and warm, and behind the tail."""
    graph = mixed(target)
    plan = graph.compile(boundary="queue", profile=True, **FORMS[form])
    with rl.open(f"sim:{target}") as device, device.instantiate(plan, buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        ends: list[float] = []
        for _ in range(3):
            replay.run()
            spans = replay.spans()
            assert len(spans) == len(plan.program.streams)
            assert all(span.t0 < span.t1 for span in spans)
            assert all(span.t0 > end for span, end in zip(spans, ends, strict=False))
            ends = [span.t1 for span in spans]
    names = [command.name for command in decode(plan.program.words.tolist(), family_for(target))]
    assert names.count("COPY_DATA") == len(spans), "the second, of a warm start, stands in the NOP's body"


def test_profiling_submits_nothing_more(device: rl.Device) -> None:
    """Case 6: three replays are three submissions, with and without timestamps; the route is counted and hashed."""
    graph = mixed()
    proofs = []
    for profile in (False, True):
        with device.instantiate(graph.compile(queues=4, profile=profile), buffers(device, graph)) as replay:
            replay.patch(a=1.0)
            for _ in range(3):
                replay.run()
            proofs.append(replay.route_proof())
    for proof in proofs:
        assert proof["submissions"] == 3
        assert proof["sequence_hash"] == proof["program_hash"]
        assert (proof["device"], proof["form"], proof["queues"]) == ("sim:gfx1201", "pm4 lanes", 2)
        assert (proof["launches"], proof["kernels"]) == (10, 1)
        assert proof["reason"] == "2 of 4 queues: no more launches can run at a time"
    assert proofs[0]["sequence_hash"] != proofs[1]["sequence_hash"]


def test_the_route_is_read_from_memory(device: rl.Device) -> None:
    """Case 6: words that were changed behind our back show, and so does a form that is not the one asked for."""
    graph = two_launches()
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        replay.placed.words[0] ^= 1
        proof = replay.route_proof()
        assert proof["sequence_hash"] != proof["program_hash"]
        assert (proof["reason"], proof["submissions"]) == ("", 0)
    full = two_launches().compile(fences="full", queues=3, phased=True).program
    assert (full.form, full.reason) == ("pm4", "fences='full' has one lane")
    assert two_launches().compile(queues="auto").program.reason.startswith("1 of 2 queues")


def test_no_times_where_none_were_asked_for(device: rl.Device) -> None:
    """The message says how to ask."""
    graph = two_launches()
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        replay.run()
        with pytest.raises(rl.NotRecorded, match=r"RL1206 Replay.spans: .*profile=True"):
            replay.spans()
