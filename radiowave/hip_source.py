# SPDX-License-Identifier: Apache-2.0
"""Run a clang on one HIP source: the command, the process, and its complaints as errors of ours.

The compiler runs in a child process with an environment of its own, in the source's folder. Nothing is inspected here;
`recorded.py` does that and writes the record.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from radiowave.child import how_it_ended
from radiowave.compilers import Toolchain
from radiowave.errors import ToolchainError
from radiowave.options import Options, scheduler_arguments

INCLUDE = Path(__file__).parent / "include"
HEADER = INCLUDE / "radiowave" / "hip.h"

# A kernel takes half a second; a source that needs this long is stuck.
SECONDS = 120.0

# The environment that a compiler gets. Anything else (CPATH, CCC_OVERRIDE_OPTIONS, hipcc's own flags) could change what
# it writes without being in the record.
PASSED = ("PATH", "HOME", "LD_LIBRARY_PATH", "ROCM_PATH", "ROCM_HOME")

# The driver writes no list of headers for device code; the compiler behind it does.
DEPENDENCIES = ("-sys-header-deps", "-MT", "object", "-dependency-file")

# What a compiler that ends without a place says, between frames of its stack.
_SAID = re.compile(r"^.*(?:error:|LLVM ERROR|Assertion|UNREACHABLE).*$", re.MULTILINE)
_COMPLAINT = re.compile(r"^(.+?):(\d+):(\d+): (?:fatal )?error: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class ClangResult:
    """The linked object, the command as the record has it, and the headers that were read."""

    code_object: bytes
    argv: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]


def compile_with_clang(source: Path, options: Options, toolchain: Toolchain, version: int) -> ClangResult:
    """Compile and link one HIP source file for one target. Raises ToolchainError."""
    folder = source.resolve().parent
    with tempfile.TemporaryDirectory(prefix="radiowave-") as scratch:
        output = Path(scratch, "out.co")
        words = list(_words(source.name, options, toolchain, version))
        places = {"{source_folder}": str(folder), "{include}": str(INCLUDE), "{output}": str(output)}
        argv = [*toolchain.command, *(_filled(word, places) for word in words)]
        listing = [word for option in (*DEPENDENCIES, f"{scratch}/deps") for word in ("-Xclang", option)]
        printed, returncode = _run([*argv, *listing], folder, Path(scratch), toolchain, source)
        if returncode != 0 or not output.is_file():
            raise _refused(source, options, toolchain, printed, returncode, argv)
        named = (toolchain.name, *toolchain.command[1:], *words)
        return ClangResult(output.read_bytes(), named, _headers(Path(scratch, "deps"), source, folder))


def _words(name: str, options: Options, toolchain: Toolchain, version: int) -> Iterator[str]:
    """The arguments, with braces where a folder goes. What the user gave comes last but for the files."""
    yield from ("-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={options.target}")
    yield "-mwavefrontsize64" if options.wave == 64 else "-mno-wavefrontsize64"
    yield from (f"-mcode-object-version={version}", "-O3")
    yield "-ffast-math" if options.fast_math else "-fno-fast-math"
    yield f"-ffp-contract={options.contract}"
    yield from ("-fno-exceptions", "-fno-rtti", "-fno-color-diagnostics", "-fno-crash-diagnostics")
    # No symbol that is named after the hash of a path.
    yield from ("-fuse-cuid=none", "-ffile-prefix-map={source_folder}=.", "-ffile-prefix-map={include}=include")
    yield from ("-I{include}", "-include", "radiowave/hip.h")
    if toolchain.has_hip_headers:
        yield "-DRADIOWAVE_HIP_HEADERS=1"
    else:
        yield from ("-nogpuinc", "-nogpulib", "-I{include}/without_hip")
    yield from ("-DRADIOWAVE_ACTIVE=1", f"-DRADIOWAVE_WAVE={options.wave}")
    yield f"-DRADIOWAVE_CODE_OBJECT_VERSION={version}"
    yield from scheduler_arguments(options.scheduler)
    yield from (f"-D{define}" for define in options.defines)
    yield from options.arguments
    yield from ("-o", "{output}", name)


def _filled(word: str, places: dict[str, str]) -> str:
    for brace, place in places.items():
        word = word.replace(brace, place)
    return word


def _run(argv: list[str], folder: Path, scratch: Path, toolchain: Toolchain, source: Path) -> tuple[str, int]:
    """What the compiler printed and how it ended; it and what it started are ended when they take too long."""
    with subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(toolchain, scratch),
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise ToolchainError(
                "RW0105",
                where=f"compiling {source} with {toolchain.name}",
                seen=f"no answer after {SECONDS:g} s",
                allowed="a source that compiles in time",
                do="shorten the source, or find what keeps the compiler busy",
            ) from None
    return printed.decode(errors="replace"), process.returncode


def _environment(toolchain: Toolchain, scratch: Path) -> dict[str, str]:
    """Few variables, and the linker where clang looks for a program called lld, unless it has one of its own."""
    passed = {name: os.environ[name] for name in PASSED if name in os.environ}
    if toolchain.linker:
        shim = scratch / "bin" / "lld"
        shim.parent.mkdir()
        # zig's linker knows what it is by its own first argument and does not take the driver's `-flavor gnu`.
        shift = "shift 2; " if len(toolchain.linker) > 1 else ""
        shim.write_text(f'#!/bin/sh\n{shift}exec {shlex.join(toolchain.linker)} "$@"\n')
        shim.chmod(0o755)
        passed["PATH"] = os.pathsep.join([str(shim.parent), passed.get("PATH", os.defpath)])
    # __DATE__ and __TIME__ are the same on every day.
    return {**passed, "LC_ALL": "C", "TMPDIR": str(scratch), "SOURCE_DATE_EPOCH": "0"}


def _headers(dependencies: Path, source: Path, folder: Path) -> tuple[tuple[str, str], ...]:
    """Names and hashes of what was included, from the rule that clang writes for make."""
    _, _, listed = dependencies.read_text(encoding="utf-8", errors="surrogateescape").partition(":")
    found = set()
    for word in re.findall(r"(?:\\.|\S)+", listed.replace("\\\n", " ")):
        path = (folder / re.sub(r"\\(.)", r"\1", word).replace("$$", "$")).resolve()
        if path != source.resolve() and path.is_file():
            found.add((_shown(path, folder), hashlib.sha256(path.read_bytes()).hexdigest()))
    return tuple(sorted(found))


def _shown(path: Path, folder: Path) -> str:
    for place in (folder, INCLUDE):
        if path.is_relative_to(place):
            return path.relative_to(place).as_posix()
    return path.name


def _refused(
    source: Path, options: Options, toolchain: Toolchain, printed: str, returncode: int, argv: list[str]
) -> ToolchainError:
    """The first complaint stands in the message; the command shows the rest."""
    made_for = f"compiled for {options.target} wave{options.wave} with {toolchain.name}"
    found = _COMPLAINT.search(printed)
    if found is not None and returncode > 0:
        where, seen = f"{found[1]}:{found[2]}:{found[3]}, {made_for}", found[4]
    else:
        where = f"{source}, {made_for}"
        said = "; ".join(_SAID.findall(printed)) or printed.strip()[-1500:] or "nothing"
        seen = f"the compiler ended with {how_it_ended(returncode)} and said: {said}"
    again = shlex.join([*argv[:-3], "-o", os.devnull, str(source)])
    return ToolchainError(
        "RW0101",
        where=where,
        seen=seen,
        allowed=f"HIP device code that {toolchain.version} compiles for {options.target}",
        do=f"change what the message names; to see all of it: {again}",
    )
