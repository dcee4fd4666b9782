# SPDX-License-Identifier: Apache-2.0
"""The definition of safe, word for word, over all pairs of launches: the slow, obvious judge of `verify` and `derive`.

Works byte by byte on sets, so that it shares nothing with segments, trees or intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import redline as rl
from redline.fences import Fences
from redline.launch import INDIRECT, Touch

Place = tuple[int, int]  # (replay, position in the order)


def is_safe(plan: rl.Plan, fences: Fences) -> bool:
    """Whether every pair of launches is ordered and visible, two replays long where replays stand back to back."""
    replays = 1 if plan.boundary == "host" else 2
    places = [(replay, at) for replay in range(replays) for at in range(len(plan.order))]
    fence = {f.at: f for f in fences.inner}
    if any(not _pair_is_safe(plan, fence, a, b) for a, b in combinations(places, 2)):
        return False
    return _outside_is_safe(plan, fence) and _host_is_safe(plan, fences, fence, places)


#: Kinds of memory that GL2 may hold on some family, so that the host needs its write-back and invalidation.
_CACHED_IN_L2 = ("device", "host", "fine")


def _host_is_safe(plan: rl.Plan, fences: Fences, fence: dict[int, rl.Fence], places: list[Place]) -> bool:
    """The host is a launch before the entry that writes each in and inout buffer, and one behind the exit that reads
    each out and inout buffer. The cold entry and the release serve it; without them the fences must.
    """
    if not fences.entry_rule:
        return False  # nothing else invalidates the instruction cache, and code is the host's
    for at, place in enumerate(places):
        launch = plan.launches[plan.order[place[1]]]
        if not fences.exit_rule and not any(p > place and f.drain for p, f in _gaps(fence, places[-1])):
            return False  # whoever observes the end may free or rewrite anything
        for touch in launch.touches:
            root = plan.buffers[plan.buffers[touch.buffer].root]
            if touch.writes and root.role in ("out", "inout") and not fences.exit_rule:
                behind = [f for p, f in _gaps(fence, places[-1]) if p > place]
                while behind and not behind[0].drain:
                    behind.pop(0)
                # What the command processor is shown past GL2, the host sees too.
                served = any("P" in f.acquire for f in behind) if root.kind in _CACHED_IN_L2 else bool(behind)
                if not served and not _overwritten(plan, places[at + 1 :], touch):
                    return False
    return True


def _overwritten(plan: rl.Plan, later: list[Place], touch: Touch) -> bool:
    """Whether later launches write all these bytes again: then it is their drain that the host waits for."""
    left = bytes_of(plan, touch)
    for _, at in later:
        for other in plan.launches[plan.order[at]].touches:
            left -= bytes_of(plan, other) if other.writes else set()
    return not left


def _pair_is_safe(plan: rl.Plan, fence: dict[int, rl.Fence], first: Place, second: Place) -> bool:
    a, b = plan.launches[plan.order[first[1]]], plan.launches[plan.order[second[1]]]
    same_replay = first[0] == second[0]
    between = [f for place, f in _gaps(fence, second) if first < place]
    drained = any(f.drain for f in between)
    must = conflict(plan, a, b) or (same_replay and a.index in b.after)
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


def bytes_of(plan: rl.Plan, touch: Touch) -> set[tuple[int, int]]:
    """The bytes of an access as (memory, offset): aliases name the same ones."""
    buffer = plan.buffers[touch.buffer]
    return {(buffer.root, buffer.root_offset + at) for at in range(touch.start, touch.stop)}


def conflict(plan: rl.Plan, a: rl.Launch, b: rl.Launch) -> bool:
    """Whether one of the launches writes a byte that the other touches."""
    return any((x.writes or y.writes) and bytes_of(plan, x) & bytes_of(plan, y) for x in a.touches for y in b.touches)


def _classes(plan: rl.Plan, a: rl.Launch, b: rl.Launch) -> set[str]:
    """The classes through which b reads a byte that a writes."""
    found: set[str] = set()
    for x in a.touches:
        for y in b.touches:
            if x.writes and not y.writes and bytes_of(plan, x) & bytes_of(plan, y):
                found |= classes_of(b, y)
    return found


def classes_of(launch: rl.Launch, touch: Touch) -> set[str]:
    """The classes through which a launch reads an access, from its kernel's certificate."""
    certificate, argument = launch.kernel.certificate, touch.argument
    if argument == INDIRECT:
        return {"P"} if launch.indirect is not None and launch.indirect.past_l2 else set()
    if certificate is None or argument is None:
        return {"K", "V"}
    if argument in certificate.l2_args:
        return set()
    scalar = certificate.reads == "scalar_or_unknown" or (
        certificate.reads == "scalar_args" and argument in certificate.scalar_args
    )
    return {"K", "V"} if scalar else {"V"}


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
        for spot in bytes_of(plan, t)
    }
    before = [f for place, f in sorted(fence.items()) if place <= at]
    while before and not before[0].drain:
        before.pop(0)
    if outside and not before:
        return False
    for touch in outside:
        if not touch.writes and bytes_of(plan, touch) - written:
            needed = classes_of(launch, touch)
            if any(all(name not in f.acquire for f in before) for name in needed):
                return False
    return True
