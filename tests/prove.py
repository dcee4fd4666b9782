# SPDX-License-Identifier: Apache-2.0
"""`make prove`: every proof in full, and a record of it under docs/records/.

The tests run a slice of the same proofs with fixed seeds; this runs them all and writes down what was run, on what, how
long, and what was found. Exits with 1 when any proof failed.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from tests.exhaustive import FAMILIES, every_graph, judge
from tests.judges import judge_family, judge_loop_seed, judge_random_graph, judge_verify, judge_words

ROOT = Path(__file__).parent.parent
Proof = Callable[[], dict[str, Any]]


def fences() -> dict[str, Any]:
    """Every graph of up to three launches over two bytes: safe, irredundant, none cheaper."""
    chunks = [(launches, first) for launches in (1, 2, 3) for first in range(32)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(_judge_chunk, chunks))
    return {"cases": sum(count for count, _ in parts), "failures": [wrong for _, found in parts for wrong in found]}


def _judge_chunk(chunk: tuple[int, int]) -> tuple[int, list[str]]:
    """The graphs of a length whose first launch is of one kind."""
    launches, first = chunk
    count, found = 0, []
    for index, items in enumerate(every_graph(launches)):
        if index // 32 ** (launches - 1) == first:
            count += 1
            wrong = judge(items)
            found += [f"{wrong}: {items}"] if wrong else []
    return count, found


def small_graphs() -> dict[str, Any]:
    """Every graph of up to 3 launches over 3 ranges and of 4 over 2: safe and irredundant, one replay and loops."""
    step = 64
    parts = [(family, first, step) for family in range(len(FAMILIES)) for first in range(step)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(judge_family, parts))
    return {"cases": sum(count for count, _ in done), "failures": [wrong for _, found in done for wrong in found]}


def random_graphs() -> dict[str, Any]:
    """100,000 random graphs of 4 launches over 3 ranges: safe and irredundant, one replay and loops."""
    return _over_seeds(judge_random_graph, 100_000)


def loops() -> dict[str, Any]:
    """3,000 random loops against every legal order and every place for drains and acquires."""
    return _over_seeds(judge_loop_seed, 3000)


def verify() -> dict[str, Any]:
    """20,000 random plans and fences: `verify` agrees with the definition over all pairs."""
    return _over_seeds(judge_verify, 20_000)


def verify_words() -> dict[str, Any]:
    """10,000 random plans and fences on five families: `verify_words` finds in the words what `verify` finds."""
    return _over_seeds(judge_words, 10_000)


def _over_seeds(judge_seed: Callable[[int], str], count: int) -> dict[str, Any]:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = [wrong for wrong in pool.map(judge_seed, range(count), chunksize=100) if wrong]
    return {"cases": count, "failures": found}


def random_ir() -> dict[str, Any]:
    """2,000 random programs on the host and on ten target-wave pairs."""
    from redline_fuzz.ir_run import run

    record = run(2000, 1)
    return {"cases": record["programs"], "failures": record["findings"], "record": _short(record)}


def example_kernels() -> dict[str, Any]:
    """Each example kernel on 100 random shapes and data, on ten target-wave pairs."""
    from redline_fuzz.kernel_runs import run

    from redline import kernels

    record = run(100)
    return {"cases": 100 * len(kernels.NAMES) * 10, "failures": record["failures"], "record": record["cases"]}


def demo() -> dict[str, Any]:
    """The demo on every target and both wave sizes."""
    import redline
    from redline import demo as decoder
    from redline import kernels

    results = []
    for target in kernels.DEMO_TARGETS:
        for wave in (32, 64):
            with redline.open(f"sim:{target}") as device:
                results.append(decoder.run(device, wave))
    return {"cases": len(results), "failures": [r.mismatch for r in results if not r.exact]}


def hostile_objects() -> dict[str, Any]:
    """100,000 damaged code objects and bundles: an error of ours, in bounded time and memory."""
    from redline_fuzz.hostile_objects import run

    record = run(100_000, 1)
    return {"cases": record["cases"], "failures": record["failures"], "record": _short(record)}


def hostile_streams() -> dict[str, Any]:
    """100,000 damaged PM4 streams: answered or refused by decoder, linter, verify_words and packet reader."""
    return _hostile("streams", 100_000)


def hostile_rings() -> dict[str, Any]:
    """5,000 damaged batches of AQL packets: the queue stops with a status, the device goes on."""
    return _hostile("rings", 5000)


def hostile_disassembler() -> dict[str, Any]:
    """3,000 requests of noise with kills: the next child answers right."""
    return _hostile("disassembler", 3000)


def hostile_manifests() -> dict[str, Any]:
    """Damaged and forged manifests."""
    return _hostile("manifests", 100_000)


def hip_kernels() -> dict[str, Any]:
    """Eight HIP sources by every compiler found, five targets, both wave sizes, on the software device."""
    import redline as rl
    from radiowave.hip import HipJob, compile_hip_file
    from radiowave.hip_compilers import find_hip_compilers
    from tests.radiowave.hip_cases import CASES, FOLDER, wrong

    compilers = [c.identity() for c in find_hip_compilers() if c.compiler]
    failures, cases = [], 0
    for target in ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"):
        with rl.open(f"sim:{target}") as device:
            for compiler, wave, name in product((c["name"] for c in compilers), (32, 64), CASES):
                build = compile_hip_file(FOLDER / f"{name}.hip", HipJob(target, wave), toolchain=compiler)
                found = wrong(rl.load(build.data)[name], CASES[name](), device)
                cases += 1
                failures += [f"{name} {target} wave{wave} {compiler}: {found}"] if found else []
    return {"cases": cases, "failures": failures, "compilers": compilers}


def _hostile(name: str, count: int) -> dict[str, Any]:
    record: dict[str, Any] = import_module(f"redline_fuzz.hostile_{name}").run(count, 1)
    return {"cases": record["cases"], "failures": record["failures"], "record": _short(record)}


def certify_sound() -> dict[str, Any]:
    """100,000 random scalar kernels certified and run: no load leaves its class; three old mistakes are found."""
    from tests.radiowave.assemble import TARGETS
    from tests.radiowave.certifier_holes import HOLES
    from tests.radiowave.soundness import Tally

    count, most, step = 100_000, 20_000, 500
    share = -(-count // len(TARGETS))
    chunks = [(target, first, min(step, share - first)) for target in TARGETS for first in range(0, share, step)]
    tally = Tally()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for part in pool.map(_certified, chunks):
            tally.add(part)
        needed = dict(zip(HOLES, pool.map(_programs_to_find, HOLES, [most] * len(HOLES)), strict=True))
    missed = [f"{hole} is not found within {most:,} programs" for hole, number in needed.items() if number is None]
    record = {"distribution": str(tally), "programs": tally.programs, "loads": tally.loads, "programs_to_find": needed}
    return {"cases": tally.programs.total(), "failures": tally.found + missed, "record": record}


def _certified(chunk: tuple[str, int, int]) -> Any:
    from radiowave import Disassembler
    from tests.radiowave.soundness import judge_seeds

    target, first, count = chunk
    with Disassembler() as disassembler:
        return judge_seeds(range(first, first + count), target, disassembler)


def _programs_to_find(hole: str, most: int) -> int | None:
    from radiowave import Disassembler
    from tests.radiowave.certifier_holes import HOLES
    from tests.radiowave.soundness import programs_to_find

    with Disassembler() as disassembler, HOLES[hole]():
        return programs_to_find("gfx1100", disassembler, most)


def fuzz_ci() -> dict[str, Any]:
    """`redline-fuzz --profile ci --seed 1`: every graph oracle."""
    return _fuzz("ci", 1)


def fuzz_deep() -> dict[str, Any]:
    """`redline-fuzz --profile deep --seed 2`: at least a million schedules of the hostile machine."""
    record = _fuzz("deep", 2)
    if record["record"]["schedules"] < 1_000_000:
        record["failures"].append(f"only {record['record']['schedules']} schedules")
    return record


def _fuzz(profile: str, seed: int) -> dict[str, Any]:
    from redline_fuzz.oracles import ORACLES
    from redline_fuzz.run import EXAMPLES, as_record, chunks, run

    work = list(chunks(tuple(ORACLES), EXAMPLES[profile], seed))
    tally, failures = run(work, os.cpu_count() or 1)
    record = as_record(tally, failures)
    found = [f"{failure.oracle}: {failure.text}: {failure.case}" for failure in failures]
    return {"cases": tally.examples, "failures": found, "record": _short(record)}


def self_test() -> dict[str, Any]:
    """Every planted fault and every generic mutant of the derivation is found by `redline-fuzz`."""
    # A process of its own: whatever this one has imported of ours would be imported by its children too.
    done = subprocess.run(
        [sys.executable, "-m", "redline_fuzz.cli", "self-test", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"redline-fuzz self-test ended with {done.returncode}")
    record = json.loads(done.stdout)
    missed = [name for name, reason in record["survivors"].items() if not reason]
    missed += ["sound Redline is accused: " + record["accused"]] if record["accused"] else []
    found_by = Counter(fault["oracle"] for fault in record["faults"])
    kept = {key: value for key, value in record.items() if key != "faults"}
    return {
        "cases": record["total"],
        "failures": missed,
        "record": {**kept, "found_by": dict(sorted(found_by.items()))},
    }


def mutation() -> dict[str, Any]:
    """Every instruction of the software device made wrong by one bit or step: a check notices."""
    from tests.sim.mutation_checks import everything

    record = everything()
    return {"cases": record["mutants"], "failures": record["missed"], "record": record["groups"]}


def clang_corpus() -> dict[str, Any]:
    """Kernels from clang 19 and 22, -O0 to -O3, on ten target-wave pairs against numpy, in four orders of waves."""
    from tests.sim.clang_corpus.runs import run

    try:
        record = run()
    except FileNotFoundError as missing:  # names the package; other proofs still run
        return {"cases": 0, "failures": [str(missing)]}
    return {"cases": record["cases"], "failures": record["failures"], "record": _short(record)}


def racing_consumer() -> dict[str, Any]:
    """10^7 packets against a compiled consumer on its own thread: none torn, out of order or missing; batches whole."""
    from tests.hsa.consumer import header_first
    from tests.hsa.racing import race

    count, broken = 10_000_000, 200
    race(1000, seed=0)  # compiles
    started = time.monotonic()
    found = race(count, seed=1)
    rate = count / (time.monotonic() - started)
    caught = race(broken, seed=1, write=header_first).torn
    failures = found.failures() + ([] if caught == broken else [f"headers first: {caught} of {broken} torn"])
    record = {**asdict(found), "packets_per_s": round(rate), "torn_with_headers_first": f"{caught} of {broken}"}
    return {"cases": count, "failures": failures, "record": record}


def flat_replays() -> dict[str, Any]:
    """10^5 replays over all forms, and 10^5 buffers opened and closed beside a queue: nothing grows."""
    from tests.flat_replays import flat_replays as replays
    from tests.hsa.test_quarantine import flat_buffers
    from tests.test_replay_forms import FORMS

    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = [pool.submit(replays, form, 100_000 // len(FORMS)) for form in FORMS]
        rows.append(pool.submit(flat_buffers, 100_000))
        failures = [wrong for row in rows for wrong in row.result()]
    return {"cases": 200_000, "failures": failures, "record": {"forms": list(FORMS)}}


def suite() -> dict[str, Any]:
    """The test suite with ten times the examples."""
    command = [sys.executable, "-m", "pytest", "-n", str(os.cpu_count()), "--hypothesis-profile", "prove"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    tail = done.stdout.strip().splitlines()[-1:]
    return {"cases": tail, "failures": [] if done.returncode == 0 else done.stdout.splitlines()[-40:]}


PROOFS: dict[str, Proof] = {
    "fences": fences,
    "small_graphs": small_graphs,
    "random_graphs": random_graphs,
    "loops": loops,
    "verify": verify,
    "verify_words": verify_words,
    "demo": demo,
    "example_kernels": example_kernels,
    "random_ir": random_ir,
    "hostile_objects": hostile_objects,
    "hostile_streams": hostile_streams,
    "hostile_rings": hostile_rings,
    "hostile_disassembler": hostile_disassembler,
    "hostile_manifests": hostile_manifests,
    "hip_kernels": hip_kernels,
    "certify_sound": certify_sound,
    "fuzz_ci": fuzz_ci,
    "fuzz_deep": fuzz_deep,
    "self_test": self_test,
    "mutation": mutation,
    "clang_corpus": clang_corpus,
    "racing_consumer": racing_consumer,
    "flat_replays": flat_replays,
    "suite": suite,
}


def _short(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("cases", "failures", "findings", "programs")}


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in ("numba", "numpy", "llvmlite", "rocm-llvm-python", "hypothesis")},
    }


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


RECORD = ROOT / "docs" / "records" / "prove.json"


def main(names: list[str]) -> int:
    """Run the named proofs (all by default), put each into the record, return the exit code.

    Every entry says on which commit and machine it was made, so that one proof can be run again on its own.
    """
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {"schema": 1, "proofs": {}}
    failed = False
    for name in names or list(PROOFS):
        started = time.monotonic()
        print(f"{name}: {PROOFS[name].__doc__}", flush=True)
        result = {"commit": _commit(), **_machine(), **PROOFS[name]()}
        result["seconds"] = round(time.monotonic() - started, 1)
        record["proofs"][name] = result
        failed = failed or bool(result["failures"])
        print(f"  {result['cases']} cases, {len(result['failures'])} failures, {result['seconds']} s", flush=True)
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(f"record: {RECORD.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
