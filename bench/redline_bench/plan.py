# SPDX-License-Identifier: Apache-2.0
"""What recording, `Plan.of` and `derive` cost a launch, how that grows, and the memory they take.

The measure beside each time is one `np.lexsort` of all access end points by (buffer, offset) in the same process, in
two orders: as recorded, where numpy's sort finds what is sorted already and may cost next to nothing, and shuffled,
which is the price of sorting them at all. Each figure comes from a process of its own, so that pages are as fresh as
in a user's program. Lowering and encoding are `encode.py`'s.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import redline as rl
from redline.fences import derive
from redline_bench.shapes import SHAPES

SCHEMA: Final = 2
SIZES: Final = (1_000, 10_000, 100_000)

#: Launches that a size is repeated for in all: a million are measured once, whatever `rounds` says.
_REPEATED: Final = 500_000

_TABLE: Final = (
    ("shape", "shape"),
    ("launches", "launches"),
    ("accesses", "accesses"),
    ("record us/launch", "record_us_per_launch"),
    ("Plan.of ms", "plan_ms"),
    ("derive ms", "derive_ms"),
    ("ns/launch", "ns_per_launch"),
    ("to lexsort", "to_lexsort"),
    ("to shuffled", "to_shuffled_lexsort"),
    ("B/launch", "extra_rss_per_launch"),
    ("RSS MB", "rss_mb"),
    ("exponent", "exponent"),
)


def measurements(sizes: Sequence[int], rounds: int, shapes: Sequence[str] = tuple(SHAPES)) -> list[dict[str, Any]]:
    """One row for each shape and size. `exponent` is the growth from the smallest size of the shape."""
    rows: list[dict[str, Any]] = []
    spawn = multiprocessing.get_context("spawn")
    for shape in shapes:
        first: dict[str, Any] | None = None
        for launches in sizes:
            with spawn.Pool(1) as fresh:
                row: dict[str, Any] = fresh.apply(measure_once, (shape, launches, rounds))
            row["exponent"] = _exponent(first, row) if first else None
            first = first or row
            rows.append(row)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as aligned text, a line each."""
    cells = [[head for head, _ in _TABLE]]
    cells += [["" if row[key] is None else str(row[key]) for _, key in _TABLE] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def measure_once(shape: str, launches: int, rounds: int) -> dict[str, Any]:
    """Record `launches` launches of a shape, plan them, and compare with sorting; medians over the rounds."""
    derive(rl.Plan.of(SHAPES[shape](20)))  # loads the compiled code
    began = time.perf_counter()
    graph = SHAPES[shape](launches)
    record = time.perf_counter() - began
    gc.collect()
    extra = _extra_rss(graph)
    buffers, offsets = _end_points(graph)
    mixed = np.random.default_rng(0).permutation(len(buffers))
    calls = {"lexsort": (offsets, buffers), "shuffled": (offsets[mixed], buffers[mixed])}
    samples: dict[str, list[float]] = {"plan": [], "derive": [], "lexsort": [], "shuffled": []}
    for _ in range(max(1, min(rounds, _REPEATED // launches))):
        started = time.perf_counter()
        plan = rl.Plan.of(graph)
        between = time.perf_counter()
        derive(plan)
        samples["derive"].append(time.perf_counter() - between)
        samples["plan"].append(between - started)
        for name, keys in calls.items():
            started = time.perf_counter()
            np.lexsort(keys)
            samples[name].append(time.perf_counter() - started)
    figures = {"shape": shape, "launches": launches, "accesses": len(buffers) // 2}
    return {**figures, "record_us_per_launch": round(1e6 * record / launches, 1), **_figures(samples, launches, extra)}


def _figures(samples: dict[str, list[float]], launches: int, extra: int | None) -> dict[str, Any]:
    median = {name: float(np.median(values)) for name, values in samples.items()}
    both = median["plan"] + median["derive"]
    rss = _status("VmRSS")
    return {
        **{f"{name}_ms": round(1e3 * value, 3) for name, value in median.items()},
        "ns_per_launch": round(1e9 * both / launches),
        "to_lexsort": round(both / median["lexsort"], 2),
        "to_shuffled_lexsort": round(both / median["shuffled"], 2),
        "extra_rss_per_launch": None if extra is None else round(extra / launches),
        "rss_mb": None if rss is None else round(rss / 1e6),
        "samples": len(samples["plan"]),
    }


def _end_points(graph: rl.Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(buffer, offset) of the start and the stop of every access, in recorded order."""
    touches = [touch for launch in graph.launches for touch in launch.touches]
    buffers = np.repeat(np.array([touch.buffer for touch in touches], np.int64), 2)
    return buffers, np.array([at for touch in touches for at in (touch.start, touch.stop)], np.int64)


def _extra_rss(graph: rl.Graph) -> int | None:
    """Bytes by which the peak of the process's resident memory rises during Plan.of and derive; None off Linux.

    Resident memory, because compiled code's arrays are not tracemalloc's.
    """
    before = _status("VmRSS")
    try:
        with open("/proc/self/clear_refs", "w") as reset:
            reset.write("5")  # the peak starts anew: proc(5)
    except OSError:
        return None
    derive(rl.Plan.of(graph))
    peak = _status("VmHWM")
    return None if before is None or peak is None else max(peak - before, 0)


def _status(field: str) -> int | None:
    """A field of /proc/self/status in bytes."""
    try:
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith(field + ":"))
    except OSError:
        return None


def _exponent(small: dict[str, Any], large: dict[str, Any]) -> float:
    times = [row["plan_ms"] + row["derive_ms"] for row in (small, large)]
    return round(math.log(times[1] / times[0]) / math.log(large["launches"] / small["launches"]), 2)
