// SPDX-License-Identifier: Apache-2.0
// y = x / sqrt(mean(x * x) + epsilon) * weight for each row, one workgroup a row.
#include <hip/hip_runtime.h>

constexpr int BLOCK = 128;

extern "C" __global__ void __launch_bounds__(BLOCK)
    rmsnorm(float *y, const float *x, const float *weight, float epsilon, int columns) {
  __shared__ float squares[BLOCK];
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += BLOCK) sum = fmaf(x[i], x[i], sum);
  squares[threadIdx.x] = sum;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) squares[threadIdx.x] += squares[threadIdx.x + half];
    __syncthreads();
  }
  float scale = 1.0f / sqrtf(squares[0] / columns + epsilon);
  for (int i = threadIdx.x; i < columns; i += BLOCK) y[i] = x[i] * scale * weight[i];
}
