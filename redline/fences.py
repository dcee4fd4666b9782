# SPDX-License-Identifier: Apache-2.0
"""Derive the drains and acquires that a plan needs, each with its reasons.

Order and visibility are two facts, kept apart: a *drain* makes later launches wait for earlier ones, an *acquire* makes
what drained launches wrote visible through a cache that nothing keeps coherent (K scalar, V vector). Read-after-write
needs both; write-after-read and write-after-write need only the drain.

Knows caches by class, never a family's bits: `program.py` asks the family for those. `safety.py` checks the result
without sharing any of this.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .errors import HazardError
from .hazards import CLASSES, Hazard

if TYPE_CHECKING:
    from .plan import Plan

#: Rules that keep a fence without a hazard as its reason; `explain` prints them by name.
RULES: Final = {
    "cold-entry": "anything may have touched memory before: drain, then invalidate every cache at system scope",
    "host-exit": "the host reads the results: drain, then write back at system scope",
    "full": 'fences="full" was asked for',
    "ib-scope": "the AQL header 0x1500 asks for system scope too; whether it covers an indirect buffer is undocumented",
    "glm-convention": "GLM bits go with GL2 bits by convention of the drivers; buffers do not need them",
}


@dataclass(frozen=True, slots=True)
class Fence:
    """What stands before position `at` of the emitted order: always a drain, and an acquire of the classes named.

    `waits` are the (first, second) launches that the drain separates and no other drain does; `shows` are the hazards
    that each acquired class makes visible.
    """

    at: int
    acquire: tuple[str, ...] = ()
    waits: tuple[tuple[int, int], ...] = ()
    shows: tuple[tuple[str, Hazard], ...] = ()
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Fences:
    """Entry (drain, system acquire), the fences inside in emitted order, and exit (drain, system release)."""

    inner: tuple[Fence, ...]
    entry_rule: str = field(default="cold-entry")
    exit_rule: str = field(default="host-exit")

    def __post_init__(self) -> None:
        places = [fence.at for fence in self.inner]
        whole = all(isinstance(at, int) and not isinstance(at, bool) and at >= 1 for at in places)
        if not whole or places != sorted(set(places)):
            raise HazardError(
                "RL0202",
                where="Fences",
                seen=f"fences before positions {places}",
                allowed="positions from 1 on, each once, in order",
                do="join the classes of fences at one position",
            )

    @property
    def drains(self) -> int:
        """Drains between launches; entry and exit are not counted."""
        return len(self.inner)

    @property
    def acquires(self) -> int:
        """Acquire packets between launches; entry is not counted."""
        return sum(bool(fence.acquire) for fence in self.inner)


def derive(plan: Plan) -> Fences:
    """The fewest drains for the plan's order, then the fewest acquire packets, then the fewest classes in them."""
    if plan.fence_mode == "full":
        return Fences(tuple(Fence(at, CLASSES, rule="full") for at in range(1, len(plan.order))))
    position = {launch: at for at, launch in enumerate(plan.order)}
    drains = _drains(plan, position)
    waits = _waits(plan, position, drains)
    shows = _acquires(plan.hazards, position, drains)
    return Fences(
        tuple(
            Fence(
                at,
                tuple(name for name in CLASSES if (at, name) in shows),
                waits[at],
                tuple((name, hazard) for name in CLASSES for hazard in shows.get((at, name), ())),
            )
            for at in drains
        )
    )


def _drains(plan: Plan, position: dict[int, int]) -> list[int]:
    """Positions before which a drain stands: where a launch needs one that has not drained yet."""
    needed: dict[int, int] = {}
    for first, second in plan.edges:
        needed[position[second]] = max(needed.get(position[second], -1), position[first])
    drains: list[int] = []
    undrained_from = 0
    for at in range(len(plan.order)):
        if needed.get(at, -1) >= undrained_from:
            drains.append(at)
            undrained_from = at
    return drains


def _waits(plan: Plan, position: dict[int, int], drains: Sequence[int]) -> dict[int, tuple[tuple[int, int], ...]]:
    """For each drain, the edges that cross it and no other."""
    waits: dict[int, list[tuple[int, int]]] = {at: [] for at in drains}
    for first, second in plan.edges:
        before, after = bisect_right(drains, position[first]), bisect_right(drains, position[second])
        if after - before == 1:
            waits[drains[before]].append((first, second))
    return {at: tuple(edges) for at, edges in waits.items()}


def _acquires(
    hazards: Iterable[Hazard], position: dict[int, int], drains: Sequence[int]
) -> dict[tuple[int, str], list[Hazard]]:
    """(position, class) -> the hazards that this acquire makes visible.

    A value written by `first` and read by `second` through a class needs an acquire of it at one of the drains between
    them. One greedy pass over all classes together finds the fewest points; a second gives each class the latest of
    these points that serves it.
    """
    spans = [
        (bisect_right(drains, position[h.second]) - 1, bisect_right(drains, position[h.first]), name, h)
        for h in hazards
        for name in h.reads
    ]
    spans.sort(key=lambda span: (span[0], span[1]))
    points = _stab((low, high) for high, low, _, _ in spans)
    placed: dict[tuple[int, str], list[Hazard]] = {}
    latest = dict.fromkeys(CLASSES, -1)
    for high, low, name, hazard in spans:
        if latest[name] < low:
            latest[name] = points[bisect_right(points, high) - 1]
        placed.setdefault((drains[latest[name]], name), []).append(hazard)
    return placed


def _stab(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The fewest points such that each (low, high) holds one; spans come sorted by high."""
    points: list[int] = []
    for low, high in spans:
        if not points or points[-1] < low:
            points.append(high)
    return points
