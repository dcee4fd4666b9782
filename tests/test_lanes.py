# SPDX-License-Identifier: Apache-2.0
"""Lanes: what is joined stays together, what is not may part, and phases never hold launches that conflict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from redline_fuzz.lane_judge import conflicts

import redline as rl
from redline.lanes import chains, components, independent, phases, queue_cap
from tests.graphs import Node, build, nodes


def _joined(plan: rl.Plan, first: int, second: int) -> bool:
    return bool(set(conflicts(plan, first, second))) or first in plan.launches[second].after


@given(items=nodes())
def test_components_are_what_conflicts_and_after_join(items: list[Node]) -> None:
    """Against the closure of all pairs."""
    plan = build(items).compile()
    names = list(range(len(items)))
    for _ in items:
        for second in range(len(items)):
            for first in range(second):
                if _joined(plan, first, second):
                    names = [names[first] if name == names[second] else name for name in names]
    found = components(plan).tolist()
    pairs = [(a, b) for a in range(len(items)) for b in range(a)]
    assert [found[a] == found[b] for a, b in pairs] == [names[a] == names[b] for a, b in pairs]


@given(items=nodes(), queues=st.integers(1, 4))
def test_lanes_hold_every_launch_once(items: list[Node], queues: int) -> None:
    """In emitted order, none empty; independent lanes never part what is joined."""
    plan = build(items).compile()
    for lanes in (independent(plan, queues), chains(plan, queues)):
        assert sorted(launch for lane in lanes for launch in lane) == list(range(len(items)))
        assert all(lane and list(lane) == sorted(lane, key=plan.order.index) for lane in lanes)
        assert len(lanes) <= queues
    for lane in independent(plan, queues):
        assert all(not _joined(plan, *sorted((a, b))) for a in lane for b in set(range(len(items))) - set(lane))


@given(items=nodes(), queues=st.integers(1, 4), boundary=st.sampled_from(["host", "queue"]))
def test_launches_of_a_phase_do_not_conflict_across_lanes(items: list[Node], queues: int, boundary: str) -> None:
    """And every launch stands behind what it must wait for: in an earlier phase, or before it on the same lane."""
    plan = build(items).compile(boundary=boundary)
    dealt = phases(plan, queues)
    place = {
        launch: (number, lane, at)
        for number, phase in enumerate(dealt)
        for lane, launches in enumerate(phase)
        for at, launch in enumerate(launches)
    }
    assert sorted(place) == list(range(len(items)))
    for second in range(len(items)):
        for first in range(second):
            if _joined(plan, first, second):
                a, b = place[first], place[second]
                assert a[0] < b[0] or (a[:2] == b[:2] and a[2] < b[2])


def test_narrow_levels_in_a_row_are_one_phase() -> None:
    """A chain between two fans needs no packet between its launches."""
    fan = [Node(writes=((0, at, at + 1),)) for at in range(3)]
    chain = [Node(reads=((0, 0, 4),), writes=((1, 0, 4),)), Node(reads=((1, 0, 4),), writes=((2, 0, 4),))]
    plan = build([*fan, *chain]).compile()
    assert phases(plan, 3) == (((0,), (1,), (2,)), ((3, 4), (), ()))


def test_phases_have_no_lane_without_work() -> None:
    """A queue without packets could not be submitted: numbers that nobody was given, and more than any level needs."""
    plan = build([Node(writes=((0, at, at + 1),)) for at in range(2)]).compile()
    queues: int | list[int]
    for queues in ([5, 5], [1, 1], 1):
        assert phases(plan, queues) == (((0, 1),),)
    for queues in ([2, 0], [9, 3]):
        assert phases(plan, queues) == (((1,), (0,)),)
    assert phases(plan, 4) == (((0,), (1,)),)


def test_auto_takes_what_is_known_to_work() -> None:
    """Two queues on gfx1100 and gfx12, four on other gfx11, one where nothing was measured."""
    caps = {"gfx1010": 1, "gfx1030": 1, "gfx1100": 2, "gfx1101": 4, "gfx1151": 4, "gfx1200": 2, "gfx1201": 2}
    assert {target: queue_cap(target) for target in caps} == caps
