# SPDX-License-Identifier: Apache-2.0
"""What the packet reader hands to a back end: the registers of one dispatch, as found.

No interpretation beyond splitting bit fields: how many waves there are, what a user SGPR means and which
floats a MODE byte asks for is the back end's business (`executor.py`; a fuzz back end may look at `entry`
alone).

Field positions: gc_*_sh_mask.h of the Linux kernel, COMPUTE_DISPATCH_INITIATOR and COMPUTE_PGM_RSRC2, equal
on gfx10.1, gfx10.3, gfx11.0, gfx11.5 and gfx12.0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from redline.sim.memory import Memory

LDS_GRANULE_BYTES = 512


@dataclass(frozen=True)
class Dispatch:
    """One dispatch. `dims` counts workgroups, or work-items when `uses_thread_dimensions`."""

    entry: int  # byte address of the first instruction
    rsrc1: int
    rsrc2: int
    rsrc3: int
    initiator: int
    user_data: tuple[int, ...]  # 16 words; those from `user_sgprs` on are never read
    dims: tuple[int, int, int]
    num_thread: tuple[int, int, int]  # FULL part: work-items of a whole workgroup
    partial: tuple[int, int, int] = (
        0,
        0,
        0,
    )  # PARTIAL part: work-items of the last workgroup, if PARTIAL_TG_EN
    ordinal: int = 0  # how many dispatches its queue ran before it; for messages
    counts_va: int = 0  # where `dims` were read by DISPATCH_INDIRECT; 0: they stood in the packet

    @property
    def wave(self) -> int:
        """Lanes of a wave, from CS_W32_EN."""
        return 32 if self.initiator >> 15 & 1 else 64

    @property
    def uses_thread_dimensions(self) -> bool:
        """USE_THREAD_DIMENSIONS: `dims` are work-items."""
        return bool(self.initiator >> 5 & 1)

    @property
    def has_partial_groups(self) -> bool:
        """PARTIAL_TG_EN: the last workgroup of each dimension has `partial` work-items."""
        return bool(self.initiator >> 1 & 1)

    @property
    def user_sgprs(self) -> int:
        """Words of `user_data` that a wave finds in its first SGPRs."""
        return self.rsrc2 >> 1 & 0x1F

    @property
    def lds_bytes(self) -> int:
        """LDS that a workgroup may use."""
        return (self.rsrc2 >> 15 & 0x1FF) * LDS_GRANULE_BYTES

    @property
    def float_mode(self) -> int:
        """FLOAT_MODE of RSRC1: the low byte of a wave's MODE register."""
        return self.rsrc1 >> 12 & 0xFF


class Backend(Protocol):
    """Executes dispatches, and decides when they end and who sees what they wrote.

    A back end that runs each dispatch to its end before the next packet is `InOrder`; another may keep dispatches
    undrained and caches stale, as hardware may.
    """

    def begin(self, memory: Memory) -> None:
        """An indirect buffer or an AQL dispatch starts: what the host wrote before its doorbell is in memory."""

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Start it, or raise a `DeviceFault`. Looks at `cancelled` in every step and raises `Cancelled` once it is
        set. A zero among `dims` starts nothing.
        """

    def drain(self) -> None:
        """Return when every dispatch so far has ended: CS_PARTIAL_FLUSH, an AQL barrier bit."""

    def acquire(self, gcr: int, *, whole: bool) -> None:
        """Do what GCR_CNTL says, for all addresses (`whole`) or for fewer."""

    def at_end_of_pipe(self, gcr: int, write: Callable[[], None]) -> None:
        """Call `write` once every dispatch so far has ended and GCR_CNTL's write-backs are done."""

    def when_ended(self, gcr: int, write: Callable[[], None]) -> None:
        """Call `write` once the dispatch that was started last has ended and GCR_CNTL's write-backs are done."""

    def advance(self) -> bool:
        """A wait does not hold yet: let one more thing happen. False when nothing is pending."""

    def counts(self, memory: Memory, address: int) -> bytes:
        """The 12 bytes that the packet processor sees at `address`."""

    def close(self) -> None:
        """Give back what the back end holds. Called once, when no queue runs any more."""


class InOrder:
    """A back end whose dispatches end before the next packet is read, with nothing cached."""

    def begin(self, memory: Memory) -> None:
        """Memory is read when it is needed."""

    def drain(self) -> None:
        """Nothing runs."""

    def acquire(self, gcr: int, *, whole: bool) -> None:
        """Nothing is cached."""

    def at_end_of_pipe(self, gcr: int, write: Callable[[], None]) -> None:
        """The end of the pipe is now."""
        write()

    def when_ended(self, gcr: int, write: Callable[[], None]) -> None:
        """It has ended."""
        write()

    def advance(self) -> bool:
        """Nothing is pending: only others can end a wait."""
        return False

    def counts(self, memory: Memory, address: int) -> bytes:
        """What memory holds."""
        return memory.bytes_at(address, 12)
