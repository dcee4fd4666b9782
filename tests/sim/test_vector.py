# SPDX-License-Identifier: Apache-2.0
"""What the machine does around a vector operation: EXEC, halves, signs, masks, order of reads and writes.

The operations themselves are tested in test_valu.py; here one or two of them stand for each kind of operand.
"""

from __future__ import annotations

import numpy as np
import pytest

from redline.sim.compiler import compile_text
from redline.sim.generation import GENERATIONS
from redline.sim.operands import ParseError
from redline.sim.state import PATTERN
from redline.sim.step import Context
from tests.sim.machine import Machine

LANES = np.arange(32)


def test_only_lanes_that_are_on_are_written() -> None:
    """32-bit, 64-bit and 16-bit results; ufunc, function and copy alike."""
    on = 0x0000F00F
    machine = Machine().set_exec(on)
    for register in range(1, 12):
        machine.set_v(register, register)
    machine.run(
        "v_add_nc_u32 v0, v1, v2",
        "v_lshl_or_b32 v5, v1, 4, v2",
        "v_mov_b32 v6, v7",
        "v_lshlrev_b64 v[8:9], 0, v[10:11]",
    )
    active = (on >> LANES & 1).astype(bool)
    assert machine.v(0).tolist() == np.where(active, 3, PATTERN).tolist()
    assert machine.v(5).tolist() == np.where(active, 0x12, 5).tolist()
    assert machine.v(6).tolist() == np.where(active, 7, 6).tolist()
    assert machine.v64(8).tolist() == np.where(active, 11 << 32 | 10, 9 << 32 | 8).tolist()


def test_no_lane_on_writes_nothing() -> None:
    machine = Machine().set_exec(0).set_v(1, 5).run("v_mov_b32 v0, v1", "v_add_f32 v2, v1, v1")
    assert machine.v(0).tolist() == machine.v(2).tolist() == [PATTERN] * 32


def test_scalar_and_constant_sources_reach_every_lane_of_their_wave() -> None:
    machine = (
        Machine(waves=2).set_s(3, [10, 20]).set_v(1, LANES).run("v_add_nc_u32 v0, s3, v1", "v_add_nc_u32 v2, 64, v1")
    )
    assert machine.all_v(0).tolist() == [(LANES + 10).tolist(), (LANES + 20).tolist()]
    assert machine.v(2).tolist() == (LANES + 64).tolist()


def test_signs_are_bit_operations_and_abs_comes_first() -> None:
    """-|x| of a NaN flips its sign bit and keeps its payload; v_cndmask has signs on 32 bits of anything."""
    machine = Machine().set_v(1, 0x7FC12345).set_v(2, -2.5, np.float32).set_vcc(0)
    machine.run(
        "v_cndmask_b32_e64 v0, -|v1|, v2, vcc_lo", "v_add_f32_e64 v3, -|v2|, |v2|", "v_add_f32 v4, neg(1.0), v2"
    )
    assert set(machine.v(0).tolist()) == {0xFFC12345}
    assert set(machine.v(3, np.float32).tolist()) == {0.0}
    assert set(machine.v(4, np.float32).tolist()) == {-3.5}


def test_signs_of_64_bit_floats_are_in_their_high_half() -> None:
    machine = Machine().set_v64(2, -1.5, np.float64).run("v_add_f64 v[0:1], |v[2:3]|, -v[2:3]")
    assert set(machine.v64(0, np.float64).tolist()) == {3.0}


def test_clamp_limits_floats_and_saturates_integers() -> None:
    machine = Machine().set_v(1, [-1.0, 0.5, 7.0, np.nan] * 8, np.float32).set_v(2, 0xFFFFFFF0)
    machine.run("v_add_f32_e64 v0, v1, 0 clamp", "v_add_nc_u32_e64 v3, v2, v2 clamp")
    assert machine.v(0, np.float32)[:4].tolist() == [0.0, 0.5, 1.0, 0.0]
    assert set(machine.v(3).tolist()) == {0xFFFFFFFF}


# Halves of 16 bits


def test_a_16_bit_result_keeps_the_other_half() -> None:
    """gfx10 and gfx12 with op_sel; gfx11 by true16 names."""
    machine = Machine("gfx1201").set_v(0, 0xAAAABBBB).set_v(1, 0x40003C00).set_v(2, 0x44004200)
    machine.run("v_add_f16 v0, v1, v2")
    assert set(machine.v(0).tolist()) == {0xAAAA4400}  # 1 + 3
    machine.run("v_add_f16_e64 v0, v1, v2 op_sel:[1,0,1]")
    assert set(machine.v(0).tolist()) == {0x45004400}  # 2 + 3, into the high half
    named = Machine().set_v(0, 0xAAAABBBB).set_v(1, 0x40003C00).set_v(2, 0x44004200)
    named.run("v_add_f16 v0.h, v1.h, v2.l")
    assert set(named.v(0).tolist()) == {0x4500BBBB}


def test_true16_text_prints_the_half_twice_and_it_counts_once() -> None:
    """VOP3 prints both `.h` and op_sel."""
    machine = Machine().set_v(0, 0).set_v(1, 0x00050001).run("v_add_nc_u16 v0.h, v1.h, v1.l op_sel:[1,0,1]")
    assert set(machine.v(0).tolist()) == {0x00060000}


def test_a_16_bit_source_may_be_a_half_of_a_scalar() -> None:
    machine = Machine("gfx1201").set_v(0, 0).set_s(1, 0x00050001).set_v(2, 1)
    assert set(machine.run("v_add_nc_u16 v0, s1, v2 op_sel:[1,0,0]").v(0).tolist()) == {6}


def test_16_bit_results_respect_exec() -> None:
    machine = Machine("gfx1201").set_exec(1).set_v(0, 0xAAAABBBB).set_v(1, 0x00010002).run("v_add_nc_u16 v0, v1, v1")
    assert machine.v(0)[:2].tolist() == [0xAAAA0004, 0xAAAABBBB]


@pytest.mark.parametrize(
    ("modifiers", "result"),
    [
        ("", 0x0B000800),  # like with like
        ("op_sel:[1,0]", 0x0B000A00),  # low: high of v1, low of v2
        ("op_sel_hi:[0,1]", 0x09000800),  # high: low of v1, high of v2
        ("op_sel:[0,1] op_sel_hi:[1,0]", 0x0A000900),
    ],
)
def test_packed_halves_are_chosen_by_op_sel(modifiers: str, result: int) -> None:
    """v1 holds 3 and 1, v2 holds 8 and 7 (times 256); each half of the sum names a half of each source."""
    machine = Machine().set_v(1, 0x03000100).set_v(2, 0x08000700).run(f"v_pk_add_u16 v0, v1, v2 {modifiers}")
    assert set(machine.v(0).tolist()) == {result}


def test_a_packed_inline_constant_has_only_a_low_half() -> None:
    """LLVM adds op_sel_hi:[1,0] to use it twice."""
    machine = Machine().set_v(1, 0x3C003C00).run("v_pk_add_f16 v0, v1, 1.0", "v_pk_add_f16 v2, v1, 1.0 op_sel_hi:[1,0]")
    assert (machine.v(0)[0], machine.v(2)[0]) == (0x3C004000, 0x40004000)


def test_packed_signs_act_on_each_half() -> None:
    machine = Machine().set_v(1, 0x3C003C00).set_v(2, 0x40004000)
    assert machine.run("v_pk_add_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]").v(0)[0] == 0xBC003C00  # -1 + 2, 1 - 2


def test_mixed_sources_are_f32_or_halves_as_op_sel_hi_says() -> None:
    """v_fma_mix_f32: op_sel_hi 0 is f32 (the default); neg_lo is neg, neg_hi is abs."""
    machine = Machine().set_v(1, 0x42004000).set_v(2, -0.5, np.float32).set_v(3, 10.0, np.float32).set_v(0, 0)
    machine.run(
        "v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]",
        "v_fma_mix_f32 v4, v1, |v2|, -v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]",
    )
    assert machine.v(0, np.float32)[0] == 9.0  # 2 * -0.5 + 10
    assert machine.v(4, np.float32)[0] == -8.5  # 3 * 0.5 - 10
    machine.run("v_fma_mix_f32 v4, -|v1|, 1.0, 2.0 op_sel_hi:[1,0,0]", "v_fma_mix_f32 v6, v1, 1.0, 0 op_sel_hi:[1,1,0]")
    assert (machine.v(4, np.float32)[0], machine.v(6, np.float32)[0]) == (0.0, 2.0)  # constants as f32 and as f16
    machine.set_v(5, 0xAAAABBBB).run("v_fma_mixhi_f16 v5, v1, v1, v1 op_sel_hi:[1,1,1]")
    assert machine.v(5)[0] == 0x4600BBBB  # 2 * 2 + 2
    machine.run("v_fma_mixlo_f16 v5, v2, v2, v2")
    assert machine.v(5)[0] == 0x4600B400  # 0.25 - 0.5


# Masks


@pytest.mark.parametrize("wave", [32, 64])
def test_comparisons_give_zero_for_lanes_that_are_off(wave: int) -> None:
    lanes = np.arange(wave)
    on = 0x8000000F if wave == 32 else 0x800000000000000F
    register = "vcc_lo" if wave == 32 else "vcc"
    machine = Machine(wave=wave).set_exec(on).set_v(0, lanes).set_vcc((1 << wave) - 1)
    machine.run(f"v_cmp_ne_u32_e32 {register}, 1, v0")
    assert machine.vcc == on & ~2
    place = "s4" if wave == 32 else "s[4:5]"
    machine.set_s(4, 0).run(f"v_cmp_gt_u32_e64 {place}, 3, v0")
    assert (machine.s(4) if wave == 32 else machine.s64(4)) == 0b0111


def test_a_comparison_in_a_wave32_leaves_vcc_hi_alone() -> None:
    machine = Machine().set_vcc(0x1234567800000000).set_v(0, 0).run("v_cmp_eq_u32_e32 vcc_lo, 0, v0")
    assert machine.s64(106) == 0x12345678FFFFFFFF


def test_cmpx_writes_exec_and_not_vcc() -> None:
    machine = Machine().set_exec(0xFF).set_v(0, LANES).set_vcc(0x55).run("v_cmpx_lt_u32_e64 2, v0")
    assert (machine.exec, machine.vcc) == (0xF8, 0x55)
    assert np.flatnonzero(machine.front.exec[0]).tolist() == [3, 4, 5, 6, 7]


def test_a_comparison_may_write_exec_through_a_named_destination() -> None:
    machine = Machine().set_exec(0b1010).set_v(0, LANES).run("v_cmp_gt_u32_e64 exec_lo, 3, v0")
    assert machine.exec == 0b0010


def test_carries_go_through_any_mask_register() -> None:
    """Carry out of lanes that are on, carry in from another register; null drops the carry."""
    machine = Machine().set_v(1, [0xFFFFFFFF, 1] * 16).set_v(2, 1).set_exec(0b0111)
    machine.run("v_add_co_u32 v0, s4, v1, v2")
    assert machine.s(4) == 0b0101
    machine.set_exec(0xFFFFFFFF).run("v_add_co_ci_u32_e64 v3, null, 10, v2, s4")
    assert machine.v(3)[:4].tolist() == [12, 11, 12, 11]
    machine.set_vcc(0b10).run("v_sub_co_ci_u32_e32 v3, vcc_lo, 0, v2, vcc_lo")
    assert machine.v(3)[:2].tolist() == [0xFFFFFFFF, 0xFFFFFFFE]
    assert machine.vcc == 0xFFFFFFFF


def test_sources_are_read_before_a_mask_destination_is_written() -> None:
    """v_mad_co_u64_u32 v[3:4], s0, s0, s6, v[0:1]: the carry out goes to its own source."""
    machine = Machine().set_s(0, 3).set_s(6, 5).set_v64(0, (1 << 64) - 15)
    machine.run("v_mad_co_u64_u32 v[3:4], s0, s0, s6, v[0:1]")
    assert set(machine.v64(3).tolist()) == {0}
    assert machine.s(0) == 0xFFFFFFFF


def test_a_64_bit_result_may_overlap_its_sources() -> None:
    """v[1:2] from v[0:1]: the low half of the result is the high half of the source."""
    machine = Machine().set_v64(0, 0x1111111122222222).run("v_lshlrev_b64 v[1:2], 4, v[0:1]")
    assert set(machine.v64(1).tolist()) == {0x1111111222222220}


def test_div_fmas_reads_vcc_without_printing_it() -> None:
    """f32: lanes whose VCC bit is set scale the result by 2^32 (2^64 when it is large; by the exponent of S2)."""
    plain = Machine().set_vcc(0).set_v(1, 1.0, np.float32).run("v_div_fmas_f32 v0, v1, v1, v1")
    scaled = Machine().set_vcc(0b10).set_v(1, 1.0, np.float32).run("v_div_fmas_f32 v0, v1, v1, v1")
    assert plain.v(0, np.float32)[0] == scaled.v(0, np.float32)[0] == 2.0
    assert scaled.v(0, np.float32)[1] != 2.0
    assert scaled.v(0, np.float32)[2] == 2.0


def test_constant_masks_are_all_or_nothing() -> None:
    machine = (
        Machine().set_v(1, 1).set_v(2, 2).run("v_cndmask_b32_e64 v0, v1, v2, -1", "v_cndmask_b32_e64 v3, v1, v2, 0")
    )
    assert (machine.v(0)[5], machine.v(3)[5]) == (2, 1)
    assert Machine().set_exec(1).set_v(1, 1).set_v(2, 2).run("v_cndmask_b32_e64 v0, v1, v2, exec_lo").v(0)[0] == 2


# Two halves, one instruction


def test_a_dual_instruction_reads_everything_first() -> None:
    """A swap; and an accumulation beside a move of the accumulator."""
    machine = Machine().set_v(0, 10).set_v(1, 20).run("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0")
    assert (machine.v(0)[0], machine.v(1)[0]) == (20, 10)
    machine.set_v(2, 2.0, np.float32).set_v(3, 3.0, np.float32)
    machine.run("v_dual_mul_f32 v2, v2, v3 :: v_dual_fmac_f32 v3, v2, v2")
    assert (machine.v(2, np.float32)[0], machine.v(3, np.float32)[0]) == (6.0, 7.0)


def test_dual_cndmask_reads_vcc() -> None:
    machine = Machine().set_vcc(0b01).set_v(1, 1).set_v(2, 2).set_v(3, 3)
    machine.run("v_dual_cndmask_b32 v0, v1, v2 :: v_dual_mov_b32 v1, v3")
    assert machine.v(0)[:2].tolist() == [2, 1]
    assert machine.v(1)[0] == 3


def test_a_swap_exchanges_registers() -> None:
    machine = Machine().set_v(0, 1).set_v(1, 2).set_exec(1).run("v_swap_b32 v0, v1")
    assert (machine.v(0)[:2].tolist(), machine.v(1)[:2].tolist()) == ([2, 1], [1, 2])


# Lanes and scalars


def test_readlane_and_writelane_ignore_exec_and_readfirstlane_does_not() -> None:
    machine = Machine().set_exec(0b110000).set_v(0, LANES * 3)
    machine.run("v_readlane_b32 s0, v0, 7", "v_readfirstlane_b32 s1, v0", "v_writelane_b32 v0, 99, 2")
    assert (machine.s(0), machine.s(1), machine.v(0)[2], machine.v(0)[3]) == (21, 12, 99, 9)
    machine.set_exec(0).run("v_readfirstlane_b32 s2, v0")
    assert machine.s(2) == 0  # lane 0


def test_each_wave_reads_its_own_lane() -> None:
    machine = Machine(waves=2).set_v(0, [LANES, LANES + 100]).set_s(3, [4, 5]).run("v_readlane_b32 s0, v0, s3")
    assert (machine.s(0, 0), machine.s(0, 1)) == (4, 105)


def test_gfx12_scalar_transcendentals_stay_in_scalar_registers() -> None:
    machine = Machine("gfx1201").set_s(1, 4.0, np.float32).run("v_s_rcp_f32 s0, s1", "v_s_sqrt_f32 s2, -s1")
    assert machine.s(0) == 0x3E800000
    assert machine.s(2) & 0x7FC00000 == 0x7FC00000  # the root of -4 is NaN


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("v_add_f32 v0, v1", "operands"),
        ("v_add_f32 v[0:1], v1, v2", "registers are expected"),
        ("v_add_f64 v[0:1], v2, v[4:5]", "registers are expected"),
        ("v_add_f32_e64 v0, v1, v2 mul:2", "mul"),
        ("v_add_f32_e64 v0, v1, v2 wavelike:1", "wavelike"),
        ("v_add_nc_u32 v0, -v1, v2", "sign modifier"),
        ("v_add_f32 s0, v1, v2", "scalar destination"),
        ("v_and_b32_e64 v0, v1, v2 clamp", "clamp"),
        ("v_mov_b32 v0, src_shared_base", "src_shared_base"),
        ("v_mov_b32 v0, sext(v1)", "sext"),
        ("v_mov_b32 v0, v1.h", "v1.h"),
        ("v_mov_b32 v0.l, v1", "v0.l"),
        ("global_load_d16_b16 v0.h, v[2:3], off", "v0.h"),
        ("v_pk_add_u16 v0, v1, v2 neg_lo:[1,0]", "neg_lo"),
        ("v_add_f16_e64 v0, v1, v2 op_sel:[1]", "op_sel"),
        ("v_movrels_b32 v0, v1", "not in the table"),
        ("v_dual_mov_b32 v0, v1 :: v_dual_unheard_of v1, v0", "not in the table"),
        ("image_load v0, v1, s[0:7] dmask:0x1", "not in the table"),
        ("scratch_load_b32 v0, off, s0", "not in the table"),
        ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", "not in the table"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        compile_text(text, Context(GENERATIONS["gfx1100"], 32))
