# SPDX-License-Identifier: Apache-2.0
"""HIP sources from text to results: compiled by each toolchain, inspected, certified, verified, run on five targets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import radiowave
import redline as rl
from radiowave.hip import HipJob, compile_hip_file
from radiowave.hip_compilers import find_hip_compilers
from tests.radiowave.clang import DEMO_TARGETS
from tests.radiowave.hip_cases import CASES, FOLDER, wrong

pytestmark = pytest.mark.clang

TOOLCHAINS = [compiler.name for compiler in find_hip_compilers() if compiler.compiler]


@pytest.fixture(scope="module", params=DEMO_TARGETS)
def device(request: pytest.FixtureRequest) -> Iterator[rl.Device]:
    """Each target."""
    with rl.open(f"sim:{request.param}") as opened:
        yield opened


@pytest.fixture(scope="module")
def disassembler() -> Iterator[radiowave.Disassembler]:
    """One for all."""
    with radiowave.Disassembler() as opened:
        yield opened


def test_every_source_has_a_case() -> None:
    """And both clangs of Debian are there to compile it."""
    assert sorted(path.stem for path in FOLDER.glob("*.hip")) == sorted(CASES)
    assert {"clang-19", "clang-22"} <= set(TOOLCHAINS)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, toolchain: str, device: rl.Device, disassembler: radiowave.Disassembler) -> None:
    """The manifest verifies, the certificate is as narrow as the source makes it, the result is numpy's."""
    wave = 64 if toolchain == "clang-19" else 32  # the proof `hip_kernels` has all of them
    case = CASES[name]()
    build = compile_hip_file(FOLDER / f"{name}.hip", HipJob(device.target, wave), toolchain=toolchain)
    manifest = radiowave.make_manifest(build.data, build=build.record.as_json(), disassembler=disassembler)
    verified = radiowave.verify(manifest, build.data, disassembler)
    assert (verified.notes, verified.is_recertified) == ((), True)
    certificate = verified.certificates[name]
    assert (certificate.verdict, certificate.scalar_args) == ("vmem_only", case.scalar)
    assert not certificate.undeclared
    assert (kernel := rl.load(build.data, manifest=manifest)[name]).wave == wave
    assert wrong(kernel, case, device) == []
