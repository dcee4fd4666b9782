# SPDX-License-Identifier: Apache-2.0
"""Random plans with everything that fences depend on, and random fences for them, from a seeded generator.

Certificates of every kind, `l2_args`, slots, aliases, roles, kinds of memory, `after=`, counts in memory, all
boundaries and schedules. Fences are sometimes the derived ones with something changed, so that many are safe and many
only just are not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import redline as rl
from redline.fences import Fence, Fences, derive
from redline.plan import BOUNDARIES, Plan
from redline.ranges import KINDS, ROLES

FIVE = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
BYTES = 4

_ARGS = (frozenset[int](), frozenset({0}), frozenset({8}))
CERTIFICATES: tuple[rl.Certificate | None, ...] = (
    None,
    *(
        rl.Certificate(reads, scalar_args=scalar, l2_args=l2, kernarg_vector_loads=vector)  # type: ignore[arg-type]
        for reads, scalar in (
            ("vmem_only", _ARGS[0]),
            ("scalar_args", _ARGS[0]),
            ("scalar_args", _ARGS[1]),
            ("scalar_or_unknown", _ARGS[0]),
        )
        for l2 in _ARGS
        for vector in (False, True)
    ),
)


@cache
def _kernel(pointers: int, scalars: int, certificate: rl.Certificate | None, target: str) -> rl.Kernel:
    kernel = rl.Kernel.synthetic("k", pointers=pointers, scalars=(4,) * scalars, target=target)
    return replace(kernel, certificate=certificate)


def random_graph(
    random: Random,
    target: str = "gfx1201",
    kinds: tuple[str, ...] = KINDS,
    *,
    launches: int = 5,
    nbytes: int = BYTES,
    longest: int = BYTES,
) -> rl.Graph:
    """One to `launches` launches over three tiny buffers of `nbytes`, an alias and workgroup counts.

    Ranges have at most `longest` bytes, the three dwords of counts aside.
    """
    graph = rl.Graph()
    made = [
        graph.buffer(f"m{i}", nbytes, role=random.choice(ROLES), kind=random.choice(kinds))  # type: ignore[arg-type]
        for i in range(3)
    ]
    made.append(graph.buffer("alias", nbytes // 2, alias_of=made[random.randrange(3)][1:nbytes]))
    counts = graph.buffer("counts", 12, role=random.choice(ROLES), kind=random.choice(kinds))  # type: ignore[arg-type]
    made.append(counts)
    recorded: list[rl.Launch] = []
    for _ in range(random.randrange(1, launches + 1)):
        args: list[Any] = [_access(random, graph, random.choice(made), longest) for _ in range(random.randrange(3))]
        slots = int(random.random() < 0.3)
        kernel = _kernel(len(args), slots, random.choice(CERTIFICATES), target)
        args += [rl.slot("s", "i4", default=0)] * slots
        extra = [_access(random, graph, random.choice(made), longest)] if random.random() < 0.2 else []
        after = [random.choice(recorded)] if recorded and random.random() < 0.2 else []
        grid: Any = rl.read(counts) if random.random() < 0.2 else 1
        recorded.append(graph.launch(kernel, grid=grid, block=1, args=args, accesses=extra, after=after))
    return graph


def _access(random: Random, graph: rl.Graph, buffer: Any, longest: int) -> Any:
    start = random.randrange(buffer.nbytes)
    view = buffer[start : random.randrange(start, min(start + longest, buffer.nbytes)) + 1]
    only_read = graph.buffers[buffer.root].role == "in"
    return rl.read(view) if only_read else random.choice((rl.read, rl.write, rl.update))(view)


def random_plan(random: Random, target: str = "gfx1201", kinds: tuple[str, ...] = KINDS) -> rl.Plan:
    """A plan of such a graph."""
    graph = random_graph(random, target, kinds)
    return Plan.of(graph, boundary=random.choice(BOUNDARIES), schedule=random.choice(("levels", "record")))


def shuffled(random: Random, plan: rl.Plan) -> rl.Plan:
    """The same plan in an order of no regard for its edges."""
    return replace(plan, order=tuple(random.sample(plan.order, len(plan.order))))


def random_fences(random: Random, plan: rl.Plan) -> Fences:
    """The derived fences, these with one thing changed, or any: legal for the plan whatever they protect."""
    first = 0 if plan.boundary != "host" else 1
    whole = dict.fromkeys(range(first, len(plan.order)), Fence(0, ("K", "V")))
    kept = {fence.at: fence for fence in derive(plan).inner} if random.random() < 0.7 else whole
    if random.random() < 0.7 and kept:
        at = random.choice(sorted(kept))
        kept[at] = _changed(random, at)
    elif random.random() < 0.5:
        kept = {at: _changed(random, at) for at in range(first, len(plan.order))}
    made = [replace(fence, at=at) for at, fence in sorted(kept.items()) if fence.drain or (not at and fence.acquire)]
    entry = "" if random.random() < 0.15 else "cold-entry"
    return Fences(made, entry_rule=entry, exit_rule="" if random.random() < 0.15 else "host-exit")


def _changed(random: Random, at: int) -> Fence:
    acquire = random.choice(((), ("K",), ("V",), ("K", "V"), ("K", "V")))
    return Fence(at, acquire, drain=random.random() < 0.7)
