# SPDX-License-Identifier: Apache-2.0
"""Two plans of one graph side by side on a device: first the same bytes in every buffer, then the time of each.

A number of a run whose output is wrong is worth nothing, so there is none. Every writable buffer is compared, also
those that nobody asked about: state on the side goes wrong as easily as results.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

import redline as rl
from redline_bench.timing import measure

SCHEMA = 1
EQUAL, DIFFERS = 0, 2

Bytes = Mapping[str, bytes]


class Uncompared(Exception):
    """A buffer that a plan writes is not among those to compare."""


def run(device: rl.Device, plan: rl.Plan, inputs: Bytes, replays: int) -> dict[str, bytes]:
    """What the outside buffers hold after `replays` replays from these inputs; those without begin as zeros."""
    with ExitStack() as stack:
        memory = _bound(device, plan, inputs, stack)
        with device.instantiate(plan, memory) as replay:
            for _ in range(replays):
                replay.run()
        return {name: held.read(np.uint8).tobytes() for name, held in memory.items()}


def _bound(device: rl.Device, plan: rl.Plan, inputs: Bytes, stack: ExitStack) -> dict[str, rl.DeviceBuffer]:
    """Memory of every outside buffer, filled."""
    memory = {}
    for buffer in plan.buffers:
        if buffer.role != "internal" and buffer.root == buffer.index:
            memory[buffer.name] = stack.enter_context(device.buffer(buffer.nbytes, kind=buffer.kind))
            memory[buffer.name].write(inputs.get(buffer.name, bytes(buffer.nbytes)))
    return memory


def differing(
    device: rl.Device, one: rl.Plan, other: rl.Plan, inputs: Bytes, compared: Collection[str] | None = None
) -> list[str]:
    """Names of the writable buffers that differ after three replays of each plan; `compared` names those to look at.

    Raises Uncompared for a writable buffer that is not named: what is left out cannot be equal.
    """
    writable = {
        buffer.name for buffer in one.buffers if buffer.role in ("out", "inout") and buffer.root == buffer.index
    }
    left_out = sorted(writable - set(writable if compared is None else compared))
    if left_out:
        raise Uncompared(f"uncompared writable buffer: {', '.join(left_out)}")
    first, second = (run(device, plan, inputs, 3) for plan in (one, other))
    return [name for name in sorted(writable) if first[name] != second[name]]


def times(device: rl.Device, plans: Mapping[str, rl.Plan], inputs: Bytes, rounds: int) -> dict[str, Any]:
    """Nanoseconds of one replay of each plan, in turn: median over `rounds`, and the ratio to the first."""
    with ExitStack() as stack:
        calls = {}
        for name, plan in plans.items():
            memory = _bound(device, plan, inputs, stack)
            calls[name] = stack.enter_context(device.instantiate(plan, memory)).run
        samples = measure(calls, rounds)
    medians = {name: statistics.median(found) for name, found in samples.items()}
    first = next(iter(medians.values()))
    return {name: {"ns": round(1e9 * value), "ratio": value / first} for name, value in medians.items()}


def compare(
    device: rl.Device,
    plans: Mapping[str, rl.Plan],
    inputs: Bytes,
    *,
    compared: Collection[str] | None = None,
    rounds: int = 9,
) -> int:
    """Print the time of each plan beside the first one's; or what differs, and no time. 0 or 2, for an exit status."""
    (reference, one), *others = plans.items()
    for name, other in others:
        found = differing(device, one, other, inputs, compared)
        if found:
            print(f"{name} differs from {reference} in: {', '.join(found)}; nothing was timed", file=sys.stderr)
            return DIFFERS
    for name, row in times(device, plans, inputs, rounds).items():
        print(f"{name:20} {row['ns']:>12} ns a replay  {row['ratio']:.3f} of {reference}")
    return EQUAL
