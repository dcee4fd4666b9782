# SPDX-License-Identifier: Apache-2.0
"""`redline bench` or `python -m redline_bench`: run benchmarks and print one JSON record with machine and versions.

`plan`, `radiowave` or `replay` alone prints a table unless `--json` is given. Encoding and planning need no kernels;
`replay` builds saxpy first, `sim` the tiled matmul, `compare` the demo's kernels, `radiowave` all of the package's.
Exits with 1 when the software device is slower than what is promised for it, with 2 when the two plans of `compare`
have different results: then there is no record.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from redline_bench import compare, encode, plan, radiowave, replay, sim
from redline_bench.shapes import SHAPES

NAMES = ("compare", "encode", "plan", "radiowave", "replay", "sim")
#: Those that print a table when they are asked for alone, without --json.
_TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "plan": lambda found: plan.table(found["rows"]),
    "radiowave": radiowave.table,
    "replay": replay.table,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the record."""
    parser = argparse.ArgumentParser(prog="redline bench", description="Benchmarks that need no GPU.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default: 9)")
    most = f"launches (default: 1000; plan: {_list(plan.SIZES)}; replay: {_list(replay.SIZES)})"
    parser.add_argument("--launches", type=int, help=most)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="plan: only this shape; may be repeated")
    parser.add_argument("--json", action="store_true", help="plan, radiowave, replay: the record instead of a table")
    parser.add_argument(
        "--quick", action="store_true", help="three rounds, and replay with one workgroup a launch only"
    )
    options = parser.parse_args(argv)
    if options.rounds < 1 or (options.launches is not None and options.launches < 1):
        parser.error("--rounds and --launches are at least 1")
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no benchmark {sorted(unknown)[0]!r}; there are: {', '.join(NAMES)}")
    names, rounds = options.names or list(NAMES), min(3, options.rounds) if options.quick else options.rounds
    given = (options.launches,) if options.launches else ()
    targets = ("gfx1030", "gfx1100", "gfx1201")
    record: dict[str, Any] = {
        "schema": 1,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in ("numba", "numpy", "llvmlite")},
    }
    if "compare" in names:
        try:
            record["compare"] = compare.measurements(rounds)
        except compare.DifferentResultError as different:
            print(f"compare: different results, so no times: {different}", file=sys.stderr)
            return 2
    if "encode" in names:
        record["encode"] = [encode.measurements(target, options.launches or 1000, rounds) for target in targets]
    if "plan" in names:
        rows = plan.measurements(given or plan.SIZES, rounds, options.shape or tuple(SHAPES))
        record["plan"] = {"schema": plan.SCHEMA, "rows": rows}
    if "radiowave" in names:
        record["radiowave"] = radiowave.measurements(rounds)
    if "replay" in names:
        blocks = replay.BLOCKS[:1] if options.quick else replay.BLOCKS
        record["replay"] = replay.measurements(rounds, given or replay.SIZES, blocks)
    if "sim" in names:
        record["sim"] = [sim.measurements(target, rounds) for target in sim.TARGETS]
    if len(names) == 1 and names[0] in _TABLES and not options.json:
        print(_TABLES[names[0]](record[names[0]]))
    else:
        print(json.dumps(record, indent=1))
    return int(any(found["best"] < found["wanted"] for found in record.get("sim", [])))


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


if __name__ == "__main__":
    raise SystemExit(main())
