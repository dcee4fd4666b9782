# SPDX-License-Identifier: Apache-2.0
"""What each kernel of `examples/hip` computes, by numpy, and a run of it on the software device.

`examine` compiles one kernel with one toolchain, inspects it, runs it and compares; `run` is the matrix that `make
prove` records. Results with sums of many floats are compared with what float64 gives, within a stated error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import redline as rl
from radiowave import CodeObject, Toolchain, compile_hip, find_toolchains
from tests.radiowave.clang import DEMO_TARGETS

Array = NDArray[Any]
FOLDER = Path(__file__).parents[2] / "examples" / "hip"
WAVES = (32, 64)


@dataclass(frozen=True)
class Case:
    """One launch: workgroups and work-items as `launch` takes them; arrays are buffers, anything else is a scalar.

    `expected` has what each array holds afterwards; an array that is not in it stays as it was. `error` is relative.
    """

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: dict[str, Any]
    expected: dict[str, Array]
    error: float = 0.0


CASES: dict[str, Callable[[int], Case]] = {}


def case(make: Callable[[int], Case]) -> Callable[[int], Case]:
    """Enter a case under its kernel's name; it is given the wave size."""
    CASES[make.__name__] = make
    return make


def floats(*shape: int, seed: int) -> Array:
    """Between -2 and 2; the same in every run."""
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


@case
def vector_add(_wave: int) -> Case:
    a, b = floats(1000, seed=1), floats(1000, seed=2)
    return Case(4, 256, {"c": np.zeros(1000, np.float32), "a": a, "b": b, "n": 1000}, {"c": a + b})


@case
def saxpy(_wave: int) -> Case:
    x, y = floats(1500, seed=1), floats(1500, seed=2)
    # 1.5 * x has 26 bits at most: float64 adds it exactly enough for one rounding.
    expected = (y + 1.5 * x.astype(np.float64)).astype(np.float32)
    return Case(2, 256, {"y": y, "x": x, "a": rl.f32(1.5), "n": 1500}, {"y": expected})


@case
def matmul(_wave: int) -> Case:
    m, n, k = 40, 24, 50
    a, b = floats(m, k, seed=1), floats(k, n, seed=2)
    arguments = {"c": np.zeros((m, n), np.float32), "a": a, "b": b, "m": m, "n": n, "k": k}
    return Case((2, 3), (16, 16), arguments, {"c": a.astype(np.float64) @ b}, 1e-5)


@case
def reduction(_wave: int) -> Case:
    x = np.random.default_rng(1).integers(-(2**20), 2**20, 5000, np.int32)
    total = np.array([7], np.int32)
    return Case(4, 256, {"total": total, "x": x, "n": 5000}, {"total": total + x.sum(dtype=np.int32)})


@case
def softmax(_wave: int) -> Case:
    x = floats(5, 300, seed=1) * 4
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    return Case(5, 128, {"y": np.zeros_like(x), "x": x, "columns": 300}, {"y": expected}, 1e-5)


@case
def rmsnorm(_wave: int) -> Case:
    x, weight = floats(5, 300, seed=1), floats(300, seed=2)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-5) * weight
    arguments = {"y": np.zeros_like(x), "x": x, "weight": weight, "epsilon": rl.f32(1e-5), "columns": 300}
    return Case(5, 128, arguments, {"y": expected}, 1e-5)


@case
def q8_dot(wave: int) -> Case:
    rows, blocks = 6, 70
    draw = np.random.default_rng(1)
    weights = draw.integers(-128, 128, (rows, blocks, 32), np.int8)
    x = draw.integers(-128, 128, (blocks, 32), np.int8)
    scales, x_scales = floats(rows, blocks, seed=2), floats(blocks, seed=3)
    products = (weights.astype(np.int64) * x).sum(axis=2)
    expected = (products * (scales.astype(np.float64) * x_scales)).sum(axis=1)
    arguments = {"y": np.zeros(rows, np.float32), "weights": weights, "scales": scales, "x": x, "x_scales": x_scales}
    return Case(rows, wave, {**arguments, "blocks": blocks}, {"y": expected}, 1e-4)


@case
def kv_write(_wave: int) -> Case:
    rows, width, at = 5, 200, 3
    keys, values = floats(rows, width, seed=1), floats(rows, width, seed=2)
    key, value = floats(width, seed=3), floats(width, seed=4)
    new_keys, new_values = keys.copy(), values.copy()
    new_keys[at], new_values[at] = key, value
    position = np.array([at], np.int32)
    arguments = {"keys": keys, "values": values, "key": key, "value": value, "position": position}
    return Case(2, 128, {**arguments, "width": width, "rows": rows}, {"keys": new_keys, "values": new_values})


@cache
def toolchains() -> tuple[Toolchain, ...]:
    """Those of this machine that compile HIP."""
    return tuple(one for one in find_toolchains() if one.is_usable and one.language == "hip")


def examine(name: str, target: str, wave: int, toolchain: str, device: rl.Device) -> str:
    """What is wrong with one kernel of one build, in words; empty when nothing is."""
    compiled = compile_hip(FOLDER / f"{name}.hip", target=target, wave=wave, toolchain=toolchain)
    wrong = inspected(compiled.code_object, name, target, wave)
    wrong += differences(device, compiled.code_object, name, CASES[name](wave))
    return "; ".join(wrong)


def inspected(data: bytes, name: str, target: str, wave: int) -> list[str]:
    """What an inspection of the object finds that should not be so."""
    found = CodeObject.parse(data)
    kernel = found.kernels.get(name)
    if kernel is None or list(found.kernels) != [name]:
        return [f"kernels {list(found.kernels)}"]
    explicit = sum(not argument.is_hidden for argument in kernel.arguments)
    seen = (found.target, kernel.wave, explicit, kernel.descriptor.private_bytes)
    wanted = (target, wave, len(CASES[name](wave).arguments), 0)
    return [] if seen == wanted else [f"target, wave, arguments, scratch {seen}, not {wanted}"]


def differences(device: rl.Device, data: bytes, name: str, made: Case) -> list[str]:
    """Run it in a graph of one launch and compare every buffer with what it should hold."""
    arrays = {key: value for key, value in made.arguments.items() if isinstance(value, np.ndarray)}
    graph = rl.Graph()
    buffers = {key: graph.buffer(key, array.nbytes, role="inout") for key, array in arrays.items()}
    arguments = [
        value if key not in arrays else (rl.update if key in made.expected else rl.read)(buffers[key])
        for key, value in made.arguments.items()
    ]
    graph.launch(rl.load(data)[name], grid=made.grid, block=made.block, args=arguments)
    bound = {key: device.buffer(array.nbytes) for key, array in arrays.items()}
    try:
        for key, array in arrays.items():
            bound[key].write(array)
        with device.instantiate(graph.compile(), bound) as replay:
            replay.run(timeout=60.0)
        return [
            wrong
            for key, array in arrays.items()
            if (wrong := difference(key, bound[key].read(array.dtype), array, made))
        ]
    finally:
        for buffer in bound.values():
            buffer.close()


def difference(key: str, got: Array, before: Array, made: Case) -> str:
    """The first element that is not as expected."""
    want = made.expected.get(key, before).reshape(-1)
    scale = np.abs(want).max() if made.error else 0.0
    same = np.abs(got - want) <= made.error * scale if made.error else got == want
    if same.all():
        return ""
    at = int(np.argmin(same))
    return f"{key}[{at}] is {got[at]!r}, not {want[at]!r}; {int((~same).sum())} differ"


@dataclass
class Found:
    """What a matrix of builds showed."""

    cases: int = 0
    failures: list[str] = field(default_factory=list)


def examine_all(target: str, waves: tuple[int, ...], names: tuple[str, ...]) -> Found:
    """All kernels for one target, with each of the named toolchains."""
    found = Found()
    with rl.open(f"sim:{target}") as device:
        for wave, name, toolchain in itertools.product(waves, CASES, names):
            found.cases += 1
            if wrong := examine(name, target, wave, toolchain, device):
                found.failures.append(f"{name} {target} wave{wave} {toolchain}: {wrong}")
    return found


def run() -> dict[str, Any]:
    """Every kernel, target, wave size and toolchain; the record is JSON-ready."""
    names = tuple(one.name for one in toolchains())
    found = list(_each_target(names))
    missing = [] if names else ["no toolchain for HIP is installed"]
    return {
        "cases": sum(one.cases for one in found),
        "failures": [*missing, *(wrong for one in found for wrong in one.failures)],
        "toolchains": {one.name: one.version for one in toolchains()},
        "kernels": list(CASES),
        "targets": list(DEMO_TARGETS),
        "waves": list(WAVES),
    }


def _each_target(names: tuple[str, ...]) -> Iterator[Found]:
    for target in DEMO_TARGETS:
        yield examine_all(target, WAVES, names)
