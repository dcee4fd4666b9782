# SPDX-License-Identifier: Apache-2.0
"""Kernels from LLVM IR, each with the right verdict: llvmlite's backend here, clang's in `test_certify_corpus.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from radiowave import CodeObject, Disassembler, certify, compile_ir
from tests.radiowave.corpus_ir import KERNELS, source


@pytest.fixture(scope="module")
def disassembler() -> Iterator[Disassembler]:
    """One child for the file."""
    with Disassembler() as opened:
        yield opened


def words(scalar: tuple[int, ...] | None) -> tuple[str, tuple[int, ...]]:
    """Verdict and arguments that the corpus expects."""
    if scalar is None:
        return "scalar_or_unknown", ()
    return ("scalar_args", scalar) if scalar else ("vmem_only", ())


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
def test_corpus(target: str, wave: int, disassembler: Disassembler) -> None:
    """Neither wider nor narrower than it should be, for each kernel."""
    found = certify(CodeObject.parse(compile_ir(source(), target=target, wave=wave)), disassembler)
    expected = {name: words(scalar) for name, (scalar, _, _) in KERNELS.items()}
    assert {name: (c.verdict, tuple(sorted(c.scalar_args))) for name, c in found.items()} == expected
