# SPDX-License-Identifier: Apache-2.0
"""PM4 packets on memory, typed by hand, and a device with a buffer for them.

Headers are count << 16 | opcode << 8 of `nvd.h`; bit positions are those of PAL's MEC structures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redline.hsa import Agent, Buffer
from redline.sim.dispatch import Backend
from redline.sim.runtime import SimRuntime
from tests.sim.streams import device


def halves(value: int) -> list[int]:
    """Low and high dword."""
    return [value & 0xFFFFFFFF, value >> 32]


def copy_data(control: int, source: int, target: int) -> list[int]:
    return [0xC0044000, control, *halves(source), *halves(target)]


def write_data(control: int, target: int, *data: int) -> list[int]:
    return [0xC0023700 + (len(data) << 16), control, *halves(target), *data]


def release(control: int, selectors: int, target: int, data: int = 0) -> list[int]:
    return [0xC0064900, control, selectors, *halves(target), *halves(data), 0]


def wait64(function: int, target: int, reference: int, mask: int) -> list[int]:
    return [0xC0079300, 0x10 | function, *halves(target), *halves(reference), *halves(mask), 4]


def dispatch_indirect(arguments: int, initiator: int = 0x8045) -> list[int]:
    return [0xC0021602, *halves(arguments), initiator]


@contextmanager
def memory(
    target: str = "gfx1201", backend: Backend | None = None, *, patience_s: float = 5.0
) -> Iterator[tuple[SimRuntime, Agent, Buffer]]:
    """A device and 64 dwords of its kernarg pool."""
    with device(target, backend, patience_s=patience_s) as (sim, agent), agent.allocate(256, "kernarg") as buffer:
        yield sim, agent, buffer
