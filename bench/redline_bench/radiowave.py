# SPDX-License-Identifier: Apache-2.0
"""Milliseconds a kernel for inspecting and certifying the package's own kernels, beside what neither can do without.

The limit of certifying is LLVM's disassembler, asked for the same bytes in the same process pair; the peer of
inspecting is pyelftools, which only opens the ELF tables.
"""

from __future__ import annotations

import io
from statistics import median
from typing import Any

from elftools.elf.elffile import ELFFile

from radiowave import CodeObject, Disassembler, certify
from redline.kernels import SPECS, build
from redline_bench.timing import measure

SCHEMA = 1
TARGETS = ("gfx1030", "gfx1100", "gfx1201")


def measurements(rounds: int, targets: tuple[str, ...] = TARGETS) -> dict[str, Any]:
    """One row a target: medians of `rounds` rounds over all kernels, in milliseconds a kernel, and the two ratios."""
    with Disassembler() as disassembler:
        return {"schema": SCHEMA, "rows": [_row(target, rounds, disassembler) for target in targets]}


def _row(target: str, rounds: int, disassembler: Disassembler) -> dict[str, Any]:
    objects = [build(name, target, 32) for name in SPECS]
    parsed = [CodeObject.parse(data) for data in objects]
    calls = {
        "inspect": lambda: [CodeObject.parse(data) for data in objects],
        "pyelftools": lambda: [_tables(data) for data in objects],
        "certify": lambda: [certify(found, disassembler) for found in parsed],
        "disassemble": lambda: [_decode(found, disassembler) for found in parsed],
    }
    kernels = sum(len(found.kernels) for found in parsed)
    times = {name: median(seconds) * 1e3 / kernels for name, seconds in measure(calls, rounds, repeat=2).items()}
    ratios = {
        "inspect_to_pyelftools": times["inspect"] / times["pyelftools"],
        "certify_to_disassemble": times["certify"] / times["disassemble"],
    }
    code = sum(kernel.code_bytes for found in parsed for kernel in found.kernels.values())
    return {"target": target, "kernels": kernels, "code_bytes": code, "ms_per_kernel": times, **ratios}


def _tables(data: bytes) -> int:
    elf = ELFFile(io.BytesIO(data))
    return sum(1 for section in elf.iter_sections()) + sum(1 for segment in elf.iter_segments())


def _decode(found: CodeObject, disassembler: Disassembler) -> int:
    return sum(
        len(disassembler.decode(found.code(kernel), kernel.entry_va, found.target, kernel.wave))
        for kernel in found.kernels.values()
    )


def table(found: dict[str, Any]) -> str:
    """For people."""
    lines = ["target   kernels  inspect ms  x pyelftools  certify ms  x disassembling alone"]
    for row in found["rows"]:
        times = row["ms_per_kernel"]
        lines.append(
            f"{row['target']:8} {row['kernels']:7}  {times['inspect']:10.3f}  {row['inspect_to_pyelftools']:12.2f}"
            f"  {times['certify']:10.3f}  {row['certify_to_disassemble']:21.2f}"
        )
    return "\n".join(lines)
