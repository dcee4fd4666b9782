# SPDX-License-Identifier: Apache-2.0
"""Run many random programs on host and device and report where they differ.

Work is cut into batches of programs that share input data and one module per target and wave size, so that
starting a compiler is paid once a batch; batches run in worker processes. Whatever is found is a value in the
record: a wrong result, a fault of the device, or both, each with the command that repeats it. `ir_bisect`
then looks for the cause.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import radiowave
from redline.sim.errors import DeviceFault
from redline_fuzz.bare_device import BareDevice
from redline_fuzz.ir_compare import Bytes, differences
from redline_fuzz.ir_host import Host
from redline_fuzz.ir_host_child import FILL
from redline_fuzz.ir_inputs import LANES, Bits, make
from redline_fuzz.ir_modules import BLOCK, kernel_module
from redline_fuzz.ir_programs import Program, generate

TARGETS = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
WAVES = (32, 64)
PAIRS = tuple((target, wave) for target in TARGETS for wave in WAVES)
# More items than lanes: the bounds check has lanes to keep out, and the last workgroup is a partial one.
ITEMS = LANES + 7
BATCH = 16  # programs that share input data; part of what a seed means

Pair = tuple[str, int]
Progress = Callable[[int, int], None]
# (kernel name, output slots, input data) -> output bytes of shape (records, 8 * slots)
Runner = Callable[[str, int, Bits], Bytes]


@dataclass(frozen=True)
class Finding:
    """One program that one pair got wrong."""

    seed: int
    index: int
    target: str
    wave: int
    what: str

    @property
    def command(self) -> str:
        """Repeats this finding, bisected."""
        where = f"--target {self.target} --wave {self.wave}"
        return f"redline-fuzz ir --seed {self.seed} --first {self.index} --count 1 {where}"

    def __str__(self) -> str:
        return f"program {self.index} on {self.target} wave{self.wave}: {self.what}\n  repeat: {self.command}"


@dataclass
class BatchResult:
    """What one batch found; `operations` counts the steps of its programs by name."""

    programs: int
    findings: list[Finding] = field(default_factory=list)
    operations: Counter[str] = field(default_factory=Counter)


def data_for(seed: int, index: int) -> Bits:
    """The input data that this program reads, in whatever run."""
    return make(seed, index // BATCH)


def run(
    count: int,
    seed: int = 1,
    targets: Sequence[str] = TARGETS,
    progress: Progress | None = None,
    *,
    first: int = 0,
    waves: Sequence[int] = WAVES,
    workers: int | None = None,
) -> dict[str, Any]:
    """Compare `count` programs from `first` on, for every target and wave size; the record is JSON-ready."""
    started = time.monotonic()
    pairs = tuple((target, wave) for target in targets for wave in waves)
    results: list[BatchResult] = []
    done = 0
    for result in _batch_results(list(_batches(seed, first, count)), seed, pairs, workers or os.cpu_count() or 1):
        results.append(result)
        done += result.programs
        if progress is not None:
            progress(done, count)
    return _record(seed, first, count, pairs, results, time.monotonic() - started)


def _batches(seed: int, first: int, count: int) -> Iterator[range]:
    """Indexes cut where the input data changes."""
    at = first
    while at < first + count:
        stop = min((at // BATCH + 1) * BATCH, first + count)
        yield range(at, stop)
        at = stop


def _batch_results(batches: list[range], seed: int, pairs: Sequence[Pair], workers: int) -> Iterator[BatchResult]:
    if workers == 1 or len(batches) == 1:
        with Sides(pairs) as sides:
            for indexes in batches:
                yield sides.compare(seed, indexes)
        return
    # Spawned, not forked: the parent may hold threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(batches)), context, _start_worker, (pairs,)) as pool:
        yield from pool.map(_work, [seed] * len(batches), batches)


_sides: Sides | None = None


def _start_worker(pairs: Sequence[Pair]) -> None:
    global _sides
    _sides = Sides(pairs)


def _work(seed: int, indexes: range) -> BatchResult:
    assert _sides is not None
    return _sides.compare(seed, indexes)


class Sides:
    """The host and the device side of a comparison; use it in a `with` block.

    Host process and disassembler stay; each code object gets a fresh device, whose caches end with it.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = tuple(pairs)
        self._stack = ExitStack()
        self.host = self._stack.enter_context(Host())
        self.disassembler = self._stack.enter_context(radiowave.Disassembler())

    def compare(self, seed: int, indexes: range) -> BatchResult:
        """Run these programs, which share input data, on the host and on every pair."""
        programs = [generate(seed, index) for index in indexes]
        wanted = [(program, program.leaves) for program in programs]
        inputs = data_for(seed, indexes[0])
        expected = self.host.run(wanted, inputs)
        result = BatchResult(len(programs))
        for program in programs:
            result.operations.update(step.operation for _, step in program.steps)
        for pair, code in zip(self._pairs, self._compile(wanted, seed), strict=True):
            with self.device(pair[0], code) as runner:
                for program, host in zip(programs, expected, strict=True):
                    result.findings += findings(program, pair, runner, inputs, host)
        return result

    def _compile(self, wanted: list[tuple[Program, tuple[int, ...]]], seed: int) -> list[bytes]:
        label = f"random IR of seed {seed}"
        return radiowave.compile_many(
            [radiowave.CompileJob(kernel_module(wanted, *pair), *pair, label=label) for pair in self._pairs]
        )

    @contextmanager
    def device(self, target: str, code: bytes) -> Iterator[Runner]:
        """A function that runs one of the code's kernels; a fault of the device is raised."""
        with BareDevice(target, disassembler=self.disassembler) as device:
            loaded = device.load(code)

            def run_kernel(name: str, slots: int, inputs: Bits) -> Bytes:
                output = np.full(len(inputs) * slots * 8, FILL, np.uint8)
                arguments = (inputs.astype("<u8").ravel(), output, np.uint32(LANES))
                device.run(loaded, name, arguments, (ITEMS, 1, 1), (BLOCK, 1, 1))
                return output.reshape(len(inputs), slots * 8)

            yield run_kernel

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Sides:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def findings(program: Program, pair: Pair, runner: Runner, inputs: Bits, host: Bytes) -> list[Finding]:
    """None, or one: the fault, or the first output that differs."""
    try:
        device = runner(program.name, len(program.leaves), inputs)
    except (DeviceFault, ValueError) as fault:  # ValueError: a kernel that needs what the bare device has not
        return [Finding(program.seed, program.index, *pair, f"{type(fault).__name__}: {fault}")]
    found = differences(program, program.leaves, host, device)
    if not found:
        return []
    first = found[0]
    what = f"%v{first.value} in lane {first.lane}: host {first.host:#018x}, device {first.device:#018x}"
    return [Finding(program.seed, program.index, *pair, what)]


def _record(
    seed: int, first: int, count: int, pairs: Sequence[Pair], results: list[BatchResult], seconds: float
) -> dict[str, Any]:
    findings = [finding for result in results for finding in result.findings]
    operations: Counter[str] = Counter()
    for result in results:
        operations.update(result.operations)
    wrong = Counter((finding.target, finding.wave) for finding in findings)
    return {
        "schema": 1,
        "proof": "random LLVM IR, host against device",
        "seed": seed,
        "first": first,
        "programs": count,
        "pairs": {f"{t} wave{w}": {"programs": count, "equal": count - wrong[t, w]} for t, w in pairs},
        "equal": not findings,
        "findings": [
            {"program": f.index, "target": f.target, "wave": f.wave, "what": f.what, "repeat": f.command}
            for f in findings
        ],
        "operations": dict(sorted(operations.items())),
        "seconds": round(seconds, 1),
    }
