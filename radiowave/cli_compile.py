# SPDX-License-Identifier: Apache-2.0
"""The commands `radiowave compile` and `header`: from LLVM IR or HIP to a code object, with a manifest beside it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from pathlib import Path, PurePath
from typing import Any

from radiowave.code_object import CodeObject
from radiowave.compile import compile_file
from radiowave.disassemble import Disassembler
from radiowave.errors import ToolchainError
from radiowave.hip import HEADER, PROFILES, HipJob, compile_hip_file
from radiowave.inspection import as_json
from radiowave.manifest import FileId, make_manifest

OK = 0
HIP_SUFFIXES = (".hip", ".cpp", ".cc", ".cu")
_NO_DISASSEMBLER = "RW0102"
# A function of LLVM IR text: what stands before its name, and the name.
_DEFINE = re.compile(r'^\s*define\b([^@\n]*)@("[^"]*"|[-\w$.]+)', re.MULTILINE)
#: Options that LLVM IR has no use for, by their names in the namespace, with what they are when not given.
_OF_HIP: dict[str, Any] = {
    "toolchain": None,
    "profile": "default",
    "define": [],
    "arg": [],
    "fast_math": False,
    "fp_contract": "on",
}


def add_commands(commands: Any, add: Any, make: str) -> None:
    """The parsers; `add` makes one with the options that all commands have, `make` is how to get an object."""
    purpose = "Compile LLVM IR or HIP into a linked code object."
    build = add(commands, "compile", purpose, make, _compile)
    build.add_argument("source", type=Path, metavar="SRC", help="LLVM IR as text (.ll), or HIP (.hip, .cpp, .cc, .cu)")
    build.add_argument("--target", required=True, help="the GPU: gfx1201, for example")
    build.add_argument("--wave", type=int, default=32, choices=(32, 64), help="lanes of a wave (default: 32)")
    version = "of the code object (default: what the source says, else 5)"
    build.add_argument("--code-object-version", type=int, choices=(4, 5, 6), help=version)
    build.add_argument("-o", "--output", type=Path, required=True, help="the file to write; its folder exists")
    build.add_argument("--no-manifest", action="store_true", help="write no OUTPUT with .radiowave.json beside it")
    hip = build.add_argument_group("for HIP")
    hip.add_argument("--toolchain", help="the compiler (`radiowave tools` lists them; default: the best)")
    hip.add_argument("--profile", choices=PROFILES, default="default", help="the scheduler's (default: default)")
    hip.add_argument("--define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro; may be repeated")
    hip.add_argument("--arg", action="append", default=[], help="a word for the compiler; may be repeated")
    hip.add_argument("--fast-math", action="store_true", help="let float results differ (default: off)")
    contract = "which products and sums become one instruction (default: on, within an expression)"
    hip.add_argument("--fp-contract", choices=("off", "on", "fast", "fast-honor-pragmas"), default="on", help=contract)

    purpose = "Print the path of the header that HIP sources are compiled with."
    add(commands, "header", purpose, "  radiowave header", _header)


def _header(arguments: argparse.Namespace) -> int:
    print(json.dumps({"header": str(HEADER)}) if arguments.json else HEADER)
    return OK


def _compile(arguments: argparse.Namespace) -> int:
    folder = arguments.output.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{arguments.output}: the folder {folder} does not exist; make it first")
    is_hip = arguments.source.suffix in HIP_SUFFIXES
    linked, record = _of_hip(arguments) if is_hip else (_of_ir(arguments), None)
    code_object = CodeObject.parse(linked)
    if not code_object.kernels:
        raise _without_kernels(arguments.source, is_hip=is_hip)
    arguments.output.write_bytes(linked)
    manifest = None if arguments.no_manifest else _manifest(arguments, linked, record)
    if arguments.json:
        output = {"output": str(arguments.output), "manifest": str(manifest) if manifest else None}
        print(json.dumps({**as_json(code_object), **output}, indent=2))
    else:
        print(f"{arguments.output}  {len(linked)} bytes  {code_object.target}  {', '.join(code_object.kernels)}")
        print(f"sha256 {code_object.sha256}")
        if manifest:
            print(f"manifest {manifest}")
    return OK


def _of_ir(arguments: argparse.Namespace) -> bytes:
    given = [f"--{name.replace('_', '-')}" for name, default in _OF_HIP.items() if getattr(arguments, name) != default]
    if given:
        raise ToolchainError(
            "RW0111",
            where=str(arguments.source),
            seen=f"{', '.join(given)} for LLVM IR",
            allowed=f"for HIP only, which ends in {', '.join(HIP_SUFFIXES)}",
            do="leave it out: LLVM IR says these things itself",
        )
    return compile_file(
        arguments.source,
        target=arguments.target,
        wave=arguments.wave,
        code_object_version=arguments.code_object_version,
    )


def _of_hip(arguments: argparse.Namespace) -> tuple[bytes, dict[str, Any]]:
    job = HipJob(
        arguments.target,
        arguments.wave,
        arguments.profile,
        {name: value for name, _, value in (define.partition("=") for define in arguments.define)},
        tuple(arguments.arg),
        fast_math=arguments.fast_math,
        fp_contract=arguments.fp_contract,
        code_object_version=arguments.code_object_version or 5,
    )
    build = compile_hip_file(arguments.source, job, toolchain=arguments.toolchain)
    return build.data, build.record.as_json()


def _manifest(arguments: argparse.Namespace, linked: bytes, record: dict[str, Any] | None) -> Path | None:
    """Written beside the object; without a disassembler there is nothing to certify with, and a line says so."""
    source, output = arguments.source.read_bytes(), arguments.output
    relative = PurePath(os.path.relpath(arguments.source, output.parent)).as_posix()
    try:
        with Disassembler() as disassembler:
            manifest = make_manifest(
                linked,
                path=output.name,
                source=FileId(relative, hashlib.sha256(source).hexdigest(), len(source)),
                build=record,
                disassembler=disassembler,
            )
    except ToolchainError as error:
        if error.code != _NO_DISASSEMBLER:
            raise
        print(f"radiowave: no manifest: {error}", file=sys.stderr)
        return None
    path: Path = output.with_suffix(".radiowave.json")
    path.write_bytes(manifest.to_bytes())
    return path


def _without_kernels(source: Path, *, is_hip: bool) -> ToolchainError:
    """An object that nothing can launch is no use; the usual cause is a missing calling convention."""
    found = [] if is_hip else [f"@{name}" for _, name in _DEFINE.findall(source.read_text(encoding="utf-8"))]
    named = found[0] if found else "@name"
    say = (
        'write `extern "C" __global__ void name(...)`' if is_hip else f"write `define amdgpu_kernel void {named}(...)`"
    )
    return ToolchainError(
        "RW0108",
        where=str(source),
        seen="no __global__ function"
        if is_hip
        else f"no function with the calling convention amdgpu_kernel, but {', '.join(found) or 'no function at all'}",
        allowed="at least one kernel; functions beside kernels are fine",
        do=f"{say} for what is launched; it returns nothing",
    )
