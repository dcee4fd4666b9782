// SPDX-License-Identifier: Apache-2.0
// Global memory, LDS, flat pointers, buffers, atomics, by-value arguments, constants. Oracles: memory.py.

KERNEL widths(u32 W out, u8 R a, u32 R b) {
  ID;
  const i8 *s = (const i8 *)a;
  OUT(0) = a[i * 4 + 1];
  OUT(1) = (i32)s[i * 4 + 2];
  OUT(2) = *(const u16 *)(a + i * 4 + 2);
  OUT(3) = (i32) * (const i16 *)(a + i * 4);
  u32x2 two = *(const u32x2 *)(b + (i & ~1));
  u32x4 four = *(const u32x4 *)(b + (i & ~3));
  OUT(4) = two.x ^ two.y;
  OUT(5) = four.x + four.y * 3 + four.z * 5 + four.w * 7;
  OUT(6) = b[i ^ 3];
}

KERNEL narrow_stores(u8 W out, u32 R a) {
  ID;
  u8 *place = out + i * 16;
  place[0] = a[i];
  place[1] = a[i] >> 16;
  *(u16 *)(place + 2) = a[i] >> 8;
  *(u16 *)(place + 4) = a[i] >> 16;
  *(u16 *)(place + 6) = a[i];
  *(u32x2 *)(place + 8) = (u32x2){a[i] + 1, a[i] ^ 5};
}

KERNEL wide_stores(u32x4 W out, u32x4 R a, u32x2 R b) {
  ID;
  u32x4 x = a[i];
  OUT(0) = x.wzyx;
  OUT(1) = (u32x4){b[i].x, x.y, b[i].y, x.w};
  u32 *three = (u32 *)(out + 1024) + i * 3;
  three[0] = x.x;
  three[1] = x.y + 1;
  three[2] = x.z + 2;
}

KERNEL half_loads(u32 W out, u16 R a, u16 R b) {
  ID;
  u16x2 both = {a[i], b[i]}, swapped = {b[511 - i], a[i]};
  OUT(0) = BITS(u32, both);
  OUT(1) = BITS(u32, swapped + both);
}

KERNEL strided(u32 W out, u32 R a, i32 R b) {
  ID;
  i64 at = (i64)b[i] % 256;
  OUT(0) = a[256 + at];
  OUT(1) = (a + 256)[at - 1 < 0 ? 0 : at - 1];
  OUT(2) = a[(i * 7 & 511)];
}

KERNEL lds_reverse(u32 W out, u32 R a) {
  ID;
  SHARED static u32 tile[128];
  tile[LANE] = a[i];
  BARRIER;
  out[i] = tile[127 - LANE];
}

KERNEL lds_widths(u32 W out, u32 R a) {
  ID;
  SHARED static u32x4 wide[128];
  SHARED static u8 bytes[256];
  SHARED static u16 words[256];
  u32 x = a[i];
  wide[LANE] = (u32x4){x, x + 1, x + 2, x ^ 3};
  bytes[LANE] = x;
  bytes[LANE + 128] = x >> 16;
  words[LANE] = x;
  words[LANE + 128] = x >> 16;
  BARRIER;
  u32 j = LANE ^ 65;
  OUT(0) = wide[j].x ^ wide[j].w;
  OUT(1) = bytes[j] + bytes[j + 128] * 256;
  OUT(2) = (i32)(i8)bytes[j];
  OUT(3) = words[j] | (u32)words[j + 128] << 16;
  OUT(4) = (i32)(i16)words[127 - LANE];
  OUT(5) = ((u32x2 *)wide)[LANE * 2 + 1].y;
}

KERNEL lds_pairs(u64 W out, u64 R a) {
  ID;
  SHARED static u64 tile[512];
  tile[LANE] = a[i];
  tile[LANE + 128] = a[i] + 1;
  tile[LANE + 256] = a[i] + 2;
  tile[LANE + 384] = ~a[i];
  BARRIER;
  u32 j = LANE * 3 & 127;
  OUT(0) = tile[j] ^ tile[j + 384];
  OUT(1) = tile[j + 128] + tile[j + 256];
  u32 *words = (u32 *)tile;
  OUT(2) = (u64)words[j] << 32 | words[j + 128];
}

KERNEL lds_transpose(u32 W out, u32 R a) {
  ID;
  SHARED static u32 tile[8][17];
  tile[LANE >> 4][LANE & 15] = a[i];
  BARRIER;
  out[i] = tile[LANE & 7][LANE >> 3];
}

KERNEL lds_atomics(u32 W out, u32 R a) {
  ID;
  SHARED static u32 bins[16];
  SHARED static u64 wide[2];
  if (LANE < 16) bins[LANE] = LANE == 2 || LANE == 4 ? 0xffffffffu : 0;
  if (LANE < 2) wide[LANE] = 0;
  BARRIER;
  u32 x = a[i];
  __atomic_fetch_add(&bins[0], x, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&bins[1], x, __ATOMIC_RELAXED);
  __atomic_fetch_and(&bins[2], x | 0xff00ff00, __ATOMIC_RELAXED);
  __atomic_fetch_or(&bins[3], x & 0x10101, __ATOMIC_RELAXED);
  __atomic_fetch_min(&bins[4], x, __ATOMIC_RELAXED);
  __atomic_fetch_max(&bins[5], x, __ATOMIC_RELAXED);
  __atomic_fetch_xor(&bins[6], x, __ATOMIC_RELAXED);
  __atomic_fetch_min((i32 *)&bins[7], (i32)x, __ATOMIC_RELAXED);
  __atomic_fetch_max((i32 *)&bins[8], (i32)x, __ATOMIC_RELAXED);
  __atomic_fetch_add(&bins[9 + (x & 3)], 1u, __ATOMIC_RELAXED);
  __atomic_fetch_add(&wide[0], (u64)x << 3, __ATOMIC_RELAXED);
  __atomic_fetch_max(&wide[1], (u64)x << 5, __ATOMIC_RELAXED);
  u32 seen, next;
  do {
    seen = __atomic_load_n(&bins[13], __ATOMIC_RELAXED);
    next = seen + 3;
  } while (!__atomic_compare_exchange_n(&bins[13], &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  u32 order = __atomic_fetch_add(&bins[14], 1u, __ATOMIC_RELAXED);
  __atomic_fetch_xor(&bins[15], order * order, __ATOMIC_RELAXED);
  BARRIER;
  if (LANE < 16) out[GROUP * 20 + LANE] = bins[LANE];
  if (LANE < 2) {
    out[GROUP * 20 + 16 + LANE * 2] = (u32)wide[LANE];
    out[GROUP * 20 + 17 + LANE * 2] = wide[LANE] >> 32;
  }
}

// Each work-item on its own place: what comes back is certain.
KERNEL atomics_return(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 *place = out + i;
  u32 x = a[i], y = b[i];
  OUT(1) = __atomic_exchange_n(place, x, __ATOMIC_RELAXED);
  OUT(2) = __atomic_fetch_add(place, y, __ATOMIC_RELAXED);
  OUT(3) = __atomic_fetch_sub(place, 77u, __ATOMIC_RELAXED);
  OUT(4) = __atomic_fetch_and(place, y, __ATOMIC_RELAXED);
  OUT(5) = __atomic_fetch_or(place, x << 4, __ATOMIC_RELAXED);
  OUT(6) = __atomic_fetch_xor(place, y >> 3, __ATOMIC_RELAXED);
  OUT(7) = __atomic_fetch_min(place, y, __ATOMIC_RELAXED);
  OUT(8) = __atomic_fetch_max(place, x, __ATOMIC_RELAXED);
  OUT(9) = __atomic_fetch_min((i32 *)place, (i32)y, __ATOMIC_RELAXED);
  OUT(10) = __atomic_fetch_max((i32 *)place, (i32)x, __ATOMIC_RELAXED);
  u32 expected = (x & 1) ? x : 12345;
  OUT(11) = __atomic_compare_exchange_n(place, &expected, 99u, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  OUT(12) = expected;
}

KERNEL atomics_wide(u64 W out, u64 R a, u64 R b) {
  ID;
  u64 *place = out + i;
  OUT(1) = __atomic_exchange_n(place, a[i], __ATOMIC_RELAXED);
  OUT(2) = __atomic_fetch_add(place, b[i], __ATOMIC_RELAXED);
  OUT(3) = __atomic_fetch_sub(place, 77ul, __ATOMIC_RELAXED);
  OUT(4) = __atomic_fetch_and(place, b[i], __ATOMIC_RELAXED);
  OUT(5) = __atomic_fetch_or(place, a[i] << 4, __ATOMIC_RELAXED);
  OUT(6) = __atomic_fetch_xor(place, b[i] >> 3, __ATOMIC_RELAXED);
  OUT(7) = __atomic_fetch_min(place, b[i], __ATOMIC_RELAXED);
  OUT(8) = __atomic_fetch_max((i64 *)place, (i64)a[i], __ATOMIC_RELAXED);
  u64 expected = (a[i] & 1) ? a[i] : 12345;
  OUT(9) = __atomic_compare_exchange_n(place, &expected, 99ul, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  OUT(10) = expected;
}

KERNEL atomics_shared(u32 W out, u32 R a) {
  ID;
  u32 x = a[i];
  __atomic_fetch_add(out, x, __ATOMIC_RELAXED);
  __atomic_fetch_max(out + 1, x, __ATOMIC_RELAXED);
  __atomic_fetch_min(out + 2, ~x, __ATOMIC_RELAXED);
  __atomic_fetch_or(out + 3, x & 0x0f0f0f0f, __ATOMIC_RELAXED);
  __atomic_fetch_xor(out + 4, x, __ATOMIC_RELAXED);
  __atomic_fetch_sub(out + 5, x >> 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(out + 6 + (x & 1), 1u, __ATOMIC_RELAXED);
}

KERNEL atomics_float(f32 W out, f32 R a, f32 R b) {
  ID;
  __atomic_exchange_n((u32 *)out + i, BITS(u32, a[i]), __ATOMIC_RELAXED);
  OUT(1) = __atomic_fetch_add(out + i, b[i], __ATOMIC_RELAXED);
}

// The pointer is into LDS or into a global array, and only the address says which.
KERNEL flat_pointers(u32 W out, u32 *a, u32 R b) {
  ID;
  SHARED static u32 tile[256];
  tile[LANE] = b[i];
  tile[LANE + 128] = b[i] * 3;
  BARRIER;
  u32 *p = b[i] & 1 ? &tile[LANE ^ 9] : a + i;
  asm volatile("" : "+v"(p));
  OUT(0) = *p;
  OUT(1) = ((u8 *)p)[1];
  p[b[i] & 1 ? 128 : 512] = OUT(0) ^ 0xabc;
  BARRIER;
  OUT(2) = b[i] & 1 ? tile[(LANE ^ 9) + 128] : a[i + 512];
}

DEVICE __attribute__((constant)) const u32 TABLE[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};

KERNEL constants(u32 W out, u32 R a) {
  ID;
  OUT(0) = TABLE[a[i] & 15];
  OUT(1) = TABLE[GROUP + 3] + a[i];
}

struct Payload {
  u64 wide;
  u32 words[3];
  u16 half;
  i8 byte;
  u8 last;
};

KERNEL by_value(u32 W out, Payload p, u32 R a, u8 small, i16 half) {
  ID;
  OUT(0) = a[i] + (u32)p.wide + (u32)(p.wide >> 32);
  OUT(1) = p.words[0] ^ p.words[1] ^ p.words[GROUP % 3];
  OUT(2) = p.half + p.byte + p.last;
  OUT(3) = small * half;
}

#define RSRC(p, bytes) __builtin_amdgcn_make_buffer_rsrc((void *)(p), 0, bytes, 0x31004000)

// A buffer of 400 dwords: reads outside give 0, writes outside are dropped.
KERNEL buffers(u32 W out, u32 R a) {
  ID;
  __amdgpu_buffer_rsrc_t from = RSRC(a, 1600), to = RSRC(out + 3584, 1600);
  OUT(0) = __builtin_amdgcn_raw_buffer_load_b32(from, i * 4, 0, 0);
  OUT(1) = __builtin_amdgcn_raw_buffer_load_b8(from, i * 4 + 1, 0, 0);
  OUT(2) = (i32)(i16)__builtin_amdgcn_raw_buffer_load_b16(from, i * 4, 2, 0);
  u32x2 two = __builtin_amdgcn_raw_buffer_load_b64(from, i * 4, 0, 0);
  u32x3 three = __builtin_amdgcn_raw_buffer_load_b96(from, i * 4, 4, 0);
  u32x4 four = __builtin_amdgcn_raw_buffer_load_b128(from, i * 4, 0, 0);
  OUT(3) = two.x + two.y * 3;
  OUT(4) = three.x + three.y * 3 + three.z * 5;
  OUT(5) = four.x + four.y * 3 + four.z * 5 + four.w * 7;
  OUT(6) = __builtin_amdgcn_raw_buffer_load_b32(from, 16, GROUP * 4, 0);
  __builtin_amdgcn_raw_buffer_store_b32(a[i] * 3, to, i * 4, 0, 0);
}

KERNEL buffer_stores(u8 W out, u32 R a) {
  ID;
  __amdgpu_buffer_rsrc_t to = RSRC(out, 512 * 32);
  u32 x = a[i];
  __builtin_amdgcn_raw_buffer_store_b8(x, to, i * 32, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b16(x >> 3, to, i * 32, 2, 0);
  __builtin_amdgcn_raw_buffer_store_b64((u32x2){x, ~x}, to, i * 32 + 8, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b128((u32x4){x, x + 1, x + 2, x + 3}, to, i * 32 + 16, 0, 0);
}
