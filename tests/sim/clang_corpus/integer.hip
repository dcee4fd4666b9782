// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, bits, carries, division, comparisons, and the same on uniform values. Oracles: integer.py.

KERNEL int_arithmetic(u32 W out, u32 R a, u32 R b, u32 R c) {
  ID;
  u32 x = a[i], y = b[i], z = c[i];
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = (u32)((u64)x * y >> 32);
  OUT(4) = (u32)((i64)(i32)x * (i32)y >> 32);
  OUT(5) = x * 7 + z;
  OUT(6) = x + y + z;
  OUT(7) = (x & 0xffffff) * (y & 0xffffff);
  OUT(8) = (x & 0xffffff) * (y & 0xffffff) + z;
  OUT(9) = ((i32)(x << 8) >> 8) * ((i32)(y << 8) >> 8);
  OUT(10) = -x;
  OUT(11) = x - 0x12345678;
}

KERNEL int_logic(u32 W out, u32 R a, u32 R b, u32 R c) {
  ID;
  u32 x = a[i], y = b[i], z = c[i];
  OUT(0) = x & y;
  OUT(1) = x | y;
  OUT(2) = x ^ y;
  OUT(3) = ~(x ^ y);
  OUT(4) = x & ~y;
  OUT(5) = (x & y) | (~x & z);
  OUT(6) = x ^ y ^ z;
  OUT(7) = x | y | z;
  OUT(8) = (x & y) | z;
  OUT(9) = ~x;
}

KERNEL int_shifts(u32 W out, u32 R a, u32 R b, u32 R c) {
  ID;
  u32 x = a[i], y = b[i], n = c[i] & 31;
  OUT(0) = x << n;
  OUT(1) = x >> n;
  OUT(2) = (i32)x >> n;
  OUT(3) = (x << 3) + y;
  OUT(4) = (x + y) << 5;
  OUT(5) = (x << 7) | y;
  OUT(6) = __builtin_amdgcn_alignbit(x, y, n);
  OUT(7) = __builtin_amdgcn_alignbyte(x, y, n & 3);
  OUT(8) = x << 13 | x >> 19;
  OUT(9) = (x << n) + y;
}

KERNEL int_bits(u32 W out, u32 R a, u32 R b, u32 R c) {
  ID;
  u32 x = a[i], y = b[i], n = c[i] & 31;
  OUT(0) = __builtin_popcount(x) + y;
  OUT(1) = x ? __builtin_clz(x) : 32;
  OUT(2) = x ? __builtin_ctz(x) : 32;
  OUT(3) = __builtin_bitreverse32(x);
  OUT(4) = __builtin_amdgcn_ubfe(x, n, y & 31);
  OUT(5) = __builtin_amdgcn_sbfe(x, n, y & 31);
  OUT(6) = __builtin_amdgcn_perm(x, y, 0x0c060105);
  OUT(7) = __builtin_bswap32(x);
  OUT(8) = __builtin_amdgcn_sad_u8(x, y, c[i]);
  OUT(9) = x >> 5 & 0x7ff;
  OUT(10) = (i32)(x << 9) >> 20;
  OUT(11) = __builtin_amdgcn_lerp(x, y, 0x01010101);
}

KERNEL int_minmax(u32 W out, u32 R a, u32 R b, u32 R c) {
  ID;
  u32 x = a[i], y = b[i], z = c[i];
  i32 p = x, q = y, r = z;
  OUT(0) = x < y ? x : y;
  OUT(1) = x > y ? x : y;
  OUT(2) = p < q ? p : q;
  OUT(3) = p > q ? p : q;
  OUT(4) = __builtin_elementwise_max(__builtin_elementwise_max(p, q), r);
  OUT(5) = __builtin_elementwise_min(__builtin_elementwise_min(x, y), z);
  OUT(6) = __builtin_elementwise_min(__builtin_elementwise_max(p, -100), 1000);
  OUT(7) = __builtin_elementwise_add_sat(x, y);
  OUT(8) = __builtin_elementwise_sub_sat(x, y);
  OUT(9) = __builtin_elementwise_add_sat(p, q);
  OUT(10) = __builtin_elementwise_sub_sat(p, q);
  OUT(11) = __builtin_elementwise_abs(p);
}

KERNEL int_narrow(u32 W out, u16 R a, i16 R b, u8 R c) {
  ID;
  u16 x = a[i];
  i16 y = b[i];
  u8 z = c[i];
  OUT(0) = (u16)(x + y);
  OUT(1) = (u16)(x - y);
  OUT(2) = (u16)(x * y);
  OUT(3) = (i32)(i16)(x * y + z);
  OUT(4) = (u16)(x << (z & 15));
  OUT(5) = x >> (z & 15);
  OUT(6) = (i32)(i16)(y >> (z & 15));
  OUT(7) = x < (u16)y ? x : (u16)y;
  OUT(8) = (i32)((i16)x > y ? (i16)x : y);
  OUT(9) = (i32)(i8)(z + x);
  OUT(10) = (u8)(z - y);
  OUT(11) = (x / (u16)(z | 1)) + (x % (u16)(z | 1));
}

KERNEL int_wide(u64 W out, u64 R a, u64 R b, u32 R c) {
  ID;
  u64 x = a[i], y = b[i];
  u32 n = c[i] & 63;
  OUT(0) = x + y;
  OUT(1) = x - y;
  OUT(2) = x * y;
  OUT(3) = x << n;
  OUT(4) = x >> n;
  OUT(5) = (i64)x >> n;
  OUT(6) = x & y;
  OUT(7) = x ^ ~y;
  OUT(8) = x < y ? x : y;
  OUT(9) = (i64)x > (i64)y ? x : y;
  OUT(10) = __builtin_popcountll(x);
  OUT(11) = x ? __builtin_clzll(x) : 64;
  OUT(12) = x ? __builtin_ctzll(x) : 64;
  OUT(13) = (u64)(u32)x * c[i] + y;
  OUT(14) = (i64)(i32)x * (i32)c[i] + y;
  OUT(15) = x << 1;
}

KERNEL int_carry(u64 W out, u64 R a, u64 R b, u64 R c) {
  ID;
  u64 x = a[i], y = b[i], z = c[i], sum;
  u128 p = (u128)x << 64 | y, q = (u128)z << 64 | x;
  u128 s = p + q, d = p - q, m = (u128)x * y;
  OUT(0) = (u64)s;
  OUT(1) = (u64)(s >> 64);
  OUT(2) = (u64)d;
  OUT(3) = (u64)(d >> 64);
  OUT(4) = (u64)m;
  OUT(5) = (u64)(m >> 64);
  OUT(6) = __builtin_add_overflow(x, y, &sum);
  OUT(7) = sum;
  OUT(8) = __builtin_sub_overflow((i64)x, (i64)y, (i64 *)&sum);
  OUT(9) = sum;
  u32 carry, low = __builtin_addc((u32)x, (u32)y, 0u, &carry);
  OUT(10) = (u64)__builtin_addc((u32)z, (u32)(x >> 32), carry, &carry) << 32 | low;
  OUT(11) = carry;
  u32 borrow, less = __builtin_subc((u32)x, (u32)y, 0u, &borrow);
  OUT(12) = (u64)__builtin_subc((u32)z, (u32)(x >> 32), borrow, &borrow) << 32 | less;
  OUT(13) = borrow;
  OUT(14) = __builtin_mul_overflow((u32)x, (u32)y, (u32 *)&sum);
}

KERNEL int_division(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 x = a[i], y = b[i] | 1;
  i32 p = x, q = b[i] == 0xffffffffu ? 3 : (i32)y;
  OUT(0) = x / y;
  OUT(1) = x % y;
  OUT(2) = p / q;
  OUT(3) = p % q;
  OUT(4) = x / 7;
  OUT(5) = p % 1000;
  OUT(6) = x / (y >> 20 | 1);
  OUT(7) = p / (q >> 24 | 1);
}

KERNEL int_wide_division(u64 W out, u64 R a, u64 R b) {
  ID;
  u64 x = a[i], y = b[i] | 1;
  i64 p = x, q = (i64)y >> 9 | 1;
  q = q == -1 ? 5 : q;
  OUT(0) = x / y;
  OUT(1) = x % y;
  OUT(2) = p / q;
  OUT(3) = p % q;
  OUT(4) = x / 1000003;
  OUT(5) = x / (y >> 40 | 1);
}

KERNEL int_compare(u32 W out, u32 R a, u32 R b, u64 R c) {
  ID;
  u32 x = a[i], y = b[i];
  i32 p = x, q = y;
  u64 v = c[i], w = c[i ^ 1];
  i64 s = v, t = w;
  u16 g = x, h = y;
  i16 k = x, l = y;
  OUT(0) = (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5;
  OUT(1) = (p < q) | (p <= q) << 1 | (p > q) << 2 | (p >= q) << 3 | (p == -7) << 4 | (p > 63) << 5;
  OUT(2) = (v == w) | (v != w) << 1 | (v < w) << 2 | (v <= w) << 3 | (v > w) << 4 | (v >= w) << 5;
  OUT(3) = (s < t) | (s <= t) << 1 | (s > t) << 2 | (s >= t) << 3;
  OUT(4) = (g == h) | (g != h) << 1 | (g < h) << 2 | (g <= h) << 3 | (g > h) << 4 | (g >= h) << 5;
  OUT(5) = (k == l) | (k != l) << 1 | (k < l) << 2 | (k <= l) << 3 | (k > l) << 4 | (k >= l) << 5;
  OUT(6) = (x < y && p > q) ? x : y;
  OUT(7) = (x < y) != (p < q) ? x + 1 : y - 1;
  OUT(8) = x == y;
  OUT(9) = x != y;
  OUT(10) = x <= y;
  OUT(11) = p >= q;
  OUT(12) = s <= t;
  OUT(13) = v >= w;
}

// Values that are the same in all lanes: the scalar unit's work.
KERNEL uniform_arithmetic(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 x = a[GROUP], y = b[GROUP], n = b[GROUP + 4] & 31, r = 0;
  i32 p = x, q = y;
  r ^= x + y;
  r = r * 31 + (x - y);
  r = r * 31 + x * y;
  r = r * 31 + (u32)((u64)x * y >> 32);
  r = r * 31 + (u32)((i64)p * q >> 32);
  r = r * 31 + (x & ~y);
  r = r * 31 + (x | ~y);
  r = r * 31 + (~(x & y) ^ (x << 4));
  r = r * 31 + (~(x | y) ^ (x + (y << 3)));
  r = r * 31 + (x << n) + (x >> n) + (p >> n);
  r = r * 31 + __builtin_popcount(x) + __builtin_bitreverse32(y);
  r = r * 31 + (x ? __builtin_clz(x) : 32) + (y ? __builtin_ctz(y) : 32);
  r = r * 31 + (p < q ? p : q) + (p > q ? p : q) + (x < y ? x : y) + (x > y ? x : y);
  r = r * 31 + __builtin_elementwise_abs(p) + (i8)x + (i16)y;
  r = r * 31 + (x >> 7 & 0x1ff) + ((i32)(y << 3) >> 15);
  r = r * 31 + ((x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (p < q) << 4 | (p >= 40) << 5);
  r = r * 31 + (x >= 0x80000000u) + (q == 12345 ? x : y) + (p > -5000);
  r = r * 31 + __builtin_elementwise_add_sat(x, y);
  r = r * 31 + (1u << n) + ((x & 0xffff) | y << 16) + ((x >> 16) | (y & 0xffff0000));
  OUT(0) = r;
}

KERNEL uniform_wide(u64 W out, u64 R a, u64 R b) {
  ID;
  u64 x = a[GROUP], y = b[GROUP], r = 0;
  u32 n = b[GROUP + 4] & 63;
  r = x + y;
  r = r * 31 + (x - y);
  r = r * 31 + (x & ~y) + (x ^ y) + (x | ~y);
  r = r * 31 + (x << n) + (x >> n) + (u64)((i64)x >> n);
  r = r * 31 + __builtin_popcountll(x) + __builtin_bitreverse64(y);
  r = r * 31 + (x ? __builtin_clzll(x) : 64) + (y ? __builtin_ctzll(y) : 64);
  r = r * 31 + (x == y ? 1 : 2) + (x < y ? x : y) + ((i64)x < (i64)y ? 3 : 4);
  r = r * 31 + (x >> 9 & 0x1ffffffff);
  r = r * 31 + x / (y >> 33 | 1) + (u32)x % ((u32)y | 1);
  OUT(0) = r + i;
}
