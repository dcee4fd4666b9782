# SPDX-License-Identifier: Apache-2.0
"""Compile LLVM IR text into linked AMDGPU code objects.

LLVM runs in a child process (`llvm_child.py`) because it ends its process at a fatal error; here a dead child
becomes a `ToolchainError` with what it printed, how it ended, and a command that repeats it. Linking happens
in this process (`link.py`). Does not cache; who calls it does.
"""

from __future__ import annotations

import hashlib
import io
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radiowave.child import command, environment, how_it_ended, pack_message, read_message
from radiowave.errors import ToolchainError
from radiowave.link import link
from radiowave.targets import check_code_object_version, check_target, check_wave

# A kernel takes 10-20 ms; a job that needs this long is stuck.
SECONDS_PER_JOB = 30.0
SECONDS_TO_START = 60.0


@dataclass(frozen=True)
class CompileJob:
    """One compilation: LLVM IR text for one target and wave size.

    `code_object_version` None means what the source's module flag says, and 5 where it says nothing. `label`
    is how messages call the source.
    """

    text: str
    target: str
    wave: int = 32
    code_object_version: int | None = None
    label: str = "LLVM IR text"

    def check(self) -> None:
        """Refuse names that must not reach LLVM."""
        check_target(self.target, where=self.label)
        check_wave(self.wave, where=self.label)
        if self.code_object_version is not None:
            check_code_object_version(self.code_object_version, where=self.label)


def compile_ir(text: str, *, target: str, wave: int = 32, code_object_version: int | None = None) -> bytes:
    """The linked code object of one LLVM IR module."""
    return compile_many([CompileJob(text, target, wave, code_object_version)])[0]


def compile_file(
    path: str | Path, *, target: str, wave: int = 32, code_object_version: int | None = None
) -> bytes:
    """The linked code object of one LLVM IR file."""
    text = Path(path).read_text(encoding="utf-8")
    return compile_many([CompileJob(text, target, wave, code_object_version, label=str(path))])[0]


def compile_many(jobs: Sequence[CompileJob]) -> list[bytes]:
    """The linked code objects of many modules, compiled one after another in one child process."""
    return [link(relocatable) for relocatable in compile_relocatable(jobs)]


def compile_relocatable(jobs: Sequence[CompileJob]) -> list[bytes]:
    """The relocatable objects as LLVM wrote them, one per job. Any failure fails the batch and names its
    job."""
    for job in jobs:
        job.check()
    if not jobs:
        return []
    done = _run_child(jobs)
    replies = io.BytesIO(done.stdout)
    return [_relocatable(job, read_message(replies), done) for job in jobs]


def _run_child(jobs: Sequence[CompileJob]) -> subprocess.CompletedProcess[bytes]:
    request = b"".join(
        pack_message({"text": j.text, "target": j.target, "wave": j.wave, "version": j.code_object_version})
        for j in jobs
    )
    seconds = SECONDS_TO_START + SECONDS_PER_JOB * len(jobs)
    try:
        return subprocess.run(
            command("radiowave.llvm_child"),
            input=request,
            capture_output=True,
            env=environment(),
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        answered = _count(expired.stdout or b"")
        job = jobs[min(answered, len(jobs) - 1)]
        raise ToolchainError(
            "RW0105",
            where=f"compiling {job.label} for {job.target} wave{job.wave}",
            seen=f"no answer after {seconds:.0f} s",
            allowed=f"{SECONDS_PER_JOB:.0f} s a job",
            do=f"repeat with: {_repeat(job)}",
        ) from None


def _count(stream: bytes) -> int:
    replies, count = io.BytesIO(stream), 0
    while read_message(replies) is not None:
        count += 1
    return count


def _relocatable(job: CompileJob, reply: Any, done: subprocess.CompletedProcess[bytes]) -> bytes:
    if reply is None:
        printed = done.stderr.decode(errors="replace").strip()[-2000:]
        ended = how_it_ended(done.returncode)
        raise _failed("RW0101", job, f"the compiler ended with {ended}: {printed or 'it printed nothing'}")
    if "object" not in reply:
        raise _failed("RW0106" if reply["mismatch"] else "RW0101", job, reply["error"].strip())
    relocatable: bytes = reply["object"]
    return relocatable


def _failed(code: str, job: CompileJob, seen: str) -> ToolchainError:
    return ToolchainError(
        code,
        where=f"compiling {job.label} for {job.target} wave{job.wave}",
        seen=seen,
        allowed="LLVM IR that LLVM compiles for this target",
        do=f"repeat with: {_repeat(job)}",
    )


def _repeat(job: CompileJob) -> str:
    """A command that repeats one job. Its source is kept in a file whose name comes from its content."""
    digest = hashlib.sha256(job.text.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"radiowave-{digest}.ll"
    path.write_text(job.text, encoding="utf-8")
    arguments = [str(path), "--target", job.target, "--wave", str(job.wave)]
    if job.code_object_version is not None:
        arguments += ["--code-object-version", str(job.code_object_version)]
    return shlex.join(command("radiowave.llvm_child", *arguments))
