# SPDX-License-Identifier: Apache-2.0
"""Find the compilers and disassemblers of this machine, and say where each was looked for.

Only looks: nothing is installed, and nothing here decides what a build uses. Today that is always llvmlite
and the disassembler library; clang and hipcc are reported for users who compile HIP sources themselves.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from radiowave import rocm
from radiowave.child import command, environment
from radiowave.disassemble import Disassembler
from radiowave.errors import ToolchainError
from radiowave.find_llvm import SYSTEM_VERSIONS, places

SECONDS = 30.0


@dataclass(frozen=True)
class Tool:
    """One tool: what it is for, its path (None: not found), its version, every place looked at, and which had it."""

    name: str
    purpose: str
    path: str | None
    version: str
    looked: tuple[str, ...]
    found: str | None


def find_tools() -> list[Tool]:
    """Every tool that Radiowave knows of. Takes about half a second; a missing tool is no error."""
    return [_disassembler(), _llvmlite(), _clang(), _hipcc()]


def _disassembler() -> Tool:
    purpose = "reads machine code: the software device and `radiowave disassemble` need it"
    looked = tuple(f"{source}: {library}" for source, library in places())
    try:
        with Disassembler() as disassembler:
            found = disassembler.library()
    except ToolchainError as error:
        return Tool("disassembler", purpose, None, str(error), looked, None)
    return Tool("disassembler", purpose, found["library"], f"LLVM {found['version']}", looked, found["source"])


def _llvmlite() -> Tool:
    purpose = "compiles LLVM IR for the GPU"
    arguments, place = command("radiowave.llvm_child", "--versions"), "llvmlite in this Python"
    try:
        printed = subprocess.run(arguments, capture_output=True, env=environment(), timeout=SECONDS, check=True).stdout
        found = json.loads(printed)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Tool("llvmlite", purpose, None, str(error), (place,), None)
    version = f"llvmlite {found['llvmlite']}, LLVM {found['llvm']}"
    return Tool("llvmlite", purpose, found["path"], version, (place,), place)


def _clang() -> Tool:
    names = [f"clang-{version}" for version in SYSTEM_VERSIONS]
    purpose = "compiles HIP and OpenCL sources; not needed here"
    return _program("clang", purpose, "RADIOWAVE_CLANG", rocm.places("lib/llvm/bin/clang"), names)


def _hipcc() -> Tool:
    purpose = "ROCm's compiler driver; not needed here"
    return _program("hipcc", purpose, "HIPCC", rocm.places("bin/hipcc"), ["hipcc"])


def _program(name: str, purpose: str, variable: str, paths: Sequence[str], names: Sequence[str]) -> Tool:
    looked = []
    for place, path in _candidates(variable, paths, names):
        looked.append(place)
        version = _version(path) if path else ""
        if path and version:
            return Tool(name, purpose, path, version, tuple(looked), place)
    return Tool(name, purpose, None, "not found", tuple(looked), None)


def _candidates(variable: str, paths: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each place in words, and the program there if there is one. The environment variable decides alone."""
    chosen = os.environ.get(variable)
    if chosen:
        yield f"${variable}: {chosen}", shutil.which(chosen)
        return
    for path in paths:
        yield path, shutil.which(path)
    for name in names:
        yield f"{name} on PATH", shutil.which(name)


def _version(path: str) -> str:
    """The first line that a program prints about its version; empty if it does not run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").partition("\n")[0].strip()
