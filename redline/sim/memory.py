# SPDX-License-Identifier: Apache-2.0
"""The software device's memory: one reserved arena with guard gaps, where addresses are real.

Every access of the device is checked against the allocation table, so a kernel that runs one byte over the
end of its buffer stops instead of reading its neighbour. Fresh memory holds a pattern that is NaN as f32, f64
and f16 and no canonical address, so that reading what nobody wrote shows. Does not model caches or
visibility: every byte written is seen at once. Does not decide which allocation is executable or mapped for
the device: the runtime table does, with `executable=` and `mapped=`.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from redline.sim import arena
from redline.sim.allocations import READ_GRANULE, Allocation, Allocations
from redline.sim.errors import MemoryFault
from redline.sim.gaps import GUARD_BYTES, Gaps, align_up

POISON = 0x7FFADEAD
POISONED_BYTES = 1 << 23  # at each end of an allocation: poison must not touch gigabytes

_WORD_SHIFTS = {4: 2, 8: 3}  # sizes whose aligned accesses move whole words


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
        self._map, nbytes = arena.take()
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8, nbytes)
        self.base = int(self._bytes.__array_interface__["data"][0])
        pages = (nbytes >> arena.PAGE_SHIFT) + 1
        self._table = Allocations(self.base, np.frombuffer(self._map, np.int32, pages, nbytes))
        self._gaps = Gaps(self.base + GUARD_BYTES, self.base + nbytes)
        # The collector may run anywhere, also while the table changes, and what it ends (a dropped replay) frees
        # memory: from inside, on the same thread. Such rows wait in `_doomed` for the end of the change.
        self._lock = threading.RLock()
        self._changing = False
        self._doomed: deque[Allocation] = deque()
        self._closed = False

    def close(self) -> None:
        """Give the pages back. The address range stays reserved and serves the next `Memory`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._table = Allocations(self.base, np.zeros(1, np.int32))  # the pages' numbers go to the next device
            arena.give_back(self._map)

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
            address = self._gaps.take(nbytes, max(align, READ_GRANULE))
            if address is None:
                raise MemoryError(f"no gap of {nbytes} bytes is left in the arena of {len(self._bytes)}")
            self._poison(address, nbytes)
            self._table.add(Allocation(address, nbytes, label, executable, mapped))
        return address

    def free(self, address: int) -> None:
        """Forget the allocation that starts at `address`; later accesses to it fault."""
        self._doomed.append(self._row_at(address))
        with self._change():
            pass

    def map_for_device(self, address: int) -> None:
        """Let the device touch the allocation that starts at `address`."""
        with self._change():
            self._table.map(self._row_at(address))

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
            if self._table.at(row.address) is row:  # not freed twice
                self._table.remove(row)
                self._poison(row.address, row.nbytes)
                self._release_pages(row)
                self._gaps.give_back(row.address, row.nbytes)

    def find(self, address: int, nbytes: int = 1) -> Allocation | None:
        """The allocation, mapped or not, that holds all of [address, address + nbytes)."""
        row = self._table.at(address)
        return row if row is not None and address + nbytes <= row.end else None

    def touches(self, address: int, nbytes: int) -> bool:
        """Whether any byte of the range is in the arena, allocated or not."""
        return address < self.base + len(self._bytes) and address + nbytes > self.base

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return self._table.rows()

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
        lowest, highest = int(addresses.min()), int(addresses.max())
        if not self._table.allows(lowest, highest + nbytes, access):
            refused = self._table.first_refused(addresses, nbytes, access)
            if refused is not None:
                raise MemoryFault(refused, nbytes, access, self._near(refused))
        return (addresses - np.uint64(self.base)).view(np.int64)

    def _checked_one(self, address: int, nbytes: int, access: str) -> int:
        if not self._table.allows(address, address + nbytes, access):
            raise MemoryFault(address, nbytes, access, self._near(address))
        return address - self.base

    def _near(self, address: int) -> str:
        """Where `address` lies, in words a user can act on."""
        row = self._table.below(address)
        if row is None:
            return "no allocation is below it"
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

    def _poison(self, address: int, nbytes: int) -> None:
        """Up to the read granule, which never reaches into a neighbour; of a giant only both ends."""
        at = address - self.base
        words = self._bytes[at : at + align_up(nbytes, READ_GRANULE)].view(np.uint32)
        words[: POISONED_BYTES // 4] = POISON
        words[-POISONED_BYTES // 4 :] = POISON

    def _release_pages(self, row: Allocation) -> None:
        page = mmap.PAGESIZE
        first, last = align_up(row.address, page), row.end // page * page
        if last > first:
            self._map.madvise(mmap.MADV_DONTNEED, first - self.base, last - first)


def host_bytes(address: int, nbytes: int) -> NDArray[np.uint8]:
    """Writable view of host memory outside the arena, unchecked: for copies that a caller vouches for."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
