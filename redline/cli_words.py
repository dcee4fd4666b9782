# SPDX-License-Identifier: Apache-2.0
"""`redline decode`, `redline lint` and `redline tables`: PM4 words as files, and what the encoder's tables say of them.

Reads files and prints; the tables, the decoder and the linter are in `redline/encoders`. Exit codes are `cli.py`'s:
0 ok, 1 findings, 2 usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import RedlineError

if TYPE_CHECKING:
    from .encoders.decode import Command
    from .encoders.dispatch import DispatchWords
    from .encoders.findings import Finding
    from .encoders.table import FamilyTable

OK, FINDINGS, USAGE = 0, 1, 2

_DECODE_HELP = """Example:
  echo C0004600 00000407 > ib.hex
  redline decode ib.hex --target gfx1201

Exit codes:
  0  ok
  1  a dword is not understood; the rest is explained all the same
  2  wrong usage: no such target, a file that cannot be read or holds no words"""

_LINT_HELP = r"""Example:
  echo C0004600 00000407 > ib.hex
  redline lint ib.hex --target gfx1201

Example, a launch and its kernel:
  python -m redline.kernels saxpy --target gfx1201 --wave 32 -o .
  python -c "import redline as rl; g = rl.Graph(); b = g.buffer('b', 4096, role='inout'); \
    saxpy = rl.load('saxpy.gfx1201.wave32.hsaco')['saxpy']; \
    g.launch(saxpy, global_size=512, block=128, args=[rl.update(b), rl.read(b), 2.0, 1024]); \
    g.compile().program.words.tofile('ib.bin')"
  redline lint ib.bin --target gfx1201 --object saxpy.gfx1201.wave32.hsaco --kernel saxpy \
    --global-size 512 --block 128

Program.words holds 0 where a replay puts addresses: give no --entry and no --kernarg for them, and both for words that
were read back from memory.

Exit codes:
  0  no findings
  1  findings
  2  wrong usage: no such target, a file that cannot be read or holds no words, options that do not go together"""

_TABLES_HELP = """Example:
  redline tables gfx12 --markdown

Exit codes:
  0  ok
  2  wrong usage: no such target, family or generation"""

_FILE = "hexadecimal words separated by blanks, commas or lines, or raw little-endian dwords; - is standard input"


def add_commands(commands: Any) -> None:
    """The three parsers, into the subparsers of `redline`."""
    _add_decode(commands)
    _add_lint(commands)
    tables = commands.add_parser(
        "tables",
        help="registers, packets, forms and cache words of a GPU family",
        description="What the encoder knows of a family: every register, packet, form and cache word, with its\n"
        "source. Needs no GPU.",
        epilog=_TABLES_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tables.add_argument(
        "name", metavar="TARGET", help='a target (gfx1201), a family ("gfx12.0") or a generation (gfx12)'
    )
    tables.add_argument("--markdown", action="store_true", help="print Markdown instead of columns")


def _add_decode(commands: Any) -> None:
    decode = commands.add_parser(
        "decode",
        help="explain PM4 words, dword by dword",
        description="Explain every dword of a PM4 stream: index, word, packet, fields. Needs no GPU.",
        epilog=_DECODE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_file(decode)


def _add_lint(commands: Any) -> None:
    lint = commands.add_parser(
        "lint",
        help="what is wrong with a PM4 stream",
        description="Check a PM4 stream: registers of the queue, missing acquires, drains and releases, cache words,\n"
        "launches. With a code object and a kernel, launches are compared with its descriptor: those that start at\n"
        "--entry, or all. Needs no GPU.",
        epilog=_LINT_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_file(lint)
    lint.add_argument("--object", metavar="FILE", type=Path, help="a code object with the kernel that is launched")
    lint.add_argument("--kernel", metavar="NAME", help="which kernel of the code object")
    entry, kernarg = (
        "GPU address of its first instruction (default: any)",
        "GPU address of its arguments (default: any)",
    )
    lint.add_argument("--entry", metavar="ADDRESS", type=_number, help=entry)
    lint.add_argument("--kernarg", metavar="ADDRESS", type=_number, help=kernarg)
    lint.add_argument("--global-size", metavar="X,Y,Z", type=_sizes, help="work-items of the launch")
    lint.add_argument("--block", metavar="X,Y,Z", type=_sizes, help="work-items of a workgroup")
    lint.add_argument("--dynamic-lds", metavar="BYTES", type=_number, default=0, help="LDS that the launch adds")
    lint.add_argument("--allow-queue-owned", action="store_true", help="registers of the queue are no finding")
    lint.add_argument("--allow-tmpring", action="store_true", help="TMPRING_SIZE is no finding")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help=_FILE)
    parser.add_argument("--target", metavar="GFX", required=True, help="the target that the words are for")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _number(text: str) -> int:
    return int(text, 0)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part, 0) for part in text.split(","))


def read_words(path: Path) -> list[int]:
    """Words of a file; ValueError when it cannot be read, has none, or a rest that is no dword."""
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    try:
        words = [int(word, 16) for word in data.decode("ascii").replace(",", " ").split()]
    except ValueError:
        if len(data) % 4:
            raise ValueError(f"{path}: {len(data)} bytes are neither hexadecimal words nor whole dwords") from None
        words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    if not words:
        raise ValueError(f"{path}: no words")
    return words


def _decode(arguments: argparse.Namespace) -> int:
    from .encoders.decode import read, text
    from .encoders.families import family_for

    table = family_for(arguments.target)
    words = read_words(arguments.file)
    commands = list(read(words, table))
    if arguments.json:
        packets = [_packet(command, table) for command in commands]
        print(json.dumps({"schema": 1, "target": arguments.target, "dwords": len(words), "packets": packets}, indent=2))
    else:
        for command in commands:
            print("\n".join(text(command, table)))
    return FINDINGS if any(command.problems for command in commands) else OK


def _packet(command: Command, table: FamilyTable) -> dict[str, Any]:
    from .encoders.decode import explain

    return {
        "dword": command.dword,
        "name": command.name,
        "fields": command.fields,
        "lines": [
            {"dword": command.dword + i, "word": f"{word:08X}", "meaning": meaning.strip()}
            for i, (word, meaning) in enumerate(zip(command.words, explain(command, table), strict=True))
        ],
        "problems": [{"dword": p.dword, "rule": p.rule, "text": p.text} for p in command.problems],
    }


def _lint(arguments: argparse.Namespace) -> int:
    from .encoders.families import family_for
    from .encoders.lint import lint

    table = family_for(arguments.target)
    words = read_words(arguments.file)
    found = lint(
        words,
        table,
        _descriptor(arguments),
        entry=arguments.entry,
        kernarg=arguments.kernarg,
        global_size=arguments.global_size,
        block=arguments.block,
        allow_queue_owned=arguments.allow_queue_owned,
        allow_tmpring=arguments.allow_tmpring,
    )
    if arguments.json:
        findings = [{"dword": f.dword, "rule": f.rule, "level": f.level, "text": f.text} for f in found]
        print(
            json.dumps({"schema": 1, "target": arguments.target, "dwords": len(words), "findings": findings}, indent=2)
        )
    else:
        _print_findings(found, words, table)
    return FINDINGS if found else OK


def _descriptor(arguments: argparse.Namespace) -> DispatchWords | None:
    if (arguments.object is None) != (arguments.kernel is None):
        raise ValueError("--object and --kernel go together")
    if arguments.object is None:
        if any(
            value is not None for value in (arguments.entry, arguments.kernarg, arguments.global_size, arguments.block)
        ):
            raise ValueError("--entry, --kernarg, --global-size and --block need --object and --kernel")
        return None
    from .kernel import load

    try:
        return load(arguments.object, arguments.target)[arguments.kernel].words(arguments.kernel, arguments.dynamic_lds)
    except (OSError, RedlineError) as error:
        raise ValueError(str(error)) from error


def _print_findings(found: Sequence[Finding], words: Sequence[int], table: FamilyTable) -> None:
    from .encoders.decode import read, text

    lines = [line for command in read(words, table) for line in text(command, table) if "!!" not in line]
    for finding in found:
        print(finding)
        print(lines[finding.dword])
    print(f"{len(found) or 'no'} finding{'' if len(found) == 1 else 's'} in {len(words)} dwords")


def _tables(arguments: argparse.Namespace) -> int:
    from .encoders.describe import named, text

    print("\n\n".join("\n".join(text(table, markdown=arguments.markdown)) for table in named(arguments.name)))
    return OK


def _usage(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """What cannot be read or does not go together is wrong use."""

    def checked(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except ValueError as error:
            print(f"redline: {error}", file=sys.stderr)
            return USAGE

    return checked


#: What each command runs.
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "decode": _usage(_decode),
    "lint": _usage(_lint),
    "tables": _usage(_tables),
}
