# SPDX-License-Identifier: Apache-2.0
"""Radiowave: compiler policy for AMDGPU kernels. Compile, link, inspect and disassemble code objects.

Not a compiler: LLVM compiles, in a child process. Importing this package imports neither llvmlite nor numpy;
each public name is loaded at its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radiowave.bundle import BundleEntry as BundleEntry
    from radiowave.bundle import unbundle as unbundle
    from radiowave.certificate import KernelCertificate as KernelCertificate
    from radiowave.certificate import Site as Site
    from radiowave.certifier import certify as certify
    from radiowave.code_object import CodeObject as CodeObject
    from radiowave.code_object import KernelFacts as KernelFacts
    from radiowave.compile import CompileJob as CompileJob
    from radiowave.compile import compile_file as compile_file
    from radiowave.compile import compile_ir as compile_ir
    from radiowave.compile import compile_many as compile_many
    from radiowave.compilers import Toolchain as Toolchain
    from radiowave.compilers import ToolIdentity as ToolIdentity
    from radiowave.compilers import choose_toolchain as choose_toolchain
    from radiowave.compilers import find_toolchains as find_toolchains
    from radiowave.descriptor import Descriptor as Descriptor
    from radiowave.disassemble import Disassembler as Disassembler
    from radiowave.disassemble import Instruction as Instruction
    from radiowave.errors import CodeObjectError as CodeObjectError
    from radiowave.errors import LinkError as LinkError
    from radiowave.errors import ManifestError as ManifestError
    from radiowave.errors import RadiowaveError as RadiowaveError
    from radiowave.errors import ToolchainError as ToolchainError
    from radiowave.errors import UnsupportedTarget as UnsupportedTarget
    from radiowave.linker import link as link
    from radiowave.manifest import Manifest as Manifest
    from radiowave.manifest import make_manifest as make_manifest
    from radiowave.metadata import Argument as Argument
    from radiowave.options import SCHEDULERS as SCHEDULERS
    from radiowave.options import Options as Options
    from radiowave.record import Compiled as Compiled
    from radiowave.record import CompileRecord as CompileRecord
    from radiowave.recorded import compile_hip as compile_hip
    from radiowave.recorded import compile_source as compile_source
    from radiowave.refused import InstructionCheck as InstructionCheck
    from radiowave.refused import RefusedInstruction as RefusedInstruction
    from radiowave.targets import TARGETS as TARGETS
    from radiowave.toolchain import Tool as Tool
    from radiowave.toolchain import find_tools as find_tools
    from radiowave.verification import Verification as Verification
    from radiowave.verification import verify as verify

_HOME = {
    "Argument": "metadata",
    "BundleEntry": "bundle",
    "CodeObject": "code_object",
    "CodeObjectError": "errors",
    "CompileJob": "compile",
    "CompileRecord": "record",
    "Compiled": "record",
    "Descriptor": "descriptor",
    "Disassembler": "disassemble",
    "Instruction": "disassemble",
    "InstructionCheck": "refused",
    "KernelCertificate": "certificate",
    "KernelFacts": "code_object",
    "LinkError": "errors",
    "Manifest": "manifest",
    "ManifestError": "errors",
    "Options": "options",
    "RadiowaveError": "errors",
    "RefusedInstruction": "refused",
    "SCHEDULERS": "options",
    "Site": "certificate",
    "TARGETS": "targets",
    "Tool": "toolchain",
    "ToolIdentity": "compilers",
    "Toolchain": "compilers",
    "ToolchainError": "errors",
    "UnsupportedTarget": "errors",
    "Verification": "verification",
    "certify": "certifier",
    "choose_toolchain": "compilers",
    "compile_file": "compile",
    "compile_hip": "recorded",
    "compile_ir": "compile",
    "compile_many": "compile",
    "compile_source": "recorded",
    "find_toolchains": "compilers",
    "find_tools": "toolchain",
    "link": "linker",
    "make_manifest": "manifest",
    "unbundle": "bundle",
    "verify": "verification",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'radiowave' has no attribute {name!r}")
    return getattr(importlib.import_module(f"radiowave.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
