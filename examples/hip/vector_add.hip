// c = a + b. Grid of any size.
extern "C" __global__ void vector_add(float *__restrict__ c, const float *__restrict__ a, const float *__restrict__ b,
                                      unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i] + b[i];
}
