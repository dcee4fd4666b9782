# SPDX-License-Identifier: Apache-2.0
"""The hostile machine: a back end of the software device's packet reader that does the worst that is legal.

Driven by encoded bytes alone. A kernel is a pattern, found by what stands at its entry; its pointers and arguments are
read from its kernarg segment, through stale caches like everything else. Dispatches stay undrained until a packet makes
the queue wait; then they run in the order that the schedule likes, on the oldest caches that the packets allow. Knows
no graph, plan or fence.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from random import Random

from redline.sim.dispatch import Dispatch
from redline.sim.errors import MemoryFault
from redline.sim.memory import Memory
from redline_fuzz.caches import GL2_INV, GL2_WB, Ages, Caches
from redline_fuzz.patterns import ABSOLUTE, CODE_BYTES, Access, Pattern, mix, mixed_byte
from redline_fuzz.schedules import Schedule


@dataclass(frozen=True)
class Seen:
    """What one dispatch was given and read: its place in the submission, pattern, grid, arguments and bytes."""

    number: int
    dims: tuple[int, int, int]
    values: bytes
    read: bytes


@dataclass
class _Issued:
    ordinal: int
    dispatch: Dispatch
    ages: Ages


class HostileMachine:
    """One agent. `past_l2`: its packet processor reads memory behind L2 (gfx12). `cached`, `settled`: see `Caches`.

    `kernarg_at`: the first of the two user SGPRs with the kernarg segment's address, behind a private segment buffer
    where there is one. `launches`: dispatches of one replay, so that a schedule can name them by place.

    `seen` holds what each dispatch of the submission read, by ordinal; `stores` who stored to each address, in order;
    `ran` who ended, in order; `faults` what no legal submission does. `widest`: the most dispatches that were undrained
    at a time.
    """

    def __init__(
        self,
        memory: Memory,
        patterns: dict[int, Pattern],
        schedule: Schedule,
        cached: Callable[[int], bool],
        settled: Container[int] = (),
        *,
        has_gl1: bool,
        past_l2: bool,
        kernarg_at: int,
        launches: int,
    ) -> None:
        self.memory, self.patterns, self.schedule = memory, patterns, schedule
        self.caches = Caches(memory, cached, settled, has_gl1=has_gl1, keeps=schedule.keeps)
        self.seen: dict[int, Seen] = {}
        self.faults: list[str] = []
        self.stores: dict[int, list[int]] = {}
        self.ran: list[int] = []
        self.widest = 0
        self._past_l2, self._kernarg_at, self._launches = past_l2, kernarg_at, launches
        self._random = Random(schedule.seed)
        self._issued = 0
        self._pending: list[_Issued] = []
        self._writes: list[tuple[int, int, Callable[[], None]]] = []  # dispatches before it, GCR, write

    # What the packet reader says

    def begin(self, memory: Memory) -> None:
        """The host has written what it wanted to."""
        self.caches.notice_host()

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Remember it with the caches as they are: it may run at any time from now on."""
        self._pending.append(_Issued(self._issued, dispatch, dict(self.caches.ages)))
        self._issued += 1
        self.widest = max(self.widest, len(self._pending))
        if self.schedule.early:
            self._run(len(self._pending))
        elif self.schedule.seed is not None and self._random.random() < 0.2:
            self._run(self._random.randrange(len(self._pending) + 1))

    def drain(self) -> None:
        """Everything runs, in the worst order."""
        self._run(len(self._pending))

    def acquire(self, gcr: int, *, whole: bool) -> None:
        """Caches forget; what is undrained does not run for it."""
        self.caches.acquire(gcr, whole=whole)

    def at_end_of_pipe(self, gcr: int, write: Callable[[], None]) -> None:
        """The write stays pending until a wait needs it."""
        self._writes.append((self._issued, gcr, write))

    def advance(self) -> bool:
        """The oldest pending write lands, and so everything that it waits for has run."""
        if not self._writes:
            return False
        before, gcr, write = self._writes.pop(0)
        self._run(sum(item.ordinal < before for item in self._pending))
        if gcr & GL2_WB:
            self.caches.write_back()
        if gcr & GL2_INV:
            self.caches.invalidate_l2(complete=False)
        write()
        return True

    def counts(self, memory: Memory, address: int) -> bytes:
        """Past L2 where the packet processor reads there."""
        look = self.caches.home if self._past_l2 else self.caches.in_l2
        return bytes(look(address + at) for at in range(12))

    def close(self) -> None:
        """Nothing is held."""

    def settle(self) -> None:
        """Nobody waits any more: what is left runs."""
        while self.advance():
            pass
        self.drain()

    # How dispatches run

    def _run(self, count: int) -> None:
        """The first `count` pending dispatches end; the schedule says in which order."""
        batch, self._pending = self._pending[:count], self._pending[count:]
        places = [item.ordinal % self._launches for item in batch]
        chosen = [batch[index] for index in self.schedule.order(places, self._random)]
        if self.schedule.seed is None:
            for item in chosen:
                for _ in self._steps(item):
                    pass
            return
        running = [self._steps(item) for item in chosen]
        while running:  # byte by byte
            one = self._random.choice(running)
            if next(one, None) is None:
                running.remove(one)

    def _steps(self, item: _Issued) -> Iterator[int]:
        """One dispatch, a byte at a time: reads all, then writes all. A stale address may lead anywhere."""
        try:
            yield from self._kernel(item)
            self.ran.append(item.ordinal)
        except MemoryFault as fault:
            self.faults.append(f"dispatch {item.ordinal}: {fault}")

    def _kernel(self, item: _Issued) -> Iterator[int]:
        dispatch = item.dispatch
        dims = dispatch.dims
        if dispatch.counts_va and self.schedule.stale == "newest":
            x, y, z = struct.unpack("<3I", self.counts(self.memory, dispatch.counts_va))
            dims = x, y, z
        pattern = self._pattern(item)
        if pattern is None:
            return
        low, high = dispatch.user_data[self._kernarg_at : self._kernarg_at + 2]
        kernarg = low | high << 32
        through = pattern.arguments_through
        values = b"".join(self._bytes(item, kernarg + at, size, through) for at, size in pattern.values)
        if 0 in dims:
            self.seen[item.ordinal] = Seen(pattern.number, dims, values, b"")
            return
        places = [(self._address(item, kernarg, access, through), access) for access in pattern.accesses]
        read = bytearray()
        for start, access in places:
            for at in range(access.nbytes) if access.reads else ():
                read.append(self._read(item, start + at, access.through))
                yield at
        self.seen[item.ordinal] = Seen(pattern.number, dims, values, bytes(read))
        state = mix(pattern.number, item.ordinal, dims, values, bytes(read))
        spots = (start + at for start, access in places if access.writes for at in range(access.nbytes))
        for address, place in {address: place for place, address in enumerate(spots)}.items():
            self.caches.store(address, mixed_byte(state, place))
            self.stores.setdefault(address, []).append(item.ordinal)
            yield place

    def _pattern(self, item: _Issued) -> Pattern | None:
        code = self._bytes(item, item.dispatch.entry, CODE_BYTES, ("I",))
        number = int.from_bytes(code, "little")
        if number not in self.patterns:
            self.faults.append(f"dispatch {item.ordinal}: stale code {code.hex()} at {item.dispatch.entry:#x}")
        return self.patterns.get(number)

    def _address(self, item: _Issued, kernarg: int, access: Access, through: tuple[str, ...]) -> int:
        if access.pointer == ABSOLUTE:
            return access.start
        return int.from_bytes(self._bytes(item, kernarg + access.pointer, 8, through), "little") + access.start

    def _bytes(self, item: _Issued, address: int, nbytes: int, through: tuple[str, ...]) -> bytes:
        return bytes(self._read(item, address + at, through) for at in range(nbytes))

    def _read(self, item: _Issued, address: int, through: tuple[str, ...]) -> int:
        """One byte through the stalest of these caches, or at L2."""
        stale = self.schedule.stale
        if not through or stale == "newest":
            return self.caches.in_l2(address)
        values = self.caches.since(address, min(item.ages[name] for name in through))
        return values[0] if stale == "oldest" else self._random.choice(values)
