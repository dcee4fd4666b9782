# SPDX-License-Identifier: Apache-2.0
"""The planner's compiled sweeps against plain loops over all pairs: random graphs, and every small set of intervals."""

from __future__ import annotations

import random
from itertools import combinations, product

import numpy as np
import pytest

import redline as rl
from redline.fences import derive
from redline.stabbing import stab_circle, stab_line
from redline.sweep import READS, WRITES, find_needs, find_neighbours, number_points, plant, reach
from tests.random_plans import random_graph
from tests.slow_planner import SlowPlanner, fewest_on_circle

pytestmark = pytest.mark.nopython

#: Random graphs of each boundary and schedule.
GRAPHS = 500
BOUNDARIES = ("host", "queue", "other-queue")


def _graph(draw: random.Random) -> rl.Graph:
    """Up to 14 launches, whose ranges are short, middling or long: trees of many leaves, and of one."""
    return random_graph(draw, launches=14, nbytes=24, longest=draw.choice([2, 6, 24]))


@pytest.mark.parametrize("schedule", ["levels", "record"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_columns_equal_those_of_plain_loops(boundary: str, schedule: str) -> None:
    """Levels, order, needs, and for one replay every drain and acquire with its classes. Loops may choose between
    equals: there the numbers of drains, packets and classes are compared.
    """
    draw = random.Random(f"{boundary} {schedule}")
    for _ in range(GRAPHS):
        plan = rl.Plan.of(_graph(draw), boundary=boundary, schedule=schedule)
        slow, a = SlowPlanner(plan), plan.accesses
        assert list(plan.levels) == slow.levels
        assert list(plan.order) == slow.order
        assert sorted((pair.first, pair.second) for pair in plan.unordered_pairs()) == slow.unordered()
        rounds, order = 1 + (boundary == "queue"), np.array(plan.order)
        needs = find_needs(order, rounds, a.starts, a.spans, a.does, a.after_starts, a.after, a.nodes)
        assert needs.tolist() == slow.needs(rounds)
        fences = derive(plan)
        if boundary == "queue":
            assert (fences.drains, fences.acquires) == _loop_counts(plan, slow, fences)
        else:
            drains = slow.drains()
            assert fences.at[fences.drains_at].tolist() == drains
            assert {f.at: set(f.acquire) for f in fences.inner if f.acquire} == slow.acquires(drains)


def _loop_counts(plan: rl.Plan, slow: SlowPlanner, fences: rl.Fences) -> tuple[int, int]:
    """Fewest drains of any, then fewest acquire packets between these drains, by trying all sets."""
    n = len(plan.order)
    waits, *writers = slow.needs(2)
    drains = fewest_on_circle([(w + 1, n + at) for at, w in enumerate(waits) if w >= 0], n, -1)
    placed = fences.at[fences.drains_at].tolist()
    times = [turn * n + at for turn in range(2) for at in placed]
    entry = plan.slots and 0 not in placed
    points = [0, *placed] if entry else placed
    intervals: list[tuple[int, int]] = []
    for row in writers:
        for at, writer in enumerate(row):
            if writer >= 0:
                first = next(time for time in times if time > writer)
                stands = [turn * n + p for turn in range(2) for p in points]
                held = [i for i, time in enumerate(stands) if first <= time <= n + at]
                intervals.append((held[0], held[-1]))
    packets = fewest_on_circle(intervals, len(points), 0 if plan.slots else -1) if points else 0
    return drains, packets


def test_chains_of_neighbours_join_every_conflict() -> None:
    """A neighbour conflicts, is named once, and whatever conflicts is joined by neighbours: explicit order asks for
    them alone.
    """
    draw = random.Random("neighbours")
    for _ in range(GRAPHS):
        plan = rl.Plan.of(_graph(draw))
        slow, a = SlowPlanner(plan), plan.accesses
        pairs = [*map(tuple, find_neighbours(a.starts, a.low, a.high, a.does, len(a.cuts)).tolist())]
        assert len(set(pairs)) == len(pairs)
        assert all(slow.conflict(first, second) for first, second in pairs)
        before = [[first for first, second in pairs if second == b] for b in range(slow.count)]
        for second in range(slow.count):
            for first in range(second):
                assert _reaches(before, first, second) or not slow.conflict(first, second)


def test_neighbours_of_many_readers() -> None:
    """More pairs and readers than the columns begin with: 1,500 reads and then a write."""
    ones = np.ones(1501, np.int32)
    does = np.array([READS] * 1500 + [WRITES], np.uint8)
    pairs = find_neighbours(np.arange(1502), 0 * ones, ones, does, 1)
    assert sorted(pairs.tolist()) == [[first, 1500] for first in range(1500)]


def test_end_points_are_numbered_however_many() -> None:
    """Points are the distinct end points, as numpy finds them, and each access names its own."""
    draw = np.random.default_rng(5)
    for count, reach_ in ((0, 1), (1, 10), (3000, 40), (3000, 1 << 45)):
        memory = draw.integers(0, 3, count)
        start = draw.integers(0, reach_, count)
        stop = start + draw.integers(1, reach_ + 1, count)
        bases = np.array([0, 1 << 47, 1 << 48, 3 << 47])
        points, ends = number_points(memory, start, stop, bases)
        absolute = np.stack([bases[memory] + start, bases[memory] + stop])
        assert np.array_equal(points[ends], absolute)
        assert np.array_equal(np.sort(points), np.unique(absolute))


def test_trees_cover_what_accesses_join_and_nothing_else() -> None:
    """Segments 0; 1 to 3, which two accesses join; 4: one node, a tree of four leaves, one node."""
    low, high = np.array([0, 1, 2, 4], np.int32), np.array([1, 3, 4, 5], np.int32)
    spans, nodes = plant(low, high, 5)
    assert spans.tolist() == [[0, 1, 2], [1, 4, 6], [1, 5, 7], [8, 1, 2]]
    assert nodes == 1 + 1 + 7 + 1  # node 0 of the first tree is never touched


def _families(intervals: list[tuple[int, int]], most: int) -> list[tuple[tuple[int, int], ...]]:
    return [family for size in range(most + 1) for family in combinations(intervals, size)]


@pytest.mark.parametrize(("points", "most"), [(1, 1), (2, 3), (4, 3), (5, 2)])
def test_a_line_is_stabbed_by_the_fewest_points(points: int, most: int) -> None:
    """Every family of up to `most` intervals over a few points: each holds a chosen one, and no fewer would do."""
    intervals = [(low, high) for low in range(points) for high in range(low, points)]
    for family in _families(intervals, most):
        low, high = _columns(sorted(family, key=lambda interval: interval[1]))
        chosen = np.flatnonzero(stab_line(low, high, points)).tolist()
        assert all(any(a <= at <= b for at in chosen) for a, b in family)
        assert len(chosen) == fewest_on_circle(family, points, -1)


@pytest.mark.parametrize(("points", "most"), [(1, 2), (2, 3), (3, 3), (4, 2), (5, 2)])
def test_a_circle_is_stabbed_by_the_fewest_points(points: int, most: int) -> None:
    """The same for intervals that run past the end, up to nearly twice around, with and without a forced point."""
    intervals = [(low, low + length) for low in range(points) for length in range(2 * points)]
    for family, forced in product(_families(intervals, most), range(-1, points)):
        chosen = np.flatnonzero(stab_circle(*_columns(family), points, forced)).tolist()
        assert all(any(at % points in chosen for at in range(low, high + 1)) for low, high in family)
        assert forced < 0 or forced in chosen
        assert len(chosen) == fewest_on_circle(family, points, forced)


def test_an_interval_below_zero_asks_for_nothing() -> None:
    """Launches that need nothing are intervals too: low is -1."""
    low, high = _columns([(-1, 0), (-1, 3)])
    assert not stab_line(low, high, 4).any()
    assert not stab_circle(low, high, 4, -1).any()


def _columns(family: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array(family, np.int64).reshape(-1, 2).T
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


@pytest.mark.parametrize("density", [0.02, 0.1, 0.5])
def test_reach_equals_a_search(density: float) -> None:
    """All pairs of 40 launches, more than 64 at a time, against a plain depth-first search."""
    draw = random.Random(f"reach {density}")
    for count in (1, 2, 13, 40):
        after = [[a for a in range(b) if draw.random() < density] for b in range(count)]
        pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
        starts = np.cumsum([0, *map(len, after)])
        flat = np.array([a for row in after for a in row], np.int64)
        found = reach(*_columns(pairs), starts, flat)
        assert found.tolist() == [_reaches(after, a, b) for a, b in pairs]


def _reaches(after: list[list[int]], first: int, second: int) -> bool:
    seen, stack = set(), [second]
    while stack:
        at = stack.pop()
        if at == first:
            return True
        if at not in seen:
            seen.add(at)
            stack += after[at]
    return False
