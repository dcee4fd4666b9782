# SPDX-License-Identifier: Apache-2.0
"""A plan as text: the emitted order, every fence, and the reasons for each.

Prints what `plan.py` and `fences.py` decided; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .encoders import family_for
from .fences import RULES, Fence
from .hazards import Hazard

if TYPE_CHECKING:
    from .plan import Plan


def explain(plan: Plan) -> str:
    """One line per launch, drain, acquire and reason."""
    return "\n".join(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    fences = plan.fences
    yield (
        f"plan {plan.fingerprint[:16]} {plan.target} boundary={plan.boundary} schedule={plan.schedule}"
        f" fences={plan.fence_mode}: {len(plan.launches)} launches, {fences.drains} drains, {fences.acquires} acquires"
    )
    yield f"entry: drain, system acquire   rule {fences.entry_rule}: {RULES[fences.entry_rule]}"
    at_fence = {fence.at: fence for fence in fences.inner}
    between: dict[tuple[int, int], list[Hazard]] = {}
    for hazard in plan.hazards:
        between.setdefault((hazard.first, hazard.second), []).append(hazard)
    for at, index in enumerate(plan.order):
        if at in at_fence:
            yield from _fence_lines(plan, at_fence[at], between)
        launch = plan.launches[index]
        sizes = "x".join(map(str, launch.global_size))
        block = "x".join(map(str, launch.block))
        yield f"{launch}   level {plan.levels[index]}, {sizes} work-items in blocks of {block}"
    yield f"exit: drain, system release   rule {fences.exit_rule}: {RULES[fences.exit_rule]}"
    kept = ("ib-scope", *(["glm-convention"] if "GLM_INV" in family_for(plan.target).entry else []))
    for rule in kept:
        yield f"kept by rule {rule}: {RULES[rule]}"


def _fence_lines(plan: Plan, fence: Fence, between: Mapping[tuple[int, int], Sequence[Hazard]]) -> Iterator[str]:
    acquire = f", acquire {' '.join(fence.acquire)}" if fence.acquire else ""
    yield f"  drain{acquire}" + (f"   rule {fence.rule}: {RULES[fence.rule]}" if fence.rule else "")
    for first, second in fence.waits:
        for hazard in between.get((first, second), ()):
            yield f"    waits for     {_hazard(plan, hazard)}"
        if first in plan.launches[second].after:
            yield f"    waits for     {plan.launches[first]} -> {plan.launches[second]}: after="
    through: dict[Hazard, list[str]] = {}
    for name, hazard in fence.shows:
        through.setdefault(hazard, []).append(name)
    for hazard, names in through.items():
        yield f"    makes visible {_hazard(plan, hazard)} through {' '.join(names)}"


def _hazard(plan: Plan, hazard: Hazard) -> str:
    first, second = plan.launches[hazard.first], plan.launches[hazard.second]
    memory = plan.buffers[hazard.buffer].name
    return f"{first} -> {second}: {hazard.kind} on {memory}[{hazard.start}:{hazard.stop}]"
