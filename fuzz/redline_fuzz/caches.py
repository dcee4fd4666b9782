# SPDX-License-Identifier: Apache-2.0
"""The memory of the hostile machine: every byte's history in L2, and what stale caches may still hold.

Memory itself is the software device's arena, as the host sees it; L2 is a history of values with times; each cache in
front of it is an age. A read through K or V returns any value that the byte had in L2 since that age. L2 may keep what
it holds for ever, so that the host does not see stores before a write-back nor shaders the host's before an
invalidation; or it may hold nothing. GL2_INV without GL2_WB loses what was dirty.

Sources: LLVM AMDGPUUsage, "Memory Model gfx10-gfx11" and "gfx12"; Linux 6.12 nvd.h (GCR_CNTL); Mesa radv_cs.c (every K
and V read of gfx10 and gfx11 goes through GL1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container

from redline.sim.arena import PAGE_SHIFT
from redline.sim.errors import MemoryFault
from redline.sim.memory import Memory

GLI_INV, GLK_INV, GLV_INV, GL1_INV, GL2_INV, GL2_WB = 0x3, 1 << 7, 1 << 8, 1 << 9, 1 << 14, 1 << 15
GL1_RANGE, GL2_RANGE, SEQ = 0x3 << 2, 0x3 << 11, 0x3 << 16
SEQ_FORWARD = 1 << 16  # from the inside out: what is refreshed first is refreshed from what is still old

Ages = dict[str, int]


class Caches:
    """`cached` says of an address whether L2 may hold it; `has_gl1` whether K and V read through GL1; `keeps` whether
    L2 keeps what it holds. `settled`: allocations that nobody fills before the first submission; any value of theirs
    would do, so they had the one they have for ever.
    """

    def __init__(
        self,
        memory: Memory,
        cached: Callable[[int], bool],
        settled: Container[int],
        *,
        has_gl1: bool,
        keeps: bool,
    ) -> None:
        self.memory, self._cached, self._settled = memory, cached, settled
        self._has_gl1, self._keeps = has_gl1, keeps
        self.now = 0
        self.ages: Ages = {"I": 0, "K": 0, "V": 0, "L1": 0}
        self._times: dict[int, list[int]] = {}
        self._values: dict[int, list[int]] = {}
        self._dirty: set[int] = set()
        self._seen: dict[int, bytes] = {}  # of each allocation, what memory held at the last look
        self._born: dict[int, tuple[int, int]] = {}  # by page: an allocation's address, and when it was first seen
        self._refreshed: list[int] = []  # when L2 forgot all that was clean

    # What the host did

    def notice_host(self) -> None:
        """Whatever changed in memory since the last look, the host wrote. All of what is new to us it wrote now."""
        self.now += 1
        for row in self.memory.allocations:
            if not row.mapped:
                continue
            data = self.memory.bytes_at(row.address, row.nbytes)
            before = self._seen.get(row.address)
            if before is None or len(before) != len(data):
                pages = range(row.address >> PAGE_SHIFT, (row.end - 1 >> PAGE_SHIFT) + 1)
                self._born.update(dict.fromkeys(pages, (row.address, self.now)))
            elif before != data:
                self._host_wrote(row.address, before, data)
            self._seen[row.address] = data

    def _host_wrote(self, start: int, before: bytes, after: bytes) -> None:
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                self._know(start + at)
                if not (self._cached(start) and self._keeps):
                    self._put(start + at, new)

    # What shaders do

    def since(self, address: int, age: int) -> list[int]:
        """The values that a read through a cache of this age may return, oldest first."""
        self._know(address)
        return self._values[address][max(bisect_right(self._times[address], age) - 1, 0) :]

    def in_l2(self, address: int) -> int:
        """What L2 holds now, or memory where L2 holds nothing."""
        self._know(address)
        return self._values[address][-1]

    def store(self, address: int, value: int) -> None:
        """A shader's store arrives: in L2, or in memory where L2 may not hold the page."""
        self.now += 1
        self._know(address)
        self._put(address, value)
        if self._cached(address) and self._keeps:
            self._dirty.add(address)
        else:
            self._set_home(address, value)

    def home(self, address: int) -> int:
        """What memory holds."""
        return self.memory.bytes_at(address, 1)[0]

    # What packets do

    def acquire(self, gcr: int, *, whole: bool) -> None:
        """GL2 first, then L1, then K, V and I, unless SEQ says the other way round."""
        self.now += 1
        inside_out = gcr & SEQ == SEQ_FORWARD
        if inside_out:
            self._invalidate_front(gcr if whole and not gcr & GL1_RANGE else 0)
        if whole and not gcr & GL2_RANGE and gcr & GL2_WB:
            self.write_back()
        if gcr & GL2_INV:
            self.invalidate_l2(complete=whole and not gcr & GL2_RANGE)
        self.now += 1
        if not whole:
            return
        if gcr & GL1_INV and not gcr & GL1_RANGE:
            self.ages["L1"] = self.now
        if not inside_out:
            self._invalidate_front(gcr)

    def _invalidate_front(self, gcr: int) -> None:
        fresh = self.ages["L1"] if self._has_gl1 else self.now
        for name, bit in (("K", GLK_INV), ("V", GLV_INV)):
            if gcr & bit:
                self.ages[name] = fresh
        if gcr & GLI_INV:
            self.ages["I"] = self.now

    def write_back(self, only: Container[int] | None = None) -> None:
        """GL2_WB: dirty bytes go to memory; `only` those, where another queue did its own release."""
        gone = {address for address in self._dirty if only is None or address in only}
        for address in gone:
            self._set_home(address, self._values[address][-1])
        self._dirty -= gone

    def invalidate_l2(self, *, complete: bool) -> None:
        """GL2_INV: what memory holds is L2's value again, and bytes that are still dirty are lost."""
        for address in self._values if complete else tuple(self._dirty):
            home = self.home(address)
            if self._cached(address) and self._values[address][-1] != home:
                self._put(address, home)
        self._dirty.clear()
        if complete:
            self._refreshed.append(self.now)

    # Inside

    def _know(self, address: int) -> None:
        """A byte that nobody touched so far: the host wrote it when its allocation was made; before, it was another."""
        if address in self._times:
            return
        start, born = self._born.get(address >> PAGE_SHIFT, (0, 0))  # no page has bytes of two allocations
        content = self._seen.get(start, b"")
        if not start <= address < start + len(content):
            raise MemoryFault(address, 1, "read", "outside every allocation")
        value = content[address - start]
        if start in self._settled:
            self._times[address], self._values[address] = [0], [value]
            return
        self._times[address], self._values[address] = [0], [value ^ 0xFF]
        held = self._cached(address) and self._keeps
        shown = next((time for time in self._refreshed if time > born), None) if held else born
        if shown is not None:
            self._times[address].append(shown)
            self._values[address].append(value)

    def _put(self, address: int, value: int) -> None:
        self._times[address].append(self.now)
        self._values[address].append(value)

    def _set_home(self, address: int, value: int) -> None:
        self.memory.store(address, bytes([value]))
        row = self.memory.find(address)
        if row is not None and row.address in self._seen:
            seen = self._seen[row.address]
            at = address - row.address
            self._seen[row.address] = seen[:at] + bytes([value]) + seen[at + 1 :]
