// out[row] = sum over blocks of 32 of scale[row, block] * (sum of q[row, i] * x[i]), q as signed bytes. One wave a row, which is the whole block.
extern "C" __global__ void q8_dot(float *__restrict__ out, const signed char *__restrict__ q,
                                  const float *__restrict__ scale, const float *__restrict__ x, unsigned blocks) {
  unsigned row = blockIdx.x;
  float sum = 0;
  for (unsigned block = threadIdx.x; block < blocks; block += blockDim.x) {
    const signed char *bytes = q + (row * blocks + block) * 32;
    float part = 0;
    for (unsigned i = 0; i < 32; i++) part = fmaf((float)bytes[i], x[block * 32 + i], part);
    sum = fmaf(scale[row * blocks + block], part, sum);
  }
  for (int mask = warpSize / 2; mask; mask /= 2) sum += __shfl_xor(sum, mask);
  if (threadIdx.x == 0) out[row] = sum;
}
