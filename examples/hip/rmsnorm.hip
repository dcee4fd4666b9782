// Each row of x, `columns` long: y = x / sqrt(mean(x^2) + epsilon) * weight. One block of 256 threads a row.
// The weights change between launches in training: they are read through the vector caches, so that a fence for vector
// loads is enough for all that this kernel reads.
extern "C" __global__ __launch_bounds__(256) void rmsnorm(float *__restrict__ y, const float *__restrict__ x,
                                                          const float *__restrict__ weight, unsigned columns,
                                                          float epsilon) {
  __shared__ float of_wave[8];
  const float *row = x + blockIdx.x * columns;
  float sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += 256) sum = fmaf(row[i], row[i], sum);
  for (int mask = warpSize / 2; mask; mask /= 2) sum += __shfl_xor(sum, mask);
  if (__lane_id() == 0) of_wave[threadIdx.x / warpSize] = sum;
  __syncthreads();
  float total = 0;
  for (unsigned wave = 0; wave < 256 / warpSize; wave++) total += of_wave[wave];
  float scale = rsqrtf(total / columns + epsilon);
  for (unsigned i = threadIdx.x; i < columns; i += 256)
    y[blockIdx.x * columns + i] = row[i] * scale * radiowave::vmem_load(weight + i);
}
