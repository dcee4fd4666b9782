# SPDX-License-Identifier: Apache-2.0
"""The oracle of explicit graphs: what is refused would really go wrong, and what is accepted does not.

A refused graph is run in an order that keeps every `after=` and still puts one launch before another that it conflicts
with, with every fence there is; the hostile machine must then end differently from the recorded order.
"""

from __future__ import annotations

from dataclasses import replace

import redline as rl
from redline.fences import full_fences
from redline_fuzz.cases import Case, working
from redline_fuzz.judging import Judged, conflicts
from redline_fuzz.reference import expect
from redline_fuzz.schedules import Schedule
from redline_fuzz.stage import Stage


def errors(judged: Judged) -> str:
    """An explicit graph is refused exactly when some order that keeps its `after=` goes wrong."""
    case = judged.case
    reachable = _reachable(case)
    unordered = [(a, b) for a, b in conflicts(case) if a not in reachable[b]]
    try:
        _ = judged.plan
    except rl.HazardError as error:
        if not unordered:
            return f"refused, but every conflict is ordered: {error}"
        judged.tally.tried["errors"] += 1
        order = _overtaking(case, *unordered[0], reachable)
        if _believed(judged, order):
            return f"verify believes an order that puts #{unordered[0][1]} before #{unordered[0][0]}"
        forced = _forced(judged, order) or _forced(Judged(replace(case, seed=case.seed + 1009), judged.tally), order)
        judged.tally.killed["errors"] += bool(forced)
        return "" if forced else f"#{unordered[0][1]} before #{unordered[0][0]} is refused, but nothing differs"
    if unordered:
        return f"accepted, but nothing orders #{unordered[0][0]} and #{unordered[0][1]}"
    return judged.difference(judged.fences, 0)


def _reachable(case: Case) -> list[set[int]]:
    """For each launch the launches that `after=` puts before it."""
    found: list[set[int]] = []
    for node in case.nodes:
        found.append(set(node.after).union(*(found[first] for first in node.after)))
    return found


def _overtaking(case: Case, first: int, second: int, reachable: list[set[int]]) -> tuple[int, ...]:
    """An order that keeps every `after=` and runs `second` before `first`."""
    early = [*sorted(reachable[second]), second]
    return (*early, *(index for index in range(len(case.nodes)) if index not in early))


def _believed(judged: Judged, order: tuple[int, ...]) -> bool:
    """Whether `verify` finds nothing wrong with this order; the machine then cannot be asked."""
    plan = replace(Judged(_free(judged.case), judged.tally).plan, order=order)
    return not any(finding.kind == "wrong order" for finding in rl.verify(plan, full_fences(plan)))


def _free(case: Case) -> Case:
    return replace(working(case), order="record", fences="minimal", between=())


def _forced(judged: Judged, order: tuple[int, ...]) -> str:
    """Run the launches in this order with every fence there is; what differs from the recorded order."""
    free = _free(judged.case)
    other = Judged(free, judged.tally)
    plan = replace(other.plan, order=order)
    other.__dict__["plan"] = plan
    other.__dict__["expected"] = expect(free, order)
    with Stage(free, plan, rl.lower(plan, full_fences(plan))) as stage:
        return other.compare(stage.run(Schedule("newest")))
