# SPDX-License-Identifier: Apache-2.0
"""Replay: patch, submit, wait. Owns queues and, through `Placed`, memory and code.

Everything that a submit needs is made at instantiate; after that, a replay writes nothing but patched arguments and AQL
packets. Decides no order and no fence.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from . import hsa
from .bindings import bind, merged, touched
from .ending import Ending
from .errors import BindingError, HsaError, NotRecorded, QueueFailed, ReplayTimeout
from .fitting import check_grid, check_plan, check_queues, check_target
from .flight import Flight
from .freshness import check_fresh
from .packets import Batches, repeated
from .patching import Patches
from .placed import Placed, describe
from .route import route_proof
from .spans import Span, spans

if TYPE_CHECKING:
    from .device import Bindings, Device
    from .plan import Plan

#: Slots of the smallest ring.
LEAST_PACKETS: Final = 64

_NUMBER: Final = int | float
_LONGEST_WAIT: Final = 86400.0  # a day: every wait ends


class Replay:
    """A plan on a device. Made by `Device.instantiate`; a context manager that frees everything it owns.

    One that is dropped without `close` is closed by the garbage collector. Making one raises what `Device.instantiate`
    names (each a RedlineError), the end of its `with` what `close` raises.
    """

    def __init__(self, device: Device, plan: Plan, bindings: Bindings) -> None:
        check_plan(plan)
        self.device, self.plan, self.program = device, plan, plan.program
        check_target(device, plan)
        self._bound = bind(plan, device, bindings)
        check_grid(device, plan)
        check_queues(device, plan)
        self._name = f"plan {plan.fingerprint[:16]}"
        stack = ExitStack()
        try:
            self.placed = Placed(device, plan, self._bound, stack)
            self._patches = Patches(self.program, self.placed.kernarg)
            self._batches = _all_batches(self.placed)
            self._queues = [self._made_queue(stack, len(packets)) for packets in self._batches[False, True]]
            if self.program.form == "aql" and self.program.options.profile:
                for queue in self._queues:
                    queue.profile()
            self._once = {kind: self._submission(batches, 1) for kind, batches in self._batches.items()}
        except BaseException:
            with suppress(HsaError):  # nothing was submitted; the first error is the one to raise
                stack.close()
            raise
        self._flight = Flight(*touched(plan, self._bound))
        self._submissions = 0
        self._resources = device.runtime.resources
        self._generation = -2  # what was closed until now is looked at by the first use
        self._ending = Ending(self._flight, self._queues, self.placed.final, device.name, _described(plan))
        # Must not hold the replay itself, nor may the queues' packet descriptions: it would never be collected.
        self._free = weakref.finalize(self, _free, self._queues, stack, self._flight)

    def __repr__(self) -> str:
        return f"<Replay of {self.plan!r} on {self.device.name}>"

    # -- instantiate --

    def _made_queue(self, stack: ExitStack, packets: int) -> hsa.Queue:
        """A queue whose ring holds one replay; the stack closes it before the memory that it uses."""
        most = self.device.agent.queue_max_size
        if packets > most:
            raise BindingError(
                "RL0716",
                where=f"instantiate on {self.device.name}",
                seen=f"{packets} packets on one queue",
                allowed=f"at most {most}, what a ring holds there",
                do="lower with form='pm4', or record fewer launches per graph",
            )
        return stack.enter_context(self.device.agent.queue(max(LEAST_PACKETS, 1 << (packets - 1).bit_length())))

    # -- use --

    def patch(self, /, **values: Any) -> None:
        """Set slots in place, all or none.

        Raises NotRecorded for a name without a slot or a closed replay, RecordError for a value that does not fit its
        type, ReplayBusy while in flight, QueueFailed after the device stopped the queue, HsaError when the device is
        closed, StalePlan as `submit` does.
        """
        with self._flight.lock:
            staged = self._patches.stage(values)
            self._check_usable("patch")
            self._patches.apply(staged)

    def bind(self, bindings: Bindings) -> None:
        """Bind other memory to some of the outside buffers, all or none; the next replay takes the cold entry.

        Buffers not named keep their memory. Raises ReplayBusy while in flight, BindingError as `Device.instantiate`
        does, NotRecorded when closed, QueueFailed when the queue has failed, HsaError when the runtime is closed,
        StalePlan when memory, code or signals of the replay's own were closed beneath it.
        """
        with self._flight.lock:
            self._check_usable("bind")
            now = bind(self.plan, self.device, merged(self.plan, self._bound, bindings))
            self.placed.bind(now)
            self._bound = now
            self._flight.use(*touched(self.plan, now))

    def submit(self, times: int = 1, *, release: bool = True) -> None:
        """Submit `times` replays back to back and return; all with the same arguments.

        Only the last ends with the drain and the release for the host. With `release=False` (a plan of boundary="queue"
        only) that one leaves them out too: what follows must be another submit, and the host may neither read, patch
        nor bind until one with a release is done.

        Raises ReplayBusy while this replay, or another that shares written memory with it, is in flight, and while
        another thread of the host reads or writes memory of it; NotRecorded while a slot has no value, when the replay
        is closed, for a number of times or a release that this plan does not have; QueueFailed when the device has
        stopped the queue; ReplayTimeout when the queue's ring stays full for a second; HsaError when the device is
        closed; StalePlan when memory bound to the replay, or memory, code or signals of its own, were closed beneath it
        by handles of `redline.hsa`. Nothing was submitted then.
        """
        if isinstance(times, bool) or times != 1 or not release:
            self._check_batch(times, release)
        with self._flight.lock:
            self._check_usable("submit")
            if self._patches.missing:
                raise self._unpatched()
            warm = self._flight.take() and self.plan.boundary != "host"
            try:
                submission = self._once[warm, release] if times == 1 else self._batch(times, warm, release)
                self._ending.submit(submission, released=release)
                self._submissions += 1
            except (HsaError, QueueFailed, ReplayTimeout):
                self._flight.give_back()  # refused before a slot of any ring was reserved
                raise
            # Anything else, such as an interrupt, may have come after a packet was published: in flight until waited
            # for or closed.

    def _batch(self, times: int, warm: bool, release: bool) -> hsa.Submission:
        """Several replays; only the last ends with what the host waits for, but for those that end by themselves."""
        host = self.plan.boundary == "host"
        first, again = self._batches[warm, host], self._batches[not host, host]
        return self._submission(repeated(first, again, self._batches[not host, release], times), times)

    def _submission(self, batches: Batches, times: int) -> hsa.Submission:
        """Each queue with its packets, and what names one of them. Holds no replay."""
        parts: list[Any] = [
            (queue, packets, partial(describe, self._name, self.program, self.plan.launches, lane, times))
            for lane, (queue, packets) in enumerate(zip(self._queues, batches, strict=True))
        ]
        return hsa.Submission(parts, self.placed.signals)

    def _check_batch(self, times: int, release: bool) -> None:
        rings = zip(self._queues, self._batches[False, True], strict=True)
        most = min(queue.packets // len(packets) for queue, packets in rings)
        if self.program.form == "pm4 phases" or (self.program.form == "aql" and self.program.lanes > 1):
            most = 1
        if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= most:
            raise NotRecorded(
                "RL1205",
                where="Replay.submit(times=)",
                seen=repr(times),
                allowed=f"1 to {most}: what the queues' rings hold; 1 where lanes wait for one another",
                do="submit again for more",
            )
        if not release and self.plan.boundary != "queue":
            raise NotRecorded(
                "RL1205",
                where="Replay.submit(release=False)",
                seen=f'a plan of boundary="{self.plan.boundary}"',
                allowed='boundary="queue": nobody else looks between replays',
                do='compile with boundary="queue", or leave release= out',
            )

    def wait(self, timeout: float = 10.0) -> None:
        """Wait until the submitted replay is done; `timeout` in seconds.

        After a time-out the replay stays in flight: wait again, cancel or close it; until a wait has seen its end, what
        is refused in flight names the time-out as its cause. Ctrl-C leaves it in flight too.

        Raises ReplayTimeout with the packet and its launches; QueueFailed, at once and ever after with the first cause,
        when the device stopped the queue or another thread cancelled or closed the replay; NotRecorded when nothing was
        submitted or the replay is closed; HsaError for a timeout that is no number from 0 to 86400 and when the device
        is closed.
        """
        _check_timeout(timeout)
        self.device.runtime.require_open()
        self._ending.wait(timeout)

    def run(self, timeout: float = 10.0) -> None:
        """submit() and wait(); `timeout` in seconds, for the wait.

        Raises what these raise: ReplayBusy, NotRecorded, QueueFailed, ReplayTimeout, HsaError, StalePlan.
        """
        _check_timeout(timeout)
        self.submit()
        self._ending.wait(timeout)

    def spans(self) -> tuple[Span, ...]:
        """When the launches of the last replay ran, for a program lowered with `profile=True`; times in seconds.

        One span for each launch of form="aql", else one for each stream of words. Raises NotRecorded for a program
        without timestamps, before the first replay and when closed, ReplayBusy while in flight, QueueFailed when the
        queue has failed, HsaError when the device is closed, StalePlan as `submit` does.
        """
        with self._flight.lock:
            self._check_usable("spans")
            self._check_submitted("spans")
            return spans(self.placed)

    def route_proof(self) -> dict[str, Any]:
        """What this replay submits, read back from the memory that the device reads, and how often it did.

        `device`, `form`, `queues`, `launches`, `kernels`, `dwords`, `packets`; `submissions` so far, each of one replay
        or a batch; `sequence_hash`, sha256 over words and packets with their relocated dwords zeroed, equal to
        `program_hash` when memory still holds what was lowered; `reason`, why it is not the form that was asked for, or
        "". Raises NotRecorded when closed, HsaError when the device is closed, QueueFailed when the queue has failed,
        StalePlan as `submit` does.
        """
        self._check_open("route_proof")
        self._check_fresh("route_proof")
        return route_proof(self.placed, self.device.name, self._submissions)

    def cancel(self) -> None:
        """End the replay for good, in flight or not, by destroying its queue. From any thread, or a signal handler.

        A thread that waits for it gets QueueFailed at once, and so does every later use; `close` frees it. What it was
        writing is undefined. Does nothing to a replay that is closed or cancelled. Raises HsaError when the queue
        cannot be destroyed (the replay then stays in flight, for the device may still run it) and when the device is
        closed; ReplayBusy in a signal handler that interrupted the replay's own submit: nothing was stopped.
        """
        self.device.runtime.require_open()
        if not self._flight.closed:
            self._ending.stop("cancelled")

    def close(self) -> None:
        """Free everything. A replay in flight is cancelled; a thread that waits for it gets QueueFailed first.

        When a queue cannot be destroyed, no memory is freed and the replay stays in flight: the device may use it.
        Raises HsaError then, and for anything else that the runtime does not give back, which stays with the device
        until that is closed; ReplayBusy in a signal handler that interrupted the replay's own submit or wait.
        """
        if not self._flight.closed:
            self._ending.stop("closed")
            if not self.device.runtime.closed:  # in a forked child there is nobody to wait for
                self._flight.end_waits()
            self._free()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside --

    def _unpatched(self) -> NotRecorded:
        return NotRecorded(
            "RL1202",
            where="Replay.submit",
            seen=f"slots without a value: {', '.join(sorted(self._patches.missing))}",
            allowed="every slot patched once, or declared with default=",
            do="call replay.patch(...) first",
        )

    def _check_submitted(self, what: str) -> None:
        if not self._submissions:
            raise NotRecorded(
                "RL1203",
                where=f"Replay.{what}",
                seen="nothing was submitted yet",
                allowed="a replay that has run",
                do="call replay.run() first",
            )

    def _check_open(self, what: str) -> None:
        self.device.runtime.require_open()
        self._ending.note_failure()
        self._flight.check_sound(what)

    def _check_usable(self, what: str) -> None:
        self.device.runtime.require_open()
        self._ending.note_failure()
        self._flight.check_idle(what)
        if self._resources.generation != self._generation:
            self._check_fresh(what)

    def _check_fresh(self, what: str) -> None:
        """Something of the device's was closed since the last look. A bind may mend what is bound."""
        generation = self._resources.generation  # before the look, for other threads close too
        check_fresh(what, self.placed, {} if what == "bind" else self._bound)
        if what != "bind":
            self._generation = generation


def _all_batches(placed: Placed) -> dict[tuple[bool, bool], Batches]:
    """The packets of one replay, by (warm, release)."""
    kinds = [(warm, release) for warm in (False, True) for release in (False, True)]
    return {(warm, release): placed.batches(warm=warm, release=release) for warm, release in kinds}


def _free(queues: list[hsa.Queue], stack: ExitStack, flight: Flight) -> None:
    """Queues go first, so that nothing runs when memory is freed.

    What the runtime does not take back then stays with the device until its end, and is no use of the bound memory.
    """
    for queue in queues:
        queue.close()
    try:
        stack.close()
    finally:
        flight.close()


def _described(plan: Plan) -> str:
    names = ", ".join(str(launch) for launch in plan.launches[:4])
    more = "" if len(plan.launches) <= 4 else f" and {len(plan.launches) - 4} more"
    return f"plan {plan.fingerprint[:16]}: {names}{more}"


def _check_timeout(timeout: float) -> None:
    """Seconds, within a day and not negative: every wait ends."""
    if isinstance(timeout, bool) or not isinstance(timeout, _NUMBER) or not 0 <= timeout <= _LONGEST_WAIT:
        raise HsaError(
            "RL0912",
            where="timeout",
            seen=repr(timeout),
            allowed=f"a number of seconds from 0 to {_LONGEST_WAIT:.0f}",
            do="give seconds; wait again where it may take longer",
        )
