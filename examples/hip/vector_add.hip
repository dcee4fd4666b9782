// SPDX-License-Identifier: Apache-2.0
// c = a + b, one work-item an element.
#include <hip/hip_runtime.h>

extern "C" __global__ void __launch_bounds__(256) vector_add(float *c, const float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
