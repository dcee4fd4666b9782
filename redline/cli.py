# SPDX-License-Identifier: Apache-2.0
"""The `redline` command: demo, doctor, explain, bench; decode, lint and tables are `cli_words.py`'s, plan
`cli_plan.py`'s, audit `cli_audit.py`'s.

Parses, prints, returns exit codes; the work is done elsewhere.

Exit codes: 0 ok, 1 findings or mismatch, 2 usage, 3 a GPU was asked for and there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

from radiowave import errors as radiowave_errors

from . import __version__, cli_audit, cli_plan, cli_words
from .errors import CODES, RedlineError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from .demo import Result

OK, MISMATCH, USAGE, NO_GPU, INTERRUPTED = 0, 1, 2, 3, 130

#: Codes that are not findings: an unknown target or device name is usage; no runtime or no such GPU is "no GPU".
_EXIT_CODES = {"RL0138": USAGE, "RL0301": USAGE, "RL0911": USAGE, "RL0901": NO_GPU, "RL0902": NO_GPU, "RL0903": NO_GPU}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    arguments = _parser().parse_args(argv)
    run = {
        "demo": _demo,
        "doctor": _doctor,
        "explain": _explain,
        "bench": _bench,
        "plan": cli_plan.plan,
        "audit": cli_audit.audit,
        **cli_words.COMMANDS,
    }[arguments.command]
    try:
        code = run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be reported
        return code
    except (RedlineError, radiowave_errors.RadiowaveError) as error:
        return _complain(error, _EXIT_CODES.get(error.code, MISMATCH))
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except OSError as error:
        # The reader of our output went away, as `head` does, or the disk is full. Python would complain once more at
        # exit, when it flushes what could not be written.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return MISMATCH if isinstance(error, BrokenPipeError) else _complain(error, MISMATCH)


def _complain(error: object, code: int) -> int:
    if sys.stderr is not None:
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
        epilog="Example: redline doctor --json > report.json. Exit code 0, whatever was found.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    explain = commands.add_parser(
        "explain",
        help="what an error code means, or why a plan has the fences it has",
        description="Explain an error code of Redline (RL) or Radiowave (RW), or fences of a recorded graph: all of "
        "them, or why two launches are ordered.",
        epilog="Example: redline explain RL0201. Example: redline explain examples/decode_loop.py:record 0 1. "
        "Exit code 2 for a code or a graph that does not exist.",
    )
    explain.add_argument("graph", metavar="CODE|FILE.py:NAME", help="such as RL0201, or a graph as for redline plan")
    explain.add_argument("launch", nargs="*", metavar="LAUNCH", help="two recorded launches of the graph")
    explain.add_argument("--json", action="store_true", help="print JSON (graphs only)")
    cli_plan.add_options(explain)
    bench = commands.add_parser(
        "bench",
        help="measure encoding, planning and the software device",
        description="Benchmarks that need no GPU; prints JSON; plan a table, in a minute or two.",
        epilog="Example: redline bench sim",
    )
    bench.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="compare|encode|plan|replay|sim", help="default: all"
    )
    cli_words.add_commands(commands)
    cli_plan.add_command(commands)
    cli_audit.add_command(commands)
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
    if arguments.json:
        print(json.dumps({"schema": 1, "targets": {r.target: r.as_json() for r in results}}, indent=2))
    else:
        _print_results(results)
    return OK if all(result.exact for result in results) else MISMATCH


def _tell(bar: Progress, task: TaskID, name: str, what: str, done: int, total: int) -> None:
    bar.update(task, description=f"{name} {what}", completed=done, total=total)


def _progress(*, quiet: bool) -> AbstractContextManager[Progress]:
    """A bar on stderr: stdout is for results."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), disable=quiet or not _is_terminal(sys.stderr))


def _is_terminal(stream: TextIO | None) -> bool:
    """False for a file, a pipe, or a stream that was closed before we started."""
    return stream is not None and stream.isatty()


def _print_results(results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Two decode layers: one recorded graph, replayed once per token")
    for title in ("target", "launches", "drains", "acquires", "dwords", 'fences="full"', "tokens", "result"):
        words = title in ("target", "tokens", "result")
        table.add_column(title, justify="left" if words else "right", no_wrap=title in ("target", "result"))
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
    console = Console(width=None if _is_terminal(sys.stdout) else 140)
    console.print(table)
    for r in results:
        if r.mismatch:
            console.print(f"{r.target}: {r.mismatch}", markup=False)
    approximate = sorted({name for r in results for name in r.approximate})
    ran = sorted({name for r in results for name in r.approximate_instructions})
    instructions = f"instructions ({', '.join(ran)})" if ran else "instructions"
    console.print(
        f'fences="full": drains, acquires, dwords of a second lowering. {", ".join(approximate)} use approximate'
        f" {instructions}: computed here as correctly rounded and compared bit for bit;"
        " hardware may differ within the tolerance stated in redline.kernels.",
        markup=False,
        highlight=False,
    )


def _doctor(arguments: argparse.Namespace) -> int:
    from . import doctor

    report = doctor.report()
    print(json.dumps(report, indent=2) if arguments.json else "\n".join(_flat(doctor.shortened(report))))
    return OK


def _flat(report: Any, indent: str = "") -> list[str]:
    """Nested data as indented lines: short words side by side, everything else one a line."""
    lines: list[str] = []
    for key, item in report.items() if isinstance(report, dict) else enumerate(report):
        name = f"{indent}{key}:" if isinstance(report, dict) else f"{indent}-"
        if isinstance(item, dict | list | tuple) and not _are_words(item):
            lines += [name, *_flat(item, indent + "  ")]
        else:
            text = " ".join(item) if isinstance(item, list | tuple) else "none" if item is None else str(item)
            lines.append(f"{name} {text}")
    return lines


def _are_words(items: object) -> bool:
    return isinstance(items, list | tuple) and all(isinstance(item, str) and " " not in item for item in items)


def _bench(arguments: argparse.Namespace) -> int:
    """By name, so that the library does not depend on its benchmarks; the wheel has both."""
    code: int = import_module("redline_bench.__main__").main(arguments.arguments)
    return code


def _explain(arguments: argparse.Namespace) -> int:
    if ":" in arguments.graph:
        return cli_plan.explain(arguments)
    if arguments.launch or arguments.json or arguments.boundary or arguments.schedule or arguments.fences:
        print(f"redline: {arguments.graph!r} is no FILE.py:NAME; launches and options go with a graph", file=sys.stderr)
        return USAGE
    code = arguments.graph.upper()
    known = {**CODES, **radiowave_errors.CODES}
    if code not in known:
        print(f"redline: no error code {arguments.graph!r}; known: {' '.join(known)}", file=sys.stderr)
        return USAGE
    bases: tuple[type[RedlineError] | type[radiowave_errors.RadiowaveError], ...]
    bases = (*RedlineError.__subclasses__(), *radiowave_errors.RadiowaveError.__subclasses__())
    owner = next(cls.__name__ for cls in bases if code.startswith(cls.prefix))
    print(f"{code} {owner}: {known[code]}")
    return OK
