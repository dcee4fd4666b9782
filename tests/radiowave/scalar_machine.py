# SPDX-License-Identifier: Apache-2.0
"""Run one wave of a kernel on real numbers and note where each load went: the judge of what a certificate says.

Executes LLVM's text of the linked code, so program counters are those of the object. Stores change nothing: what a load
brings is a function of address and seed. Shares no code with the certifier, nor with the software device.
Source: AMD's RDNA1 to RDNA4 instruction set documents, SOPP, SOP1, SMEM and FLAT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from radiowave import Instruction
from tests.radiowave.lane_operations import LANE_FORMS
from tests.radiowave.scalar_memory import CODE, FROM_CODE
from tests.radiowave.scalar_operations import SCALAR_FORMS
from tests.radiowave.wave_registers import (
    EXEC,
    LONG,
    VCC,
    Access,
    Machine,
    Number,
    Step,
    UnknownTextError,
    register,
    signed,
    source_of,
    target_of,
    vector,
)


def run(steps: Mapping[int, tuple[Step, int]], machine: Machine, entry: int, fuel: int) -> int:
    """Execute until the end of the program, an address without code, or `fuel` instructions; how many were executed."""
    pc = entry
    for executed in range(fuel):
        found = steps.get(pc)
        if found is None:
            return executed
        step, following = found
        jump = step(machine)
        pc = following if jump is None else jump
    return fuel


def steps_of(listing: Iterable[Instruction]) -> dict[int, tuple[Step, int]]:
    """What each instruction does, and the address behind it. Where the text is unknown, executing it raises."""
    return {i.pc: (_step(i.text, i.pc, i.length), i.pc + i.length) for i in listing if i.text not in _ENDS}


_ENDS = ("s_endpgm", "s_code_end", "")


def _step(text: str, pc: int, length: int) -> Step:
    name, _, rest = text.partition(" ")
    if name in _CONTROL:
        return _control(name, rest, pc, pc + length)
    if name.startswith(("s_load_", "s_buffer_load_", "global_")):
        return _memory_step(name, rest, pc)
    return _plain_step(text)


@lru_cache(maxsize=1 << 16)
def _plain_step(text: str) -> Step:
    name, _, rest = text.partition(" ")
    name = _SAME.get(name, name).removesuffix("_e32").removesuffix("_e64")
    operands = rest.split(", ") if rest else []
    for table, make in (*SCALAR_FORMS, *LANE_FORMS):
        if name in table:
            return make(name, operands)
    if name in _NOTHING:
        return lambda machine: None

    def unknown(machine: Machine) -> None:
        raise UnknownTextError(text)

    return unknown


_NOTHING = {"s_nop", "s_waitcnt", "s_wait_kmcnt", "s_waitcnt_depctr", "s_sleep", "s_prefetch_data"}
# gfx11's and gfx12's names for what gfx10 calls otherwise.
_SAME = {
    "s_add_co_u32": "s_add_u32",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_sub_co_u32": "s_sub_u32",
    "s_sub_co_ci_u32": "s_subb_u32",
    "s_add_co_i32": "s_add_i32",
    "s_sub_co_i32": "s_sub_i32",
    "s_addk_co_i32": "s_addk_i32",
    "s_and_not1_b32": "s_andn2_b32",
    "s_and_not1_b64": "s_andn2_b64",
}


# Control flow. Program counters in registers are real addresses, those of the object are addresses in its file.

_CONTROL = {"s_branch", "s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64"} | {
    f"s_cbranch_{condition}" for condition in ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
}
_CONDITIONS: dict[str, Callable[[Machine], bool]] = {
    "scc0": lambda machine: not machine.scc.value,
    "scc1": lambda machine: bool(machine.scc.value),
    "vccz": lambda machine: not machine.scalars[VCC].value,
    "vccnz": lambda machine: bool(machine.scalars[VCC].value),
    "execz": lambda machine: not machine.scalars[EXEC].value,
    "execnz": lambda machine: bool(machine.scalars[EXEC].value),
}


def _control(name: str, rest: str, pc: int, following: int) -> Step:
    operands = rest.split(", ")
    here = Number(CODE + following, FROM_CODE)
    if name == "s_getpc_b64":
        return lambda machine: machine.write(target_of(operands[0]), here, 2)
    if name == "s_setpc_b64":
        return lambda machine: machine.read(target_of(operands[0]), 2).value - CODE
    if name == "s_swappc_b64":
        return lambda machine: _swap(machine, target_of(operands[0]), here, target_of(operands[1]))
    place = following + 4 * signed(int(operands[-1], 0) & 0xFFFF, 16)
    if name == "s_branch":
        return lambda machine: place
    if name == "s_call_b64":
        return lambda machine: _call(machine, target_of(operands[0]), here, place)
    condition = _CONDITIONS[name.removeprefix("s_cbranch_")]
    return lambda machine: place if condition(machine) else None


def _call(machine: Machine, back: int, here: Number, place: int) -> int:
    machine.write(back, here, 2)
    return place


def _swap(machine: Machine, back: int, here: Number, to: int) -> int:
    place = machine.read(to, 2).value - CODE
    machine.write(back, here, 2)
    return place


# Memory.

_WIDTHS = {"b32": 1, "b64": 2, "b128": 4, "b256": 8, "dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8}


def _memory_step(name: str, rest: str, pc: int) -> Step:
    offset = re.search(r" offset:(-?\w+)", rest)
    operands = re.sub(r" (offset:\S+|glc|th:\S+)", "", rest).split(", ")
    fixed = int(offset[1], 0) if offset else 0
    if name.startswith("global_"):
        return _global(name, operands, fixed, pc)
    return _scalar_load(name, operands, fixed, pc)


def _scalar_load(name: str, operands: list[str], fixed: int, pc: int) -> Step:
    words, target, base = _WIDTHS[name.rsplit("_", 1)[1]], target_of(operands[0]), target_of(operands[1])
    offset = source_of(operands[2], 1) if register(operands[2]) is not None else None
    fixed += int(operands[2], 0) if offset is None else 0
    is_buffer = name.startswith("s_buffer")

    def step(machine: Machine) -> None:
        start, more = machine.read(base, 2), offset(machine) if offset else Number(0)
        upper = machine.scalars[base + 1]
        value = start.value & (1 << 48) - 1 if is_buffer else start.value
        address = value + more.value + fixed & LONG & ~3
        machine.accesses.append(Access(pc, address, 4 * words, start.taint | more.taint, upper.taint, True))
        for n in range(words):
            place = address + 4 * n & LONG
            machine.write(target + n, Number(machine.memory.word(place, words), machine.memory.taint(place)))

    return step


def _global(name: str, operands: list[str], fixed: int, pc: int) -> Step:
    is_store, is_atomic = "_store_" in name, "_atomic_" in name
    words = 1 if is_atomic else _WIDTHS[name.rsplit("_", 1)[1]]
    where = operands[0] if is_store else operands[1]
    target = None if is_store else vector(operands[0])
    saddr = None if operands[-1] == "off" else target_of(operands[-1])

    def step(machine: Machine) -> None:
        for lane in machine.active():
            registers, low = machine.vectors[lane], vector(where)
            start = machine.read(saddr, 2) if saddr is not None else registers[low + 1]._replace(value=0)
            high = registers[low + 1].value << 32 if saddr is None else 0
            address = start.value + high + registers[low].value + fixed & LONG
            taint = start.taint | registers[low].taint
            upper = registers[low + 1] if saddr is None else machine.scalars[saddr + 1]
            machine.accesses.append(Access(pc, address, 4 * words, taint, upper.taint, False))
            for n in range(words if target is not None else 0):
                place = address + 4 * n & LONG
                registers[(target or 0) + n] = Number(machine.memory.word(place, words), machine.memory.taint(place))

    return step
