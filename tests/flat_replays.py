# SPDX-License-Identifier: Apache-2.0
"""Long runs of replays, and what they leave: nothing. And a device in a process of its own, beside others."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from collections import deque
from typing import Any

import numpy as np

import redline as rl
from tests.devices import buffers, expect, two_launches
from tests.faulty import Faulty
from tests.test_replay_forms import FORMS, mixed

WARM_UP = 64
#: Small objects that Python keeps for reuse come and go; one more object per replay would be 100 KB for 2,000.
SLACK_BYTES = 16_384


def flat_replays(form: str, count: int) -> list[str]:
    """What grew over `count` replays of one instance in a form, every tenth of them patched.

    Compared behind a warm-up: Python's traced memory and objects, open resources, the device's allocations, signals,
    queues and code, threads, open files.
    """
    made = Faulty()
    made.sim.trace = deque(maxlen=8)  # of its own: the latest packets, which fill up
    graph = mixed(length=2)
    with made.device() as device:
        memory = {buffer.name: device.buffer(buffer.nbytes) for buffer in graph.buffers if buffer.role != "internal"}
        with device.instantiate(graph.compile(**FORMS[form]), memory) as replay:
            replay.patch(a=1.0)
            _run(replay, WARM_UP)
            before = _held(made, device)
            tracemalloc.start()
            _run(replay, WARM_UP)
            made.calls.clear()
            gc.collect()
            traced = tracemalloc.get_traced_memory()[0]
            _run(replay, count)
            made.calls.clear()
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - traced
            tracemalloc.stop()
            after = _held(made, device)
    changed = [f"{name}: {before[name]}, then {after[name]}" for name in before if after[name] != before[name]]
    changed += [f"{grown} bytes more"] if grown > SLACK_BYTES else []
    return [f"{form}: {text}" for text in changed]


def _run(replay: rl.Replay, count: int) -> None:
    for at in range(count):
        if at % 10 == 0:
            replay.patch(a=float(at % 7))
        replay.run(timeout=60)


def _held(made: Faulty, device: rl.Device) -> dict[str, Any]:
    labels, signals, queues, readers, executables = made.holds()
    return {
        "resources": len(device.runtime.resources),
        "quarantined": device.runtime.resources.quarantined,
        "allocations": len(labels),
        "signals": signals,
        "queues": queues,
        "code": (readers, executables),
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
    }


def replay_beside_others(number: int, count: int, together: Any) -> int:
    """Called in a process of its own: right results from a device that another process has at the same time.

    The process' id. `together` is a barrier that all processes have; they start together and go on together half-way.
    """
    graph = two_launches()
    with rl.open("sim:gfx1201") as device:
        memory = buffers(device, graph)
        x = memory["x"].read("f4")
        with device.instantiate(graph.compile(), memory) as replay:
            for at in range(count):
                if at in (0, count // 2):
                    together.wait(60)
                a, y = float(number + at % 3), memory["y"].read("f4")
                replay.patch(a=a)
                replay.run(timeout=60)
                if not np.array_equal(memory["z"].read("f4"), expect(a, x, y)):
                    raise AssertionError(f"process {number}, replay {at}")
                memory["y"].write(np.arange(len(y), dtype=np.float32))
    return os.getpid()
