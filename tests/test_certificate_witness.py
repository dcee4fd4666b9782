# SPDX-License-Identifier: Apache-2.0
"""Every kernel that the tests have, run on the software device: what it reads stays inside its certificate.

The example kernels, the certifier's own corpus from LLVM IR, and (marked `clang`) the corpus that clang builds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from redline_fuzz.kernel_cases import random_case

import radiowave
import redline as rl
from radiowave import CodeObject, KernelCertificate, certify
from redline.kernels import DEMO_TARGETS, NAMES, build
from tests.radiowave import corpus_ir
from tests.witness import Address, Pointers, Run, Witnessed, violations, witness

PAIRS = [(target, wave) for target in DEMO_TARGETS for wave in (32, 64)]


def certified(data: bytes) -> dict[str, KernelCertificate]:
    """By kernel."""
    return certify(CodeObject.parse(data))


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_example_kernels(target: str, wave: int) -> None:
    """All of them with random shapes and data."""
    runs, certificates = [], []
    for name in NAMES:
        data = build(name, target, wave)
        case = random_case(name, 7)
        arguments = [value.view(np.uint8) if isinstance(value, np.ndarray) else value for value in case.arguments]
        size, block = case.geometry
        runs.append(Run(rl.load(data)[name], arguments, size, block))
        certificates.append(certified(data)[name])
    found = witness(target, runs)
    told = [line for one, seen in zip(certificates, found, strict=True) for line in violations(one, seen)]
    assert told == []
    assert sum(len(seen.seen.places) for seen in found) > 60, "each kernel loads its arguments, reads and writes"


@cache
def corpus(target: str, wave: int) -> bytes:
    """The certifier's corpus."""
    return radiowave.compile_ir(corpus_ir.source(), target=target, wave=wave)


#: What a parameter holds, by its name: data from which every index stays inside, and a number for n.
BYTES = 4096
SPECIAL: dict[str, dict[str, Any]] = {
    "row_pointer": {"x": lambda y: Pointers(y, BYTES)},
    "first_lane": {"x": lambda y: Pointers(y, BYTES)},
    "number_as_pointer": {"x": Address},
}


def run_of(name: str, kernel: rl.Kernel) -> Run:
    """A launch of two workgroups of 64."""
    names = [part.split("%")[-1] for part in corpus_ir.KERNELS[name][1].split(",")]
    made = SPECIAL.get(name, {})
    values = [made[at](names.index("y")) if at in made else _argument(at, kernel, k) for k, at in enumerate(names)]
    starts = tuple((k, 1024) for k, at in enumerate(names) if at == "x" and name == "negative_index")
    return Run(kernel, values, (128, 1, 1), (64, 1, 1), starts)


def _argument(name: str, kernel: rl.Kernel, number: int) -> Any:
    if name in "xyz":
        return np.arange(BYTES // 4, dtype=np.uint32) % np.uint32(50)
    return np.array([5], np.uint64 if kernel.explicit_arguments[number].size == 8 else np.uint32)[0]


def corpus_runs(target: str, wave: int) -> dict[str, Witnessed]:
    """The whole corpus on one device."""
    module = rl.load(corpus(target, wave))
    names = [name for name in corpus_ir.KERNELS if name != "packet"]  # Redline launches none that asks for its packet
    return dict(zip(names, witness(target, [run_of(name, module[name]) for name in names]), strict=True))


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_corpus_of_the_certifier(target: str, wave: int) -> None:
    """Scalar loads, tables, calls, variables, packets, pointers in memory and in values."""
    certificates = certified(corpus(target, wave))
    found = corpus_runs(target, wave)
    assert [line for name, seen in found.items() for line in violations(certificates[name], seen)] == []
    scalar = {name for name, (offsets, _, _) in corpus_ir.KERNELS.items() if offsets}
    seen_scalar = {name for name, seen in found.items() if _scalar_beside_kernarg(seen)}
    assert scalar <= seen_scalar, "a kernel whose certificate lists scalar arguments was seen to use them"


def _scalar_beside_kernarg(seen: Witnessed) -> bool:
    low, high = seen.kernarg
    return any(
        key.scalar and bool(((places.starts < low) | (places.starts >= high)).any())
        for key, places in seen.seen.places.items()
    )


def test_a_certificate_that_promises_more_is_found_out() -> None:
    """Each promise, broken by hand: the witness has seen otherwise."""
    target, wave = "gfx1201", 32
    honest, seen = certified(corpus(target, wave)), corpus_runs(target, wave)

    def told(name: str, **changes: Any) -> str:
        return "\n".join(violations(replace(honest[name], **changes), seen[name]))

    assert "of a vmem_only kernel" in told("uniform", verdict="vmem_only")
    assert "certified [8]" in told("uniform", scalar_args=frozenset({8}))
    assert "read at L2" in told("copy", l2_args=frozenset({0}))
    assert "not certified as undeclared" in told("variable", undeclared=False)
    assert "certified as loaded" in told("row_pointer", undeclared=False)
    assert "not among ()" in told("variable", variables=())
    sites = honest["copy"].sites
    assert "is no site" in told("copy", sites=sites[:-1])
    moved = tuple(replace(site, arguments=(24,)) for site in sites)
    assert "certified as (24,)" in told("copy", sites=moved)
    quiet = tuple(replace(site, writes=False) for site in sites)
    assert "certified as Site(" in told("copy", sites=quiet)


@pytest.mark.clang
@pytest.mark.parametrize("language", ["hip", "ir"])
@pytest.mark.parametrize(("target", "wave"), [("gfx1010", 64), ("gfx1030", 32), ("gfx1100", 64), ("gfx1201", 32)])
def test_kernels_that_clang_builds(target: str, wave: int, language: Any) -> None:
    """The corpus of the software device."""
    from tests.sim.clang_corpus.build import Build, compiled
    from tests.sim.clang_corpus.runs import GROUP, SIZE, kernels_of

    data = compiled(Build(language, 22, target, wave, 2))
    module, certificates = rl.load(data), certified(data)
    runs = []
    for kernel in kernels_of(language):
        out = np.zeros(kernel.expected(1, wave).nbytes, np.uint8)
        inputs = [value.view(np.uint8) if isinstance(value, np.ndarray) else value for value in kernel.data(1)]
        runs.append(Run(module[kernel.name], [out, *inputs], SIZE, GROUP))
    found = witness(target, runs)
    pairs = zip(kernels_of(language), found, strict=True)
    assert [line for kernel, seen in pairs for line in violations(certificates[kernel.name], seen)] == []
