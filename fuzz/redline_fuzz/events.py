# SPDX-License-Identifier: Apache-2.0
"""What decoded words do, launch by launch, and what a plan's fences say that they should do: no more and no less.

`verify_words` asks whether words are safe. A drain too many or a class too many is safe, and is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import Command, decode
from redline.fences import Fences
from redline_fuzz.caches import GL2_INV, GL2_WB, GLK_INV, GLV_INV

_DRAIN, _SYSTEM = "drain", "acquire or release for the system"
_CLASSES = (("K", GLK_INV), ("V", GLV_INV), ("P", GL2_WB), ("GL2", GL2_INV))


def wanted(plan: rl.Plan, fences: Fences, *, warm: bool) -> list[str]:
    """The events of one replay from its cold or its warm start."""
    before = {fence.at: fence for fence in fences.inner}
    events = [] if warm or not fences.entry_rule else [_DRAIN, _SYSTEM]
    for at, index in enumerate(plan.order):
        fence = before.get(at) if at or warm else None
        if fence is not None:
            events += [_DRAIN] * fence.drain
            events += [_acquire(fence.acquire)] * bool(fence.acquire)
        indirect = plan.launches[index].indirect is not None
        events.append("DISPATCH_INDIRECT" if indirect else "DISPATCH_DIRECT")
    return [*events, _DRAIN, _SYSTEM] if fences.exit_rule else events


def found(program: rl.Program, fences: Fences, *, warm: bool) -> list[str]:
    """The same as the decoder reads the words; what a start passes over is inside a NOP."""
    start = int(program.ibs[0]["warm" if warm else "cold"])
    events = list(_events(decode(program.words[start:].tolist(), family_for(program.target))))
    if not warm and fences.entry_rule and len(events) > 1:
        events[1] = _system(events[1])
    if fences.exit_rule and events:
        events[-1] = _system(events[-1])
    return events


def _events(commands: Sequence[Command]) -> Iterator[str]:
    """gfx10 may drain by RELEASE_MEM and WAIT_REG_MEM; the wait counts."""
    for command in commands:
        if command.name in ("EVENT_WRITE", "WAIT_REG_MEM"):
            yield _DRAIN
        elif command.name == "ACQUIRE_MEM":
            yield _acquire(name for name, bit in _CLASSES if command.words[7] & bit)
        elif command.name.startswith("DISPATCH"):
            yield command.name


def _acquire(names: Iterator[str] | Sequence[str]) -> str:
    return f"acquire of {' '.join(names)}"


def _system(event: str) -> str:
    """Entry and exit have the family's words, which `verify_words` and the answer files ask about."""
    return _SYSTEM if event.startswith("acquire") else event
