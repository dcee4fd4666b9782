# SPDX-License-Identifier: Apache-2.0
"""Hostile code objects: damaged files through every reader, each answer an error of ours or facts that hold together.

`case` makes the n-th damaged file of a seed, `judge` puts it through the readers, `run` does many and keeps a record.
Judged: the kind of error, the time of each case, the memory of all. What a damaged object computes is not asked.

`python -m redline_fuzz.hostile_objects --seed 1 --first 37 --count 1` repeats one case.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import radiowave
import redline
from radiowave.compile import CompileJob, compile_relocatable
from radiowave.inspection import inspect, inspection_json, inspection_lines
from redline import kernels
from redline_fuzz import bundles, hostile_mutations
from redline_fuzz.bounded import TooSlow, alarm

# A case takes milliseconds. One that needs this long is a fault, and is stopped.
SECONDS_PER_CASE = 20
# Above what the process had before the first case. The largest honest input is a few hundred KiB.
MIB_OF_ALL_CASES = 256
# The list of targets is in some messages, the ids of a bundle in others.
MOST_CHARACTERS = 4000
# The real bundles of the reader are megabytes; these need none, so that 100,000 cases fit into minutes.
_ALIGN = 64

# Module variables, constant tables and hidden arguments, which the example kernels lack.
MODULE = """
target triple = "amdgcn-amd-amdhsa"
@table = internal addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 5], align 16
@counter = addrspace(1) global i32 7, align 4
@pointers = internal addrspace(4) constant [2 x ptr addrspace(1)] [ptr addrspace(1) @counter, ptr addrspace(1) null]
define amdgpu_kernel void @first(ptr addrspace(1) %y, i32 %i, [9 x i8] %blob) {
  %p = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %g = getelementptr i8, ptr addrspace(4) %p, i64 12
  %w = load i16, ptr addrspace(4) %g
  %q = getelementptr [2 x ptr addrspace(1)], ptr addrspace(4) @pointers, i32 0, i32 %i
  %c = load ptr addrspace(1), ptr addrspace(4) %q
  store i16 %w, ptr addrspace(1) %c
  ret void
}
define amdgpu_kernel void @second(ptr addrspace(1) %y, ptr addrspace(3) %l, double %d) {
  %t = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 2
  %v = load i32, ptr addrspace(4) %t
  store i32 %v, ptr addrspace(3) %l
  store double %d, ptr addrspace(1) %y
  ret void
}
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
"""


class Corpus(NamedTuple):
    """Undamaged inputs."""

    linked: tuple[tuple[str, bytes], ...]  # target and object
    relocatable: tuple[bytes, ...]


class Case(NamedTuple):
    """A damaged file: what was damaged and how, the container it stands in, and the target to ask for."""

    how: str
    container: str
    data: bytes
    target: str | None


@cache
def corpus() -> Corpus:
    """Example kernels and `MODULE` for five targets and three code object versions."""
    names = ("saxpy", "matmul", "activate", "fill")
    linked = [(target, kernels.build(name, target)) for name, target in zip(names, kernels.DEMO_TARGETS, strict=False)]
    jobs = [CompileJob(MODULE, target, wave, cov) for target, wave, cov in JOBS]
    linked += [(job.target, radiowave.link(raw)) for job, raw in zip(jobs, compile_relocatable(jobs), strict=True)]
    text = kernels.source("saxpy").read_text(encoding="utf-8")
    raw = compile_relocatable([*jobs[:2], CompileJob(text, "gfx1151", 64)])
    return Corpus(tuple(linked), tuple(raw))


JOBS = (("gfx1010", 64, 4), ("gfx1201", 32, 5), ("gfx1100", 32, 6))


def case(seed: int, index: int) -> Case:
    """The damaged file with this number; the same in every process that has the same toolchain."""
    rng = random.Random(f"hostile {seed} {index}")
    kind = rng.choice(("object", "object", "object", "relocatable", "container", "wrapped", "wrapped"))
    if kind == "relocatable":
        how, data = _damaged(kind, rng.choice(corpus().relocatable), hostile_mutations.OF_RELOCATABLES, rng)
        return Case(how, "", data, None)
    target, data = rng.choice(corpus().linked)
    if kind == "container":
        name, whole = _contained(target, data, rng)
        how, whole = _damaged("container", whole, hostile_mutations.OF_CONTAINERS, rng)
        return Case(how, name, whole, target)
    how, data = _damaged("object", data, hostile_mutations.OF_OBJECTS, rng)
    if kind == "object":
        return Case(how, "", data, target)
    if rng.random() < 0.7:
        return Case(how, *_contained(target, data, rng), target)
    # A bundle that is damaged, inside a stream that is not.
    plain = bundles.bundle([(bundles.device_id(target), data)], align=_ALIGN)
    how, plain = _damaged("bundle", plain, hostile_mutations.OF_CONTAINERS, rng)
    version = rng.choice((1, 2, 3))
    return Case(how, f"CCOB v{version} zstd", bundles.compress(plain, version=version), target)


def _damaged(
    what: str, data: bytes, mutations: Sequence[hostile_mutations.Mutation], rng: random.Random
) -> tuple[str, bytes]:
    """One mutation that knows the file, then perhaps another that does not; what was done, and the bytes."""
    first = rng.choice(mutations)
    damaged, how = first(data, rng), f"{what} {first.__name__}"
    if damaged and rng.random() < 0.1:
        second = rng.choice(hostile_mutations.ANYWHERE)
        return f"{how}, {second.__name__}", second(damaged, rng)
    return how, damaged


def _contained(target: str, data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """The object in a container, and its name."""
    other_target, other = rng.choice(corpus().linked)
    entries = [(bundles.device_id(target), data)]
    if other_target != target and rng.random() < 0.5:
        entries.append((bundles.device_id(other_target), other))
    plain = bundles.bundle(entries, align=_ALIGN)
    version, method = rng.choice((1, 2, 3)), rng.choice(("zlib", "zstd"))
    packed = bundles.compress(plain, version=version, method=method)
    forms = {
        "plain bundle": plain,
        f"CCOB v{version} {method}": packed,
        "two bundles": packed + bytes(64) + plain,
        "host file": bundles.host_elf(plain),
    }
    name = rng.choice(list(forms))
    return name, forms[name]


def judge(damaged: Case) -> tuple[str, str]:
    """What was answered, as an error's code or "read", and what is wrong with the answers, mostly nothing."""
    answers = []
    for reader in READERS if damaged.target is None else READERS[1:]:
        try:
            with alarm(SECONDS_PER_CASE):
                answers.append(reader(damaged))
        except (radiowave.RadiowaveError, redline.RedlineError) as error:
            answers.append(error.code)
            if not _is_useful(error):
                return error.code, f"{reader.__name__}: an error that cannot be shown, or lacks a part: {error!a:.300}"
        except TooSlow:
            return "none", f"{reader.__name__}: no answer after {SECONDS_PER_CASE} s"
        except BaseException as error:
            return "none", f"{reader.__name__}: {type(error).__name__}: {str(error)[:300]}"
    return next((answer for answer in answers if answer != "read"), "read"), ""


def _is_useful(error: radiowave.RadiowaveError | redline.RedlineError) -> bool:
    """Whether it has all four facts, a length that can be read, and characters that can be written."""
    text = str(error)
    is_writable = text.encode("utf-8", "replace").decode() == text
    return is_writable and len(text) <= MOST_CHARACTERS and all((error.where, error.seen, error.allowed, error.do))


def link(damaged: Case) -> str:
    """Radiowave's linker, and its reader on what it linked."""
    radiowave.CodeObject.parse(radiowave.link(damaged.data))
    return "read"


def show(damaged: Case) -> str:
    """Radiowave's inspection, as text and as JSON."""
    found = inspect(damaged.data, disassembler=_disassembler())
    json.dumps(inspection_json(found))
    "\n".join(inspection_lines(found)).encode()
    return next((content.fault.code for content in found.contents if content.fault), "read")


@cache
def _disassembler() -> radiowave.Disassembler:
    """One for all cases of a process; it ends with it."""
    return radiowave.Disassembler()


def load(damaged: Case) -> str:
    """Redline's loading, and a launch of every kernel that was loaded."""
    for kernel in redline.load(damaged.data, damaged.target).kernels.values():
        _launch(kernel)
    return "read"


READERS: tuple[Callable[[Case], str], ...] = (link, show, load)


def _launch(kernel: redline.Kernel) -> None:
    """Record a launch and lower it: what metadata and descriptor say must fit together up to the encoded words."""
    graph = redline.Graph()
    x = graph.buffer("x", 1 << 20)
    values = [redline.update(x) if a.kind == "global_buffer" else bytes(a.size) for a in kernel.explicit_arguments]
    block = kernel.required_block or max(1, min(256, kernel.max_workgroup))
    with suppress(redline.RedlineError):  # the object was read; that its kernel is refused is an answer too
        graph.launch(kernel, grid=300, block=block, args=values)  # numbers that do not fit one byte
        graph.compile()


class _Part(NamedTuple):
    """What one process found."""

    answers: Counter[str]
    kinds: Counter[str]
    failures: list[dict[str, Any]]
    slowest: float
    grown_mib: float


def _run_part(seed: int, first: int, count: int) -> _Part:
    for target, data in corpus().linked:  # what imports and caches take is not the cases'
        judge(Case("", "", data, target))
    part, before, slowest = _Part(Counter(), Counter(), [], 0.0, 0.0), _peak_mib(), 0.0
    for index in range(first, first + count):
        damaged = case(seed, index)
        began = time.monotonic()
        answer, wrong = judge(damaged)
        slowest = max(slowest, time.monotonic() - began)
        part.answers[answer] += 1
        part.kinds[damaged.how.partition(",")[0]] += 1
        if wrong:
            part.failures.append({"case": index, "how": damaged.how, "what": wrong, "repeat": _repeat(seed, index)})
    return part._replace(slowest=slowest, grown_mib=_peak_mib() - before)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _repeat(seed: int, index: int) -> str:
    return f"python -m redline_fuzz.hostile_objects --seed {seed} --first {index} --count 1"


def run(count: int, seed: int = 1, *, first: int = 0, workers: int | None = None) -> dict[str, Any]:
    """`count` damaged files from number `first` on; the record says how each kind was answered."""
    began = time.monotonic()
    workers = workers or os.cpu_count() or 1
    size = -(-count // workers)
    chunks = [(seed, at, min(size, first + count - at)) for at in range(first, first + count, size)]
    failures: list[dict[str, Any]] = []
    parts: list[_Part] = []
    # Spawned, not forked: the parent may hold threads.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for chunk, future in [(chunk, pool.submit(_run_part, *chunk)) for chunk in chunks]:
            try:
                parts.append(future.result())
            except BrokenProcessPool as error:
                failures.append({"case": chunk[1], "how": f"one of {chunk[2]}", "what": f"a process died: {error}"})
    return _record(parts, failures, count, seed, time.monotonic() - began)


def _record(
    parts: list[_Part], failures: list[dict[str, Any]], count: int, seed: int, seconds: float
) -> dict[str, Any]:
    failures = failures + [failure for part in parts for failure in part.failures]
    grown = max((part.grown_mib for part in parts), default=0.0)
    if grown > MIB_OF_ALL_CASES:
        failures.append({"what": f"{grown:.0f} MiB more in use; allowed: {MIB_OF_ALL_CASES}"})
    return {
        "equal": not failures,
        "seed": seed,
        "cases": count,
        "answers": dict(sorted(sum((part.answers for part in parts), Counter()).items())),
        "mutations": dict(sorted(sum((part.kinds for part in parts), Counter()).items())),
        "failures": failures,
        "slowest_seconds": round(max((part.slowest for part in parts), default=0.0), 3),
        "grown_mib": round(grown, 1),
        "seconds": round(seconds, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 every file was answered, 1 one was not, 2 usage."""
    parser = argparse.ArgumentParser(prog="redline_fuzz.hostile_objects", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args(arguments)
    record = run(options.count, options.seed, first=options.first, workers=options.workers)
    print(json.dumps(record, indent=2))
    return 0 if record["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
