# SPDX-License-Identifier: Apache-2.0
"""Refuse kernels whose machine code no fence can order: images, scalar stores, stores that bypass L2.

Radiowave finds the instructions and says why; this file turns a finding into an error at the launch's line. It decodes
nothing itself. A kernel is looked at once, at its first launch; a synthetic kernel has no code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import UnsupportedKernel

if TYPE_CHECKING:
    from radiowave import RefusedInstruction

    from .kernel import Kernel, Module


def check_instructions(kernel: Kernel, where: str) -> None:
    """Raise UnsupportedKernel for a kernel with such instructions, and for one of which that cannot be told."""
    if kernel.module is None:
        return
    place = f"{where}, kernel {kernel.name!r} ({kernel.target})"
    found = _refused(kernel.module, kernel.symbol, place)
    if found:
        more = f", and {len(found) - 1} more such" if len(found) > 1 else ""
        raise UnsupportedKernel(
            "RL0408",
            where=place,
            seen=f"{found[0]}{more}: {found[0].why}",
            allowed="global, flat, buffer and LDS instructions, scalar loads; no image instructions, scalar stores or "
            "atomics, gfx10 stores or atomics with DLC",
            do=f"{found[0].do}; `radiowave inspect` lists every such instruction",
        )


def _refused(module: Module, symbol: str, place: str) -> tuple[RefusedInstruction, ...]:
    import radiowave

    try:
        return module.instruction_check.refused(symbol)
    except radiowave.ToolchainError as error:
        raise UnsupportedKernel(
            "RL0409",
            where=place,
            seen=f"words that look like an instruction that is refused, and no disassembly of them: {error.seen}",
            allowed="code that holds no image instruction, scalar store or atomic, gfx10 store or atomic with DLC",
            do=error.do,
        ) from error
