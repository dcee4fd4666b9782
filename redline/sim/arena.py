# SPDX-License-Identifier: Apache-2.0
"""The address space of a software device: reserved once, never unmapped, handed on from one device to the next.

Reserving costs no memory, pages come at first touch. A process whose address space is limited (`ulimit -v`) gets a
smaller arena, so that most of the limit stays for the process itself. Does not know what is allocated inside.
"""

from __future__ import annotations

import mmap
import os
import resource
import threading

from redline.errors import HsaError

ARENA_BYTES = 1 << 35
_LEAST_BYTES = 1 << 20  # no Python runs under a limit that allows less
PAGE_SHIFT = 12
# Behind the arena, one 32-bit number for each of its pages and one more: `allocations.py` keeps it.
PAGE_ENTRY_BYTES = 4

MAP_NORESERVE = 0x4000  # linux/mman.h; the mmap module names it from 3.13 on

_idle: list[mmap.mmap] = []  # never unmapped: a stale numpy view must not end the process
_idle_lock = threading.Lock()
# A child process that is forked while another thread holds the lock would wait for it for ever.
os.register_at_fork(before=_idle_lock.acquire, after_in_parent=_idle_lock.release, after_in_child=_idle_lock.release)


def address_space_limit() -> int | None:
    """The process's limit in bytes (`ulimit -v`), None when there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def arena_bytes() -> int:
    """How many bytes of memory a new device has: a power of two, at most half of the limit."""
    limit = address_space_limit()
    return ARENA_BYTES if limit is None else min(ARENA_BYTES, _power_of_two(max(limit // 2, _LEAST_BYTES)))


def mapped_bytes(nbytes: int) -> int:
    """Size of the mapping for an arena of `nbytes`: the pages' numbers stand behind it."""
    return nbytes + mmap.PAGESIZE * -(-((nbytes >> PAGE_SHIFT) + 1) * PAGE_ENTRY_BYTES // mmap.PAGESIZE)


def take() -> tuple[mmap.mmap, int]:
    """A zeroed mapping that nobody uses, and how many of its bytes are memory."""
    with _idle_lock:
        arena = _idle.pop(0) if _idle else _reserve(arena_bytes())
    return arena, _power_of_two(len(arena))


def give_back(arena: mmap.mmap) -> None:
    """Drop the pages, which read as zero from then on. The address range serves the next device."""
    arena.madvise(mmap.MADV_DONTNEED)
    with _idle_lock:
        _idle.append(arena)


def _power_of_two(most: int) -> int:
    return 1 << most.bit_length() - 1


def _reserve(nbytes: int) -> mmap.mmap:
    size = mapped_bytes(nbytes)
    try:
        arena = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    except OSError as error:
        limit = address_space_limit()
        raise HsaError(
            "RL0914",
            where="software device",
            seen=f"{size} bytes of address space asked for: {error.strerror}",
            allowed=f"what is left of this process's limit of {limit} bytes" if limit else "a mapping that fits",
            do="raise the limit (ulimit -v unlimited), or close software devices, whose space the next one reuses",
        ) from error
    # One byte touched in a guard-separated page must not cost a huge page.
    arena.madvise(mmap.MADV_NOHUGEPAGE)
    return arena
