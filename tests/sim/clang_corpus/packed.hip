// SPDX-License-Identifier: Apache-2.0
// Two 16-bit values in one register, and dot products. Oracles: packed.py.

KERNEL packed_f16(f16x2 W out, f16x2 R a, f16x2 R b, f16x2 R c) {
  ID;
  f16x2 x = a[i], y = b[i], z = c[i];
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = __builtin_elementwise_fma(x, y, z);
  OUT(4) = __builtin_elementwise_min(x, y);
  OUT(5) = __builtin_elementwise_max(x, y);
  OUT(6) = x.yx + y;
  OUT(7) = x * y.xx;
  OUT(8) = __builtin_elementwise_fma(-x, y.yy, z.yx);
  OUT(9) = x + (f16)1.5;
}

KERNEL packed_i16(u16x2 W out, u16x2 R a, u16x2 R b, u16x2 R c) {
  ID;
  u16x2 x = a[i], y = b[i], z = c[i];
  i16x2 p = BITS(i16x2, x), q = BITS(i16x2, y);
  u16x2 n = z & (u16)15;
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = x * y + z;
  OUT(4) = x << n;
  OUT(5) = x >> n;
  OUT(6) = BITS(u16x2, p >> BITS(i16x2, n));
  OUT(7) = __builtin_elementwise_min(x, y);
  OUT(8) = __builtin_elementwise_max(x, y);
  OUT(9) = BITS(u16x2, __builtin_elementwise_min(p, q));
  OUT(10) = BITS(u16x2, __builtin_elementwise_max(p, q));
  OUT(11) = __builtin_elementwise_add_sat(x, y);
  OUT(12) = BITS(u16x2, __builtin_elementwise_sub_sat(p, q));
  OUT(13) = x.yx + y.xx;
  OUT(14) = x & (u16)0xff | y.yx;
}

#if __has_builtin(__builtin_amdgcn_udot4) && !defined(__gfx1010__)
#define UDOT4(a, b, c) __builtin_amdgcn_udot4(a, b, c, false)
#define UDOT8(a, b, c) __builtin_amdgcn_udot8(a, b, c, false)
#define FDOT2(a, b, c) __builtin_amdgcn_fdot2(a, b, c, false)
#else
DEVICE u32 UDOT4(u32 a, u32 b, u32 c) {
  for (u32 n = 0; n < 32; n += 8) c += (a >> n & 255) * (b >> n & 255);
  return c;
}
DEVICE u32 UDOT8(u32 a, u32 b, u32 c) {
  for (u32 n = 0; n < 32; n += 4) c += (a >> n & 15) * (b >> n & 15);
  return c;
}
DEVICE f32 FDOT2(f16x2 a, f16x2 b, f32 c) { return (f32)a.x * (f32)b.x + (f32)a.y * (f32)b.y + c; }
#endif
#if defined(__gfx1100__) || defined(__gfx1151__) || defined(__gfx1201__)
#define SDOT4(a, b, c) __builtin_amdgcn_sudot4(true, a, true, b, c, false)
#define SUDOT4(a, b, c) __builtin_amdgcn_sudot4(true, a, false, b, c, false)
#define SDOT8(a, b, c) __builtin_amdgcn_sudot8(true, a, true, b, c, false)
#elif defined(__gfx1030__)
#define SDOT4(a, b, c) __builtin_amdgcn_sdot4(a, b, c, false)
#define SDOT8(a, b, c) __builtin_amdgcn_sdot8(a, b, c, false)
#else
DEVICE i32 SDOT4(i32 a, i32 b, i32 c) {
  for (u32 n = 0; n < 32; n += 8) c += (i8)(a >> n) * (i8)(b >> n);
  return c;
}
DEVICE i32 SDOT8(i32 a, i32 b, i32 c) {
  for (u32 n = 0; n < 32; n += 4) c += (a << n >> 28) * (b << n >> 28);
  return c;
}
#endif
#ifndef SUDOT4
DEVICE i32 SUDOT4(i32 a, u32 b, i32 c) {
  for (u32 n = 0; n < 32; n += 8) c += (i8)(a >> n) * (i32)(b >> n & 255);
  return c;
}
#endif

KERNEL dot_integer(u32 W out, u32 R a, u32 R b, u32 R c) {
  ID;
  OUT(0) = UDOT4(a[i], b[i], c[i]);
  OUT(1) = SDOT4(a[i], b[i], c[i]);
  OUT(2) = SUDOT4(a[i], b[i], c[i]);
  OUT(3) = UDOT8(a[i], b[i], c[i]);
  OUT(4) = SDOT8(a[i], b[i], c[i]);
}

// Small integers in f16: every order of adding gives the same sum.
KERNEL dot_float(f32 W out, f16x2 R a, f16x2 R b, f32 R c) {
  ID;
  OUT(0) = FDOT2(a[i], b[i], c[i]);
}
