# SPDX-License-Identifier: Apache-2.0
"""HIP kernels with the verdict that each must get from the certifier. Holds text and verdicts alone.

The cases are those of the certifier's requirements: what LLVM makes of uniform reads, pointers from everywhere, calls.
"""

from __future__ import annotations

PRELUDE = """
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define KERNEL extern "C" __global__ void
#define RO(T) const T *__restrict__
#define CONSTANT(T) const __attribute__((address_space(4))) T *
typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned v4 __attribute__((ext_vector_type(4)));
#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
static __device__ u32 tid() { return GROUP * 256 + LANE; }
static __device__ void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  __builtin_amdgcn_s_barrier();
}
"""

# Name: (kernarg offsets of the arguments that scalar loads go through, None for a kernel that may read anything by
# scalar loads; source). No offsets: all mutable reads are vector loads.
KERNELS: dict[str, tuple[tuple[int, ...] | None, str]] = {
    "vector_add": ((), "(RO(float) a, RO(float) b, float *c) { c[tid()] = a[tid()] + b[tid()]; }"),
    "saxpy": ((), "(RO(float) x, float *y, float a, int n) { if (tid() < n) y[tid()] += a * x[tid()]; }"),
    "store_then_read": ((), "(int *x, int *y, int n) { y[tid()] = 1; y[tid() + 1] = x[n]; }"),
    "volatile_read": ((), "(volatile int *x, int *y, int n) { y[tid()] = x[n]; }"),
    "relaxed_read": (
        (),
        (
            "(int *x, int *y, int n)"
            "{ y[tid()] = __hip_atomic_load(x + n, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WAVEFRONT); }"
        ),
    ),
    "buffer_read": (
        (),
        (
            "(int *x, int *y, int n) {"
            "  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(x, 0, 1024, RSRC_WORD3);"
            "  y[tid()] = __builtin_amdgcn_raw_buffer_load_b32(r, n * 4, 0, 0); }"
        ),
    ),
    "lds": (
        (),
        "(RO(float) x, float *y) { __shared__ float s[256]; s[LANE] = x[tid()]; barrier(); y[tid()] = s[255 - LANE]; }",
    ),
    "scratch": (
        (),
        (
            "(RO(int) x, int *y, int n) { int v[32]; for (int i = 0; i < 32; i++) v[i] = x[tid() + i];"
            "  for (int i = 0; i < n; i++) v[(i * 7) & 31] += i; y[tid()] = v[n & 31]; }"
        ),
    ),
    "call": ((), "(RO(int) x, int *y) { y[tid()] = pick(x, tid()); }"),
    "array_by_value": ((), "(Table s, int *y) { y[tid()] = s.v[GROUP & 63]; }"),
    "group_size": (
        (),
        "(RO(int) x, int *y) { int i = GROUP * __builtin_amdgcn_workgroup_size_x() + LANE; y[i] = x[i]; }",
    ),
    "many_arguments": (
        (),
        (
            "(int *a, int *b, int *c, int *d, int *e, int *f, int *g, int *h, int *i, int *j, int k, int l) {"
            "  u32 t = tid(); a[t] = b[t] + c[t] + d[t] + e[t] + f[t] + g[t] + h[t] + i[t] + j[t] + k * l; }"
        ),
    ),
    "matmul": (
        (),
        (
            "(RO(float) a, RO(float) b, float *c, int n) { __shared__ float s[16][16], t[16][16]; float sum = 0;"
            "  u32 x = LANE & 15, y = LANE >> 4;"
            "  for (int k = 0; k < n; k += 16) { s[y][x] = a[(GROUP * 16 + y) * n + k + x];"
            "    t[y][x] = b[(k + y) * n + x];"
            "    barrier(); for (int i = 0; i < 16; i++) sum += s[y][i] * t[i][x]; barrier(); }"
            "  c[(GROUP * 16 + y) * n + x] = sum; }"
        ),
    ),
    "many_ways": (
        (),
        (
            "(RO(int) x, int *y, int n) { int v = x[tid()]; switch (n) { case 0: v += 3; break; case 1: v *= 5; break;"
            "  case 2: v ^= 77; break; case 3: v = -v; break; case 4: v >>= 3; break; case 5: v = v * v; break;"
            "  default: v = 0; } y[tid()] = v; }"
        ),
    ),
    "constant_table": ((), "(int *y, int n) { y[tid()] = primes[n & 7]; }"),
    "atomic_counter": (
        (),
        "(u32 *c, u32 *y) { y[__hip_atomic_fetch_add(c, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)] = LANE; }",
    ),
    "gather": ((), "(RO(int) index, RO(int) x, int *y) { y[tid()] = x[index[tid()]]; }"),
    "lane_pointer": ((), "(RO(int) a, RO(int) b, int *y) { y[tid()] = (LANE & 1 ? a : b)[3]; }"),
    "uniform_read": ((0,), "(RO(int) x, int *y, int n) { y[tid()] = x[n]; }"),
    "plain_uniform_read": ((0,), "(int *x, int *y, int n) { y[tid()] = x[n]; }"),
    "nontemporal_read": ((0,), "(RO(int) x, int *y, int n) { y[tid()] = __builtin_nontemporal_load(x + n); }"),
    "uniform_loop": (
        (0,),
        (
            "(RO(int) x, int *y, int n) { int s = 0;"
            '  _Pragma("unroll 1") for (int i = 0; i < n; i++) s += x[i] * i; y[tid()] = s; }'
        ),
    ),
    "early_end": ((8,), "(int *y, RO(int) x, int n) { if (n == 7) return; y[tid()] = x[n]; }"),
    "two_steps": ((0, 8), "(RO(int) index, RO(int) x, int *y, int n) { y[tid()] = x[index[n]]; }"),
    "selected_pointer": ((0, 8), "(RO(int) a, RO(int) b, int *y, int n) { y[tid()] = (n > 3 ? a : b)[n & 7]; }"),
    "row_of_matrix": ((0,), "(RO(float) x, float *y, u64 row, int n) { y[tid()] = x[row * 4096 + n]; }"),
    "pointer_table": (None, "(RO(GlobalRow) t, int *y, int n) { y[tid()] = t[n].row[n + 1]; }"),
    "device_variable": (None, "(int *y, int n) { y[tid()] = counter[n & 15]; counter[tid() & 15] = n; }"),
    "dispatch_packet": (
        None,
        "(u32 *y) { y[tid()] = ((CONSTANT(u32))__builtin_amdgcn_dispatch_ptr())[3]; }",
    ),
    "indirect_call": (None, "(RO(int) x, int *y, int (*f)(const int *, u32)) { y[tid()] = f(x, tid()); }"),
    "lane_to_uniform": (
        None,
        (
            "(RO(int) a, RO(int) b, int *y) { u64 v = (u64)(LANE & 1 ? a : b);"
            "  u64 low = __builtin_amdgcn_readfirstlane((u32)v), high = __builtin_amdgcn_readfirstlane((u32)(v >> 32));"
            "  y[tid()] = ((CONSTANT(int))(high << 32 | (low & 0xffffffff)))[7]; }"
        ),
    ),
    "integer_pointer": (None, "(u64 address, int *y, int n) { y[tid()] = ((CONSTANT(int))address)[n]; }"),
}

TYPES = """
struct Table { int v[64]; };
struct GlobalRow { CONSTANT(int) row; };
__device__ int counter[16];
static __constant__ const int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
static __device__ __attribute__((noinline)) int pick(const int *p, u32 i) { return p[i] * 3 + p[i + 1]; }
"""


def source(target: str) -> str:
    """All kernels as one translation unit."""
    # Word 3 of a buffer resource: RDNA1 ISA to RDNA4 ISA, "Buffer Resource Descriptor".
    word = "0x31016fac" if target.startswith("gfx10") else "0x31004000"
    kernels = "\n".join(f"KERNEL {name}{text}" for name, (_, text) in KERNELS.items())
    return f"{PRELUDE}#define RSRC_WORD3 {word}\n{TYPES}{kernels}\n"
