// SPDX-License-Identifier: Apache-2.0
// Conversions between integer and float types of every width. Oracles: conversions.py.

KERNEL to_integer(i32 W out, f32 R a, f64 R b) {
  ID;
  f32 x = a[i];
  f64 y = b[i];
  OUT(0) = (i32)x;
  OUT(1) = (i32)(u32)__builtin_fabsf(x);
  OUT(2) = (i32)y;
  OUT(3) = (i32)(u32)__builtin_fabs(y);
  OUT(4) = (i32)((i64)(x * 65536.0f) >> 8);
  OUT(5) = (i32)((u64)(__builtin_fabs(y) * 4096.0) >> 4);
  OUT(6) = (i16)(f16)(x * 0.00001f);
  OUT(7) = (i32)__builtin_floorf(x);
}

KERNEL from_integer(f32 W out, u32 R a, u64 R b) {
  ID;
  OUT(0) = (f32)a[i];
  OUT(1) = (f32)(i32)a[i];
  OUT(2) = (f32)b[i];
  OUT(3) = (f32)(i64)b[i];
  OUT(4) = (f32)(f64)(i32)a[i];
  OUT(5) = (f32)(a[i] & 255);
  OUT(6) = (f32)(a[i] >> 8 & 255);
  OUT(7) = (f32)(a[i] >> 16 & 255);
  OUT(8) = (f32)(a[i] >> 24);
  OUT(9) = (f32)(i16)a[i];
  OUT(10) = (f32)(f16)(i16)(a[i] & 0xfff);
}

KERNEL wide_from_integer(f64 W out, u32 R a, u64 R b) {
  ID;
  OUT(0) = (f64)a[i];
  OUT(1) = (f64)(i32)a[i];
  OUT(2) = (f64)b[i];
  OUT(3) = (f64)(i64)b[i];
}

KERNEL between_floats(f64 W out, f32 R a, f64 R b, f16 R c) {
  ID;
  OUT(0) = (f64)a[i];
  OUT(1) = (f64)(f32)b[i];
  OUT(2) = (f64)c[i];
  OUT(3) = (f64)(f32)(f16)a[i];
  OUT(4) = (f64)(f16)(f32)(b[i] * 0.25);
}

KERNEL packed_conversions(u32 W out, f32 R a, f32 R b) {
  ID;
  OUT(0) = BITS(u32, __builtin_amdgcn_cvt_pkrtz(a[i], b[i]));
  OUT(1) = BITS(u32, (f16x2){(f16)a[i], (f16)b[i]});
}

KERNEL extensions(u32 W out, u32 R a, i8 R b, u16 R c) {
  ID;
  OUT(0) = (i32)(i8)a[i];
  OUT(1) = (i32)(i16)a[i];
  OUT(2) = (u8)a[i] + (u32)(u16)(a[i] >> 8);
  OUT(3) = (i32)b[i] * 3;
  OUT(4) = (u32)c[i] << 4;
  OUT(5) = (u32)((i64)(i32)a[i] >> 36);
  OUT(6) = (u32)((u64)a[i] << 9 >> 32);
}
