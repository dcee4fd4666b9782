# SPDX-License-Identifier: Apache-2.0
"""Scalar instructions: results and SCC, typed from AMD's instruction set manuals; EXEC written by scalar code."""

from __future__ import annotations

import numpy as np
import pytest

from redline.sim.compiler import compile_text
from redline.sim.generation import GENERATIONS
from redline.sim.op import OPERAND_TYPES
from redline.sim.operands import ParseError
from redline.sim.salu import SCALAR
from redline.sim.step import Context
from tests.sim.machine import Machine

TOP = 0x80000000
ONES = 0xFFFFFFFF

# (text with s0 = result, s1 and s2 = sources, s1, s2, result, SCC after; None: unchanged)
CASES_32 = [
    ("s_add_co_i32 s0, s1, s2", 0x7FFFFFFF, 1, TOP, True),  # signed overflow
    ("s_add_co_i32 s0, s1, s2", ONES, 1, 0, False),
    ("s_sub_co_i32 s0, s1, s2", TOP, 1, 0x7FFFFFFF, True),
    ("s_sub_co_i32 s0, s1, s2", 0, 1, ONES, False),
    ("s_add_co_u32 s0, s1, s2", ONES, 1, 0, True),  # carry
    ("s_add_co_u32 s0, s1, s2", 0x7FFFFFFF, 1, TOP, False),
    ("s_add_co_u32 s0, s1, s2", 5, 0, 5, False),
    ("s_sub_co_u32 s0, s1, s2", 1, 2, ONES, True),  # borrow
    ("s_sub_co_u32 s0, s1, s2", 2, 2, 0, False),
    ("s_addk_co_i32 s1, 0xfffb", 5, 0, None, False),  # checked below: s1 becomes 0
    ("s_min_i32 s0, s1, s2", ONES, 0, ONES, True),
    ("s_min_u32 s0, s1, s2", ONES, 0, 0, False),
    ("s_min_u32 s0, s1, s2", 3, 3, 3, False),  # a < b
    ("s_max_i32 s0, s1, s2", 3, 3, 3, True),  # a >= b
    ("s_max_u32 s0, s1, s2", 0, ONES, ONES, False),
    ("s_and_b32 s0, s1, s2", 0xF0, 0x0F, 0, False),
    ("s_or_b32 s0, s1, s2", 0xF0, 0x0F, 0xFF, True),
    ("s_xor_b32 s0, s1, s2", 5, 5, 0, False),
    ("s_and_not1_b32 s0, s1, s2", 0xFF, 0x0F, 0xF0, True),
    ("s_or_not1_b32 s0, s1, s2", 0, ONES, 0, False),
    ("s_nand_b32 s0, s1, s2", ONES, ONES, 0, False),
    ("s_nor_b32 s0, s1, s2", 0, 0, ONES, True),
    ("s_xnor_b32 s0, s1, s2", 1, ONES - 1, 0, False),
    ("s_xnor_b32 s0, s1, s2", 3, ONES - 1, 2, True),
    ("s_not_b32 s0, s1", ONES, 0, 0, False),
    ("s_lshl_b32 s0, s1, s2", 1, 33, 2, True),  # the count is masked to 5 bits
    ("s_lshr_b32 s0, s1, s2", TOP, 31, 1, True),
    ("s_ashr_i32 s0, s1, s2", TOP, 31, ONES, True),
    ("s_ashr_i32 s0, s1, s2", 1, 1, 0, False),
    ("s_lshl2_add_u32 s0, s1, s2", 0x40000000, 1, 1, True),  # a carry out of the addition or the shift
    ("s_lshl1_add_u32 s0, s1, s2", 3, 4, 10, False),
    ("s_bfe_u32 s0, s1, s2", 0xABCD1234, 8 << 16 | 8, 0x12, True),
    ("s_bfe_u32 s0, s1, s2", ONES, 0 << 16 | 4, 0, False),  # width 0
    ("s_bfe_u32 s0, s1, s2", 0xFF, 64 << 16, 0xFF, True),  # wider than what is there
    ("s_bfe_i32 s0, s1, s2", 0x80, 4 << 16 | 4, 0xFFFFFFF8, True),
    ("s_bfe_i32 s0, s1, s2", TOP, 16 << 16 | 28, 0xFFFFFFF8, True),
    ("s_bfe_i32 s0, s1, 0x80008", 0xF100, 0, 0xFFFFFFF1, True),  # a constant control
    ("s_bfe_u32 s0, s1, 0x40", 0xF100, 0, 0, False),
    ("s_absdiff_i32 s0, s1, s2", 3, 5, 2, True),
    ("s_abs_i32 s0, s1", TOP, 0, TOP, True),  # stays the most negative
    ("s_abs_i32 s0, s1", 0, 0, 0, False),
    ("s_bcnt1_i32_b32 s0, s1", 0, 0, 0, False),
    ("s_bcnt1_i32_b32 s0, s1", 0xFF01, 0, 9, True),
    ("s_bcnt0_i32_b32 s0, s1", ONES, 0, 0, False),
    ("s_quadmask_b32 s0, s1", 0x10F0, 0, 0b1010, True),
    ("s_wqm_b32 s0, s1", 0x1080, 0, 0xF0F0, True),
    # SCC is left alone
    ("s_mov_b32 s0, s1", 0, 0, 0, None),
    ("s_movk_i32 s0, 0xfffb", 0, 0, 0xFFFFFFFB, None),  # printed unsigned, sign-extended
    ("s_mul_i32 s0, s1, s2", 0x10001, 0x10001, 0x20001, None),
    ("s_mul_hi_u32 s0, s1, s2", ONES, ONES, 0xFFFFFFFE, None),
    ("s_mul_hi_i32 s0, s1, s2", ONES, ONES, 0, None),
    ("s_bfm_b32 s0, s1, s2", 4, 8, 0xF00, None),
    ("s_bfm_b32 s0, s1, s2", 0, 8, 0, None),
    ("s_brev_b32 s0, s1", 1, 0, TOP, None),
    ("s_ctz_i32_b32 s0, s1", 0x50, 0, 4, None),
    ("s_ctz_i32_b32 s0, s1", 0, 0, ONES, None),  # -1 when no bit is set
    ("s_ff1_i32_b32 s0, s1", 8, 0, 3, None),
    ("s_clz_i32_u32 s0, s1", 1, 0, 31, None),
    ("s_flbit_i32_b32 s0, s1", 0, 0, ONES, None),
    ("s_cls_i32 s0, s1", 0xFFFF3333, 0, 16, None),
    ("s_cls_i32 s0, s1", ONES, 0, ONES, None),
    ("s_cls_i32 s0, s1", 0, 0, ONES, None),
    ("s_cls_i32 s0, s1", 1, 0, 31, None),
    ("s_sext_i32_i8 s0, s1", 0x180, 0, 0xFFFFFF80, None),
    ("s_sext_i32_i16 s0, s1", 0x18000, 0, 0xFFFF8000, None),
    ("s_pack_ll_b32_b16 s0, s1, s2", 0x11112222, 0x33334444, 0x44442222, None),
    ("s_pack_lh_b32_b16 s0, s1, s2", 0x11112222, 0x33334444, 0x33332222, None),
    ("s_pack_hl_b32_b16 s0, s1, s2", 0x11112222, 0x33334444, 0x44441111, None),
    ("s_pack_hh_b32_b16 s0, s1, s2", 0x11112222, 0x33334444, 0x33331111, None),
    ("s_bitset1_b32 s0, s1", 35, 0, 0xC0DE0000 | 8, None),
    ("s_bitset0_b32 s0, s1", 31, 0, 0x40DE0000, None),
]


@pytest.mark.parametrize(("text", "a", "b", "result", "scc"), CASES_32)
@pytest.mark.parametrize("before", [False, True])
def test_32_bit_results_and_scc(text: str, a: int, b: int, result: int | None, scc: bool | None, before: bool) -> None:
    """s0 starts as 0xC0DE0000; whatever SCC was, it ends as the manual says, or as it was; alone and beside a wave."""
    for waves in (1, 2):
        machine = Machine(waves=waves).set_s(0, 0xC0DE0000).set_s(1, a).set_s(2, b).set_scc(before).run(text)
        assert machine.s(0, waves - 1) == (0xC0DE0000 if result is None else result)
        assert machine.scc == (before if scc is None else scc)


# (text with s[0:1] = result, s[2:3] and s[4:5] = sources, result, SCC)
CASES_64 = [
    ("s_and_b64 s[0:1], s[2:3], s[4:5]", 1 << 40, 1 << 41, 0, False),
    ("s_or_b64 s[0:1], s[2:3], s[4:5]", 1 << 40, 1, 1 << 40 | 1, True),
    ("s_and_not1_b64 s[0:1], s[2:3], s[4:5]", (1 << 64) - 1, 1, (1 << 64) - 2, True),
    ("s_not_b64 s[0:1], s[2:3]", 0, 0, (1 << 64) - 1, True),
    ("s_lshl_b64 s[0:1], s[2:3], s4", 1, 65, 2, True),
    ("s_lshr_b64 s[0:1], s[2:3], s4", 1 << 63, 63, 1, True),
    ("s_ashr_i64 s[0:1], s[2:3], s4", 1 << 63, 63, (1 << 64) - 1, True),
    ("s_bfe_u64 s[0:1], s[2:3], s4", 0xABCD << 40, 8 << 16 | 44, 0xBC, True),
    ("s_bfe_i64 s[0:1], s[2:3], s4", 0x8 << 60, 4 << 16 | 60, (1 << 64) - 8, True),
    ("s_bcnt1_i32_b64 s0, s[2:3]", (1 << 64) - 1, 0, 64, True),
    ("s_mov_b64 s[0:1], s[2:3]", 0x123456789, 0, 0x123456789, None),
    ("s_mov_b64 s[0:1], -1", 0, 0, (1 << 64) - 1, None),
    ("s_mov_b64 s[0:1], 0x80000000", 0, 0, 0x80000000, None),  # a literal is zero-extended
    ("s_add_nc_u64 s[0:1], s[2:3], s[4:5]", (1 << 64) - 1, 2, 1, None),
    ("s_sub_nc_u64 s[0:1], s[2:3], s[4:5]", 0, 1, (1 << 64) - 1, None),
    ("s_mul_u64 s[0:1], s[2:3], s[4:5]", 1 << 33, 3, 3 << 33, None),
    ("s_brev_b64 s[0:1], s[2:3]", 1, 0, 1 << 63, None),
    ("s_bfm_b64 s[0:1], s2, s4", 40, 8, ((1 << 40) - 1) << 8, None),
    ("s_ctz_i32_b64 s0, s[2:3]", 1 << 50, 0, 50, None),
    ("s_clz_i32_u64 s0, s[2:3]", 1, 0, 63, None),
]


@pytest.mark.parametrize(("text", "a", "b", "result", "scc"), CASES_64)
def test_64_bit_results_and_scc(text: str, a: int, b: int, result: int, scc: bool | None) -> None:
    for waves in (1, 2):
        machine = Machine(waves=waves).set_s64(0, 0).set_s64(2, a).set_s64(4, b).set_scc(True).run(text)
        assert machine.s64(0, waves - 1) == result
        assert machine.scc == (True if scc is None else scc)


@pytest.mark.parametrize("carry", [False, True])
def test_carries_chain_through_scc(carry: bool) -> None:
    """0xffffffff + 0 + carry, and 0 - 0 - borrow."""
    machine = Machine().set_s(1, ONES).set_s(2, 0).set_scc(carry).run("s_add_co_ci_u32 s0, s1, s2")
    assert (machine.s(0), machine.scc) == ((0, True) if carry else (ONES, False))
    machine.set_scc(carry).run("s_sub_co_ci_u32 s0, s2, s2")
    assert (machine.s(0), machine.scc) == ((ONES, True) if carry else (0, False))
    machine.set_scc(carry).run("s_sub_co_ci_u32 s0, s2, s1")
    assert (machine.s(0), machine.scc) == ((0, True) if carry else (1, True))
    machine.set_s(3, 7).set_scc(carry).run("s_add_co_ci_u32 s0, s3, s3")
    assert (machine.s(0), machine.scc) == (14 + carry, False)


@pytest.mark.parametrize("scc", [False, True])
def test_conditional_moves_read_scc_and_keep_their_destination(scc: bool) -> None:
    machine = Machine().set_s(0, 7).set_s(1, 1).set_s(2, 2).set_s64(4, 4).set_s64(6, 6).set_s64(8, 9).set_scc(scc)
    machine.run("s_cselect_b32 s3, s1, s2", "s_cselect_b64 s[10:11], s[4:5], s[6:7]", "s_cmov_b32 s0, s1")
    machine.run("s_cmovk_i32 s2, 0x8000", "s_cmov_b64 s[8:9], s[4:5]")
    wanted = (1, 4, 1, 0xFFFF8000, 4) if scc else (2, 6, 7, 2, 9)
    assert (machine.s(3), machine.s64(10), machine.s(0), machine.s(2), machine.s64(8)) == wanted
    assert machine.scc is scc


COMPARE = {"eq": (0, 1, 0), "lg": (1, 0, 1), "gt": (0, 0, 1), "ge": (0, 1, 1), "lt": (1, 0, 0), "le": (1, 1, 0)}


@pytest.mark.parametrize("name", COMPARE)
def test_comparisons_set_scc(name: str) -> None:
    """Unsigned 1 against 1, 2 and 0xffffffff in turn; signed the last is -1; SOPK immediates extend by their kind."""
    less, equal, more = COMPARE[name]
    machine = Machine().set_s(1, 1)
    for other, unsigned, signed in ((1, equal, equal), (2, less, less), (ONES, less, more)):
        machine.set_s(2, other)
        assert machine.run(f"s_cmp_{name}_u32 s1, s2").scc == bool(unsigned)
        assert machine.run(f"s_cmp_{name}_i32 s1, s2").scc == bool(signed)
    assert machine.run(f"s_cmpk_{name}_i32 s1, 0xffff").scc == bool(more)
    assert machine.run(f"s_cmpk_{name}_u32 s1, 0xffff").scc == bool(less)


def test_bit_tests_and_64_bit_equality_set_scc() -> None:
    machine = Machine().set_s(1, 0b100).set_s64(2, 1 << 40).set_s64(4, 1 << 41)
    assert machine.run("s_bitcmp1_b32 s1, 34").scc  # the index is masked
    assert not machine.run("s_bitcmp0_b32 s1, 2").scc
    assert not machine.run("s_bitcmp1_b32 s1, 3").scc
    assert machine.run("s_bitcmp1_b64 s[2:3], 40").scc
    assert not machine.run("s_cmp_eq_u64 s[2:3], s[4:5]").scc
    assert machine.run("s_cmp_lg_u64 s[2:3], s[4:5]").scc


@pytest.mark.parametrize(
    ("name", "source", "new"),
    [
        ("and", 0b0110, 0b0010),
        ("or", 0b0110, 0b0111),
        ("xor", 0b0110, 0b0101),
        ("and_not1", 0b0110, 0b0100),  # source and not EXEC
        ("and_not0", 0b0110, 0b0001),  # EXEC and not source
        ("or_not1", 0b0110, 0xFFFFFFFE),
        ("nor", 0b0110, 0xFFFFFFF8),
    ],
)
def test_saveexec_swaps_exec_and_tells_whether_lanes_are_left(name: str, source: int, new: int) -> None:
    """The destination may be the source register: both are read first."""
    machine = Machine().set_exec(0b0011).set_s(4, source).run(f"s_{name}_saveexec_b32 s4, s4")
    assert (machine.s(4), machine.exec) == (0b0011, new)
    assert machine.scc
    assert machine.front.exec[0].tolist() == [bool(new >> lane & 1) for lane in range(32)]


def test_saveexec_to_no_lanes_clears_scc() -> None:
    machine = Machine(wave=64).set_exec(1 << 40).set_s64(2, 1).set_scc(True)
    machine.run("s_and_saveexec_b64 s[4:5], s[2:3]")
    assert (machine.s64(4), machine.exec, machine.scc) == (1 << 40, 0, False)
    assert not machine.front.exec.any()


def test_wrexec_gives_the_new_exec_to_its_destination() -> None:
    machine = Machine().set_exec(0b0011).set_s(4, 0b0110).run("s_and_not1_wrexec_b32 s5, s4")
    assert (machine.s(5), machine.exec, machine.scc) == (0b0100, 0b0100, True)


def test_exec_as_an_ordinary_destination_turns_lanes_on() -> None:
    machine = Machine(wave=64).set_exec(0).set_s64(2, (1 << 63) | 1)
    machine.run("s_or_b64 exec, exec, s[2:3]", "v_mov_b32 v0, 1")
    assert np.flatnonzero(machine.v(0) == 1).tolist() == [0, 63]
    assert Machine().set_exec(3).run("s_mov_b32 exec_lo, -1").front.full


def test_each_wave_has_its_own_scalars() -> None:
    machine = (
        Machine(waves=3).set_s(1, [1, 2, 3]).set_s(2, [9, 2, 0]).run("s_add_co_u32 s0, s1, s2", "s_cmp_lt_u32 s1, s2")
    )
    assert [machine.s(0, wave) for wave in range(3)] == [10, 4, 3]
    assert machine.state.scc[:, 0].tolist() == [True, False, False]


def test_scalar_floats_use_single_precision_and_compare_into_scc() -> None:
    """gfx11.5 and gfx12; a 16-bit result clears the upper half of its register."""
    machine = Machine("gfx1201").set_s(1, 1.5, np.float32).set_s(2, 0.25, np.float32).set_s(3, 0xDEAD3C00)
    machine.run("s_mul_f32 s0, s1, s2", "s_add_f16 s4, s3, s3", "s_fmac_f32 s2, s1, 2.0", "s_cvt_u32_f32 s5, s2")
    assert machine.s(0) == int(np.float32(0.375).view(np.uint32))
    assert machine.s(4) == 0x4000
    assert machine.s(5) == 3
    assert machine.run("s_cmp_lt_f32 s1, s2").scc
    assert not machine.run("s_cmp_nge_f32 s2, s1").scc


def test_null_takes_a_result_and_reads_as_zero() -> None:
    machine = Machine("gfx1201").set_s(1, 5).run("s_add_co_u32 null, s1, s1", "s_or_b32 s0, s1, null")
    assert machine.s(0) == 5


@pytest.mark.parametrize(
    "text",
    [
        "s_add_co_u32 s0, s1",
        "s_add_co_u32 s[0:1], s1, s2",
        "s_mov_b64 s[1:2], 0",
        "s_mov_b32 s0, v1",
        "s_mov_b32 s0, src_shared_base",
        "s_and_saveexec_b64 s[2:3], vcc",
        "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 0",
        "s_round_mode 0x1",
        "s_denorm_mode 15",
        "s_movrels_b32 s0, s1",
        "s_getreg_b32 s0, hwreg(HW_REG_SHADER_CYCLES)",
        "s_trap 2",
        "s_nonsense_b32 s0, s1",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    """Wrong widths, modes, indexing, hardware registers: nothing is guessed."""
    with pytest.raises(ParseError):
        compile_text(text, Context(GENERATIONS["gfx1100"], 32))


def test_every_row_of_the_table_compiles() -> None:
    """A row whose types contradict its operands would only show when a kernel reaches it."""
    sizes = {16: 1, 32: 1, 64: 2}
    context = Context(GENERATIONS["gfx1201"], 32)
    for name, row in SCALAR.items():
        kinds = ([row.dst] if row.dst else []) + list(row.src)
        widths = [sizes[OPERAND_TYPES[kind].bits] for kind in kinds]
        places = [f"s[{8 * i}:{8 * i + 1}]" if width == 2 else f"s{8 * i}" for i, width in enumerate(widths)]
        code = compile_text(f"{name} {', '.join(places)}", context)
        machine = Machine("gfx1201")
        assert code.run is not None
        with np.errstate(all="ignore"):
            code.run(machine.front)
