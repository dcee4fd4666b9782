# SPDX-License-Identifier: Apache-2.0
"""Conflicting launches that no chain of `after=` orders: errors of a graph of order="explicit".

Neighbouring conflicts are asked for first: when `after=` orders them all, it orders every other conflict too. Only when
it does not is every pair looked at, to report all of them. Orders nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .accesses import Accesses
from .errors import HazardError
from .hazards import find_hazards
from .launch import Launch
from .ranges import Buffer
from .sweep import WRITES, find_neighbours, reach

#: An error names this many pairs and counts the rest.
SHOWN: Final = 8

#: Pairs of accesses that a report looks at; beyond them it holds to neighbouring conflicts.
_MOST_PAIRS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class UnorderedPair:
    """Two launches, by recorded index, that touch the same bytes, one of them writing, and that nothing orders.

    `buffer`, `start` and `stop` (bytes) are the largest range in common; `nbytes` counts all bytes in common.
    """

    first: int
    second: int
    kinds: tuple[str, ...]
    buffer: str
    start: int
    stop: int
    nbytes: int
    labels: tuple[str, str]
    sites: tuple[str, str]

    @property
    def suggestion(self) -> str:
        """What to record instead."""
        return f"record #{self.second} {self.labels[1]} with after= #{self.first} {self.labels[0]}"

    def __str__(self) -> str:
        first, second = (
            f"#{index} {label} ({site})"
            for index, label, site in zip((self.first, self.second), self.labels, self.sites, strict=True)
        )
        return f"{first} and {second}: {'+'.join(self.kinds)} on {self.buffer}[{self.start}:{self.stop}]"

    def as_json(self) -> dict[str, Any]:
        """The fields and the suggestion, ready for `json.dumps`."""
        return {**asdict(self), "suggestion": self.suggestion}


def check_ordered(accesses: Accesses, launches: Sequence[Launch], buffers: Sequence[Buffer]) -> None:
    """Raise HazardError that names the unordered conflicts; its `pairs` holds all of them."""
    pairs = unordered_pairs(accesses, launches, buffers)
    if not pairs:
        return
    shown = "; ".join(map(str, pairs[:SHOWN]))
    more = "" if len(pairs) <= SHOWN else f"; and {len(pairs) - SHOWN} more pairs, see graph.lint()"
    error = HazardError(
        "RL0201",
        where=f"a graph of order='explicit' with unordered conflicts: {len(pairs)}",
        seen=f"no chain of after= between {shown}{more}",
        allowed="conflicting launches that after= orders",
        do=f"{pairs[0].suggestion}, or use Graph(order='record')",
    )
    error.pairs = pairs
    raise error


def unordered_pairs(
    accesses: Accesses, launches: Sequence[Launch], buffers: Sequence[Buffer]
) -> tuple[UnorderedPair, ...]:
    """Every conflicting pair that no chain of `after=` orders, largest overlap first."""
    a = accesses
    wanted = _unordered(a, find_neighbours(a.starts, a.low, a.high, a.does, len(a.cuts)))
    if not wanted:
        return ()
    if overlaps := _overlaps(a):
        wanted = _unordered(a, np.array(sorted(overlaps)))
    else:
        overlaps = _neighbours(a, len(launches))
    made = [_pair(pair, overlaps[pair], accesses, launches, buffers) for pair in wanted]
    return tuple(sorted(made, key=lambda pair: (-pair.nbytes, pair.first, pair.second)))


def _unordered(accesses: Accesses, pairs: NDArray[np.integer[Any]]) -> list[tuple[int, int]]:
    """Those of the pairs, of shape (pairs, 2), that no chain of `after=` orders, sorted."""
    first, second = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int64).T.copy()
    ordered = reach(first, second, accesses.after_starts, accesses.after)
    return list(zip(first[~ordered].tolist(), second[~ordered].tolist(), strict=True))


_Overlaps = dict[tuple[int, int], dict[int, set[str]]]


def _overlaps(accesses: Accesses) -> _Overlaps:
    """(first, second) -> segment -> kinds, for every conflicting pair; empty when there are too many to look at."""
    touches: list[dict[int, int]] = [{} for _ in accesses.cuts]
    for launch, row in _rows(accesses):
        for at in range(accesses.low[row], accesses.high[row]):
            touches[at][launch] = touches[at].get(launch, 0) | (2 if accesses.does[row] & WRITES else 1)
    if sum(len(found) ** 2 for found in touches) > 2 * _MOST_PAIRS:
        return {}
    overlaps: _Overlaps = {}
    for at, found in enumerate(touches):
        for (a, x), (b, y) in combinations(found.items(), 2):
            if kinds := _kinds(x, y):
                overlaps.setdefault((a, b), {})[at] = kinds
    return overlaps


def _rows(accesses: Accesses) -> Iterator[tuple[int, int]]:
    """(launch, access) in recorded order."""
    starts = accesses.starts.tolist()
    return ((launch, row) for launch in range(len(starts) - 1) for row in range(starts[launch], starts[launch + 1]))


def _kinds(first: int, second: int) -> set[str]:
    """Hazards between what two launches do to a segment: 1 reads, 2 writes, 3 both."""
    found = {"RAW"} if first & 2 and second & 1 else set()
    found |= {"WAR"} if first & 1 and second & 2 else set()
    return found | ({"WAW"} if first & 2 and second & 2 else set())


def _neighbours(accesses: Accesses, launches: int) -> _Overlaps:
    """The same for neighbouring conflicts only."""
    overlaps: _Overlaps = {}
    for hazard in find_hazards(accesses, range(launches)):
        base = int(accesses.bases[hazard.buffer])
        low, high = np.searchsorted(accesses.cuts, [base + hazard.start, base + hazard.stop]).tolist()
        for at in range(low, high):
            overlaps.setdefault((hazard.first, hazard.second), {}).setdefault(at, set()).add(hazard.kind)
    return overlaps


def _pair(
    pair: tuple[int, int],
    overlap: dict[int, set[str]],
    accesses: Accesses,
    launches: Sequence[Launch],
    buffers: Sequence[Buffer],
) -> UnorderedPair:
    ranges: list[tuple[int, int, int]] = []
    for memory, start, stop in (accesses.place(at) for at in sorted(overlap)):
        if ranges and ranges[-1][0] == memory and ranges[-1][2] == start:
            start = ranges.pop()[1]
        ranges.append((memory, start, stop))
    memory, start, stop = max(ranges, key=lambda found: found[2] - found[1])
    first, second = (launches[index] for index in pair)
    return UnorderedPair(
        *pair,
        kinds=tuple(sorted(set().union(*overlap.values()))),
        buffer=buffers[memory].name,
        start=start,
        stop=stop,
        nbytes=sum(found[2] - found[1] for found in ranges),
        labels=(first.label, second.label),
        sites=(first.site, second.site),
    )
