# SPDX-License-Identifier: Apache-2.0
"""A kernel descriptor in device memory and the AQL packets that launch it, typed by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from redline.errors import QueueFailed
from redline.hsa import Agent, Buffer
from redline.sim.dispatch import Dispatch
from redline.sim.runtime import SimRuntime
from tests.sim.streams import Remembering, device

# rsrc1, rsrc2, rsrc3, properties of a kernel with one workgroup id and 1 KiB of LDS, by LLVM 22.
LLVM = {
    "gfx1010": (0xE0AF0000, 0x8C, 0, 0x0409),
    "gfx1030": (0xE0AF0000, 0x8C, 0, 0x0409),
    "gfx1100": (0xE0AF0000, 0x9E, 0x20, 0x0408),
    "gfx1151": (0xE0AF0000, 0x84, 0x20, 0x0408),
    "gfx1201": (0xE00F0000, 0x84, 0x20, 0x0408),
}
ENTRY_OFFSET = 0x100
UNSET = 0xDEADBEEF


def descriptor(target: str = "gfx1201", **changed: int) -> bytes:
    """64 bytes as LLVM writes them: group, private and kernarg bytes, 4 zeros, entry offset, 20 zeros, rsrc3, rsrc1,
    rsrc2, properties, preload, 4 zeros."""
    rsrc1, rsrc2, rsrc3, properties = LLVM[target]
    values = {"group": 1024, "private": 0, "kernarg": 64, "gap0": 0, "entry": ENTRY_OFFSET, "gap1": 0, "preload": 0}
    values |= {"rsrc1": rsrc1, "rsrc2": rsrc2, "rsrc3": rsrc3, "properties": properties, "gap2": 0} | changed
    head = struct.pack("<4Iq", *(values[name] for name in ("group", "private", "kernarg", "gap0", "entry")))
    words = struct.pack("<3I", *(values[name] for name in ("rsrc3", "rsrc1", "rsrc2")))
    tail = struct.pack("<2HI", *(values[name] for name in ("properties", "preload", "gap2")))
    return head + struct.pack("<I", values["gap1"]) + bytes(16) + words + tail


@dataclass
class Kernel:
    """A descriptor in device memory, an argument block, and the packet that launches it."""

    sim: SimRuntime
    agent: Agent
    code: Buffer
    arguments: Buffer
    backend: Remembering

    def packet(
        self,
        grid: tuple[int, int, int] = (1024, 1, 1),
        block: tuple[int, int, int] = (256, 1, 1),
        *,
        header: int = 0x1502,
        dims: int = 1,
        group: int = 1024,
        signal: int = 0,
        **words: int,
    ) -> NDArray[np.uint32]:
        """Sixteen words; `words` such as w6=1 replaces one of them."""
        made = [header | dims << 16, block[0] | block[1] << 16, block[2], *grid, 0, group]
        for address in (self.code.address, self.arguments.address, 0, signal):
            made += [address & 0xFFFFFFFF, address >> 32]
        for name, value in words.items():
            made[int(name[1:])] = value
        return np.array(made, np.uint32)

    def run(self, packets: NDArray[np.uint32]) -> list[Dispatch]:
        """Run packets on a fresh queue; what reached the back end, in order."""
        batch = packets.reshape(-1, 16)
        with self.agent.queue() as queue, self.agent.signal(1) as signal:
            last = np.array([0x1503, *[0] * 13, signal.handle & 0xFFFFFFFF, signal.handle >> 32], np.uint32)
            queue.submit(np.vstack([batch, last]))
            signal.wait_below(1, 10, poll=queue.check)
        return self.backend.seen

    def refused(self, packets: NDArray[np.uint32], message: str) -> None:
        """The queue stops with a message, and nothing has run."""
        with pytest.raises(QueueFailed, match=message):
            self.run(packets)
        assert self.backend.seen == []


@contextmanager
def kernel(
    target: str = "gfx1201", *, backend: Remembering | None = None, patience_s: float = 5.0, **changed: int
) -> Iterator[Kernel]:
    """A device with one kernel on it."""
    backend = backend or Remembering()
    with (
        device(target, backend, patience_s=patience_s) as (sim, agent),
        agent.allocate(4096, "device", executable=True) as code,
        agent.allocate(256, "kernarg") as arguments,
    ):
        code.write(descriptor(target, **changed))
        yield Kernel(sim, agent, code, arguments, backend)
