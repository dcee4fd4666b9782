# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom where each launch is an AQL packet: barrier bits, scopes and cross-lane waits, the fewest.

A barrier bit waits for all earlier packets of its queue, a barrier-AND packet for single launches of other lanes; both
hold back whatever comes behind them on their queue. So each lane knows at each launch which launches have ended, and
asks for more only when the launch needs one that it does not know of. Likewise it knows which of them ended before its
own latest acquire, whatever other lanes did. A replay always starts cold: the first launch of each lane acquires at
system scope.

Decides no lane (`lanes.py`) and builds no packet (`packets.py`). Sources: hsa.h, hsa_packet_header_t and
hsa_barrier_and_packet_t. That a launch behind a barrier-AND packet needs no barrier bit for it is that header's text;
no device was asked (docs/verification.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from .errors import RecordError
from .sweep import WRITES

if TYPE_CHECKING:
    from .lanes import Lanes
    from .plan import Plan

NONE, AGENT, SYSTEM = 0, 1, 2

#: Rules that keep a bit without a hazard as its reason.
AQL_RULES: Final = {
    "cold-entry": "the first launch of a lane: barrier bit, acquire at system scope",
    "aql-release": "release where a launch (agent) or the host (system) reads: L2 is shared, HSA asks for it",
    "aql-classes": "an AQL acquire has no classes: I, K, V and L1 together",
    "own-acquires": "only acquires of its own lane count for a launch, though caches belong to the agent",
    "host-exit": "the last packet waits for all lanes and releases at system scope",
}


@dataclass(frozen=True, slots=True)
class AqlLaunch:
    """One launch of a lane. `waits`: recorded indices of launches on other lanes that must have ended before it.

    `barrier`: it waits for all earlier packets of its lane. `acquire` and `release` are scopes: 0 none, 1 agent, 2
    system. `signals`: another lane waits for it.
    """

    launch: int
    waits: tuple[int, ...] = ()
    barrier: bool = False
    acquire: int = NONE
    release: int = NONE
    signals: bool = False


AqlLanes = tuple[tuple[AqlLaunch, ...], ...]


def derive_aql(plan: Plan, lanes: Lanes) -> AqlLanes:
    """What each launch of each lane waits for and makes visible, the fewest of each.

    With fences="full" every launch waits for everything recorded before it and acquires.
    Raises RecordError for workgroup counts in memory: an AQL packet holds its grid.
    """
    _check_grids(plan)
    return _Walk(plan, lanes).lanes()


def _check_grids(plan: Plan) -> None:
    for launch in plan.launches:
        if launch.indirect is not None:
            raise RecordError(
                "RL0144",
                where=f"form='aql', {launch} ({launch.site})",
                seen="workgroup counts in memory",
                allowed="grids that are known when the plan is made: an AQL packet holds its grid",
                do="lower the plan to PM4",
            )


class _Ended:
    """Launches that have ended, as (lane, place): of each lane all before a place, and single ones behind it."""

    def __init__(self, lanes: int) -> None:
        self.before = [0] * lanes
        self.single: set[tuple[int, int]] = set()

    def __contains__(self, place: tuple[int, int]) -> bool:
        return place[1] < self.before[place[0]] or place in self.single

    def copy(self) -> _Ended:
        made = _Ended(0)
        made.before, made.single = list(self.before), set(self.single)
        return made

    def add(self, place: tuple[int, int], known_then: _Ended) -> None:
        """This launch, and what was known where it started."""
        self.before = [max(pair) for pair in zip(self.before, known_then.before, strict=True)]
        self.single |= known_then.single | {place}
        self._tidy()

    def drain(self, lane: int, place: int) -> None:
        """All of a lane before a place."""
        self.before[lane] = place
        self._tidy()

    def _tidy(self) -> None:
        self.single = {(lane, at) for lane, at in self.single if at >= self.before[lane]}


class _Walk:
    """All lanes in emitted order, launch by launch."""

    def __init__(self, plan: Plan, lanes: Lanes) -> None:
        self.plan, self._lanes = plan, lanes
        self.place = {launch: (lane, at) for lane, row in enumerate(lanes) for at, launch in enumerate(row)}
        self.emitted = {launch: at for at, launch in enumerate(plan.order)}
        self.before: dict[int, list[int]] = {}  # what each launch waits for
        self.writers: dict[int, list[int]] = {}  # those whose bytes it reads through a cache
        for first, second in self._edges():
            self.before.setdefault(second, []).append(first)
        for hazard in plan.hazards:
            if hazard.reads:
                self.writers.setdefault(hazard.second, []).append(hazard.first)
        self.known = [_Ended(len(lanes)) for _ in lanes]
        self.acquired = [_Ended(len(lanes)) for _ in lanes]
        self.known_at: dict[int, _Ended] = {}  # where a launch started, for those that other lanes may wait for
        self.made: dict[int, AqlLaunch] = {}

    def _edges(self) -> Iterable[tuple[int, int]]:
        if self.plan.fence_mode == "full":
            return pairwise(self.plan.order)
        return self.plan.edges

    def lanes(self) -> AqlLanes:
        releases = release_scopes(self.plan)
        apart = {a for second, firsts in self.before.items() for a in firsts if self._lane(a) != self._lane(second)}
        for launch in self.plan.order:
            self._take(launch, releases[launch], keep=launch in apart)
        waited = {first for row in self.made.values() for first in row.waits}
        return tuple(tuple(_signalling(self.made[launch], waited) for launch in lane) for lane in self._lanes)

    def _lane(self, launch: int) -> int:
        return self.place[launch][0]

    def _take(self, launch: int, release: int, *, keep: bool) -> None:
        lane, at = self.place[launch]
        known = self.known[lane]
        firsts = sorted(self.before.get(launch, ()), key=self.emitted.__getitem__, reverse=True)
        waits = [first for first in firsts if self._lane(first) != lane and self._wait(known, first)]
        barrier = at == 0 or any(self.place[first] not in known for first in firsts)
        if barrier:
            known.drain(lane, at)
        if keep:
            self.known_at[launch] = known.copy()
        acquire = self._acquire(launch, lane, first=at == 0)
        self.made[launch] = AqlLaunch(launch, tuple(sorted(waits)), barrier, acquire, release)

    def _wait(self, known: _Ended, first: int) -> bool:
        """Know of one launch more; False if the lane knew of it. Latest first, so that no wait implies another."""
        if self.place[first] in known:
            return False
        known.add(self.place[first], self.known_at[first])
        return True

    def _acquire(self, launch: int, lane: int, *, first: bool) -> int:
        """System at the lane's start; later where it reads what had not ended before its latest acquire."""
        writers = self.writers.get(launch, ())
        stale = any(self.place[writer] not in self.acquired[lane] for writer in writers)
        if first or stale or self.plan.fence_mode == "full":
            self.acquired[lane] = self.known[lane].copy()
            return SYSTEM if first else AGENT
        return NONE


def _signalling(row: AqlLaunch, waited: set[int]) -> AqlLaunch:
    return AqlLaunch(row.launch, row.waits, row.barrier, row.acquire, row.release, row.launch in waited)


def release_scopes(plan: Plan) -> list[int]:
    """Release scope of each launch: system for the last writer of a byte that the host reads, agent for one that
    another launch reads.
    """
    found = [NONE] * len(plan.launches)
    for hazard in plan.hazards:
        if hazard.kind == "RAW":
            found[hazard.first] = AGENT
    a = plan.accesses
    outside = [buffer.index for buffer in plan.buffers if buffer.role in ("out", "inout")]
    last = np.full(len(a.cuts), -1, np.int64)
    for index in plan.order:
        for row in range(a.starts[index], a.starts[index + 1]):
            if a.does[row] & WRITES:
                last[a.low[row] : a.high[row]] = index
    memory = np.searchsorted(a.bases, a.cuts, side="right") - 1
    for index in np.unique(last[np.isin(memory, outside) & (last >= 0)]).tolist():
        found[index] = SYSTEM
    return found
