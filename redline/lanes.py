# SPDX-License-Identifier: Apache-2.0
"""Which queue each launch of a plan runs on: lanes of independent components, lanes of chains, and phases.

Launches that no conflict and no `after=` joins need not know of one another. Decides no fence, no wait and no packet:
`fences.py` derives for a lane as for a plan, `aql_lanes.py` says who waits for whom.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from .errors import RecordError
from .sweep import WRITES

if TYPE_CHECKING:
    from .plan import Plan

#: Explicit counts of queues for indirect buffers; AQL packets may go to any number up to MOST_LANES.
MOST_QUEUES: Final = 4
MOST_LANES: Final = 64

#: What queues="auto" takes, by the first letters of the target: more timed out on gfx1100, gfx10 was never measured.
_AUTO: Final = {"gfx1100": 2, "gfx12": 2, "gfx11": 4}

#: Recorded indices of each lane, in emitted order; no lane is empty.
Lanes = tuple[tuple[int, ...], ...]

Queues = int | str | Sequence[int]


def queue_cap(target: str) -> int:
    """How many queues "auto" takes at most on this target."""
    return next((cap for name, cap in _AUTO.items() if target.startswith(name)), 1)


def asked(plan: Plan, queues: Queues, most: int) -> int | tuple[int, ...]:
    """`queues=` as a number of queues, or as a lane for each launch, by recorded index.

    Raises RecordError for another number than "auto" or 1 to `most`, and for a list that is no lane for each launch or
    has more than `most` lanes.
    """
    if isinstance(queues, str) and queues == "auto":
        return queue_cap(plan.target)
    number, lanes = _ints(queues)
    if number is not None and 1 <= number <= most:
        return number
    fits = lanes is not None and len(lanes) == len(plan.launches) and min(lanes) >= 0 and max(lanes) < MOST_LANES
    if lanes is not None and fits and len(set(lanes)) <= most:
        return lanes
    raise RecordError(
        "RL0132",
        where="queues=",
        seen=reprlib.repr(queues),
        allowed=f'"auto", 1 to {most}, or {len(plan.launches)} numbers from 0 to {MOST_LANES - 1}, one for each launch,'
        f" at most {most} different ones",
        do="give how many queues a replay may use, or a lane for each launch as recorded",
    )


def _ints(given: object) -> tuple[int | None, tuple[int, ...] | None]:
    """What was given as an int, or as a row of them."""
    if not isinstance(given, bool) and hasattr(given, "__index__"):
        with suppress(TypeError):  # an array of NumPy's is one only without dimensions
            return index(given), None
    if isinstance(given, Iterable):
        with suppress(TypeError):
            return None, tuple(map(index, given))
    return None, None


def components(plan: Plan) -> NDArray[np.int64]:
    """A number for each launch, by recorded index; equal for launches that conflicts or `after=` join.

    A byte that somebody writes joins all launches that touch it; what is only read joins nobody.
    """
    a = plan.accesses
    count, segments = len(plan.launches), max(len(a.cuts) - 1, 0)
    writes = (a.does & WRITES) != 0
    written = _covered(a.low[writes], a.high[writes], segments)
    before = np.concatenate([[0], np.cumsum(written)])  # written segments below each segment
    first, last = before[a.low], before[a.high] - 1
    touching = last >= first
    joined = _covered(first[touching], last[touching], int(before[-1]))  # to the next written segment
    group = np.concatenate([[0], np.cumsum(~joined[:-1])]) if len(joined) else np.zeros(0, np.int64)
    launch = np.repeat(np.arange(count), np.diff(a.starts))[touching]
    sets = _Sets(count + len(group))
    for one, other in zip(launch.tolist(), (count + group[first[touching]]).tolist(), strict=True):
        sets.join(one, other)
    for one, begin, end in zip(range(count), a.after_starts.tolist(), a.after_starts[1:].tolist(), strict=False):
        for other in a.after[begin:end].tolist():
            sets.join(one, other)
    return np.array([sets.find(at) for at in range(count)], np.int64)


def _covered(low: NDArray[np.integer], high: NDArray[np.integer], count: int) -> NDArray[np.bool_]:
    """Which of `count` places any of the ranges [low, high) covers."""
    depth = np.zeros(count + 1, np.int64)
    np.add.at(depth, low, 1)
    np.add.at(depth, high, -1)
    covered: NDArray[np.bool_] = np.cumsum(depth)[:-1] > 0
    return covered


class _Sets:
    """Disjoint sets; the smallest member names its set."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, item: int) -> int:
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.find(one), self.find(other)))
        self._parent[high] = low


def independent(plan: Plan, queues: Queues) -> Lanes:
    """Lanes that share nothing: whole components, the largest first, each to the lane with the fewest launches.

    Never more lanes than components. Raises RecordError as `asked` does with MOST_QUEUES, and for a list of lanes that
    puts conflicting launches on two of them.
    """
    found, chosen = components(plan), asked(plan, queues, MOST_QUEUES)
    if isinstance(chosen, tuple):
        _check_apart(plan, found, chosen)
        return _gathered(plan, chosen)
    names, sizes = np.unique(found, return_counts=True)
    most = min(chosen, len(names))
    load, lane_of = [0] * most, {}
    for at in np.lexsort((names, -sizes)).tolist():
        lane = load.index(min(load))
        lane_of[int(names[at])] = lane
        load[lane] += int(sizes[at])
    return _gathered(plan, [lane_of[name] for name in found.tolist()])


def chains(plan: Plan, queues: Queues) -> Lanes:
    """Lanes for packets that may wait for one another: a launch goes behind one that it must wait for anyway, if that
    one is the last of its lane, else to the lane with the fewest launches.

    Raises RecordError as `asked` does with MOST_LANES.
    """
    chosen = asked(plan, queues, MOST_LANES)
    if isinstance(chosen, tuple):
        return _gathered(plan, chosen)
    most = min(chosen, len(plan.order))
    before: dict[int, list[int]] = {}
    for first, second in plan.edges:
        before.setdefault(second, []).append(first)
    load, last, lane_of = [0] * most, [-1] * most, [0] * len(plan.launches)
    for launch in plan.order:
        behind = [lane_of[first] for first in before.get(launch, ()) if last[lane_of[first]] == first]
        lane = behind[0] if behind else load.index(min(load))
        load[lane] += 1
        last[lane], lane_of[launch] = launch, lane
    return _gathered(plan, lane_of)


def phases(plan: Plan, queues: Queues) -> tuple[Lanes, ...]:
    """Levels of the plan, the launches of each dealt to lanes in turn; levels of one launch in a row are one phase on
    the first lane, also where each launch was given one. A lane of a phase may be empty, no lane of all phases is.

    Raises RecordError as `asked` does with MOST_QUEUES.
    """
    chosen = asked(plan, queues, MOST_QUEUES)
    listed, most = (chosen, max(chosen) + 1) if isinstance(chosen, tuple) else (None, chosen)
    levels: list[list[int]] = [[] for _ in range(max(plan.levels) + 1)]
    for launch in sorted(plan.order):
        levels[plan.levels[launch]].append(launch)
    made: list[list[list[int]]] = []
    narrow = False
    for level in levels:
        if len(level) > 1 or not narrow:
            made.append([[] for _ in range(most)])
        narrow = len(level) == 1
        for at, launch in enumerate(level):
            made[-1][0 if narrow else listed[launch] if listed else at % most].append(launch)
    used = [lane for lane in range(most) if any(phase[lane] for phase in made)]
    return tuple(tuple(tuple(phase[lane]) for lane in used) for phase in made)


def _check_apart(plan: Plan, component: NDArray[np.int64], lanes: Sequence[int]) -> None:
    first: dict[int, int] = {}
    for launch, name in enumerate(component.tolist()):
        other = first.setdefault(name, launch)
        if lanes[other] != lanes[launch]:
            raise RecordError(
                "RL0146",
                where="queues=",
                seen=f"{plan.launches[other]} on lane {lanes[other]}, {plan.launches[launch]} on lane {lanes[launch]}",
                allowed="launches that must wait for one another on one lane, unless form='aql' or phased=True",
                do="put them on one lane, or choose a form whose lanes wait for one another",
            )


def _gathered(plan: Plan, lane_of: Sequence[int]) -> Lanes:
    """Launches by lane in emitted order, without empty lanes."""
    lanes: dict[int, list[int]] = {}
    for launch in plan.order:
        lanes.setdefault(lane_of[launch], []).append(launch)
    return tuple(tuple(lanes[lane]) for lane in sorted(lanes))
