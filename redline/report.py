# SPDX-License-Identifier: Apache-2.0
"""Numbers of a plan: fences against their bound and against what others would emit, and the memory that a replay
takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .encoders.aql import HEADER
from .fences import CLASS_BITS, Fence, Fences, all_classes, full_fences
from .forms import lower

if TYPE_CHECKING:
    from .plan import Plan
    from .program import Program

SCHEMA: Final = 1
#: Types of packets that programs have: a vendor packet runs an indirect buffer.
_PACKETS: Final = {name: HEADER.by_name["TYPE"].names[name] for name in ("VENDOR", "KERNEL_DISPATCH", "BARRIER_AND")}


def stats(plan: Plan) -> dict[str, Any]:
    """Launches, drains, acquires, dwords and kernarg bytes of a plan.

    `drains` and `acquires` are of one replay, the warm entry's included; `entry` and `exit` count the drain and acquire
    or release of a cold start and of the release. `chain` is the longest chain of hazards: no order of one replay needs
    fewer drains. `full` and `per_dependent_launch` have the same figures for fences="full" and for a drain and acquire
    before every launch that must wait; these are of one queue, whatever the form. `submission` counts what a replay
    really publishes.
    """
    return {
        "schema": SCHEMA,
        "launches": len(plan.launches),
        "chain": max(plan.levels),
        **_figures(plan, plan.fences, plan.program),
        "kernarg_bytes": len(plan.program.kernarg),
        "submission": submission(plan.program),
        "full": _compared(plan, full_fences(plan)),
        "per_dependent_launch": _compared(plan, _per_dependent_launch(plan)),
    }


def submission(program: Program) -> dict[str, Any]:
    """What one replay publishes: queues and their recorded launches, packets by type, streams of words, signals."""
    types, counts = np.unique(program.packets["words"][:, 0] & 0xFF, return_counts=True)
    found = dict(zip(types.tolist(), counts.tolist(), strict=True))
    lanes: list[list[int]] = [[] for _ in range(program.lanes)]
    for packet, lane in enumerate(program.packets["lane"].tolist()):
        lanes[lane] += program.launches_of(packet)
    return {
        "form": program.form,
        "queues": program.lanes,
        "packets": {name: found.get(number, 0) for name, number in _PACKETS.items()},
        "streams": len(program.streams),
        "signals": program.signals,
        "launches_by_queue": lanes,
        "reason": program.reason,
    }


def _figures(plan: Plan, fences: Fences, program: Program) -> dict[str, Any]:
    return {
        "drains": fences.drains,
        "acquires": fences.acquires,
        "acquires_by_class": {name: int((fences.classes & bit > 0).sum()) for name, bit in CLASS_BITS.items()},
        "entry": {"drains": int(bool(fences.entry_rule)), "acquires": int(bool(fences.entry_rule))},
        "exit": {"drains": int(bool(fences.exit_rule)), "releases": int(bool(fences.exit_rule))},
        "dwords": len(program.words),
    }


def _compared(plan: Plan, fences: Fences) -> dict[str, Any]:
    """The figures of other fences, lowered with the options of the plan's own program."""
    options = plan.program.options
    return _figures(plan, fences, lower(plan, fences, gfx10_wait=options.gfx10_wait, elide=options.elide))


def _per_dependent_launch(plan: Plan) -> Fences:
    """What a recorder emits that fences each launch with a dependency, whatever was fenced since.

    The first launch depends on what happens between replays: other queues, or the host's patch.
    """
    first = int(plan.boundary == "host")
    dependent = set(np.flatnonzero(np.array(plan.levels)).tolist())
    dependent |= {hazard.second for hazard in plan.carried}
    if plan.boundary == "other-queue" or plan.slots:
        dependent.add(plan.order[0])
    classes = all_classes(plan)
    return Fences([Fence(at, classes) for at, index in enumerate(plan.order) if at >= first and index in dependent])


def memory(plan: Plan) -> dict[str, int]:
    """Bytes that one replay allocates, by what for, and their sum; and its signals.

    Scratch is 0: kernels that need it are refused.
    """
    program = plan.program
    parts = {
        "kernarg_bytes": max(len(program.kernarg), 64),
        "ib_bytes": 4 * len(program.words),
        "fence_word_bytes": 64 * program.fence_words,
        "stamp_bytes": 64 * program.stamps,
        "buffer_bytes": sum(b.nbytes for b in plan.buffers if b.role == "internal" and b.root == b.index),
        "scratch_bytes": 0,
    }
    return {**parts, "bytes": sum(parts.values()), "signals": program.signals}
