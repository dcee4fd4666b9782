# SPDX-License-Identifier: Apache-2.0
"""What a replay costs the host: submit, wait and patch on the null engine, which completes inside the doorbell store.

Beside each time are two calls of the same run that do next to nothing: a ctypes function and a numba dispatcher without
arguments. A second table has case 2's shapes: microseconds a launch, for one launch and for 941. Nothing is computed
and no GPU is timed; how long words take to write is `encode.py`'s.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, Final

import numpy as np
from numba import njit

import redline as rl
from redline import kernels
from redline.forms import lower
from redline.hsa.prototypes import PROTOTYPES
from redline.ranges import Buffer
from redline_bench.timing import Samples, measure

SCHEMA: Final = 1
TARGET: Final = "gfx1201"
SIZES: Final = (1, 941)
BLOCKS: Final = (1, 128, 8192)
PATCHES: Final = 16

_CALL_SAMPLES: Final = 20  # of each call in a round, for a percentile that means something
_CTYPES, _NUMBA = "plain ctypes call", "empty numba dispatcher"
_SLICE: Final = 256  # bytes of each launch; nothing reads them


@njit(cache=True)
def _empty() -> None:
    """A call of a compiled function, and nothing else."""


def measurements(rounds: int, sizes: Sequence[int] = SIZES, blocks: Sequence[int] = BLOCKS) -> dict[str, Any]:
    """Nanoseconds of each call, and a row for each shape, number of launches and workgroups a launch."""
    with rl.open(f"null:{TARGET}") as device:
        shapes = [
            _shape(device, name, launches, groups, rounds) for name in SHAPES for launches in sizes for groups in blocks
        ]
        return {"schema": SCHEMA, "target": TARGET, "calls": _calls(device, rounds), "shapes": shapes}


def table(record: dict[str, Any]) -> str:
    """Both tables as aligned text."""
    return "\n\n".join(_aligned(record[part]) for part in ("calls", "shapes"))


def _aligned(rows: Sequence[dict[str, Any]]) -> str:
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


# One replay, call by call


def _calls(device: rl.Device, rounds: int) -> list[dict[str, Any]]:
    """A chain of 16 launches, each with a slot of its own."""
    graph = rl.Graph()
    _chain(graph, PATCHES, 1, lambda index: rl.slot(f"a{index}", "f4", default=1.0))
    values = {f"a{index}": float(index) for index in range(PATCHES)}
    load = "hsa_signal_load_scacquire"
    plain = ctypes.CFUNCTYPE(*PROTOTYPES[load].ctypes)(device.runtime.hsa.table.addresses[load])
    with ExitStack() as stack:
        replay = _instantiated(stack, device, graph.compile())
        signal = replay.placed.final.handle

        def step() -> None:
            replay.patch(**values)
            replay.run()

        samples = measure(
            {
                _CTYPES: lambda: plain(signal),
                _NUMBA: _empty,
                "reset + submit + wait": replay.run,
                "patch": lambda: replay.patch(a0=1.0),
                f"{PATCHES} patches + replay": step,
            },
            _CALL_SAMPLES * rounds,
        )
    return [_call(samples, name) for name in samples]


def _call(samples: Samples, name: str) -> dict[str, Any]:
    """Median, and what nine in ten samples of 20 calls stay below; ratios round by round."""
    times = np.array(samples[name])
    ratios = {beside: round(float(np.median(times / np.array(samples[beside]))), 2) for beside in (_CTYPES, _NUMBA)}
    return {
        "call": name,
        "median_ns": _ns(np.median(times)),
        "p90_ns": _ns(np.quantile(times, 0.9)),
        "to_ctypes": ratios[_CTYPES],
        "to_numba": ratios[_NUMBA],
    }


def _ns(seconds: Any) -> float:
    return round(1e9 * float(seconds), 1)


# Case 2: shapes


def _shape(device: rl.Device, name: str, launches: int, groups: int, rounds: int) -> dict[str, Any]:
    """What lowering, one patch of a slot that every launch has, and a replay cost."""
    graph = rl.Graph()
    SHAPES[name](graph, launches, groups, lambda _: rl.slot("a", "f4", default=1.0))
    plan = graph.compile()
    fences = plan.fences
    with ExitStack() as stack:
        replay = _instantiated(stack, device, plan)
        samples = measure({"replay": replay.run, "patch": lambda: replay.patch(a=1.0)}, rounds, repeat=5)
        samples |= measure({"encode": lambda: lower(plan, fences)}, rounds, repeat=1)
    medians = {call: 1e9 * float(np.median(times)) for call, times in samples.items()}
    return {
        "shape": name,
        "launches": launches,
        "groups": groups,
        "encode_ns_per_launch": round(medians["encode"] / launches),
        "patch_ns": round(medians["patch"]),
        "replay_ns": round(medians["replay"]),
        "replay_us_per_launch": round(medians["replay"] / launches / 1000, 3),
        "dwords_per_launch": round(len(plan.program.words) / launches, 1),
        "drains": fences.drains,
        "acquires": fences.acquires,
    }


def _chain(graph: rl.Graph, launches: int, groups: int, slot: Callable[[int], Any]) -> None:
    """Every launch updates the same bytes."""
    x, y = _memories(graph, 1)
    for index in range(launches):
        _launch(graph, groups, [rl.update(y), rl.read(x), slot(index), 1])


def _independent(graph: rl.Graph, launches: int, groups: int, slot: Callable[[int], Any]) -> None:
    """Each launch updates bytes of its own."""
    x, y = _memories(graph, launches)
    for index in range(launches):
        own = y[_SLICE * index : _SLICE * (index + 1)]
        _launch(graph, groups, [rl.update(own), rl.read(x), slot(index), 1])


def _fan_out(graph: rl.Graph, launches: int, groups: int, slot: Callable[[int], Any]) -> None:
    """The first launch writes what all others read; each updates bytes of its own."""
    x, y = _memories(graph, launches)
    for index in range(launches):
        own = y[_SLICE * index : _SLICE * (index + 1)]
        _launch(graph, groups, [rl.update(own), rl.read(y[0:_SLICE] if index else x), slot(index), 1])


#: Graphs by name; each function records its launches with a slot of the given kind.
SHAPES: Final[dict[str, Callable[[rl.Graph, int, int, Callable[[int], Any]], None]]] = {
    "chain": _chain,
    "indep": _independent,
    "fanout": _fan_out,
}


def _memories(graph: rl.Graph, slices: int) -> tuple[Buffer, Buffer]:
    return graph.buffer("x", _SLICE, role="in"), graph.buffer("y", _SLICE * slices, role="inout")


def _launch(graph: rl.Graph, groups: int, args: list[Any]) -> None:
    """saxpy of one number, whatever the grid."""
    block = kernels.SPECS["saxpy"].block
    assert block is not None
    graph.launch(_saxpy()["saxpy"], grid=groups, block=block, args=args)


@cache
def _saxpy() -> rl.Module:
    return rl.load(kernels.build("saxpy", TARGET))


def _instantiated(stack: ExitStack, device: rl.Device, plan: rl.Plan) -> rl.Replay:
    outside = [buffer for buffer in plan.buffers if buffer.role != "internal"]
    memory: dict[Buffer | str, rl.DeviceBuffer] = {b: stack.enter_context(device.buffer(b.nbytes)) for b in outside}
    return stack.enter_context(device.instantiate(plan, memory))
