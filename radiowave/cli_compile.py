# SPDX-License-Identifier: Apache-2.0
"""The commands `radiowave compile` and `radiowave header`: their options, and what they print."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from radiowave.code_object import CodeObject
from radiowave.compilers import file_sha256
from radiowave.errors import ToolchainError
from radiowave.hip_source import HEADER
from radiowave.inspection import SCHEMA, as_json
from radiowave.manifest import FileId, make_manifest
from radiowave.options import FP_CONTRACT, SCHEDULERS, Options
from radiowave.record import Compiled, CompileRecord
from radiowave.recorded import compile_source

OK = 0

# A function of LLVM IR text: what stands before its name, and the name.
_DEFINE = re.compile(r'^\s*define\b([^@\n]*)@("[^"]*"|[-\w$.]+)', re.MULTILINE)


def add_options(build: argparse.ArgumentParser) -> None:
    """What `radiowave compile` takes."""
    source = "HIP (.hip, .cpp, .cu) or LLVM IR as text (.ll), with a kernel in it"
    build.add_argument("source", type=Path, metavar="SRC", help=source)
    build.add_argument("--target", required=True, help="the GPU: gfx1201, for example")
    build.add_argument("--wave", type=int, default=32, choices=(32, 64), help="lanes of a wave (default: 32)")
    version = "of the code object (default: 5; for LLVM IR what the source says, else 5)"
    build.add_argument("--code-object-version", type=int, choices=(4, 5, 6), help=version)
    build.add_argument("--toolchain", help="a name that `radiowave tools` prints (default: the best there is)")
    build.add_argument("--scheduler", default="default", metavar="PROFILE", help=", ".join(SCHEDULERS))
    build.add_argument("--fast-math", action="store_true", help="let the compiler change results (default: off)")
    contract = "where a * b + c is rounded once (default: on, inside an expression; with --fast-math fast, anywhere)"
    build.add_argument("--fp-contract", choices=FP_CONTRACT, help=contract)
    build.add_argument("--define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro; may be repeated")
    given = "an argument for the compiler, as in --arg=-Iinclude; may be repeated"
    build.add_argument("--arg", action="append", default=[], metavar="ARGUMENT", help=given)
    beside = "write a manifest with the record in it (default name: that of the output, ending in .radiowave.json)"
    build.add_argument("--manifest", type=Path, nargs="?", const=Path(), metavar="FILE", help=beside)
    build.add_argument("-o", "--output", type=Path, required=True, help="the file to write; its folder exists")


def run_compile(arguments: argparse.Namespace) -> int:
    """Compile, write the object, and say what it was made by."""
    folder = arguments.output.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{arguments.output}: the folder {folder} does not exist; make it first")
    options = Options(
        arguments.target,
        arguments.wave,
        arguments.code_object_version,
        arguments.scheduler.replace("-", "_"),
        arguments.fast_math,
        arguments.fp_contract,
        tuple(arguments.define),
        tuple(arguments.arg),
    )
    compiled = compile_source(arguments.source, options, arguments.toolchain)
    code_object = CodeObject.parse(compiled.code_object)
    if not code_object.kernels:
        raise _without_kernels(arguments.source)
    arguments.output.write_bytes(compiled.code_object)
    if arguments.manifest is not None:
        _write_manifest(compiled, arguments)
    if arguments.json:
        record = compiled.record.as_json()
        _print_json({**as_json(code_object), "output": str(arguments.output), "record": record})
    else:
        nbytes, names = len(compiled.code_object), ", ".join(code_object.kernels)
        print(f"{arguments.output}  {nbytes} bytes  {code_object.target}  {names}")
        print(f"sha256 {code_object.sha256}")
        print("\n".join(_record_lines(compiled.record)))
    return OK


def _write_manifest(compiled: Compiled, arguments: argparse.Namespace) -> None:
    """Beside the object, with paths relative to itself."""
    output: Path = arguments.output
    file = output.with_suffix(".radiowave.json") if arguments.manifest == Path() else arguments.manifest
    source = FileId(compiled.record.source, compiled.record.source_sha256, arguments.source.stat().st_size)
    path = PurePath(os.path.relpath(output, file.parent)).as_posix()
    manifest = make_manifest(compiled.code_object, path=path, source=source, build=compiled.record.as_json())
    file.write_bytes(manifest.to_bytes())


def _record_lines(record: CompileRecord) -> Iterator[str]:
    yield f"compiled by {record.toolchain.name}: {record.toolchain.version}"
    if record.fp_contract is not None:
        fast = "on" if record.fast_math else "off"
        yield f"fast math {fast}, fp contract {record.fp_contract}, scheduler {record.scheduler}"


def run_header(arguments: argparse.Namespace) -> int:
    """Where the header is."""
    if arguments.json:
        _print_json({"schema": SCHEMA, "header": str(HEADER), "sha256": file_sha256(str(HEADER))})
    else:
        print(HEADER)
    return OK


def _without_kernels(source: Path) -> ToolchainError:
    """An object that nothing can launch is no use; the usual cause is a missing calling convention."""
    found = [f"@{name}" for _, name in _DEFINE.findall(source.read_text(encoding="utf-8"))]
    named = found[0] if found else "@name"
    return ToolchainError(
        "RW0108",
        where=str(source),
        seen=f"no function with the calling convention amdgpu_kernel, but {', '.join(found) or 'no function at all'}",
        allowed="at least one kernel; functions beside kernels are fine",
        do=f"write `define amdgpu_kernel void {named}(...)` for what is launched; it returns nothing",
    )


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2))
