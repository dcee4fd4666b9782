# SPDX-License-Identifier: Apache-2.0
"""`redline-fuzz ir` and `redline-fuzz mutate`: the software device against the host, and whether that would notice.

`ir` compares random LLVM IR programs on the host and on the software device; `mutate` makes each instruction wrong in
turn and asks whether the comparison sees it.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from redline_fuzz import ir_mutation
from redline_fuzz.ir_bisect import Bisection
from redline_fuzz.ir_programs import generate
from redline_fuzz.ir_run import TARGETS, WAVES, Sides, run

EQUAL, DIFFERENT = 0, 1
MOST_BISECTED = 3  # the first findings say most; each costs a few compilations


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The parsers of both; `call` of what they parse runs the command and returns the exit status."""
    ir = commands.add_parser(
        "ir",
        help="random LLVM IR: host code against the software device",
        description="Compile random straight-line LLVM IR for the host and each target; compare results bit for bit.",
        epilog="Example: redline-fuzz ir --count 40. Exit status: 0 all equal, 1 a difference or a fault, 2 usage.",
    )
    ir.add_argument("--count", type=positive, default=40, help="programs (default 40)")
    ir.add_argument("--first", type=natural, default=0, help="index of the first program (default 0)")
    ir.add_argument("--seed", type=natural, default=1, help="seed of programs and data (default 1)")
    ir.add_argument("--target", action="append", choices=TARGETS, help="only this target; may be given again")
    ir.add_argument("--wave", action="append", type=int, choices=WAVES, help="only this wave size; may be given again")
    ir.add_argument("--workers", type=positive, help="processes (default: one a core)")
    ir.add_argument("--json", action="store_true", help="print the record as JSON")
    mutate = commands.add_parser(
        "mutate",
        help="make each instruction of the software device wrong in turn and see whether random IR notices",
        description="Change each row of the executor's ALU tables by one bit; random LLVM IR should notice.",
        epilog="Example: redline-fuzz mutate --target gfx1100. Exit status: 1 when one goes unnoticed for no reason.",
    )
    mutate.add_argument("--target", choices=TARGETS, default="gfx1201", help="default gfx1201")
    mutate.add_argument("--wave", type=int, choices=WAVES, default=32, help="default 32")
    mutate.add_argument("--count", type=positive, default=480, help="programs to try, rounded up to batches (480)")
    mutate.add_argument("--seed", type=natural, default=1, help="seed of programs and data (default 1)")
    mutate.add_argument("--json", action="store_true", help="print the record as JSON")
    ir.set_defaults(call=_ir)
    mutate.set_defaults(call=_mutate)


def natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative")
    return value


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _ir(options: argparse.Namespace) -> int:
    targets, waves = options.target or TARGETS, options.wave or WAVES
    progress = None if options.json or not sys.stderr.isatty() else _show_progress
    record = run(
        options.count,
        options.seed,
        targets,
        progress,
        first=options.first,
        waves=waves,
        workers=options.workers,
    )
    if options.json:
        print(json.dumps(record, indent=2))
    else:
        _print_record(record)
    return EQUAL if record["equal"] else DIFFERENT


def _mutate(options: argparse.Namespace) -> int:
    record = ir_mutation.run((options.target, options.wave), options.seed, options.count)
    if options.json:
        print(json.dumps(record, indent=2))
    else:
        print(f"{record['pair']}: {record['noticed']} of {record['mutants']} mutants noticed")
        for name, reason in record["missed"].items():
            print(f"  not noticed: {name}: {reason or 'NO KNOWN REASON'}")
    return EQUAL if record["equal"] else DIFFERENT


def _show_progress(done: int, total: int) -> None:
    print(f"\r{done}/{total} programs", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _print_record(record: dict[str, Any]) -> None:
    for pair, result in record["pairs"].items():
        print(f"{pair}: {result['equal']} of {result['programs']} programs equal")
    print(f"{len(record['operations'])} different operations, {record['seconds']} s")
    for finding in record["findings"]:
        print(f"\nprogram {finding['program']} on {finding['target']} wave{finding['wave']}: {finding['what']}")
        print(f"  repeat: {finding['repeat']}")
    for finding in record["findings"][:MOST_BISECTED]:
        print(f"\n{bisected(record['seed'], finding)}")


def bisected(seed: int, finding: dict[str, Any]) -> str:
    """The bisection of one finding of a record, as text."""
    pair = finding["target"], finding["wave"]
    with Sides([pair]) as sides:
        report = Bisection(sides, generate(seed, finding["program"]), pair).report()
    return f"program {finding['program']} on {pair[0]} wave{pair[1]}: {report}"
