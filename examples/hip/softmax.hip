// Each row of x, `columns` long, becomes exp(x - max) / sum in y. One block of 256 threads a row.
template <class F> static __device__ __forceinline__ float over_block(float value, F combine, float *of_wave) {
  for (int mask = warpSize / 2; mask; mask /= 2) value = combine(value, __shfl_xor(value, mask));
  __syncthreads();
  if (__lane_id() == 0) of_wave[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = of_wave[0];
  for (unsigned wave = 1; wave < 256 / warpSize; wave++) value = combine(value, of_wave[wave]);
  return value;
}

extern "C" __global__ __launch_bounds__(256) void softmax(float *__restrict__ y, const float *__restrict__ x,
                                                          unsigned columns) {
  __shared__ float of_wave[8];
  const float *row = x + blockIdx.x * columns;
  float most = -__builtin_inff(), sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += 256) most = fmaxf(most, row[i]);
  most = over_block(most, [](float a, float b) { return fmaxf(a, b); }, of_wave);
  for (unsigned i = threadIdx.x; i < columns; i += 256) sum += expf(row[i] - most);
  sum = over_block(sum, [](float a, float b) { return a + b; }, of_wave);
  for (unsigned i = threadIdx.x; i < columns; i += 256) y[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}
