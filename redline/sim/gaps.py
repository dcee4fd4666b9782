# SPDX-License-Identifier: Apache-2.0
"""The free address ranges of the arena: the smallest one that fits is taken, neighbours grow together again.

Sorted by size, so that neither the number of allocations nor that of smaller gaps matters. Knows no memory.
"""

from __future__ import annotations

import bisect

from redline.sim.arena import PAGE_SHIFT

# Behind every allocation, and in front of the first. A page wide, so that no page holds bytes of two allocations.
GUARD_BYTES = 1 << PAGE_SHIFT
WINDOW_BYTES = 1 << 32  # no smaller allocation straddles such a boundary: high halves stay equal


def align_up(value: int, align: int) -> int:
    return -(-value // align) * align


class Gaps:
    """What of [start, end) is free. A taken range has its guard behind it.

    >>> gaps = Gaps(0, 1 << 20)
    >>> gaps.take(100, 256), gaps.take(100, 256)
    (0, 4352)
    >>> gaps.give_back(0, 100)
    >>> gaps.take(50, 256)
    0
    """

    def __init__(self, start: int, end: int) -> None:
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []  # (bytes, start), sorted
        self._add(start, end)

    def take(self, nbytes: int, align: int) -> int | None:
        """An aligned address of `nbytes` and a guard, None when no gap is wide enough."""
        needed = nbytes + GUARD_BYTES
        for at in range(bisect.bisect_left(self._by_size, (needed, 0)), len(self._by_size)):
            size, start = self._by_size[at]
            address = _place(start, nbytes, align)
            if address + needed <= start + size:
                self._remove(start)
                self._add(start, address)
                self._add(address + needed, start + size)
                return address
        return None

    def give_back(self, address: int, nbytes: int) -> None:
        """Free what `take` returned for `nbytes`."""
        start, end = address, address + nbytes + GUARD_BYTES
        if start in self._start_of:
            start = self._start_of[start]
            self._remove(start)
        if end in self._end_of:
            behind, end = end, self._end_of[end]
            self._remove(behind)
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        if start < end:
            self._end_of[start], self._start_of[end] = end, start
            bisect.insort(self._by_size, (end - start, start))

    def _remove(self, start: int) -> None:
        end = self._end_of.pop(start)
        del self._start_of[end]
        del self._by_size[bisect.bisect_left(self._by_size, (end - start, start))]


def _place(start: int, nbytes: int, align: int) -> int:
    """The first aligned address from `start` on, in one window if it fits into one."""
    address = align_up(start, align)
    if nbytes <= WINDOW_BYTES and address // WINDOW_BYTES != (address + nbytes - 1) // WINDOW_BYTES:
        address = align_up(align_up(address, WINDOW_BYTES), align)
    return address
