// SPDX-License-Identifier: Apache-2.0
// Softmax of each row, one workgroup a row: the maximum, then the sum of the exponentials, then the quotients.
#include <hip/hip_runtime.h>

constexpr int BLOCK = 128, WAVES = BLOCK / RADIOWAVE_WAVE;

template <typename Combine>
static __device__ float over_workgroup(float value, Combine combine) {
  __shared__ float waves[WAVES];
  for (int mask = warpSize / 2; mask > 0; mask /= 2) value = combine(value, __shfl_xor(value, mask));
  __syncthreads();  // the previous result has been read
  if (threadIdx.x % warpSize == 0) waves[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = waves[0];
  for (int wave = 1; wave < WAVES; wave++) value = combine(value, waves[wave]);
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK) softmax(float *y, const float *x, int columns) {
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  float top = -__builtin_inff();
  for (int i = threadIdx.x; i < columns; i += BLOCK) top = fmaxf(top, x[i]);
  top = over_workgroup(top, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += BLOCK) sum += expf(x[i] - top);
  sum = over_workgroup(sum, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < columns; i += BLOCK) y[i] = expf(x[i] - top) / sum;
}
