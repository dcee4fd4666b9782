# SPDX-License-Identifier: Apache-2.0
"""The command `radiowave`: compile, inspect, disassemble, and show the tools found. Needs no GPU."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from radiowave import cli_certify, cli_compile, cli_policy
from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler, Instruction
from radiowave.errors import RadiowaveError, UnsupportedTarget
from radiowave.inspection import SCHEMA, inspect, inspection_json, inspection_lines
from radiowave.toolchain import Tool, find_tools

OK, FINDINGS, USAGE = 0, 1, 2

EXIT_CODES = """Exit codes:
  0  ok
  1  the input has a fault, or a tool is missing
  2  wrong usage, or a file cannot be read or written"""

# How to get an object to look at, on any machine.
MAKE = """  echo 'define amdgpu_kernel void @nothing() { ret void }' > nothing.ll
  radiowave compile nothing.ll --target gfx1201 -o nothing.co"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except RadiowaveError as error:
        print(f"radiowave: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UnsupportedTarget) else arguments.fault
    except (OSError, UnicodeDecodeError) as error:
        print(f"radiowave: {error}", file=sys.stderr)
        return USAGE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="radiowave",
        description="Compile LLVM IR and HIP into AMDGPU code objects, show and certify what is in them. Needs no GPU.",
        epilog=f"Example:\n{MAKE}\n  radiowave inspect nothing.co\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    cli_compile.add_commands(commands, _command, MAKE)

    shown = "a code object, an offload bundle, or a host program or library with bundles inside"
    purpose = "Show the kernels, arguments and descriptors of a file."
    facts = _command(commands, "inspect", purpose, f"{MAKE}\n  radiowave inspect nothing.co --json", _inspect)
    facts.add_argument("file", type=Path, help=shown)
    facts.add_argument("--target", help="the object for this target alone: gfx1201, gfx1010:xnack-")

    purpose, example = "Show the machine code of an object's kernels.", f"{MAKE}\n  radiowave disassemble nothing.co"
    listing = _command(commands, "disassemble", purpose, example, _disassemble)
    listing.add_argument("file", type=Path, help=shown)
    listing.add_argument("--target", help="which object of a bundle")
    listing.add_argument("--kernel", help="this kernel alone")

    _certify_commands(commands, shown)
    cli_policy.add_commands(commands, _command, MAKE)

    purpose = "Show which compilers and disassemblers were found, and where."
    _command(commands, "tools", purpose, "  radiowave tools", _tools)
    return parser


def _certify_commands(commands: Any, shown: str) -> None:
    purpose = "Prove how each kernel reads memory, or name the instruction that stopped the proof."
    proof = _command(commands, "certify", purpose, f"{MAKE}\n  radiowave certify nothing.co", cli_certify.run_certify)
    proof.add_argument("file", type=Path, help=shown)
    proof.add_argument("--target", help="which object of a bundle")
    proof.add_argument("--explain", metavar="KERNEL", help="every access of this kernel, and what it reaches")

    purpose, example = "Write a manifest for a code object.", f"{MAKE}\n  radiowave manifest nothing.co"
    record = _command(commands, "manifest", purpose, example, cli_certify.run_manifest)
    record.add_argument("file", type=Path, help=shown)
    record.add_argument("--target", help="which object of a bundle")
    record.add_argument("-o", "--output", type=Path, help="the file to write (default: FILE with .radiowave.json)")

    purpose, example = "Hold a manifest against its file.", f"{example}\n  radiowave verify nothing.radiowave.json"
    check = _command(commands, "verify", purpose, example, cli_certify.run_verify)
    check.add_argument("manifest", type=Path, help="what `radiowave manifest` wrote")
    check.add_argument("file", type=Path, nargs="?", help="the code object (default: the path in the manifest)")


def _command(commands: Any, name: str, purpose: str, example: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose} Needs no GPU.",
        epilog=f"Example:\n{example}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON with a schema field")
    parser.set_defaults(run=run, fault=FINDINGS)
    return parser


def _inspect(arguments: argparse.Namespace) -> int:
    found = inspect(arguments.file.read_bytes(), arguments.target)
    if arguments.json:
        _print_json(inspection_json(found))
    else:
        print("\n".join(inspection_lines(found)))
    return FINDINGS if found.has_findings else OK


def _disassemble(arguments: argparse.Namespace) -> int:
    code_object = CodeObject.read(arguments.file.read_bytes(), arguments.target)
    kernels = [code_object.kernel(arguments.kernel)] if arguments.kernel else code_object.kernels.values()
    with Disassembler() as disassembler:
        listings = {
            kernel.name: disassembler.decode(code_object.code(kernel), kernel.entry_va, code_object.target, kernel.wave)
            for kernel in kernels
        }
    if arguments.json:
        rows = {name: [i._asdict() for i in listing] for name, listing in listings.items()}
        _print_json({"schema": SCHEMA, "target": code_object.target, "kernels": rows})
    else:
        for name, listing in listings.items():
            print("\n".join(_listing(code_object, code_object.kernels[name], listing)))
    complete = all(i.text for listing in listings.values() for i in listing)
    return OK if complete else FINDINGS


def _listing(code_object: CodeObject, kernel: KernelFacts, found: list[Instruction]) -> Iterator[str]:
    code = code_object.code(kernel)
    yield f"{kernel.name}:  {code_object.target} wave{kernel.wave}"
    for pc, length, text in found:
        at = pc - kernel.entry_va
        words = [code[word : word + 4][::-1].hex() for word in range(at, at + length, 4)]
        yield f"  {pc:#8x}  {' '.join(words):26}  {text or 'does not decode; the rest is not shown'}"


def _tools(arguments: argparse.Namespace) -> int:
    tools = find_tools()
    if arguments.json:
        _print_json({"schema": SCHEMA, "tools": [tool.__dict__ for tool in tools]})
    else:
        print("\n".join(line for tool in tools for line in _tool_lines(tool)))
    return OK


def _tool_lines(tool: Tool) -> Iterator[str]:
    yield f"{tool.name}: {tool.path or 'not found'}"
    yield f"  {tool.purpose}"
    if tool.path:
        yield f"  {tool.version}"
        yield f"  {tool.found}"
    else:
        yield from (f"  {place}" for place in tool.looked)
    if tool.sha256:
        yield f"  sha256 {tool.sha256}"


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    sys.exit(main())
