# SPDX-License-Identifier: Apache-2.0
"""Every small graph, and the cheapest fences by trying all of them: the slow, obvious judges of the derivation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import redline as rl
from redline.fences import Fence, Fences
from tests.graphs import Node, build

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
        plan = build(items).compile(schedule=schedule)
        fences = plan.fences
        if rl.verify(plan, fences):
            return f"{schedule}: not safe"
        if not all(rl.verify(plan, fewer) for fewer in weaker(fences)):
            return f"{schedule}: something can be taken away"
        if (fences.drains, fences.acquires) != cheapest(plan)[:2]:
            return f"{schedule}: cheaper fences are safe"
    return ""
