# SPDX-License-Identifier: Apache-2.0
"""Kernels that compilers make, each with the right verdict: clang 19 and 22, five targets, both wave sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from radiowave import CodeObject, Disassembler, certify
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


@pytest.mark.parametrize("version", clang.VERSIONS)
@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", clang.DEMO_TARGETS)
def test_corpus(target: str, wave: int, version: int, disassembler: Disassembler, tmp_path: Path) -> None:
    """Neither wider nor narrower than it should be, for each kernel."""
    flags = ("-mwavefrontsize64",) if wave == 64 else ()
    device = ("--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={target}", *flags)
    path = clang.hip(tmp_path, version, *device, source=source(target), name="corpus")
    found = certify(CodeObject.read(path.read_bytes()), disassembler)
    expected = {name: (verdict(scalar), scalar or ()) for name, (scalar, _) in KERNELS.items()}
    assert {name: (c.verdict, tuple(sorted(c.scalar_args))) for name, c in found.items()} == expected
