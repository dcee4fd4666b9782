# SPDX-License-Identifier: Apache-2.0
"""`python -m redline_bench`: run the benchmarks and print one JSON record with machine and versions."""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import version

from redline_bench import encode, plan


def main() -> int:
    """Print the record."""
    parser = argparse.ArgumentParser(prog="redline_bench", description="Benchmarks that need no GPU.")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default: 9)")
    parser.add_argument("--launches", type=int, default=1000, help="launches (default: 1000)")
    options = parser.parse_args()
    targets = ("gfx1030", "gfx1100", "gfx1201")
    record = {
        "schema": 1,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in ("numba", "numpy", "llvmlite")},
        "encode": [encode.measurements(target, options.launches, options.rounds) for target in targets],
        "plan": [plan.measurements(shape, options.launches, options.rounds) for shape in plan.SHAPES],
    }
    print(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
