# SPDX-License-Identifier: Apache-2.0
"""Probes of a device: is every form right, which fences does it really need, what does a replay cost, does it last.

Each probe takes an open device and returns plain data for the record that a user sends us. Kernels are the package's
own, compiled for the device's target; results are compared with numpy bit for bit.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import redline as rl
from redline.fences import Fences
from tests.devices import buffers, module
from tests.test_replay_forms import COUNT, FORMS, expected, mixed

Record = dict[str, Any]


def forms(device: rl.Device, replays: int) -> Record:
    """Every form of submission, `replays` times with patches between: the number of wrong buffers, and the route."""
    found = {}
    for boundary in ("host", "queue"):
        for name, options in FORMS.items():
            graph, values = mixed(device.target), [float(at % 5) - 2 for at in range(replays)]
            memory = buffers(device, graph)
            plan = graph.compile(boundary=boundary, **options)
            with device.instantiate(plan, memory) as replay:
                for a in values:
                    replay.patch(a=a)
                    replay.run()
                route = replay.route_proof()
            wrong = [
                at
                for at, wanted in enumerate(expected(values))
                if not np.array_equal(memory[f"y{at}"].read("f4"), wanted, equal_nan=True)
            ]
            found[f"{name}, {boundary}"] = {"wrong": len(wrong), "hash": route["sequence_hash"][:16]}
            for held in memory.values():
                held.close()
    return found


def necessity(device: rl.Device, replays: int) -> Record:
    """A chain of dependent copies without one drain or one class: in how many of `replays` the result was wrong.

    The hostile machine says that each is needed; a count of 0 says that this card got away with less, every time.
    """
    graph = _chain(device.target, 4)
    plan = graph.compile(boundary="queue")
    found: Record = {"nothing": _wrong(device, plan, plan.fences, replays)}
    for fences, what in _weaker(plan.fences):
        found[what] = _wrong(device, plan, fences, replays)
    return found


def _chain(target: str, length: int) -> rl.Graph:
    """y = a * x + y, then copies from buffer to buffer."""
    graph = rl.Graph()
    saxpy, copy = module("saxpy", target)["saxpy"], module("copy", target)["copy"]
    x, y = graph.buffer("x", 4 * COUNT, role="in"), graph.buffer("y", 4 * COUNT, role="inout")
    args: list[Any] = [rl.update(y), rl.read(x), rl.slot("a", "f4"), COUNT]
    graph.launch(saxpy, grid=1, block=128, args=args)
    last = y
    for at in range(length):
        role = "out" if at == length - 1 else "internal"
        buffer = graph.buffer(f"z{at}", 4 * COUNT, role=role)  # type: ignore[arg-type]
        graph.launch(copy, grid=1, block=256, args=[rl.write(buffer), rl.read(last), COUNT])
        last = buffer
    return graph


def _weaker(fences: Fences) -> Iterator[tuple[Fences, str]]:
    inner = fences.inner
    for at, fence in enumerate(inner):
        if fence.rule is None:
            yield Fences((*inner[:at], *inner[at + 1 :])), f"the drain before position {fence.at}"
            for name in fence.acquire:
                left = replace(fence, acquire=tuple(other for other in fence.acquire if other != name))
                yield Fences((*inner[:at], left, *inner[at + 1 :])), f"{name} at position {fence.at}"


def _wrong(device: rl.Device, plan: rl.Plan, fences: Fences, replays: int) -> int:
    changed = replace(plan)
    changed.__dict__["program"] = rl.lower(plan, fences)
    memory = {name: device.buffer(4 * COUNT) for name in ("x", "y", "z3")}
    x = np.arange(COUNT, dtype=np.float32)
    y, wrong = np.zeros(COUNT, np.float32), 0
    for name in ("x", "y"):
        memory[name].write(x if name == "x" else y)
    with device.instantiate(changed, memory) as replay:
        for at in range(replays):
            a = np.float32(at % 3 - 1)
            replay.patch(a=float(a))
            replay.run()
            y = a * x + y
            wrong += not np.array_equal(memory["z3"].read("f4"), y)
    for held in memory.values():
        held.close()
    return wrong


def floor(device: rl.Device, replays: int) -> Record:
    """Nanoseconds of submit and wait for 1 and for 941 small launches in a chain: median and 90th percentile."""
    found: Record = {}
    for launches in (1, 941):
        graph = rl.Graph()
        y = graph.buffer("y", 4 * COUNT, role="inout")
        copy = module("copy", device.target)["copy"]
        for _ in range(launches):
            graph.launch(copy, grid=1, block=256, args=[rl.write(y[0:4]), rl.read(y[0:4]), 1])
        plan = graph.compile(boundary="queue")
        memory = {"y": device.buffer(4 * COUNT)}
        times = []
        with device.instantiate(plan, memory) as replay:
            replay.run()
            for _ in range(replays if launches == 1 else max(replays // 100, 1)):
                began = time.perf_counter_ns()
                replay.run()
                times.append(time.perf_counter_ns() - began)
        memory["y"].close()
        late = sorted(times)[len(times) * 9 // 10]
        found[f"{launches} launches"] = {"median_ns": int(statistics.median(times)), "p90_ns": late}
    return found


def endurance(device: rl.Device, replays: int) -> Record:
    """Many replays of one plan: the counter at the end, and what was wrong."""
    graph = _chain(device.target, 4)
    memory = {name: device.buffer(4 * COUNT) for name in ("x", "y", "z3")}
    memory["x"].write(np.ones(COUNT, np.float32))
    memory["y"].write(np.zeros(COUNT, np.float32))
    with device.instantiate(graph.compile(boundary="queue"), memory) as replay:
        replay.patch(a=1.0)
        for _ in range(replays):
            replay.run()
        seen = memory["z3"].read("f4")
        submissions = replay.route_proof()["submissions"]
    for held in memory.values():
        held.close()
    return {"replays": submissions, "wrong": int((seen != np.float32(replays)).sum())}
