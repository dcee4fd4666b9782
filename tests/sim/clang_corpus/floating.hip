// SPDX-License-Identifier: Apache-2.0
// f16, f32 and f64: arithmetic, rounding, minima, comparisons, classes, division, square roots. Oracles: floating.py.

KERNEL f32_arithmetic(f32 W out, f32 R a, f32 R b, f32 R c) {
  ID;
  f32 x = a[i], y = b[i], z = c[i];
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = __builtin_fmaf(x, y, z);
  OUT(4) = x * y + z;
  OUT(5) = -x;
  OUT(6) = __builtin_fabsf(x);
  OUT(7) = __builtin_fmaf(-x, y, __builtin_fabsf(z));
  OUT(8) = __builtin_fmaf(x, 3.25f, z);
  OUT(9) = __builtin_fmaf(x, y, 0.3f);
  OUT(10) = x * 0.5f;
  OUT(11) = __builtin_copysignf(x, y);
}

KERNEL f32_rounding(f32 W out, f32 R a, i32 R b) {
  ID;
  f32 x = a[i];
  i32 e;
  OUT(0) = __builtin_floorf(x);
  OUT(1) = __builtin_ceilf(x);
  OUT(2) = __builtin_truncf(x);
  OUT(3) = __builtin_rintf(x);
  OUT(4) = __builtin_roundf(x);
  OUT(5) = __builtin_ldexpf(x, b[i] % 400);
  OUT(6) = __builtin_amdgcn_frexp_mantf(x);
  OUT(7) = (f32)__builtin_amdgcn_frexp_expf(x);
}

KERNEL f32_minmax(f32 W out, f32 R a, f32 R b, f32 R c) {
  ID;
  f32 x = a[i], y = b[i], z = c[i];
  OUT(0) = __builtin_fminf(x, y);
  OUT(1) = __builtin_fmaxf(x, y);
  OUT(2) = x < y ? x : y;
  OUT(3) = x > y ? x : y;
  OUT(4) = __builtin_fmaxf(__builtin_fmaxf(x, y), z);
  OUT(5) = __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f);
  OUT(6) = __builtin_fminf(__builtin_fmaxf(x, -2.5f), 7.0f);
  OUT(7) = __builtin_fminf(__builtin_fmaxf(x + y, 0.0f), 1.0f);
}

KERNEL f32_compare(u32 W out, f32 R a, f32 R b) {
  ID;
  f32 x = a[i], y = b[i];
  OUT(0) = (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5;
  OUT(1) = !(x < y) | !(x <= y) << 1 | !(x > y) << 2 | !(x >= y) << 3 | __builtin_isunordered(x, y) << 4 |
           !__builtin_isunordered(x, y) << 5 | __builtin_islessgreater(x, y) << 6;
  OUT(2) = __builtin_isnan(x) | __builtin_isinf(x) << 1 | __builtin_isfinite(x) << 2 | __builtin_isnormal(x) << 3;
  OUT(3) = __builtin_amdgcn_classf(x, 0x001) | __builtin_amdgcn_classf(x, 0x002) << 1 |
           __builtin_amdgcn_classf(x, 0x004) << 2 | __builtin_amdgcn_classf(x, 0x010) << 3 |
           __builtin_amdgcn_classf(x, 0x020) << 4 | __builtin_amdgcn_classf(x, 0x040) << 5 |
           __builtin_amdgcn_classf(x, 0x080) << 6 | __builtin_amdgcn_classf(x, 0x200) << 7;
  OUT(4) = x < y;
  OUT(5) = !(x > y);
  OUT(6) = x == y;
  OUT(7) = x >= y;
  OUT(8) = !(x == y);
}

KERNEL f32_division(f32 W out, f32 R a, f32 R b) {
  ID;
  OUT(0) = a[i] / b[i];
  OUT(1) = 1.0f / a[i];
  OUT(2) = __builtin_sqrtf(a[i]);
  OUT(3) = a[i] / 3.0f;
}

KERNEL f32_approximate(f32 W out, f32 R a) {
  ID;
  f32 x = a[i];
  OUT(0) = __builtin_amdgcn_rcpf(x);
  OUT(1) = __builtin_amdgcn_rsqf(x);
  OUT(2) = __builtin_amdgcn_sqrtf(x);
  OUT(3) = __builtin_amdgcn_exp2f(x);
  OUT(4) = __builtin_amdgcn_logf(x);
  OUT(5) = __builtin_amdgcn_sinf(x);
  OUT(6) = __builtin_amdgcn_cosf(x);
  OUT(7) = __builtin_amdgcn_fractf(x);
}

KERNEL f64_arithmetic(f64 W out, f64 R a, f64 R b, f64 R c) {
  ID;
  f64 x = a[i], y = b[i], z = c[i];
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = __builtin_fma(x, y, z);
  OUT(4) = x * 1.5 + 2.0;
  OUT(5) = __builtin_fmin(x, y);
  OUT(6) = __builtin_fmax(-x, y);
  OUT(7) = __builtin_floor(x);
  OUT(8) = __builtin_ceil(x);
  OUT(9) = __builtin_trunc(x);
  OUT(10) = __builtin_rint(x);
  OUT(11) = __builtin_ldexp(x, 7);
  OUT(12) = __builtin_fabs(x) - 0.1;
}

KERNEL f64_division(f64 W out, f64 R a, f64 R b) {
  ID;
  OUT(0) = a[i] / b[i];
  OUT(1) = __builtin_sqrt(a[i]);
}

KERNEL f64_compare(u32 W out, f64 R a, f64 R b) {
  ID;
  f64 x = a[i], y = b[i];
  OUT(0) = (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5;
  OUT(1) = !(x < y) | !(x <= y) << 1 | !(x > y) << 2 | !(x >= y) << 3 | __builtin_isunordered(x, y) << 4;
  OUT(2) = __builtin_isnan(x) | __builtin_isinf(x) << 1 | __builtin_isnormal(x) << 2;
  OUT(3) = x <= y;
}

KERNEL f16_arithmetic(f16 W out, f16 R a, f16 R b, f16 R c) {
  ID;
  f16 x = a[i], y = b[i], z = c[i];
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = __builtin_fmaf16(x, y, z);
  OUT(4) = __builtin_fminf16(x, y);
  OUT(5) = __builtin_fmaxf16(x, y);
  OUT(6) = x / y;
  OUT(7) = __builtin_sqrtf16(x);
  OUT(8) = __builtin_floorf16(x);
  OUT(9) = __builtin_rintf16(x);
  OUT(10) = x < y ? z : x;
  OUT(11) = __builtin_fabsf16(x) * (f16)2.0;
}

KERNEL f16_mixed(f32 W out, f16 R a, f16 R b, f32 R c) {
  ID;
  OUT(0) = __builtin_fmaf((f32)a[i], (f32)b[i], c[i]);
  OUT(1) = __builtin_fmaf(-(f32)a[i], c[i], (f32)b[i]);
  OUT(2) = (f32)(f16)__builtin_fmaf((f32)a[i], (f32)b[i], c[i]);
}

// Uniform floats: gfx11.5 and gfx12 have scalar instructions for them.
KERNEL uniform_floats(f32 W out, f32 R a, f32 R b) {
  ID;
  f32 x = a[GROUP], y = b[GROUP];
  OUT(0) = x + y;
  OUT(1) = x * y;
  OUT(2) = x - 1.5f;
  OUT(3) = __builtin_fmaf(x, y, 2.25f);
  OUT(4) = x < y ? x : y;
  OUT(5) = __builtin_ceilf(x);
  OUT(6) = (f32)(i32)__builtin_truncf(__builtin_fminf(__builtin_fmaxf(x, -1000.0f), 1000.0f));
  OUT(7) = __builtin_rintf(y);
  OUT(8) = (f32)(f16)x;
}
