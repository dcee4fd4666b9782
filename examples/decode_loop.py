# SPDX-License-Identifier: Apache-2.0
"""A decode loop by hand: in-place state, a slot that changes with every step, and the reasons for each fence.

A running sum is kept in place: each step adds `scale` times the input, then copies the state out for the host.
"""

from __future__ import annotations

import sys

import numpy as np

import radiowave
import redline as rl
from redline import kernels

COUNT = 1024


def record(target: str = "gfx1201") -> rl.Graph:
    """Two launches a step: state += scale * input, then out = state."""
    saxpy = rl.load(radiowave.compile_file(kernels.source("saxpy"), target=target))["saxpy"]
    copy = rl.load(radiowave.compile_file(kernels.source("copy"), target=target))["copy"]
    graph = rl.Graph()
    source = graph.buffer("source", 4 * COUNT, role="in")
    state = graph.buffer("state", 4 * COUNT, role="inout")
    out = graph.buffer("out", 4 * COUNT, role="out")
    step = [rl.update(state), rl.read(source), rl.slot("scale", "f4"), COUNT]
    graph.launch(saxpy, grid=COUNT // 256, block=128, args=step, label="accumulate")
    graph.launch(copy, grid=COUNT // 256, block=256, args=[rl.write(out), rl.read(state), COUNT], label="publish")
    return graph


def main(name: str = "sim:gfx1201") -> None:
    """Eight steps on the device of that name."""
    with rl.open(name) as device:
        plan = record(device.target).compile()
        print(plan.explain())
        with device.buffer(4 * COUNT) as source, device.buffer(4 * COUNT) as state, device.buffer(4 * COUNT) as out:
            source.write(np.ones(COUNT, np.float32))
            state.write(np.zeros(COUNT, np.float32))
            with device.instantiate(plan, {"source": source, "state": state, "out": out}) as replay:
                for token in range(8):
                    replay.patch(scale=0.5 * token)
                    replay.run(timeout=10.0)
            print("state after eight steps:", out.read(np.float32, count=1)[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
