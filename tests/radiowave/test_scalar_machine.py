# SPDX-License-Identifier: Apache-2.0
"""The machine that judges certificates against the software device: two interpreters that share nothing agree.

All of its arithmetic but the moves by M0, which the device does not have.
"""

from __future__ import annotations

import random

import pytest

from radiowave import Instruction
from tests.radiowave.scalar_machine import steps_of
from tests.radiowave.scalar_memory import Memory
from tests.radiowave.wave_registers import EXEC, LANES, M0, Machine, Number
from tests.sim.machine import Machine as Device

EDGES = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF)
BINARY = """
    add_u32 addc_u32 sub_u32 subb_u32 add_i32 sub_i32 mul_i32 mul_hi_u32 and_b32 or_b32 xor_b32 andn2_b32 lshl_b32
    lshr_b32 ashr_i32 lshl2_add_u32 bfe_u32 bfm_b32 pack_ll_b32_b16 pack_lh_b32_b16 cselect_b32
"""
WIDE = "and_b64 or_b64 xor_b64 andn2_b64 cselect_b64"
SHIFTED = "lshl_b64 lshr_b64 ashr_i64"
TEXTS = (
    *(
        f"s_{name} s10, s{first}, {second}"
        for name in BINARY.split()
        for first in (2, 4)
        for second in ("s6", "-1", "7")
    ),
    *(f"s_{name} s[10:11], s[2:3], s[4:5]" for name in WIDE.split()),
    *(f"s_{name} s[10:11], s[2:3], {second}" for name in SHIFTED.split() for second in ("s6", "3")),
    "s_bfe_i64 s[10:11], s[2:3], 0x200000",
    "s_bfm_b64 s[10:11], s2, s4",
    *(f"s_{name}_b32 s10, s2" for name in ("mov", "not", "brev", "cmov")),
    *(f"s_{name}_b64 s[10:11], s[2:3]" for name in ("mov", "not", "cmov")),
    *(f"s_sext_i32_{size} s10, s2" for size in ("i8", "i16")),
    *(f"s_{name}_i32 s10, {value}" for name in ("movk", "cmovk", "mulk") for value in ("0xfff8", "0x12")),
    *(f"s_cmp_{name} s2, s4" for name in ("eq_u32", "lg_u32", "lt_u32", "gt_i32")),
    *(f"s_cmp_{name}_u64 s[2:3], s[4:5]" for name in ("eq", "lg")),
    "s_bitcmp1_b32 s2, s4",
    *(f"s_bitset{bit}_b32 s10, s2" for bit in (0, 1)),
    *(f"s_bitset{bit}_b64 s[10:11], s2" for bit in (0, 1)),
    *(f"s_{name}_saveexec_b32 s10, s2" for name in ("and", "or")),
    "v_readfirstlane_b32 s10, v1",
    "v_readlane_b32 s10, v1, 1",
    "v_writelane_b32 v1, s2, 1",
    "v_mov_b32_e32 v1, s2",
    "v_add_nc_u32_e32 v1, v2, v3",
    "v_cmp_eq_u32_e64 s10, v1, v2",
    "v_cmp_ne_u32_e64 s10, v1, v2",
    "v_add_co_u32 v1, s10, v2, v3",
)
GFX12 = ("s_add_nc_u64 s[10:11], s[2:3], s[4:5]", "s_sub_nc_u64 s[10:11], s[2:3], s[4:5]", "s_addk_co_i32 s10, 0xfff8")


@pytest.mark.parametrize("target", ["gfx1030", "gfx1201"])
def test_agrees_with_the_device(target: str) -> None:
    """Scalar registers, SCC and vector registers behind each instruction, on noise and on the edges of numbers."""
    rng = random.Random(1)
    for text in (*TEXTS, *(GFX12 if target == "gfx1201" else ("s_addk_i32 s10, 0xfff8",))):
        for _ in range(8):
            assert _both(text, target, rng) == [], text


def _both(text: str, target: str, rng: random.Random) -> list[str]:
    """Names of the registers that the two leave different."""
    mine, device = Machine(Memory(0, (0,), (), 8, b"")), Device(target, 32, vgprs=8)
    for n in range(106):
        value = rng.choice((*EDGES, rng.getrandbits(32), rng.getrandbits(32)))
        mine.scalars[n], device.state.scalar[0, n] = Number(value), value
    for number, value in ((EXEC, (1 << LANES) - 1), (M0, rng.randrange(8))):
        mine.scalars[number], device.state.scalar[0, number] = Number(value), value
    for lane in range(LANES):
        for n in range(4):
            value = rng.choice((0, 7, rng.getrandbits(32)))
            mine.vectors[lane][n], device.state.vector[n, 0, lane] = Number(value), value
    scc = rng.randrange(2)
    mine.scc = Number(scc)
    device.set_exec((1 << LANES) - 1).set_scc(bool(scc)).run(text)
    steps_of([Instruction(0, 4, text)])[0][0](mine)
    wrong = [f"s{n}" for n in (*range(106), M0, EXEC) if mine.scalars[n].value != int(device.state.scalar[0, n])]
    wrong += [] if mine.scc.value == int(device.scc) else ["scc"]
    lanes = [(lane, n) for lane in range(LANES) for n in range(4)]
    return wrong + [f"v{n}" for lane, n in lanes if mine.vectors[lane][n].value != int(device.state.vector[n, 0, lane])]
