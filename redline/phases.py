# SPDX-License-Identifier: Apache-2.0
"""Fences of a plan whose levels are split over lanes, phase by phase.

Between phases every lane waits for all others (rule `phased`), so only visibility is left to derive: a lane acquires
what earlier phases wrote, whoever wrote it, when one of its launches reads it, and nothing but its own acquires counts.
Inside a phase only levels of one launch each stand behind one another, on one lane. Every lane starts cold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .fences import Fence, Fences, acquires_at, classes_of
from .sweep import find_needs

if TYPE_CHECKING:
    from .lanes import Lanes
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class PhaseFences:
    """What stands before and between the launches of one lane in one phase.

    `cold`: the lane begins here, with a drain and a system acquire. `acquire`: the classes of its first acquire
    otherwise. `inner`: fences at positions of this lane's launches.
    """

    cold: bool
    acquire: tuple[str, ...]
    inner: Fences


def derive_phases(plan: Plan, phases: Sequence[Lanes]) -> dict[tuple[int, int], PhaseFences]:
    """The fences of each lane in each phase that it has launches in, by (phase, lane): the fewest acquires, and the
    fewest classes in them.
    """
    made: dict[tuple[int, int], PhaseFences] = {}
    for lane in range(max(map(len, phases))):
        made.update(_of_lane(plan, phases, lane))
    return made


def _of_lane(plan: Plan, phases: Sequence[Lanes], lane: int) -> dict[tuple[int, int], PhaseFences]:
    """All launches in one row, those of the lane first in each phase: what others of the phase write comes behind."""
    order: list[int] = []
    begins: dict[int, int] = {}  # phase -> position of the lane's first launch in it
    for at, phase in enumerate(phases):
        if lane < len(phase) and phase[lane]:
            begins[at] = len(order)
            order += phase[lane]
        order += [launch for other, launches in enumerate(phase) if other != lane for launch in launches]
    own = {launch for phase in begins for launch in phases[phase][lane]}
    first = min(begins.values(), default=0)
    new_level = [at for at in range(1, len(order)) if plan.levels[order[at]] != plan.levels[order[at - 1]]]
    stands = sorted(at for at in {*begins.values(), *new_level} if order[at] in own and at > first)
    bits = dict(zip(stands, _classes(plan, order, stands, own, first), strict=True))
    return {
        (phase, lane): _piece(len(phases[phase][lane]), begin, bits, cold=begin == first)
        for phase, begin in begins.items()
    }


def _classes(plan: Plan, order: list[int], stands: list[int], own: set[int], first: int) -> list[int]:
    """The classes (bits) to acquire at each of these positions, where a drain stands."""
    a = plan.accesses
    needs = find_needs(np.array(order, np.int64), 1, a.starts, a.spans, a.does, a.after_starts, a.after, a.nodes)
    writers = needs[1:].copy()
    writers[:, [launch not in own for launch in order]] = -1
    writers[writers < first] = -1  # what ended before the lane began: its cold entry came behind
    at = np.array(stands, np.int64)
    return [int(bits) for bits in acquires_at(writers, at, np.ones(len(at), np.bool_), 0, loop=False)]


def _piece(count: int, begin: int, bits: dict[int, int], *, cold: bool) -> PhaseFences:
    fences = {at - begin: classes_of(bits[at]) for at in range(begin, begin + count) if at in bits}
    inner = Fences([Fence(at, names) for at, names in fences.items() if at])
    return PhaseFences(cold, () if cold else fences.get(0, ()), inner)
