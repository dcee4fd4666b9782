# SPDX-License-Identifier: Apache-2.0
"""A case under judgement: its plan, program and sequential outcome, and whether a run on the hostile machine differs.

What an oracle asks of them is `oracles.py`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import redline as rl
from redline.fences import Fences
from redline_fuzz.cases import Case, Touch, record
from redline_fuzz.reference import Outcome, expect, place_of
from redline_fuzz.schedules import Schedule, schedules
from redline_fuzz.stage import Stage

#: The fewest adversarial schedules that an example is run under to be called safe.
LEAST_SCHEDULES = 64


@dataclass
class Tally:
    """What was done: examples, schedules, and of each oracle how often it judged, mutants it tried and noticed.

    `passed_over`: cases that the oracle was given and could not judge.
    """

    examples: int = 0
    schedules: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Sum up what another process did."""
        self.examples += other.examples
        self.schedules += other.schedules
        for name in ("judged", "passed_over", "tried", "killed"):
            getattr(self, name).update(getattr(other, name))


class Judged:
    """A case with everything that oracles ask for, made when it is asked for."""

    def __init__(self, case: Case, tally: Tally) -> None:
        self.case, self.tally = case, tally

    @cached_property
    def plan(self) -> rl.Plan:
        return rl.Plan.of(
            record(self.case), boundary=self.case.boundary, schedule=self.case.schedule, fences=self.case.fences
        )

    @cached_property
    def fences(self) -> Fences:
        return self.plan.fences

    def lower(self, fences: Fences) -> rl.Program:
        """The plan with these fences as words."""
        return rl.lower(self.plan, fences, gfx10_wait=self.case.gfx10_wait, elide=self.case.elide)

    @cached_property
    def expected(self) -> Outcome:
        return expect(self.case, self.plan.order)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Places of a replay that conflict or are ordered by `after=`; both ways round where replays repeat them."""
        found = list(conflicts(self.case))
        found += [(first, at) for at, node in enumerate(self.case.nodes) for first in node.after]
        places = {index: place for place, index in enumerate(self.plan.order)}
        made = dict.fromkeys((places[a], places[b]) for a, b in found)
        if self.case.boundary != "host":
            made.update(dict.fromkeys((b, a) for a, b in tuple(made)))
            made.update(dict.fromkeys((a, a) for a in sorted({place for pair in made for place in pair})))
        return list(made)

    def with_between(self, case: Case) -> Judged:
        """The same plan with other things happening between replays."""
        other = Judged(case, self.tally)
        other.__dict__.update({name: self.__dict__[name] for name in ("plan", "fences") if name in self.__dict__})
        return other

    def difference(self, fences: Fences, least: int = LEAST_SCHEDULES) -> str:
        """ "" when every schedule ends as the launches one after another do; else what differs under which."""
        return self.difference_of(self.lower(fences), least)

    def difference_of(self, program: rl.Program, least: int = LEAST_SCHEDULES) -> str:
        """The same for words that may have been changed."""
        with Stage(self.case, self.plan, program) as stage:
            for schedule in self._schedules(stage, least):
                self.tally.schedules += 1
                found = self.compare(stage.run(schedule))
                if found:
                    return f"{found}; under {schedule}"
        return ""

    def shows(self, fences: Fences, least: int = LEAST_SCHEDULES) -> str:
        """The same, with other data before it says "": one stale byte in 256 happens to be the right one."""
        for extra in (0, 1009, 2003):
            other = self.with_between(replace(self.case, seed=self.case.seed + extra))
            found = other.difference(fences, least)
            if found:
                return found
        return ""

    def _schedules(self, stage: Stage, least: int) -> Iterator[Schedule]:
        """The two worst first, and how wide the run is decides how many orders there are."""
        worst = Schedule("oldest", reverse=True)
        yield worst
        widest = stage.run(Schedule("newest", reverse=True)).widest
        chosen = schedules(self.pairs, widest, least, self.case.seed)
        yield from (schedule for schedule in chosen if schedule != worst)

    def compare(self, got: Outcome) -> str:
        """What a user could observe of a run that is not as it should be."""
        wanted, count = self.expected, len(self.case.nodes)
        if got.faults:
            return got.faults[0]
        for ordinal, seen in sorted(wanted.seen.items()):
            if got.seen.get(ordinal) != seen:
                who = f"#{self.plan.order[ordinal % count]} of replay {ordinal // count}"
                return f"{who} saw {got.seen.get(ordinal)}, not {seen}"
        for what in ("host", "stores"):
            if getattr(got, what) != getattr(wanted, what):
                return f"{what}: {getattr(got, what)}, not {getattr(wanted, what)}"
        for place, at in wanted.stores:  # what no launch stored and nobody read is nobody's business
            if got.memory[place][at] != wanted.memory[place][at]:
                return f"byte {at} of memory {place[0]} ends as {got.memory[place][at]}, not {wanted.memory[place][at]}"
        return self._overtaken(got)

    def _overtaken(self, got: Outcome) -> str:
        """`after=` orders launches that touch nothing in common; only who ended first shows it."""
        count, at = len(self.case.nodes), {ordinal: place for place, ordinal in enumerate(got.ran)}
        places = {index: place for place, index in enumerate(self.plan.order)}
        for second, node in enumerate(self.case.nodes):
            for first in node.after:
                for start in range(0, count * (len(self.case.between) + 1), count):
                    if at[start + places[first]] > at[start + places[second]]:
                        return f"#{second} ran before #{first}, which it is recorded after="
        return ""


def conflicts(case: Case) -> Iterator[tuple[int, int]]:
    """Recorded indices (a, b), a first, of launches that touch a byte in common that one of them writes."""
    touched = [_bytes_of(case, at) for at in range(len(case.nodes))]
    for b, (reads_b, writes_b) in enumerate(touched):
        for a, (reads_a, writes_a) in enumerate(touched[:b]):
            if writes_a & (reads_b | writes_b) or reads_a & writes_b:
                yield a, b


def _bytes_of(case: Case, at: int) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The bytes that a launch reads, and those that it writes."""
    node = case.nodes[at]
    touches: Sequence[Touch] = (*node.touches, *node.extra)
    if node.counts is not None:
        touches = (*touches, Touch(node.counts, 0, 12, "read"))
    found: tuple[set[tuple[int, int]], set[tuple[int, int]]] = set(), set()
    for touch in touches:
        spots = {place_of(case, touch.memory, spot) for spot in range(touch.start, touch.stop)}
        if touch.reads:
            found[0].update(spots)
        if touch.writes:
            found[1].update(spots)
    return found


def longest_chain(case: Case) -> int:
    """Edges of the longest chain of launches that must wait for one another."""
    depth = [0] * len(case.nodes)
    edges = [*conflicts(case), *((first, at) for at, node in enumerate(case.nodes) for first in node.after)]
    for first, second in sorted(edges, key=lambda edge: edge[1]):
        depth[second] = max(depth[second], depth[first] + 1)
    return max(depth)


def on_target(case: Case, target: str) -> Case:
    """The same case for another GPU."""
    return replace(case, target=target)
