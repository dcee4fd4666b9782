# SPDX-License-Identifier: Apache-2.0
"""The software device's memory: one reserved arena with guard gaps, where addresses are real.

Every access of the device is checked against the allocation table, so a kernel that runs one byte over the
end of its buffer stops instead of reading its neighbour. Fresh memory holds a pattern that is NaN as f32, f64
and f16 and no canonical address, so that reading what nobody wrote shows. Does not model caches or
visibility: every byte written is seen at once. Does not decide which allocation is executable or mapped for
the device: the runtime table does, with `executable=` and `mapped=`.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from redline.sim.errors import MemoryFault

ARENA_BYTES = 1 << 35  # address space, not memory: pages come at first touch
WINDOW_BYTES = 1 << 32  # no smaller allocation straddles such a boundary: high halves stay equal
GUARD_BYTES = 4096
POISON = 0x7FFADEAD
POISONED_BYTES = 1 << 23  # at each end of an allocation: poison must not touch gigabytes

# LLVM widens a three-dword load to four where the address is 16-byte aligned, so reads (never writes) may run
# to the end of the 16 bytes that hold an allocation's last byte. No hardware notices: its granule is a page.
READ_GRANULE = 16

_WORD_SHIFTS = {4: 2, 8: 3}  # sizes whose aligned accesses move whole words

MAP_NORESERVE = 0x4000  # linux/mman.h; the mmap module names it from 3.13 on

_idle_arenas: list[mmap.mmap] = []  # never unmapped: a stale numpy view must not end the process
_idle_lock = threading.Lock()
# A child process that is forked while another thread holds the lock would wait for it for ever.
os.register_at_fork(before=_idle_lock.acquire, after_in_parent=_idle_lock.release, after_in_child=_idle_lock.release)


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


@dataclass(frozen=True)
class _Table:
    """Snapshot for the device thread: swapped whole, so a reader never sees half a change."""

    rows: tuple[Allocation, ...]  # sorted by address
    addresses: tuple[int, ...]
    starts: NDArray[np.uint64]  # of the mapped rows
    read_ends: NDArray[np.uint64]
    write_ends: NDArray[np.uint64]


def _table(rows: list[Allocation]) -> _Table:
    mapped = [row for row in rows if row.mapped]
    return _Table(
        rows=tuple(rows),
        addresses=tuple(row.address for row in rows),
        starts=np.array([row.address for row in mapped], np.uint64),
        read_ends=np.array([_align_up(row.end, READ_GRANULE) for row in mapped], np.uint64),
        write_ends=np.array([row.end for row in mapped], np.uint64),
    )


def _align_up(value: int, align: int) -> int:
    return -(-value // align) * align


class Memory:
    """Allocate, free, and checked reads and writes by address.

    >>> memory = Memory()
    >>> a = memory.allocate(8, label="x")
    >>> memory.write(np.array([a, a + 4], np.uint64), np.array([[1, 0, 0, 0], [2, 0, 0, 0]], np.uint8))
    >>> memory.u64_at(a)
    8589934593
    >>> memory.bytes_at(a + 16, 4)
    Traceback (most recent call last):
    ...
    redline.sim.errors.MemoryFault: read of 4 bytes at ...: outside every allocation of the device (...)
    >>> memory.close()
    """

    def __init__(self) -> None:
        self._map = _take_arena()
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        self.base = int(self._bytes.__array_interface__["data"][0])
        # The collector may run anywhere, also while the table changes, and what it ends (a dropped replay) frees
        # memory: from inside, on the same thread. Such rows wait in `_doomed` for the end of the change.
        self._lock = threading.RLock()
        self._changing = False
        self._doomed: deque[Allocation] = deque()
        self._table = _table([])
        self._closed = False

    def close(self) -> None:
        """Give the pages back. The address range stays reserved and serves the next `Memory`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._table = _table([])
            self._map.madvise(mmap.MADV_DONTNEED)
        with _idle_lock:
            _idle_arenas.append(self._map)

    # Allocation table

    def allocate(
        self,
        nbytes: int,
        *,
        align: int = 256,
        label: str = "",
        executable: bool = False,
        mapped: bool = True,
    ) -> int:
        """Address of `nbytes` fresh bytes, or `MemoryError` when no gap is wide enough."""
        if nbytes < 1 or align < 1 or align & (align - 1):
            raise ValueError(f"cannot allocate {nbytes} bytes aligned to {align}")
        with self._change():
            if self._closed:
                raise MemoryError("the arena is closed")
            address = self._find_gap(nbytes, max(align, READ_GRANULE))
            row = Allocation(address, nbytes, label, executable, mapped)
            rows = list(self._table.rows)
            rows.insert(bisect.bisect(self._table.addresses, address), row)
            self._poison(address, nbytes)
            self._table = _table(rows)
        return address

    def free(self, address: int) -> None:
        """Forget the allocation that starts at `address`; later accesses to it fault."""
        self._doomed.append(self._row_at(address))
        with self._change():
            pass

    def map_for_device(self, address: int) -> None:
        """Let the device touch the allocation that starts at `address`."""
        with self._change():
            row = self._row_at(address)
            rows = [replace(row, mapped=True) if other is row else other for other in self._table.rows]
            self._table = _table(rows)

    @contextmanager
    def _change(self) -> Iterator[None]:
        """One change of the table; the outermost ends with the rows that were freed."""
        with self._lock:
            outermost, self._changing = not self._changing, True
            try:
                yield
            finally:
                if outermost:
                    self._reap()
                    self._changing = False

    def _reap(self) -> None:
        while self._doomed:
            row = self._doomed.popleft()
            rows = [other for other in self._table.rows if other is not row]
            if len(rows) < len(self._table.rows):
                self._table = _table(rows)
                self._poison(row.address, row.nbytes)
                self._release_pages(row)

    def find(self, address: int, nbytes: int = 1) -> Allocation | None:
        """The allocation, mapped or not, that holds all of [address, address + nbytes)."""
        table = self._table
        at = bisect.bisect(table.addresses, address) - 1
        if at < 0 or address + nbytes > table.rows[at].end:
            return None
        return table.rows[at]

    def touches(self, address: int, nbytes: int) -> bool:
        """Whether any byte of the range is in the arena, allocated or not."""
        return address < self.base + len(self._bytes) and address + nbytes > self.base

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return self._table.rows

    # Access by the device: checked

    def read(self, addresses: NDArray[np.uint64], nbytes: int) -> NDArray[np.uint8]:
        """Row i holds the `nbytes` bytes at `addresses[i]`."""
        offsets = self._checked(addresses, nbytes, "read")
        shift = _WORD_SHIFTS.get(nbytes)
        if shift is not None and not (offsets & (nbytes - 1)).any():
            words = self._bytes.view(f"<u{nbytes}").take(offsets >> shift)
            return words.view(np.uint8).reshape(-1, nbytes)
        return self._rows(nbytes)[offsets].view(np.uint8).reshape(-1, nbytes)

    def write(self, addresses: NDArray[np.uint64], values: NDArray[np.uint8]) -> None:
        """Row i of `values` goes to `addresses[i]`; where rows overlap the later one wins."""
        nbytes = values.shape[1]
        offsets = self._checked(addresses, nbytes, "write")
        values = np.ascontiguousarray(values)
        shift = _WORD_SHIFTS.get(nbytes)
        if shift is not None and not (offsets & (nbytes - 1)).any():
            self._bytes.view(f"<u{nbytes}")[offsets >> shift] = values.view(f"<u{nbytes}")[:, 0]
            return
        self._rows(nbytes)[offsets] = values.view(f"V{nbytes}")[:, 0]

    def bytes_at(self, address: int, nbytes: int) -> bytes:
        at = self._checked_one(address, nbytes, "read")
        return self._bytes[at : at + nbytes].tobytes()

    def u32_at(self, address: int) -> int:
        return int.from_bytes(self.bytes_at(address, 4), "little")

    def u64_at(self, address: int) -> int:
        return int.from_bytes(self.bytes_at(address, 8), "little")

    def store(self, address: int, data: bytes | bytearray) -> None:
        """One checked write of `data`."""
        at = self._checked_one(address, len(data), "write")
        self._bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)

    # The table at work

    def _checked(self, addresses: NDArray[np.uint64], nbytes: int, access: str) -> NDArray[np.int64]:
        addresses = np.ascontiguousarray(addresses, np.uint64)
        if not len(addresses):
            return addresses.view(np.int64)
        table = self._table
        ends = table.read_ends if access == "read" else table.write_ends
        lowest, highest = int(addresses.min()), int(addresses.max())
        at = int(np.searchsorted(table.starts, np.uint64(lowest), "right")) - 1
        if at < 0 or highest + nbytes > int(ends[at]):
            self._check_each(addresses, nbytes, access, table.starts, ends)
        return (addresses - np.uint64(self.base)).view(np.int64)

    def _check_each(
        self,
        addresses: NDArray[np.uint64],
        nbytes: int,
        access: str,
        starts: NDArray[np.uint64],
        ends: NDArray[np.uint64],
    ) -> None:
        at = np.searchsorted(starts, addresses, "right") - 1
        outside = at < 0
        if len(starts):
            room = ends[at] - addresses  # wraps to a huge number past the end, so compare the address as well
            outside |= (addresses > ends[at]) | (room < np.uint64(nbytes))
        if outside.any():
            address = int(addresses[int(np.argmax(outside))])
            raise MemoryFault(address, nbytes, access, self._near(address))

    def _checked_one(self, address: int, nbytes: int, access: str) -> int:
        table = self._table
        at = bisect.bisect(table.addresses, address) - 1
        if at >= 0 and table.rows[at].mapped:
            end = table.rows[at].end
            if address + nbytes <= (_align_up(end, READ_GRANULE) if access == "read" else end):
                return address - self.base
        raise MemoryFault(address, nbytes, access, self._near(address))

    def _near(self, address: int) -> str:
        """Where `address` lies, in words a user can act on."""
        table = self._table
        at = bisect.bisect(table.addresses, address) - 1
        if at < 0:
            return "no allocation is below it"
        row = table.rows[at]
        what = f"{row.label!r}, {row.nbytes} bytes at {row.address:#x}"
        if address < row.end and not row.mapped:
            return f"inside {what}, which the device has no access to"
        if address < row.end:
            return f"starts {row.end - address} bytes before the end of {what}"
        return f"{address - row.end} bytes past {what}"

    def _rows(self, nbytes: int) -> NDArray[np.void]:
        """Overlapping items of `nbytes` bytes, one starting at every byte of the arena."""
        shape = (len(self._bytes) - nbytes + 1,)
        return np.ndarray(shape, np.dtype(f"V{nbytes}"), self._map, 0, (1,))

    def _row_at(self, address: int) -> Allocation:
        row = self.find(address)
        if row is None or row.address != address:
            raise ValueError(f"no allocation starts at {address:#x}")
        return row

    def _find_gap(self, nbytes: int, align: int) -> int:
        """First fit behind the guard of the previous allocation."""
        start = self.base + GUARD_BYTES
        limit = self.base + len(self._bytes)
        for row in (*self._table.rows, None):
            address = _align_up(start, align)
            if nbytes <= WINDOW_BYTES and address // WINDOW_BYTES != (address + nbytes - 1) // WINDOW_BYTES:
                address = _align_up(_align_up(address, WINDOW_BYTES), align)
            if address + nbytes + GUARD_BYTES <= (limit if row is None else row.address):
                return address
            if row is not None:
                start = row.end + GUARD_BYTES
        raise MemoryError(f"no gap of {nbytes} bytes is left in the arena of {len(self._bytes)}")

    def _poison(self, address: int, nbytes: int) -> None:
        """Up to the read granule, which never reaches into a neighbour; of a giant only both ends."""
        at = address - self.base
        words = self._bytes[at : at + _align_up(nbytes, READ_GRANULE)].view(np.uint32)
        words[: POISONED_BYTES // 4] = POISON
        words[-POISONED_BYTES // 4 :] = POISON

    def _release_pages(self, row: Allocation) -> None:
        page = mmap.PAGESIZE
        first, last = _align_up(row.address, page), row.end // page * page
        if last > first:
            self._map.madvise(mmap.MADV_DONTNEED, first - self.base, last - first)


def _take_arena() -> mmap.mmap:
    with _idle_lock:
        if _idle_arenas:
            return _idle_arenas.pop(0)
    arena = mmap.mmap(-1, ARENA_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    # One byte touched in a guard-separated page must not cost a huge page.
    arena.madvise(mmap.MADV_NOHUGEPAGE)
    return arena


def host_bytes(address: int, nbytes: int) -> NDArray[np.uint8]:
    """Writable view of host memory outside the arena, unchecked: for copies that a caller vouches for."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
