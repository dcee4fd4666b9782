# SPDX-License-Identifier: Apache-2.0
"""Find the compilers and disassemblers of this machine, and say where each was looked for.

For people and bug reports. `compilers.py` finds and chooses what compiles, `find_llvm.py` what disassembles.
"""

from __future__ import annotations

from dataclasses import dataclass

from radiowave.compilers import HIP, Toolchain, find_toolchains
from radiowave.disassemble import Disassembler
from radiowave.errors import ToolchainError
from radiowave.find_llvm import places


@dataclass(frozen=True)
class Tool:
    """One tool: what it is for, its path (None: not taken), its version, why it was not taken, and why it was.

    `looked` has every place looked at, each with what was wrong there; `files` pairs of a file name and its sha256.
    """

    name: str
    purpose: str
    path: str | None
    version: str
    looked: tuple[str, ...]
    found: str | None
    files: tuple[tuple[str, str], ...] = ()


def find_tools() -> list[Tool]:
    """Every tool that Radiowave knows of, hashed. Takes a second or two; a missing tool is no error."""
    return [_disassembler(), *(_compiler(toolchain) for toolchain in find_toolchains())]


def _disassembler() -> Tool:
    purpose = "reads machine code: the software device and `radiowave disassemble` need it"
    looked = tuple(f"{source}: {library}" for source, library in places())
    try:
        with Disassembler() as disassembler:
            found = disassembler.library()
    except ToolchainError as error:
        return Tool("disassembler", purpose, None, str(error), looked, None)
    return Tool("disassembler", purpose, found["library"], f"LLVM {found['version']}", looked, found["source"])


def _compiler(toolchain: Toolchain) -> Tool:
    purpose = "compiles HIP sources for the GPU" if toolchain.language == HIP else "compiles LLVM IR for the GPU"
    if not toolchain.is_usable:
        return Tool(toolchain.name, purpose, None, toolchain.version, (toolchain.reason,), None)
    files = toolchain.identity().files
    return Tool(toolchain.name, purpose, toolchain.paths[0], toolchain.version, (), toolchain.reason, files)
