# SPDX-License-Identifier: Apache-2.0
"""`redline audit FILE.py:NAME`: run a recorded graph on the software device and compare its accesses with what it
declares.

Reads the command line into inputs and slots, and prints what `redline.audit` found. Exit codes are `cli.py`'s.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from . import cli_plan
from .cli_plan import NoGraph
from .errors import BindingError, NotRecorded, RecordError

if TYPE_CHECKING:
    from .plan import Plan
    from .ranges import Buffer, View

OK, FINDINGS, USAGE = 0, 1, 2

_HELP: Final = """NAME is a Graph, a Plan, or a function without arguments that returns one. The file is run.

CONTENT is what an outside buffer holds before the run; zeros where nothing is said:
  zeros, random (bytes, the same in every run), index (dwords 0, 1, 2, ...)
  TYPE:VALUE      one value all over, such as f4:1.5 or i4:7
  file:PATH       the file's bytes, then zeros
  @NAME[+BYTES]   the address of a buffer, or several with commas between
VALUE is a number, or @NAME[+BYTES] for an address.

Example:
  redline audit examples/decode_loop.py:record --set scale=0.5 --fill source=f4:1

Exit codes:
  0  every byte that was touched is declared
  1  an undeclared access, a fault, or a graph that does not compile
  2  wrong usage: no such graph, buffer or slot, or a value that does not fit"""


def add_command(commands: Any) -> None:
    """The parser of `audit`, into the subparsers of `redline`."""
    audit = commands.add_parser(
        "audit",
        help="every byte that a graph's launches touch and do not declare",
        description="Run a recorded graph once on the software device and report what its launches read and wrote "
        "outside their declared accesses, and declared ranges that they never touched. Needs no GPU.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    audit.add_argument("graph", metavar="FILE.py:NAME", help="a graph in a Python file")
    audit.add_argument(
        "--fill", action="append", default=[], metavar="[BUFFER=]CONTENT", help="contents of one buffer, or of all"
    )
    audit.add_argument("--set", action="append", default=[], metavar="SLOT=VALUE", help="the value of a slot")
    audit.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="of the run (default: 60)")
    shown = audit.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.add_argument("--suggest", action="store_true", help="print the accesses that would be right, as Python")
    audit.set_defaults(boundary=None, schedule=None, fences=None)  # a launch touches the same bytes under all


def audit(arguments: argparse.Namespace) -> int:
    """Run, print, and say by the exit code whether the declarations hold."""
    from .auditing import audit as run

    try:
        plan = cli_plan.find(arguments)
    except NoGraph as error:
        return _complain(error)
    try:
        found = run(plan, _inputs(plan, arguments.fill), _slots(plan, arguments.set), timeout=arguments.timeout)
    except (NoGraph, BindingError, NotRecorded, RecordError) as error:
        return _complain(error)
    if arguments.json:
        print(json.dumps(found.as_json(), indent=2, sort_keys=True))
    else:
        print(found.suggest() if arguments.suggest else found, end="" if arguments.suggest else "\n")
    return OK if found.clean else FINDINGS


def _complain(error: object) -> int:
    print(f"redline audit: {error}", file=sys.stderr)
    return USAGE


# Slots


def _slots(plan: Plan, given: list[str]) -> dict[str, Any]:
    """Values by name; every slot without a default has one."""
    types = {slot.name: slot.type for slot in plan.slots}
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in types:
            raise NoGraph(
                f"--set {text}: not SLOT=VALUE with one of the slots {', '.join(types) or '(there are none)'}"
            )
        values[name] = _pointer(plan, value) if value.startswith("@") else _number(types[name], value, f"--set {text}")
    missing = [slot.name for slot in plan.slots if slot.default is None and slot.name not in values]
    if missing:
        raise NoGraph(f"slots without a value: add {' '.join(f'--set {name}=VALUE' for name in missing)}")
    return values


def _number(kind: str, text: str, where: str) -> int | float:
    try:
        return float(text) if kind.startswith("f") else int(text, 0)
    except ValueError:
        raise NoGraph(f"{where}: {text!r} is no {'number' if kind.startswith('f') else 'whole number'}") from None


def _pointer(plan: Plan, text: str) -> Buffer | View:
    """@NAME or @NAME+BYTES."""
    name, plus, offset = text.removeprefix("@").partition("+")
    named = {buffer.name: buffer for buffer in plan.buffers}
    if name not in named or (plus and not offset.isdecimal()):
        raise NoGraph(f"{text!r} is not @NAME or @NAME+BYTES with one of the buffers {', '.join(named)}")
    return named[name][int(offset) :] if plus else named[name]


# Contents of buffers


def _inputs(plan: Plan, given: list[str]) -> dict[str, Any]:
    """Contents by buffer; what is said of one buffer goes before what is said of all."""
    outside = {buffer.name: buffer for buffer in plan.buffers if buffer.role != "internal"}
    everywhere, named = "", {}
    for text in given:
        name, equals, content = text.partition("=")
        if not equals:
            everywhere = text
        elif name in outside:
            named[name] = content
        else:
            raise NoGraph(f"--fill {text}: no outside buffer {name!r}; there are: {', '.join(outside) or 'none'}")
    chosen: Mapping[str, str] = {name: named.get(name, everywhere) for name in outside}
    return {name: _content(plan, outside[name], text) for name, text in chosen.items() if text}


def _content(plan: Plan, buffer: Buffer, text: str) -> Any:
    import numpy as np

    kind, _, rest = text.partition(":")
    if text.startswith("@"):
        return [_pointer(plan, item) for item in text.split(",")]
    if text == "zeros":
        return bytes(buffer.nbytes)
    if text == "index":
        return np.arange(buffer.nbytes // 4, dtype=np.uint32)
    if text == "random":  # of its own for each buffer
        return np.random.default_rng(crc32(buffer.name.encode())).bytes(buffer.nbytes)
    if kind == "file":
        return _file(rest)
    return _repeated(buffer, kind, rest, text)


def _file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NoGraph(f"--fill file:{path}: {error.strerror}") from error


def _repeated(buffer: Buffer, kind: str, value: str, text: str) -> bytes:
    from .kernarg import TYPES, encode

    if kind not in TYPES:
        allowed = f"zeros, random, index, file:PATH, @NAME, TYPE:VALUE with a type of {' '.join(TYPES)}"
        raise NoGraph(f"--fill {text}: allowed: {allowed}")
    item = encode(kind, _number(kind, value, f"--fill {text}"), f"--fill {text}")
    return item * (buffer.nbytes // len(item))
