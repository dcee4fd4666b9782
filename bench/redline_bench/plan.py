# SPDX-License-Identifier: Apache-2.0
"""What record, plan, derive and lower cost per launch, and how that grows: chain, independent and fan-out launches.

The limit named beside each figure is the same work for a tenth of the launches: a ratio of 1 is linear growth.
"""

from __future__ import annotations

import time
from typing import Any

import redline as rl

SHAPES = ("chain", "independent", "fan-out")


def graph(shape: str, launches: int) -> rl.Graph:
    """`launches` synthetic launches: each updates the same bytes, its own bytes, or reads what the first wrote."""
    made = rl.Graph()
    shared, own = made.buffer("shared", 4), made.buffer("own", 4 * launches)
    update, fan = rl.Kernel.synthetic("update"), rl.Kernel.synthetic("fan", pointers=2)
    for i in range(launches):
        mine = own[4 * i : 4 * i + 4]
        if shape == "fan-out":
            first = rl.read(shared) if i else rl.write(shared)
            made.launch(fan, grid=1, block=64, args=[first, rl.write(mine)])
        else:
            made.launch(update, grid=1, block=64, args=[rl.update(shared if shape == "chain" else mine)])
    return made


def measurements(shape: str, launches: int, rounds: int) -> dict[str, Any]:
    """Best of `rounds` microseconds per launch of recording and compiling, and the growth from a tenth of it."""
    small, large = (_best(shape, count, rounds) for count in (launches // 10, launches))
    figures = {f"{name}_us_per_launch": round(large[name] * 1e6, 2) for name in large}
    growth = {f"{name}_growth": round(large[name] / small[name], 2) for name in large}
    return {"shape": shape, "launches": launches, **figures, **growth}


def _best(shape: str, launches: int, rounds: int) -> dict[str, float]:
    best = {"record": float("inf"), "compile": float("inf")}
    for _ in range(rounds):
        started = time.perf_counter()
        recorded = graph(shape, launches)
        between = time.perf_counter()
        recorded.compile()
        ended = time.perf_counter()
        best["record"] = min(best["record"], (between - started) / launches)
        best["compile"] = min(best["compile"], (ended - between) / launches)
    return best
