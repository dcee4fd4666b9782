# SPDX-License-Identifier: Apache-2.0
"""Find the compilers and disassemblers of this machine, and say where each was looked for.

Only looks: nothing is installed, and nothing here decides what a build uses. LLVM IR is always llvmlite's; which
compiler takes HIP is decided by `hip_compilers.py`.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from radiowave.child import command, environment
from radiowave.disassemble import Disassembler
from radiowave.errors import ToolchainError
from radiowave.find_llvm import places
from radiowave.hip_compilers import HipCompiler, file_sha256, find_hip_compilers

SECONDS = 30.0


@dataclass(frozen=True)
class Tool:
    """One tool: what it is for, its path (None: not found), its version, every place looked at, and which had it.

    `sha256` (hex) is that of a compiler's file or of llvmlite's library, "" for the others.
    """

    name: str
    purpose: str
    path: str | None
    version: str
    looked: tuple[str, ...]
    found: str | None
    sha256: str = ""


def find_tools() -> list[Tool]:
    """Every tool that Radiowave knows of. Takes about half a second; a missing tool is no error."""
    return [_disassembler(), llvmlite_tool(), *map(_hip, find_hip_compilers())]


def _disassembler() -> Tool:
    purpose = "reads machine code: the software device and `radiowave disassemble` need it"
    looked = tuple(f"{source}: {library}" for source, library in places())
    try:
        with Disassembler() as disassembler:
            found = disassembler.library()
    except ToolchainError as error:
        return Tool("disassembler", purpose, None, str(error), looked, None)
    return Tool("disassembler", purpose, found["library"], f"LLVM {found['version']}", looked, found["source"])


def llvmlite_tool() -> Tool:
    """What compiles LLVM IR; its version is asked for in a process of its own."""
    purpose = "compiles LLVM IR for the GPU"
    arguments, place = command("radiowave.llvm_child", "--versions"), "llvmlite in this Python"
    try:
        printed = subprocess.run(arguments, capture_output=True, env=environment(), timeout=SECONDS, check=True).stdout
        found = json.loads(printed)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Tool("llvmlite", purpose, None, str(error), (place,), None)
    version = f"llvmlite {found['llvmlite']}, LLVM {found['llvm']}"
    return Tool("llvmlite", purpose, found["path"], version, (place,), place, file_sha256(found["library"]))


def _hip(found: HipCompiler) -> Tool:
    purpose = "compiles HIP"
    path = " ".join(found.compiler) or None
    looked = (path or found.why_not,)
    taken = found.why_not or f"usable, links with {' '.join(found.linker) or 'itself'}"
    return Tool(found.name, purpose, path, found.version or "not found", looked, taken if path else None, found.sha256)
