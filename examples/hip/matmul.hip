// SPDX-License-Identifier: Apache-2.0
// C = A * B in tiles: A is m by k, B is k by n, C is m by n, all row by row. Sizes need not be multiples of the tile.
#include <hip/hip_runtime.h>

constexpr int TILE = 16;

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    matmul(float *c, const float *a, const float *b, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    a_tile[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0.0f;
    b_tile[y][x] = column < n && start + y < k ? b[(start + y) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum = fmaf(a_tile[y][i], b_tile[i][x], sum);
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
