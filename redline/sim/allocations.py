# SPDX-License-Identifier: Apache-2.0
"""Which allocation holds an address: each page knows its allocation, so no access searches the table.

Guards are as wide as a page, so no page holds bytes of two allocations. One thread changes the table at a time
(`memory.py` sees to it); any thread reads it, without a lock, because a row that is found is compared with the address
again. Does not choose addresses and touches no memory.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from redline.sim.arena import PAGE_SHIFT
from redline.sim.gaps import align_up

# LLVM widens a three-dword load to four where the address is 16-byte aligned, so reads (never writes) may run
# to the end of the 16 bytes that hold an allocation's last byte. No hardware notices: its granule is a page.
READ_GRANULE = 16

_FIRST_ROWS = 64


@dataclass(frozen=True)
class Allocation:
    """One row of the table. `nbytes` is what was asked for, not rounded."""

    address: int
    nbytes: int
    label: str
    executable: bool
    mapped: bool  # the device may touch it (hsa_amd_agents_allow_access, or the device's own memory)

    @property
    def end(self) -> int:
        return self.address + self.nbytes

    def reach(self, access: str) -> int:
        """How many bytes from `address` on the device may access."""
        if not self.mapped:
            return 0
        return align_up(self.end, READ_GRANULE) - self.address if access == "read" else self.nbytes


_NONE = Allocation(0, 0, "", executable=False, mapped=False)


class Allocations:
    """The table. `pages` has the number of a row for each page of the arena, and a last entry that stays 0: none."""

    def __init__(self, base: int, pages: NDArray[np.int32]) -> None:
        self._base, self._pages, self._outside = base, pages, len(pages) - 1
        self._rows = [_NONE]
        self._unused: deque[int] = deque()
        # Columns of the rows, for accesses of many addresses at once.
        self._starts = np.zeros(_FIRST_ROWS, np.uint64)
        self._sizes = {access: np.zeros(_FIRST_ROWS, np.uint64) for access in ("read", "write")}

    def add(self, row: Allocation) -> None:
        number = self._unused.popleft() if self._unused else len(self._rows)
        if number == len(self._rows):
            self._rows.append(row)
            self._grow()
        self._set(number, row)
        self._pages[self._span(row)] = number  # last: from here on it is found

    def remove(self, row: Allocation) -> None:
        number = self._number(row.address)
        self._pages[self._span(row)] = 0
        self._set(number, _NONE)
        self._unused.append(number)

    def map(self, row: Allocation) -> None:
        """Let the device touch it."""
        self._set(self._number(row.address), replace(row, mapped=True))

    def at(self, address: int) -> Allocation | None:
        """The allocation, mapped or not, that holds the byte at `address`."""
        row = self._rows[self._number(address)]
        return row if row.address <= address < row.end else None

    def allows(self, first: int, end: int, access: str) -> bool:
        """Whether the device may access all of [first, end), within one allocation."""
        row = self._rows[self._number(first)]
        return row.address <= first and end <= row.address + row.reach(access)

    def first_refused(self, addresses: NDArray[np.uint64], nbytes: int, access: str) -> int | None:
        """The first address whose `nbytes` the device may not access."""
        pages = (addresses - np.uint64(self._base)).view(np.int64) >> PAGE_SHIFT
        rows = self._pages.take(pages, mode="clip")  # no allocation has the first page, none the last entry
        offsets, sizes = addresses - self._starts.take(rows), self._sizes[access].take(rows)
        refused = (offsets >= sizes) | (sizes - offsets < np.uint64(nbytes))
        return int(addresses[int(np.argmax(refused))]) if refused.any() else None

    def below(self, address: int) -> Allocation | None:
        """The last allocation that starts at or before `address`. Looks at all: for messages."""
        below = [row for row in self.rows() if row.address <= address]
        return below[-1] if below else None

    def rows(self) -> tuple[Allocation, ...]:
        """Every allocation, by address."""
        return tuple(sorted((row for row in self._rows if row is not _NONE), key=lambda row: row.address))

    def _number(self, address: int) -> int:
        page = (address - self._base) >> PAGE_SHIFT
        return int(self._pages[page]) if 0 <= page < self._outside else 0

    def _span(self, row: Allocation) -> slice:
        first, last = row.address - self._base >> PAGE_SHIFT, row.end - 1 - self._base >> PAGE_SHIFT
        return slice(first, last + 1)

    def _set(self, number: int, row: Allocation) -> None:
        self._rows[number] = row
        self._starts[number] = row.address
        for access, sizes in self._sizes.items():
            sizes[number] = row.reach(access)

    def _grow(self) -> None:
        """Columns twice as long, in place of the old ones before any page names a new row."""
        if len(self._rows) > len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
            self._sizes = {name: np.concatenate([sizes, np.zeros_like(sizes)]) for name, sizes in self._sizes.items()}
