# SPDX-License-Identifier: Apache-2.0
"""Name the first wrong operation of a program that host and device disagree on.

First every intermediate value becomes an output: a value only depends on earlier ones, so the first that
differs is the one whose operation went wrong. Storing everything can also change the machine code and hide
the defect; then each ancestor of the wrong output is asked for alone, in order. It does not decide which side
is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import radiowave
from redline.sim.errors import DeviceFault
from redline_fuzz.ir_compare import Bytes, Difference, differences
from redline_fuzz.ir_inputs import Bits
from redline_fuzz.ir_modules import BLOCK, kernel_module
from redline_fuzz.ir_operations import BITS, OPERATIONS
from redline_fuzz.ir_programs import Input, Program, Step, needed
from redline_fuzz.ir_run import Pair, Sides, data_for


@dataclass(frozen=True)
class Outcome:
    """What one choice of outputs gave on both sides."""

    outputs: tuple[int, ...]
    host: Bytes
    found: tuple[Difference, ...]
    fault: str


class Bisection:
    """One program on one pair; `report()` is what a person reads."""

    def __init__(self, sides: Sides, program: Program, pair: Pair) -> None:
        self._sides, self._program, self._pair = sides, program, pair
        self._inputs: Bits = data_for(program.seed, program.index)

    def report(self) -> str:
        """Several lines: the first wrong operation with its operands, or that there is none."""
        first = self._try(self._program.leaves)
        if first.fault:
            return f"{first.fault}\n{self._text(first.outputs)}"
        if not first.found:
            return "no difference: all outputs are equal"
        whole = self._try(tuple(at for at, _ in self._program.steps))
        if whole.found:
            return self._explain(whole, whole.found[0], "with every value stored")
        for at in sorted(needed(self._program, [first.found[0].value])):
            alone = self._try((at,)) if isinstance(self._program.values[at], Step) else None
            if alone and alone.found:
                return self._explain(alone, alone.found[0], "only when no other value is stored")
        return self._explain(
            first, first.found[0], "only with the program's own outputs, and no ancestor differs alone"
        )

    def _try(self, outputs: tuple[int, ...]) -> Outcome:
        wanted = [(self._program, outputs)]
        host = self._sides.host.run(wanted, self._inputs)[0]
        target, wave = self._pair
        code = radiowave.compile_ir(kernel_module(wanted, target, wave), target=target, wave=wave)
        with self._sides.device(target, code) as runner:
            try:
                device = runner(self._program.name, len(outputs), self._inputs)
            except DeviceFault as fault:
                return Outcome(outputs, host, (), f"{type(fault).__name__}: {fault}")
        return Outcome(outputs, host, tuple(differences(self._program, outputs, host, device)), "")

    def _explain(self, outcome: Outcome, wrong: Difference, when: str) -> str:
        step = self._program.values[wrong.value]
        assert isinstance(step, Step)
        names = tuple(operand if isinstance(operand, str) else f"%v{operand}" for operand in step.operands)
        lines = OPERATIONS[step.operation].render(f"%v{wrong.value}", names, dict(step.immediates))
        operands = [self._operand(outcome, operand, wrong.lane) for operand in step.operands]
        return "\n".join(
            [
                f"first wrong operation, {when}: %v{wrong.value} = {step.operation}",
                *(f"    {line}" for line in lines),
                f"  lane {wrong.lane}, operands on the host: {', '.join(operands)}",
                f"  slot: host {wrong.host:#018x}, device {wrong.device:#018x}; {step.type} in the low bits",
                "the program that leads to it:",
                self._text((wrong.value,)),
            ]
        )

    def _operand(self, outcome: Outcome, operand: int | str, lane: int) -> str:
        """The operand's bits in this lane, where they are known."""
        if isinstance(operand, str):
            return operand
        value = self._program.values[operand]
        if isinstance(value, Input):
            bits = int(self._inputs[lane // BLOCK if value.uniform else lane, value.column])
        elif operand in outcome.outputs:
            bits = int(np.ascontiguousarray(outcome.host).view("<u8")[lane, outcome.outputs.index(operand)])
        else:
            return f"%v{operand} (not stored)"
        return f"%v{operand} = {bits & ((1 << BITS[value.type]) - 1):#x}"

    def _text(self, outputs: Sequence[int]) -> str:
        return kernel_module([(self._program, outputs)], *self._pair)
