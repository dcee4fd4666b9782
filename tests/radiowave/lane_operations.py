# SPDX-License-Identifier: Apache-2.0
"""What vector instructions do to the lanes of a wave and to the scalar registers that they write.

Only what moves numbers between lanes and scalar registers. Source: AMD's RDNA1 to RDNA4 instruction set documents,
VOP1, VOP2, VOP3 and VOP3SD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.radiowave.wave_registers import LANES, WORD, Form, Machine, Number, Step, source_of, target_of, vector

# Vector instructions: `v` operands are registers of each lane.


def _lane_source(text: str) -> Callable[[Machine, int], Number]:
    if text.startswith("v") and not text.startswith("vcc"):
        index = vector(text)
        return lambda machine, lane: machine.vectors[lane][index]
    scalar = source_of(text)
    return lambda machine, lane: scalar(machine)


def _vector_move(name: str, operands: list[str]) -> Step:
    target, sources = vector(operands[0]), [_lane_source(operand) for operand in operands[1:]]

    def step(machine: Machine) -> None:
        for lane in machine.active():
            numbers = [source(machine, lane) for source in sources]
            taint = numbers[0].taint | numbers[-1].taint
            value = sum(number.value for number in numbers) & WORD  # one source: a move, two: v_add_nc_u32
            machine.vectors[lane][target] = Number(value, taint)

    return step


def _read_lane(name: str, operands: list[str]) -> Step:
    target, index = target_of(operands[0]), vector(operands[1])
    chosen = source_of(operands[2]) if len(operands) == 3 else None

    def step(machine: Machine) -> None:
        active = list(machine.active()) or [0]
        lane = (active[0] if chosen is None else chosen(machine).value) % 32
        machine.write(target, machine.vectors[lane][index] if lane < LANES else Number(0))

    return step


def _write_lane(name: str, operands: list[str]) -> Step:
    target, source, chosen = vector(operands[0]), source_of(operands[1]), source_of(operands[2])

    def step(machine: Machine) -> None:
        lane = chosen(machine).value % 32
        if lane < LANES:
            machine.vectors[lane][target] = source(machine)

    return step


def _lane_compare(name: str, operands: list[str]) -> Step:
    target, first, second = target_of(operands[0]), _lane_source(operands[1]), _lane_source(operands[2])

    def step(machine: Machine) -> None:
        pairs = {lane: (first(machine, lane), second(machine, lane)) for lane in machine.active()}
        value = sum(1 << lane for lane, (a, b) in pairs.items() if (a.value == b.value) == ("_eq_" in name))
        machine.write(target, Number(value))

    return step


def _lane_carry(name: str, operands: list[str]) -> Step:
    index, target = vector(operands[0]), target_of(operands[1])
    first, second = _lane_source(operands[2]), _lane_source(operands[3])

    def step(machine: Machine) -> None:
        carries = 0
        for lane in machine.active():
            a, b = first(machine, lane), second(machine, lane)
            carries |= (a.value + b.value >> 32) << lane
            machine.vectors[lane][index] = Number(a.value + b.value & WORD, a.taint | b.taint)
        machine.write(target, Number(carries))

    return step


#: Names of instructions, and what makes a step of one.
LANE_FORMS: tuple[tuple[Iterable[str], Form], ...] = (
    (("v_mov_b32", "v_add_nc_u32"), _vector_move),
    (("v_readlane_b32", "v_readfirstlane_b32"), _read_lane),
    (("v_writelane_b32",), _write_lane),
    (("v_cmp_eq_u32", "v_cmp_ne_u32"), _lane_compare),
    (("v_add_co_u32",), _lane_carry),
)
