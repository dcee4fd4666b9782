# SPDX-License-Identifier: Apache-2.0
"""A few waves whose registers a test sets, then instructions from text, then registers to look at.

No dispatch and no machine code: texts go straight to the compiler. Programs with jumps, barriers and their own code
bytes are run by `Listing`, whose disassembler knows one list of texts, each four bytes long.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from redline.sim import floats
from redline.sim.compiler import compile_text
from redline.sim.dispatch import Dispatch
from redline.sim.executor import Executor
from redline.sim.generation import GENERATIONS
from redline.sim.memory import Memory
from redline.sim.operands import EXEC, M0, VCC
from redline.sim.scheduler import Policy
from redline.sim.state import Front, Waves
from redline.sim.step import Context, Outcome

NEXT = 0x1004  # the address of the instruction after the one that `Machine.jump` runs


class Machine:
    """`waves` waves of one workgroup (or one each, with `groups`), all lanes on, in front of nothing."""

    def __init__(
        self,
        target: str = "gfx1100",
        wave: int = 32,
        *,
        waves: int = 1,
        vgprs: int = 32,
        lds_bytes: int = 0,
        groups: Sequence[int] | None = None,
    ) -> None:
        self.context = Context(GENERATIONS[target], wave)
        self.wave = wave
        group = np.zeros(waves, np.int64) if groups is None else np.array(groups, np.int64)
        self.state = Waves(group, wave, vgprs, lds_bytes)
        self.state.scalar[:, EXEC : EXEC + wave // 32] = 0xFFFFFFFF
        self.front = Front(self.state, 0, len(group), NEXT - 4)
        self.memory: Memory | None = None

    def run(self, *texts: str) -> Machine:
        """Execute plain and memory instructions one after another."""
        for text in texts:
            code = compile_text(text, self.context)
            with floats.quiet():
                if code.run is not None:
                    code.run(self.front)
                elif code.touch is not None and self.memory is not None:
                    code.touch(self.front, self.memory)
                else:
                    raise AssertionError(f"{text} is a jump, or needs a memory")
        return self

    def jump(self, text: str) -> Outcome:
        """Execute one control instruction; say where the waves go."""
        code = compile_text(text, self.context)
        assert code.jump is not None
        return code.jump(self.front, NEXT)

    def set_v(self, index: int, values: Any, dtype: Any = np.uint32) -> Machine:
        """A vector register: one value for all lanes, one a lane, or [wave, lane]."""
        self.state.vector[index] = np.asarray(values, dtype).view(np.uint32)
        return self

    def set_v64(self, index: int, values: Any, dtype: Any = np.uint64) -> Machine:
        bits = np.broadcast_to(np.asarray(values, dtype), self.front.shape).copy().view(np.uint64)
        self.state.vector[index] = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        self.state.vector[index + 1] = (bits >> np.uint64(32)).astype(np.uint32)
        return self

    def set_s(self, column: int, values: Any, dtype: Any = np.uint32) -> Machine:
        """A scalar register: one value for all waves, or one a wave."""
        self.state.scalar[:, column] = np.asarray(values, dtype).view(np.uint32)
        return self

    def set_s64(self, column: int, values: Any) -> Machine:
        self.state.scalar.view(np.uint64)[:, column // 2] = np.asarray(values, np.uint64)
        return self

    def set_vcc(self, value: Any) -> Machine:
        return self.set_s64(VCC, value)

    def set_exec(self, value: Any) -> Machine:
        if self.wave == 64:
            self.set_s64(EXEC, value)
        else:
            self.set_s(EXEC, value)
        self.front.exec_written()
        return self

    def set_scc(self, value: bool) -> Machine:
        self.state.scc[...] = value
        return self

    def v(self, index: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """A vector register of the first wave."""
        values: NDArray[Any] = self.state.vector[index, 0].view(dtype)
        return values.copy()

    def v64(self, index: int, dtype: Any = np.uint64) -> NDArray[Any]:
        pair = np.stack([self.state.vector[index, 0], self.state.vector[index + 1, 0]], axis=1)
        values: NDArray[Any] = np.ascontiguousarray(pair).view(dtype)
        return values[:, 0]

    def all_v(self, index: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """A vector register of every wave, [wave, lane]."""
        values: NDArray[Any] = self.state.vector[index].view(dtype)
        return values.copy()

    def s(self, column: int, wave: int = 0) -> int:
        return int(self.state.scalar[wave, column])

    def s64(self, column: int, wave: int = 0) -> int:
        return int(self.state.scalar.view(np.uint64)[wave, column // 2])

    @property
    def vcc(self) -> int:
        return self.s64(VCC) if self.wave == 64 else self.s(VCC)

    @property
    def exec(self) -> int:
        return self.s64(EXEC) if self.wave == 64 else self.s(EXEC)

    @property
    def m0(self) -> int:
        return self.s(M0)

    @property
    def scc(self) -> bool:
        return bool(self.state.scc[0, 0])


class Instruction(NamedTuple):
    pc: int
    length: int
    text: str


class Listing:
    """A device that runs a list of texts: instruction i is the four bytes of the number i.

    Branch displacements count instructions, as dwords do in machine code. `entry` is where the code stands.
    """

    def __init__(self, *texts: str, target: str = "gfx1100", policy: Policy | None = None) -> None:
        self.texts = list(texts)
        self.decoded = 0
        self.memory = Memory()
        self.executor = Executor(target, disassembler=self, policy=policy)
        code = np.arange(len(texts), dtype=np.uint32).tobytes()
        self.entry = self.memory.allocate(len(code), label="code", executable=True)
        self.memory.store(self.entry, code)
        self.cancelled = threading.Event()

    def decode(self, code: bytes, pc: int, target: str, wave: int) -> list[Instruction]:
        """The disassembler's method."""
        self.decoded += 1
        found = []
        for at in range(0, len(code) - 3, 4):
            number = int.from_bytes(code[at : at + 4], "little")
            text = self.texts[number] if number < len(self.texts) else ""
            found.append(Instruction(pc + at, 4, text))
            if not text:
                break
        return found

    def dispatch(
        self,
        *,
        groups: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        user_data: Sequence[int] = (),
        wave: int = 32,
        lds_bytes: int = 0,
        **changes: Any,
    ) -> None:
        """Run the listing with workgroup ids x, y, z behind the user SGPRs and packed work-item ids."""
        words = (*user_data, *([0] * (16 - len(user_data))))
        registers: dict[str, Any] = {
            "entry": self.entry,
            "rsrc1": 0xE0AF0007,
            "rsrc2": len(user_data) << 1 | 0b111 << 7 | 2 << 11 | lds_bytes // 512 << 15,
            "rsrc3": 0,
            "initiator": 0x8045 if wave == 32 else 0x45,
            "user_data": words,
            "dims": groups,
            "num_thread": block,
        }
        self.executor.dispatch(Dispatch(**(registers | changes)), self.memory, self.cancelled)

    def close(self) -> None:
        self.executor.close()
        self.memory.close()

    def __enter__(self) -> Listing:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()
