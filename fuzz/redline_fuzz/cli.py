# SPDX-License-Identifier: Apache-2.0
"""The command `redline-fuzz`: random graphs, damaged inputs and planted faults, judged by independent oracles.

`redline-fuzz [TARGET...]` runs these targets, or all of them; `list` says what there is, `replay` runs one kept case
again, `self-test` plants faults in Redline and wants every one found. `ir` and `mutate` are `cli_ir.py`'s.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from radiowave import ToolchainError
from redline_fuzz import cli_ir
from redline_fuzz.cli_ir import natural, positive
from redline_fuzz.ir_host import HostError

CLEAN, FOUND, USAGE = 0, 1, 2

#: Targets that draw graphs, with what their oracle asks; `oracles.py` has them under the same names.
GRAPH_TARGETS = {
    "safe": "every schedule of the hostile machine equals the sequential reference",
    "minimal": "without any one drain or class some schedule differs",
    "verify": "verify and the machine agree on changed fences",
    "words": "what verify_words believes of damaged words, the machine runs without a difference",
    "bounds": "drains are the edges of the longest chain",
    "fewest": "no fewer drains, acquires or classes would do, wherever they stood",
    "round-trip": "the decoder reads the words as what was lowered",
    "lowering": "five families agree on memory and on what launches read",
    "replay": "replays back to back equal as many sequential runs, under every boundary",
    "errors": 'what order="explicit" refuses really goes wrong',
    "forms": "lanes, phases and AQL packets are safe, and nothing of them can be taken away",
    "device": "the same through Device and Replay: patch, bind, host access, cold and warm",
}

#: Targets that damage inputs, with their cases in each profile.
HOSTILE_TARGETS = {
    "objects": ("damaged code objects and bundles", {"quick": 200, "ci": 1000, "deep": 100_000}),
    "streams": ("damaged PM4 streams", {"quick": 200, "ci": 2000, "deep": 100_000}),
    "rings": ("damaged AQL packets and rings", {"quick": 50, "ci": 300, "deep": 10_000}),
    "disassembler": ("a disassembler that is fed hostile bytes and killed", {"quick": 20, "ci": 100, "deep": 2000}),
    "manifests": ("damaged and forged manifests of code objects", {"quick": 100, "ci": 2000, "deep": 50_000}),
}

PROFILES = ("quick", "ci", "deep")

#: What is optional, and how to get it: graphs are drawn with hypothesis, its database may be shared by redis.
_INSTALLS = {"hypothesis": "'redline[fuzz]'", "zstandard": "'redline[fuzz]'", "redis": "redis"}
_COMMANDS = ("list", "replay", "self-test", "ir", "mutate")

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 nothing found, 1 a finding, 2 usage, or tools that are missing or fail."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _commands() if given and given[0] in _COMMANDS else _runner()
    options = parser.parse_args(given)
    try:
        code: int = options.call(options)
        sys.stdout.flush()  # here, where a full disk can still be reported
    except (OSError, ToolchainError, HostError) as error:
        return _complain(error)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _INSTALLS:
            raise
        return _complain(f"{missing} is not installed; do: pip install {_INSTALLS[missing]}")
    return code


def _complain(error: Exception | str) -> int:
    print(f"redline-fuzz: {error}", file=sys.stderr)
    return USAGE


def _runner() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="redline-fuzz",
        description="Draw random graphs and damaged inputs and let independent oracles judge them.",
        epilog="Commands: redline-fuzz list, replay ID, self-test, ir, mutate; each has --help. "
        "Exit status: 0 nothing found, 1 a finding, 2 usage.",
    )
    targets = (*GRAPH_TARGETS, *HOSTILE_TARGETS)
    parser.add_argument("target", nargs="*", metavar="TARGET", help=f"by default all of: {', '.join(targets)}")
    parser.add_argument("--profile", choices=PROFILES, default="quick", help="how long to look (default quick)")
    parser.add_argument("--seed", type=natural, default=1, help="same seed, same examples (default 1)")
    parser.add_argument("--examples", type=positive, help="instead of the profile's number")
    parser.add_argument("--family", choices=("gfx10", "gfx11", "gfx12"), help="only GPUs of this family")
    parser.add_argument("--workers", type=positive, default=os.cpu_count() or 1, help="processes (default: one a core)")
    database = "hypothesis's example database: a directory, or redis://host:port; many machines may share one. "
    database += "Examples are new in each run then, whatever the seed"
    parser.add_argument("--database", default="", help=database)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.set_defaults(call=_run)
    return parser


def _commands() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="redline-fuzz")
    commands = parser.add_subparsers(dest="command", required=True)
    listed = commands.add_parser("list", help="targets, shapes and kept cases")
    listed.set_defaults(call=_list)
    again = commands.add_parser("replay", help="run a kept case again through every oracle")
    again.add_argument("id", metavar="ID", help="of a kept case, as a finding or `redline-fuzz list` names it")
    again.set_defaults(call=_replay)
    planted = commands.add_parser("self-test", help="plant faults in Redline; every one must be found")
    planted.add_argument("fault", nargs="*", metavar="FAULT", help="only these, by name (default all)")
    planted.add_argument("--seed", type=natural, default=1, help="default 1")
    planted.add_argument("--examples", type=positive, help="the most examples a fault may take")
    planted.add_argument("--workers", type=positive, default=os.cpu_count() or 1, help="processes")
    planted.add_argument("--json", action="store_true", help="print the record as JSON")
    planted.set_defaults(call=_self_test)
    cli_ir.add_commands(commands)
    return parser


# Running targets


def _run(options: argparse.Namespace) -> int:
    unknown = [name for name in options.target if name not in (*GRAPH_TARGETS, *HOSTILE_TARGETS)]
    if unknown:
        known = ", ".join((*GRAPH_TARGETS, *HOSTILE_TARGETS))
        print(f"redline-fuzz: no target {unknown[0]!r}; known: {known}", file=sys.stderr)
        return USAGE
    chosen = options.target or (*GRAPH_TARGETS, *HOSTILE_TARGETS)
    record: Record = {"schema": 1, "profile": options.profile, "seed": options.seed, "kept": []}
    graphs = [name for name in GRAPH_TARGETS if name in chosen]
    if graphs:
        record |= _graphs(options, graphs)
    record["hostile"] = {name: _hostile(name, options) for name in HOSTILE_TARGETS if name in chosen}
    findings = len(record.get("failures", [])) + sum(len(part["failures"]) for part in record["hostile"].values())
    record["clean"] = not findings
    if options.json:
        print(json.dumps(record, indent=2))
    else:
        from redline_fuzz.report import show

        show(record)
    return FOUND if findings else CLEAN


def _graphs(options: argparse.Namespace, names: Sequence[str]) -> Record:
    from redline_fuzz.oracles import FIVE
    from redline_fuzz.report import progress
    from redline_fuzz.run import EXAMPLES, FAMILIES, as_record, chunks, run

    targets = FAMILIES[options.family] if options.family else FIVE
    examples = options.examples or EXAMPLES[options.profile]
    work = list(chunks(names, examples, options.seed, targets, options.database))
    tally, failures = run(work, options.workers, None if options.json else progress())
    return as_record(tally, failures) | {"kept": [_keep(failure) for failure in failures]}


def _keep(failure: Any) -> Record:
    """Save a shrunk case where `replay` and the tests find it; and the program that shows it."""
    from redline_fuzz import corpus
    from redline_fuzz.printing import as_python, case_id

    path = corpus.save(failure.case, failure.oracle, failure.text)
    return {"id": case_id(failure.case), "file": str(path), "python": as_python(failure.case, failure.text)}


def _hostile(name: str, options: argparse.Namespace) -> Record:
    from importlib import import_module

    count = options.examples or HOSTILE_TARGETS[name][1][options.profile]
    if not options.json:
        print(f"{name}: {count} cases ...", file=sys.stderr, flush=True)
    found: Record = import_module(f"redline_fuzz.hostile_{name}").run(count, options.seed)
    return {"cases": found["cases"], "failures": found["failures"]}


# The other commands


def _list(_options: argparse.Namespace) -> int:
    from redline_fuzz import corpus
    from redline_fuzz.shapes import SHAPES

    for name, what in GRAPH_TARGETS.items():
        print(f"target  {name:13} {what}")
    for name, (what, _) in HOSTILE_TARGETS.items():
        print(f"target  {name:13} {what}")
    for name in SHAPES:
        print(f"shape   {name}")
    for kept in corpus.load_all():
        print(f"case    {kept.id:13} {kept.oracle}: {kept.why}")
    return CLEAN


def _replay(options: argparse.Namespace) -> int:
    from redline_fuzz import corpus
    from redline_fuzz.judging import Tally
    from redline_fuzz.oracles import ORACLES, judge
    from redline_fuzz.printing import as_python

    try:
        kept = corpus.load(options.id)
    except KeyError:
        print(f"redline-fuzz: no kept case {options.id!r}; `redline-fuzz list` names them", file=sys.stderr)
        return USAGE
    tally = Tally()
    failure = judge(kept.case, tuple(ORACLES), tally)
    print(as_python(kept.case, failure.text if failure else ""))
    print(f"{'FOUND by ' + failure.oracle if failure else 'clean'}: {tally.schedules} schedules")
    return FOUND if failure else CLEAN


def _self_test(options: argparse.Namespace) -> int:
    import hypothesis  # noqa: F401  (without it every fault would crash, and count as found)

    from redline_fuzz import self_test
    from redline_fuzz.report import show_faults, step

    try:
        record = self_test.run(
            options.seed,
            options.examples,
            options.fault or None,
            workers=options.workers,
            progress=step(),
        )
    except KeyError as unknown:
        print(f"redline-fuzz: no planted fault {unknown}; leave the name out to see all of them", file=sys.stderr)
        return USAGE
    if options.json:
        print(json.dumps(record, indent=2))
    else:
        show_faults(record)
    return CLEAN if record["killed"] == record["total"] and not record["accused"] else FOUND


if __name__ == "__main__":
    sys.exit(main())
