// SPDX-License-Identifier: Apache-2.0
// The sum of each workgroup's elements, then of all: within a wave by shuffles, between waves through LDS, between
// workgroups by an integer atomic, so that the result does not depend on their order.
#include <hip/hip_runtime.h>

constexpr int BLOCK = 256, WAVES = BLOCK / RADIOWAVE_WAVE;

extern "C" __global__ void __launch_bounds__(BLOCK) reduction(int *total, const int *x, int n) {
  __shared__ int sums[WAVES];
  int sum = 0;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) sum += x[i];
  for (int distance = warpSize / 2; distance > 0; distance /= 2) sum += __shfl_down(sum, distance);
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int wave = 1; wave < WAVES; wave++) sum += sums[wave];
    atomicAdd(total, sum);
  }
}
