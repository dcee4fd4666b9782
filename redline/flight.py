# SPDX-License-Identifier: Apache-2.0
"""Who is using which memory now: replays in flight, open replays, and what each reads and writes.

Two replays on one device run on queues that nothing orders, so one may not be submitted while another that shares
written memory with it is in flight; nor may the host touch such memory. Also keeps the first cause for which a replay
is of no use any more, or late. Knows counts, tickets and causes only; `ending.py` asks the queue.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from .errors import NotRecorded, QueueFailed, RedlineError, ReplayBusy, ReplayTimeout

# One lock for all replays: a submit compares with whatever else is in flight. A child process that is forked while
# another thread holds it would wait for it for ever.
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

_Error = TypeVar("_Error", bound=RedlineError)

LEAVE_SECONDS = 10.0  # how long a thread may take to leave its wait: a thousand slices


@dataclass(slots=True)
class Uses:
    """How many replays are open on a piece of memory, how many in flight read or write it, how many threads of the host
    do, and who touched it last.

    `last` is the `Flight` of a replay, or None for the host and for memory that nobody has touched.
    """

    open_replays: int = 0
    readers: int = 0
    writers: int = 0
    hosts: int = 0
    last: object = None

    @property
    def busy(self) -> bool:
        """Whether a replay in flight touches the memory."""
        return bool(self.readers or self.writers)

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
            self.hosts += 1
            self.last = None
        try:
            yield
        finally:
            with _lock:
                self.hosts -= 1


class Flight:
    """The state of one replay: idle, in flight, late, failed or closed. Safe to use from any thread.

    Failed is for good: the device stopped the queue, or `Replay.cancel` did. Late lasts until a wait sees the end.
    """

    def __init__(self, reads: Sequence[Uses], writes: Sequence[Uses]) -> None:
        self._reads: list[Uses] = []
        self._writes: list[Uses] = []
        self._all: list[Uses] = []  # both, each once
        self._ticket = 0
        self._again = False
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
            for uses in self._all:
                uses.open_replays -= 1
            self._reads, self._writes, self._again = list(reads), list(writes), False
            self._all = list({id(uses): uses for uses in (*reads, *writes)}.values())
            for uses in self._all:
                uses.open_replays += 1

    @property
    def in_flight(self) -> bool:
        """Whether a submission has not been seen to end."""
        return self._in_flight

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
        if any(uses.writers for uses in self._reads) or any(uses.busy for uses in self._writes):
            raise ReplayBusy(
                "RL1404",
                where="Replay.submit",
                seen="another replay in flight shares memory that one of them writes",
                allowed="replays in flight together that share only what they read",
                do="wait for the other replay first, or record both in one graph",
            )
        if any(uses.hosts for uses in self._all):
            raise ReplayBusy(
                "RL1405",
                where="Replay.submit",
                seen="another thread is reading or writing memory of the replay",
                allowed="submits before or after host access",
                do="join that thread first",
            )
        again = self._again and all(uses.last is self for uses in self._all)
        self._in_flight = self._again = True
        self._late = None
        self._ticket += 1
        self._count(1)
        for uses in self._all:
            uses.last = self
        return again

    def give_back(self) -> None:
        """Nothing was submitted after all. The caller holds `lock`."""
        if self._resumed:
            self._in_flight, self._unreleased = False, True
            return
        self._again = False
        self._leave()

    def _leave(self) -> None:
        """Not in flight any more."""
        if self._in_flight or self._unreleased:
            self._in_flight = self._unreleased = False
            self._count(-1)

    def ticket(self) -> int:
        """The submission that a wait is for; raises when there is none, or when it will never end."""
        with _lock:
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

        Without its release the memory stays taken until a later one has ended with it.
        """
        with _lock:
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
                for uses in self._all:
                    uses.open_replays -= 1

    def _count(self, change: int) -> None:
        for uses in self._reads:
            uses.readers += change
        for uses in self._writes:
            uses.writers += change


def _again(error: _Error) -> _Error:
    """The same error without the frames that it went through: they would keep the replay alive that it is about."""
    fresh = copy.copy(error)
    fresh.__cause__ = error.__cause__
    return fresh
