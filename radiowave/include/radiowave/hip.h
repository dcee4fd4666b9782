// SPDX-License-Identifier: Apache-2.0
// What a HIP kernel needs of HIP, and what Radiowave adds: clang alone compiles it, without HIP's headers or libraries.
// Radiowave includes it in front of every HIP source. Device code only: there is nothing here to launch a kernel with.
//
// With RADIOWAVE_HIP_HEADERS (the compiler comes with HIP's headers; so does one that has included clang's wrapper for
// them) HIP's own definitions are used, and only the namespace `radiowave` is added. RADIOWAVE_WAVE (32 or 64) and RADIOWAVE_CODE_OBJECT_VERSION (4, 5, 6) come from the
// command line. Sources of facts: LLVM AMDGPUUsage ("Kernel Argument Metadata", hidden arguments; builtins of
// BuiltinsAMDGPU.def), AMD's RDNA2, RDNA3 and RDNA4 instruction set manuals ("Buffer Resource Descriptor").
#pragma once

#ifndef __HIP__
#error "radiowave/hip.h is for HIP sources: compile with -x hip"
#endif
#ifndef RADIOWAVE_WAVE
#define RADIOWAVE_WAVE 32
#endif
#ifndef RADIOWAVE_CODE_OBJECT_VERSION
#define RADIOWAVE_CODE_OBJECT_VERSION 5
#endif

#if defined(RADIOWAVE_HIP_HEADERS) || defined(__CLANG_HIP_RUNTIME_WRAPPER_INCLUDED__)
#include <hip/hip_runtime.h>
#else

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define RADIOWAVE_DEVICE static __device__ __forceinline__

typedef decltype(sizeof(0)) size_t;

#define RADIOWAVE_VECTOR(type, count) typedef type type##count __attribute__((ext_vector_type(count)))
RADIOWAVE_VECTOR(int, 2);
RADIOWAVE_VECTOR(int, 4);
RADIOWAVE_VECTOR(float, 2);
RADIOWAVE_VECTOR(float, 4);
#undef RADIOWAVE_VECTOR
typedef unsigned uint2 __attribute__((ext_vector_type(2)));
typedef unsigned uint4 __attribute__((ext_vector_type(4)));
RADIOWAVE_DEVICE float2 make_float2(float x, float y) { return float2{x, y}; }
RADIOWAVE_DEVICE float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }
RADIOWAVE_DEVICE int4 make_int4(int x, int y, int z, int w) { return int4{x, y, z, w}; }

// threadIdx, blockIdx, blockDim, gridDim: read where they are used. Sizes come from the hidden arguments: block counts
// at bytes 0, 4, 8 and block sizes at 12, 14, 16; code object version 4 has neither, and asks the dispatch packet.
#if RADIOWAVE_CODE_OBJECT_VERSION >= 5
#define RADIOWAVE_HIDDEN(type, offset) \
  (*(const __attribute__((address_space(4))) type *)((const __attribute__((address_space(4))) char *) \
                                                         __builtin_amdgcn_implicitarg_ptr() + (offset)))
#define RADIOWAVE_BLOCK_DIM(axis, number) RADIOWAVE_HIDDEN(unsigned short, 12 + 2 * (number))
#define RADIOWAVE_GRID_DIM(axis, number) RADIOWAVE_HIDDEN(unsigned, 4 * (number))
#else
#define RADIOWAVE_BLOCK_DIM(axis, number) __builtin_amdgcn_workgroup_size_##axis()
#define RADIOWAVE_GRID_DIM(axis, number) \
  ((__builtin_amdgcn_grid_size_##axis() + RADIOWAVE_BLOCK_DIM(axis, number) - 1) / RADIOWAVE_BLOCK_DIM(axis, number))
#endif
#define RADIOWAVE_COORDINATE(axis, value) \
  __declspec(property(get = get_##axis)) unsigned axis; \
  RADIOWAVE_DEVICE unsigned get_##axis() { return (value); }
#define RADIOWAVE_COORDINATES(name, x_value, y_value, z_value) \
  struct radiowave_##name { \
    RADIOWAVE_COORDINATE(x, x_value) \
    RADIOWAVE_COORDINATE(y, y_value) \
    RADIOWAVE_COORDINATE(z, z_value) \
  }; \
  extern const __device__ __attribute__((weak)) radiowave_##name name
RADIOWAVE_COORDINATES(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                      __builtin_amdgcn_workitem_id_z());
RADIOWAVE_COORDINATES(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                      __builtin_amdgcn_workgroup_id_z());
RADIOWAVE_COORDINATES(blockDim, RADIOWAVE_BLOCK_DIM(x, 0), RADIOWAVE_BLOCK_DIM(y, 1), RADIOWAVE_BLOCK_DIM(z, 2));
RADIOWAVE_COORDINATES(gridDim, RADIOWAVE_GRID_DIM(x, 0), RADIOWAVE_GRID_DIM(y, 1), RADIOWAVE_GRID_DIM(z, 2));

static constexpr int warpSize = RADIOWAVE_WAVE;

RADIOWAVE_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
RADIOWAVE_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
RADIOWAVE_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

RADIOWAVE_DEVICE int atomicAdd(int *p, int v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
RADIOWAVE_DEVICE unsigned atomicAdd(unsigned *p, unsigned v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
RADIOWAVE_DEVICE float atomicAdd(float *p, float v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Those of C's functions that LLVM makes of instructions alone.
RADIOWAVE_DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RADIOWAVE_DEVICE float fabsf(float x) { return __builtin_fabsf(x); }
RADIOWAVE_DEVICE float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
RADIOWAVE_DEVICE float fminf(float x, float y) { return __builtin_fminf(x, y); }
RADIOWAVE_DEVICE float floorf(float x) { return __builtin_floorf(x); }
RADIOWAVE_DEVICE float ceilf(float x) { return __builtin_ceilf(x); }
RADIOWAVE_DEVICE float rintf(float x) { return __builtin_rintf(x); }
RADIOWAVE_DEVICE float sqrtf(float x) { return __builtin_sqrtf(x); }
RADIOWAVE_DEVICE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
RADIOWAVE_DEVICE float expf(float x) { return __builtin_expf(x); }
RADIOWAVE_DEVICE float exp2f(float x) { return __builtin_exp2f(x); }
RADIOWAVE_DEVICE float logf(float x) { return __builtin_logf(x); }
RADIOWAVE_DEVICE float log2f(float x) { return __builtin_log2f(x); }

// The lane of this work-item in its wave.
RADIOWAVE_DEVICE int __lane_id() {
  int low = __builtin_amdgcn_mbcnt_lo(~0u, 0);
  return RADIOWAVE_WAVE == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}

// The value that lane `from` of the wave has. ds_bpermute_b32 stays inside 32 lanes on RDNA1 to RDNA3.
RADIOWAVE_DEVICE int __radiowave_from_lane(int value, int from) {
#if RADIOWAVE_WAVE == 32 || defined(__GFX12__)
  return __builtin_amdgcn_ds_bpermute(from << 2, value);
#elif defined(__GFX11__)
  int other = __builtin_amdgcn_permlane64(value);
  int near = __builtin_amdgcn_ds_bpermute(from << 2, value), far = __builtin_amdgcn_ds_bpermute(from << 2, other);
  return ((from ^ __lane_id()) & 32) ? far : near;
#else
  for (;;) {  // one turn for each lane that is asked for
    int asked = __builtin_amdgcn_readfirstlane(from);
    if (asked == from) return __builtin_amdgcn_readlane(value, asked);
  }
#endif
}

#define RADIOWAVE_SHUFFLES(type) \
  RADIOWAVE_DEVICE type __shfl(type value, int lane, int width = warpSize) { \
    int from = (lane & (width - 1)) | (__lane_id() & -width); \
    return __builtin_bit_cast(type, __radiowave_from_lane(__builtin_bit_cast(int, value), from)); \
  } \
  RADIOWAVE_DEVICE type __shfl_xor(type value, int mask, int width = warpSize) { \
    int self = __lane_id(), from = self ^ mask; \
    from = (from & -width) > (self & -width) ? self : from; \
    return __builtin_bit_cast(type, __radiowave_from_lane(__builtin_bit_cast(int, value), from)); \
  } \
  RADIOWAVE_DEVICE type __shfl_down(type value, unsigned delta, int width = warpSize) { \
    int self = __lane_id(), from = self + (int)delta; \
    from = (self & (width - 1)) + (int)delta >= width ? self : from; \
    return __builtin_bit_cast(type, __radiowave_from_lane(__builtin_bit_cast(int, value), from)); \
  } \
  RADIOWAVE_DEVICE type __shfl_up(type value, unsigned delta, int width = warpSize) { \
    int self = __lane_id(), from = self - (int)delta; \
    from = from < (self & -width) ? self : from; \
    return __builtin_bit_cast(type, __radiowave_from_lane(__builtin_bit_cast(int, value), from)); \
  }
RADIOWAVE_SHUFFLES(int)
RADIOWAVE_SHUFFLES(unsigned)
RADIOWAVE_SHUFFLES(float)
#undef RADIOWAVE_SHUFFLES

#endif  // RADIOWAVE_HIP_HEADERS

namespace radiowave {

#define RADIOWAVE_INLINE static __attribute__((device)) inline __attribute__((always_inline))

typedef unsigned u32x4 __attribute__((ext_vector_type(4)));

// A load that goes through the vector cache even where its address is the same for all lanes: LLVM makes no scalar load
// of an atomic one, and at this scope it adds no cache bits. For memory that an earlier kernel of a plan writes.
template <typename T>
RADIOWAVE_INLINE T vmem_load(const T *p) {
  static_assert(sizeof(T) <= 8, "one element of at most 8 bytes");
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WAVEFRONT);
}

// A value that the optimiser knows nothing about, in a vector register or (uniform values only) in a scalar one.
template <typename T>
RADIOWAVE_INLINE T opaque(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "registers hold 4 or 8 bytes");
  __asm__ volatile("" : "+v"(value));
  return value;
}
template <typename T>
RADIOWAVE_INLINE T opaque_uniform(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "registers hold 4 or 8 bytes");
  __asm__ volatile("" : "+s"(value));
  return value;
}

// A raw buffer: accesses past `nbytes` load 0 and store nothing. Word 3 of the descriptor: FORMAT 20 (32_UINT; 0 would
// be no buffer), OOB_SELECT 3 (raw), and on RDNA1 and RDNA2 RESOURCE_LEVEL.
#ifdef __GFX10__
#define RADIOWAVE_BUFFER_WORD3 0x31014000
#else
#define RADIOWAVE_BUFFER_WORD3 0x30014000
#endif
typedef __amdgpu_buffer_rsrc_t buffer;
RADIOWAVE_INLINE buffer make_buffer(const void *start, unsigned nbytes) {
  return __builtin_amdgcn_make_buffer_rsrc((void *)start, 0, nbytes, RADIOWAVE_BUFFER_WORD3);
}

// 32 or 128 bits at `offset` bytes, which may differ between lanes, plus `base` bytes, the same for all of them.
RADIOWAVE_INLINE unsigned buffer_load_b32(buffer from, int offset, int base = 0) {
  return __builtin_amdgcn_raw_buffer_load_b32(from, offset, base, 0);
}
RADIOWAVE_INLINE u32x4 buffer_load_b128(buffer from, int offset, int base = 0) {
  return __builtin_amdgcn_raw_buffer_load_b128(from, offset, base, 0);
}
RADIOWAVE_INLINE float buffer_load_f32(buffer from, int offset, int base = 0) {
  return __builtin_bit_cast(float, buffer_load_b32(from, offset, base));
}
RADIOWAVE_INLINE void buffer_store_b32(unsigned value, buffer to, int offset, int base = 0) {
  __builtin_amdgcn_raw_buffer_store_b32(value, to, offset, base, 0);
}
RADIOWAVE_INLINE void buffer_store_b128(u32x4 value, buffer to, int offset, int base = 0) {
  __builtin_amdgcn_raw_buffer_store_b128(value, to, offset, base, 0);
}
RADIOWAVE_INLINE void buffer_store_f32(float value, buffer to, int offset, int base = 0) {
  buffer_store_b32(__builtin_bit_cast(unsigned, value), to, offset, base);
}

}  // namespace radiowave
