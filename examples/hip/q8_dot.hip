// SPDX-License-Identifier: Apache-2.0
// Dot products of 8-bit quantised rows with one 8-bit quantised vector: blocks of 32 values share a scale. One wave a
// row; each lane takes every warpSize-th block. Weights come by 128-bit buffer loads, 0 past the end of a row.
#include <hip/hip_runtime.h>

constexpr int VALUES = 32;

static __device__ int dot4(int a, int b, int sum) {
  for (int shift = 0; shift < 32; shift += 8) sum += (int)(signed char)(a >> shift) * (signed char)(b >> shift);
  return sum;
}

extern "C" __global__ void __launch_bounds__(RADIOWAVE_WAVE)
    q8_dot(float *y, const int *weights, const float *scales, const int *x, const float *x_scales, int blocks) {
  radiowave::buffer row = radiowave::make_buffer(weights + blockIdx.x * blocks * (VALUES / 4), blocks * VALUES);
  radiowave::buffer vector = radiowave::make_buffer(x, blocks * VALUES);
  float sum = 0.0f;
  for (int block = threadIdx.x; block < blocks; block += warpSize) {
    int products = 0;
    for (int part = 0; part < 2; part++) {
      radiowave::u32x4 w = radiowave::buffer_load_b128(row, block * VALUES + 16 * part);
      radiowave::u32x4 v = radiowave::buffer_load_b128(vector, block * VALUES + 16 * part);
      for (int i = 0; i < 4; i++) products = dot4(w[i], v[i], products);
    }
    sum = fmaf((float)products, scales[blockIdx.x * blocks + block] * x_scales[block], sum);
  }
  for (int mask = warpSize / 2; mask > 0; mask /= 2) sum += __shfl_xor(sum, mask);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
