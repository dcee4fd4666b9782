// SPDX-License-Identifier: Apache-2.0
// What HIP kernels need, for compilers without HIP's own headers and device libraries. Radiowave includes it before
// every HIP source. Where HIP's headers are installed they are taken, and only `namespace radiowave` is added.
//
// Sources: HIP programming guide (names and meanings), clang's AMDGPU builtins, LLVM AMDGPUUsage "Code Object V5 Kernel
// Argument Metadata Map" (implicit arguments) and "Memory Model"; AMD RDNA1 to RDNA4 ISA, "Buffer Resource Descriptor".
#ifndef RADIOWAVE_HIP_H
#define RADIOWAVE_HIP_H

#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#else

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
// (threads[, waves a SIMD at least])
#define RADIOWAVE_BOUNDS(threads, waves, ...) \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define __launch_bounds__(...) RADIOWAVE_BOUNDS(__VA_ARGS__, 1)

#define RADIOWAVE_INLINE static __device__ __forceinline__

using size_t = decltype(sizeof 0);
struct dim3 {
  unsigned x, y, z;
};

namespace radiowave {
struct ThreadIdx {
  unsigned x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(),
           z = __builtin_amdgcn_workitem_id_z();
};
struct BlockIdx {
  unsigned x = __builtin_amdgcn_workgroup_id_x(), y = __builtin_amdgcn_workgroup_id_y(),
           z = __builtin_amdgcn_workgroup_id_z();
};
struct BlockDim {
  unsigned x = __builtin_amdgcn_workgroup_size_x(), y = __builtin_amdgcn_workgroup_size_y(),
           z = __builtin_amdgcn_workgroup_size_z();
};
// hidden_block_count_x, _y and _z are the first twelve bytes of the implicit arguments.
struct GridDim {
  const __attribute__((address_space(4))) unsigned *counts =
      (const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr();
  unsigned x = counts[0], y = counts[1], z = counts[2];
};
}  // namespace radiowave
#define threadIdx (radiowave::ThreadIdx{})
#define blockIdx (radiowave::BlockIdx{})
#define blockDim (radiowave::BlockDim{})
#define gridDim (radiowave::GridDim{})
#define warpSize (__builtin_amdgcn_wavefrontsize())

RADIOWAVE_INLINE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
RADIOWAVE_INLINE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
RADIOWAVE_INLINE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

template <class T> RADIOWAVE_INLINE T atomicAdd(T *at, T value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> RADIOWAVE_INLINE T atomicMax(T *at, T value) {
  return __hip_atomic_fetch_max(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> RADIOWAVE_INLINE T atomicMin(T *at, T value) {
  return __hip_atomic_fetch_min(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Only what LLVM computes without a library.
RADIOWAVE_INLINE float sqrtf(float x) { return __builtin_sqrtf(x); }
RADIOWAVE_INLINE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
RADIOWAVE_INLINE float expf(float x) { return __builtin_expf(x); }
RADIOWAVE_INLINE float exp2f(float x) { return __builtin_exp2f(x); }
RADIOWAVE_INLINE float logf(float x) { return __builtin_logf(x); }
RADIOWAVE_INLINE float log2f(float x) { return __builtin_log2f(x); }
RADIOWAVE_INLINE float fabsf(float x) { return __builtin_fabsf(x); }
RADIOWAVE_INLINE float floorf(float x) { return __builtin_floorf(x); }
RADIOWAVE_INLINE float ceilf(float x) { return __builtin_ceilf(x); }
RADIOWAVE_INLINE float rintf(float x) { return __builtin_rintf(x); }
RADIOWAVE_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
RADIOWAVE_INLINE float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
RADIOWAVE_INLINE float fminf(float x, float y) { return __builtin_fminf(x, y); }
template <class T> RADIOWAVE_INLINE T max(T x, T y) { return x < y ? y : x; }
template <class T> RADIOWAVE_INLINE T min(T x, T y) { return y < x ? y : x; }

RADIOWAVE_INLINE unsigned __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
// `from` counts lanes of the wave; T has four bytes. Up to gfx11 ds_bpermute stays within 32 lanes (RDNA1 to RDNA3 ISA,
// "DS_BPERMUTE_B32"): what lies in the other half of a wave64 comes through v_permlane64, on gfx10 lane by lane.
template <class T> RADIOWAVE_INLINE T radiowave_from_lane(T value, unsigned from) {
  static_assert(sizeof(T) == 4, "shuffles take values of four bytes");
  int word = __builtin_bit_cast(int, value), found;
#if defined(__GFX12__)
  found = __builtin_amdgcn_ds_bpermute(from << 2, word);
#else
  found = __builtin_amdgcn_ds_bpermute((from & 31) << 2, word);
  if (warpSize == 64) {
#if defined(__GFX11__)
    int other = __builtin_amdgcn_ds_bpermute((from & 31) << 2, __builtin_amdgcn_permlane64(word));
    found = (from ^ __lane_id()) & 32 ? other : found;
#else
    for (unsigned lane = 0; lane < 64; lane++) {
      int there = __builtin_amdgcn_readlane(word, lane);
      found = from == lane ? there : found;
    }
#endif
  }
#endif
  return __builtin_bit_cast(T, found);
}
template <class T> RADIOWAVE_INLINE T __shfl(T value, int lane) { return radiowave_from_lane(value, lane); }
template <class T> RADIOWAVE_INLINE T __shfl_xor(T value, int mask) {
  return radiowave_from_lane(value, __lane_id() ^ mask);
}
template <class T> RADIOWAVE_INLINE T __shfl_down(T value, unsigned delta) {
  unsigned from = __lane_id() + delta;
  return radiowave_from_lane(value, from < warpSize ? from : __lane_id());
}
template <class T> RADIOWAVE_INLINE T __shfl_up(T value, unsigned delta) {
  return radiowave_from_lane(value, __lane_id() < delta ? __lane_id() : __lane_id() - delta);
}
#endif  // without HIP's headers

namespace radiowave {

using u32 = unsigned;
using u32x4 = unsigned __attribute__((ext_vector_type(4)));

// A load that goes through the vector caches whatever the compiler knows about its address: a relaxed atomic of
// wavefront scope is a plain vector load in hardware. T has one, two, four or eight bytes.
template <class T> static __device__ inline __attribute__((always_inline)) T vmem_load(const T *from) {
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WAVEFRONT);
}

// The same value, of which the compiler knows nothing any more: in a vector register, or in a scalar one.
template <class T> static __device__ inline __attribute__((always_inline)) T opaque(T value) {
  asm volatile("" : "+v"(value));
  return value;
}
template <class T> static __device__ inline __attribute__((always_inline)) T opaque_uniform(T value) {
  asm volatile("" : "+s"(value));
  return value;
}

// `nbytes` bytes of memory behind a resource descriptor: loads outside give 0, stores outside are dropped. Offsets are
// bytes and multiples of four.
class Buffer {
 public:
  __device__ inline __attribute__((always_inline)) Buffer(void *memory, u32 nbytes)
      : resource(__builtin_amdgcn_make_buffer_rsrc(memory, 0, nbytes, word3)) {}
  __device__ inline __attribute__((always_inline)) u32 load_b32(u32 offset) const {
    return __builtin_amdgcn_raw_buffer_load_b32(resource, offset, 0, 0);
  }
  __device__ inline __attribute__((always_inline)) u32x4 load_b128(u32 offset) const {
    return __builtin_amdgcn_raw_buffer_load_b128(resource, offset, 0, 0);
  }
  __device__ inline __attribute__((always_inline)) void store_b32(u32 value, u32 offset) const {
    __builtin_amdgcn_raw_buffer_store_b32(value, resource, offset, 0, 0);
  }
  __device__ inline __attribute__((always_inline)) void store_b128(u32x4 value, u32 offset) const {
    __builtin_amdgcn_raw_buffer_store_b128(value, resource, offset, 0, 0);
  }

 private:
#if defined(__GFX10__)
  static constexpr int word3 = 0x31016fac;
#else
  static constexpr int word3 = 0x31004000;
#endif
  __amdgpu_buffer_rsrc_t resource;
};

}  // namespace radiowave
#endif
