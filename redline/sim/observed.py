# SPDX-License-Identifier: Apache-2.0
"""The seam through which somebody watches what instructions read and write in memory.

An observer is told of each access before it happens, also of one that then faults. Without an observer none of this
exists: programs and memory are the plain ones. Instruction fetches and the packet processor's own accesses are not
told, nor is LDS. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from .code import Decoder, Program, Step
from .compiler import Compiler
from .dispatch import Dispatch
from .memory import Memory
from .state import Front
from .step import MemoryRun

# (byte addresses of all lanes or waves, bytes at each, whether they are written)
Note = Callable[[NDArray[np.uint64], int, bool], None]


class Observer(Protocol):
    """Called on the threads of the device's queues; what it raises stops the queue."""

    def begin(self, dispatch: Dispatch, memory: Memory) -> None:
        """A dispatch starts; of one queue in the order of its packets. Empty ones are told too."""

    def access(self, step: Step, addresses: NDArray[np.uint64], nbytes: int, writes: bool) -> None:
        """`step` reads or writes `nbytes` bytes at each address; an atomic does both, one after the other."""


class ObservedMemory:
    """The three calls that instructions make, each noted and then passed on; anything else is missing here."""

    def __init__(self, memory: Memory, note: Note) -> None:
        self._memory, self._note = memory, note

    def read(self, addresses: NDArray[np.uint64], nbytes: int) -> NDArray[np.uint8]:
        self._note(addresses, nbytes, False)
        return self._memory.read(addresses, nbytes)

    def write(self, addresses: NDArray[np.uint64], values: NDArray[np.uint8]) -> None:
        self._note(addresses, values.shape[1], True)
        self._memory.write(addresses, values)

    def bytes_at(self, address: int, nbytes: int) -> bytes:
        self._note(np.array([address], np.uint64), nbytes, False)
        return self._memory.bytes_at(address, nbytes)


class ObservedProgram(Program):
    """A program whose steps tell an observer what they touch."""

    def __init__(self, memory: Memory, decoder: Decoder, compiler: Compiler, vgprs: int, observer: Observer) -> None:
        super().__init__(memory, decoder, compiler, vgprs)
        self._observer = observer

    def step(self, pc: int) -> Step:
        """As of `Program`; a step that touches memory is wrapped once, when it is compiled."""
        known = self.steps.get(pc)
        if known is not None:
            return known
        step = super().step(pc)
        if step.code.touch is not None:
            code = replace(step.code, touch=_watched(step, step.code.touch, self._observer))
            step = self.steps[pc] = replace(step, code=code)
        return step


def _watched(step: Step, touch: MemoryRun, observer: Observer) -> MemoryRun:
    def note(addresses: NDArray[np.uint64], nbytes: int, writes: bool) -> None:
        if len(addresses):
            observer.access(step, addresses, nbytes, writes)

    def run(front: Front, memory: Memory) -> None:
        touch(front, cast(Memory, ObservedMemory(memory, note)))

    return run
