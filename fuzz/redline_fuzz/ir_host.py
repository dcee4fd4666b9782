# SPDX-License-Identifier: Apache-2.0
"""What random programs compute on the host: LLVM's own meaning of them, through another back end.

Talks to `ir_host_child`, which compiles and runs. It does not compare.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from redline_fuzz.ir_inputs import LANES, Bits
from redline_fuzz.ir_modules import host_module
from redline_fuzz.ir_programs import Program


class HostError(Exception):
    """The host side did not answer; no comparison was made."""


class Host:
    """One child process; use it in a `with` block."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "redline_fuzz.ir_host_child"]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, programs: Sequence[tuple[Program, Sequence[int]]], inputs: Bits) -> list[NDArray[np.uint8]]:
        """Output bytes of each program, shape (records, slots * 8)."""
        functions = [(program.name, len(outputs)) for program, outputs in programs]
        self._send(host_module(programs).encode(), functions, inputs)
        return [self._receive(len(inputs), slots * 8) for _, slots in functions]

    def _send(self, text: bytes, functions: list[tuple[str, int]], inputs: Bits) -> None:
        header = {
            "text_bytes": len(text),
            "input_bytes": inputs.nbytes,
            "columns": inputs.shape[1],
            "functions": functions,
            "lanes": LANES,
        }
        pipe = self._child.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(header).encode() + b"\n" + text + inputs.astype("<u8").tobytes())
            pipe.flush()
        except BrokenPipeError as closed:
            raise HostError(
                f"the host child ended with status {self._child.wait()} before it took a module"
            ) from closed

    def _receive(self, records: int, record_bytes: int) -> NDArray[np.uint8]:
        pipe = self._child.stdout
        assert pipe is not None
        answer = pipe.read(records * record_bytes)
        if len(answer) < records * record_bytes:
            raise HostError(f"the host child ended with status {self._child.wait()} while it compiled or ran a module")
        return np.frombuffer(answer, np.uint8).reshape(records, record_bytes)

    def close(self) -> None:
        """Closing its input ends the child."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        self._child.wait()

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
