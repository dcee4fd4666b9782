# SPDX-License-Identifier: Apache-2.0
"""Who is using which memory now: replays in flight, open replays, and what each reads and writes.

Two replays on one device run on queues that nothing orders, so one may not be submitted while another that shares
written memory with it is in flight; nor may the host touch such memory. Who shares what is found when a replay opens,
binds or closes: a submit looks at these other replays, not at each piece of memory. Also keeps the first cause for
which a replay is of no use any more, or late. Knows tickets and causes only; `ending.py` asks the queue.

The collector may close a dropped replay anywhere, also in a loop below that holds the lock: collections that it changes
are replaced, never changed.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from .errors import NotRecorded, QueueFailed, RedlineError, ReplayBusy, ReplayTimeout

# One lock for all replays: a submit compares with whatever else is in flight. A child process that is forked while
# another thread holds it would wait for it for ever.
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

_Error = TypeVar("_Error", bound=RedlineError)

LEAVE_SECONDS = 10.0  # how long a thread may take to leave its wait: a thousand slices


_by_host: list[Uses] = []  # what threads of the host are reading or writing now


class Uses:
    """Which open replays use a piece of memory."""

    def __init__(self) -> None:
        self.flights: dict[Flight, bool] = {}  # and whether it writes

    @property
    def open_replays(self) -> int:
        """How many replays are open on the memory."""
        return len(self.flights)

    @property
    def busy(self) -> bool:
        """Whether a replay in flight touches the memory."""
        return any(flight.holds_memory for flight in self.flights)

    def check_idle(self, what: str) -> None:
        """Raise ReplayBusy while a replay in flight touches the memory."""
        if self.busy:
            raise ReplayBusy(
                "RL1402",
                where=f"DeviceBuffer.{what}",
                seen="a replay that uses this buffer is in flight",
                allowed="host access between replays",
                do="call replay.wait(timeout=...) first; behind submit(release=False), submit and wait with a release",
            )

    @contextmanager
    def by_host(self, what: str) -> Iterator[None]:
        """A copy of the host's: no replay of this memory starts before its end, and the next one starts cold."""
        with _lock:
            self.check_idle(what)
            _by_host.append(self)
            for flight in self.flights:
                flight.warm = False
        try:
            yield
        finally:
            with _lock:
                _by_host.remove(self)


class Flight:
    """The state of one replay: idle, in flight, late, failed or closed. Safe to use from any thread.

    Failed is for good: the device stopped the queue, or `Replay.cancel` did. Late lasts until a wait sees the end.
    """

    def __init__(self, reads: Sequence[Uses], writes: Sequence[Uses]) -> None:
        self._uses: list[Uses] = []
        self._neighbours: frozenset[Flight] = frozenset()  # other open replays that share memory with this one
        self._rivals: frozenset[Flight] = frozenset()  # those of them with which it shares what one of the two writes
        self._ticket = 0
        self.warm = False  # whether nobody else touched the memory since the last replay
        self._in_flight = False
        self._unreleased = False  # submitted with release=False: done for the host to see only after a later submit
        self._resumed = False  # whether this submission came behind such a one
        self._failed: QueueFailed | None = None
        self._late: ReplayTimeout | None = None  # the first wait for this submission that timed out
        self.closed = False
        self.waiters: list[int] = []  # threads inside a wait
        self.lock = _lock
        self.use(reads, writes)

    def use(self, reads: Sequence[Uses], writes: Sequence[Uses]) -> None:
        """The memory that the replay reads and writes from now on. Only between replays."""
        with _lock:
            self._use_nothing()
            self.warm = False
            writer = dict.fromkeys(reads, False) | dict.fromkeys(writes, True)
            self._uses = list(writer)
            for uses, writes_it in writer.items():
                for other, other_writes_it in uses.flights.items():
                    self._meet(other, writes_it or other_writes_it)
                uses.flights = {**uses.flights, self: writes_it}

    def _meet(self, other: Flight, one_writes: bool) -> None:
        for one, two in ((self, other), (other, self)):
            one._neighbours |= {two}
            if one_writes:
                one._rivals |= {two}

    def _use_nothing(self) -> None:
        for other in self._neighbours:
            other._neighbours -= {self}
            other._rivals -= {self}
        for uses in self._uses:
            uses.flights = {flight: writes for flight, writes in uses.flights.items() if flight is not self}
        self._uses, self._neighbours, self._rivals = [], frozenset(), frozenset()

    @property
    def in_flight(self) -> bool:
        """Whether a submission has not been seen to end."""
        return self._in_flight

    @property
    def holds_memory(self) -> bool:
        """Whether launches of the replay may still run: in flight, or not released."""
        return self._in_flight or self._unreleased

    def check_sound(self, what: str) -> None:
        """Raise NotRecorded when the replay is closed, the first cause when it has failed."""
        if self.closed:
            do = "instantiate the plan again"
            raise NotRecorded("RL1204", where=f"Replay.{what}", seen="a closed replay", allowed="an open one", do=do)
        if self._failed is not None:
            raise _again(self._failed)

    def check_idle(self, what: str) -> None:
        """Raise unless the replay is open, sound and not in flight."""
        self.check_sound(what)
        if self._in_flight:
            late = self._late
            raise ReplayBusy(
                "RL1401",
                where=f"Replay.{what}",
                seen="the replay is in flight" + (f", and first {late.where}: {late.seen}" if late else ""),
                allowed=f"{what} between replays",
                do="wait again, or close the replay" if late else "call replay.wait(timeout=...) first",
            ) from (_again(late) if late else None)
        if self._unreleased and what != "submit":
            raise ReplayBusy(
                "RL1406",
                where=f"Replay.{what}",
                seen="the last submit was one with release=False: its launches may still run",
                allowed=f"{what} behind a submit with release=True",
                do="submit and wait with release=True first",
            )

    def take(self) -> bool:
        """Be in flight; whether nobody else touched the memory since the last time. Raises ReplayBusy.

        The caller holds `lock` and has called `check_idle`.
        """
        self._resumed = self._unreleased
        if self._unreleased:  # everything is still taken from the last time
            self._in_flight, self._unreleased = True, False
            self._ticket += 1
            return True
        for other in self._rivals:
            if other._in_flight or other._unreleased:
                raise self._shared()
        if _by_host and not set(_by_host).isdisjoint(self._uses):
            raise self._read_by_host()
        warm = self.warm
        self._in_flight = self.warm = True
        self._late = None
        self._ticket += 1
        for other in self._neighbours:
            other.warm = False
        return warm

    def _shared(self) -> ReplayBusy:
        return ReplayBusy(
            "RL1404",
            where="Replay.submit",
            seen="another replay in flight shares memory that one of them writes",
            allowed="replays in flight together that share only what they read",
            do="wait for the other replay first, or record both in one graph",
        )

    def _read_by_host(self) -> ReplayBusy:
        return ReplayBusy(
            "RL1405",
            where="Replay.submit",
            seen="another thread is reading or writing memory of the replay",
            allowed="submits before or after host access",
            do="join that thread first",
        )

    def give_back(self) -> None:
        """Nothing was submitted after all. The caller holds `lock`."""
        if self._resumed:
            self._in_flight, self._unreleased = False, True
            return
        self.warm = False
        self._leave()

    def _leave(self) -> None:
        """Not in flight any more."""
        self._in_flight = self._unreleased = False

    def ticket(self) -> int:
        """The submission that a wait is for; raises when there is none, or when it will never end.

        The caller holds `lock`.
        """
        self.check_sound("wait")
        if not self._in_flight:
            raise NotRecorded(
                "RL1203",
                where="Replay.wait",
                seen="nothing in flight",
                allowed="a wait for each submit",
                do="call replay.submit() first, or replay.run()",
            )
        return self._ticket

    def land(self, ticket: int, *, released: bool = True) -> None:
        """That submission has ended. A slower thread that waited for an earlier one changes nothing.

        Without its release the memory stays taken until a later one has ended with it. The caller holds `lock`.
        """
        if ticket != self._ticket:
            return
        if released or self._failed:
            self._leave()
        elif self._in_flight:
            self._in_flight, self._unreleased = False, True

    def late(self, ticket: int, timeout: ReplayTimeout) -> None:
        """A wait for that submission timed out; the first one to do so is the cause that others are told."""
        with _lock:
            if ticket == self._ticket and self._in_flight:
                self._late = self._late or _again(timeout)

    def fail(self, cause: QueueFailed) -> None:
        """The device stopped the queue: nothing is in flight any more. The first cause is kept."""
        with _lock:
            if self._failed is None:
                self._failed = _again(cause)
                self._leave()

    def stop(self, cause: QueueFailed) -> None:
        """The host is about to end the queue: nothing starts and every wait ends; in flight until `stopped`."""
        with _lock:
            self._failed = self._failed or _again(cause)

    def stopped(self) -> None:
        """The queue is gone: nothing of the replay runs or will."""
        with _lock:
            self._leave()

    def end_waits(self) -> None:
        """Returns once no thread is inside a wait, which would look at what is about to be freed.

        The caller has called `stop`, or nothing is in flight. Raises ReplayBusy when the wait is this thread's own
        (a signal handler's caller), and when another thread does not leave.
        """
        deadline = time.monotonic() + LEAVE_SECONDS
        while waiters := list(self.waiters):
            if threading.get_ident() in waiters or time.monotonic() > deadline:
                raise ReplayBusy(
                    "RL1407",
                    where="Replay.close",
                    seen=f"{len(waiters)} threads inside Replay.wait",
                    allowed="none; nothing was freed",
                    do="call close again once they have returned; a signal handler may call cancel instead",
                )
            time.sleep(0.001)

    def close(self) -> None:
        """The replay's queue is gone: nothing of it runs or will."""
        with _lock:
            if not self.closed:
                self.closed = True
                self._leave()
                self._use_nothing()


def _again(error: _Error) -> _Error:
    """The same error without the frames that it went through: they would keep the replay alive that it is about."""
    fresh = copy.copy(error)
    fresh.__cause__ = error.__cause__
    return fresh
