# SPDX-License-Identifier: Apache-2.0
"""What the dispatches of one run touched, by instruction, as addresses. Compares nothing with what was declared.

An observer of the software device (`redline.sim.observed`). Memory that is touched over and over is kept once with a
count, so a long loop costs what it reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .byte_ranges import Ranges, merged

if TYPE_CHECKING:
    from .sim.code import Step
    from .sim.dispatch import Dispatch
    from .sim.memory import Memory

#: Addresses that wait before they are sorted and counted.
_WAITING: Final = 1 << 16


class Key(NamedTuple):
    """One instruction and what it does: its ELF `address` in bytes, `nbytes` that it touches at each place."""

    address: int
    text: str
    nbytes: int
    writes: bool

    @property
    def scalar(self) -> bool:
        """Whether it is a scalar load, in LLVM's spelling."""
        return self.text.startswith("s_")

    @property
    def atomic(self) -> bool:
        """Whether it reads, changes and writes in one step."""
        return "_atomic_" in self.text.partition(" ")[0]


@dataclass
class Places:
    """Addresses that one instruction touched, each once and sorted, and how often: once per lane or scalar load."""

    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _waiting: list[NDArray[np.int64]] = field(default_factory=list)
    _many: int = 0

    def add(self, addresses: NDArray[np.uint64]) -> None:
        self._waiting.append(addresses.astype(np.int64))
        self._many += len(addresses)
        if self._many >= max(_WAITING, len(self.starts)):
            self.settle()

    def settle(self) -> None:
        """Count what waits."""
        found, times = np.unique(np.concatenate([np.zeros(0, np.int64), *self._waiting]), return_counts=True)
        self._waiting, self._many = [], 0
        starts, at = np.unique(np.concatenate([self.starts, found]), return_inverse=True)
        counts = np.zeros(len(starts), np.int64)
        np.add.at(counts, at, np.concatenate([self.counts, times]))
        self.starts, self.counts = starts, counts


@dataclass
class Seen:
    """One dispatch: its first instruction, the code object that this lies in, and what it touched, first things first.

    `entry` and `image` (start and stop) are byte addresses.
    """

    entry: int
    image: tuple[int, int]
    places: dict[Key, Places] = field(default_factory=dict)

    def ranges(self, *, writes: bool) -> Ranges:
        """All bytes that were read, or written."""
        found = [_ranges(key, places) for key, places in self.places.items() if key.writes == writes]
        return merged(found)


def _ranges(key: Key, places: Places) -> Ranges:
    return np.stack([places.starts, places.starts + key.nbytes], axis=1)


class Observations:
    """Dispatches in the order in which one queue started them."""

    def __init__(self) -> None:
        self.dispatches: list[Seen] = []
        self.allocations: Sequence[tuple[int, int, str]] = ()  # start, stop, label of all that a kernel could reach

    def begin(self, dispatch: Dispatch, memory: Memory) -> None:
        """A dispatch starts."""
        if not self.dispatches:
            self.allocations = [(row.address, row.end, row.label) for row in memory.allocations]
        image = memory.find(dispatch.entry)
        bounds = (image.address, image.end) if image is not None else (dispatch.entry, dispatch.entry)
        self.dispatches.append(Seen(dispatch.entry, bounds))

    def access(self, step: Step, addresses: NDArray[np.uint64], nbytes: int, writes: bool) -> None:
        """An instruction of the dispatch that was started last touches memory."""
        seen = self.dispatches[-1]
        key = Key(step.pc - seen.image[0], step.text, nbytes, writes)
        seen.places.setdefault(key, Places()).add(addresses)

    def settle(self) -> None:
        """The run has ended: count everything."""
        for seen in self.dispatches:
            for places in seen.places.values():
                places.settle()
