# SPDX-License-Identifier: Apache-2.0
"""Compile LLVM IR text into linked AMDGPU code objects.

LLVM runs in a child process (`llvm_child.py`) because it ends its process at a fatal error; here a dead child
becomes a `ToolchainError` with what it printed, how it ended, and a command that repeats it. Linking happens
in this process (`linker.py`). Does not cache; who calls it does.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from radiowave.child import command, environment, how_it_ended, pack_message, read_message
from radiowave.errors import CodeObjectError, LinkError, ToolchainError
from radiowave.linker import link
from radiowave.targets import check_code_object_version, check_target, check_wave

# A kernel takes 10-20 ms; a job that needs this long is stuck.
SECONDS_PER_JOB = 30.0
SECONDS_TO_START = 60.0

# How LLVM's parser reports: line, column, message, the line's text, a caret below the column.
PARSING_ERROR = re.compile(r"LLVM IR parsing error\n<string>:(\d+):(\d+): error: (.*)\n(.*)\n *\^\s*")
MOST_SHOWN = 120  # characters of a line


@dataclass(frozen=True)
class CompileJob:
    """One compilation: LLVM IR text for one target and wave size.

    `wave` is 32 or 64 lanes. `code_object_version` None means what the source's module flag says, and 5 where it says
    nothing. `label` is how messages call the source. `llvm_options` hold for the whole process of a batch, so all jobs
    of a batch have the same; LLVM does not complain about one that it does not know.
    """

    text: str
    target: str
    wave: int = 32
    code_object_version: int | None = None
    label: str = "LLVM IR text"
    llvm_options: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse names that must not reach LLVM: raises UnsupportedTarget."""
        check_target(self.target, where=self.label)
        check_wave(self.wave, where=self.label)
        if self.code_object_version is not None:
            check_code_object_version(self.code_object_version, where=self.label)


def compile_ir(text: str, *, target: str, wave: int = 32, code_object_version: int | None = None) -> bytes:
    """The linked code object of one LLVM IR module. `wave` is 32 or 64 lanes.

    Raises UnsupportedTarget, ToolchainError, LinkError and CodeObjectError as `compile_many` does.
    """
    return compile_many([CompileJob(text, target, wave, code_object_version)])[0]


def compile_file(path: str | Path, *, target: str, wave: int = 32, code_object_version: int | None = None) -> bytes:
    """The linked code object of one LLVM IR file. `wave` is 32 or 64 lanes.

    Raises UnsupportedTarget, ToolchainError, LinkError and CodeObjectError as `compile_many` does, OSError when the
    file cannot be read, UnicodeDecodeError when it is no UTF-8 text.
    """
    text = Path(path).read_text(encoding="utf-8")
    return compile_many([CompileJob(text, target, wave, code_object_version, label=str(path))])[0]


def compile_many(jobs: Sequence[CompileJob], progress: Callable[[int], None] | None = None) -> list[bytes]:
    """The linked code objects of many modules, compiled one after another in one child process.

    `progress(done)` is called after each. A failure fails the batch and names its job. Raises UnsupportedTarget for a
    target, wave size or code object version outside the lists, ToolchainError when LLVM refuses a job, dies or takes
    too long, LinkError for an object that needs more than the linker does, CodeObjectError for one that is damaged.
    """
    linked: list[bytes] = []
    with closing(_relocatables(jobs)) as relocatables:  # ends the child when linking fails
        for job, relocatable in zip(jobs, relocatables, strict=True):
            linked.append(_linked(job, relocatable))
            if progress is not None:
                progress(len(linked))
    return linked


def _linked(job: CompileJob, relocatable: bytes) -> bytes:
    """The linker knows an object; whoever reads its message knows a source."""
    try:
        return link(relocatable)
    except (LinkError, CodeObjectError) as error:
        place = f"linking {job.label} for {job.target} wave{job.wave}, {error.where}"
        raise type(error)(error.code, where=place, seen=error.seen, allowed=error.allowed, do=error.do) from error


def compile_relocatable(jobs: Sequence[CompileJob]) -> list[bytes]:
    """The relocatable objects as LLVM wrote them, one per job."""
    return list(_relocatables(jobs))


def _relocatables(jobs: Sequence[CompileJob]) -> Generator[bytes]:
    for job in jobs:
        job.check()
    if not jobs:
        return
    if len({job.llvm_options for job in jobs}) > 1:
        raise ValueError("the jobs of a batch have different llvm_options")
    with _compiler(jobs) as compiler:
        for job in jobs:
            yield compiler.next_object(job)


@contextmanager
def _compiler(jobs: Sequence[CompileJob]) -> Iterator[_Compiler]:
    """A child process at work. The jobs lie in a file, so the child can never block us."""
    with tempfile.TemporaryFile() as requests, tempfile.TemporaryFile() as printed:
        for job in jobs:
            request = {"text": job.text, "target": job.target, "wave": job.wave, "version": job.code_object_version}
            requests.write(pack_message(request))
        requests.seek(0)
        with subprocess.Popen(
            command("radiowave.llvm_child", *_llvm_options(jobs[0])),
            stdin=requests,
            stdout=subprocess.PIPE,
            stderr=printed,
            env=environment(),
        ) as process:
            compiler = _Compiler(process, printed, SECONDS_TO_START + SECONDS_PER_JOB * len(jobs))
            try:
                yield compiler
            finally:
                compiler.stop()


class _Compiler:
    """The answers of one child process, and the watchdog that ends it when it takes too long."""

    def __init__(self, process: subprocess.Popen[bytes], printed: IO[bytes], seconds: float) -> None:
        self._process, self._printed, self._seconds = process, printed, seconds
        self._is_late = threading.Event()
        self._watchdog = threading.Timer(seconds, self._give_up)
        self._watchdog.daemon = True
        self._watchdog.start()

    def stop(self) -> None:
        """End the child, whatever it is doing."""
        self._watchdog.cancel()
        self._process.kill()

    def _give_up(self) -> None:
        self._is_late.set()
        self._process.kill()

    def next_object(self, job: CompileJob) -> bytes:
        """The object of the next job, in order."""
        assert self._process.stdout is not None
        answer = read_message(self._process.stdout)
        if answer is None:
            raise self._ended(job)
        if "object" not in answer:
            raise _refused(job, answer)
        relocatable: bytes = answer["object"]
        return relocatable

    def _ended(self, job: CompileJob) -> ToolchainError:
        ended = how_it_ended(self._process.wait())
        if self._is_late.is_set():
            return _failed(
                "RW0105",
                job,
                f"no answer after {self._seconds:g} s",
                "shorten the source, or find what keeps LLVM busy",
            )
        self._printed.seek(0)
        printed = self._printed.read().decode(errors="replace").strip()[-2000:]
        seen = f"LLVM ended its process with {ended} and said: {printed or 'nothing'}"
        return _failed("RW0101", job, seen, "change what the message names")


def _refused(job: CompileJob, answer: Mapping[str, str]) -> ToolchainError:
    """LLVM or its child process said what is wrong with the source."""
    said = answer["error"].strip()
    if "allowed" in answer:
        return ToolchainError("RW0106", where=_place(job), seen=said, allowed=answer["allowed"], do=answer["do"])
    parsed = PARSING_ERROR.match(said)
    if parsed is None:
        return _failed("RW0101", job, said, "change what the message names")
    line, column, message, text = parsed.groups()
    shown = text.strip()[:MOST_SHOWN]
    return ToolchainError(
        "RW0101",
        where=f"{job.label}:{line}:{column}, compiled for {job.target} wave{job.wave}",
        seen=f"{message}: {shown}" if shown else message,
        allowed="LLVM IR as text, the form of .ll files",
        do=f"correct this line; to see it as LLVM shows it, repeat with: {_repeat(job)}",
    )


def _failed(code: str, job: CompileJob, seen: str, do: str) -> ToolchainError:
    allowed = f"LLVM IR that LLVM's AMDGPU back end compiles for {job.target}"
    return ToolchainError(code, where=_place(job), seen=seen, allowed=allowed, do=f"{do}; repeat with: {_repeat(job)}")


def _place(job: CompileJob) -> str:
    return f"compiling {job.label} for {job.target} wave{job.wave}"


def _repeat(job: CompileJob) -> str:
    """A command that repeats one job: from the file that its label names, else from a copy of its text."""
    arguments = [_source_path(job), "--target", job.target, "--wave", str(job.wave)]
    if job.code_object_version is not None:
        arguments += ["--code-object-version", str(job.code_object_version)]
    return shlex.join(command("radiowave.llvm_child", *arguments, *_llvm_options(job)))


def _llvm_options(job: CompileJob) -> list[str]:
    return [f"--llvm-option={option}" for option in job.llvm_options]


def _source_path(job: CompileJob) -> str:
    path = Path(job.label)
    try:
        if path.read_text(encoding="utf-8") == job.text:
            return str(path.absolute())
    except (OSError, ValueError):  # the label is no file name
        pass
    with tempfile.NamedTemporaryFile("w", prefix="radiowave-", suffix=".ll", delete=False, encoding="utf-8") as copy:
        copy.write(job.text)
    return copy.name
