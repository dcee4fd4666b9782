# SPDX-License-Identifier: Apache-2.0
"""Turn machine code into LLVM's text for it, by way of a child process that may die without harm.

One child serves all targets; it starts at the first request and again after a death. This file checks names,
keeps time and turns a dead child into an error. It does not parse the text; who executes or certifies does.
Source of the text: LLVM's own disassembler (llvm-c/Disassembler.h), at the version that `Disassembler.library` names.
"""

from __future__ import annotations

import os
import selectors
import struct
import subprocess
import tempfile
import threading
import time
import weakref
from types import TracebackType
from typing import IO, Any, NamedTuple

import msgpack

from radiowave.child import MAX_MESSAGE_BYTES, command, environment, how_it_ended, pack_message
from radiowave.errors import ToolchainError
from radiowave.targets import check_target, check_wave

# A request decodes about 300,000 instructions a second; the start loads a library of 120 MB.
SECONDS_TO_START = 60.0
SECONDS_PER_REQUEST = 30.0
MAX_CODE_BYTES = 64 << 20
# Between the end of a child's output and the end of the child.
SECONDS_TO_END = 5.0

WHERE = "disassembler"


class Instruction(NamedTuple):
    """One decoded instruction: byte address, length in bytes, text. `text` is "" where the bytes do not decode;
    `length` then covers what was refused."""

    pc: int
    length: int
    text: str


class Disassembler:
    """LLVM's disassembler in a child process. Use it as a context manager, or call `close`.

    Safe to call from several threads; requests take turns. `seconds` is what one request may take. Making one starts
    nothing; its requests raise ToolchainError.
    """

    def __init__(self, *, seconds: float = SECONDS_PER_REQUEST) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def __enter__(self) -> Disassembler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child. A later call starts a new one."""
        with self._lock:
            if self._child:
                self._child.stop()
            self._child = None

    def decode(self, code: bytes, pc: int, target: str, wave: int) -> list[Instruction]:
        """The instructions of `code`, which stands at the byte address `pc`, straight on until its end or the first
        bytes that are no instruction; these come last, with an empty text. `wave` is 32 or 64 lanes.

        Raises UnsupportedTarget for a target or wave size outside the lists; ToolchainError for more than 64 MiB of
        code, a target that this LLVM lacks, no library at all, or a child that died or took too long.
        """
        check_target(target, where=WHERE)
        check_wave(wave, where=WHERE)
        if len(code) > MAX_CODE_BYTES:
            raise _refused(f"{len(code):,} bytes of code", f"up to {MAX_CODE_BYTES:,} bytes a request")
        answer = self._ask({"code": bytes(code), "pc": pc, "target": target, "wave": wave})
        if "error" in answer:
            raise _refused(answer["error"], "a target that this LLVM knows")
        return _instructions(answer, len(code), pc)

    def library(self) -> dict[str, Any]:
        """Which library serves: `library`, `source`, `version`, and `looked`, the places tried before it.

        Raises ToolchainError when none serves.
        """
        with self._lock:
            return dict(self._started().greeting)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            child = self._started()
            try:
                answer: dict[str, Any] = child.exchange(pack_message(request), self.seconds)
            except BaseException:  # also KeyboardInterrupt: half an answer may be in the pipe
                child.stop()
                self._child = None
                raise
            return answer

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child()
        return self._child


def _refused(seen: str, allowed: str) -> ToolchainError:
    return ToolchainError(
        "RW0107",
        where=WHERE,
        seen=seen,
        allowed=allowed,
        do="run `redline doctor` to see which LLVM was found",
    )


def _instructions(answer: dict[str, Any], nbytes: int, pc: int) -> list[Instruction]:
    found, end = [], pc + nbytes
    for length, text in zip(answer["lengths"], answer["texts"], strict=True):
        found.append(Instruction(pc, length or min(4, end - pc), text))
        pc += length
    return found


class _Child:
    """One life of the child process."""

    def __init__(self) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `stop`
        self._process = subprocess.Popen(
            command("radiowave.disassemble_child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            env=environment(),
            start_new_session=True,  # Ctrl-C is for the parent
        )
        self.stop = weakref.finalize(self, _stop, self._process, self._stderr)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        try:
            self.greeting: dict[str, Any] = self.exchange(b"", SECONDS_TO_START)
            if self.greeting["library"] is None:
                raise self._missing()
        except BaseException:
            self.stop()
            raise

    def exchange(self, request: bytes, seconds: float) -> Any:
        """Send a message and wait for the answer."""
        pipes = _Pipes(self._process, request)
        deadline = time.monotonic() + seconds
        while not pipes.is_done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._late(seconds)
            if not pipes.move(left):
                raise self._died()
            if pipes.is_too_long():
                raise self._too_long()
        return msgpack.unpackb(pipes.body())

    def _late(self, seconds: float) -> ToolchainError:
        return ToolchainError(
            "RW0104",
            where=WHERE,
            seen=f"no answer from process {self._process.pid} after {seconds:g} s",
            allowed=f"{seconds:g} s",
            do="decode less at a time, or pass Disassembler(seconds=...)",
        )

    def _too_long(self) -> ToolchainError:
        return ToolchainError(
            "RW0107",
            where=WHERE,
            seen=f"an answer of more than {MAX_MESSAGE_BYTES:,} bytes from process {self._process.pid}",
            allowed=f"up to {MAX_MESSAGE_BYTES:,} bytes an answer",
            do="decode less at a time",
        )

    def _died(self) -> ToolchainError:
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:  # it closed its output and lives on
            self._process.kill()
            self._process.wait()
        self._stderr.seek(0)
        printed = self._stderr.read().decode(errors="replace").strip()[-1000:]
        return ToolchainError(
            "RW0103",
            where=WHERE,
            seen=f"process ended with {how_it_ended(self._process.returncode)}: {printed or 'no message'}",
            allowed="an answer to every request",
            do="call again, a new process starts; these bytes or this LLVM may be at fault",
        )

    def _missing(self) -> ToolchainError:
        looked = "; ".join(f"{source}: {path} ({problem})" for source, path, problem in self.greeting["looked"])
        return ToolchainError(
            "RW0102",
            where=WHERE,
            seen=f"no usable library; looked at {looked}",
            allowed="an LLVM shared library, 19 or newer, with the AMDGPU target",
            do="pip install 'redline[sim]', or name a library in $RADIOWAVE_LIBLLVM",
        )


class _Pipes:
    """Both directions of one exchange, without blocking: a child that stops reading must not stop us."""

    def __init__(self, process: subprocess.Popen[bytes], request: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin.fileno(), process.stdout.fileno()
        self._unsent, self._received = memoryview(request), bytearray()

    def is_done(self) -> bool:
        """Whether the whole answer is here."""
        have = len(self._received)
        return have >= 4 and have >= 4 + struct.unpack_from("<I", self._received)[0]

    def body(self) -> bytes:
        """The answer without its length."""
        return bytes(self._received[4:])

    def move(self, seconds: float) -> bool:
        """Send and receive what is possible now. False: the child has closed its end."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._from, selectors.EVENT_READ)
            if self._unsent:
                ready.register(self._to, selectors.EVENT_WRITE)
            for key, _events in ready.select(seconds):
                if not (self._send() if key.fd == self._to else self._receive()):
                    return False
        return True

    def is_too_long(self) -> bool:
        """Whether no honest answer is as long; the child still lives and may be stuck in sending the rest."""
        return len(self._received) > MAX_MESSAGE_BYTES

    def _send(self) -> bool:
        try:
            self._unsent = self._unsent[os.write(self._to, self._unsent) :]
        except BrokenPipeError:
            return False
        return True

    def _receive(self) -> bool:
        piece = os.read(self._from, 1 << 20)
        self._received += piece
        return bool(piece)


def _stop(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, stderr):
        if stream:
            stream.close()
