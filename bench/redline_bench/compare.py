# SPDX-License-Identifier: Apache-2.0
"""Two plans of the same work side by side: first the same bits, then their times; never times of different results.

Both run on the software device from the same memory, and every buffer that either writes is compared bit for bit: a
buffer that nobody compares is an error. Only then are replays timed in turn on the null engine, so the times are the
host's alone. For `redline bench compare` the two are the demo's decoder with the fewest fences and with all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import redline as rl
from redline import demo
from redline.kernels import decode
from redline_bench.timing import measure

SCHEMA: Final = 1
TARGET: Final = "gfx1201"

State = dict[str, NDArray[np.uint8]]
#: Slot values of each replay.
Values = Sequence[Mapping[str, Any]]


class NotComparableError(ValueError):
    """The two plans are not of the same memory, or part of what they write would go unseen."""


class DifferentResultError(ValueError):
    """The two plans leave different bits behind: their times mean nothing."""


def compare(
    one: rl.Plan,
    other: rl.Plan,
    initial: Mapping[str, bytes],
    values: Values = ({},),
    *,
    compared: Iterable[str] | None = None,
    rounds: int = 9,
) -> dict[str, Any]:
    """Check that both plans do the same, then time both; `ratio` is the other's time over the one's.

    `initial` holds the bytes of every outside buffer, `values` the slots of each replay, `compared` the names of the
    buffers to compare (default: all that are written). Raises NotComparableError and DifferentResultError, before
    anything is timed.
    """
    _check(one, other, initial, compared)
    first, second = (_final(plan, initial, values) for plan in (one, other))
    for name, seen in first.items():
        if not np.array_equal(seen, second[name]):
            at = int(np.flatnonzero(seen != second[name])[0])
            raise DifferentResultError(f"{name}[{at}]: 0x{seen[at]:02x} and 0x{second[name][at]:02x}")
    with rl.open(f"null:{one.target}") as device, ExitStack() as stack:
        calls = {"one": _ready(stack, device, one, values).run, "other": _ready(stack, device, other, values).run}
        samples = measure(calls, rounds)
    ratio = float(np.median(np.array(samples["other"]) / np.array(samples["one"])))
    plans = {"one": one, "other": other}
    figures = {name: _figures(plan, samples[name]) for name, plan in plans.items()}
    return {"schema": SCHEMA, "compared": sorted(first), "replays": len(values), **figures, "ratio": round(ratio, 3)}


def measurements(rounds: int, tokens: int = 1) -> dict[str, Any]:
    """The demo's decoder with `fences="minimal"` and with `fences="full"`."""
    graph = demo.record(demo.modules(TARGET, 32))
    initial = {name: content.tobytes() for name, content in decode.initial().items()}
    values = [decode.slot_values(token) for token in range(tokens)]
    outside = {buffer.name for buffer in graph.buffers if buffer.role != "internal"}
    memory = {name: content for name, content in initial.items() if name in outside}
    return compare(graph.compile(), graph.compile(fences="full"), memory, values, rounds=rounds)


def _check(one: rl.Plan, other: rl.Plan, initial: Mapping[str, bytes], compared: Iterable[str] | None) -> None:
    if one.target != other.target or _outside(one) != _outside(other):
        raise NotComparableError(f"{one!r} and {other!r} differ in target or outside buffers")
    if sizes := {name: size for name, (size, _) in _outside(one).items() if len(initial.get(name, b"")) != size}:
        raise NotComparableError(f"no initial bytes, or of another size: {', '.join(sizes)}")
    unseen = _written(one) - set(_written(one) if compared is None else compared)
    if unseen:
        raise NotComparableError(f"uncompared writable buffer: {', '.join(sorted(unseen))}")


def _outside(plan: rl.Plan) -> dict[str, tuple[int, str]]:
    return {buffer.name: (buffer.nbytes, buffer.role) for buffer in plan.buffers if buffer.role != "internal"}


def _written(plan: rl.Plan) -> set[str]:
    return {name for name, (_, role) in _outside(plan).items() if role != "in"}


def _final(plan: rl.Plan, initial: Mapping[str, bytes], values: Values) -> State:
    """What every writable buffer holds after the replays, on the software device."""
    with rl.open(f"sim:{plan.target}") as device, ExitStack() as stack:
        memory: dict[Any, rl.DeviceBuffer] = {}
        for name, content in initial.items():
            memory[name] = stack.enter_context(device.buffer(len(content)))
            memory[name].write(content)
        with device.instantiate(plan, memory) as replay:
            for slots in values:
                replay.patch(**slots)
                replay.run(timeout=60.0)
        return {name: memory[name].read() for name in _written(plan)}


def _ready(stack: ExitStack, device: rl.Device, plan: rl.Plan, values: Values) -> rl.Replay:
    memory: dict[Any, rl.DeviceBuffer] = {
        name: stack.enter_context(device.buffer(size)) for name, (size, _) in _outside(plan).items()
    }
    replay = stack.enter_context(device.instantiate(plan, memory))
    replay.patch(**values[-1])
    return replay


def _figures(plan: rl.Plan, times: Sequence[float]) -> dict[str, Any]:
    return {
        "replay_ns": round(1e9 * float(np.median(times))),
        "drains": plan.fences.drains,
        "acquires": plan.fences.acquires,
        "dwords": len(plan.program.words),
    }
