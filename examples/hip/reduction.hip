// sums[block] = sum of the block's 512 values; blocks of 256 threads. Lanes first, then waves through LDS.
extern "C" __global__ __launch_bounds__(256) void reduction(float *__restrict__ sums, const float *__restrict__ x,
                                                            unsigned n) {
  __shared__ float of_wave[8];
  unsigned first = blockIdx.x * 512 + threadIdx.x, second = first + 256;
  float sum = (first < n ? x[first] : 0.0f) + (second < n ? x[second] : 0.0f);
  for (int mask = warpSize / 2; mask; mask /= 2) sum += __shfl_xor(sum, mask);
  if (__lane_id() == 0) of_wave[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (unsigned wave = 0; wave < 256 / warpSize; wave++) total += of_wave[wave];
    sums[blockIdx.x] = total;
  }
}
