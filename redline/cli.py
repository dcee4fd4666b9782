# SPDX-License-Identifier: Apache-2.0
"""The `redline` command: demo, doctor, explain. Parses, prints, returns exit codes; the work is done elsewhere.

Exit codes: 0 ok, 1 findings or mismatch, 2 usage, 3 a GPU was asked for and there is none.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from . import __version__
from .errors import CODES, HsaError, RedlineError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from .demo import Result

OK, MISMATCH, USAGE, NO_GPU = 0, 1, 2, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    arguments = _parser().parse_args(argv)
    run = {"demo": _demo, "doctor": _doctor, "explain": _explain}[arguments.command]
    try:
        return run(arguments)
    except HsaError as error:
        return _complain(error, NO_GPU)
    except RedlineError as error:
        return _complain(error, MISMATCH)


def _complain(error: Exception, code: int) -> int:
    print(f"redline: {error}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="redline",
        description="Record a kernel DAG once, derive the fences it needs, replay it as one submission.",
        epilog="Exit codes: 0 ok, 1 findings or mismatch, 2 usage, 3 a GPU was asked for and there is none.",
    )
    parser.add_argument("--version", action="version", version=f"redline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="decode eight tokens on the software device and compare every bit",
        description="Two decode layers recorded once and replayed for eight tokens, compared with numpy bit for bit.",
        epilog="Example: redline demo --target gfx1201",
    )
    where = demo.add_mutually_exclusive_group()
    where.add_argument(
        "--target", action="append", metavar="GFX", help="a demo target; may be repeated (default: all five)"
    )
    where.add_argument("--device", metavar="NAME", help='a device instead of the software ones, such as "hsa:0"')
    demo.add_argument("--wave", type=int, choices=(32, 64), default=32, help="wave size of the kernels (default: 32)")
    demo.add_argument("--json", action="store_true", help="print JSON instead of a table")
    doctor = commands.add_parser(
        "doctor",
        help="what was found, where it was looked for, why GPU paths are off",
        description="Versions, targets, disassembler, compilers and HSA library, for bug reports.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    explain = commands.add_parser("explain", help="what an error code means", description="Explain an error code.")
    explain.add_argument("code", metavar="RL0101")
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    from . import demo, kernels
    from .device import open as open_device

    names = [arguments.device] if arguments.device else [f"sim:{t}" for t in arguments.target or kernels.DEMO_TARGETS]
    results = []
    with _progress(quiet=arguments.json) as bar:
        for name in names:
            task = bar.add_task(name, total=None)
            tell = partial(_tell, bar, task, name)
            with open_device(name) as device:
                results.append(demo.run(device, arguments.wave, progress=tell))
            bar.update(task, total=1, completed=1)
    if arguments.json:
        print(json.dumps({"schema": 1, "targets": {r.target: r.as_json() for r in results}}, indent=2))
    else:
        _print_results(results)
    return OK if all(result.exact for result in results) else MISMATCH


def _tell(bar: Progress, task: TaskID, name: str, what: str) -> None:
    bar.update(task, description=f"{name} {what}")


def _progress(*, quiet: bool) -> AbstractContextManager[Progress]:
    """A bar on stderr: stdout is for results."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), disable=quiet or not sys.stderr.isatty())


def _print_results(results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Two decode layers: one recorded graph, replayed once per token")
    for title in ("target", "launches", "drains", "acquires", "dwords", 'fences="full"', "tokens", "result"):
        table.add_column(title, justify="left" if title in ("target", "tokens", "result") else "right")
    for r in results:
        full = f"{r.full.drains} {r.full.acquires} {r.full.dwords}"
        counts = map(str, (r.launches, r.minimal.drains, r.minimal.acquires, r.minimal.dwords))
        table.add_row(
            f"{r.target} wave{r.wave}",
            *counts,
            full,
            " ".join(map(str, r.tokens)),
            "bit-exact" if r.exact else "MISMATCH",
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for r in results:
        if r.mismatch:
            console.print(f"{r.target}: {r.mismatch}", markup=False)
    approximate = sorted({name for r in results for name in r.approximate})
    console.print(
        f'fences="full": drains, acquires, dwords of a second lowering. {", ".join(approximate)} use approximate'
        " instructions (v_rsq_f32, v_exp_f32): computed here as correctly rounded and compared bit for bit;"
        " hardware may differ within the tolerance stated in redline.kernels.",
        markup=False,
        highlight=False,
    )


def _doctor(arguments: argparse.Namespace) -> int:
    from . import doctor

    report = doctor.report()
    print(json.dumps(report, indent=2) if arguments.json else "\n".join(_flat(report)))
    return OK


def _flat(value: Any, indent: str = "") -> list[str]:
    """Nested data as indented lines."""
    lines: list[str] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict) or (isinstance(item, list) and any(isinstance(i, dict | list) for i in item)):
            lines += [f"{indent}{key}:", *_flat(item, indent + "  ")]
        else:
            text = (
                " ".join(map(str, item)) if isinstance(item, list) else "not installed" if item is None else str(item)
            )
            lines.append(f"{indent}{key}: {text}")
    return lines


def _explain(arguments: argparse.Namespace) -> int:
    code = arguments.code.upper()
    if code not in CODES:
        print(
            f"redline: no error code {arguments.code!r}; codes run from {min(CODES)} to {max(CODES)}", file=sys.stderr
        )
        return USAGE
    owner = next(cls.__name__ for cls in RedlineError.__subclasses__() if code.startswith(cls.prefix))
    print(f"{code} {owner}: {CODES[code]}")
    return OK
