# SPDX-License-Identifier: Apache-2.0
"""A plan in words: the emitted order, every fence with its reasons, and why any two launches are ordered or not.

Says what `plan.py`, `fences.py` and `reasons.py` found; decides nothing. Text for people, the same as a dict for
programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from .encoders import family_for
from .errors import RecordError
from .fences import RULES, Fence
from .hazards import Hazard
from .reasons import Reasons, reasons
from .report import submission

if TYPE_CHECKING:
    from .launch import Launch
    from .plan import Plan

SCHEMA: Final = 1

#: Reasons printed for one fence; the JSON has all of them.
SHOWN: Final = 3


def explain(plan: Plan, *, json: bool = False) -> str | dict[str, Any]:
    """One line per launch and per fence, each fence with its reasons; or the same as a dict with call sites."""
    return _plan_json(plan) if json else "\n".join(_lines(plan))


def explain_pair(plan: Plan, first: int | None, second: int | None, *, json: bool = False) -> str | dict[str, Any]:
    """Why two launches are ordered and visible to one another, or why they need not be."""
    early, late = sorted((_checked(plan, first), _checked(plan, second)))
    a, b = plan.launches[early], plan.launches[late]
    direct = [hazard for hazard in plan.hazards if (hazard.first, hazard.second) == (early, late)]
    carried = [h for h in plan.carried if {h.first, h.second} == {early, late}]
    chain = [] if direct or early == late or early in b.after else _chain(plan, early, late)
    if json:
        return {
            "schema": SCHEMA,
            "pair": [_launch_json(a), _launch_json(b)],
            "hazards": [_hazard_json(plan, hazard) for hazard in (*direct, *carried)],
            "after": early in b.after,
            "chain": chain,
        }
    return "\n".join(_pair_lines(plan, a, b, [*direct, *carried], chain))


def _checked(plan: Plan, index: int | None) -> int:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(plan.launches):
        raise RecordError(
            "RL0138",
            where="Plan.explain",
            seen=repr(index),
            allowed=f"two recorded indices in 0..{len(plan.launches) - 1}",
            do="give the index that the launch was recorded with",
        )
    return index


def _pair_lines(plan: Plan, a: Launch, b: Launch, found: Sequence[Hazard], chain: Sequence[int]) -> Iterator[str]:
    yield f"{a} ({a.site}) and {b} ({b.site})"
    if a.index in b.after:
        yield f"  ordered: {b} was recorded with after=[{a}]; after= makes nothing visible"
    for hazard in found:
        yield f"  ordered: {_because(plan, hazard)}"
        for name in hazard.reads:
            yield f"    visible: an acquire of {name} lies behind the drain and before the read"
        if not hazard.reads:
            yield (
                "    no acquire needed: only the order matters"
                if hazard.kind != "RAW"
                else "    read at L2: no acquire"
            )
    if chain:
        yield f"  ordered: by way of {' -> '.join(str(plan.launches[index]) for index in chain)}"
    elif not found and a.index not in b.after:
        yield "  not ordered: no byte that one of them writes is touched by the other, and no after= joins them"


def _chain(plan: Plan, first: int, second: int) -> list[int]:
    """Launches of a shortest chain of edges from one to the other, both included; empty when there is none."""
    before: dict[int, list[int]] = {}
    for a, b in plan.edges:
        before.setdefault(b, []).append(a)
    came, front = {second: second}, [second]
    while front and first not in came:
        reached = [(a, b) for b in front for a in before.get(b, ()) if a >= first and a not in came]
        came.update(reversed(reached))
        front = sorted({a for a, _ in reached})
    if first not in came:
        return []
    chain = [first]
    while chain[-1] != second:
        chain.append(came[chain[-1]])
    return chain


def _lines(plan: Plan) -> Iterator[str]:
    fences = plan.fences
    yield (
        f"plan {plan.fingerprint[:16]} {plan.target} boundary={plan.boundary} schedule={plan.schedule}"
        f" fences={plan.fence_mode}: {_count(len(plan.launches), 'launch', 'launches')},"
        f" {_count(fences.drains, 'drain')}, {_count(fences.acquires, 'acquire')}"
    )
    yield f"{'entry' if plan.boundary == 'host' else 'cold entry'}: drain, system acquire   {_rule(fences.entry_rule)}"
    yield from _submission_lines(plan)
    behind = {found.fence.at: found for found in reasons(plan)}
    for at, index in enumerate(plan.order):
        if at in behind:
            yield from _fence_lines(plan, behind[at])
        launch = plan.launches[index]
        yield f"{launch}   level {plan.levels[index]}, {_sizes(plan, launch)}"
    yield f"exit: drain, system release   {_rule(fences.exit_rule)}"
    kept = ("ib-scope", *(["glm-convention"] if "GLM_INV" in family_for(plan.target).entry else []))
    for rule in kept:
        yield f"kept by {_rule(rule)}"


def _submission_lines(plan: Plan) -> Iterator[str]:
    """Nothing for one stream on one queue: the fences below are all there is."""
    found = submission(plan.program)
    if found["form"] == "pm4":
        return
    packets = ", ".join(f"{count} {name}" for name, count in found["packets"].items() if count)
    yield f"submitted as {found['form']} on {_count(found['queues'], 'queue')}: packets {packets}"
    for queue, launches in enumerate(found["launches_by_queue"]):
        yield f"  queue {queue}: {' '.join(f'#{index}' for index in launches) or 'nothing of its own'}"
    yield "  each queue has fences of its own; those below are what the same order needs on one queue"


def _sizes(plan: Plan, launch: Launch) -> str:
    block = "x".join(map(str, launch.block))
    if launch.indirect is not None:
        counts = f"{plan.buffers[launch.indirect.buffer].name}[{launch.indirect.addend}:{launch.indirect.addend + 12}]"
        return f"as many blocks of {block} as {counts} says"
    return f"{'x'.join(map(str, launch.global_size))} work-items in blocks of {block}"


def _rule(name: str) -> str:
    return f"rule {name}: {RULES[name]}" if name else "left out"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _fence_lines(plan: Plan, found: Reasons) -> Iterator[str]:
    fence = found.fence
    entry = "warm entry: " if fence.at == 0 else ""
    before = plan.launches[plan.order[fence.at]]
    because = f"   {_rule(fence.rule)}" if fence.rule else ""
    yield f"  {entry}{_what(fence)} before {before}{because}"
    lines = [*_reason_lines(plan, found)]
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"    and {_count(len(lines) - SHOWN, 'more reason')}"


def _what(fence: Fence) -> str:
    acquire = f"acquire {' '.join(fence.acquire)}" if fence.acquire else ""
    return " + ".join(word for word in ("drain" if fence.drain else "", acquire) if word)


def _reason_lines(plan: Plan, found: Reasons) -> Iterator[str]:
    through: dict[Hazard, list[str]] = {}
    for name, hazards in found.shows.items():
        for hazard in hazards:
            through.setdefault(hazard, []).append(name)
    for hazard, names in through.items():
        missing = f"without the acquire it may read {_old(hazard)} through {' and '.join(names)}"
        yield f"    {_because(plan, hazard)}; {missing}"
    for hazard in found.waits:
        if hazard not in through:
            yield f"    {_because(plan, hazard)}; without the drain both run at once"
    for first, second in found.after:
        yield f"    {plan.launches[second]} was recorded with after=[{plan.launches[first]}]"


def _old(hazard: Hazard) -> str:
    return "the bytes of two replays before" if hazard.carried else "the bytes of the previous replay"


_VERBS: Final = {"RAW": ("reads", "written"), "WAR": ("writes", "read"), "WAW": ("writes", "written")}


def _because(plan: Plan, hazard: Hazard) -> str:
    """ "#7 rmsnorm reads x[0:4096] written by #3 matmul"."""
    now, before = _VERBS[hazard.kind]
    memory = plan.buffers[hazard.buffer].name
    again = " in the replay before" if hazard.carried else ""
    first, second = plan.launches[hazard.first], plan.launches[hazard.second]
    return f"{second} {now} {memory}[{hazard.start}:{hazard.stop}] {before} by {first}{again} ({hazard.kind})"


def _plan_json(plan: Plan) -> dict[str, Any]:
    fences = plan.fences
    return {
        "schema": SCHEMA,
        "fingerprint": plan.fingerprint,
        "target": plan.target,
        "boundary": plan.boundary,
        "schedule": plan.schedule,
        "fences_mode": plan.fence_mode,
        "order": [_launch_json(plan.launches[index]) for index in plan.order],
        "entry": {"rule": fences.entry_rule},
        "fences": [_fence_json(plan, found) for found in reasons(plan)],
        "exit": {"rule": fences.exit_rule},
        "submission": submission(plan.program),
    }


def _launch_json(launch: Launch) -> dict[str, Any]:
    return {"index": launch.index, "label": launch.label, "kernel": launch.kernel.name, "site": launch.site}


def _fence_json(plan: Plan, found: Reasons) -> dict[str, Any]:
    fence = found.fence
    return {
        "at": fence.at,
        "before": plan.order[fence.at],
        "drain": fence.drain,
        "acquire": list(fence.acquire),
        "rule": fence.rule,
        "waits": [_hazard_json(plan, hazard) for hazard in found.waits],
        "after": [list(pair) for pair in found.after],
        "shows": {name: [_hazard_json(plan, h) for h in hazards] for name, hazards in found.shows.items()},
    }


def _hazard_json(plan: Plan, hazard: Hazard) -> dict[str, Any]:
    return {
        "first": hazard.first,
        "second": hazard.second,
        "kind": hazard.kind,
        "buffer": plan.buffers[hazard.buffer].name,
        "start": hazard.start,
        "stop": hazard.stop,
        "reads": list(hazard.reads),
        "carried": hazard.carried,
        "sites": [plan.launches[hazard.first].site, plan.launches[hazard.second].site],
    }
