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
    from radiowave.contracts import Assessment as Assessment
    from radiowave.contracts import Contract as Contract
    from radiowave.contracts import assess as assess
    from radiowave.descriptor import Descriptor as Descriptor
    from radiowave.difference import Difference as Difference
    from radiowave.difference import compare as compare
    from radiowave.disassemble import Disassembler as Disassembler
    from radiowave.disassemble import Instruction as Instruction
    from radiowave.errors import CodeObjectError as CodeObjectError
    from radiowave.errors import LinkError as LinkError
    from radiowave.errors import ManifestError as ManifestError
    from radiowave.errors import RadiowaveError as RadiowaveError
    from radiowave.errors import RecipeError as RecipeError
    from radiowave.errors import ToolchainError as ToolchainError
    from radiowave.errors import UnsupportedTarget as UnsupportedTarget
    from radiowave.linker import link as link
    from radiowave.manifest import Manifest as Manifest
    from radiowave.manifest import make_manifest as make_manifest
    from radiowave.metadata import Argument as Argument
    from radiowave.occupancy import Occupancy as Occupancy
    from radiowave.occupancy import occupancy_of as occupancy_of
    from radiowave.recipes import Catalogue as Catalogue
    from radiowave.recipes import Recipe as Recipe
    from radiowave.refused import InstructionCheck as InstructionCheck
    from radiowave.refused import RefusedInstruction as RefusedInstruction
    from radiowave.targets import TARGETS as TARGETS
    from radiowave.toolchain import Tool as Tool
    from radiowave.toolchain import find_tools as find_tools
    from radiowave.verification import Verification as Verification
    from radiowave.verification import verify as verify

_HOME = {
    "Argument": "metadata",
    "Assessment": "contracts",
    "BundleEntry": "bundle",
    "Catalogue": "recipes",
    "CodeObject": "code_object",
    "CodeObjectError": "errors",
    "CompileJob": "compile",
    "Contract": "contracts",
    "Descriptor": "descriptor",
    "Difference": "difference",
    "Disassembler": "disassemble",
    "Instruction": "disassemble",
    "InstructionCheck": "refused",
    "KernelFacts": "code_object",
    "KernelCertificate": "certificate",
    "LinkError": "errors",
    "Manifest": "manifest",
    "ManifestError": "errors",
    "Occupancy": "occupancy",
    "RadiowaveError": "errors",
    "Recipe": "recipes",
    "RecipeError": "errors",
    "RefusedInstruction": "refused",
    "Site": "certificate",
    "TARGETS": "targets",
    "Tool": "toolchain",
    "ToolchainError": "errors",
    "UnsupportedTarget": "errors",
    "Verification": "verification",
    "assess": "contracts",
    "certify": "certifier",
    "compare": "difference",
    "compile_file": "compile",
    "compile_ir": "compile",
    "compile_many": "compile",
    "find_tools": "toolchain",
    "link": "linker",
    "make_manifest": "manifest",
    "occupancy_of": "occupancy",
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
