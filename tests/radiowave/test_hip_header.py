# SPDX-License-Identifier: Apache-2.0
"""`radiowave/hip.h` on the software device: what its functions return, on five targets with both wave sizes.

Shuffles matter most: ds_bpermute_b32 stays inside 32 lanes on RDNA1 to RDNA3, and a wave may have 64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import redline as rl
from radiowave import CodeObject, HipJob, compile_hip
from radiowave.hip_compilers import find_hip_compilers
from tests.radiowave.clang import DEMO_TARGETS
from tests.radiowave.hip_cases import HipCase, wrong

pytestmark = pytest.mark.clang
Array = NDArray[Any]
ITEMS, WAVES = 128, (32, 64)
TOOLCHAINS = [compiler.name for compiler in find_hip_compilers() if compiler.compiler]

SHUFFLES = """
extern "C" __global__ void __launch_bounds__(128) shuffles(int *y, const int *x) {
  int i = threadIdx.x, v = x[i], *out = y + i;
  out[0] = __shfl(v, 7 * i + 3);
  out[128] = __shfl_xor(v, WAVE / 2 + 1);
  out[256] = __shfl_down(v, 5);
  out[384] = __shfl_up(v, WAVE / 2 + 2);
  out[512] = __shfl(v, i / 3, 16);
  out[640] = __shfl_xor(v, 9, 8);
  out[768] = __shfl_down(v, 3, 4);
  out[896] = __shfl_up(v, 1, 32);
  out[1024] = __builtin_bit_cast(int, __shfl_xor(__builtin_bit_cast(float, v), 2));
  out[1152] = (int)__shfl((unsigned)v, 1) + __lane_id() + warpSize;
}
"""

PLACES = """
extern "C" __global__ void places(unsigned *y, unsigned *count) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, z = blockIdx.z * blockDim.z + threadIdx.z;
  unsigned row = blockIdx.y * blockDim.y + threadIdx.y, width = gridDim.x * blockDim.x;
  y[(z * gridDim.y * blockDim.y + row) * width + x] =
      x | row << 8 | z << 16 | (gridDim.x + gridDim.y + gridDim.z) << 24;
  atomicAdd(count, 1u);
}
"""

MEMORY = """
extern "C" __global__ void __launch_bounds__(64) memory(unsigned *y, const unsigned *x, float *f) {
  __shared__ unsigned turned[64];
  int i = threadIdx.x;
  turned[63 - i] = radiowave::opaque(x[i]);
  __syncthreads();
  radiowave::Buffer from((void *)x, 192), to(y, 64 * 4), vectors(y + 64, 240);
  to.store_b32(turned[i] + from.load_b32(4 * i), 4 * i);
  vectors.store_b128(from.load_b128(16 * i), 16 * i);
  float old = __builtin_bit_cast(float, radiowave::Buffer(f, 4).load_b32(0));
  if (i == 0) atomicAdd(f, old + radiowave::opaque_uniform(1.5f));
}
"""


@pytest.fixture(scope="module", params=DEMO_TARGETS)
def device(request: pytest.FixtureRequest) -> Iterator[rl.Device]:
    """One software device a target."""
    with rl.open(f"sim:{request.param}") as opened:
        yield opened


def _wrong(device: rl.Device, text: str, name: str, wave: int, case: HipCase) -> list[str]:
    """Each toolchain has its turn."""
    toolchain = TOOLCHAINS[(DEMO_TARGETS.index(device.target) + wave // 32) % len(TOOLCHAINS)]
    data = compile_hip(text, HipJob(device.target, wave, defines={"WAVE": str(wave)}), toolchain=toolchain).data
    return wrong(rl.load(data)[name], case, device)


def _shuffled(x: Array, wave: int) -> Array:
    item = np.arange(ITEMS)
    lane, base = item % wave, item // wave * wave

    def at(source: Array, width: int, inside: Array) -> Array:
        """From a lane of the wave, or the lane itself where the source is outside its group."""
        return x[base + np.where(inside, source, lane)]

    def shuffle(index: Array, width: int) -> Array:
        return at(lane // width * width + index % width, width, np.full(ITEMS, True))

    def exchanged(mask: int, width: int) -> Array:
        return at(lane ^ mask, width, (lane ^ mask) // width <= lane // width)

    def down(delta: int, width: int) -> Array:
        return at(lane + delta, width, lane % width + delta < width)

    def up(delta: int, width: int) -> Array:
        return at(lane - delta, width, lane % width >= delta)

    rows = [
        shuffle(7 * item + 3, wave),
        exchanged(wave // 2 + 1, wave),
        down(5, wave),
        up(wave // 2 + 2, wave),
        shuffle(item // 3, 16),
        exchanged(9, 8),
        down(3, 4),
        up(1, 32),
        exchanged(2, wave),
        shuffle(np.ones(ITEMS, np.int64), wave) + lane + wave,
    ]
    return np.concatenate(rows).astype(np.int32)


@pytest.mark.parametrize("wave", WAVES)
def test_shuffles_reach_the_whole_wave(device: rl.Device, wave: int) -> None:
    """As HIP defines them, with every width; no value is that of a lane of another half by accident."""
    x = np.arange(ITEMS, dtype=np.int32) * 1001 + 17
    y = np.zeros(10 * ITEMS, np.int32)
    case = HipCase({"y": y, "x": x}, (), (1,), (ITEMS,), ("y",), lambda _: {"y": _shuffled(x, wave)})
    assert _wrong(device, SHUFFLES, "shuffles", wave, case) == []


@pytest.mark.parametrize("wave", WAVES)
def test_coordinates(device: rl.Device, wave: int) -> None:
    """Three dimensions, all different; 2 x 3 x 4 workgroups of 8 x 4 x 2."""
    z, row, x = np.meshgrid(np.arange(8), np.arange(12), np.arange(16), indexing="ij")
    expected = (x | row << 8 | z << 16 | 9 << 24).astype(np.uint32)
    buffers = {"y": np.zeros(expected.size, np.uint32), "count": np.zeros(1, np.uint32)}
    results = {"y": expected.reshape(-1), "count": np.array([expected.size], np.uint32)}
    case = HipCase(buffers, (), (2, 3, 4), (8, 4, 2), ("y", "count"), lambda _: results)
    assert _wrong(device, PLACES, "places", wave, case) == []


@pytest.mark.parametrize("wave", WAVES)
def test_memory(device: rl.Device, wave: int) -> None:
    """LDS behind a barrier, buffers with their ends (0 is read past them, nothing is written), atomics."""
    x = np.random.default_rng(1).integers(0, 2**32, 64, np.uint32)
    y = np.full(64 + 256, 0xAAAAAAAA, np.uint32)
    inside = np.where(np.arange(64) < 48, x, 0).astype(np.uint32)
    expected = y.copy()
    expected[:64] = x[::-1] + inside
    expected[64 : 64 + 60] = inside[:60]
    f = np.array([2.25], np.float32)
    results: dict[str, Array] = {"y": expected, "f": f + f + np.float32(1.5)}
    case = HipCase({"y": y, "x": x, "f": f}, (), (1,), (64,), ("y", "f"), lambda _: results)
    assert _wrong(device, MEMORY, "memory", wave, case) == []


def test_version_4_asks_the_packet() -> None:
    """Its implicit arguments have no sizes, so the dispatch packet is read; they are no argument of the kernel."""
    for version in (4, 5):
        data = compile_hip(PLACES, HipJob("gfx1201", code_object_version=version)).data
        kernel = CodeObject.parse(data).kernel("places")
        assert bool(kernel.descriptor.properties & 2) == (version == 4)
        assert any(argument.is_hidden for argument in kernel.arguments) == (version == 5)
