# SPDX-License-Identifier: Apache-2.0
"""The HIP sources of `examples/hip`: arguments, launch and expected result of each, and the run on the software device.

Expected values are numpy's, in double precision where the kernel sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import redline as rl

FOLDER = Path(__file__).parents[2] / "examples" / "hip"
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class HipCase:
    """One kernel. `buffers` by name in the order of the arguments, `scalars` behind them; `block` () is one wave.

    `results` are what the kernel writes, `close` how far from numpy they may be, relatively. `scalar`: kernarg offsets
    of what scalar loads read.
    """

    buffers: Arrays
    scalars: tuple[Any, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    results: tuple[str, ...]
    expected: Callable[[Arrays], Arrays]
    close: float = 0.0
    scalar: frozenset[int] = frozenset()


def _random(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def _vector_add() -> HipCase:
    a, b = _random(1000), _random(1000)[::-1].copy()
    buffers = {"c": np.zeros(1000, np.float32), "a": a, "b": b}
    return HipCase(buffers, (rl.u32(1000),), (3,), (128,), ("c",), lambda x: {"c": x["a"] + x["b"]})


def _saxpy() -> HipCase:
    def expected(x: Arrays) -> Arrays:
        return {"y": (np.float64(2.5) * x["x"] + x["y"]).astype(np.float32)}

    return HipCase({"y": _random(700), "x": _random(700)}, (rl.f32(2.5), rl.u32(700)), (6,), (128,), ("y",), expected)


def _matmul() -> HipCase:
    n = 48
    buffers = {"c": np.zeros((n, n), np.float32), "a": _random(n, n), "b": _random(n, n).T.copy()}
    run = lambda x: {"c": x["a"].astype(np.float64) @ x["b"]}  # noqa: E731
    return HipCase(buffers, (rl.u32(n),), (n // 16, n // 16), (16, 16), ("c",), run, 1e-4)


def _reduction() -> HipCase:
    buffers = {"sums": np.zeros(3, np.float32), "x": _random(1400)}

    def expected(x: Arrays) -> Arrays:
        padded = np.zeros(3 * 512)
        padded[:1400] = x["x"]
        return {"sums": padded.reshape(3, 512).sum(axis=1)}

    return HipCase(buffers, (rl.u32(1400),), (3,), (256,), ("sums",), expected, 1e-4)


def _softmax() -> HipCase:
    def expected(x: Arrays) -> Arrays:
        e = np.exp(x["x"].astype(np.float64) - x["x"].max(axis=1, keepdims=True))
        return {"y": e / e.sum(axis=1, keepdims=True)}

    buffers = {"y": np.zeros((2, 300), np.float32), "x": _random(2, 300)}
    return HipCase(buffers, (rl.u32(300),), (2,), (256,), ("y",), expected, 1e-5)


def _rmsnorm() -> HipCase:
    def expected(x: Arrays) -> Arrays:
        mean = (x["x"].astype(np.float64) ** 2).mean(axis=1, keepdims=True)
        return {"y": x["x"] / np.sqrt(mean + 1e-5) * x["weight"]}

    buffers = {"y": np.zeros((2, 320), np.float32), "x": _random(2, 320), "weight": _random(320)}
    return HipCase(buffers, (rl.u32(320), rl.f32(1e-5)), (2,), (256,), ("y",), expected, 1e-5)


def _q8_dot() -> HipCase:
    rows, blocks = 3, 40
    q = np.random.default_rng(6).integers(-127, 128, (rows, blocks, 32)).astype(np.int8)

    def expected(x: Arrays) -> Arrays:
        parts = (x["q"].astype(np.float64) * x["x"].reshape(blocks, 32)).sum(axis=2)
        return {"out": (parts * x["scale"]).sum(axis=1)}

    buffers: Arrays = {
        "out": np.zeros(rows, np.float32),
        "q": q,
        "scale": _random(rows, blocks),
        "x": _random(blocks * 32),
    }
    return HipCase(buffers, (rl.u32(blocks),), (rows,), (), ("out",), expected, 1e-4)


def _kv_write() -> HipCase:
    width, at = 96, 2
    caches = {name: _random(4, width) for name in ("keys", "values")}
    buffers: Arrays = {**caches, "key": _random(width), "value": -_random(width), "position": np.array([at], np.uint32)}

    def expected(x: Arrays) -> Arrays:
        keys, values = x["keys"].copy(), x["values"].copy()
        keys[at], values[at] = x["key"], x["value"]
        return {"keys": keys, "values": values}

    return HipCase(buffers, (rl.u32(width),), (2,), (64,), ("keys", "values"), expected)


CASES: dict[str, Callable[[], HipCase]] = {
    "vector_add": _vector_add,
    "saxpy": _saxpy,
    "matmul": _matmul,
    "reduction": _reduction,
    "softmax": _softmax,
    "rmsnorm": _rmsnorm,
    "q8_dot": _q8_dot,
    "kv_write": _kv_write,
}


def wrong(kernel: rl.Kernel, case: HipCase, device: rl.Device) -> list[str]:
    """Run a kernel; the names of the results that are not numpy's, and of inputs that changed."""
    graph = rl.Graph()
    buffers = {name: graph.buffer(name, data.nbytes, role="inout") for name, data in case.buffers.items()}
    changed = [rl.update(b) if name in case.results else rl.read(b) for name, b in buffers.items()]
    grid = case.grid if len(case.grid) > 1 else case.grid[0]
    block = case.block if len(case.block) > 1 else (case.block or (kernel.wave,))[0]
    graph.launch(kernel, grid=grid, block=block, args=[*changed, *case.scalars])
    memory = {name: device.buffer(data.nbytes) for name, data in case.buffers.items()}
    try:
        for name, data in case.buffers.items():
            memory[name].write(data)
        with device.instantiate(graph.compile(), memory) as replay:
            replay.run()
        found = {n: memory[n].read(d.dtype).reshape(d.shape) for n, d in case.buffers.items()}
    finally:
        for buffer in memory.values():
            buffer.close()
    wanted = {**case.buffers, **case.expected(case.buffers)}
    return [n for n in wanted if not np.allclose(found[n], wanted[n], rtol=case.close, atol=case.close)]
