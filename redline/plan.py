# SPDX-License-Identifier: Apache-2.0
"""Plan: a graph frozen into an order, with every hazard found and a fingerprint.

`Plan.of` decides in which order launches are emitted; `safety.verify` checks that order. It derives no fences
(`fences.py`), knows no GPU family and no address.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from .errors import HazardError, RecordError
from .graph import Graph, Order
from .hazards import Hazard, find_hazards
from .kernarg import Slot
from .kernel import Kernel
from .launch import Launch
from .ranges import Buffer

if TYPE_CHECKING:
    from .fences import Fences
    from .program import Program

#: Version of the fingerprint's columns; raised whenever their meaning or layout changes.
FINGERPRINT_VERSION: Final = 2

BOUNDARIES: Final = ("host",)
SCHEDULES: Final = ("levels", "record")
FENCES: Final = ("minimal", "full")


@dataclass(frozen=True, eq=False)
class Plan:
    """A frozen graph. Compared by value through its fingerprint.

    `order` lists recorded indices in emitted order; `levels[i]` is the hazard depth of launch i; `edges` are all
    (first, second) pairs of recorded indices that need a wait.
    """

    target: str
    order_mode: Order
    boundary: Literal["host"]
    schedule: Literal["levels", "record"]
    fence_mode: Literal["minimal", "full"]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    slots: tuple[Slot, ...]
    hazards: tuple[Hazard, ...]
    levels: tuple[int, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(
        graph: Graph,
        *,
        boundary: str = "host",
        schedule: str = "levels",
        fences: str = "minimal",
    ) -> Plan:
        """Freeze `graph`.

        boundary: who touches memory between replays; "host" is anyone. schedule: "levels" orders by hazard depth,
        which needs the fewest drains of any legal order; "record" keeps the recorded order. fences: "minimal", or
        "full" after every launch, the first thing to try when results are wrong.

        Raises RecordError for an empty graph or an unknown option, HazardError for unordered conflicts in a graph of
        order="explicit".
        """
        if not isinstance(graph, Graph):
            raise RecordError("RL0131", where="Plan.of", seen=repr(graph), allowed="a Graph", do="record one first")
        _check_option("boundary", boundary, BOUNDARIES)
        _check_option("schedule", schedule, SCHEDULES)
        _check_option("fences", fences, FENCES)
        launches, buffers = tuple(graph.launches), tuple(graph.buffers)
        if not launches:
            raise RecordError(
                "RL0131",
                where="Plan.of",
                seen="a graph without launches",
                allowed="at least one",
                do="record a launch",
            )
        hazards = find_hazards(launches, buffers)
        if graph.order == "explicit":
            _check_ordered(hazards, launches, buffers)
        levels = _levels(hazards, launches)
        by_level = sorted(range(len(launches)), key=lambda index: (levels[index], index))
        return Plan(
            target=launches[0].kernel.target,
            order_mode=graph.order,
            boundary="host",
            schedule="levels" if schedule == "levels" else "record",
            fence_mode="minimal" if fences == "minimal" else "full",
            buffers=buffers,
            launches=launches,
            slots=tuple(graph.slots[name] for name in sorted(graph.slots)),
            hazards=hazards,
            levels=levels,
            order=tuple(by_level if schedule == "levels" else range(len(launches))),
        )

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """(first, second) pairs of recorded indices that need a wait: conflicts and `after=`."""
        return tuple(sorted(_edges(self.hazards, self.launches)))

    @cached_property
    def fences(self) -> Fences:
        """The fences that this plan needs, each with its reasons."""
        from .fences import derive

        return derive(self)

    @cached_property
    def program(self) -> Program:
        """The plan lowered to words, without addresses; with the options of `Graph.compile` if that made the plan."""
        from .program import lower

        return lower(self, self.fences)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (hex) over versioned little-endian columns; no labels, file names or call sites in it."""
        return hashlib.sha256(b"".join(_columns(self))).hexdigest()

    def explain(self) -> str:
        """The emitted order as text, with every fence and why it stands there."""
        from .explain import explain

        return explain(self)

    def stats(self) -> dict[str, int]:
        """Counts: launches, order edges, drains, acquires, dwords, kernarg bytes."""
        return {
            "launches": len(self.launches),
            "edges": len(self.edges),
            "drains": self.fences.drains,
            "acquires": self.fences.acquires,
            "dwords": len(self.program.words),
            "kernarg_bytes": len(self.program.kernarg),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _check_option(name: str, value: str, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise RecordError(
            "RL0132",
            where=f"{name}=",
            seen=repr(value),
            allowed=", ".join(map(repr, allowed)),
            do="choose one of them",
        )


def _edges(hazards: Sequence[Hazard], launches: Sequence[Launch]) -> set[tuple[int, int]]:
    edges = {(hazard.first, hazard.second) for hazard in hazards}
    edges.update((first, launch.index) for launch in launches for first in launch.after)
    return edges


def _levels(hazards: Sequence[Hazard], launches: Sequence[Launch]) -> tuple[int, ...]:
    """Hazard depth of each launch: edges on the longest chain that ends in it. Edges point forward."""
    levels = [0] * len(launches)
    for first, second in sorted(_edges(hazards, launches), key=lambda edge: edge[1]):
        levels[second] = max(levels[second], levels[first] + 1)
    return tuple(levels)


def _check_ordered(hazards: Sequence[Hazard], launches: Sequence[Launch], buffers: Sequence[Buffer]) -> None:
    """Every conflict of an explicit graph must be ordered by a chain of `after=`."""
    for hazard in hazards:
        if not _reaches(hazard.first, hazard.second, launches):
            first, second = launches[hazard.first], launches[hazard.second]
            memory = buffers[hazard.buffer].name
            raise HazardError(
                "RL0201",
                where=f"{second} ({second.site}) and {first} ({first.site})",
                seen=f"{hazard.kind} on {memory}[{hazard.start}:{hazard.stop}] and no chain of after= between them",
                allowed="conflicting launches that after= orders (order='explicit')",
                do=f"record {second.label!r} with after=[{first.label!r}], or use Graph(order='record')",
            )


def _reaches(first: int, second: int, launches: Sequence[Launch]) -> bool:
    """Is there a chain of `after=` from `first` to `second`? Searches backwards, never below `first`."""
    seen, pending = {second}, [second]
    while pending:
        for before in launches[pending.pop()].after:
            if before == first:
                return True
            if before > first and before not in seen:
                seen.add(before)
                pending.append(before)
    return False


def _columns(plan: Plan) -> list[bytes]:
    """The fingerprint's input. Every variable-length item is preceded by its length."""
    kernels: dict[tuple[Kernel, str], int] = {}
    for launch in plan.launches:
        kernels.setdefault(_identity(launch.kernel), len(kernels))
    columns = [b"redline plan", struct.pack("<I", FINGERPRINT_VERSION)]
    columns += map(_text, (plan.target, plan.order_mode, plan.boundary, plan.schedule, plan.fence_mode))
    columns += [struct.pack("<IIII", len(kernels), len(plan.buffers), len(plan.slots), len(plan.launches))]
    columns += [_kernel_column(kernel) + _text(module) for kernel, module in kernels]
    columns += [_buffer_column(buffer) for buffer in plan.buffers]
    columns += [_slot_column(slot) for slot in plan.slots]
    columns += [_launch_column(launch, kernels[_identity(launch.kernel)]) for launch in plan.launches]
    columns.append(struct.pack(f"<{len(plan.order)}I", *plan.order))
    return columns


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def _identity(kernel: Kernel) -> tuple[Kernel, str]:
    """A kernel and the object it is in: its code may call or read what lies elsewhere in the object."""
    return kernel, kernel.module.sha256 if kernel.module else ""


def _kernel_column(kernel: Kernel) -> bytes:
    numbers = struct.pack(
        "<12Q",
        kernel.wave,
        kernel.group_bytes,
        kernel.private_bytes,
        kernel.kernarg_bytes,
        kernel.rsrc1,
        kernel.rsrc2,
        kernel.rsrc3,
        kernel.properties,
        kernel.preload,
        kernel.entry_offset & 0xFFFFFFFFFFFFFFFF,
        kernel.max_workgroup,
        len(kernel.arguments),
    )
    arguments = b"".join(struct.pack("<II", a.offset, a.size) + _text(a.kind) for a in kernel.arguments)
    reads = kernel.certificate
    certificate = _text("") if reads is None else _text(reads.reads + repr(sorted(reads.scalar_args)))
    return _text(kernel.name) + _text(bytes.fromhex(kernel.code_sha256)) + numbers + arguments + certificate


def _buffer_column(buffer: Buffer) -> bytes:
    numbers = struct.pack("<QIQ", buffer.nbytes, buffer.root, buffer.root_offset)
    return _text(buffer.name) + _text(buffer.kind) + _text(buffer.role) + numbers


def _slot_column(slot: Slot) -> bytes:
    return _text(slot.name) + _text(slot.type) + (b"\0" if slot.default is None else b"\1" + _text(slot.default))


def _launch_column(launch: Launch, kernel: int) -> bytes:
    head = struct.pack("<I3I3II", kernel, *launch.global_size, *launch.block, launch.dynamic_lds)
    pointers = b"".join(struct.pack("<IIQ", p.offset, p.buffer, p.addend) for p in launch.pointers)
    slots = b"".join(struct.pack("<I", s.offset) + _text(s.slot) for s in launch.slots)
    touches = b"".join(
        struct.pack("<IQQ?i", t.buffer, t.start, t.stop, t.writes, -1 if t.argument is None else t.argument)
        for t in launch.touches
    )
    after = struct.pack(f"<{len(launch.after)}I", *launch.after)
    return head + b"".join(map(_text, (launch.kernarg, pointers, slots, touches, after)))
