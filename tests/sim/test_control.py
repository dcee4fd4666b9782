# SPDX-License-Identifier: Apache-2.0
"""Where control instructions send waves, and which instructions have no effect."""

from __future__ import annotations

import numpy as np
import pytest

from redline.sim.compiler import compile_text
from redline.sim.control import NO_EFFECT
from redline.sim.generation import GENERATIONS
from redline.sim.operands import VCC, ParseError
from redline.sim.step import Context, Event
from tests.sim.machine import NEXT, Machine

ELSEWHERE = NEXT + 4 * 16


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("s_branch 16", ELSEWHERE),
        ("s_branch 65535", NEXT - 4),
        ("s_branch 0", NEXT),
        ("s_branch 32768", NEXT - 4 * 32768),
    ],
)
def test_displacements_are_signed_dwords_from_the_next_instruction(text: str, target: int) -> None:
    assert Machine().jump(text) == target


@pytest.mark.parametrize("scc", [False, True])
def test_branches_on_scc(scc: bool) -> None:
    machine = Machine().set_scc(scc)
    assert machine.jump("s_cbranch_scc1 16") == (ELSEWHERE if scc else None)
    assert machine.jump("s_cbranch_scc0 16") == (None if scc else ELSEWHERE)


@pytest.mark.parametrize("wave", [32, 64])
def test_vccz_of_a_wave32_looks_at_vcc_lo_only(wave: int) -> None:
    machine = Machine(wave=wave).set_vcc(1 << 40)
    zero = wave == 32
    assert machine.jump("s_cbranch_vccz 16") == (ELSEWHERE if zero else None)
    assert machine.jump("s_cbranch_vccnz 16") == (None if zero else ELSEWHERE)


@pytest.mark.parametrize("wave", [32, 64])
def test_branches_on_exec(wave: int) -> None:
    machine = Machine(wave=wave).set_exec(1 << wave - 1)
    assert machine.jump("s_cbranch_execz 16") is None
    assert machine.jump("s_cbranch_execnz 16") == ELSEWHERE
    machine.set_exec(0)
    assert machine.jump("s_cbranch_execz 16") == ELSEWHERE
    assert machine.jump("s_cbranch_execnz 16") is None


def test_waves_that_disagree_get_one_address_each() -> None:
    machine = Machine(waves=3)
    machine.state.scc[:, 0] = [True, False, True]
    assert np.asarray(machine.jump("s_cbranch_scc1 16")).tolist() == [ELSEWHERE, NEXT, ELSEWHERE]
    assert np.asarray(machine.jump("s_cbranch_scc0 16")).tolist() == [NEXT, ELSEWHERE, NEXT]


def test_waves_may_disagree_about_exec_and_vcc() -> None:
    machine = Machine(waves=2).set_exec([0, 8]).set_s(VCC, [1, 0])
    assert np.asarray(machine.jump("s_cbranch_execz 16")).tolist() == [ELSEWHERE, NEXT]
    assert np.asarray(machine.jump("s_cbranch_vccz 16")).tolist() == [NEXT, ELSEWHERE]


def test_the_program_counter_in_registers() -> None:
    """s_getpc gives the next instruction; s_swappc reads its target before it writes the return address."""
    machine = Machine()
    assert machine.jump("s_getpc_b64 s[4:5]") is None
    assert machine.s64(4) == NEXT
    machine.set_s64(4, 0x2000)
    assert machine.jump("s_swappc_b64 s[4:5], s[4:5]") == 0x2000
    assert machine.s64(4) == NEXT
    assert machine.jump("s_setpc_b64 s[4:5]") == NEXT
    assert machine.jump("s_call_b64 s[6:7], 16") == ELSEWHERE
    assert machine.s64(6) == NEXT


def test_waves_may_jump_to_their_own_addresses() -> None:
    machine = Machine(waves=2).set_s64(4, [0x2000, 0x3000])
    assert np.asarray(machine.jump("s_setpc_b64 s[4:5]")).tolist() == [0x2000, 0x3000]


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("s_endpgm", Event.END),
        ("s_barrier", Event.BARRIER),
        ("s_barrier_signal -1", Event.SIGNAL),
        ("s_barrier_wait 0xffff", Event.WAIT),
        ("s_barrier_wait -1", Event.WAIT),
    ],
)
def test_events(text: str, event: Event) -> None:
    assert Machine().jump(text) is event


@pytest.mark.parametrize(
    "text",
    [
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "s_waitcnt_vscnt null, 0x0",
        "s_waitcnt_depctr depctr_va_vdst(0)",
        "s_wait_alu depctr_va_vcc(0)",
        "s_wait_loadcnt_dscnt 0x0",
        "s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_1) | instid1(VALU_DEP_1)",
        "s_clause 0x2",
        "s_nop 0",
        "global_inv scope:SCOPE_SE",
        "buffer_gl0_inv",
    ],
)
def test_waits_and_hints_change_nothing(text: str) -> None:
    machine = Machine()
    before = [machine.state.vector.copy(), machine.state.scalar.copy(), machine.state.scc.copy()]
    machine.run(text)
    for old, new in zip(before, (machine.state.vector, machine.state.scalar, machine.state.scc), strict=True):
        np.testing.assert_array_equal(old, new)


def test_giving_registers_back_is_the_only_message() -> None:
    assert Machine().jump("s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)") is None
    with pytest.raises(ParseError):
        Machine().jump("s_sendmsg sendmsg(MSG_INTERRUPT)")


@pytest.mark.parametrize(
    "text",
    [
        "s_branch",
        "s_branch 65536",
        "s_cbranch_cdbgsys 16",
        "s_barrier_signal -2",
        "s_barrier_signal m0",
        "s_barrier_wait 0xfffe",
        "s_barrier_signal_isfirst -1",
        "s_setpc_b64 s4",
        "s_endpgm_saved",
        "s_sethalt 1",
        "s_rfe_b64 s[0:1]",
        "s_waitcnt_everything 0",
        "s_code_end",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    """An unknown s_* is never taken for one without effect."""
    with pytest.raises((ParseError, ValueError)):
        compile_text(text, Context(GENERATIONS["gfx1100"], 32))


def test_the_list_of_instructions_without_effect_holds_no_other() -> None:
    """Each is a wait, a hint or cache maintenance by its name."""
    words = ("wait", "nop", "clause", "delay", "prefetch", "sleep", "setprio", "inv", "wb")
    assert [name for name in NO_EFFECT if not any(word in name for word in words)] == []
