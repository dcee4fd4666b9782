# SPDX-License-Identifier: Apache-2.0
"""Which launches conflict, on which bytes, and how: one forward sweep over the recorded order.

Per memory (a buffer and its aliases) the end points of all accesses cut it into elementary segments; each segment
remembers its last writer and the readers since. Only neighbouring conflicts are reported: any other conflicting pair is
joined by a chain of them, so ordering the neighbours orders all. Decides no order and no fence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .kernel import Kernel
from .launch import Launch, Touch
from .ranges import Buffer

HazardKind = Literal["RAW", "WAR", "WAW"]

#: The caches that nothing keeps coherent and that a kernel reads memory through: K scalar loads, V vector loads.
CLASSES = ("K", "V")


@dataclass(frozen=True, slots=True, order=True)
class Hazard:
    """`second` touches bytes that `first` touched before it, and at least one of them writes.

    The range [start, stop) is in bytes of the memory `buffer` (an alias is reported as the buffer it aliases). `reads`
    names the caches that `second` reads through, for RAW only: a RAW hazard needs the wait and the visibility, the
    others only the wait.
    """

    second: int
    first: int
    kind: HazardKind
    buffer: int
    start: int
    stop: int
    reads: tuple[str, ...]


def read_classes(kernel: Kernel, argument: int | None) -> tuple[str, ...]:
    """The caches that `kernel` reads through behind the pointer at kernarg offset `argument` (None: no pointer)."""
    certificate = kernel.certificate
    if certificate is None or argument is None:
        return CLASSES
    if certificate.reads == "vmem_only":
        return ("V",)
    # Any other word, and any argument that is listed, gets the wider class.
    return ("V",) if certificate.reads == "scalar_args" and argument not in certificate.scalar_args else CLASSES


def find_hazards(launches: Sequence[Launch], buffers: Sequence[Buffer]) -> tuple[Hazard, ...]:
    """All neighbouring conflicts, sorted by second launch, first launch, kind and range."""
    memories = {root: _Memory(root) for root in {buffer.root for buffer in buffers}}
    spans = [[_span(touch, buffers) for touch in launch.touches] for launch in launches]
    for row in spans:
        for root, start, stop in row:
            memories[root].cuts.update((start, stop))
    for memory in memories.values():
        memory.freeze()
    for launch, row in zip(launches, spans, strict=True):
        pairs = list(zip(launch.touches, row, strict=True))
        for touch, (root, start, stop) in pairs:
            if not touch.writes:
                memories[root].read(launch.index, start, stop, read_classes(launch.kernel, touch.argument))
        for touch, (root, start, stop) in pairs:
            if touch.writes:
                memories[root].write(launch.index, start, stop)
    return tuple(sorted(_merge(hazard for memory in memories.values() for hazard in memory.found)))


def _span(touch: Touch, buffers: Sequence[Buffer]) -> tuple[int, int, int]:
    """(memory, start, stop) of a touch, in bytes of the memory."""
    buffer = buffers[touch.buffer]
    return buffer.root, buffer.root_offset + touch.start, buffer.root_offset + touch.stop


class _Memory:
    """The elementary segments of one memory, in the middle of the sweep."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.cuts: set[int] = set()
        self.found: list[Hazard] = []

    def freeze(self) -> None:
        self.edges = sorted(self.cuts)
        self.writer = [-1] * len(self.edges)
        self.readers: list[list[int]] = [[] for _ in self.edges]

    def read(self, launch: int, start: int, stop: int, classes: tuple[str, ...]) -> None:
        for at in range(bisect_left(self.edges, start), bisect_left(self.edges, stop)):
            if self.writer[at] >= 0:
                self._add("RAW", self.writer[at], launch, at, classes)
            if not self.readers[at] or self.readers[at][-1] != launch:
                self.readers[at].append(launch)

    def write(self, launch: int, start: int, stop: int) -> None:
        for at in range(bisect_left(self.edges, start), bisect_left(self.edges, stop)):
            others = [reader for reader in self.readers[at] if reader != launch]
            for reader in others:
                self._add("WAR", reader, launch, at, ())
            if not others and self.writer[at] not in (-1, launch):
                self._add("WAW", self.writer[at], launch, at, ())
            self.writer[at], self.readers[at] = launch, []

    def _add(self, kind: HazardKind, first: int, second: int, at: int, classes: tuple[str, ...]) -> None:
        self.found.append(Hazard(second, first, kind, self.root, self.edges[at], self.edges[at + 1], classes))


def _merge(found: Iterable[Hazard]) -> list[Hazard]:
    """Join touching ranges of the same pair, kind and caches."""
    merged: list[Hazard] = []
    for item in sorted(found, key=lambda h: (h.second, h.first, h.kind, h.buffer, h.reads, h.start, h.stop)):
        last = merged[-1] if merged else None
        if last is not None and _same_but_range(last, item) and item.start <= last.stop:
            stop = max(last.stop, item.stop)
            merged[-1] = Hazard(item.second, item.first, item.kind, item.buffer, last.start, stop, item.reads)
        else:
            merged.append(item)
    return merged


def _same_but_range(a: Hazard, b: Hazard) -> bool:
    return (a.second, a.first, a.kind, a.buffer, a.reads) == (b.second, b.first, b.kind, b.buffer, b.reads)
