# SPDX-License-Identifier: Apache-2.0
"""PM4 streams and AQL packets typed by hand, and a back end that remembers instead of executing.

Words come from the public headers, not from `redline/encoders`: these tests are about the reader alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_uint64, c_void_p

import numpy as np
from numpy.typing import NDArray

from redline.hsa import Agent, Runtime
from redline.sim.dispatch import Backend, Dispatch, InOrder
from redline.sim.memory import Memory
from redline.sim.runtime import SimRuntime

ENTRY = 0x00007F0012345600
KERNARG = 0x00007F00ABCD0040

RSRC1 = {"gfx1010": 0xE0AF0000, "gfx1030": 0xE0AF0000, "gfx1100": 0xE0AF0000, "gfx1151": 0xE0AF0000}
RSRC1["gfx1201"] = 0xE00F0000

# ACQUIRE_MEM of everything, CS_PARTIAL_FLUSH, and a one-dword NOP.
ACQUIRE = [0xC0065800, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0xA, 0x00000180]
FLUSH = [0xC0004600, 0x00000407]
PAD = [0xFFFF1000]


def set_sh(offset: int, *values: int) -> list[int]:
    """SET_SH_REG of consecutive registers."""
    return [0xC0000000 | len(values) << 16 | 0x7600, offset, *values]


def launch(
    entry: int = ENTRY,
    kernarg: int = KERNARG,
    groups: int = 4,
    *,
    rsrc1: int = 0xE00F0000,
    rsrc2: int = 0x00010084,
    initiator: int = 0x8045,
    threads: tuple[int, int, int] = (256, 1, 1),
) -> list[int]:
    """Everything a dispatch needs, then the dispatch: words of the golden gfx1201 stream by default."""
    return [
        *set_sh(0x207, *threads),
        *set_sh(0x20C, entry >> 8 & 0xFFFFFFFF, entry >> 40),
        *set_sh(0x212, rsrc1, rsrc2),
        *set_sh(0x215, 0),
        *set_sh(0x228, 0),
        *set_sh(0x240, kernarg & 0xFFFFFFFF, kernarg >> 32),
        *dispatch(groups, initiator=initiator),
    ]


def dispatch(x: int = 4, y: int = 1, z: int = 1, *, initiator: int = 0x8045) -> list[int]:
    """DISPATCH_DIRECT with the shader-type bit."""
    return [0xC0031502, x, y, z, initiator]


def ib_packet(address: int, dwords: int, signal: int = 0) -> NDArray[np.uint32]:
    """The vendor packet that runs one indirect buffer."""
    words = [0x00011500, 0xC0023F00, address & 0xFFFFFFFF, address >> 32, 0x00800000 | dwords, 0xA]
    return np.array([*words, *[0] * 8, signal & 0xFFFFFFFF, signal >> 32], np.uint32)


class Remembering(InOrder):
    """A back end that keeps each dispatch and does what `act` says, by default nothing."""

    def __init__(self, act: Callable[[Dispatch, Memory, threading.Event], None] | None = None) -> None:
        self.seen: list[Dispatch] = []
        self._act = act

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        self.seen.append(dispatch)
        if self._act is not None:
            self._act(dispatch, memory, cancelled)

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def device(
    target: str = "gfx1201", backend: Backend | None = None, *, patience_s: float = 5.0
) -> Iterator[tuple[SimRuntime, Agent]]:
    """An open software device with a fake back end, and its GPU agent."""
    sim = SimRuntime(target, backend or Remembering(), patience_s=patience_s)
    with Runtime.of_table(sim.table) as runtime:
        yield sim, runtime.agents()[0]
    assert sim.errors == [], "a callback of the software device raised"


def run_stream(agent: Agent, words: list[int], *, timeout_s: float = 5.0) -> None:
    """Run one stream on a fresh queue and wait for it."""
    with (
        agent.allocate(4 * len(words), "kernarg", executable=True) as ib,
        agent.signal(1) as signal,
        agent.queue() as queue,
    ):
        ib.write(np.array(words, np.uint32))
        queue.submit(ib_packet(ib.address, len(words), signal.handle))
        signal.wait_below(1, timeout_s, poll=queue.check)


def allocate_raw(runtime: Runtime, pool: int, nbytes: int, flags: int) -> tuple[int, int]:
    """Status and address of one allocation, without the checks of `Buffer`."""
    out = c_void_p()
    status = runtime.hsa.call("hsa_amd_memory_pool_allocate", c_uint64(pool), nbytes, flags, byref(out))
    return int(status), int(out.value or 0)


def bare_signal(agent: Agent, initial: int = 1) -> int:
    """The handle of a signal that no `Signal` owns, so that a test may destroy it under a running packet."""
    handle = c_uint64()
    agent.runtime.hsa.check("hsa_signal_create", initial, 0, None, byref(handle))
    return handle.value


def destroy_signal(agent: Agent, handle: int) -> None:
    """At once, whatever still uses it."""
    agent.runtime.hsa.check("hsa_signal_destroy", handle)
