# SPDX-License-Identifier: Apache-2.0
"""A plan in two: for finding the launch that goes wrong by halving (a submission that hangs, bits that differ)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from .accesses import Accesses, AccessRows
from .errors import RecordError
from .forms import lower
from .plan import Plan, hazard_depths
from .ranges import Buffer, Role

if TYPE_CHECKING:
    from .launch import Launch

_ROLES: dict[Role, Role] = {"internal": "inout", "in": "in", "out": "inout", "inout": "inout"}


def split(plan: Plan, k: int) -> tuple[Plan, Plan]:
    """The first k launches in emitted order, and the rest: run one behind the other they do what the plan does.

    Both have boundary="host", keep the emitted order and are lowered with the same options. Launches are numbered
    anew; labels and call sites stay.
    """
    if not isinstance(k, int) or isinstance(k, bool) or not 0 < k < len(plan.order):
        raise RecordError(
            "RL0139",
            where="Plan.split",
            seen=repr(k),
            allowed=f"a number of launches in 1..{len(plan.order) - 1}",
            do="leave at least one launch on both sides",
        )
    parts = _part(plan, plan.order[:k]), _part(plan, plan.order[k:])
    for part, order in zip(parts, (plan.order[:k], plan.order[k:]), strict=True):
        options = asdict(plan.program.options)
        if not isinstance(options["queues"], int):  # a lane for each launch
            options["queues"] = tuple(options["queues"][index] for index in order)
        part.__dict__["program"] = lower(part, part.fences, **options)
    return parts


def _part(plan: Plan, order: tuple[int, ...]) -> Plan:
    number = {index: at for at, index in enumerate(order)}
    buffers = tuple(_outside(buffer) for buffer in plan.buffers)
    launches = tuple(_renumbered(plan.launches[index], number) for index in order)
    rows = AccessRows()
    for launch in launches:
        rows.add(launch, buffers)
    used = {use.slot for launch in launches for use in launch.slots}
    return replace(
        plan,
        order_mode="record",
        boundary="host",
        schedule="record",
        buffers=buffers,
        launches=launches,
        slots=tuple(slot for slot in plan.slots if slot.name in used),
        accesses=(accesses := Accesses.of(rows, buffers)),
        levels=tuple(hazard_depths(accesses).tolist()),
        order=tuple(range(len(order))),
    )


def _outside(buffer: Buffer) -> Buffer:
    return buffer if buffer.root != buffer.index else replace(buffer, role=_ROLES[buffer.role])


def _renumbered(launch: Launch, number: dict[int, int]) -> Launch:
    after = tuple(number[index] for index in launch.after if index in number)
    return replace(launch, index=number[launch.index], after=after)
