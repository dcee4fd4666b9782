# SPDX-License-Identifier: Apache-2.0
"""`redline bench` or `python -m redline_bench`: run benchmarks and print one JSON record with machine and versions.

Encoding and planning need no kernels; `sim` builds the tiled matmul first. Exits with 1 when the software device is
slower than what is promised for it.
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

NAMES = ("encode", "plan", "sim")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the record."""
    parser = argparse.ArgumentParser(prog="redline bench", description="Benchmarks that need no GPU.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default: 9)")
    parser.add_argument("--launches", type=int, default=1000, help="launches (default: 1000)")
    options = parser.parse_args(argv)
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
        record["encode"] = [encode.measurements(target, options.launches, options.rounds) for target in targets]
    if "plan" in names:
        record["plan"] = [plan.measurements(shape, options.launches, options.rounds) for shape in plan.SHAPES]
    if "sim" in names:
        record["sim"] = [sim.measurements(target, options.rounds) for target in sim.TARGETS]
    print(json.dumps(record, indent=1))
    return int(any(found["best"] < found["wanted"] for found in record.get("sim", [])))


if __name__ == "__main__":
    raise SystemExit(main())
