# SPDX-License-Identifier: Apache-2.0
"""What each example kernel has to compute, in numpy.

One function for each kernel, with the kernel's own arguments in the kernel's own order: pointers are flat
arrays of the element type, written in place. Each repeats its kernel's order of operations and its
roundings, so that all results are fixed to the bit; `rmsnorm` and `softmax` take the hardware's
approximations (v_rsq_f32, v_exp_f32) as correctly rounded and hold within `SPECS[name].tolerance`
elsewhere. NaN inputs are outside what they promise.

Nothing here knows of launches, memory or machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
F32 = NDArray[np.float32]

# The by-value struct of `activate`: 40 bytes, as LLVM lays it out.
PARAMS = np.dtype(
    [
        ("slope", "<f4"),
        ("shift", "<f4"),
        ("low", "<f4"),
        ("high", "<f4"),
        ("stamp", "<u8"),
        ("n", "<u4"),
        ("tag", "<u2"),
        ("reserved", "u1", 10),
    ]
)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOG2_E = np.float32(1.4426950408889634)


class Geometry(NamedTuple):
    """Work-items of a launch and of one workgroup, x y z."""

    global_size: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def groups(self) -> tuple[int, int, int]:
        """Workgroups, a partial one counted."""
        x, y, z = (-(-size // block) for size, block in zip(self.global_size, self.block, strict=True))
        return x, y, z


def fma(a: Any, b: Any, c: Any, kind: type[np.floating[Any]]) -> Array:
    """a * b + c rounded once to `kind` (float32 or float16).

    The product of two such numbers is exact in float64. The sum is rounded to odd there (its lost part
    decides the last bit), and a value rounded to odd rounds correctly to anything at least two bits
    shorter.
    """
    with np.errstate(all="ignore"):
        product = np.float64(a) * np.float64(b)
        addend = np.asarray(c, np.float64)
        total = np.asarray(product + addend)
        back = total - product
        lost = (product - (total - back)) + (addend - back)
        even = (total.view(np.uint64) & np.uint64(1)) == 0
        odd = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
        inexact = np.isfinite(total) & np.isfinite(lost) & (lost != 0) & even
        return np.where(inexact, odd, total).astype(kind)


def copy(dst: Array, src: Array, n: int, *, geometry: Geometry) -> None:
    dst[:n] = src[:n]


def saxpy(y: F32, x: F32, a: float, n: int, *, geometry: Geometry) -> None:
    y[:n] = fma(np.float32(a), x[:n], y[:n], np.float32)


def index3d(
    dst: Array,
    src: Array,
    nx: int,
    ny: int,
    nz: int,
    sx: int,
    sy: int,
    sz: int,
    offset: int,
    *,
    geometry: Geometry,
) -> None:
    z, y, x = np.ogrid[:nz, :ny, :nx]
    dst[: nx * ny * nz] = src[(offset + z * sz + y * sy + x * sx).ravel()]


def fill(
    dst: F32,
    value: float,
    step: float,
    rest: float,
    limit: int,
    pitch: int,
    plane: int,
    *,
    geometry: Geometry,
) -> None:
    nx, ny, nz = geometry.global_size
    y, x = np.ogrid[:ny, :nx]
    at = y * pitch + x
    with np.errstate(all="ignore"):
        ramp = fma(np.float32(step), at.astype(np.float32), np.float32(value), np.float32)
    box = np.where(x < limit, ramp, np.float32(rest))
    for z in range(nz):
        dst[z * plane + at] = box


def argmax(index: Array, value: F32, src: F32, n: int, pitch: int, *, geometry: Geometry) -> None:
    for row in range(geometry.groups[0]):
        values = src[row * pitch : row * pitch + n]
        greatest = values.max(initial=-np.inf)
        value[row] = greatest
        index[row] = np.argmax(values == greatest) if greatest > -np.inf else 0x7FFFFFFF


def transpose(
    dst: Array, src: Array, rows: int, cols: int, src_pitch: int, dst_pitch: int, *, geometry: Geometry
) -> None:
    r, c = np.ogrid[:rows, :cols]
    dst[c * dst_pitch + r] = src[r * src_pitch + c]


def matmul(
    c: F32,
    a: F32,
    b: F32,
    m: int,
    n: int,
    k: int,
    lda: int,
    ldb: int,
    ldc: int,
    batch_a: int,
    batch_b: int,
    batch_c: int,
    *,
    geometry: Geometry,
) -> None:
    i, j, steps = np.arange(m)[:, None], np.arange(n)[None, :], -(-k // 16) * 16
    for z in range(geometry.groups[2]):
        total = np.zeros((m, n), np.float32)
        for step in range(steps):
            left, right = np.zeros((m, 1), np.float32), np.zeros((1, n), np.float32)
            if step < k:
                left = a[z * batch_a + i * lda + step]
                right = b[z * batch_b + step * ldb + j]
            total = fma(left, right, total, np.float32)
        c[z * batch_c + i * ldc + j] = total


def _columns(row: F32, lanes: int, padding: float) -> F32:
    """A row as the work-items of a workgroup walk it: [step, lane], padded."""
    steps = max(1, -(-len(row) // lanes))
    padded = np.full(steps * lanes, padding, np.float32)
    padded[: len(row)] = row
    return padded.reshape(steps, lanes)


def _tree(lanes: F32, join: Callable[[F32, F32], F32]) -> np.float32:
    """The first half joined with the second until one value is left."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = join(lanes[:half], lanes[half:])
    return np.float32(lanes[0])


def _add(a: F32, b: F32) -> F32:
    return a + b


def rmsnorm(dst: F32, src: F32, weight: F32, eps: float, n: int, pitch: int, *, geometry: Geometry) -> None:
    for row in range(geometry.groups[0]):
        x = src[row * pitch : row * pitch + n]
        squares = np.zeros(128, np.float32)
        for step in _columns(x, 128, 0.0):
            squares = fma(step, step, squares, np.float32)
        kept = np.float32(_tree(squares, _add) / np.float32(n)) + np.float32(eps)
        factor = np.float32(1.0 / np.sqrt(np.float64(kept)))
        dst[row * pitch : row * pitch + n] = (x * factor) * weight[:n]


def softmax(dst: F32, src: F32, scale: float, n: int, pitch: int, *, geometry: Geometry) -> None:
    factor = np.float32(scale) * LOG2_E
    for row in range(geometry.groups[0]):
        scaled = src[row * pitch : row * pitch + n] * factor
        greatest = scaled.max(initial=np.float32(-np.inf))
        below = scaled - greatest
        power = np.where(below < -126.0, 0.0, np.exp2(below.astype(np.float64))).astype(np.float32)
        sums = np.zeros(128, np.float32)
        for step in _columns(power, 128, 0.0):
            sums = sums + step
        dst[row * pitch : row * pitch + n] = power / _tree(sums, _add)


def hash(dst: Array, key: Array, seed: int, n: int, shift: int, *, geometry: Geometry) -> None:  # noqa: A001
    i = np.arange(n, dtype=np.uint64)
    keys = key.view(np.uint64)[i >> np.uint64(shift & 31)]
    with np.errstate(over="ignore"):
        z = keys + np.uint64(seed & 0xFFFFFFFFFFFFFFFF) + i * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    dst.view(np.uint64)[:n] = z ^ (z >> np.uint64(31))


def axpy_f16(y: NDArray[np.float16], x: NDArray[np.float16], a: float, n: int, *, geometry: Geometry) -> None:
    y[:n] = fma(np.float16(a), x[:n], y[:n], np.float16)


def q8dot(
    dst: F32,
    weight: NDArray[np.int8],
    x: NDArray[np.int8],
    row_scale: F32,
    x_scale: float,
    rows: int,
    words: int,
    *,
    geometry: Geometry,
) -> None:
    matrix = weight[: rows * words * 4].reshape(rows, words * 4)
    total = (matrix.astype(np.int64) @ x[: words * 4].astype(np.int64)).astype(np.int32)
    dst[:rows] = total.astype(np.float32) * (row_scale[:rows] * np.float32(x_scale))


def kv_write(
    k_cache: Array,
    v_cache: Array,
    k: Array,
    v: Array,
    position: int,
    width: int,
    capacity: int,
    *,
    geometry: Geometry,
) -> None:
    if position < capacity:
        k_cache[position * width : (position + 1) * width] = k[:width]
        v_cache[position * width : (position + 1) * width] = v[:width]


def activate(
    dst: F32,
    src: F32,
    gain: NDArray[np.float16],
    geometry_words: NDArray[np.uint32],
    params: Any,
    *,
    geometry: Geometry,
) -> None:
    """`params` is one element of dtype PARAMS."""
    n = int(params["n"])
    line = fma(params["slope"], src[:n], params["shift"], np.float32)
    gate = np.where(line > params["low"], line, params["low"])
    gate = np.where(gate < params["high"], gate, params["high"]).astype(np.float32)
    with np.errstate(all="ignore"):
        dst[:n] = (src[:n] * gate) * gain[:n].astype(np.float32)
    geometry_words[:16] = _geometry_words(params, geometry)


def _geometry_words(params: Any, geometry: Geometry) -> list[int]:
    sizes = list(zip(geometry.global_size, geometry.block, strict=True))
    dims = max([1] + [axis + 1 for axis, size in enumerate(geometry.global_size) if size > 1])
    items = geometry.global_size[0] * geometry.global_size[1] * geometry.global_size[2]
    stamp = int(params["stamp"])
    counts = [size // block for size, block in sizes]
    rests = [size % block for size, block in sizes]
    stamps = [stamp & 0xFFFFFFFF, stamp >> 32]
    return [*counts, *geometry.block, *rests, dims, items, int(params["tag"]), *stamps, int(params["n"]), 0]


ORACLES: dict[str, Callable[..., None]] = {
    oracle.__name__: oracle
    for oracle in (
        copy,
        saxpy,
        index3d,
        fill,
        argmax,
        transpose,
        matmul,
        rmsnorm,
        softmax,
        hash,
        axpy_f16,
        q8dot,
        kv_write,
        activate,
    )
}
