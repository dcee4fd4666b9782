# SPDX-License-Identifier: Apache-2.0
"""`redline plan FILE.py:NAME` and `redline explain FILE.py:NAME`: what a recorded graph becomes, without a device.

Runs the user's file, takes a Graph, a Plan or a function without arguments that returns one, and prints what `Plan`
says of itself. Exit codes are `cli.py`'s.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .plan import Plan

OK, USAGE = 0, 2

_HELP: Final = """NAME is a Graph, a Plan, or a function without arguments that returns one. The file is run.

Example:
  redline plan examples/decode_loop.py:record --boundary queue

Exit codes:
  0  ok
  1  the graph does not compile
  2  wrong usage: no such file or name, or nothing there that is a graph"""


class NoGraph(Exception):
    """The command line names nothing that is a graph."""


def add_command(commands: Any) -> None:
    """The parser of `plan`, into the subparsers of `redline`."""
    plan = commands.add_parser(
        "plan",
        help="fences, bounds and memory of a recorded graph",
        description="Plan a recorded graph and print its figures beside what fences everywhere would cost.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plan.add_argument("graph", metavar="FILE.py:NAME", help="a graph in a Python file")
    add_options(plan)
    shown = plan.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.add_argument("--dot", action="store_true", help="print a Graphviz digraph")


def add_options(parser: argparse.ArgumentParser) -> None:
    """How to plan a graph; a file that holds a Plan has decided it."""
    parser.add_argument(
        "--boundary", choices=("host", "queue", "other-queue"), help="who touches memory between replays"
    )
    parser.add_argument("--schedule", choices=("levels", "record"), help="the emitted order")
    parser.add_argument("--fences", choices=("minimal", "full"), help="as few as possible, or before every launch")


def plan(arguments: argparse.Namespace) -> int:
    """Print a plan's figures."""
    try:
        found = find(arguments)
    except NoGraph as error:
        print(f"redline plan: {error}", file=sys.stderr)
        return USAGE
    if arguments.dot:
        print(found.dot(), end="")
        return OK
    report = {"fingerprint": found.fingerprint, **found.stats(), "memory": found.memory()}
    print(json.dumps(report, indent=2) if arguments.json else "\n".join(_lines(found, report)))
    return OK


def explain(arguments: argparse.Namespace) -> int:
    """Print why each fence of a plan stands, or why two launches are ordered."""
    try:
        found = find(arguments)
        first, second = _pair(arguments.launch)
    except NoGraph as error:
        print(f"redline explain: {error}", file=sys.stderr)
        return USAGE
    told = found.explain(first, second, json=arguments.json)
    print(json.dumps(told, indent=2) if arguments.json else told)
    return OK


def find(arguments: argparse.Namespace) -> Plan:
    """The plan that the command line names. Raises NoGraph, or what the user's file raises."""
    from .graph import Graph
    from .plan import Plan

    path, _, name = arguments.graph.rpartition(":")
    if not path or not Path(path).is_file():
        raise NoGraph(f"{arguments.graph!r} is not FILE.py:NAME with a file that exists")
    names = runpy.run_path(path, run_name="redline_plan")
    if name not in names:
        known = ", ".join(
            sorted(key for key, value in names.items() if isinstance(value, Graph | Plan) or callable(value))
        )
        raise NoGraph(f"{path} has no {name!r}; it has {known or 'nothing that could be a graph'}")
    made = names[name]
    if callable(made) and not isinstance(made, Graph | Plan):
        made = _called(made, f"{path}:{name}")
    options = {key: value for key in ("boundary", "schedule", "fences") if (value := getattr(arguments, key))}
    if isinstance(made, Graph):
        return made.compile(**options)
    if not isinstance(made, Plan):
        raise NoGraph(f"{path}:{name} gives {type(made).__name__}, not a Graph or a Plan")
    if options:
        raise NoGraph(f"{path}:{name} gives a Plan, which is planned already: leave out --{' --'.join(options)}")
    return made


def _called(function: Any, name: str) -> Any:
    try:
        return function()
    except TypeError as error:
        raise NoGraph(f"{name} cannot be called without arguments: {error}") from error


def _pair(launches: list[str]) -> tuple[int | None, int | None]:
    if not launches:
        return None, None
    try:
        first, second = (int(text.removeprefix("#")) for text in launches)
    except ValueError:
        raise NoGraph(f"{' '.join(launches)!r} is not two launches: give their recorded numbers, such as 3 7") from None
    return first, second


def _lines(plan: Plan, report: dict[str, Any]) -> list[str]:
    columns = (
        ("this plan", report),
        ('fences="full"', report["full"]),
        ("per dependent launch", report["per_dependent_launch"]),
    )
    head = f"plan {plan.fingerprint[:16]} {plan.target} boundary={plan.boundary} schedule={plan.schedule}"
    rows = [f"{'':22}{'drains':>8}{'acquires':>10}{'K':>6}{'V':>6}{'dwords':>9}"]
    for name, figures in columns:
        by_class = figures["acquires_by_class"]
        counts = f"{figures['drains']:8}{figures['acquires']:10}{by_class['K']:6}{by_class['V']:6}{figures['dwords']:9}"
        rows.append(f"{name:22}{counts}")
    parts = {key.removesuffix("_bytes"): value for key, value in report["memory"].items() if key != "signals" and value}
    memory = ", ".join(f"{name} {value}" for name, value in parts.items())
    chain = f"{report['launches']} launches; the longest chain of hazards has {report['chain']} edges"
    return [head, chain, *rows, f"memory of a replay, in bytes: {memory}"]
