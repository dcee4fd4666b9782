# SPDX-License-Identifier: Apache-2.0
"""AQL lanes against the definition, launch by launch: slow, and shares nothing with the derivation but its result.

Packets of a lane start in order. A launch with the barrier bit starts behind the end of everything before it on its
lane; one that waits, behind the end of what it waits for. A launch sees what another wrote if an acquire of its own
lane, at it or before it, starts behind the other's end.
"""

from __future__ import annotations

from collections.abc import Iterator

import redline as rl
from redline.aql_lanes import AqlLanes
from redline.launch import Touch

Moment = tuple[str, int]


def unsafe(plan: rl.Plan, lanes: AqlLanes, *, own: bool = True) -> list[str]:
    """Everything that is not ordered or not visible. Unless `own`, acquires of other lanes count too, where they are
    certain to lie between: caches belong to the agent.
    """
    found = []
    behind = _behind(lanes)
    acquirers = {}
    acquires = [row.launch for lane in lanes for row in lane if row.acquire]
    for lane in lanes:
        for at, row in enumerate(lane):
            before = [other.launch for other in lane[: at + 1] if other.acquire]
            certain = [q for q in acquires if ("start", q) in behind["start", row.launch] or q == row.launch]
            acquirers[row.launch] = before if own else certain
    for second in plan.launches:
        for first in plan.launches[: second.index]:
            kinds = set(conflicts(plan, first.index, second.index))
            ended = ("end", first.index)
            if (kinds or first.index in second.after) and ended not in behind["start", second.index]:
                found.append(f"{first} -> {second}: not ordered")
            if "read" in kinds and not any(ended in behind["start", q] for q in acquirers[second.index]):
                found.append(f"{first} -> {second}: not visible")
    return found


def _behind(lanes: AqlLanes) -> dict[Moment, set[Moment]]:
    """For each moment the moments that have certainly passed by then."""
    before: dict[Moment, set[Moment]] = {}
    for lane in lanes:
        for at, row in enumerate(lane):
            start = before.setdefault(("start", row.launch), set())
            before["end", row.launch] = {("start", row.launch)}
            start |= {("end", first) for first in row.waits}
            start |= {("end", other.launch) for other in lane[:at]} if row.barrier else set()
            start |= {("start", lane[at - 1].launch)} if at else set()
    passed = {moment: set(firsts) for moment, firsts in before.items()}
    changed = True
    while changed:
        changed = False
        for known in passed.values():
            more = set().union(*(passed[moment] for moment in known)) - known if known else set()
            changed = changed or bool(more)
            known |= more
    return passed


def conflicts(plan: rl.Plan, first: int, second: int) -> Iterator[str]:
    """ "read" where the second reads through a cache what the first wrote, "touch" for any other conflict."""
    a, b = plan.launches[first], plan.launches[second]
    for one in a.touches:
        for other in b.touches:
            if _overlap(plan, one, other) and (one.writes or other.writes):
                cached = b.kernel.certificate is None or other.argument not in b.kernel.certificate.l2_args
                yield "read" if one.writes and not other.writes and cached else "touch"


def _overlap(plan: rl.Plan, one: Touch, other: Touch) -> bool:
    a, b = plan.buffers[one.buffer], plan.buffers[other.buffer]
    start, stop = one.start + a.root_offset, one.stop + a.root_offset
    return a.root == b.root and start < other.stop + b.root_offset and other.start + b.root_offset < stop
