# SPDX-License-Identifier: Apache-2.0
"""Why each fence of a plan stands where it does: the pairs of launches behind it, found on demand.

Prints nothing and decides nothing: `fences.py` placed the fences without looking at pairs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .accesses import CLASSES
from .fences import Fence
from .hazards import Hazard

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(slots=True)
class Reasons:
    """Behind one fence: conflicts that it alone orders, `after=` pairs that it alone orders, and by class the reads to
    which it alone shows what was written. Without the fence exactly these go wrong.
    """

    fence: Fence
    waits: list[Hazard] = field(default_factory=list)
    after: list[tuple[int, int]] = field(default_factory=list)
    shows: dict[str, list[Hazard]] = field(default_factory=dict)


def reasons(plan: Plan) -> list[Reasons]:
    """One for each fence of `plan.fences.inner`, in the same order."""
    found = [Reasons(fence) for fence in plan.fences.inner]
    timeline = _Timeline(plan)
    for hazard in (*plan.hazards, *plan.carried):
        between = timeline.drains_between(hazard.first, hazard.second, carried=hazard.carried)
        if len(between) == 1:
            found[between[0]].waits.append(hazard)
        for name in hazard.reads:
            serving = timeline.acquires_between(hazard, name)
            if len(serving) == 1:
                found[serving[0]].shows.setdefault(name, []).append(hazard)
    for launch in plan.launches:
        for first in launch.after:
            between = timeline.drains_between(first, launch.index, carried=False)
            if len(between) == 1:
                found[between[0]].after.append((first, launch.index))
    return found


class _Timeline:
    """Fences by the time they stand at: positions of two replays in a row."""

    def __init__(self, plan: Plan) -> None:
        self.count = len(plan.order)
        self.position = {launch: at for at, launch in enumerate(plan.order)}
        inner = plan.fences.inner
        turns = range(2 if plan.boundary != "host" else 1)
        self.fences = [(turn * self.count + f.at, index, f) for turn in turns for index, f in enumerate(inner)]
        self.drains = [(time, index) for time, index, fence in self.fences if fence.drain]
        self.acquires = {
            name: [(time, index) for time, index, fence in self.fences if name in fence.acquire] for name in CLASSES
        }

    def times(self, first: int, second: int, *, carried: bool) -> tuple[int, int]:
        return self.position[first], self.position[second] + (self.count if carried else 0)

    def drains_between(self, first: int, second: int, *, carried: bool) -> list[int]:
        """Indices of the drains between two launches; two are enough to know."""
        a, b = self.times(first, second, carried=carried)
        begin = bisect_right(self.drains, (a, self.count))
        return [index for time, index in self.drains[begin : begin + 2] if time <= b]

    def acquires_between(self, hazard: Hazard, name: str) -> list[int]:
        """Indices of the acquires of a class behind the first drain after a write and before its read; two are enough
        to know.
        """
        a, b = self.times(hazard.first, hazard.second, carried=hazard.carried)
        drained = self.drains[bisect_right(self.drains, (a, self.count))][0]
        begin = bisect_left(self.acquires[name], (drained, -1))
        return [index for time, index in self.acquires[name][begin : begin + 2] if time <= b]
