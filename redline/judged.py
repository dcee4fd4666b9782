# SPDX-License-Identifier: Apache-2.0
"""Compares what a dispatch touched with what its launch declared, byte by byte.

A launch may read its own kernel arguments and what nothing can write of its code object; everything else must be
declared, for what was done with it. Runs nothing and writes no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from radiowave.elf import Elf
from radiowave.object_memory import ObjectMemory

from .audited import AccessSite, Action, Declared, LaunchAudit, Undeclared
from .byte_ranges import Ranges, count, inside, merged, touching, without
from .launch import INDIRECT
from .sim.gaps import GUARD_BYTES

if TYPE_CHECKING:
    from .launch import Launch, Touch
    from .observations import Key, Places, Seen
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of memory: what messages call it, the address that its offsets count from, and its buffer if any."""

    memory: str
    base: int
    root: int | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a plan lay while it ran, in addresses: its buffers by index, the kernarg arena, and all allocations.

    `allocations` are rows of start, stop and label.
    """

    plan: Plan
    addresses: Sequence[int]
    arena: tuple[int, int]
    allocations: Sequence[tuple[int, int, str]]

    def region(self, index: int) -> tuple[int, int]:
        """Start and stop of a buffer."""
        return self.addresses[index], self.addresses[index] + self.plan.buffers[index].nbytes

    @property
    def roots(self) -> list[int]:
        """Buffers that are no alias of another, by address."""
        own = [buffer.index for buffer in self.plan.buffers if buffer.root == buffer.index]
        return sorted(own, key=lambda index: self.addresses[index])


def judge(around: Surroundings, launch: Launch, seen: Seen | None, kernarg: tuple[int, int]) -> LaunchAudit:
    """One launch. `kernarg` is where its own arguments lay; None for `seen`: it did not run."""
    found = list(_Judge(around, launch, seen, kernarg).undeclared()) if seen is not None else []
    done: dict[bool, Ranges] = {}
    if seen is not None:
        done = {writes: seen.ranges(writes=writes) for writes in (False, True)}
    rows = [_declared(around, touch, done) for touch in launch.touches if touch.argument != INDIRECT]
    return LaunchAudit(
        launch=launch.index,
        label=launch.label,
        kernel=launch.kernel.name,
        site=launch.site,
        ran=seen is not None,
        undeclared=tuple(found),
        declared=tuple(rows),
    )


def _declared(around: Surroundings, touch: Touch, done: dict[bool, Ranges]) -> Declared:
    base = around.addresses[touch.buffer]
    used = inside(done[touch.writes], base + touch.start, base + touch.stop) if done else merged([])
    return Declared(
        action="write" if touch.writes else "read",
        buffer=around.plan.buffers[touch.buffer].name,
        start=touch.start,
        stop=touch.stop,
        argument=touch.argument,
        touched=count(used),
        hull=(int(used[0, 0]) - base, int(used[-1, 1]) - base) if len(used) else None,
    )


@dataclass
class _Group:
    """Accesses of one kind to one piece of memory."""

    parts: list[Ranges] = field(default_factory=list)
    sites: list[AccessSite] = field(default_factory=list)


@dataclass
class _Judge:
    around: Surroundings
    launch: Launch
    seen: Seen
    kernarg: tuple[int, int]

    def undeclared(self) -> Iterator[Undeclared]:
        """Reads before writes, by memory, scalar before vector."""
        groups: dict[tuple[Place, Action, bool, bool], _Group] = {}
        allowed = {writes: self._allowed(writes=writes) for writes in (False, True)}
        for key, places in self.seen.places.items():
            rows = np.stack([places.starts, places.starts + key.nbytes], axis=1)
            left = without(merged([rows]), allowed[key.writes])
            if len(left):
                self._divide(groups, key, places, left)
        for (place, action, scalar, atomic), group in sorted(groups.items(), key=lambda item: _order(*item[0])):
            ranges = merged(group.parts) - place.base
            yield Undeclared(
                action=action,
                path="scalar" if scalar else "vector",
                atomic=atomic,
                buffer="" if place.root is None else self.around.plan.buffers[place.root].name,
                memory=place.memory,
                ranges=tuple((int(start), int(stop)) for start, stop in ranges),
                arguments=self._arguments(place.root),
                sites=tuple(group.sites),
            )

    def _divide(
        self, groups: dict[tuple[Place, Action, bool, bool], _Group], key: Key, places: Places, left: Ranges
    ) -> None:
        """What one instruction touched and may not, by the memory that it lies in."""
        for place, part in self._places(left, writes=key.writes):
            group = groups.setdefault((place, "write" if key.writes else "read", key.scalar, key.atomic), _Group())
            group.parts.append(part)
            many = int(places.counts[touching(part, places.starts, key.nbytes)].sum())
            entry = self.seen.entry - self.seen.image[0]
            group.sites.append(AccessSite(key.address, key.address - entry, key.text, many))

    def _allowed(self, *, writes: bool) -> Ranges:
        addresses = self.around.addresses
        own = [
            (addresses[touch.buffer] + touch.start, addresses[touch.buffer] + touch.stop)
            for touch in self.launch.touches
            if touch.writes == writes and touch.argument != INDIRECT
        ]
        if not writes:
            own.append(self.kernarg)
        return merged([np.array(own, np.int64).reshape(-1, 2)])

    def _places(self, left: Ranges, *, writes: bool) -> Iterator[tuple[Place, Ranges]]:
        """Parts of `left` with what they are; buffers first."""
        around, regions = self.around, []
        for root in around.roots:
            start, stop = around.region(root)
            regions.append((start, stop))
            part = inside(left, start, stop)
            if len(part):
                yield Place(f"buffer {around.plan.buffers[root].name!r}", start, root), part
        rest = without(left, merged([np.array(regions, np.int64).reshape(-1, 2)]))
        parts: dict[Place, list[Ranges]] = {}
        for row in rest:
            place = self._elsewhere(int(row[0]), int(row[1] - row[0]), writes=writes)
            if place is not None:
                parts.setdefault(place, []).append(row.reshape(1, 2))
        for place, rows in parts.items():
            yield place, merged(rows)

    def _elsewhere(self, address: int, nbytes: int, *, writes: bool) -> Place | None:
        """What lies at an address outside every buffer; None for what a launch may read anyway."""
        image, end = self.seen.image
        if image <= address < end:
            module = self.launch.kernel.module
            memory = _object_memory(module.data) if module is not None else None
            if memory is None or (memory.is_immutable(address - image) and memory.holds(address - image, nbytes)):
                return Place("the code object", image) if writes or memory is None else None
            return Place(f"variable {memory.variable(address - image)!r} of the code object", image)
        if self.around.arena[0] <= address < self.around.arena[1]:
            own = self.kernarg[0] <= address < self.kernarg[1]
            start = self.kernarg[0] if own else self.around.arena[0]
            return Place("its own arguments" if own else "arguments of other launches", start)
        return self._near_a_buffer(address) or Place(self._label(address), 0)

    def _near_a_buffer(self, address: int) -> Place | None:
        """In the gap that the software device leaves around every allocation."""
        for root in self.around.roots:
            start, stop = self.around.region(root)
            name = self.around.plan.buffers[root].name
            if stop <= address < stop + GUARD_BYTES:
                return Place(f"past the end of buffer {name!r}", start, root)
        for root in self.around.roots:
            start, _ = self.around.region(root)
            if start - GUARD_BYTES <= address < start:
                name = self.around.plan.buffers[root].name
                return Place(f"before the start of buffer {name!r}", start, root)
        return None

    def _label(self, address: int) -> str:
        rows = [label for start, stop, label in self.around.allocations if start <= address < stop]
        return f"{rows[0]} of the device" if rows else "no memory"

    def _arguments(self, root: int | None) -> tuple[int, ...]:
        buffers = self.around.plan.buffers
        return tuple(p.offset for p in self.launch.pointers if root is not None and buffers[p.buffer].root == root)


def _order(place: Place, action: Action, scalar: bool, atomic: bool) -> tuple[object, ...]:
    root = place.root if place.root is not None else 1 << 31
    return root, place.memory, action, not scalar, atomic, place.base


@lru_cache(maxsize=64)
def _object_memory(data: bytes) -> ObjectMemory:
    return ObjectMemory(Elf(data))
