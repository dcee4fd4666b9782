# SPDX-License-Identifier: Apache-2.0
"""DPP, SDWA and ds_swizzle: which lane or which part of a register an operand means, and which lanes are written."""

from __future__ import annotations

import numpy as np
import pytest

from redline.sim.compiler import compile_text
from redline.sim.generation import GENERATIONS
from redline.sim.operands import ParseError
from redline.sim.step import Context
from redline.sim.swizzle import swizzle_lanes
from tests.sim.machine import Machine

OLD = 7777
ALL = "row_mask:0xf bank_mask:0xf"


def _dpp(modifiers: str, *, wave: int = 32, on: int = (1 << 64) - 1, text: str = "v_mov_b32_dpp v0, v1") -> list[int]:
    """v0 starts as OLD everywhere and v1 as the lane number plus 100."""
    machine = Machine(wave=wave).set_exec(on & (1 << wave) - 1).set_v(0, OLD).set_v(1, np.arange(wave) + 100)
    return [int(value) for value in machine.run(f"{text} {modifiers}").v(0)]


# Source lane of each lane of the first row; None: there is none.
CONTROLS = {
    "quad_perm:[3,0,0,1]": [3, 0, 0, 1, 7, 4, 4, 5, 11, 8, 8, 9, 15, 12, 12, 13],
    "row_shl:2": [*range(2, 16), None, None],
    "row_shr:3": [None, None, None, *range(13)],
    "row_ror:5": [(lane - 5) % 16 for lane in range(16)],
    "row_mirror": list(range(15, -1, -1)),
    "row_half_mirror": [*range(7, -1, -1), *range(15, 7, -1)],
    "row_share:6": [6] * 16,
    "row_xmask:9": [lane ^ 9 for lane in range(16)],
}


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("control", CONTROLS)
def test_a_dpp_control_names_the_source_lane_in_each_row(control: str, wave: int) -> None:
    """A missing lane gives 0 with bound_ctrl and leaves the destination alone without it."""
    rows = range(0, wave, 16)
    wanted = [None if lane is None else lane + row + 100 for row in rows for lane in CONTROLS[control]]
    assert _dpp(f"{control} {ALL} bound_ctrl:1", wave=wave) == [0 if lane is None else lane for lane in wanted]
    assert _dpp(f"{control} {ALL}", wave=wave) == [OLD if lane is None else lane for lane in wanted]


def test_dpp8_chooses_inside_each_eight_lanes() -> None:
    got = _dpp("dpp8:[7,6,5,4,3,2,1,0]")
    assert got == [100 + lane // 8 * 8 + 7 - lane % 8 for lane in range(32)]


def test_a_source_lane_that_is_off_counts_as_missing_unless_fi() -> None:
    on = 0xFFFFFFFD  # lane 1 is off
    shifted = f"row_shr:1 {ALL}"
    assert _dpp(shifted, on=on)[:4] == [OLD, OLD, OLD, 102]
    assert _dpp(f"{shifted} bound_ctrl:1", on=on)[:4] == [0, OLD, 0, 102]
    assert _dpp(f"{shifted} fi:1", on=on)[:4] == [OLD, OLD, 101, 102]
    assert _dpp("dpp8:[1,1,1,1,1,1,1,1]", on=on)[:3] == [0, OLD, 0]
    assert _dpp("dpp8:[1,1,1,1,1,1,1,1] fi:1", on=on)[:3] == [101, OLD, 101]


def test_row_and_bank_masks_name_the_lanes_that_are_written() -> None:
    got = _dpp("row_mirror row_mask:0x2 bank_mask:0x5 bound_ctrl:1")
    written = [lane for lane in range(32) if got[lane] != OLD]
    assert written == [16, 17, 18, 19, 24, 25, 26, 27]


def test_dpp_moves_only_the_first_source() -> None:
    """v_add_nc_u32_dpp and its VOP3 form: lane n gets v1 of lane n-1 plus v2 of lane n."""
    machine = Machine().set_v(0, 0).set_v(1, np.arange(32)).set_v(2, np.arange(32) * 100)
    machine.run(f"v_add_nc_u32_dpp v0, v1, v2 row_shr:1 {ALL} bound_ctrl:1")
    assert machine.v(0)[:4].tolist() == [0, 100, 201, 302]
    machine.run(f"v_add_nc_u32_e64_dpp v0, v1, v2 row_ror:1 {ALL}")
    assert machine.v(0)[:2].tolist() == [15, 100]


def test_dpp_can_accumulate() -> None:
    machine = Machine().set_v(0, 1.0, np.float32).set_v(1, np.arange(32), np.float32)
    machine.run(f"v_fmac_f32_dpp v0, v1, v1 row_share:2 {ALL}")
    assert machine.v(0, np.float32)[:3].tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize(
    "text",
    [
        f"v_mov_b32_dpp v0, v1 {ALL}",
        f"v_mov_b32_dpp v0, v1 row_shr:1 row_mirror {ALL}",
        f"v_mov_b32_dpp v0, v1 row_shr:16 {ALL}",
        f"v_mov_b32_dpp v0, v1 row_bcast:15 {ALL}",
        f"v_mov_b32_dpp v0, v1 wave_shl:1 {ALL}",
        f"v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,4] {ALL}",
        f"v_mov_b32_dpp v0, s1 row_shr:1 {ALL}",
        f"v_cmp_eq_u32_e64_dpp s0, v0, v1 row_shr:1 {ALL}",
        "v_mov_b32_dpp v0, v1 dpp8:[0,1,2,3]",
    ],
)
def test_dpp_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        compile_text(text, Context(GENERATIONS["gfx1100"], 32))


# SDWA


@pytest.mark.parametrize(
    ("select", "unsigned", "signed"),
    [
        ("BYTE_0", 0x81, 0xFFFFFF81),
        ("BYTE_1", 0x72, 0x72),
        ("BYTE_2", 0x93, 0xFFFFFF93),
        ("BYTE_3", 0x04, 0x04),
        ("WORD_0", 0x7281, 0x7281),
        ("WORD_1", 0x0493, 0x0493),
        ("DWORD", 0x04937281, 0x04937281),
    ],
)
def test_sdwa_selects_a_part_of_a_source(select: str, unsigned: int, signed: int) -> None:
    machine = Machine("gfx1030").set_v(1, 0x04937281).set_v(2, 0)
    rest = f"dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{select} src1_sel:DWORD"
    assert machine.run(f"v_or_b32_sdwa v0, v1, v2 {rest}").v(0)[0] == unsigned
    assert machine.run(f"v_or_b32_sdwa v0, sext(v1), v2 {rest}").v(0)[0] == signed
    other = f"dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:{select}"
    assert machine.run(f"v_or_b32_sdwa v0, v2, v1 {other}").v(0)[0] == unsigned


@pytest.mark.parametrize(
    ("destination", "pad", "preserve"),
    [
        ("BYTE_0", 0x34, 0xAABBCC34),
        ("BYTE_2", 0x00340000, 0xAA34CCDD),
        ("WORD_1", 0x12340000, 0x1234CCDD),
        ("DWORD", 0x1234, 0x1234),
    ],
)
def test_sdwa_places_the_result_and_treats_the_rest(destination: str, pad: int, preserve: int) -> None:
    rest = "src0_sel:DWORD src1_sel:DWORD"
    for unused, wanted in (("UNUSED_PAD", pad), ("UNUSED_PRESERVE", preserve)):
        machine = Machine("gfx1010").set_v(0, 0xAABBCCDD).set_v(1, 0x1234).set_v(2, 0).set_exec(1)
        machine.run(f"v_or_b32_sdwa v0, v1, v2 dst_sel:{destination} dst_unused:{unused} {rest}")
        assert machine.v(0)[:2].tolist() == [wanted, 0xAABBCCDD]


def test_sdwa_takes_signs_of_halves_and_compares() -> None:
    """A half as f16 with its sign flipped; a comparison of bytes."""
    machine = Machine("gfx1030").set_v(0, 0).set_v(1, 0x3C004000).set_v(2, 0x00004200)
    machine.run("v_add_f16_sdwa v0, -v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0")
    assert machine.v(0)[0] == 0x4000  # -1 + 3
    machine.run("v_cmp_eq_u32_sdwa vcc_lo, v1, v2 src0_sel:BYTE_0 src1_sel:WORD_1")
    assert machine.vcc == 0xFFFFFFFF


@pytest.mark.parametrize(
    "text",
    [
        "v_or_b32_sdwa v0, v1, v2 dst_sel:BYTE_4 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
        "v_or_b32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:DWORD",
        "v_or_b32_sdwa v0, -v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
        "v_or_b32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:NIBBLE_0 src1_sel:DWORD",
    ],
)
def test_sdwa_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        compile_text(text, Context(GENERATIONS["gfx1010"], 32))


# Swizzle and permute


@pytest.mark.parametrize(
    ("text", "first_lanes"),
    [
        ("swizzle(SWAP,2)", [2, 3, 0, 1, 6, 7, 4, 5]),
        ("swizzle(REVERSE,8)", [7, 6, 5, 4, 3, 2, 1, 0]),
        ("swizzle(BROADCAST,4,1)", [1, 1, 1, 1, 5, 5, 5, 5]),
        ("swizzle(QUAD_PERM,3,2,1,0)", [3, 2, 1, 0, 7, 6, 5, 4]),
        ('swizzle(BITMASK_PERM,"00p1i")', [3, 2, 3, 2, 7, 6, 7, 6]),
        ("swizzle(ROTATE,0,3)", [3, 4, 5, 6, 7, 8, 9, 10]),
        ("swizzle(ROTATE,1,3)", [29, 30, 31, 0, 1, 2, 3, 4]),
        ("0x801b", [3, 2, 1, 0, 7, 6, 5, 4]),  # quad mode: 2 bits a lane
        ("0x041f", [1, 0, 3, 2, 5, 4, 7, 6]),  # and 0x1f, or 0, xor 1
        ("0xc060", [3, 4, 5, 6, 7, 8, 9, 10]),  # rotate mode: three lanes on
        ("0xc460", [29, 30, 31, 0, 1, 2, 3, 4]),  # and back
        ("0xc061", [2, 5, 4, 7, 6, 9, 8, 11]),  # bit 0 of the lane number stays
        ("32799", [3, 3, 1, 0, 7, 7, 5, 4]),  # 0x801f
    ],
)
def test_swizzle_patterns(text: str, first_lanes: list[int]) -> None:
    assert swizzle_lanes(text)[:8].tolist() == first_lanes


@pytest.mark.parametrize("text", ["swizzle(SPIN,1)", 'swizzle(BITMASK_PERM,"01pi")', "swizzle(SWAP)", "everywhere"])
def test_swizzle_patterns_that_are_not_understood_are_refused(text: str) -> None:
    with pytest.raises((ParseError, ValueError)):
        swizzle_lanes(text)


def test_a_swizzle_stays_in_its_32_lanes_and_reads_zero_from_a_lane_that_is_off() -> None:
    machine = Machine(wave=64).set_exec((1 << 64) - 1 & ~(1 << 33)).set_v(0, OLD).set_v(1, np.arange(64) + 100)
    got = machine.run("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,1)").v(0)
    assert got[:2].tolist() == [101, 100]
    assert got[32:36].tolist() == [0, OLD, 135, 134]


@pytest.mark.parametrize(("target", "lane_0_reads"), [("gfx1100", 3), ("gfx1201", 35)])
def test_bpermute_of_a_wave64_crosses_halves_on_gfx12_only(target: str, lane_0_reads: int) -> None:
    """The address is four times the lane; the offset is added to it. A lane that is off gives 0."""
    machine = Machine(target, 64).set_exec((1 << 64) - 1 & ~(1 << 5)).set_v(0, OLD)
    machine.set_v(1, [4 * 34, 4 * 4, *([0] * 62)]).set_v(2, np.arange(64) + 100)
    got = machine.run("ds_bpermute_b32 v0, v1, v2 offset:4").v(0)
    assert got[:2].tolist() == [100 + lane_0_reads, 0]


@pytest.mark.parametrize("target", ["gfx1030", "gfx1201"])
def test_permute_sends_to_the_named_lane(target: str) -> None:
    """ds_permute_b32: each lane sends; the highest of several senders wins, a lane nobody sends to gets 0."""
    lane = np.arange(32)
    machine = Machine(target).set_v(1, np.where(lane == 9, 5, lane ^ 1) * 4).set_v(2, lane + 100)
    machine.run("ds_permute_b32 v0, v1, v2")
    want = (lane ^ 1) + 100
    want[5], want[8] = 109, 0
    assert machine.state.vector[0, 0].tolist() == want.tolist()
