# SPDX-License-Identifier: Apache-2.0
"""Which launches conflict, on which bytes, and how: the pairs behind a plan's fences, found on demand.

Each byte segment remembers its last writer and the readers since. Only neighbouring conflicts are reported: any other
conflicting pair is joined by a chain of them, so ordering the neighbours orders all. Planning does not need these pairs
(`sweep.py` asks for the latest one only); explanations do, and there may be many of them: where every slice of a buffer
is written and the whole buffer read again and again, their number is quadratic. Decides no order and no fence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .accesses import Accesses
from .sweep import READS_K, READS_P, READS_V, WRITES

HazardKind = Literal["RAW", "WAR", "WAW"]
_CACHES = {0: (), READS_K: ("K",), READS_V: ("V",), READS_K | READS_V: ("K", "V"), READS_P: ("P",)}


@dataclass(frozen=True, slots=True, order=True)
class Hazard:
    """`second` touches bytes that `first` touched before it, and at least one of them writes.

    The range [start, stop) is in bytes of the memory `buffer` (an alias is reported as the buffer it aliases). `reads`
    names the caches that `second` reads through, for RAW only: a RAW hazard needs the wait and the visibility, the
    others only the wait. `carried`: `first` is in one replay and `second` in the next.
    """

    second: int
    first: int
    kind: HazardKind
    buffer: int
    start: int
    stop: int
    reads: tuple[str, ...]
    carried: bool = False


def find_hazards(accesses: Accesses, order: Sequence[int]) -> tuple[Hazard, ...]:
    """All neighbouring conflicts of one replay in this order, sorted by second launch, first launch, kind and range."""
    sweep = _Sweep(accesses, order)
    sweep.replay()
    return sweep.hazards(carried=False)


def find_carried(accesses: Accesses, order: Sequence[int]) -> tuple[Hazard, ...]:
    """The neighbouring conflicts of one replay with the next, sorted in the same way."""
    sweep = _Sweep(accesses, order)
    sweep.replay()
    sweep.replay()
    return sweep.hazards(carried=True)


class _Sweep:
    """Every segment's last writer and readers since, as times: position in the order, counted on from replay to
    replay.
    """

    def __init__(self, accesses: Accesses, order: Sequence[int]) -> None:
        self.accesses, self.order, self.rounds = accesses, order, 0
        rows = zip(accesses.low.tolist(), accesses.high.tolist(), accesses.does.tolist(), strict=True)
        self.rows = [(range(low, high), does) for low, high, does in rows]
        self.starts: list[int] = accesses.starts.tolist()
        self.writer = [-1] * len(accesses.cuts)
        self.readers: list[list[int]] = [[] for _ in accesses.cuts]
        self.found: set[tuple[int, int, HazardKind, int, int]] = set()

    def replay(self) -> None:
        for at, launch in enumerate(self.order):
            time = self.rounds * len(self.order) + at
            rows = self.rows[self.starts[launch] : self.starts[launch + 1]]
            for segments, does in rows:
                if not does & WRITES:
                    self._read(time, segments, does & (READS_K | READS_V | READS_P))
            for segments, does in rows:
                if does & WRITES:
                    self._write(time, segments)
        self.rounds += 1

    def _read(self, time: int, segments: range, caches: int) -> None:
        for at in segments:
            if 0 <= self.writer[at] != time:
                self.found.add((time, self.writer[at], "RAW", at, caches))
            if not self.readers[at] or self.readers[at][-1] != time:
                self.readers[at].append(time)

    def _write(self, time: int, segments: range) -> None:
        for at in segments:
            others = [reader for reader in self.readers[at] if reader != time]
            self.found.update((time, reader, "WAR", at, 0) for reader in others)
            if not others and self.writer[at] not in (-1, time):
                self.found.add((time, self.writer[at], "WAW", at, 0))
            self.writer[at], self.readers[at] = time, []

    def hazards(self, *, carried: bool) -> tuple[Hazard, ...]:
        count = len(self.order)
        wanted = (row for row in self.found if (row[0] // count > row[1] // count) == carried)
        pairs = (self._hazard(*row, carried=carried) for row in wanted)
        return tuple(sorted(_merge(pairs)))

    def _hazard(self, second: int, first: int, kind: HazardKind, at: int, caches: int, *, carried: bool) -> Hazard:
        names = self.order[second % len(self.order)], self.order[first % len(self.order)]
        return Hazard(*names, kind, *self.accesses.place(at), _CACHES[caches], carried)


def _merge(found: Iterable[Hazard]) -> list[Hazard]:
    """Join touching ranges of the same pair, kind and caches."""
    merged: list[Hazard] = []
    for item in sorted(found, key=lambda h: (*_but_range(h), h.start, h.stop)):
        last = merged[-1] if merged else None
        if last is not None and _but_range(last) == _but_range(item) and item.start <= last.stop:
            stop = max(last.stop, item.stop)
            merged[-1] = Hazard(
                item.second, item.first, item.kind, item.buffer, last.start, stop, item.reads, item.carried
            )
        else:
            merged.append(item)
    return merged


def _but_range(hazard: Hazard) -> tuple[int, int, str, int, tuple[str, ...]]:
    return hazard.second, hazard.first, hazard.kind, hazard.buffer, hazard.reads
