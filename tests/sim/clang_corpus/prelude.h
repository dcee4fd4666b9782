// SPDX-License-Identifier: Apache-2.0
// What the corpus needs of HIP, without HIP's headers: 512 work-items in workgroups of 128, one output, up to three
// inputs. OUT(k) is the k-th result of this work-item; results stand in planes of 512.
// a * b + c is rounded twice unless a kernel says fma.
#pragma clang fp contract(off)

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long u64;
typedef long i64;
typedef unsigned __int128 u128;
typedef _Float16 f16;
typedef float f32;
typedef double f64;
typedef f16 f16x2 __attribute__((ext_vector_type(2)));
typedef i16 i16x2 __attribute__((ext_vector_type(2)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x3 __attribute__((ext_vector_type(3)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(128, 128))) void
#define DEVICE static __attribute__((device))
#define SHARED __attribute__((shared))
#define R const *__restrict__
#define W *__restrict__
#define LANE ((i32)__builtin_amdgcn_workitem_id_x())
#define GROUP ((i32)__builtin_amdgcn_workgroup_id_x())
#define ID i32 i = GROUP * 128 + LANE
#define OUT(k) out[(k) * 512 + i]
#define BITS(type, ...) __builtin_bit_cast(type, __VA_ARGS__)
#define BARRIER                                                                                                        \
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                               \
  __builtin_amdgcn_s_barrier();                                                                                        \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
