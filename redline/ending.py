# SPDX-License-Identifier: Apache-2.0
"""How a submitted replay ends: seen by a wait, late, failed with its queue, cancelled, or closed in flight.

`flight.py` keeps the state and the first cause; here the queue and the signal are asked and told. Frees nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from . import hsa
from .errors import HsaError, QueueFailed, ReplayBusy, ReplayTimeout

if TYPE_CHECKING:
    from .flight import Flight


class Ending:
    """The ends of one replay's submissions. Does not hold the replay, so that the collector can end that too."""

    def __init__(self, flight: Flight, queues: Sequence[hsa.Queue], signal: hsa.Signal, device: str, what: str) -> None:
        self._flight, self._queues, self._signal = flight, queues, signal
        self._device, self._what = device, what
        self._packets: list[int] = []  # of each queue the index of the last one submitted
        self._released = True  # whether the submission in flight ends with its release
        self._submitter = 0  # the thread inside a submit

    def submit(self, submission: hsa.Submission, *, released: bool) -> None:
        """Publish a submission to the queues, in their order, holding the flight's lock.

        Raises what `hsa.Submission.submit` names.
        """
        try:
            self._submitter = threading.get_ident()
            self._packets = submission.submit()
            self._released = released
        finally:
            self._submitter = 0

    def wait(self, timeout: float) -> None:
        """Wait until the submission in flight is done; `timeout` in seconds. Raises what `Replay.wait` names."""
        flight, me = self._flight, threading.get_ident()
        try:
            flight.waiters.append(
                me
            )  # before the look at the flight's state: `close` tells that first, then looks here
            with flight.lock:
                ticket, packets, released = flight.ticket(), self._packets, self._released
                if self._signal.load() < 1:  # most replays are done when somebody asks
                    self._land(ticket, packets, released)
                    return
            self._wait_for(ticket, timeout)
            with flight.lock:
                self._land(ticket, packets, released)
        finally:
            flight.waiters.remove(me)

    def _land(self, ticket: int, packets: Sequence[int], released: bool) -> None:
        self._flight.land(ticket, released=released)
        if released and packets:  # none after an interrupted submit
            for queue, last in zip(self._queues, packets, strict=True):
                queue.completed(last)

    def note_failure(self) -> None:
        """Let the flight know of a queue that failed, whether or not anybody waits."""
        for queue in self._queues:
            if queue.failure is not None:
                self._note_failure()
                return

    def _note_failure(self) -> None:
        try:
            self._check_queues()
        except QueueFailed as error:
            self._fail(error)
        except HsaError:  # closed, which is no failure of the device's
            return

    def _fail(self, cause: QueueFailed) -> None:
        """The device stopped a queue. Others run on, or wait for it: they end before the memory counts as idle.

        Where one cannot be destroyed the replay stays in flight until `stop` succeeds.
        """
        if len(self._queues) == 1:
            self._flight.fail(cause)
            return
        self._flight.stop(cause)
        with suppress(HsaError):
            self._close_queues()
            self._flight.stopped()

    def _close_queues(self) -> None:
        """One that cannot be destroyed keeps no other running."""
        with ExitStack() as all_of_them:
            for queue in self._queues:
                all_of_them.callback(queue.close)

    def stop(self, how: str) -> None:
        """Destroy the queues, having said so first: nothing is submitted any more, and every wait ends.

        Raises HsaError when one cannot be destroyed; what was in flight then stays so. ReplayBusy in a signal handler
        that interrupted a submit, which would go on with a queue that is gone.
        """
        if self._submitter == threading.get_ident():
            raise ReplayBusy(
                "RL1407",
                where=f"replay on {self._device}",
                seen="the thread is inside Replay.submit",
                allowed="an end from outside; nothing was stopped",
                do="call cancel or close once submit has returned",
            )
        self.note_failure()  # the first cause is the one to keep
        self._flight.stop(self._stopped(how))
        self._close_queues()
        self._flight.stopped()

    def _wait_for(self, ticket: int, timeout: float) -> None:
        try:
            self._signal.wait_below(1, timeout, poll=self._check_alive)
        except QueueFailed as error:
            self._fail(error)
            raise
        except ReplayTimeout as error:
            raise self._late(ticket, timeout) from error

    def _check_alive(self) -> None:
        """Raise the first cause for which what is in flight will never end."""
        self._flight.check_sound("wait")
        self._check_queues()

    def _check_queues(self) -> None:
        for queue in self._queues:
            queue.check()

    def _stopped(self, how: str) -> QueueFailed:
        return QueueFailed(
            "RL1002",
            where=f"replay on {self._device}, {self._place()}",
            seen=f"{how} {'in flight' if self._flight.in_flight else 'between replays'}",
            allowed="a replay that nobody has stopped",
            do="close the replay and instantiate again",
        )

    def _late(self, ticket: int, timeout: float) -> ReplayTimeout:
        """The signal knows a value; whoever reads the message knows a plan and its launches."""
        error = ReplayTimeout(
            "RL1101",
            where=f"Replay.wait on {self._device}, {self._place()}",
            seen=f"not done after {timeout:g} s; it is still in flight",
            allowed="done within the timeout",
            do="wait again with a longer timeout; or close the replay, which cancels it, and instantiate again",
        )
        self._flight.late(ticket, error)
        return error

    def _place(self) -> str:
        return f"packet {', '.join(map(str, self._packets)) or 0} ({self._what})"
