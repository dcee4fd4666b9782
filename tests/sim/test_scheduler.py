# SPDX-License-Identifier: Apache-2.0
"""Waves that part and meet, barriers, spinning, faults: small programs on the executor, in every running order.

Programs are lists of texts for `Listing`; a displacement counts instructions. User data: s[0:1] is the address of the
buffer; the workgroup's x, y, z are s2, s3, s4.
"""

from __future__ import annotations

import copy
import threading
from unittest.mock import patch

import numpy as np
import pytest

from redline.sim.errors import (
    BarrierFault,
    Cancelled,
    MemoryFault,
    UndecodableInstruction,
    UnsupportedInstruction,
)
from redline.sim.scheduler import Policy
from tests.sim.machine import Listing

ORDERS = {
    "all": Policy(),
    "all-shuffled": Policy(seed=2),
    "all-quota-1": Policy(quota=1),
    "one": Policy(batch=1),
    "one-shuffled": Policy(batch=1, seed=1),
    "three": Policy(batch=3),
    "three-shuffled": Policy(batch=3, seed=3),
    "eleven-shuffled": Policy(batch=11, seed=4),
}

# v0 = work-item x; s8 = wave number in the group; v1 = byte offset of the group's work-item; v2 scratch
PROLOGUE = [
    "v_and_b32 v0, 0x3ff, v0",
    "v_readfirstlane_b32 s8, v0",
    "s_lshr_b32 s8, s8, 5",
    "s_lshl_b32 s9, s2, 10",
    "v_lshl_add_u32 v1, v0, 2, s9",
]


@pytest.fixture(params=list(ORDERS.values()), ids=list(ORDERS))
def policy(request: pytest.FixtureRequest) -> Policy:
    chosen: Policy = request.param
    return chosen


def _run(texts: list[str], policy: Policy, *, groups: int = 1, block: int = 256, lds_bytes: int = 0) -> list[int]:
    """What the program leaves in 256 dwords a group, which it finds at s[0:1]; they start as 0."""
    with Listing(*texts, policy=policy) as listing:
        out = listing.memory.allocate(1024 * groups, label="out")
        listing.memory.store(out, bytes(1024 * groups))
        user = (out & 0xFFFFFFFF, out >> 32)
        listing.dispatch(groups=(groups, 1, 1), block=(block, 1, 1), user_data=user, lds_bytes=lds_bytes)
        left = np.frombuffer(listing.memory.bytes_at(out, 1024 * groups), np.uint32)
        return [int(value) for value in left]


def test_loops_of_different_length_part_and_meet(policy: Policy) -> None:
    """Wave w goes round w + 1 times; every wave then adds 1000 where the ways join."""
    program = [
        *PROLOGUE,
        "v_mov_b32 v2, 0",
        "s_mov_b32 s10, 0",
        "v_add_nc_u32 v2, 3, v2",  # loop
        "s_add_i32 s10, s10, 1",
        "s_cmp_le_u32 s10, s8",
        "s_cbranch_scc1 65532",  # -4
        "v_add_nc_u32 v2, 0x3e8, v2",
        "global_store_b32 v1, v2, s[0:1]",
        "s_endpgm",
    ]
    got = _run(program, policy, groups=3)
    assert got == [1000 + 3 * (lane // 32 + 1) for lane in range(256)] * 3


def test_waves_meet_after_ways_of_any_pattern(policy: Policy) -> None:
    """Three bits of the wave number choose three ways in turn, so that neighbours part again and again."""
    program = [*PROLOGUE, "v_mov_b32 v2, 0"]
    for bit in range(3):
        program += [
            f"s_bitcmp1_b32 s8, {bit}",
            "s_cbranch_scc1 2",
            f"v_add_nc_u32 v2, {1 << bit}, v2",
            "s_branch 1",
            f"v_add_nc_u32 v2, {16 << bit}, v2",
        ]
    program += ["global_store_b32 v1, v2, s[0:1]", "s_endpgm"]
    want = [sum(16 << bit if lane // 32 >> bit & 1 else 1 << bit for bit in range(3)) for lane in range(256)]
    assert _run(program, policy, groups=4) == want * 4


def test_every_wave_may_jump_somewhere_else(policy: Policy) -> None:
    """s_setpc to four places, in an order that is not the waves'; they meet at the end."""
    program = [
        *PROLOGUE,
        "s_xor_b32 s10, s8, 2",
        "s_and_b32 s10, s10, 3",
        "s_lshl_b32 s10, s10, 3",
        "s_getpc_b64 s[12:13]",
        "s_add_u32 s12, s12, s10",
        "s_addc_u32 s13, s13, 0",
        "s_add_u32 s12, s12, 20",
        "s_setpc_b64 s[12:13]",
        "s_endpgm",
        "v_mov_b32 v2, 100",
        "s_branch 5",
        "v_mov_b32 v2, 101",
        "s_branch 3",
        "v_mov_b32 v2, 102",
        "s_branch 1",
        "v_mov_b32 v2, 103",
        "global_store_b32 v1, v2, s[0:1]",
        "s_endpgm",
    ]
    assert _run(program, policy) == [100 + (lane // 32 ^ 2) % 4 for lane in range(256)]


BARRIERS = [["s_barrier"], ["s_barrier_signal -1", "s_nop 0", "s_barrier_wait 0xffff"]]


@pytest.mark.parametrize("barrier", BARRIERS, ids=["whole", "split"])
def test_a_barrier_holds_a_workgroup_and_no_other(policy: Policy, barrier: list[str]) -> None:
    """Four times over, each work-item adds what its mirror image stored; odd waves take longer to arrive."""
    program = [*PROLOGUE, "v_lshlrev_b32 v3, 2, v0", "v_sub_nc_u32 v5, 0x3fc, v3", "v_add_nc_u32 v2, s2, v0"]
    for _ in range(4):
        program += [
            "s_bitcmp1_b32 s8, 0",
            "s_cbranch_scc0 3",
            "s_nop 0",
            "s_nop 0",
            "s_nop 0",
            "ds_store_b32 v3, v2",
            *barrier,
            "ds_load_b32 v4, v5",
            "v_lshl_add_u32 v2, v2, 1, v4",
            *barrier,
        ]
    program += ["global_store_b32 v1, v2, s[0:1]", "s_endpgm"]
    want = []
    for group in range(5):
        values = np.arange(256) + group
        for _ in range(4):
            values = 2 * values + values[::-1]
        want += values.tolist()
    assert _run(program, policy, groups=5, lds_bytes=1024) == want


def test_a_barrier_does_not_wait_for_waves_that_have_ended(policy: Policy) -> None:
    """Waves 4 to 7 leave before it, some of them after the others have arrived."""
    program = [
        *PROLOGUE,
        "v_mov_b32 v2, 1",
        "s_cmp_lt_u32 s8, 4",
        "s_cbranch_scc1 3",
        "s_nop 0",
        "s_nop 0",
        "s_endpgm",
        "s_barrier",
        "global_store_b32 v1, v2, s[0:1]",
        "s_endpgm",
    ]
    assert _run(program, policy) == [1] * 128 + [0] * 128


def test_barriers_at_different_places_are_one_barrier(policy: Policy) -> None:
    program = [
        *PROLOGUE,
        "v_mov_b32 v2, 5",
        "s_bitcmp1_b32 s8, 0",
        "s_cbranch_scc1 2",
        "s_barrier",
        "s_branch 2",
        "v_mov_b32 v2, 6",
        "s_barrier",
        "global_store_b32 v1, v2, s[0:1]",
        "s_endpgm",
    ]
    assert _run(program, policy) == [5 + lane // 32 % 2 for lane in range(256)]


def test_waiting_for_a_barrier_that_nobody_completes_is_a_fault(policy: Policy) -> None:
    """A split barrier that is waited for and never signalled."""
    with pytest.raises(BarrierFault, match="8 waves"):
        _run([*PROLOGUE, "s_barrier_wait 0xffff", "s_endpgm"], policy)


@pytest.mark.parametrize(
    "policy", [Policy(quota=50), Policy(batch=1, quota=50), Policy(seed=3)], ids=["all", "one", "any"]
)
def test_a_wave_may_spin_on_what_another_will_store(policy: Policy) -> None:
    """Wave 0 spins at the lowest address; without a quota the others would never run."""
    program = [
        *PROLOGUE,
        "s_cmp_eq_u32 s8, 0",
        "s_cbranch_scc0 6",
        "s_load_b32 s10, s[0:1], 0x3fc",  # spin
        "s_cmp_eq_u32 s10, 0",
        "s_cbranch_scc1 65533",  # -3
        "v_mov_b32 v2, s10",
        "global_store_b32 v1, v2, s[0:1]",
        "s_endpgm",
        "v_mov_b32 v2, 42",
        "global_store_b32 v1, v2, s[0:1]",
        "s_endpgm",
    ]
    assert _run(program, policy) == [42] * 256


def test_lockstep_and_one_wave_at_a_time_differ_where_a_kernel_races() -> None:
    """Every wave adds 1 to one dword without an atomic: that is what small batches are for."""
    program = [*PROLOGUE, "v_mov_b32 v3, 0", "global_load_b32 v2, v3, s[0:1]", "v_add_nc_u32 v2, 1, v2"]
    program += ["global_store_b32 v3, v2, s[0:1]", "s_endpgm"]
    assert _run(program, Policy())[0] == 1
    assert _run(program, Policy(batch=1))[0] == 8


# Faults name the instruction


def test_an_instruction_outside_the_table_stops_with_its_address_and_text() -> None:
    with Listing("s_nop 0", "v_unheard_of_b32 v0, v1", "s_endpgm") as listing:
        with pytest.raises(UnsupportedInstruction, match="v_unheard_of_b32 v0, v1") as caught:
            listing.dispatch()
        assert caught.value.pc == listing.entry + 4


def test_an_instruction_that_is_not_reached_does_no_harm() -> None:
    with Listing("s_branch 1", "v_unheard_of_b32 v0, v1", "s_endpgm") as listing:
        listing.dispatch()


def test_bytes_that_are_no_instruction_are_a_fault_when_reached() -> None:
    with Listing("s_nop 0", "", "s_endpgm") as listing:
        with pytest.raises(UndecodableInstruction) as caught:
            listing.dispatch()
        assert caught.value.pc == listing.entry + 4


def test_running_off_the_end_of_the_code_is_a_fault() -> None:
    """The code after s_endpgm, or a jump out of the allocation, is not there."""
    with Listing("s_nop 0") as listing, pytest.raises(MemoryFault, match="instruction fetch"):
        listing.dispatch()
    with Listing("s_branch 100", "s_endpgm") as listing, pytest.raises(MemoryFault, match="instruction fetch"):
        listing.dispatch()


def test_data_cannot_be_executed() -> None:
    program = ["s_setpc_b64 s[0:1]", "s_endpgm"]
    with Listing(*program) as listing:
        data = listing.memory.allocate(64, label="data")
        listing.memory.store(data, np.ones(16, np.uint32).tobytes())
        with pytest.raises(MemoryFault, match="executable"):
            listing.dispatch(user_data=(data & 0xFFFFFFFF, data >> 32))
        with pytest.raises(MemoryFault, match="misaligned"):
            listing.dispatch(user_data=(listing.entry + 2 & 0xFFFFFFFF, listing.entry >> 32))


def test_a_register_beyond_the_allocation_is_a_fault() -> None:
    """RSRC1 of `Listing` gives a wave32 64 vector registers."""
    program = ["v_mov_b32 v63, 0", "v_lshlrev_b64 v[63:64], 1, v[62:63]", "s_endpgm"]
    with Listing(*program) as listing, pytest.raises(UnsupportedInstruction, match="register 64 of 64"):
        listing.dispatch()


def test_a_memory_fault_names_the_instruction() -> None:
    with Listing("v_mov_b32 v2, 0", "global_load_b32 v3, v2, s[0:1]", "s_endpgm") as listing:
        with pytest.raises(MemoryFault, match="global_load_b32 v3, v2") as caught:
            listing.dispatch(user_data=(64, 0))
        assert caught.value.address == 64


def test_a_descriptor_that_is_not_understood_names_the_instruction() -> None:
    program = ["s_mov_b32 s7, 0", "buffer_load_b32 v3, off, s[4:7], 0", "s_endpgm"]
    with Listing(*program) as listing, pytest.raises(UnsupportedInstruction, match="buffer_load_b32 v3"):
        listing.dispatch()


def test_a_cancelled_dispatch_stops_in_an_endless_loop() -> None:
    with Listing("s_branch 65535") as listing:
        timer = threading.Timer(0.05, listing.cancelled.set)
        timer.start()
        with pytest.raises(Cancelled):
            listing.dispatch()
        timer.join()


# Code is what stands in memory


def test_code_is_read_again_for_every_dispatch() -> None:
    """Another instruction in its place is executed by the next dispatch, and the old one when it is back."""
    with Listing("s_mov_b32 s5, 1", "s_mov_b32 s5, 2", "v_mov_b32 v2, s5") as listing:
        out = listing.memory.allocate(4, label="out")
        listing.texts += ["v_mov_b32 v3, 0", "global_store_b32 v3, v2, s[0:1]", "s_endpgm"]
        code = listing.memory.allocate(20, label="code", executable=True)
        user = (out & 0xFFFFFFFF, out >> 32)
        for first, want in ((0, 1), (1, 2), (0, 1)):
            numbers = np.array([first, 2, 3, 4, 5], np.uint32)
            listing.memory.store(code, numbers.tobytes())
            listing.dispatch(entry=code, user_data=user)
            assert listing.memory.u32_at(out) == want
        assert listing.decoded == 2  # the third time both texts are known by their bytes


def test_freed_code_cannot_be_run_again() -> None:
    with Listing("s_nop 0", "s_endpgm") as listing:
        listing.dispatch()
        listing.memory.free(listing.entry)
        with pytest.raises(MemoryFault):
            listing.dispatch()


def test_the_same_bytes_as_data_cannot_be_run_again() -> None:
    with Listing("s_nop 0", "s_endpgm") as listing:
        listing.dispatch()
        listing.memory.free(listing.entry)
        assert listing.memory.allocate(8, label="data") == listing.entry
        listing.memory.store(listing.entry, np.arange(2, dtype=np.uint32).tobytes())
        with pytest.raises(MemoryFault, match="executable"):
            listing.dispatch()


def test_code_of_another_memory_is_another_program() -> None:
    """The same bytes at the same address of another memory: what was not read before is read there."""
    program = ["s_cmp_eq_u32 s0, 0", "s_cbranch_scc1 200", *["s_endpgm"] * 201]
    with Listing(*program) as listing:
        listing.dispatch(user_data=(1,))
        earlier, listing.memory = listing.memory, copy.copy(listing.memory)  # another one over the same bytes
        gone = AssertionError("the earlier memory was asked")
        with patch.object(earlier, "find", side_effect=gone), patch.object(earlier, "bytes_at", side_effect=gone):
            listing.dispatch(user_data=(0,))


def test_long_programs_are_read_in_pieces() -> None:
    """More code than one window, with a jump back and forth across its border."""
    program = ["s_mov_b32 s5, 0", *["s_add_u32 s5, s5, 1"] * 400, "s_branch 2", "s_endpgm", "s_nop 0"]
    program += ["s_cmp_eq_u32 s5, 0x190", "s_cbranch_scc1 1", "v_unheard_of", "s_branch 65530"]  # to the s_endpgm
    with Listing(*program) as listing:
        listing.dispatch()
        assert listing.decoded > 1
