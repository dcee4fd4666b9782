# SPDX-License-Identifier: Apache-2.0
"""The instructions of one dispatch: code bytes as they are in memory now, disassembled and compiled when reached.

Bytes are read anew for every dispatch, so a changed instruction shows: steps are kept from one dispatch to the next
only while the bytes they came from are the same. Disassembly is cached by those bytes, compiled code by its text
(`compiler.py`). Reading outside an executable allocation faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .allocations import Allocation
from .compiler import Compiler
from .errors import MemoryFault, UndecodableInstruction, UnsupportedInstruction
from .memory import Memory
from .step import Code

FETCH = "instruction fetch"  # the access that a MemoryFault names
WINDOW_BYTES = 512
MAX_WINDOWS = 1 << 14  # kept by a decoder
LONGEST_BYTES = 20  # no instruction of these targets is longer; one that starts nearer to a window's end may be cut


class Decoded(Protocol):
    """One instruction as the disassembler gives it; empty text: no instruction."""

    @property
    def pc(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def text(self) -> str: ...


class Disassembler(Protocol):
    """What this file asks of `radiowave.Disassembler`."""

    def decode(self, code: bytes, pc: int, target: str, wave: int) -> Sequence[Decoded]: ...


@dataclass(frozen=True)
class Step:
    """An instruction at its place."""

    pc: int
    following: int
    text: str
    code: Code


class Decoder:
    """Instruction boundaries and texts by code bytes, for one target and wave size."""

    def __init__(self, disassembler: Disassembler, target: str, wave: int) -> None:
        self._disassembler, self._target, self._wave = disassembler, target, wave
        self._windows: dict[bytes, tuple[tuple[int, int, str], ...]] = {}

    def decode(self, code: bytes) -> tuple[tuple[int, int, str], ...]:
        """(offset, length, text) of each instruction from the first byte on, as far as they decode."""
        known = self._windows.get(code)
        if known is None:
            if len(self._windows) >= MAX_WINDOWS:
                self._windows.clear()
            found = self._disassembler.decode(code, 0, self._target, self._wave)
            known = self._windows[code] = tuple((item.pc, item.length, item.text) for item in found)
        return known


class Program:
    """Steps by address, for dispatches of one kernel."""

    def __init__(self, memory: Memory, decoder: Decoder, compiler: Compiler, vgprs: int) -> None:
        self._memory, self._decoder, self._compiler, self._vgprs = memory, decoder, compiler, vgprs
        self._windows: dict[int, bytes] = {}
        self._texts: dict[int, tuple[int, str]] = {}
        self.steps: dict[int, Step] = {}

    def is_current(self, memory: Memory) -> bool:
        """Whether all code read so far still stands in `memory`, byte for byte, and may be executed."""
        if memory is not self._memory:
            return False
        for pc, code in self._windows.items():
            allocation = memory.find(pc, len(code))
            if allocation is None or not _is_code(allocation) or memory.bytes_at(pc, len(code)) != code:
                return False
        return True

    def step(self, pc: int) -> Step:
        """The instruction at `pc`, disassembled and compiled if nobody was there before."""
        known = self.steps.get(pc)
        if known is not None:
            return known
        if pc not in self._texts:
            self._read_window(pc)
        length, text = self._texts[pc]
        code = self._compiler.compile(text, pc)
        if code.vgprs > self._vgprs:
            reason = f"vector register {code.vgprs - 1} of {self._vgprs} that RSRC1 allocates"
            raise UnsupportedInstruction(pc, text, reason)
        step = self.steps[pc] = Step(pc, pc + length, text, code)
        return step

    def _read_window(self, pc: int) -> None:
        code = self._windows[pc] = self._code_bytes(pc)
        last = len(code) - LONGEST_BYTES if len(code) == WINDOW_BYTES else len(code)
        for offset, length, text in self._decoder.decode(code):
            if offset > last:
                break
            if text:
                self._texts.setdefault(pc + offset, (length, text))
        if pc not in self._texts:
            raise UndecodableInstruction(pc, code[:LONGEST_BYTES])

    def _code_bytes(self, pc: int) -> bytes:
        """Up to a window of bytes from `pc` to the end of its executable allocation."""
        allocation = self._memory.find(pc, 4)
        if allocation is None or not _is_code(allocation) or pc % 4:
            raise MemoryFault(pc, 4, FETCH, "not in an executable allocation, or misaligned")
        return self._memory.bytes_at(pc, min(WINDOW_BYTES, allocation.end - pc))


def _is_code(allocation: Allocation) -> bool:
    return allocation.executable and allocation.mapped
