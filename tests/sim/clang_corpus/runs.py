# SPDX-License-Identifier: Apache-2.0
"""Runs the corpus on the software device and compares every output with its oracle.

`examine` does one build; `run` is the long form that `make prove` records. A kernel that needs scratch is not run: it
is counted as refused, with its reason.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from redline_fuzz.bare_device import BareDevice, Loaded
from redline_fuzz.kernel_runs import same_bits

from radiowave import Disassembler
from redline.sim.errors import DeviceFault
from redline.sim.scheduler import Policy
from tests.radiowave.clang import DEMO_TARGETS, VERSIONS
from tests.sim.clang_corpus import control, conversions, floating, integer, ir, lanes, memory, packed
from tests.sim.clang_corpus.build import Build, compiled
from tests.sim.clang_corpus.registry import BLOCK, ITEMS, KERNELS, Array, Kernel

ORACLES = (control, conversions, floating, integer, ir, lanes, memory, packed)  # importing them fills KERNELS
FLAT_SCRATCH_INIT = 1 << 5  # kernel_code_properties: LLVM 19 sets it on gfx1010 for a kernel that calls
SIZE, GROUP = (ITEMS, 1, 1), (BLOCK, 1, 1)
PAIRS = tuple(itertools.product(DEMO_TARGETS, (32, 64)))
# language, clang, target, wave size, optimisation level
BUILDS = tuple(itertools.starmap(Build, itertools.product(("hip", "ir"), VERSIONS, DEMO_TARGETS, (32, 64), range(4))))


@dataclass
class Findings:
    """What one or more builds showed."""

    equal: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.equal += other.equal
        self.refused += other.refused
        self.wrong += other.wrong


def kernels_of(language: str) -> list[Kernel]:
    return [kernel for kernel in KERNELS.values() if (kernel.source == "ir") == (language == "ir")]


def output_of(device: BareDevice, loaded: Loaded, kernel: Kernel, seed: int, policy: Policy | None = None) -> Array:
    """The kernel's output as the device leaves it."""
    inputs = kernel.data(seed)
    shape = kernel.expected(seed, loaded.kernels[kernel.name].wave)
    out = np.full(shape.nbytes, kernel.fill, np.uint8).view(shape.dtype)
    arguments = (out, *(value.copy() if isinstance(value, np.ndarray) else value for value in inputs))
    device.run(loaded, kernel.name, arguments, SIZE, GROUP, policy)
    return out


def difference(kernel: Kernel, got: Array, seed: int, wave: int) -> str:
    """The first element that is not the oracle's, in words; empty when all are."""
    want = kernel.expected(seed, wave)
    same = same_bits(want, got)
    if kernel.tolerance:
        same |= np.isclose(want, got, rtol=kernel.tolerance, atol=kernel.tolerance)
    if same.all():
        return ""
    at = int(np.argmin(same))
    planes = sorted(set((np.flatnonzero(~same) // ITEMS).tolist()))
    return f"[{at}] {got[at]!r}, the oracle has {want[at]!r}; {int((~same).sum())} differ, in planes {planes}"


def refusal(loaded: Loaded, kernel: Kernel) -> str:
    """Why the device does not run this kernel; empty when it does."""
    facts = loaded.kernels[kernel.name]
    if facts.uses_dynamic_stack:
        return "dynamic stack"
    if facts.descriptor.private_bytes:
        return "scratch"
    return "flat scratch init" if facts.descriptor.properties & FLAT_SCRATCH_INIT else ""


def examine(
    build: Build, *, seed: int = 1, only: Sequence[str] = (), disassembler: Disassembler | None = None
) -> Findings:
    """Compile one build and judge its kernels."""
    found = Findings()
    with BareDevice(build.target, disassembler=disassembler) as device:
        loaded = device.load(compiled(build))
        for kernel in kernels_of(build.language):
            if only and kernel.name not in only:
                continue
            if reason := refusal(loaded, kernel):
                found.refused[reason] += 1
                continue
            try:
                wrong = difference(kernel, output_of(device, loaded, kernel, seed), seed, build.wave)
            except (DeviceFault, ValueError) as fault:
                wrong = str(fault)
            found.equal += not wrong
            found.wrong += [f"{build} {kernel.name}: {wrong}"] if wrong else []
    return found


POLICIES = {
    "one wave at a time": Policy(batch=1),
    "shuffled": Policy(seed=11),
    "shuffled, one wave at a time": Policy(batch=1, seed=12),
}


def order_shows(build: Build, policy: Policy, *, seed: int = 3, disassembler: Disassembler | None = None) -> list[str]:
    """The kernels whose output has other bytes under this policy than with all waves together."""
    shows = []
    with BareDevice(build.target, disassembler=disassembler) as device:
        loaded = device.load(compiled(build))
        for kernel in kernels_of(build.language):
            if not refusal(loaded, kernel):
                together = output_of(device, loaded, kernel, seed)
                apart = output_of(device, loaded, kernel, seed, policy)
                shows += [kernel.name] if together.tobytes() != apart.tobytes() else []
    return shows


def run(progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Every build of every kernel; the record is JSON-ready."""
    began, total = time.monotonic(), Findings()
    levels: dict[str, Counter[str]] = {}
    with Disassembler() as disassembler:
        for done, build in enumerate(BUILDS, 1):
            found = examine(build, disassembler=disassembler)
            total.add(found)
            level = levels.setdefault(f"{build.language} -O{build.level}", Counter())
            level.update(equal=found.equal, refused=found.refused.total(), wrong=len(found.wrong))
            if progress is not None:
                progress(done, len(BUILDS))
        shows = [
            f"{target} wave{wave} {name}: {kernel}"
            for target, wave in PAIRS
            for name, policy in POLICIES.items()
            for kernel in order_shows(Build("hip", 22, target, wave, 2), policy, disassembler=disassembler)
        ]
    return {
        "kernels": len(KERNELS),
        "builds": len(BUILDS),
        "cases": total.equal + len(total.wrong),
        "equal": total.equal,
        "refused": dict(total.refused),
        "levels": {name: dict(counts) for name, counts in levels.items()},
        "orders": f"{len(POLICIES)} orders of waves on {len(PAIRS)} pairs",
        "failures": total.wrong + shows,
        "seconds": round(time.monotonic() - began, 1),
    }
