# SPDX-License-Identifier: Apache-2.0
"""Every small graph, and the cheapest fences by trying all of them: the slow, obvious judges of the derivation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, islice, product
from math import comb
from random import Random
from unittest.mock import patch

import redline as rl
from redline.fences import Fence, Fences, derive
from redline.plan import Plan
from tests.graphs import READERS, Node, build

#: What a launch may do to two bytes of one memory: read none, either or both, write none, either or both.
_RANGES: tuple[tuple[tuple[int, int, int], ...], ...] = ((), ((0, 0, 1),), ((0, 1, 2),), ((0, 0, 2),))
_NODES = tuple(Node(r, w, (), reader) for r in _RANGES for w in _RANGES for reader in ("KV", "V"))


def every_graph(launches: int) -> Iterator[list[Node]]:
    """All graphs of that many launches over two bytes: 32 kinds of launch, in every order."""
    return (list(items) for items in product(_NODES, repeat=launches))


def cheapest(plan: rl.Plan) -> tuple[int, int, int]:
    """(drains, acquire packets, class bits) of the cheapest safe fences for this order, by trying all of them."""
    places = range(1, len(plan.order))
    choices = [(), ("K",), ("V",), ("K", "V")]
    for count in range(len(plan.order)):
        best: tuple[int, int, int] | None = None
        for drains in combinations(places, count):
            for acquires in product(choices, repeat=count):
                fences = Fences(tuple(Fence(at, names) for at, names in zip(drains, acquires, strict=True)))
                cost = (count, sum(bool(names) for names in acquires), sum(map(len, acquires)))
                if (best is None or cost < best) and not rl.verify(plan, fences):
                    best = cost
        if best is not None:
            return best
    raise AssertionError("no fences are safe")


def weaker(fences: Fences) -> Iterator[Fences]:
    """The same fences without one drain, or without one class of one acquire."""
    inner = fences.inner
    for at, fence in enumerate(inner):
        if fence.drain:
            # At the warm entry the acquire alone may stay; elsewhere it stands behind its drain.
            kept = (replace(fence, drain=False),) if fence.at == 0 and fence.acquire else ()
            yield Fences((*inner[:at], *kept, *inner[at + 1 :]))
        for name in fence.acquire:
            rest = replace(fence, acquire=tuple(other for other in fence.acquire if other != name))
            yield Fences((*inner[:at], *([rest] if rest.drain or rest.acquire else []), *inner[at + 1 :]))


def judge(items: list[Node]) -> str:
    """ "" when the graph's fences are safe, irredundant and as cheap as any; else what is wrong."""
    for schedule in ("levels", "record"):
        plan = Plan.of(build(items), schedule=schedule)
        fences = derive(plan)
        if rl.verify(plan, fences):
            return f"{schedule}: not safe"
        if not all(rl.verify(plan, fewer) for fewer in weaker(fences)):
            return f"{schedule}: something can be taken away"
        if (fences.drains, fences.acquires) != cheapest(plan)[:2]:
            return f"{schedule}: cheaper fences are safe"
    return ""


#: (launches, ranges, whether with every set of `after=`): what `make prove` goes through, in full.
FAMILIES = ((1, 3, True), (2, 3, True), (3, 3, True), (4, 2, False))


def small_graphs(launches: int, ranges: int, *, after: bool, first: int = 0, step: int = 1) -> Iterator[list[Node]]:
    """All graphs of that many launches over that many ranges, up to renaming of ranges.

    A range is a column: what each launch does to it, nothing, read, write or both, as base-4 digits. Renaming permutes
    columns, so a graph is a multiset of columns; and for each pair of launches, whether `after=` joins them. A slice
    begins at `first` and takes every `step`th; the others are not made.
    """
    pairs = list(combinations(range(launches), 2))
    masks = range(1 << len(pairs)) if after else (0,)
    every = product(combinations_with_replacement(range(4**launches), ranges), masks)
    for columns, mask in islice(every, first, None, step):
        edges = [pair for bit, pair in enumerate(pairs) if mask >> bit & 1]
        yield small_graph(launches, columns, edges)


def count_small_graphs(launches: int, ranges: int, *, after: bool) -> int:
    """How many these are: multisets of columns, times sets of edges."""
    edges = launches * (launches - 1) // 2
    return comb(4**launches + ranges - 1, ranges) * (1 << edges if after else 1)


def small_graph(launches: int, columns: tuple[int, ...], edges: list[tuple[int, int]]) -> list[Node]:
    """One of them. Reader classes vary with the graph, so that all combinations of them occur."""
    names = sorted(READERS)
    key = sum((at + 1) * column for at, column in enumerate(columns)) + len(edges)
    items = []
    for at in range(launches):
        does = [column >> 2 * at & 3 for column in columns]
        items.append(
            Node(
                reads=tuple((m, 0, 1) for m, what in enumerate(does) if what & 1),
                writes=tuple((m, 0, 1) for m, what in enumerate(does) if what & 2),
                after=tuple(a for a, b in edges if b == at),
                reader=names[key // 3**at % 3],
            )
        )
    return items


def random_graph(random: Random, launches: int, ranges: int) -> list[Node]:
    """One of all graphs of that many launches over that many ranges, `after=` included."""
    edges = [pair for pair in combinations(range(launches), 2) if random.random() < 0.2]
    return small_graph(launches, tuple(random.randrange(4**launches) for _ in range(ranges)), edges)


def judge_small(items: list[Node]) -> str:
    """ "" when fences are safe and irredundant under boundary="host" and "queue"; else what is wrong.

    The check stops at its first finding: nothing here asks for the others.
    """
    graph = build(items)
    with patch("redline.safety.MOST_FINDINGS", 1):
        for boundary in ("host", "queue"):
            plan = Plan.of(graph, boundary=boundary)
            fences = derive(plan)
            if rl.verify(plan, fences):
                return f"{boundary}: not safe"
            if not all(rl.verify(plan, fewer) for fewer in weaker(fences)):
                return f"{boundary}: something can be taken away"
    return ""
