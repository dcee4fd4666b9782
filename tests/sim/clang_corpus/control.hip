// SPDX-License-Identifier: Apache-2.0
// Lanes and waves that part: loops, switches, early returns, calls, function pointers. Oracles: control.py.

KERNEL collatz(u32 W out, u32 R a) {
  ID;
  u32 x = a[i] % 1000 + 1, steps = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x >> 1;
    steps++;
  }
  out[i] = steps;
}

KERNEL many_ways(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 x = a[i], y = b[i];
  switch (x % 7) {
  case 0: y = y * 3 + 1; break;
  case 1: y ^= 0x5555; [[fallthrough]];
  case 2: y = y << 3 | y >> 29; break;
  case 3: y -= x; break;
  case 5:
    for (u32 k = 0; k < (x & 15); k++) y = y * 5 + k;
    break;
  default: y = ~y;
  }
  out[i] = y;
}

KERNEL early_return(u32 W out, u32 R a) {
  ID;
  u32 x = a[i];
  if (x % 3 == 0) {
    out[i] = 7;
    return;
  }
  for (u32 k = 0;; k++) {
    x = x * 1664525 + 1013904223;
    if (x % 5 == 0) continue;
    if (k > 20 || x % 11 == 3) break;
    if (x % 13 == 1) {
      out[i] = k;
      return;
    }
  }
  out[i] = x;
}

KERNEL nested(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 sum = 0;
  for (u32 k = 0; k < a[i] % 9; k++)
    for (u32 m = k; m < b[i] % 7; m++) {
      if ((k ^ m) & 1)
        sum += k * m + 1;
      else
        sum ^= m << k;
    }
  out[i] = sum;
}

// Whole waves take different ways: the branch is uniform, the scheduler parts and joins fronts.
KERNEL uniform_ways(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 turns = a[GROUP] % 6, x = b[i];
  if (GROUP & 1)
    for (u32 k = 0; k < turns; k++) x = x * 3 + k;
  else if (turns > 2)
    x ^= 0xff00;
  else
    x += turns;
  out[i] = x;
}

DEVICE __attribute__((noinline)) u32 mixed(u32 x, u32 y) {
  for (u32 k = 0; k < (y & 7); k++) x = x * 33 + k;
  return x ^ y;
}

DEVICE __attribute__((noinline)) f32 norm(f32 x, f32 y) { return __builtin_sqrtf(x * x + y * y); }

KERNEL calls(u32 W out, u32 R a, u32 R b) {
  ID;
  u32 x = mixed(a[i], b[i]);
  if (x & 1) x = mixed(x, a[i] ^ 5);
  out[i] = x;
}

KERNEL call_floats(f32 W out, f32 R a, f32 R b) {
  ID;
  out[i] = norm(a[i], b[i]);
}

DEVICE __attribute__((noinline)) u32 first_way(u32 x) { return x * 3 + 1; }
DEVICE __attribute__((noinline)) u32 second_way(u32 x) { return x ^ 0x1234; }

// A pointer chosen per lane: the call loops over the callees that lanes want.
KERNEL call_by_pointer(u32 W out, u32 R a) {
  ID;
  u32 (*chosen)(u32) = a[i] & 1 ? first_way : second_way;
  out[i] = chosen(a[i]);
}
