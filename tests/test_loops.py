# SPDX-License-Identifier: Apache-2.0
"""Replays back to back and between other queues: safe, nothing to take away, as few drains as any order needs.

A fixed slice of what `make prove` runs in full.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given

import redline as rl
from redline.fences import Fence, Fences, derive
from redline.plan import Plan
from tests.exhaustive import FAMILIES, count_small_graphs, judge_small, small_graphs, weaker
from tests.graphs import Node, build, nodes
from tests.judges import judge_loop_seed, judge_random_graph
from tests.loops import judge_loop
from tests.pairwise import is_safe

LOOPS = ("queue", "other-queue")


@pytest.mark.parametrize("boundary", LOOPS)
@pytest.mark.parametrize("schedule", ["levels", "record"])
@given(items=nodes())
def test_loops_are_safe_and_nothing_can_be_taken_away(boundary: str, schedule: str, items: list[Node]) -> None:
    """By `verify` and by the definition over all pairs. The entry of "other-queue" stands by a rule, not a pair."""
    plan = Plan.of(build(items), boundary=boundary, schedule=schedule)
    fences = derive(plan)
    assert rl.verify(plan, fences) == ()
    assert is_safe(plan, fences)
    for fewer in weaker(fences):
        if boundary == "queue" or fewer.inner[:1] == fences.inner[:1]:
            assert rl.verify(plan, fewer)
            assert not is_safe(plan, fewer)


@pytest.mark.parametrize("role", ["internal", "in", "out", "inout"])
def test_the_entry_between_other_queues_serves_what_they_may_touch(role: str) -> None:
    """A drain, K and V at the warm entry: each is missed by a launch that reads bound memory, whoever wrote it."""
    graph = rl.Graph()
    x = graph.buffer("x", 4, role=role)  # type: ignore[arg-type]
    graph.launch(rl.Kernel.synthetic("k"), grid=1, block=1, args=[rl.read(x)])
    plan = Plan.of(graph, boundary="other-queue")
    (entry,) = plan.fences.inner
    assert entry == Fence(0, ("K", "V"), rule="other-queue")
    for less in (replace(entry, drain=False), replace(entry, acquire=("K",)), replace(entry, acquire=("V",))):
        fences = Fences([less])
        assert bool(rl.verify(plan, fences)) == (role != "internal")
        assert is_safe(plan, fences) == (role == "internal")


def test_every_order_and_place_is_no_better() -> None:
    """200 of 3,000 random loops: no legal order has fewer drains, nor the recorded one, nor are packets saved."""
    assert [wrong for wrong in map(judge_loop_seed, range(200)) if wrong] == []


def test_the_search_beats_levels_without_the_shift() -> None:
    """Memory model F20: hazard depth alone loses to another order, and the search over all orders sees it.

    #0 reads what the last launch wrote one replay before: on the first level that takes a drain between the replays,
    beside the chain's two; one level later these serve it.
    """
    items = [
        Node(reads=((0, 0, 1),)),
        Node(writes=((1, 0, 1),)),
        Node(reads=((1, 0, 1),), writes=((2, 0, 1),)),
        Node(reads=((2, 0, 1),), writes=((0, 0, 1),)),
    ]
    assert judge_loop(items) == ""
    with patch("redline.plan._shifted", lambda accesses, levels: levels):
        assert judge_loop(items) == "levels: 3 drains, another order needs fewer"


def test_the_search_sees_a_drain_too_many() -> None:
    """Of the recorded order, and of the levels."""
    items = [Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),)), Node(), Node()]
    assert judge_loop(items) == ""
    with patch("redline.fences._loop_drains", lambda waits: waits > -2):
        assert judge_loop(items) == "record: 4 drains, fewer are enough"


def test_small_graphs_are_counted() -> None:
    """About 350,000 graphs of up to three launches and 33,000 of four, each once."""
    assert [count_small_graphs(a, b, after=c) for a, b, c in FAMILIES] == [20, 1632, 366080, 32896]
    listed = [tuple(items) for items in small_graphs(2, 3, after=True)]
    assert len(listed) == 1632
    whole = {
        tuple((tuple(sorted(node.reads)), tuple(sorted(node.writes)), node.after) for node in items) for items in listed
    }
    assert len(whole) == 1632


@pytest.mark.parametrize("family", range(4))
def test_a_slice_of_every_small_graph(family: int) -> None:
    """Safe, and no drain and no class can be taken away, one replay long and in a loop."""
    launches, ranges, after = FAMILIES[family]
    step = max(count_small_graphs(launches, ranges, after=after) // 300, 1)
    for items in small_graphs(launches, ranges, after=after, step=step):
        assert judge_small(items) == "", items


def test_a_slice_of_random_graphs_of_four_launches() -> None:
    """Four launches over three ranges."""
    assert [wrong for wrong in map(judge_random_graph, range(200)) if wrong] == []


def test_small_graphs_are_really_judged() -> None:
    """A drain left out, and a class too many, are seen."""
    items = [Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),), reader="V")]
    assert judge_small(items) == ""
    with patch("tests.exhaustive.derive", lambda plan: Fences()):
        assert judge_small(items) == "host: not safe"
    with patch("tests.exhaustive.derive", lambda plan: Fences([Fence(1, ("K", "V"))])):
        assert judge_small(items) == "host: something can be taken away"
