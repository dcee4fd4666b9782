// c = a b for square matrices of n by n, n a multiple of 16, row by row. Blocks of 16 by 16 threads, one tile each.
extern "C" __global__ __launch_bounds__(256) void matmul(float *__restrict__ c, const float *__restrict__ a,
                                                         const float *__restrict__ b, unsigned n) {
  __shared__ float tile_a[16][16], tile_b[16][17];  // 17: no two rows of a column share a bank
  unsigned x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (unsigned k = 0; k < n; k += 16) {
    tile_a[y][x] = a[row * n + k + x];
    tile_b[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (unsigned i = 0; i < 16; i++) sum = fmaf(tile_a[y][i], tile_b[i][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}
