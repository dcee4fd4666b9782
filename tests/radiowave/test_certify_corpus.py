# SPDX-License-Identifier: Apache-2.0
"""Kernels that compilers make, each with the right verdict: every HIP compiler found, five targets, both waves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from radiowave import CodeObject, Disassembler, certify
from radiowave.hip import HipJob, compile_hip
from radiowave.hip_compilers import find_hip_compilers
from tests.radiowave import clang
from tests.radiowave.corpus_hip import KERNELS, source

pytestmark = pytest.mark.clang


@pytest.fixture(scope="module")
def disassembler() -> Iterator[Disassembler]:
    """One child for the file."""
    with Disassembler() as opened:
        yield opened


def verdict(scalar: tuple[int, ...] | None) -> str:
    """The word for what the corpus expects."""
    return "scalar_or_unknown" if scalar is None else "scalar_args" if scalar else "vmem_only"


@pytest.mark.parametrize("toolchain", [compiler.name for compiler in find_hip_compilers() if compiler.compiler])
@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", clang.DEMO_TARGETS)
def test_corpus(target: str, wave: int, toolchain: str, disassembler: Disassembler) -> None:
    """Neither wider nor narrower than it should be, for each kernel."""
    build = compile_hip(source(target), HipJob(target, wave), toolchain=toolchain)
    found = certify(CodeObject.read(build.data), disassembler)
    expected = {name: (verdict(scalar), scalar or ()) for name, (scalar, _) in KERNELS.items()}
    assert {name: (c.verdict, tuple(sorted(c.scalar_args))) for name, c in found.items()} == expected
