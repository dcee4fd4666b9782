# SPDX-License-Identifier: Apache-2.0
"""A signal: one 64-bit value that host and device see, and a wait that always ends.

A wait looks once, spins briefly, then blocks in slices; the last two in the runtime and without the GIL, which ctypes
gives up for each call. HSA waits may return early and with the condition unmet, so every wait loops on the value.
Between slices a wait calls `poll`, which raises when the device can no longer get there (`Queue.check`). Source of
signals and memory orders: the HSA Runtime specification, and ROCR-Runtime's hsa.h.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from ctypes import byref
from functools import cached_property
from typing import TYPE_CHECKING

from redline.errors import ReplayTimeout
from redline.hsa import publish
from redline.hsa.abi import (
    HSA_WAIT_STATE_ACTIVE,
    HSA_WAIT_STATE_BLOCKED,
    SignalCondition,
    hsa_amd_profiling_dispatch_time_t,
    hsa_signal_t,
)
from redline.hsa.callbacks import interrupts
from redline.hsa.handle import Handle, Rank

if TYPE_CHECKING:
    from redline.hsa.agent import Agent

#: A replay takes some 10 to 1000 us, and a thread that slept needs tens of us to wake up: a spin of this length ends
#: short replays without that, and costs a long one a fraction of its time. (ROCr's blocked wait spins on by itself, for
#: 200 us in interrupt_signal.cpp, before it sleeps; HSA does not promise it.)
SPIN_SECONDS = 0.0001
SLICE_SECONDS = 0.01  # how late a wait may notice that its queue failed


class Signal(Handle):
    """A 64-bit value: `store`, `load`, and a wait with a deadline. Raises HsaError when the runtime makes none."""

    def __init__(self, agent: Agent, initial: int = 1) -> None:
        super().__init__(agent.runtime)
        handle = hsa_signal_t()
        self.runtime.hsa.check("hsa_signal_create", initial, 0, None, byref(handle))
        self.handle = handle.value
        self._own(Rank.SIGNAL, "hsa_signal_destroy", self.handle)
        self._load = self.runtime.hsa.table.addresses["hsa_signal_load_scacquire"]

    def __repr__(self) -> str:
        return f"<Signal {self.handle:#x}>"

    def store(self, value: int) -> None:
        """Store with system release. Raises HsaError on a closed runtime."""
        self.runtime.require_open()
        self.runtime.hsa.call("hsa_signal_store_screlease", self.handle, value)

    def load(self) -> int:
        """Load with system acquire. Raises HsaError on a closed runtime."""
        self.runtime.require_open()
        value = int(publish.load(self._load, self.handle))
        if interrupts:  # what a signal handler raised in a callback of a software device
            raise interrupts.pop()
        return value

    def wait_below(self, limit: int, timeout_s: float, poll: Callable[[], None] | None = None) -> int:
        """Wait until the value is below `limit` and return it.

        Raises ReplayTimeout after `timeout_s` seconds, what `poll` raises, and HsaError on a closed runtime.
        """
        deadline = time.monotonic() + timeout_s
        value = self.load()
        state, longest = HSA_WAIT_STATE_ACTIVE, SPIN_SECONDS
        while value >= limit:
            if poll is not None:
                poll()
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._timeout(limit, value, timeout_s)
            value = self._wait_once(limit, min(left, longest), state)
            state, longest = HSA_WAIT_STATE_BLOCKED, SLICE_SECONDS
        # Read after the value: a signal that was destroyed under the wait may have any.
        self.runtime.require_open()
        return value

    def dispatch_time(self, agent: Agent) -> tuple[float, float]:
        """When the dispatch that completed this signal last began and ended, in seconds of the runtime's clock.

        Its queue must have been profiled (`Queue.profile`) when it ran: the runtime does not know whether it was, and
        then the times mean nothing (zeros on a software device). Raises HsaError when the runtime refuses.
        """
        times = hsa_amd_profiling_dispatch_time_t()
        self.runtime.require_open()
        self.runtime.hsa.check("hsa_amd_profiling_get_dispatch_time", agent.handle, self.handle, byref(times))
        return times.start / self._ticks_per_second, times.end / self._ticks_per_second

    def _wait_once(self, limit: int, seconds: float, state: int) -> int:
        """One wait of the runtime's, which may end early; the value seen."""
        self.runtime.require_open()
        return int(
            self.runtime.hsa.call(
                "hsa_signal_wait_scacquire",
                self.handle,
                SignalCondition.HSA_SIGNAL_CONDITION_LT,
                limit,
                int(seconds * self._ticks_per_second),
                state,
            )
        )

    @cached_property
    def _ticks_per_second(self) -> int:
        return self.runtime.ticks_per_second()

    def _timeout(self, limit: int, seen: int, after: float) -> ReplayTimeout:
        return ReplayTimeout(
            "RL1101",
            where=f"wait for signal {self.handle:#x}",
            seen=f"value {seen} after {after:g} s",
            allowed=f"a value below {limit}",
            do="the work is in flight: wait again with a longer timeout; or close the queue to abandon it,"
            " or the replay and instantiate again",
        )
