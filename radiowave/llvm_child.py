# SPDX-License-Identifier: Apache-2.0
"""The compiler process: LLVM IR text in, relocatable AMDGPU objects out, by llvmlite's own AMDGPU back end.

Runs alone in a process because LLVM ends it at a fatal error. Two ways in: a batch of jobs on stdin, each
answered in order on stdout as soon as it is done (what `compile.py` uses), or one file on the command line
(what its error message tells the user to run). Does not link; `linker.py` does.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from radiowave.child import pack_message, private_stdout, read_message

TRIPLE = "amdgcn-amd-amdhsa"
VERSION_FLAG = "amdhsa_code_object_version"


class SourceMismatchError(Exception):
    """The source contradicts the request: what it says, what it may say, what to do."""

    def __init__(self, seen: str, allowed: str, do: str) -> None:
        super().__init__(seen)
        self.allowed, self.do = allowed, do


def compile_one(text: str, target: str, wave: int, version: int | None) -> bytes:
    """One relocatable object. The module is parsed for this one emission: code generation changes the IR."""
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=target, features=f"+wavefrontsize{wave}", opt=3, reloc="pic"
    )
    layout = str(machine.target_data)
    _check_attributes(text, target, wave)
    module = _parse(f'target datalayout = "{layout}" target triple = "{TRIPLE}" ', text)
    _check_module(module, layout)
    if version is not None or VERSION_FLAG not in text:
        module.link_in(llvm.parse_assembly(_version_module(layout, version or 5)))
    module.verify()
    _optimise(module, machine)
    relocatable: bytes = machine.emit_object(module)
    return relocatable


def _parse(defaults: str, text: str) -> Any:
    """The module. `defaults` stands before the source on its first line and what the source states wins over
    it; an error message speaks of the source alone."""
    try:
        return llvm.parse_assembly(defaults + text)
    except RuntimeError as error:
        head, *rest = str(error).replace(defaults, "").split("<string>:1:", 1)
        if not rest:
            raise
        column, message = rest[0].split(":", 1)
        message = message.replace(" " * len(defaults), "")
        raise RuntimeError(f"{head}<string>:1:{int(column) - len(defaults)}:{message}") from None


def _check_module(module: Any, layout: str) -> None:
    if module.triple != TRIPLE:
        allowed = f'target triple = "{TRIPLE}", or no such line'
        do = "write the kernel for AMDGPU; if it is, remove the line"
        raise SourceMismatchError(f'the source has target triple = "{module.triple}"', allowed, do)
    if module.data_layout != layout:
        allowed = f'no such line, or LLVM\'s own: "{layout}"'
        seen = f'the source has target datalayout = "{module.data_layout}"'
        raise SourceMismatchError(seen, allowed, "remove the line; it is filled in")


def _check_attributes(text: str, target: str, wave: int) -> None:
    """Function attributes override the target machine, so a source made for another target must not slip
    through."""
    for cpu in re.findall(r'"target-cpu"="([^"]*)"', text):
        if cpu != target:
            allowed, do = f'"target-cpu"="{target}", or none', f"compile for {cpu}, or remove the attribute"
            raise SourceMismatchError(f'a function has the attribute "target-cpu"="{cpu}"', allowed, do)
    for features in re.findall(r'"target-features"="([^"]*)"', text):
        named = {f"wavefrontsize{size}" for size in (32, 64) if f"+wavefrontsize{size}" in features.split(",")}
        if named - {f"wavefrontsize{wave}"}:
            seen = f'a function has {" ".join(f"+{name}" for name in sorted(named))} in its "target-features"'
            do = f"compile with wave size {96 - wave} (--wave, wave=), or remove it from the attribute"
            raise SourceMismatchError(seen, f"+wavefrontsize{wave}, or none", do)


def _version_module(layout: str, version: int) -> str:
    return (
        f'target datalayout = "{layout}" target triple = "{TRIPLE}"\n'
        f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !"{VERSION_FLAG}", i32 {version * 100}}}\n'
    )


def _optimise(module: Any, machine: Any) -> None:
    """Optimise with the target machine: LLVM registers the AMDGPU attributor there. Without it every kernel
    would ask for the dispatch pointer, the queue pointer and all hidden arguments."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)


def _answer(job: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"object": compile_one(job["text"], job["target"], job["wave"], job["version"])}
    except SourceMismatchError as error:
        return {"error": str(error), "allowed": error.allowed, "do": error.do}
    except RuntimeError as error:  # how llvmlite reports parser, verifier and linker errors
        return {"error": str(error)}


def _serve() -> int:
    replies = private_stdout()
    while (job := read_message(sys.stdin.buffer)) is not None:
        replies.write(pack_message(_answer(job)))
        replies.flush()
    return 0


def _compile_file(arguments: argparse.Namespace) -> int:
    job = {
        "text": arguments.source.read_text(encoding="utf-8"),
        "target": arguments.target,
        "wave": arguments.wave,
        "version": arguments.code_object_version,
    }
    answer = _answer(job)
    if "error" in answer:
        print(answer["error"], file=sys.stderr)
        return 1
    if arguments.output:
        arguments.output.write_bytes(answer["object"])
    return 0


def _versions() -> dict[str, str]:
    numbers = ".".join(str(number) for number in llvm.llvm_version_info)
    folder = Path(llvmlite.__file__).parent
    library = next((folder / "binding").glob("*llvmlite.*"), folder / "__init__.py")
    return {"llvmlite": llvmlite.__version__, "llvm": numbers, "path": str(folder), "library": str(library)}


def main() -> int:
    """Batch mode without arguments, else one file."""
    parser = argparse.ArgumentParser(prog="python -m radiowave.llvm_child", description=__doc__)
    parser.add_argument("source", type=Path, nargs="?", help="LLVM IR text; none: jobs on stdin")
    parser.add_argument("--target", default="gfx1201")
    parser.add_argument("--wave", type=int, choices=(32, 64), default=32)
    parser.add_argument("--code-object-version", type=int, choices=(4, 5, 6))
    parser.add_argument("-o", "--output", type=Path, help="where to write the relocatable object")
    parser.add_argument("--llvm-option", action="append", default=[], help="as clang takes it after -mllvm")
    parser.add_argument("--versions", action="store_true", help="print the versions as JSON and end")
    arguments = parser.parse_args()
    if arguments.versions:
        print(json.dumps(_versions()))
        return 0
    for option in arguments.llvm_option:
        llvm.set_option("radiowave", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return _compile_file(arguments) if arguments.source else _serve()


if __name__ == "__main__":
    sys.exit(main())
