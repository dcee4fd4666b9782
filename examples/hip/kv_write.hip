// SPDX-License-Identifier: Apache-2.0
// A decode step's key and value go into the cache in place, at the position that an earlier kernel counted up. That
// position is the same for all lanes and is read through the vector cache, so that the certificate says vmem_only.
#include <hip/hip_runtime.h>

extern "C" __global__ void __launch_bounds__(128)
    kv_write(float *keys, float *values, const float *key, const float *value, const int *position, int width, int rows) {
  int row = radiowave::vmem_load(position);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width || row < 0 || row >= rows) return;
  keys[row * width + i] = key[i];
  values[row * width + i] = value[i];
}
