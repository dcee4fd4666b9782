# SPDX-License-Identifier: Apache-2.0
"""What the code and the descriptor tell about each kernel beyond its metadata, and what stays unknown.

Puts together what other files find: occupancy, instruction counts, refused instructions. A question that cannot be
answered is answered with None and named in `unknown`, never with a zero. Shows nothing; `inspection.py` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler, Instruction
from radiowave.errors import ToolchainError
from radiowave.occupancy import Occupancy, occupancy_of
from radiowave.refused import InstructionCheck, RefusedInstruction
from radiowave.statistics import Statistics

# Of one object: about ten seconds of decoding. The kernels of a hostile file can all claim the same bytes.
MOST_CODE_BYTES = 16 << 20

_DYNAMIC_LDS = frozenset(("dynamic_shared_pointer", "hidden_dynamic_lds_size"))


@dataclass(frozen=True)
class KernelReport:
    """One kernel. `statistics` and `refused` are None where they cannot be told; `unknown` says in words what is not
    known, and why."""

    kernel: KernelFacts
    occupancy: Occupancy
    statistics: Statistics | None
    refused: tuple[RefusedInstruction, ...] | None
    unknown: tuple[str, ...]


def reports(code_object: CodeObject, disassembler: Disassembler | None = None) -> dict[str, KernelReport]:
    """A report for each kernel, by name. Starts a disassembler of its own when none is given.

    Raises CodeObjectError where segments do not hold what they claim; a missing disassembler is no error.
    """
    if disassembler is None:
        with Disassembler() as mine:
            return reports(code_object, mine)
    check, code = InstructionCheck(code_object), _Code(code_object, disassembler)
    return {kernel.name: _report(kernel, code_object, check, code) for kernel in code_object.kernels.values()}


def _report(kernel: KernelFacts, code_object: CodeObject, check: InstructionCheck, code: _Code) -> KernelReport:
    refused, statistics, unknown = None, None, list[str]()
    try:
        refused = check.refused(kernel.symbol, code.disassembler)
    except ToolchainError as error:
        unknown.append(f"refused instructions: {error}")
    try:
        statistics = code.statistics(kernel)
    except ToolchainError as error:
        unknown.append(f"instructions: {error}")
    unknown += _unknown(kernel, statistics)
    return KernelReport(kernel, occupancy_of(code_object.target, kernel), statistics, refused, tuple(unknown))


def _unknown(kernel: KernelFacts, statistics: Statistics | None) -> Iterator[str]:
    if statistics is not None and statistics.unknown:
        named = ", ".join(f"{name} ({count})" for name, count in statistics.unknown.items())
        yield f"what these instructions do: {named}"
    if statistics is not None and statistics.undecoded_bytes:
        yield "instructions behind the first bytes that LLVM does not decode"
    pointers = [a for a in kernel.arguments if a.kind == "global_buffer" and a.access is None]
    if pointers:
        named = ", ".join(a.name or f"at offset {a.offset}" for a in pointers)
        yield f"access through these pointers, of which LLVM inferred nothing: {named}"
    if any(a.kind in _DYNAMIC_LDS for a in kernel.arguments):
        yield "LDS that the launch adds, and occupancy with it"
    if kernel.uses_dynamic_stack:
        yield "scratch: the stack grows by an amount that is not known before the launch"


class _Code:
    """The code of kernels, decoded once however many kernels share it."""

    def __init__(self, code_object: CodeObject, disassembler: Disassembler) -> None:
        self.disassembler = disassembler
        self._object, self._left = code_object, MOST_CODE_BYTES
        self._known: dict[tuple[int, int, int], Statistics] = {}

    def statistics(self, kernel: KernelFacts) -> Statistics:
        """Counts over the kernel's own bytes. Raises ToolchainError when nobody decodes them, or they are too many."""
        key = (kernel.entry_va, kernel.code_bytes, kernel.wave)
        if key not in self._known:
            self._known[key] = Statistics.of(self._instructions(kernel))
        return self._known[key]

    def _instructions(self, kernel: KernelFacts) -> list[Instruction]:
        self._left -= kernel.code_bytes
        if self._left < 0:
            raise ToolchainError(
                "RW0107",
                where=f"kernel {kernel.name!r}",
                seen=f"more than {MOST_CODE_BYTES:,} bytes of code in the kernels of one object",
                allowed=f"up to {MOST_CODE_BYTES:,} bytes are counted",
                do="disassemble this kernel alone: radiowave disassemble --kernel",
            )
        code = self._object.code(kernel)
        return self.disassembler.decode(code, kernel.entry_va, self._object.target, kernel.wave)
