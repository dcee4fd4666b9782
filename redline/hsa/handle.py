# SPDX-License-Identifier: Apache-2.0
"""What owns an HSA resource, and how resources end: once, and in an order in which nothing runs on freed memory.

`Resources` is a runtime's list of what is open: the call that releases each one, and what must stay alive until then
(a callback, bytes that the runtime points into). A `Handle` is the Python side of one entry: a context manager that
releases it once. A handle that is dropped without `close()` keeps its resource until the runtime is closed: the
collector frees in an order of its own, and a buffer that goes before its queue is memory freed under a running kernel.

A queue is live from a submit until it is destroyed or its user has seen everything on it end (`Queue.completed`). What
is closed meanwhile is quarantined: it is released once every queue that was live then has ceased to be, for nobody here
knows which queue touches what. A queue that is live again later did not start on memory that was closed before.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self

from redline.errors import HsaError

if TYPE_CHECKING:
    from redline.hsa.lib import Hsa
    from redline.hsa.runtime import Runtime


class Rank(IntEnum):
    """The order in which kinds of resources end when a runtime closes over them."""

    QUEUE = 0  # first: it ends what runs
    CODE = 1
    SIGNAL = 2
    MEMORY = 3


@dataclass(frozen=True)
class _Resource:
    rank: Rank
    release: str  # a call that returns a status
    argument: Any
    keep: object


class Resources:
    """Open resources of one runtime, by number. Holds no handle, so that handles can go.

    Takes no lock: the collector may release from inside any of these calls. Each is one step of a dictionary.
    """

    def __init__(self, hsa: Hsa) -> None:
        self._hsa = hsa
        self._numbers = itertools.count()
        self._open: dict[int, _Resource] = {}
        #: Another number after each close of anything but a queue, and none twice: whoever kept addresses looks again.
        self.generation = -1
        # Live queues: the number of the resource, and one of its own for each time that it became live.
        self._live: dict[int, int] = {}
        self._quarantined: dict[int, frozenset[int]] = {}  # closed, and what was live then; in the order of closing

    def __len__(self) -> int:
        return len(self._open)

    @property
    def quarantined(self) -> int:
        """How many of the open resources are closed and wait for live queues."""
        return len(self._quarantined)

    def add(self, rank: Rank, release: str, argument: Any, keep: object = None) -> int:
        """Note a resource; its number."""
        number = next(self._numbers)
        self._open[number] = _Resource(rank, release, argument, keep)
        return number

    def live(self, queue: int) -> bool:
        """The queue of this number is about to be submitted to; whether it was idle."""
        if queue in self._live:
            return False
        self._live[queue] = next(self._numbers)
        return True

    def idle(self, queue: int) -> None:
        """Nothing runs on the queue of this number, nor will before the next submit."""
        self._live.pop(queue, None)
        if self._quarantined:
            self._end_quarantine()

    def release(self, number: int) -> None:
        """Release one resource, once, whoever asks first; unless it is a queue, not before the live queues end.

        HsaError if the runtime refuses; then it stays listed.
        """
        resource = self._open.get(number)
        if resource is None:
            return
        if resource.rank is not Rank.QUEUE:
            self.generation = next(self._numbers)
        if resource.rank is Rank.QUEUE or not self._live:
            self._release_now(number)
        else:
            self._quarantined.setdefault(number, frozenset(self._live.values()))
            self._end_quarantine()  # a queue may have ended meanwhile

    def _end_quarantine(self) -> None:
        """Release what no live queue holds. One that the runtime refuses stays listed until the runtime closes."""
        live = set(self._live.values())
        for number in list(self._quarantined):
            held = self._quarantined.get(number)
            if held is not None and held.isdisjoint(live):
                self._quarantined.pop(number, None)
                try:
                    self._release_now(number)
                except HsaError:  # whoever ended a queue did not ask for this
                    continue

    def _release_now(self, number: int) -> None:
        resource = self._open.pop(number, None)
        if resource is None:
            return
        try:
            self._hsa.check(resource.release, resource.argument)
        except HsaError:
            self._open[number] = resource
            raise
        if resource.rank is Rank.QUEUE:
            self.idle(number)

    def release_all(self) -> None:
        """Release everything, queues first and quarantined or not, and raise the first error.

        Once a queue refuses to end, all memory stays: whatever it runs may still write there.
        """
        resources = sorted(self._open.items(), key=lambda item: (item[1].rank, -item[0]))
        first: HsaError | None = None
        for number, resource in resources:
            is_queue = resource.rank is Rank.QUEUE
            if first is not None and not is_queue:
                break
            try:
                self.release(number)
            except HsaError as error:
                first = first or error
        if first is not None:
            raise first


class Handle:
    """Subclasses call `_own` once they have the resource; a constructor that fails afterwards calls `abandon`."""

    def __init__(self, runtime: Runtime) -> None:
        runtime.require_open()
        self.runtime = runtime
        self.closed = False
        self._numbers: list[int] = []

    def close(self) -> None:
        """Release the resource, or leave it in quarantine: for its user it is gone at once.

        The second call does nothing, nor does one after the runtime's own end.

        One that fails leaves the handle open: what the runtime did not give back is there, and may be closed again.
        """
        if self.closed:
            return
        self.closed = True
        if not self.runtime.closed:
            try:
                with contextlib.ExitStack() as last_in_first_out:
                    for number in self._numbers:
                        last_in_first_out.callback(self.runtime.resources.release, number)
            except HsaError:
                self.closed = False
                raise

    def abandon(self) -> None:
        """Release while an error is on its way: that one is kept, a second one is not raised."""
        with contextlib.suppress(HsaError):
            self.close()

    def _own(self, rank: Rank, release: str, argument: Any, keep: object = None) -> int:
        """`release(argument)` ends what was just made; `keep` lives until then. The resource's number."""
        self._numbers.append(self.runtime.resources.add(rank, release, argument, keep))
        return self._numbers[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
