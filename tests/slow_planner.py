# SPDX-License-Identifier: Apache-2.0
"""Levels, needs, drains and acquires of a plan by plain loops over all pairs of launches: the oracle of the sweeps.

Works on sets of bytes, and shares no code with the planner but the data types. Slow on purpose: one glance must be
enough to believe it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import redline as rl
from tests.pairwise import bytes_of, classes_of

Interval = tuple[int, int]
Byte = tuple[int, int]


class SlowPlanner:
    """What a plan's columns must be, for its launches, boundary and, for needs and fences, its order."""

    def __init__(self, plan: rl.Plan) -> None:
        self.plan, self.count = plan, len(plan.launches)
        self.reads: list[set[Byte]] = [set() for _ in plan.launches]
        self.writes: list[set[Byte]] = [set() for _ in plan.launches]
        self.reads_through: list[dict[str, set[Byte]]] = [{c: set() for c in "KVP"} for _ in plan.launches]
        for launch in plan.launches:
            for touch in launch.touches:
                bytes_ = bytes_of(plan, touch)
                (self.writes if touch.writes else self.reads)[launch.index].update(bytes_)
                for name in () if touch.writes else classes_of(launch, touch):
                    self.reads_through[launch.index][name] |= bytes_

    def conflict(self, a: int, b: int) -> bool:
        """Both touch a byte, and one of them writes it."""
        return bool(self.writes[a] & self.writes[b] or self.writes[a] & self.reads[b] or self.reads[a] & self.writes[b])

    def depths(self, at_least: Sequence[int]) -> list[int]:
        """One more than the deepest earlier launch that a launch conflicts with or is recorded after."""
        found: list[int] = []
        for b, launch in enumerate(self.plan.launches):
            before = [found[a] + 1 for a in range(b) if a in launch.after or self.conflict(a, b)]
            found.append(max([at_least[b], *before]))
        return found

    def unordered(self) -> list[tuple[int, int]]:
        """Pairs that conflict and that no chain of `after=` joins."""
        before: list[set[int]] = []
        for launch in self.plan.launches:
            before.append(set(launch.after).union(*(before[a] for a in launch.after)))
        pairs = ((a, b) for b in range(self.count) for a in range(b))
        return sorted((a, b) for a, b in pairs if self.conflict(a, b) and a not in before[b])

    @cached_property
    def levels(self) -> list[int]:
        """Depths; in a loop, first launches that conflict with last ones one level later, while that adds none."""
        at_least = [0] * self.count
        depths = self.depths(at_least)
        if self.plan.boundary != "queue" or self.plan.schedule != "levels":
            return depths
        moved = depths
        while True:
            last = [b for b in range(self.count) if moved[b] == max(depths)]
            early = [a for a in range(self.count) if moved[a] == 0 and any(self.conflict(a, b) for b in last)]
            if not early:
                return moved
            for a in early:
                at_least[a] = 1
            moved = self.depths(at_least)
            if max(moved) > max(depths):
                return depths

    @property
    def order(self) -> list[int]:
        """By level, then as recorded; or as recorded."""
        if self.plan.schedule == "record":
            return list(range(self.count))
        return sorted(range(self.count), key=lambda index: (self.levels[index], index))

    def needs(self, rounds: int) -> list[list[int]]:
        """For each position of the last round: the latest time it waits for, and reads of through K, V and P."""
        order, n = self.plan.order, self.count
        rows: list[list[int]] = [[], [], [], []]
        for time in range((rounds - 1) * n, rounds * n):
            b = order[time % n]
            earlier = [(t, order[t % n]) for t in range(time)]
            after = [t for t, a in earlier if t // n == time // n and a in self.plan.launches[b].after]
            rows[0].append(max([-1, *after, *(t for t, a in earlier if self.conflict(a, b))]))
            for row, name in enumerate("KVP", 1):
                through = self.reads_through[b][name]
                rows[row].append(max([-1, *(t for t, a in earlier if self.writes[a] & through)]))
        return rows

    def drains(self) -> list[int]:
        """Positions of one replay: a drain where a launch must wait for one that no drain has waited for yet."""
        waits, open_since = self.needs(1)[0], 0
        found = [0] if self.plan.boundary == "other-queue" else []
        for at in range(self.count):
            if waits[at] >= open_since:
                found.append(at)
                open_since = at
        return found

    def acquires(self, drains: Sequence[int]) -> dict[int, set[str]]:
        """Position -> classes, for one replay: fewest packets first, each as late as possible, then fewest classes."""
        forced = [0] if self.plan.boundary == "other-queue" else []
        rows = dict(zip("KVP", self.needs(1)[1:], strict=True))
        wanted: list[tuple[int, int, str]] = []
        for at in range(self.count):
            for name, row in rows.items():
                if row[at] >= 0:
                    wanted.append((min(d for d in drains if d > row[at]), at, name))
        packets = sorted({*forced, *_latest([(low, high) for low, high, _ in wanted], drains)})
        reads_p = any(through["P"] for through in self.reads_through)
        found: dict[int, set[str]] = {at: set("KVP" if reads_p else "KV") for at in forced}
        for name in rows:
            for at in _latest([(low, high) for low, high, asked in wanted if asked == name], packets):
                found.setdefault(at, set()).add(name)
        return found


def _latest(intervals: Iterable[Interval], places: Sequence[int]) -> list[int]:
    """An interval, by its end, that holds no chosen place yet takes the last place in it."""
    chosen: list[int] = []
    for low, high in sorted(intervals, key=lambda interval: interval[1]):
        if not any(low <= at <= high for at in chosen):
            chosen.append(max(at for at in places if low <= at <= high))
    return chosen


def fewest_on_circle(intervals: Sequence[Interval], points: int, forced: int) -> int:
    """How many of `points` numbers on a circle serve all intervals, `forced` (or -1) among them: tries all."""
    masks = [sum(1 << at for at in {at % points for at in range(low, high + 1)}) for low, high in intervals]
    must = 0 if forced < 0 else 1 << forced
    sets = (chosen for chosen in range(1 << points) if chosen & must == must and all(chosen & mask for mask in masks))
    return min(chosen.bit_count() for chosen in sets)
