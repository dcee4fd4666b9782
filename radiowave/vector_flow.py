# SPDX-License-Identifier: Apache-2.0
"""What vector arithmetic does to the abstract registers: a lane remembers where all its sources came from.

No pointer is followed here: what goes back to scalar registers is a number with an origin, so a scalar load through it
is never certified. An instruction that is on no list is reported, and the proof ends there.
Source of what each family reads and writes: AMD's RDNA1 to RDNA4 instruction set documents, chapters "VOP1" to "VOPD".
`tests/radiowave/test_vector_flow.py` holds the lists against every opcode that LLVM decodes.
"""

from __future__ import annotations

import re
from typing import Final

from radiowave.flow_state import NONE, Atoms, State
from radiowave.operands import EXEC, Operand, Operation
from radiowave.scalar_flow import words
from radiowave.values import PLAIN, Other, atoms_of, either

_NOTHING: Final = re.compile(r"v_(nop|clrexcp|pipeflush)$")
#: Write vector registers alone, from what their sources hold.
_FAMILIES: Final = """
    add addc add3 alignbit alignbyte and andor ashr ashrrev bcnt bfe bfi bfm bfrev bitop3 ceil clz cls cndmask cos ctz
    cubeid cubema cubesc cubetc cvt div dot2 dot2acc dot2c dot4 dot4c dot8 exp ffbh ffbl floor fma fmaak fmac fmamk
    fract frexp ldexp lerp log lshl lshlrev lshrrev mac mad madak madmk max max3 maximum maximum3 maximumminimum maxmin
    mbcnt med3 min min3 minimum minimum3 minimummaximum minmax mov movrels mqsad msad mul mullit not or or3 pack perm
    pk qsad rcp rndne rsq sad sat sin sqrt sub subb subbrev subrev swmmac trig trunc wmma xad xnor xor xor3
"""
_ARITHMETIC: Final = re.compile(rf"v_(dual_)?({'|'.join(_FAMILIES.split())})_\w+$")
#: VOP3B: the second operand is written too, with a mask of lanes.
_WRITES_MASK: Final = re.compile(r"v_(\w+_co(_ci)?_[ui]\d+(_[ui]\d+)?|div_scale_f\d+|mad_[ui]64_[ui]32)$")
_COMPARES: Final = re.compile(r"v_cmp_\w+$")
_COMPARES_TO_EXEC: Final = re.compile(r"v_cmpx_\w+$")
_TO_SCALAR: Final = re.compile(r"v_(readfirstlane_b32|readlane_b32|s_\w+)$")
_ACROSS_LANES: Final = re.compile(r"v_permlane\w+$")
_SWAPS: Final = re.compile(r"v_swap_b\d+$")
_INDEXED: Final = re.compile(r"v_(movreld|movrelsd|movrelsd_2|swaprel)_b32$")
#: Read what they overwrite, or leave half of it.
_KEEPS: Final = re.compile(r"mac_|16|dot\dc_|acc_|fp8|bf8|_u8|swmmac")


def vector_step(operations: tuple[Operation, ...], state: State) -> bool:
    """Run one vector instruction, or both halves of a dual-issued one; False for one that is on no list."""
    # Both halves read before either writes.
    sources = [_sources(op, state) for op in operations]
    known = [_step(op, state, atoms) for op, atoms in zip(operations, sources, strict=True)]
    return all(known)


def _step(op: Operation, state: State, atoms: Atoms) -> bool:
    name = op.name
    if _NOTHING.match(name):
        return True
    if _COMPARES_TO_EXEC.match(name):
        state.narrow()
        state.set_masks(PLAIN)
    elif _COMPARES.match(name):
        _write_scalar(op.operands[0], NONE, state)
    elif _TO_SCALAR.match(name):
        _write_scalar(op.operands[0], atoms, state)
    elif name == "v_writelane_b32":
        _write_one_lane(op.operands[0], atoms, state)
    elif _SWAPS.match(name):
        for operand in op.operands[:2]:
            _write_vector(operand, atoms, state)
    elif _INDEXED.match(name):
        _write_any(atoms, state)
    elif _ARITHMETIC.match(name) or _ACROSS_LANES.match(name):
        _write_vector(op.operands[0], atoms, state)
        if _WRITES_MASK.match(name):
            _write_scalar(op.operands[1], NONE, state)
    else:
        return False
    return True


def _sources(op: Operation, state: State) -> Atoms:
    """Where everything that an instruction reads came from."""
    name = op.name
    across = "dpp" in op.modifiers or bool(_ACROSS_LANES.match(name) or _TO_SCALAR.match(name))
    keeps = across or "sdwa" in op.modifiers or bool(_KEEPS.search(name) or _SWAPS.match(name))
    operands = list(op.operands if keeps and not _TO_SCALAR.match(name) else op.operands[1:])
    if _WRITES_MASK.match(name):
        operands = [o for o in operands if o is not op.operands[1]]
    reads = [_read(operand, state, across=across) for operand in operands]
    found = NONE.union(*reads)
    if "dpp" in op.modifiers and keeps and not _TO_SCALAR.match(name):
        found = found | either(reads.pop(0), NONE.union(*reads))
    if "cndmask" in name or _SWAPS.match(name):
        found = found | either(*reads[:2])
    if _INDEXED.match(name) or name.startswith("v_movrels"):
        found = found.union(*(state.any_lane(n) for n in state.active))
    return found


def _read(operand: Operand, state: State, *, across: bool) -> Atoms:
    if operand.bank == "v":
        return NONE.union(*((state.any_lane if across else state.vector)(n) for n in operand.registers))
    return NONE.union(*(atoms_of(value) for value in words(operand, state, max(operand.count, 1))))


def _write_vector(operand: Operand, atoms: Atoms, state: State) -> None:
    for number in operand.registers:
        state.set_vector(number, atoms)


def _write_scalar(operand: Operand, atoms: Atoms, state: State) -> None:
    if operand.bank != "s":
        return
    if operand.first + operand.count > EXEC:
        state.any_mask()
    for number in operand.registers:
        if number < EXEC:
            state.set_scalar(number, Other(atoms) if atoms else PLAIN)


def _write_one_lane(operand: Operand, atoms: Atoms, state: State) -> None:
    """Whatever the mask says."""
    for number in operand.registers:
        state.resting[number] = either(state.resting.get(number, atoms), atoms)
        state.set_vector(number, either(state.vector(number), atoms))


def _write_any(atoms: Atoms, state: State) -> None:
    """The register's number is known at run time only; one that was never written stays as unknown as it was."""
    for number in state.active:
        state.set_vector(number, either(state.vector(number), atoms))
