# SPDX-License-Identifier: Apache-2.0
"""`python -m redline.kernels --target gfx1201 -o DIR`: the example kernels as code object files.

Writes `<kernel>.<target>.wave<size>.hsaco` and prints one line for each file. It builds nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import radiowave
from redline.kernels import DEMO_TARGETS, NAMES, build_all


def main(arguments: list[str] | None = None) -> int:
    """Build what the command line names; 1 when a compilation fails, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    folder: Path = options.output
    try:
        objects = build_all(options.target or DEMO_TARGETS, waves=options.wave or (32, 64), names=options.kernel)
    except radiowave.RadiowaveError as error:
        print(error, file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for (name, target, wave), content in objects.items():
        path = folder / f"{name}.{target}.wave{wave}.hsaco"
        path.write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m redline.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory for the .hsaco files")
    parser.add_argument("--target", action="append", help="GPU name, may be repeated (default: the demo's five)")
    parser.add_argument("--wave", action="append", type=int, choices=(32, 64), help="wave size (default: both)")
    parser.add_argument("kernel", nargs="*", default=list(NAMES), metavar="KERNEL", help="default: all fourteen")
    return parser


if __name__ == "__main__":
    sys.exit(main())
