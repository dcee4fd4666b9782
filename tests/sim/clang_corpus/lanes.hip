// SPDX-License-Identifier: Apache-2.0
// Values of other lanes: DPP, swizzle, permutations, reads of one lane, ballots. Oracles: lanes.py.

#define DPP(x, control, rows, banks, bound) __builtin_amdgcn_update_dpp(0x77777777, x, control, rows, banks, bound)

KERNEL dpp_moves(u32 W out, u32 R a) {
  ID;
  u32 x = a[i];
  OUT(0) = DPP(x, 0x1b, 0xf, 0xf, true);   // quad_perm:[3,2,1,0]
  OUT(1) = DPP(x, 0x4e, 0xf, 0xf, false);  // quad_perm:[2,3,0,1]
  OUT(2) = DPP(x, 0x101, 0xf, 0xf, true);  // row_shl:1
  OUT(3) = DPP(x, 0x104, 0xf, 0xf, false); // row_shl:4
  OUT(4) = DPP(x, 0x112, 0xf, 0xf, true);  // row_shr:2
  OUT(5) = DPP(x, 0x118, 0xf, 0xf, false); // row_shr:8
  OUT(6) = DPP(x, 0x123, 0xf, 0xf, false); // row_ror:3
  OUT(7) = DPP(x, 0x140, 0xf, 0xf, false); // row_mirror
  OUT(8) = DPP(x, 0x141, 0xf, 0xf, false); // row_half_mirror
  OUT(9) = DPP(x, 0x155, 0xf, 0xf, false); // row_share:5
  OUT(10) = DPP(x, 0x16a, 0xf, 0xf, false); // row_xmask:10
  OUT(11) = DPP(x, 0x111, 0xa, 0x6, false); // row_shr:1 row_mask:0xa bank_mask:0x6
  OUT(12) = __builtin_amdgcn_mov_dpp8(x, 0x2d0df3); // a permutation inside eight lanes
}

// The compiler folds the move into the instruction that uses it.
KERNEL dpp_scan(u32 W out, u32 R a) {
  ID;
  u32 x = a[i];
  x += __builtin_amdgcn_update_dpp(0, x, 0x111, 0xf, 0xf, false);
  x += __builtin_amdgcn_update_dpp(0, x, 0x112, 0xf, 0xf, false);
  x += __builtin_amdgcn_update_dpp(0, x, 0x114, 0xf, 0xf, false);
  x += __builtin_amdgcn_update_dpp(0, x, 0x118, 0xf, 0xf, false);
  out[i] = x;
}

KERNEL dpp_float(f32 W out, f32 R a) {
  ID;
  f32 x = a[i];
  x += BITS(f32, __builtin_amdgcn_update_dpp(0, BITS(i32, x), 0xb1, 0xf, 0xf, true));
  x = __builtin_fmaxf(x, BITS(f32, __builtin_amdgcn_update_dpp(0, BITS(i32, x), 0x4e, 0xf, 0xf, true)));
  x *= BITS(f32, __builtin_amdgcn_update_dpp(0, BITS(i32, x), 0x141, 0xf, 0xf, true));
  out[i] = x;
}

// Half of the lanes are off: a source that is off is 0 or keeps the old value.
KERNEL dpp_masked(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 x = a[i], y = 5, z = 6;
  if (b[i] & 1) {
    y = DPP(x, 0x1b, 0xf, 0xf, true);
    z = DPP(x, 0x111, 0xf, 0xf, false);
  }
  OUT(0) = y;
  OUT(1) = z;
}

KERNEL swizzles(u32 W out, u32 R a) {
  ID;
  u32 x = a[i];
  OUT(0) = __builtin_amdgcn_ds_swizzle(x, 0x041f); // swap neighbours
  OUT(1) = __builtin_amdgcn_ds_swizzle(x, 0x7c1f); // reverse 32
  OUT(2) = __builtin_amdgcn_ds_swizzle(x, 0x00f8); // broadcast inside eight
  OUT(3) = __builtin_amdgcn_ds_swizzle(x, 0x8039); // quad_perm
  OUT(4) = __builtin_amdgcn_ds_swizzle(x, 0x1d57); // and, or, xor
  OUT(5) = __builtin_amdgcn_ds_swizzle(x, 0xc120); // rotate by 9
}

KERNEL permutes(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 lane = LANE & 31, base = LANE & 32;
  OUT(0) = __builtin_amdgcn_ds_bpermute((b[i] & 31 | base) * 4, a[i]);
  OUT(1) = __builtin_amdgcn_ds_permute(((lane * 5 + 3 & 31) | base) * 4, a[i]);
  OUT(2) = __builtin_amdgcn_permlane16(a[i], a[i], 0x76543210, 0xfedcba98, false, false);
  OUT(3) = __builtin_amdgcn_permlanex16(a[i], a[i], 0x01234567, 0x89abcdef, false, false);
  OUT(4) = __builtin_amdgcn_permlane16(b[i], a[i], 0x22220000, 0xbbbb9999, true, false);
}

KERNEL lane_reads(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 x = a[i];
  OUT(0) = __builtin_amdgcn_readlane(x, 5);
  OUT(1) = __builtin_amdgcn_readfirstlane(x);
  OUT(2) = __builtin_amdgcn_readlane(x, b[GROUP] & 31);
  OUT(3) = 1;
  if (b[i] & 1) OUT(3) = __builtin_amdgcn_readfirstlane(x);
  OUT(4) = __builtin_amdgcn_readlane(b[i], __builtin_amdgcn_readfirstlane(x) & 31);
}

KERNEL ballots(u64 W out, u32 R a, u32 R b) {
  ID;
  OUT(0) = WAVE == 32 ? (u64)__builtin_amdgcn_ballot_w32(a[i] & 1) : __builtin_amdgcn_ballot_w64(a[i] & 1);
  u32 mine = WAVE == 32 ? __builtin_amdgcn_mbcnt_lo(a[i], 3) : __builtin_amdgcn_mbcnt_hi(b[i], __builtin_amdgcn_mbcnt_lo(a[i], 3));
  OUT(1) = mine;
  OUT(2) = 9;
  if (b[i] % 3 == 0)
    OUT(2) = WAVE == 32 ? (u64)__builtin_amdgcn_ballot_w32(a[i] & 2) : __builtin_amdgcn_ballot_w64(a[i] & 2);
}

KERNEL wave_sum(u32 W out, u32 R a) {
  ID;
  u32 x = a[i];
  for (u32 step = WAVE / 2; step; step >>= 1) {
    u32 other = (LANE & WAVE - 1) ^ step;
    // Halves of a wave64 exchange through LDS: ds_bpermute does not cross them on every target.
    if (step < 32)
      x += __builtin_amdgcn_ds_bpermute(other * 4, x);
    else {
      SHARED static u32 place[128];
      place[LANE] = x;
      BARRIER;
      x += place[LANE ^ 32];
    }
  }
  out[i] = x;
}
