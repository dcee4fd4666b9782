# SPDX-License-Identifier: Apache-2.0
"""Replays back to back, by trying everything: the fewest drains of any legal order, the fewest acquire packets.

Slow and obvious. A drain serves two launches when it lies between them; in a loop the second may be in the next replay.
Shares nothing with the sweeps, nor with `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from random import Random

import redline as rl
from redline.fences import Fence, Fences, derive
from redline.plan import Plan
from tests.graphs import BYTES, MEMORIES, READERS, Node, build
from tests.pairwise import conflict, is_safe

Pairs = list[tuple[int, int]]


def random_loop(random: Random) -> list[Node]:
    """Two to six launches that touch few bytes, so that they conflict with one another and with the next replay."""
    count = random.randrange(2, 7)
    return [_node(random, at) for at in range(count)]


def _node(random: Random, at: int) -> Node:
    def ranges() -> tuple[tuple[int, int, int], ...]:
        starts = [random.randrange(BYTES) for _ in range(random.choice((0, 1, 1, 2)))]
        return tuple((random.randrange(MEMORIES), a, random.randrange(a, BYTES) + 1) for a in starts)

    after = (random.randrange(at),) if at and random.random() < 0.15 else ()
    return Node(ranges(), ranges(), after, random.choice(sorted(READERS)))


def judge_loop(items: list[Node]) -> str:
    """ "" when both schedules are safe, and need as few drains and packets as anything could; else what is wrong."""
    graph = build(items)
    plans = {schedule: Plan.of(graph, boundary="queue", schedule=schedule) for schedule in ("levels", "record")}
    for schedule, plan in plans.items():
        fences = derive(plan)
        if not is_safe(plan, fences):
            return f"{schedule}: not safe"
        if cheaper_acquires(plan, fences):
            return f"{schedule}: fewer acquire packets are safe"
    ordered, carried = _pairs(plans["record"])
    fewest = derive(plans["levels"]).drains
    recorded = derive(plans["record"]).drains
    if serves(tuple(range(len(items))), ordered, carried, recorded - 1):
        return f"record: {recorded} drains, fewer are enough"
    if any(serves(order, ordered, carried, fewest - 1) for order in legal_orders(len(items), ordered)):
        return f"levels: {fewest} drains, another order needs fewer"
    return ""


def _pairs(plan: rl.Plan) -> tuple[Pairs, Pairs]:
    """Pairs of one replay that need a drain between them, and pairs of one replay and the next, by recorded index."""
    launches = plan.launches
    ordered = [(a.index, b.index) for a, b in combinations(launches, 2) if a.index in b.after or conflict(plan, a, b)]
    return ordered, [(a.index, b.index) for a in launches for b in launches if conflict(plan, a, b)]


def legal_orders(count: int, ordered: Pairs) -> Iterator[tuple[int, ...]]:
    """Every order that keeps these pairs."""
    for order in permutations(range(count)):
        at = {launch: place for place, launch in enumerate(order)}
        if all(at[a] < at[b] for a, b in ordered):
            yield order


def serves(order: tuple[int, ...], ordered: Pairs, carried: Pairs, drains: int) -> bool:
    """Whether that many drains can stand so in this order that each pair has one between its launches."""
    count = len(order)
    at = {launch: place for place, launch in enumerate(order)}
    wanted = {_mask(at[a] + 1, at[b]) for a, b in ordered}
    for a, b in carried:
        # From behind a to the end, and from the start to b: all places, when b does not stand before a.
        wanted.add(_mask(at[a] + 1, count - 1) | _mask(0, at[b]))
    places = [1 << place for place in range(count)]
    if drains < 0:
        return False
    return any(all(sum(chosen) & mask for mask in wanted) for chosen in combinations(places, drains))


def _mask(first: int, last: int) -> int:
    return sum(1 << place for place in range(first, last + 1))


def cheaper_acquires(plan: rl.Plan, fences: Fences) -> bool:
    """Whether one acquire packet fewer, K and V in each, is safe behind the same drains."""
    if not fences.acquires:
        return False
    places = [fence.at for fence in fences.inner if fence.drain]
    for chosen in combinations(places, fences.acquires - 1):
        tried = Fences([Fence(at, ("K", "V") if at in chosen else ()) for at in places])
        if is_safe(plan, tried):
            return True
    return False
