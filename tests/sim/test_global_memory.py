# SPDX-License-Identifier: Apache-2.0
"""Loads, stores and atomics on memory: scalar, global, flat and buffer instructions against real allocations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from redline.sim.buffers import DescriptorError
from redline.sim.compiler import compile_text
from redline.sim.errors import MemoryFault
from redline.sim.generation import GENERATIONS
from redline.sim.memory import Memory
from redline.sim.operands import ParseError
from redline.sim.state import PATTERN
from redline.sim.step import Context
from tests.sim.machine import Machine

LANES = np.arange(32, dtype=np.uint64)


@pytest.fixture
def memory() -> Iterator[Memory]:
    memory = Memory()
    yield memory
    memory.close()


def _buffer(memory: Memory, data: bytes) -> int:
    address = memory.allocate(len(data), label="data")
    memory.store(address, data)
    return address


def _machine(memory: Memory, target: str = "gfx1201", *, waves: int = 1) -> Machine:
    machine = Machine(target, waves=waves)
    machine.memory = memory
    return machine


# Scalar loads


def test_scalar_loads_fill_consecutive_registers(memory: Memory) -> None:
    """With an immediate, a negative immediate, a register, and a register plus an immediate; low bits are dropped."""
    at = _buffer(memory, np.arange(64, dtype=np.uint32).tobytes())
    machine = _machine(memory).set_s64(0, at).set_s64(2, at + 34).set_s(4, 8)
    machine.run("s_load_b32 s8, s[0:1], 0x14", "s_load_b32 s9, s[2:3], -0x10", "s_load_b64 s[10:11], s[0:1], s4")
    machine.run("s_load_b128 s[12:15], s[0:1], s4 offset:0x10", "s_load_b512 s[20:35], s[0:1], null")
    assert [machine.s(8), machine.s(9)] == [5, 4]  # 34 - 16 = 18: dword 4
    assert [machine.s(place) for place in range(10, 16)] == [2, 3, 6, 7, 8, 9]
    assert [machine.s(place) for place in range(20, 36)] == list(range(16))


def test_narrow_scalar_loads_extend(memory: Memory) -> None:
    at = _buffer(memory, bytes([0x80, 0xFF, 0x01, 0x80]))
    machine = _machine(memory).set_s64(0, at)
    machine.run("s_load_u8 s4, s[0:1], 0x0", "s_load_i8 s5, s[0:1], 0x0", "s_load_u16 s6, s[0:1], 0x2")
    machine.run("s_load_i16 s7, s[0:1], 0x2")
    assert [machine.s(place) for place in range(4, 8)] == [0x80, 0xFFFFFF80, 0x8001, 0xFFFF8001]


def test_each_wave_loads_from_its_own_address(memory: Memory) -> None:
    at = _buffer(memory, np.arange(16, dtype=np.uint32).tobytes())
    machine = _machine(memory, waves=3).set_s64(0, [at, at + 8, at + 4]).run("s_load_b64 s[4:5], s[0:1], 0x0")
    assert [(machine.s(4, wave), machine.s(5, wave)) for wave in range(3)] == [(0, 1), (2, 3), (1, 2)]


def test_a_load_may_overwrite_its_own_base(memory: Memory) -> None:
    at = _buffer(memory, np.arange(8, dtype=np.uint32).tobytes())
    machine = _machine(memory).set_s64(0, at).run("s_load_b128 s[0:3], s[0:1], 0x10")
    assert [machine.s(place) for place in range(4)] == [4, 5, 6, 7]


def test_a_scalar_load_outside_memory_faults(memory: Memory) -> None:
    at = _buffer(memory, bytes(64))
    with pytest.raises(MemoryFault):
        _machine(memory).set_s64(0, at).run("s_load_b32 s4, s[0:1], 0x40")
    with pytest.raises(MemoryFault):
        _machine(memory, waves=2).set_s64(0, [at, at + 64]).run("s_load_b32 s4, s[0:1], 0x0")


# Global and flat


def test_global_addresses(memory: Memory) -> None:
    """64-bit lane addresses, or a scalar base with unsigned 32-bit lane offsets; signed immediates."""
    at = _buffer(memory, np.arange(64, dtype=np.uint32).tobytes())
    machine = _machine(memory).set_v64(0, at + 4 * LANES).set_v(2, 4 * LANES).set_s64(0, at + 16)
    machine.run("global_load_b32 v4, v[0:1], off", "global_load_b32 v5, v[0:1], off offset:8")
    machine.run("global_load_b32 v6, v2, s[0:1] offset:-16", "flat_load_b32 v7, v[0:1] offset:4")
    assert machine.v(4).tolist() == machine.v(6).tolist() == LANES.tolist()
    assert machine.v(5).tolist() == (LANES + 2).tolist()
    assert machine.v(7).tolist() == (LANES + 1).tolist()


def test_a_lane_offset_is_unsigned(memory: Memory) -> None:
    """0xfffffff0 is nearly 4 GiB, not -16."""
    at = _buffer(memory, bytes(64))
    with pytest.raises(MemoryFault) as caught:
        _machine(memory).set_v(2, 0xFFFFFFF0).set_s64(0, at + 16).run("global_load_b32 v6, v2, s[0:1]")
    assert caught.value.address == at + 16 + 0xFFFFFFF0


def test_lanes_that_are_off_touch_no_memory(memory: Memory) -> None:
    """Their addresses may be anything, and their registers keep what they had."""
    at = _buffer(memory, np.arange(8, dtype=np.uint32).tobytes())
    machine = _machine(memory).set_exec(0b100).set_v64(0, 0xDEAD).set_v(4, 7)
    machine.state.vector[0, 0, 2], machine.state.vector[1, 0, 2] = at + 12 & 0xFFFFFFFF, at >> 32
    machine.run("global_load_b32 v4, v[0:1], off", "global_store_b32 v[0:1], v4, off offset:4")
    assert machine.v(4)[:4].tolist() == [7, 7, 3, 7]
    assert memory.u32_at(at + 16) == 3
    machine.set_exec(0).run("global_load_b32 v4, v[0:1], off", "global_store_b32 v[0:1], v4, off")


def test_loads_of_every_size_extend_or_merge(memory: Memory) -> None:
    at = _buffer(memory, bytes([0x81, 0x92, 0x03, 0x84, *range(5, 17)]))
    machine = _machine(memory).set_v64(0, at)
    for place in range(4, 23):
        machine.set_v(place, 0xAAAABBBB)
    sizes = ["u8 v4", "i8 v5", "u16 v6", "i16 v7", "b64 v[8:9]", "b96 v[10:12]", "b128 v[13:16]"]
    halves = ["d16_b16 v17", "d16_hi_b16 v18", "d16_hi_i8 v19", "d16_u8 v20", "d16_i8 v21", "d16_hi_u8 v22"]
    machine.run(*(f"global_load_{size}, v[0:1], off" for size in sizes + halves))
    got = [int(machine.v(place)[9]) for place in range(4, 23)]
    words = [0x84039281, 0x08070605, 0x0C0B0A09, 0x100F0E0D]
    assert got == [
        *(0x81, 0xFFFFFF81, 0x9281, 0xFFFF9281),
        *words[:2],
        *words[:3],
        *words,
        *(0xAAAA9281, 0x9281BBBB, 0xFF81BBBB, 0xAAAA0081, 0xAAAAFF81, 0x0081BBBB),
    ]


def test_stores_of_every_size_change_only_their_bytes(memory: Memory) -> None:
    at = _buffer(memory, bytes(64))
    machine = _machine(memory).set_exec(1).set_v64(0, at)
    for place in range(4, 8):
        machine.set_v(place, 0x11223344 + place)
    machine.run("global_store_b8 v[0:1], v4, off offset:1", "global_store_d16_hi_b16 v[0:1], v4, off offset:4")
    machine.run("global_store_d16_hi_b8 v[0:1], v4, off offset:7", "global_store_b16 v[0:1], v4, off offset:9")
    machine.run("global_store_b96 v[0:1], v[4:6], off offset:16", "flat_store_b128 v[0:1], v[4:7] offset:32")
    machine.run("global_store_b64 v[0:1], v[4:5], off offset:48")
    want = bytearray(64)
    want[1], want[4:6], want[7], want[9:11] = 0x48, b"\x22\x11", 0x22, b"\x48\x33"
    words = b"".join((0x11223344 + place).to_bytes(4, "little") for place in range(4, 8))
    want[16:28], want[32:48], want[48:56] = words[:12], words, words[:8]
    assert memory.bytes_at(at, 64) == bytes(want)


def test_the_highest_lane_wins_where_stores_overlap(memory: Memory) -> None:
    at = _buffer(memory, bytes(4))
    _machine(memory).set_v64(0, at).set_v(2, LANES).run("global_store_b32 v[0:1], v2, off")
    assert memory.u32_at(at) == 31


def test_cache_policy_means_nothing_here(memory: Memory) -> None:
    at = _buffer(memory, bytes([9, 0, 0, 0]))
    machine = _machine(memory).set_v64(0, at).run("global_load_b32 v2, v[0:1], off th:TH_LOAD_NT scope:SCOPE_SYS")
    assert machine.run("global_load_b32 v3, v[0:1], off glc slc dlc").v(3)[0] == machine.v(2)[0] == 9


# Buffers


def _descriptor(machine: Machine, base: int, records: int, word3: int = 0x30000000) -> Machine:
    return machine.set_s(4, base & 0xFFFFFFFF).set_s(5, base >> 32).set_s(6, records).set_s(7, word3)


def test_buffer_offsets_add_up(memory: Memory) -> None:
    at = _buffer(memory, np.arange(64, dtype=np.uint32).tobytes())
    machine = _descriptor(_machine(memory).set_v(0, 4 * LANES).set_s(8, 8), at, 256)
    machine.run("buffer_load_b32 v4, v0, s[4:7], s8 offen offset:4", "buffer_load_b32 v5, off, s[4:7], null offset:20")
    assert machine.v(4).tolist() == (LANES + 3).tolist()
    assert set(machine.v(5).tolist()) == {5}


def test_each_dword_of_a_buffer_access_is_checked(memory: Memory) -> None:
    """num_records 10 bytes: two dwords are inside, the third ends past it. Outside, loads give 0 and stores vanish."""
    at = _buffer(memory, np.arange(1, 17, dtype=np.uint32).tobytes())
    machine = _descriptor(_machine(memory).set_v(0, [0, 4, 8, 12] * 8), at, 10)
    machine.run("buffer_load_b96 v[4:6], v0, s[4:7], 0 offen", "buffer_load_u16 v7, v0, s[4:7], 0 offen")
    assert [machine.v(place)[:4].tolist() for place in (4, 5, 6)] == [[1, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    assert machine.v(7)[:4].tolist() == [1, 2, 3, 0]  # the two bytes at 8 end at 10
    machine.set_v(0, 4).set_v(8, 77).set_v(9, 88).run("buffer_store_b64 v[8:9], v0, s[4:7], 0 offen")
    assert np.frombuffer(memory.bytes_at(at, 16), np.uint32).tolist() == [1, 77, 3, 4]


def test_a_buffer_load_may_overwrite_its_offset_register(memory: Memory) -> None:
    at = _buffer(memory, np.arange(1, 17, dtype=np.uint32).tobytes())
    machine = _descriptor(_machine(memory).set_v(0, 4), at, 64).run("buffer_load_b64 v[0:1], v0, s[4:7], 0 offen")
    assert (machine.v(0)[0], machine.v(1)[0]) == (2, 3)


def test_scalar_buffer_loads_give_zero_outside(memory: Memory) -> None:
    at = _buffer(memory, np.arange(1, 17, dtype=np.uint32).tobytes())
    machine = _descriptor(_machine(memory), at, 12).run("s_buffer_load_b128 s[8:11], s[4:7], 0x4")
    assert [machine.s(place) for place in range(8, 12)] == [2, 3, 0, 0]


@pytest.mark.parametrize(
    ("word1", "word3"), [(0x00010000, 0x30000000), (0x80000000, 0x30000000), (0, 0x10000000), (0, 0x70000000)]
)
def test_descriptors_that_are_not_raw_buffers_are_refused(memory: Memory, word1: int, word3: int) -> None:
    """A stride, a swizzle, another range rule, another type."""
    machine = _descriptor(_machine(memory), 0, 64, word3).set_s(5, word1).set_v(0, 0)
    with pytest.raises(DescriptorError):
        machine.run("buffer_load_b32 v4, v0, s[4:7], 0 offen")


# Atomics

# name, old, data, new: the manuals' pseudo-code
ATOMICS = [
    ("add_u32", 0xFFFFFFFF, 2, 1),
    ("sub_u32", 1, 2, 0xFFFFFFFF),
    ("min_i32", 5, 0xFFFFFFFF, 0xFFFFFFFF),
    ("min_u32", 5, 0xFFFFFFFF, 5),
    ("max_i32", 5, 0xFFFFFFFF, 5),
    ("max_u32", 5, 0xFFFFFFFF, 0xFFFFFFFF),
    ("and_b32", 0b1100, 0b1010, 0b1000),
    ("or_b32", 0b1100, 0b1010, 0b1110),
    ("xor_b32", 0b1100, 0b1010, 0b0110),
    ("inc_u32", 7, 7, 0),
    ("inc_u32", 6, 7, 7),
    ("dec_u32", 0, 7, 7),
    ("dec_u32", 9, 7, 7),
    ("dec_u32", 3, 7, 2),
    ("dec_u32", 7, 7, 6),
    ("swap_b32", 1, 2, 2),
]


@pytest.mark.parametrize(("name", "old", "data", "new"), ATOMICS)
def test_an_atomic_replaces_the_value_and_can_return_the_old_one(
    memory: Memory, name: str, old: int, data: int, new: int
) -> None:
    at = _buffer(memory, np.array([old, old], np.uint32).tobytes())
    machine = _machine(memory).set_exec(1).set_v64(0, at).set_v(2, data).set_v(3, 0)
    machine.run(f"global_atomic_{name} v3, v[0:1], v2, off th:TH_ATOMIC_RETURN")
    machine.run(f"global_atomic_{name} v[0:1], v2, off offset:4")
    assert (memory.u32_at(at), memory.u32_at(at + 4), machine.v(3)[0], machine.v(3)[1]) == (new, new, old, 0)


def test_64_bit_atomics_and_compare_and_swap(memory: Memory) -> None:
    """The new value is in the first data registers, the value to compare with behind it."""
    at = _buffer(memory, np.array([1 << 40, 5, 5], np.uint64).tobytes())
    machine = _machine(memory).set_exec(1).set_v64(0, at).set_v64(2, 1).set_v64(4, 5).set_v(8, 9).set_v(9, 5)
    machine.run("global_atomic_add_u64 v[6:7], v[0:1], v[2:3], off th:TH_ATOMIC_RETURN")
    machine.run("global_atomic_cmpswap_b64 v[0:1], v[2:5], off offset:8")
    machine.run("flat_atomic_cmpswap_b32 v10, v[0:1], v[8:9] offset:16 th:TH_ATOMIC_RETURN")
    assert machine.v64(6)[0] == 1 << 40
    assert [memory.u64_at(at + 8 * i) for i in range(3)] == [(1 << 40) + 1, 1, 9]
    assert machine.v(10)[0] == 5
    machine.run("flat_atomic_cmpswap_b32 v10, v[0:1], v[8:9] offset:16 th:TH_ATOMIC_RETURN")
    assert (machine.v(10)[0], memory.u64_at(at + 16)) == (9, 9)


@pytest.mark.parametrize("addresses", [1, 3, 32])
@pytest.mark.parametrize("name", ["add_u32", "max_i32", "swap_b32", "inc_u32", "sub_u32", "xor_b32"])
def test_lanes_that_share_an_address_act_in_order(memory: Memory, name: str, addresses: int) -> None:
    """Two waves; lower waves and lanes first, each seeing what those before it left."""
    random = np.random.default_rng(addresses)
    at = _buffer(memory, random.integers(0, 50, addresses).astype(np.uint32).tobytes())
    place, data = random.integers(0, addresses, (2, 32)), random.integers(0, 1 << 32, (2, 32), np.uint64)
    cells = np.frombuffer(memory.bytes_at(at, 4 * addresses), np.uint32).tolist()
    functions: dict[str, Callable[[int, int], int]] = {
        "add_u32": lambda old, x: old + x & 0xFFFFFFFF,
        "sub_u32": lambda old, x: old - x & 0xFFFFFFFF,
        "max_i32": lambda old, x: max(old, x, key=lambda v: v - (v >> 31 << 32)),
        "swap_b32": lambda old, x: x,
        "inc_u32": lambda old, x: 0 if old >= x else old + 1,
        "xor_b32": lambda old, x: old ^ x,
    }
    returned = []
    for cell, x in zip(place.reshape(-1).tolist(), data.reshape(-1).tolist(), strict=True):
        returned.append(cells[cell])
        cells[cell] = functions[name](cells[cell], x)
    machine = _machine(memory, waves=2).set_v64(0, at + 4 * place.astype(np.uint64)).set_v(2, data.astype(np.uint32))
    machine.run(f"global_atomic_{name} v3, v[0:1], v2, off th:TH_ATOMIC_RETURN")
    assert machine.all_v(3).reshape(-1).tolist() == returned
    assert np.frombuffer(memory.bytes_at(at, 4 * addresses), np.uint32).tolist() == cells


def test_float_atomics_round_after_each_lane(memory: Memory) -> None:
    """1 + 2^-24, many times over, stays 1; a sum made first would not."""
    at = _buffer(memory, np.array([1.0], np.float32).tobytes())
    _machine(memory).set_v64(0, at).set_v(2, 2.0**-24, np.float32).run("global_atomic_add_f32 v[0:1], v2, off")
    assert memory.u32_at(at) == 0x3F800000


def test_a_misaligned_atomic_faults(memory: Memory) -> None:
    at = _buffer(memory, bytes(16))
    with pytest.raises(MemoryFault, match="aligned"):
        _machine(memory).set_v64(0, at + 2).set_v(2, 1).run("global_atomic_add_u32 v[0:1], v2, off")


def test_a_buffer_atomic_returns_into_its_data_register(memory: Memory) -> None:
    """Lanes outside the buffer do nothing and get 0."""
    at = _buffer(memory, np.array([10, 20, 30, 40], np.uint32).tobytes())
    machine = _descriptor(_machine(memory, "gfx1030").set_exec(0xF).set_v(0, [0, 4, 8, 12] * 8).set_v(1, 1), at, 8)
    machine.run("buffer_atomic_add v1, v0, s[4:7], 0 offen glc")
    assert machine.v(1)[:5].tolist() == [10, 20, 0, 0, 1]
    assert np.frombuffer(memory.bytes_at(at, 16), np.uint32).tolist() == [11, 21, 30, 40]


def test_a_buffer_compare_and_swap_returns_into_the_first_of_two() -> None:
    """gfx11 spelling, 64 bits: v[2:3] is the new value and becomes the old one, v[4:5] stays."""
    memory = Memory()
    at = _buffer(memory, np.array([7, 8], np.uint64).tobytes())
    machine = _descriptor(_machine(memory, "gfx1100").set_exec(0b11).set_v(0, [0, 8] * 16), at, 16)
    machine.set_v64(2, 99).set_v64(4, 8).run("buffer_atomic_cmpswap_b64 v[2:5], v0, s[4:7], 0 offen glc")
    assert machine.v64(2)[:3].tolist() == [7, 8, 99]
    assert machine.v64(4)[:2].tolist() == [8, 8]
    assert [memory.u64_at(at), memory.u64_at(at + 8)] == [7, 99]
    memory.close()


@pytest.mark.parametrize(
    "text",
    [
        "global_load_b32 v[0:1], v[2:3], off",
        "global_load_b32 v0, v2, off",
        "global_load_b32 v0, v[2:3]",
        "global_load_b32 v0, v[2:3], off lds",
        "global_load_b32 s0, v[2:3], off",
        "global_load_lds_dword v[2:3], off",
        "buffer_load_b32 v0, v1, s[4:7], 0 idxen",
        "buffer_load_b32 v0, v1, s[4:7], 0",
        "buffer_load_b32 v0, v1, s[4:5], 0 offen",
        "buffer_load_format_x v0, v1, s[4:7], 0 idxen",
        "global_atomic_add_u32 v0, v[2:3], v[4:5], off glc",
        "global_atomic_ordered_add_b64 v[0:1], v[2:3], v[4:5], off glc",
        "s_load_b64 s4, s[0:1], 0x0",
        "s_load_b32 exec_lo, s[0:1], 0x0",
        "s_load_b32 s4, s[0:1], 0x0 lds",
        "s_store_dword s4, s[0:1], 0x0",
        "s_atomic_add s4, s[0:1], 0x0",
        "scratch_store_b32 off, v0, s32",
        "tbuffer_load_format_x v0, v1, s[4:7], 0 idxen",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        compile_text(text, Context(GENERATIONS["gfx1100"], 32))


def test_pattern_stays_where_nothing_is_written(memory: Memory) -> None:
    """Registers start as a pattern, so that a kernel which relies on zeros shows."""
    assert _machine(memory).v(31).tolist() == [PATTERN] * 32
    assert np.isnan(np.uint32(PATTERN).view(np.float32))
