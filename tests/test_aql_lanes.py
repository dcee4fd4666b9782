# SPDX-License-Identifier: Apache-2.0
"""AQL lanes: barrier bits, scopes and waits are safe by the definition, and none of them can be taken away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redline_fuzz.forms import weaker_lanes
from redline_fuzz.lane_judge import unsafe

import redline as rl
from redline.aql_lanes import AGENT, NONE, SYSTEM, AqlLanes, derive_aql
from redline.encoders.aql import HEADER, header
from redline.lanes import chains
from redline.packets import SIGNAL
from tests.graphs import Node, build, nodes


def _lanes(plan: rl.Plan, queues: int | list[int]) -> AqlLanes:
    return derive_aql(plan, chains(plan, queues))


@given(items=nodes(), data=st.data())
def test_lanes_are_safe_and_nothing_can_go(items: list[Node], data: st.DataObject) -> None:
    """On any lanes, drawn or chosen."""
    plan = build(items).compile()
    dealt = data.draw(st.lists(st.integers(0, 2), min_size=len(items), max_size=len(items)))
    for queues in (1, 2, 4, dealt):
        lanes = _lanes(plan, queues)
        assert unsafe(plan, lanes) == []
        for less, what in weaker_lanes(lanes):
            assert unsafe(plan, less), f"{what} can go: {lanes}"


@given(items=nodes())
def test_full_fences_have_one_lane_and_every_bit(items: list[Node]) -> None:
    """The switch for a wrong result: each launch waits for all before it and acquires."""
    plan = build(items).compile(fences="full", form="aql", queues=3)
    assert plan.program.lanes == 1
    words = plan.program.packets["words"][: len(items), 0].tolist()
    assert all(word & 0x100 and word >> 9 & 3 for word in words)


@pytest.mark.parametrize(("scope", "word"), [("SYSTEM", 0x1502), ("AGENT", 0x0B02)])
def test_scopes_of_a_dispatch_header(scope: str, word: int) -> None:
    """Case 18: an entry from the host and one from another queue differ in exactly these bits."""
    assert header("KERNEL_DISPATCH", acquire=scope, release=scope) == word


def test_counts_in_memory_have_no_aql_packet() -> None:
    """Refused with the launch, instead of a packet for a grid that nobody knows."""
    graph = rl.Graph()
    counts = graph.buffer("counts", 12)
    graph.launch(rl.Kernel.synthetic("k", pointers=0), grid=rl.read(counts), block=64)
    with pytest.raises(rl.RecordError, match=r"RL0144 form='aql', #0 k"):
        graph.compile(form="aql")


def test_release_scopes_follow_who_reads() -> None:
    """Case 26: system for the last writer of what the host reads, agent for what launches read, none for others."""
    graph = rl.Graph()
    x, out = graph.buffer("x", 8), graph.buffer("out", 8, role="out")

    def go(reads: list[rl.View], writes: list[rl.View]) -> None:
        args = [rl.read(view) for view in reads] + [rl.write(view) for view in writes]
        graph.launch(rl.Kernel.synthetic("k", pointers=len(args)), grid=1, block=1, args=args)

    go([], [x[0:4]])  # read by the second
    go([x[0:4]], [out[0:4]])  # overwritten by the third
    go([], [out[0:8]])  # the last writer of what the host reads
    go([], [x[4:8]])  # read by nobody
    plan = graph.compile(schedule="record", form="aql")
    words = plan.program.packets["words"][:4, 0].tolist()
    assert [HEADER.unpack(word & 0xFFFF)["RELEASE"] for word in words] == [AGENT, NONE, SYSTEM, NONE]


def _star(children: int) -> rl.Graph:
    """A root and many launches that read what it wrote."""
    items = [Node(writes=((0, 0, 4),))]
    graph = build(items)
    root = graph.buffers[0]
    out = graph.buffer("wide", children)
    for at in range(children):
        graph.launch(
            rl.Kernel.synthetic("child", pointers=2), grid=1, block=1, args=[rl.read(root), rl.write(out[at : at + 1])]
        )
    return graph


@pytest.mark.parametrize("queues", [1, 2, 3, 4])
def test_a_wide_fan_out_reaches_every_lane(queues: int) -> None:
    """Case 23: Q lanes, 3Q + 1 children of one root: same lane and later, or an explicit wait; never by index."""
    plan = _star(3 * queues + 1).compile()
    lanes = _lanes(plan, queues)
    assert len(lanes) == queues
    assert unsafe(plan, lanes) == []
    assert sum(len(row.waits) for lane in lanes for row in lane) == queues - 1, "each other lane waits once"
    assert {sum(row.acquire == SYSTEM for row in lane) for lane in lanes} == {1}


def test_four_independent_launches_need_no_signal_but_the_last() -> None:
    """Case 3: four lanes of one dispatch, no wait between them, one join; with an edge exactly one wait."""
    apart = [Node(writes=((0, at, at + 1),)) for at in range(4)]
    plan = build(apart).compile(form="aql", queues=4)
    assert plan.program.lanes == 4
    waits = plan.program.packet_relocs[plan.program.packet_relocs["kind"] == SIGNAL]
    assert plan.program.signals == 4, "one that the host waits for, and the ends of three lanes"
    assert (waits["word"] != 14).sum() == 3, "the join alone waits"
    joined = [*apart[:3], Node(reads=((0, 0, 1),), writes=((1, 0, 1),))]
    lanes = _lanes(build(joined).compile(), [0, 1, 2, 3])
    assert [row.waits for lane in lanes for row in lane] == [(), (), (), (0,)]
    assert [row.signals for lane in lanes for row in lane] == [True, False, False, False]


def test_more_than_five_dependencies_take_more_packets() -> None:
    """A barrier-AND packet has room for five: seven writers on lanes of their own, one reader of all."""
    items = [Node(writes=((at // 4, at % 4, at % 4 + 1),)) for at in range(7)]
    items.append(Node(reads=((0, 0, 4), (1, 0, 3))))
    program = build(items).compile(form="aql", queues=[*range(7), 7]).program
    last = program.packets[program.packets["lane"] == 7]["words"]
    assert [int(word) & 0xFF for word in last[:, 0]] == [3, 3, 2, 3]
    relocs = program.packet_relocs
    first = int(np.flatnonzero(program.packets["lane"] == 7)[0])
    counts = [int(((relocs["packet"] == first + at) & (relocs["word"] < 14)).sum()) for at in range(2)]
    assert counts == [5, 2]


def test_an_acquire_before_the_wait_does_not_count() -> None:
    """A cross-lane writer becomes visible behind the wait for it: the lane's earlier acquire was for another edge."""
    items = [
        Node(writes=((0, 0, 4),)),  # lane 0
        Node(writes=((1, 0, 4),)),  # lane 1
        Node(reads=((1, 0, 4),), writes=((2, 0, 1),)),  # lane 1: acquires behind its own writer
        Node(reads=((0, 0, 4),), writes=((2, 1, 2),)),  # lane 1: waits for lane 0, acquires again
    ]
    lane = _lanes(build(items).compile(), [0, 1, 1, 1])[1]
    assert [(row.waits, row.barrier, row.acquire) for row in lane] == [
        ((), True, SYSTEM),
        ((), True, AGENT),
        ((0,), False, AGENT),
    ]


def test_every_signal_has_one_producer() -> None:
    """Case 25: no packet completes a signal of another, so none can be satisfied before its producer ran."""
    program = _star(13).compile(form="aql", queues=4).program
    completes = program.packet_relocs[(program.packet_relocs["kind"] == SIGNAL) & (program.packet_relocs["word"] == 14)]
    assert sorted(completes["index"].tolist()) == list(range(program.signals))


def test_more_lanes_than_launches_are_not_used() -> None:
    """Empty lanes would be packets for nothing."""
    program = build([Node(writes=((0, 0, 4),))] * 2).compile(form="aql", queues=64).program
    assert program.lanes == 1
