# SPDX-License-Identifier: Apache-2.0
"""The definition of safe, word for word, over all pairs of launches: the slow, obvious judge of `verify` and `derive`.

Works byte by byte on sets, so that it shares nothing with segments, trees or intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import redline as rl
from redline.accesses import read_classes
from redline.fences import Fences
from redline.launch import INDIRECT

Place = tuple[int, int]  # (replay, position in the order)


def is_safe(plan: rl.Plan, fences: Fences) -> bool:
    """Whether every pair of launches is ordered and visible, two replays long where replays stand back to back."""
    replays = 1 if plan.boundary == "host" else 2
    places = [(replay, at) for replay in range(replays) for at in range(len(plan.order))]
    fence = {f.at: f for f in fences.inner}
    if any(not _pair_is_safe(plan, fence, a, b) for a, b in combinations(places, 2)):
        return False
    return _outside_is_safe(plan, fence)


def _pair_is_safe(plan: rl.Plan, fence: dict[int, rl.Fence], first: Place, second: Place) -> bool:
    a, b = plan.launches[plan.order[first[1]]], plan.launches[plan.order[second[1]]]
    same_replay = first[0] == second[0]
    between = [f for place, f in _gaps(fence, second) if first < place]
    drained = any(f.drain for f in between)
    must = _conflict(plan, a, b) or (same_replay and a.index in b.after)
    if must and (not drained or (same_replay and a.index > b.index)):
        return False
    if same_replay and b.index in a.after:
        return False
    behind = list(between)
    while behind and not behind[0].drain:
        behind.pop(0)
    return all(any(name in f.acquire for f in behind) for name in _classes(plan, a, b))


def _gaps(fence: dict[int, rl.Fence], until: Place) -> Iterator[tuple[Place, rl.Fence]]:
    """Every fence that stands before a place, in submission order: before its launch, so at the same place."""
    count = 1 + max((*fence, until[1]))
    for replay in range(until[0] + 1):
        for at in range(count):
            if (replay, at) <= until and at in fence and (at or replay):
                yield (replay, at), fence[at]


def _bytes(plan: rl.Plan, touch: object) -> set[tuple[int, int]]:
    buffer = plan.buffers[touch.buffer]  # type: ignore[attr-defined]
    start, stop = touch.start, touch.stop  # type: ignore[attr-defined]
    return {(buffer.root, buffer.root_offset + at) for at in range(start, stop)}


def _conflict(plan: rl.Plan, a: rl.Launch, b: rl.Launch) -> bool:
    return any((x.writes or y.writes) and _bytes(plan, x) & _bytes(plan, y) for x in a.touches for y in b.touches)


def _classes(plan: rl.Plan, a: rl.Launch, b: rl.Launch) -> set[str]:
    """The classes through which b reads a byte that a writes."""
    found: set[str] = set()
    for x in a.touches:
        for y in b.touches:
            if x.writes and not y.writes and _bytes(plan, x) & _bytes(plan, y):
                if y.argument == INDIRECT:
                    found |= {"P"} if b.indirect is not None and b.indirect.past_l2 else set()
                    continue
                c = b.kernel.certificate
                if c is None or y.argument is None or c.reads == "scalar_or_unknown":
                    found |= {"K", "V"} if c is None or y.argument not in c.l2_args else set()
                elif y.argument not in c.l2_args:
                    found |= {"K", "V"} if c.reads == "scalar_args" and y.argument in c.scalar_args else {"V"}
    return found


def _outside_is_safe(plan: rl.Plan, fence: dict[int, rl.Fence]) -> bool:
    """Patched arguments and other queues need an acquire, and other queues a drain, between two replays."""
    if plan.boundary == "host":
        return True
    entry: set[str] = set()
    drained = False
    for at, index in enumerate(plan.order):
        if at in fence:
            entry |= set(fence[at].acquire)
            drained = drained or fence[at].drain
        launch = plan.launches[index]
        certified = launch.kernel.certificate
        through = {"K"} if certified is not None and not certified.kernarg_vector_loads else {"K", "V"}
        if launch.slots and not through <= entry:
            return False
        if plan.boundary == "other-queue" and not _sees_others(plan, launch, fence, at):
            return False
    return True


def _sees_others(plan: rl.Plan, launch: rl.Launch, fence: dict[int, rl.Fence], at: int) -> bool:
    outside = [t for t in launch.touches if plan.buffers[plan.buffers[t.buffer].root].role != "internal"]
    written = {
        spot
        for other in plan.launches
        if plan.order.index(other.index) < at
        for t in other.touches
        if t.writes
        for spot in _bytes(plan, t)
    }
    before = [f for place, f in sorted(fence.items()) if place <= at]
    while before and not before[0].drain:
        before.pop(0)
    if outside and not before:
        return False
    for touch in outside:
        if not touch.writes and _bytes(plan, touch) - written:
            needed = set(read_classes(launch.kernel, touch.argument))
            if any(all(name not in f.acquire for f in before) for name in needed):
                return False
    return True
