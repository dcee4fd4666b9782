# SPDX-License-Identifier: Apache-2.0
"""Check fences against the definition of safe, pair by pair. Shares no code with `derive` but the data types.

Quadratic on purpose: it is the text of the rule, to be read and believed. For launches a before b in emitted order: if
they conflict, or b is recorded after a, a drain lies between them; and for each class through which b reads a byte that
a wrote, an acquire of that class lies behind the first drain after a and before b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .graph import Launch, Touch
from .hazards import read_classes

if TYPE_CHECKING:
    from .fences import Fences
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class Finding:
    """One pair of launches that the fences do not protect. `kind` is "not ordered" or "ordered but not visible"."""

    kind: str
    first: int
    second: int
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: #{self.first} -> #{self.second}: {self.what}"


def verify(plan: Plan, fences: Fences) -> tuple[Finding, ...]:
    """Every pair that is not safe; empty when the fences are sufficient."""
    drains = {fence.at for fence in fences.inner}
    acquires = {(fence.at, name) for fence in fences.inner for name in fence.acquire}
    found: list[Finding] = []
    for late, b_index in enumerate(plan.order):
        for early in range(late):
            a, b = plan.launches[plan.order[early]], plan.launches[b_index]
            between = sorted(at for at in drains if early < at <= late)
            needs = _conflicts(plan, a, b)
            found += _check_pair(a, b, between, needs, acquires)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Need:
    what: str
    classes: tuple[str, ...]


def _check_pair(
    a: Launch, b: Launch, between: list[int], needs: list[_Need], acquires: set[tuple[int, str]]
) -> list[Finding]:
    found: list[Finding] = []
    for need in needs:
        if not between:
            found.append(Finding("not ordered", a.index, b.index, need.what))
            continue
        for name in need.classes:
            if not any((at, name) in acquires for at in between):
                found.append(Finding("ordered but not visible", a.index, b.index, f"{need.what} through {name}"))
    return found


def _conflicts(plan: Plan, a: Launch, b: Launch) -> list[_Need]:
    needs = [_Need("after=", ())] if a.index in b.after else []
    for x in a.touches:
        for y in b.touches:
            shared = _overlap(plan, x, y)
            if shared is None or not (x.writes or y.writes):
                continue
            kind = "WAW" if x.writes and y.writes else "RAW" if x.writes else "WAR"
            classes = read_classes(b.kernel, y.argument) if kind == "RAW" else ()
            needs.append(_Need(f"{kind} on {shared}", classes))
    return needs


def _overlap(plan: Plan, x: Touch, y: Touch) -> str | None:
    bx, by = plan.buffers[x.buffer], plan.buffers[y.buffer]
    if bx.root != by.root:
        return None
    low = max(bx.root_offset + x.start, by.root_offset + y.start)
    high = min(bx.root_offset + x.stop, by.root_offset + y.stop)
    return f"{plan.buffers[bx.root].name}[{low}:{high}]" if low < high else None
