# SPDX-License-Identifier: Apache-2.0
"""The back end that runs kernels from their machine code, for correctness and never for timing.

Takes a `Dispatch` as the packet reader found it; starts its waves (`launch.py`), reads its code from memory
(`code.py`) and runs it (`scheduler.py`). Keeps only caches between dispatches, and no state of the device. With an
observer, every access of an instruction is told to it first (`observed.py`).
"""

from __future__ import annotations

import threading
from types import TracebackType

import numpy as np

from radiowave.disassemble import Disassembler as ChildDisassembler

from .code import Decoder, Disassembler, Program
from .compiler import Compiler
from .dispatch import Dispatch, InOrder
from .generation import GENERATIONS
from .launch import check_registers, resident_batches
from .memory import Memory
from .observed import ObservedProgram, Observer
from .scheduler import Policy, Scheduler
from .step import Context

MAX_PROGRAMS = 1024  # kept between dispatches


class Executor(InOrder):
    """Executes dispatches of one target. Owns the disassembler unless it is given one."""

    def __init__(
        self,
        target: str,
        *,
        disassembler: Disassembler | None = None,
        policy: Policy | None = None,
        observer: Observer | None = None,
    ) -> None:
        if target not in GENERATIONS:
            raise KeyError(f"{target!r} is not a target of the software device")
        self._owned: ChildDisassembler | None = None
        if disassembler is None:
            disassembler = self._owned = ChildDisassembler()
            self._owned.library()  # starts the child, so that a missing library shows here
        self.policy = policy or Policy()
        self._observer = observer
        self.wave_instructions = 0  # of all dispatches that ran to their end
        self._gen = GENERATIONS[target]
        self._decoders = {wave: Decoder(disassembler, target, wave) for wave in (32, 64)}
        self._programs: dict[tuple[int, int, int], Program] = {}
        self._compilers = {wave: Compiler(Context(self._gen, wave)) for wave in (32, 64)}

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Run to completion, or raise a `DeviceFault`, or `Cancelled`."""
        if self._observer is not None:
            self._observer.begin(dispatch, memory)
        if 0 in dispatch.dims:
            return
        program = self._program(dispatch, memory)
        with np.errstate(all="ignore"):
            for waves in resident_batches(dispatch, self._gen):
                scheduler = Scheduler(waves, program, memory, self.policy, cancelled)
                scheduler.run(dispatch.entry)
                self.wave_instructions += scheduler.wave_instructions

    @property
    def approximate(self) -> tuple[str, ...]:
        """The instructions run so far whose results a GPU may give with other last bits, sorted."""
        return tuple(sorted(frozenset().union(*(compiler.approximate for compiler in self._compilers.values()))))

    def _program(self, dispatch: Dispatch, memory: Memory) -> Program:
        """The steps of an earlier dispatch while their bytes still stand in memory, else none yet."""
        wave, vgprs = dispatch.wave, check_registers(dispatch, self._gen)
        key = (dispatch.entry, wave, vgprs)
        program = self._programs.get(key)
        if program is None or not program.is_current(memory):
            if len(self._programs) >= MAX_PROGRAMS:
                self._programs.clear()
            program = self._new_program(memory, wave, vgprs)
            self._programs[key] = program
        return program

    def _new_program(self, memory: Memory, wave: int, vgprs: int) -> Program:
        source = memory, self._decoders[wave], self._compilers[wave], vgprs
        return Program(*source) if self._observer is None else ObservedProgram(*source, self._observer)

    def close(self) -> None:
        """End the disassembler's process if it is ours."""
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.close()

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
