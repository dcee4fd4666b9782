# SPDX-License-Identifier: Apache-2.0
"""`redline bench` or `python -m redline_bench`: run benchmarks and print one JSON record with machine and versions.

`plan` alone prints a table unless `--json` is given. Encoding and planning need no kernels; `sim` builds the tiled
matmul first. Exits with 1 when the software device is slower than what is promised for it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from redline_bench import encode, plan, sim
from redline_bench.shapes import SHAPES

NAMES = ("encode", "plan", "sim")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the record."""
    parser = argparse.ArgumentParser(prog="redline bench", description="Benchmarks that need no GPU.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default: 9)")
    most = f"launches (default: 1000; plan: {', '.join(map(str, plan.SIZES))})"
    parser.add_argument("--launches", type=int, help=most)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="plan: only this shape; may be repeated")
    parser.add_argument("--json", action="store_true", help="plan: the record instead of a table")
    options = parser.parse_args(argv)
    if options.rounds < 1 or (options.launches is not None and options.launches < 1):
        parser.error("--rounds and --launches are at least 1")
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no benchmark {sorted(unknown)[0]!r}; there are: {', '.join(NAMES)}")
    names = options.names or NAMES
    targets = ("gfx1030", "gfx1100", "gfx1201")
    record: dict[str, Any] = {
        "schema": 1,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in ("numba", "numpy", "llvmlite")},
    }
    if "encode" in names:
        record["encode"] = [encode.measurements(target, options.launches or 1000, options.rounds) for target in targets]
    if "plan" in names:
        sizes = (options.launches,) if options.launches else plan.SIZES
        rows = plan.measurements(sizes, options.rounds, options.shape or tuple(SHAPES))
        record["plan"] = {"schema": plan.SCHEMA, "rows": rows}
    if "sim" in names:
        record["sim"] = [sim.measurements(target, options.rounds) for target in sim.TARGETS]
    if names == ["plan"] and not options.json:
        print(plan.table(record["plan"]["rows"]))
    else:
        print(json.dumps(record, indent=1))
    return int(any(found["best"] < found["wanted"] for found in record.get("sim", [])))


if __name__ == "__main__":
    raise SystemExit(main())
