// SPDX-License-Identifier: Apache-2.0
// y += a * x, the grid strides over any number of elements.
#include <hip/hip_runtime.h>

extern "C" __global__ void __launch_bounds__(256) saxpy(float *y, const float *x, float a, int n) {
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) y[i] = fmaf(a, x[i], y[i]);
}
