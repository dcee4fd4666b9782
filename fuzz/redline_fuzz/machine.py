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
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    ordinal: int  # place in the submission
    sequence: int  # among the dispatches of its queue
    dispatch: Dispatch
    ages: Ages
    done: list[Callable[[], None]] = field(default_factory=list)


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
        self.launches = launches
        self.queues: list[HostileQueue] = []
        self.random = Random(schedule.seed)
        self._past_l2, self._kernarg_at = past_l2, kernarg_at

    def queue(self, places: Sequence[int] = ()) -> HostileQueue:
        """One more queue of the agent. `places`: of what it dispatches in one replay, in turn; by default all."""
        self.queues.append(HostileQueue(self, places or range(self.launches)))
        return self.queues[-1]

    def note_width(self) -> None:
        """Another dispatch is undrained."""
        self.widest = max(self.widest, sum(len(queue.pending) for queue in self.queues))

    def counts(self, address: int) -> bytes:
        """Past L2 where the packet processor reads there."""
        look = self.caches.home if self._past_l2 else self.caches.in_l2
        return bytes(look(address + at) for at in range(12))

    def advance(self) -> bool:
        """One thing that is pending on any queue happens; False when nothing is."""
        queues = self.queues[::-1] if self.schedule.reverse else list(self.queues)
        if self.schedule.seed is not None:
            self.random.shuffle(queues)
        return any(queue.land() or queue.end_one() for queue in queues)

    def settle(self) -> None:
        """Nobody waits any more: what is left runs."""
        while self.advance():
            pass

    # How dispatches run

    def run(self, batch: list[_Issued]) -> None:
        """These dispatches end; the schedule says in which order, and whether others of other queues run among them."""
        if self.schedule.seed is not None:
            batch = batch + [item for queue in self.queues for item in queue.some_of()]
        chosen = [
            batch[at] for at in self.schedule.order([item.ordinal % self.launches for item in batch], self.random)
        ]
        if self.schedule.seed is None:
            for item in chosen:
                for _ in self._steps(item):
                    pass
            return
        running = [self._steps(item) for item in chosen]
        while running:  # byte by byte
            one = self.random.choice(running)
            if next(one, None) is None:
                running.remove(one)

    def _steps(self, item: _Issued) -> Iterator[int]:
        """One dispatch, a byte at a time: reads all, then writes all. A stale address may lead anywhere."""
        try:
            yield from self._kernel(item)
            self.ran.append(item.ordinal)
        except MemoryFault as fault:
            self.faults.append(f"dispatch {item.ordinal}: {fault}")
        for write in item.done:
            write()

    def _kernel(self, item: _Issued) -> Iterator[int]:
        dispatch = item.dispatch
        dims = dispatch.dims
        if dispatch.counts_va and self.schedule.stale == "newest":
            x, y, z = struct.unpack("<3I", self.counts(dispatch.counts_va))
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
        return values[0] if stale == "oldest" else self.random.choice(values)


class HostileQueue:
    """A back end for one queue of the machine: what is undrained stays undrained for as long as packets allow."""

    def __init__(self, machine: HostileMachine, places: Sequence[int]) -> None:
        self.machine, self._places = machine, places
        self.pending: list[_Issued] = []
        self._issued = 0
        self._writes: list[tuple[int, int, Callable[[], None]]] = []  # dispatches before it, GCR, write

    # What the packet reader says

    def begin(self, memory: Memory) -> None:
        """The host has written what it wanted to."""
        self.machine.caches.notice_host()

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Remember it with the caches as they are: it may run at any time from now on."""
        replay, at = divmod(self._issued, len(self._places))
        ordinal = replay * self.machine.launches + self._places[at]
        self.pending.append(_Issued(ordinal, self._issued, dispatch, dict(self.machine.caches.ages)))
        self._issued += 1
        self.machine.note_width()
        schedule, random = self.machine.schedule, self.machine.random
        if schedule.early:
            self._run(len(self.pending))
        elif schedule.seed is not None and random.random() < 0.2:
            self._run(random.randrange(len(self.pending) + 1))

    def drain(self) -> None:
        """Everything runs, in the worst order."""
        self._run(len(self.pending))

    def acquire(self, gcr: int, *, whole: bool) -> None:
        """Caches forget; what is undrained does not run for it."""
        self.machine.caches.acquire(gcr, whole=whole)

    def at_end_of_pipe(self, gcr: int, write: Callable[[], None]) -> None:
        """The write stays pending until a wait needs it."""
        self._writes.append((self._issued, gcr, write))

    def when_ended(self, gcr: int, write: Callable[[], None]) -> None:
        """The write comes with the end of the dispatch that was started last, which may have come already."""
        last = next((item for item in self.pending if item.sequence == self._issued - 1), None)
        write_all = partial(self._write, gcr, write)
        if last is None:
            write_all()
        else:
            last.done.append(write_all)

    def advance(self) -> bool:
        """A wait of this queue does not hold yet."""
        return self.land() or self.machine.advance()

    def counts(self, memory: Memory, address: int) -> bytes:
        """As the agent reads them."""
        return self.machine.counts(address)

    def close(self) -> None:
        """Nothing is held."""

    # What the machine asks for

    def land(self) -> bool:
        """The oldest pending write lands, and so everything that it waits for has run."""
        if not self._writes:
            return False
        before, gcr, write = self._writes.pop(0)
        self._run(sum(item.sequence < before for item in self.pending))
        self._write(gcr, write)
        return True

    def end_one(self) -> bool:
        """The dispatch that the schedule likes first ends."""
        if not self.pending:
            return False
        places = [item.ordinal % self.machine.launches for item in self.pending]
        at = self.machine.schedule.order(places, self.machine.random)[0]
        self.machine.run([self.pending.pop(at)])
        return True

    def some_of(self) -> list[_Issued]:
        """Some that are undrained, taken."""
        taken = [item for item in self.pending if self.machine.random.random() < 0.3]
        self.pending = [item for item in self.pending if item not in taken]
        return taken

    def _run(self, count: int) -> None:
        """The first `count` pending dispatches end."""
        batch, self.pending = self.pending[:count], self.pending[count:]
        if batch:
            self.machine.run(batch)

    def _write(self, gcr: int, write: Callable[[], None]) -> None:
        if gcr & GL2_WB:
            self.machine.caches.write_back()
        if gcr & GL2_INV:
            self.machine.caches.invalidate_l2(complete=False)
        write()
