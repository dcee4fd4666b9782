# SPDX-License-Identifier: Apache-2.0
"""The commands `radiowave diff`, `assess` and `recipes`. What they print is decided here, what is true is not."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from radiowave.certificate import VERDICTS
from radiowave.code_object import CodeObject
from radiowave.contracts import Contract, assess
from radiowave.difference import compare, difference_lines
from radiowave.recipes import Catalogue

OK, FINDINGS, TROUBLE = 0, 1, 2


def add_commands(commands: Any, add: Any, make: str) -> None:
    """The parsers; `add` makes one with the options that all commands have, `make` is how to get an object."""
    purpose = "Show what differs between two code objects; exit code 1 where anything does, 2 where one cannot be read."
    diff = add(commands, "diff", purpose, f"{make}\n  radiowave diff nothing.co nothing.co", _diff)
    diff.set_defaults(fault=TROUBLE)  # as diff has it: 1 says that both were read
    diff.add_argument("before", type=Path, help="a code object, or a file with one for the target")
    diff.add_argument("after", type=Path, help="another")
    diff.add_argument("--target", help="which object of bundles")

    purpose = "Hold a kernel against a resource contract; exit code 1 where it is rejected."
    check = add(commands, "assess", purpose, f"{make}\n  radiowave assess nothing.co --kernel nothing", _assess)
    check.add_argument("file", type=Path, help="a code object, or a file with one for the target")
    check.add_argument("--kernel", required=True, help="its name")
    check.add_argument("--target", help="which object of a bundle; the kernel must be for it")
    check.add_argument("--wave", type=int, choices=(32, 64), help="lanes that a wave must have")
    check.add_argument("--incumbent-vgprs", type=int, metavar="N", help="registers of the kernel that it shall replace")
    check.add_argument("--incumbent-wave", type=int, choices=(32, 64), help="its lanes (default: as the candidate)")
    check.add_argument("--verdict", choices=VERDICTS, help="the widest certificate that is allowed")

    purpose = "List recipes, choose those for a kernel, or take in what was measured."
    recipes = add(commands, "recipes", purpose, "  radiowave recipes select --target gfx1201 --kernel k", _recipes)
    recipes.add_argument("what", choices=("builtin", "select", "ingest"), help="what to do")
    recipes.add_argument("--catalogue", type=Path, help="a file of recipes (default: the built-in ones)")
    recipes.add_argument("--target", help="select: the GPU")
    recipes.add_argument("--kernel", help="select: its name")
    recipes.add_argument("--family", default="", help="select: its family, such as matmul")
    recipes.add_argument("--tag", action="append", default=[], help="select: a tag of it; may be repeated")
    recipes.add_argument("--candidates", action="store_true", help="select: also what was not promoted on this target")
    recipes.add_argument("--ledger", type=Path, action="append", default=[], help="ingest: JSON lines of measurements")
    recipes.add_argument("-o", "--output", type=Path, help="builtin, ingest: where to write (default: standard output)")


def _print_json(document: object) -> None:
    print(json.dumps(document, indent=2))


def _diff(arguments: argparse.Namespace) -> int:
    before, after = (CodeObject.read(p.read_bytes(), arguments.target) for p in (arguments.before, arguments.after))
    found = compare(before, after)
    if arguments.json:
        _print_json(found.as_json())
    else:
        print("\n".join(difference_lines(found)) or "nothing differs")
    return OK if found.is_empty else FINDINGS


def _assess(arguments: argparse.Namespace) -> int:
    contract = Contract(
        arguments.kernel,
        arguments.target,
        arguments.wave,
        arguments.incumbent_vgprs,
        arguments.incumbent_wave,
        arguments.verdict,
    )
    found = assess(CodeObject.read(arguments.file.read_bytes(), arguments.target), contract)
    if arguments.json:
        _print_json(found.as_json())
    else:
        print(f"{found.kernel}: {'accepted' if found.is_accepted else 'rejected'}")
        for rejection in found.rejections:
            print(f"  {rejection.kind}: {rejection.seen}; allowed: {rejection.allowed}")
    return OK if found.is_accepted else FINDINGS


def _recipes(arguments: argparse.Namespace) -> int:
    path: Path | None = arguments.catalogue
    catalogue = Catalogue() if path is None else Catalogue.parse(path.read_bytes(), str(path))
    if arguments.what == "select":
        return _select(arguments, catalogue)
    count = 0
    if arguments.what == "ingest":
        for ledger in arguments.ledger:
            catalogue, new = catalogue.ingest(ledger.read_bytes(), str(ledger))
            count += new
        print(f"{count} new rows of evidence", file=sys.stderr)
    if arguments.output:
        arguments.output.write_bytes(catalogue.to_bytes())
    else:
        print(catalogue.to_bytes().decode(), end="")
    return OK


def _select(arguments: argparse.Namespace, catalogue: Catalogue) -> int:
    if not arguments.target or not arguments.kernel:
        print("radiowave recipes select: give --target and --kernel", file=sys.stderr)
        return 2
    found = catalogue.select(
        arguments.target,
        arguments.kernel,
        family=arguments.family,
        tags=arguments.tag,
        candidates=arguments.candidates,
    )
    if arguments.json:
        _print_json(json.loads(Catalogue(found).to_bytes()))
    elif not found:
        print(f"nothing was promoted for {arguments.kernel} on {arguments.target}; --candidates lists what to try")
    for recipe in () if arguments.json else found:
        print(f"{recipe.id}  {recipe.verdict(arguments.target) or 'not measured'}  {recipe.why}")
    return OK
