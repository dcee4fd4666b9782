# SPDX-License-Identifier: Apache-2.0
"""What a hand-written expectation states, and how kernels of the realistic graphs are made. Computes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redline as rl

#: Certified: every load of memory is a vector load, and the kernel's own arguments are read through K only.
VECTOR = rl.Certificate("vmem_only", kernarg_vector_loads=False)

#: Label of the launch that a fence stands before, and the classes it acquires ("", "K", "V" or "KV").
HandFence = tuple[str, str]


@dataclass(frozen=True)
class Expected:
    """Figures of one replay. `full`: boundaries of fences="full"; `dependent`: of one before each launch that has
    anything to wait for.
    """

    drains: int
    acquires: int
    k: int
    v: int
    full: int
    dependent: int


def uniform(*pointers: int) -> rl.Certificate:
    """Certified: these pointer arguments, counted from 0, also go through scalar loads, because every lane reads the
    same address; all others through vector loads only.
    """
    return rl.Certificate("scalar_args", frozenset(8 * index for index in pointers), kernarg_vector_loads=False)


def launch(
    graph: rl.Graph,
    label: str,
    accesses: list[rl.Access],
    certificate: rl.Certificate | None = VECTOR,
    slots: tuple[rl.Slot, ...] = (),
) -> rl.Launch:
    """Record a synthetic kernel of one pointer per access and one 4-byte scalar per slot."""
    name = label.rstrip("0123456789").rstrip()
    kernel = rl.Kernel.synthetic(name, pointers=len(accesses), scalars=(4,) * len(slots), certificate=certificate)
    args: list[Any] = [*accesses, *slots]
    return graph.launch(kernel, grid=64, block=256, args=args, label=label)
