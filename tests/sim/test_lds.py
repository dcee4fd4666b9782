# SPDX-License-Identifier: Apache-2.0
"""DS instructions on the workgroup's LDS: sizes, pairs, atomics, and the bounds of each workgroup."""

from __future__ import annotations

import numpy as np
import pytest

from redline.sim.compiler import compile_text
from redline.sim.errors import MemoryFault
from redline.sim.generation import GENERATIONS
from redline.sim.operands import ParseError
from redline.sim.step import Context
from tests.sim.machine import Machine

LANES = np.arange(32)


def _machine(target: str = "gfx1100", **options: object) -> Machine:
    machine = Machine(target, lds_bytes=512, **options)  # type: ignore[arg-type]
    machine.state.lds[...] = np.arange(len(machine.state.lds))
    return machine


def test_loads_and_stores_of_every_size() -> None:
    """Dword n of the LDS holds n; offsets are bytes; the result of a narrow load is extended or merged."""
    machine = _machine().set_v(0, 16 * (LANES % 4)).set_v(20, 0xAAAABBBB)
    machine.state.lds[:2] = [0x84039281, 0x08070605]
    machine.run("ds_load_b32 v1, v0 offset:4", "ds_load_b64 v[2:3], v0 offset:8", "ds_load_b96 v[4:6], v0 offset:16")
    machine.run("ds_load_b128 v[8:11], v0 offset:32", "ds_load_u8 v12, v0", "ds_load_i8 v13, v0", "ds_load_u16 v14, v0")
    machine.run("ds_load_i16 v15, v0 offset:2", "ds_load_u16_d16_hi v20, v0")
    lane_1 = [int(machine.v(place)[1]) for place in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11)]
    assert lane_1 == [5, 6, 7, 8, 9, 10, 12, 13, 14, 15]
    lane_0 = [int(machine.v(place)[0]) for place in (12, 13, 14, 15, 20)]
    assert lane_0 == [0x81, 0xFFFFFF81, 0x9281, 0xFFFF8403, 0x9281BBBB]


def test_narrow_loads_into_a_half_keep_the_other() -> None:
    machine = _machine().set_v(0, 0)
    machine.state.lds[0] = 0x11228384
    wanted = {
        "u8_d16": 0xAAAA0084,
        "i8_d16": 0xAAAAFF84,
        "u16_d16": 0xAAAA8384,
        "u8_d16_hi": 0x0084BBBB,
        "i8_d16_hi": 0xFF84BBBB,
        "u16_d16_hi": 0x8384BBBB,
    }
    for name, value in wanted.items():
        assert machine.set_v(1, 0xAAAABBBB).run(f"ds_load_{name} v1, v0").v(1)[7] == value


def test_stores_change_only_their_bytes() -> None:
    machine = _machine().set_exec(1).set_v(0, 0)
    for place in range(4, 8):
        machine.set_v(place, 0x11223344 + place)
    machine.run("ds_store_b8 v0, v4 offset:1", "ds_store_b16 v0, v4 offset:6", "ds_store_b8_d16_hi v0, v4 offset:9")
    machine.run(
        "ds_store_b16_d16_hi v0, v4 offset:12",
        "ds_store_b96 v0, v[4:6] offset:16",
        "ds_store_b128 v0, v[4:7] offset:32",
    )
    words = [0x11223348 + place for place in range(4)]
    assert machine.state.lds[:12].tolist() == [0x4800, 0x33480001, 0x2202, 0x1122, *words[:3], 7, *words]


def test_unaligned_accesses_reach_the_bytes_they_name() -> None:
    machine = _machine().set_v(0, 4 * LANES + 1).run("ds_load_b32 v1, v0", "ds_load_b64 v[2:3], v0 offset:1")
    assert machine.v(1)[3] == 4 << 24
    assert machine.v64(2)[3] == 5 << 48 | 4 << 16
    machine.set_exec(1).set_v(4, 0xAABBCCDD).run("ds_store_b32 v0, v4")
    assert machine.state.lds[:2].tolist() == [0xBBCCDD00, 0xAA]


def test_pairs_count_elements_or_64_elements() -> None:
    machine = _machine().set_v(0, 4 * (LANES % 2))
    machine.run("ds_load_2addr_b32 v[2:3], v0 offset0:3 offset1:1", "ds_load_2addr_stride64_b32 v[4:5], v0 offset1:1")
    assert [int(machine.v(place)[1]) for place in (2, 3, 4, 5)] == [4, 2, 1, 65]
    machine.set_v(0, 8).run("ds_load_2addr_b64 v[6:9], v0 offset0:1 offset1:2")
    assert [int(machine.v(place)[0]) for place in (6, 7, 8, 9)] == [4, 5, 6, 7]
    machine.set_exec(1).set_v(1, 100).set_v(2, 200).run("ds_store_2addr_b32 v0, v1, v2 offset0:4 offset1:6")
    machine.run("ds_store_2addr_stride64_b32 v0, v1, v2 offset1:1")
    assert machine.state.lds[[2, 6, 8, 66]].tolist() == [100, 100, 200, 200]


def test_a_pair_may_overwrite_its_own_address() -> None:
    machine = _machine().set_v(0, 8).run("ds_load_2addr_b32 v[0:1], v0 offset1:1")
    assert (machine.v(0)[0], machine.v(1)[0]) == (2, 3)


def test_workgroups_have_their_own_lds_and_its_bounds() -> None:
    """Two groups of two waves: group 1 finds its own bytes at offset 0, and 512 is outside for both."""
    machine = _machine(groups=[0, 0, 1, 1]).set_v(0, 0).run("ds_load_b32 v1, v0 offset:4")
    assert machine.all_v(1)[:, 0].tolist() == [1, 1, 129, 129]
    machine.set_v(0, 504).run("ds_load_b64 v[2:3], v0")
    with pytest.raises(MemoryFault, match="512 bytes") as caught:
        machine.set_v(0, 508).run("ds_load_b64 v[2:3], v0 offset:4")
    assert caught.value.address == 512
    with pytest.raises(MemoryFault, match="512 bytes"):
        machine.set_v(0, 0xFFFFFFFF).run("ds_store_b8 v0, v1")
    with pytest.raises(MemoryFault, match="512 bytes"):
        machine.set_v(0, 0).run("ds_load_2addr_stride64_b32 v[2:3], v0 offset1:2")


def test_address_and_offset_wrap_at_32_bits() -> None:
    """As compilers rely on: 63 - i becomes -4 * i with an offset of 252. What is outside after that stays so."""
    machine = _machine().set_v(0, -4 * LANES).run("ds_load_b32 v1, v0 offset:252")
    assert machine.v(1).tolist() == (63 - LANES).tolist()
    machine.run("ds_load_2addr_b32 v[2:3], v0 offset0:40 offset1:31")
    assert (machine.v(2).tolist(), machine.v(3).tolist()) == ((40 - LANES).tolist(), (31 - LANES).tolist())
    with pytest.raises(MemoryFault, match="512 bytes") as caught:
        machine.run("ds_load_b32 v1, v0 offset:120")
    assert caught.value.address == 0xFFFFFFFC


def test_lanes_that_are_off_touch_nothing() -> None:
    machine = _machine().set_exec(0b10).set_v(0, [9999, 4, *([9999] * 30)]).set_v(1, 7)
    machine.run("ds_load_b32 v1, v0 offset:4", "ds_store_b32 v0, v1", "ds_add_u32 v0, v1")
    assert machine.v(1)[:3].tolist() == [7, 2, 7]
    assert machine.state.lds[:3].tolist() == [0, 4, 2]
    machine.set_exec(0).run("ds_load_b32 v1, v0", "ds_add_rtn_u32 v1, v0, v1")


def test_a_kernel_without_lds_cannot_reach_any() -> None:
    with pytest.raises(MemoryFault, match="0 bytes"):
        Machine().set_v(0, 0).run("ds_load_b32 v1, v0")


def test_atomics_return_what_the_lanes_before_left() -> None:
    machine = _machine().set_v(0, 4 * (LANES % 2)).set_v(1, 10).run("ds_add_rtn_u32 v2, v0, v1")
    assert machine.v(2)[:6].tolist() == [0, 1, 10, 11, 20, 21]
    assert machine.state.lds[:3].tolist() == [160, 161, 2]
    machine.set_exec(1).set_v(3, 0xFFFFFFFF).run("ds_max_i32 v0, v3 offset:8", "ds_min_rtn_i32 v4, v0, v3 offset:12")
    assert machine.state.lds[2:4].tolist() == [2, 0xFFFFFFFF]
    assert machine.v(4)[0] == 3
    machine.run("ds_storexchg_rtn_b32 v5, v0, v1 offset:16", "ds_rsub_u32 v0, v1 offset:20")
    assert (machine.v(5)[0], machine.state.lds[4], machine.state.lds[5]) == (4, 10, 5)


@pytest.mark.parametrize(
    ("target", "text"),
    [("gfx1100", "ds_cmpstore_rtn_b32 v5, v0, v1, v2"), ("gfx1030", "ds_cmpst_rtn_b32 v5, v0, v2, v1")],
)
def test_compare_and_store_has_its_operands_the_other_way_round_on_gfx10(target: str, text: str) -> None:
    """v1 is the new value, v2 what must stand there."""
    machine = _machine(target).set_exec(1).set_v(0, 12).set_v(1, 99).set_v(2, 3).run(text)
    assert (machine.v(5)[0], machine.state.lds[3]) == (3, 99)
    machine.run(text)
    assert (machine.v(5)[0], machine.state.lds[3]) == (99, 99)


def test_64_bit_and_float_atomics() -> None:
    machine = _machine().set_exec(1).set_v(0, 8).set_v64(2, 1 << 32).set_v(4, 0.5, np.float32)
    machine.run("ds_add_rtn_u64 v[6:7], v0, v[2:3]", "ds_add_f32 v0, v4 offset:8")
    assert machine.v64(6)[0] == 3 << 32 | 2
    assert machine.state.lds[2:5].tolist() == [2, 4, 0x3F000000]
    machine.run("ds_max_rtn_f32 v5, v0, v4 offset:12", "ds_min_num_f32 v0, v4 offset:16")
    assert (machine.v(5)[0], machine.state.lds[5], machine.state.lds[6]) == (5, 0x3F000000, 6)
    with pytest.raises(MemoryFault, match="aligned"):
        machine.set_v(0, 4).run("ds_add_u64 v0, v[2:3]")


def test_gfx10_spellings_mean_the_same() -> None:
    machine = _machine("gfx1030").set_v(0, 8).run("ds_read2_b32 v[2:3], v0 offset1:1", "ds_read_b64 v[4:5], v0")
    assert [int(machine.v(place)[0]) for place in (2, 3, 4, 5)] == [2, 3, 2, 3]
    machine.set_exec(1).run("ds_write2st64_b32 v0, v2, v3 offset1:1", "ds_write_b8 v0, v3 offset:3")
    assert machine.state.lds[[2, 66]].tolist() == [3 << 24 | 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "ds_load_b32 v[0:1], v2",
        "ds_load_b32 v0, s2",
        "ds_load_b32 v0, v1 gds",
        "ds_load_2addr_b32 v[0:1], v2 offset:4",
        "ds_load_2addr_b32 v0, v2",
        "ds_append v0",
        "ds_gws_barrier v0",
        "ds_add_rtn_u32 v0, v1",
        "ds_load_addtid_b32 v0",
        "ds_swizzle_b32 v0, v1",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        compile_text(text, Context(GENERATIONS["gfx1100"], 32))
