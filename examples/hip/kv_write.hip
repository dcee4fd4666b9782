// Writes one token's key and value, `width` floats each, into the caches at a position that memory holds; in place.
// The position is uniform and was perhaps written by the launch before: a scalar load would need a fence of its own.
extern "C" __global__ void kv_write(float *keys, float *values, const float *__restrict__ key,
                                    const float *__restrict__ value, const unsigned *position, unsigned width) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = radiowave::vmem_load(position) * width + i;
  if (i < width) {
    keys[at] = key[i];
    values[at] = value[i];
  }
}
