# SPDX-License-Identifier: Apache-2.0
"""Whether what is given is a plan, fences or a program; and whether a plan fits a device: its target, its grids.

Bindings are `bindings.py`'s.
"""

from __future__ import annotations

import reprlib
from importlib import import_module
from typing import TYPE_CHECKING

from .errors import BindingError, RecordError

if TYPE_CHECKING:
    from .device import Device
    from .plan import Plan


_HOMES = {"Plan": "plan", "Fences": "fences", "Program": "program"}
#: How to get what was asked for.
_MAKE = {
    "Plan": "compile the graph first",
    "Fences": "derive them from the plan, or make Fences([Fence(...), ...])",
    "Program": "lower the plan first",
}


def require(thing: object, kind: str, where: str) -> None:
    """Raise RecordError for a thing of another kind: a "Plan", "Fences" or a "Program"."""
    home = import_module(f".{_HOMES[kind]}", __package__)  # these import this file
    if not isinstance(thing, getattr(home, kind)):
        raise RecordError("RL0143", where=where, seen=reprlib.repr(thing), allowed=f"a {kind}", do=_MAKE[kind])


def check_plan(plan: object) -> None:
    """What `graph.compile()` returned, and nothing else."""
    from .plan import Plan

    if not isinstance(plan, Plan):
        raise BindingError(
            "RL0714",
            where="Device.instantiate",
            seen=f"{type(plan).__name__} {plan!r}",
            allowed="a Plan, as graph.compile() returns it",
            do="compile the graph first",
        )


def check_target(device: Device, plan: Plan) -> None:
    """The kernels are compiled for the device's GPU."""
    if plan.target != device.target:
        raise BindingError(
            "RL0704",
            where=f"instantiate on {device.name}",
            seen=f"a plan for {plan.target}",
            allowed=f"plans for {device.target}",
            do="compile the kernels for this device and record them again",
        )


def check_queues(device: Device, plan: Plan) -> None:
    """No program wants more queues than the agent has at a time."""
    wanted, most = plan.program.lanes, device.agent.max_queues
    if wanted > most:
        raise BindingError(
            "RL0717",
            where=f"instantiate on {device.name}",
            seen=f"a program of {wanted} queues",
            allowed=f"at most {most} there",
            do=f"compile with queues={most} or less, or with fewer lanes",
        )


def check_grid(device: Device, plan: Plan) -> None:
    """No launch is larger than the agent allows."""
    for launch in plan.launches:
        limits = device.agent.max_grid
        if any(size > limit for size, limit in zip(launch.global_size, limits, strict=True)):
            raise BindingError(
                "RL0705",
                where=f"{launch} ({launch.site})",
                seen=f"{launch.global_size} work-items",
                allowed=f"at most {limits} on {device.name}",
                do="split the launch or use a grid-stride loop",
            )
