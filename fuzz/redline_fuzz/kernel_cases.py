# SPDX-License-Identifier: Apache-2.0
"""Random launches of the example kernels: shapes, data and geometry for `SPECS`, one builder for each kernel.

A builder draws its shapes through `pick(low, high)`, so that hypothesis can shrink them and a long run can
take them from a generator; data come from a numpy generator. Arrays are longer than what a kernel may
write, so that a stray store shows. It runs nothing and knows no expected result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redline.kernels.oracles import PARAMS, Geometry
from redline.kernels.specs import SPECS, Dims

Array = NDArray[Any]
Pick = Callable[[int, int], int]
Random = np.random.Generator

MARGIN = 5  # elements behind each array's end that nobody may touch

# f32 and f16 bit patterns that ordinary random numbers never hit: zeros, the denormals' ends, the largest,
# infinities.
EDGES_32 = (0, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000)
EDGES_16 = (0, 1, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00)


@dataclass(frozen=True)
class Case:
    """One launch: arguments in the kernel's order, flat arrays for pointers and numpy scalars for the rest."""

    kernel: str
    arguments: tuple[Any, ...]
    geometry: Geometry

    def copy(self) -> Case:
        """The same launch on its own arrays."""
        own = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments)
        return Case(self.kernel, own, self.geometry)


def floats(random: Random, n: int, edges: bool = False) -> NDArray[np.float32]:
    """f32 of mixed size; short and long mantissas, so that sums and products also end halfway between two floats."""
    values = random.normal(0, 1, n) * np.exp2(random.integers(-6, 7, n).astype(np.float64))
    result = values.astype(np.float32)
    bits = result.view(np.uint32)
    bits &= np.where(random.random(n) < 0.5, 0xFFFFF000, 0xFFFFFFFF).astype(np.uint32)
    if edges and n:
        at = random.random(n) < 0.1
        signs = random.integers(0, 2, n).astype(np.uint32) << np.uint32(31)
        bits[at] = (random.choice(np.array(EDGES_32, np.uint32), n) | signs)[at]
    return result


def halves(random: Random, n: int) -> NDArray[np.float16]:
    """f16 of mixed size, edges among them."""
    values = random.normal(0, 1, n) * np.exp2(random.integers(-8, 8, n).astype(np.float64))
    result = values.astype(np.float16)
    at = random.random(n) < 0.1
    signs = random.integers(0, 2, n).astype(np.uint16) << np.uint16(15)
    result.view(np.uint16)[at] = (random.choice(np.array(EDGES_16, np.uint16), n) | signs)[at]
    return result


def words(random: Random, n: int) -> NDArray[np.uint32]:
    return random.integers(0, 1 << 32, n, np.uint32)


def _case(kernel: str, *arguments: Any, free: Dims = (1, 1, 1), exact_grid: bool = False) -> Case:
    """Scalars in the types of `SPECS`, whole workgroups; `exact_grid` takes just the work-items that are needed."""
    spec = SPECS[kernel]
    assert spec.block is not None
    typed: list[Any] = []
    scalars: dict[str, int] = {}
    for argument, given in zip(spec.arguments, arguments, strict=True):
        typed.append(given if argument.access else np.dtype(argument.type).type(given))
        if argument.type == "u4" and not argument.access:
            scalars[argument.name] = int(given)
    groups = spec.groups(scalars, free)
    x, y, z = (count * size for count, size in zip(groups, spec.block, strict=True))
    if exact_grid:
        tile = spec.tiles[0]
        assert tile is not None
        x = max(1, min(x, scalars[tile[0]]))
    return Case(kernel, tuple(typed), Geometry((x, y, z), spec.block))


def copy(pick: Pick, random: Random) -> Case:
    n = pick(0, 1100)
    # One work-item for each element: the last workgroup is partial.
    return _case("copy", words(random, n + MARGIN), words(random, n + MARGIN), n, exact_grid=bool(pick(0, 1)))


def saxpy(pick: Pick, random: Random) -> Case:
    n = pick(0, 1100)
    y, x = floats(random, n + MARGIN, edges=True), floats(random, n + MARGIN, edges=True)
    return _case("saxpy", y, x, random.normal(), n)


def index3d(pick: Pick, random: Random) -> Case:
    nx, ny, nz, offset = pick(1, 20), pick(1, 10), pick(1, 5), pick(0, 50)
    strides = [pick(0, 40), pick(0, 40), pick(0, 40)]
    reach = offset + (nx - 1) * strides[0] + (ny - 1) * strides[1] + (nz - 1) * strides[2]
    dst = words(random, nx * ny * nz + MARGIN)
    return _case("index3d", dst, words(random, reach + 1), nx, ny, nz, *strides, offset)


def fill(pick: Pick, random: Random) -> Case:
    box = pick(1, 40), pick(1, 9), pick(1, 5)
    pitch = box[0] + pick(0, 3)
    plane = pitch * box[1] + pick(0, 3)
    value, step = random.normal(), random.choice([0.0, random.normal()])
    value = value if step else random.choice([value, -np.inf])
    dst = floats(random, plane * box[2] + MARGIN)
    case = _case("fill", dst, value, step, random.choice([0.0, -np.inf]), pick(0, box[0] + 1), pitch, plane)
    return Case("fill", case.arguments, Geometry(box, case.geometry.block))


def argmax(pick: Pick, random: Random) -> Case:
    rows, n = pick(1, 5), pick(0, 700)
    pitch = n + pick(0, 3)
    src = floats(random, rows * pitch + MARGIN)
    ties = random.random(len(src)) < random.choice([0.0, 0.5, 1.0])
    src[ties] = np.float32(random.choice([60.0, -60.0, np.inf, -np.inf]))
    index, value = random.integers(-9, 9, rows + MARGIN, np.int32), floats(random, rows + MARGIN)
    return _case("argmax", index, value, src, n, pitch, free=(rows, 1, 1))


def transpose(pick: Pick, random: Random) -> Case:
    rows, cols = pick(1, 70), pick(1, 70)
    src_pitch, dst_pitch = cols + pick(0, 3), rows + pick(0, 3)
    dst, src = words(random, cols * dst_pitch + MARGIN), words(random, rows * src_pitch)
    return _case("transpose", dst, src, rows, cols, src_pitch, dst_pitch)


def matmul(pick: Pick, random: Random) -> Case:
    m, n, k, batches = pick(1, 40), pick(1, 40), pick(0, 40), pick(1, 3)
    lda, ldb, ldc = k + pick(0, 3), n + pick(0, 3), n + pick(0, 3)
    strides = m * lda + pick(0, 3), k * ldb + pick(0, 3), m * ldc + pick(0, 3)
    c, a, b = (floats(random, batches * stride + MARGIN) for stride in (strides[2], strides[0], strides[1]))
    return _case("matmul", c, a, b, m, n, k, lda, ldb, ldc, *strides, free=(1, 1, batches))


def rmsnorm(pick: Pick, random: Random) -> Case:
    rows, n = pick(1, 5), pick(1, 400)
    pitch = n + pick(0, 3)
    src, dst = floats(random, rows * pitch + MARGIN), floats(random, rows * pitch + MARGIN)
    if random.random() < 0.5:  # one work-item's sum decides: its last place is not lost among 127 others
        src[: rows * pitch].reshape(rows, pitch)[:, np.arange(pitch) % 128 != random.integers(min(n, 128))] = 0
    return _case("rmsnorm", dst, src, floats(random, n), 1e-5, n, pitch, free=(rows, 1, 1))


def softmax(pick: Pick, random: Random) -> Case:
    rows, n = pick(1, 5), pick(0, 400)
    pitch = n + pick(0, 3)
    src, dst = floats(random, rows * pitch + MARGIN), floats(random, rows * pitch + MARGIN)
    scale = random.choice([0.125, 1.0, 3.0])
    return _case("softmax", dst, src, scale, n, pitch, free=(rows, 1, 1))


def hash(pick: Pick, random: Random) -> Case:  # noqa: A001
    n, shift = pick(0, 300), pick(0, 4)
    key = random.integers(0, 1 << 64, (n >> shift) + 1, np.uint64)
    dst = random.integers(0, 1 << 64, n + MARGIN, np.uint64)
    return _case("hash", dst, key, random.integers(0, 1 << 64, dtype=np.uint64), n, shift)


def axpy_f16(pick: Pick, random: Random) -> Case:
    n = pick(0, 500)
    return _case("axpy_f16", halves(random, n + MARGIN), halves(random, n + MARGIN), random.normal(), n)


def q8dot(pick: Pick, random: Random) -> Case:
    rows, count = pick(1, 150), pick(0, 40)
    weight = random.integers(-128, 128, rows * count * 4 + 4, np.int8)
    x = random.integers(-128, 128, count * 4 + 4, np.int8)
    scale = floats(random, rows)
    return _case("q8dot", floats(random, rows + MARGIN), weight, x, scale, random.normal(), rows, count)


def kv_write(pick: Pick, random: Random) -> Case:
    width, capacity = pick(1, 150), pick(1, 9)
    caches = [words(random, width * capacity + MARGIN) for _ in range(2)]
    rows = [words(random, width) for _ in range(2)]
    return _case("kv_write", *caches, *rows, pick(0, capacity), width, capacity)


def activate(pick: Pick, random: Random) -> Case:
    n = pick(0, 600)
    block = pick(1, 40), pick(1, 3), pick(1, 2)
    size = pick(1, 90), pick(1, 7), pick(1, 3)
    params = np.zeros((), PARAMS)
    params["slope"], params["shift"], params["low"], params["high"] = random.normal(size=4)
    params["stamp"], params["n"], params["tag"] = random.integers(0, 1 << 64, dtype=np.uint64), n, pick(0, 65535)
    arrays = floats(random, n + MARGIN), floats(random, n + MARGIN, edges=True), halves(random, n)
    return Case("activate", (*arrays, words(random, 16 + MARGIN), params[()]), Geometry(size, block))


CASES: dict[str, Callable[[Pick, Random], Case]] = {
    builder.__name__: builder
    for builder in (
        *(copy, saxpy, index3d, fill, argmax, transpose, matmul),
        *(rmsnorm, softmax, hash, axpy_f16, q8dot, kv_write, activate),
    )
}


def random_case(kernel: str, seed: int) -> Case:
    """A case whose shapes and data all come from one seed."""
    random = np.random.default_rng([seed, *kernel.encode()])
    return CASES[kernel](lambda low, high: int(random.integers(low, high + 1)), random)
