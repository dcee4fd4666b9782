# SPDX-License-Identifier: Apache-2.0
"""The certifier's registers against the software device's: what an instruction writes, and what its result hangs on.

Two implementations that share nothing. For each opcode: a register that the device changed, the certifier must take for
written; and where turning a source over changes a result, that result must remember the source. Results that hold no
bits of a pointer are left out: masks of lanes, and numbers of at most eight bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from radiowave import Disassembler
from radiowave.flow_state import State, first_state
from radiowave.operands import EXEC, M0, VCC, Operand, Operation, parse
from radiowave.scalar_flow import scalar_step
from radiowave.values import SMALL, Base, Other, Value, atoms_of, exact_pair
from radiowave.vector_flow import vector_step
from redline.sim.operands import ParseError
from tests.radiowave.opcodes import texts
from tests.sim.machine import Machine

TARGETS = ("gfx1010", "gfx1100", "gfx1201")
VGPRS, SGPRS = 48, 106
# Control flow is followed by `flow.py`; interpolation belongs to graphics; the rest ends a proof on purpose.
ELSEWHERE = (
    "s_branch s_cbranch_ s_call_ s_setpc s_set_pc s_swappc s_getpc s_rfe s_endpgm s_subvector_loop s_movreld"
    " s_movrelsd_2 v_interp s_wait_idle s_wait_event s_monitor_sleep s_ttracedata s_get_pc s_swap_pc s_wakeup_barrier"
)
UNKNOWN = tuple(ELSEWHERE.split())

Registers = tuple[NDArray[np.uint32], NDArray[np.uint32]]


@pytest.fixture(scope="module", params=TARGETS)
def listed(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[str]]]:
    """A target and its opcodes."""
    with Disassembler() as disassembler:
        yield request.param, list(texts(request.param, 32, disassembler))


def fresh() -> State:
    """Every register remembers its own number."""
    state = first_state(32)
    state.scalars.update((n, Other(frozenset({("scalar", n)}))) for n in (*range(SGPRS), VCC, VCC + 1, M0))
    state.active.update((n, frozenset({("vector", n)})) for n in range(VGPRS))
    return state


def pointers() -> State:
    """Every pair of scalar registers is a pointer, so that arithmetic on one in its own place shows."""
    state = fresh()
    for number in (*range(SGPRS), VCC, VCC + 1, M0):
        state.scalars[number] = exact_pair(Base("argument", number // 2 * 8, True))[number % 2]
    return state


def step(text: str, state: State) -> bool:
    """Run one instruction of either kind."""
    operations = parse(text)
    if operations[0].name.startswith("v_"):
        return vector_step(operations, state)
    return scalar_step(operations[0], state, "here")


def test_every_opcode_is_known(listed: tuple[str, list[str]]) -> None:
    """What LLVM decodes, the certifier knows; what it refuses on purpose is on a list."""
    _target, found = listed
    assert len(found) > 600
    assert [t for t in found if not t.startswith(UNKNOWN) and not step(t, fresh())] == []


def machine(target: str, turned: Operand | None = None) -> Machine:
    """Registers full of noise; one operand's bits turned over."""
    made = Machine(target, 32, vgprs=VGPRS)
    noise = np.random.default_rng(7)
    made.state.vector[:VGPRS, 0] = noise.integers(0, 1 << 32, (VGPRS, 32), np.uint32)
    made.state.scalar[0, :EXEC] = noise.integers(0, 1 << 32, EXEC, np.uint32)
    made.state.scalar[0, M0] = 3
    if turned is not None:
        for number in turned.registers:
            if turned.bank == "v":
                made.state.vector[number, 0] ^= np.uint32(0xFFFFFFFF)
            else:
                made.state.scalar[0, number] ^= np.uint32(0xFFFFFFFF)
    return made


def after(text: str, target: str, turned: Operand | None = None) -> Registers | None:
    """The registers behind an instruction; None for one that the device does not execute."""
    try:
        made = machine(target, turned).run(text)
    except (ParseError, AssertionError, IndexError):
        return None
    return made.state.scalar[0].copy(), made.state.vector[:VGPRS, 0].copy()


def differing(first: Registers, second: Registers) -> list[tuple[str, int]]:
    """Names of the registers that differ."""
    scalars = [("scalar", int(n)) for n in np.flatnonzero(first[0][: EXEC + 2] != second[0][: EXEC + 2])]
    return scalars + [("vector", int(n)) for n in np.flatnonzero((first[1] != second[1]).any(axis=1))]


def value(state: State, name: tuple[str, int]) -> Value:
    """What the certifier has for a register."""
    return state.scalar(name[1]) if name[0] == "scalar" else Other(state.vector(name[1]))


def holds_mask(operations: tuple[Operation, ...], name: tuple[str, int], state: State) -> bool:
    """A mask of lanes, or a number too small for half of a pointer."""
    is_vector = operations[0].name.startswith("v_") and not operations[0].name.startswith(("v_read", "v_s_"))
    return name[0] == "scalar" and (is_vector or name[1] >= EXEC or value(state, name) == SMALL)


def test_agrees_with_the_device(listed: tuple[str, list[str]]) -> None:
    """Writes and origins, for every opcode that the device executes."""
    target, found = listed
    compared = 0
    for text in found:
        result = after(text, target)
        state = fresh()
        if result is None or text.startswith(UNKNOWN) or not step(text, state):
            continue
        compared += 1
        _check_writes(text, target, result)
        _check_origins(text, target, result, state)
    assert compared > 300


def _check_writes(text: str, target: str, result: Registers) -> None:
    begin, state = machine(target), pointers()
    step(text, state)
    changed = differing((begin.state.scalar[0], begin.state.vector[:VGPRS, 0]), result)
    unseen = [n for n in changed if value(state, n) == value(pointers(), n)]
    assert [n for n in unseen if n[0] != "scalar" or n[1] < EXEC] == [], text


def _check_origins(text: str, target: str, result: Registers, state: State) -> None:
    operations = parse(text)
    for operand in {o for op in operations for o in op.operands if o.bank and o.first < EXEC}:
        turned = after(text, target, operand)
        assert turned is not None
        for name in differing(result, turned):
            names = {("scalar" if operand.bank == "s" else "vector", n) for n in operand.registers}
            if name in names and value(state, name) == value(fresh(), name):
                continue  # the source itself, turned over and left so
            if not holds_mask(operations, name, state):
                assert atoms_of(value(state, name)) & names, f"{text}: {name} hangs on {operand.text}"
