# SPDX-License-Identifier: Apache-2.0
"""Check fences against the definition of safe, pair by pair. Shares no code with `derive` but the data types.

Quadratic on purpose: it is the text of the rule, to be read and believed. For launches a before b in emitted order: if
they conflict, or b is recorded after a, then a is also recorded before b and a drain lies between them; and for each
class through which b reads a byte that a wrote, an acquire of that class lies behind the first drain after a and before
b. The host is a launch before the entry that writes every in and inout buffer, and one behind the exit that reads every
out and inout buffer: the first needs the entry's system acquire, the second the exit's drain and system release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .launch import Launch, Touch

if TYPE_CHECKING:
    from .fences import Fences
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class Finding:
    """What the fences do not protect: "wrong order", "not ordered" or "ordered but not visible".

    `first` and `second` are recorded indices; "host" stands for whoever touches memory between replays.
    """

    kind: str
    first: int | str
    second: int | str
    what: str

    def __str__(self) -> str:
        first, second = (name if isinstance(name, str) else f"#{name}" for name in (self.first, self.second))
        return f"{self.kind}: {first} -> {second}: {self.what}"


@dataclass(frozen=True, slots=True)
class _Need:
    """Why a pair needs a wait, and the classes that it must also see through."""

    what: str
    classes: tuple[str, ...]


def verify(plan: Plan, fences: Fences) -> tuple[Finding, ...]:
    """Everything that is not safe; empty when order and fences are sufficient."""
    drains = sorted(fence.at for fence in fences.inner)
    acquires = {(fence.at, name) for fence in fences.inner for name in fence.acquire}
    found: list[Finding] = list(_host(plan, fences))
    for late, b_index in enumerate(plan.order):
        for early in range(late):
            a, b = plan.launches[plan.order[early]], plan.launches[b_index]
            between = [at for at in drains if early < at <= late]
            for need in _conflicts(plan, a, b):
                found += _check(a, b, need, between, acquires)
    return tuple(found)


def _check(a: Launch, b: Launch, need: _Need, between: list[int], acquires: set[tuple[int, str]]) -> Iterator[Finding]:
    if a.index > b.index:
        yield Finding("wrong order", b.index, a.index, need.what)
    elif not between:
        yield Finding("not ordered", a.index, b.index, need.what)
    else:
        for name in need.classes:
            if not any((at, name) in acquires for at in between):
                yield Finding("ordered but not visible", a.index, b.index, f"{need.what} through {name}")


def _conflicts(plan: Plan, a: Launch, b: Launch) -> Iterator[_Need]:
    if a.index in b.after or b.index in a.after:
        yield _Need("after=", ())
    for x in a.touches:
        for y in b.touches:
            shared = _overlap(plan, x, y)
            if shared is not None and (x.writes or y.writes):
                kind = "WAW" if x.writes and y.writes else "RAW" if x.writes else "WAR"
                yield _Need(f"{kind} on {shared}", _read_through(b, y) if kind == "RAW" else ())


def _read_through(launch: Launch, touch: Touch) -> tuple[str, ...]:
    """K and V, unless the kernel's certificate says that it reads this argument with vector loads only."""
    certified = launch.kernel.certificate
    if certified is not None and touch.argument is not None:
        if certified.reads == "vmem_only":
            return ("V",)
        if certified.reads == "scalar_args" and touch.argument not in certified.scalar_args:
            return ("V",)
    return ("K", "V")


def _overlap(plan: Plan, x: Touch, y: Touch) -> str | None:
    bx, by = plan.buffers[x.buffer], plan.buffers[y.buffer]
    if bx.root != by.root:
        return None
    low = max(bx.root_offset + x.start, by.root_offset + y.start)
    high = min(bx.root_offset + x.stop, by.root_offset + y.stop)
    return f"{plan.buffers[bx.root].name}[{low}:{high}]" if low < high else None


def _host(plan: Plan, fences: Fences) -> Iterator[Finding]:
    """Both ends, byte-exact: an alias of an outside buffer is the host's memory too."""
    roles: dict[int, set[str]] = {}
    for buffer in plan.buffers:
        roles.setdefault(buffer.root, set()).add(buffer.role)
    for launch in plan.launches:
        for touch in launch.touches:
            root = plan.buffers[touch.buffer].root
            what = f"{plan.buffers[root].name} is touched by the host"
            if roles[root] & {"in", "inout"} and not touch.writes and fences.entry_rule != "cold-entry":
                yield Finding("ordered but not visible", "host", launch.index, what)
            if roles[root] & {"out", "inout"} and touch.writes and fences.exit_rule != "host-exit":
                yield Finding("not ordered", launch.index, "host", what)
