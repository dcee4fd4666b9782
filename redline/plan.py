# SPDX-License-Identifier: Apache-2.0
"""Plan: a graph frozen into an order, with a fingerprint.

`Plan.of` decides in which order launches are emitted; `safety.verify` checks that order. It derives no fences
(`fences.py`), knows no GPU family and no address. What it says about itself stands in files of their own: `explain.py`,
`report.py`, `dot.py`, `differences.py`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from .accesses import Accesses
from .errors import RecordError
from .graph import Graph, Order
from .hazards import Hazard, find_carried, find_hazards
from .kernarg import Slot
from .kernel import Certificate, Kernel
from .launch import Launch
from .ordering import UnorderedPair, check_ordered, unordered_pairs
from .ranges import Buffer
from .sweep import find_conflicts, find_levels, sort_by_level

if TYPE_CHECKING:
    from .fences import Fences
    from .program import Program

#: Version of the fingerprint's columns; raised whenever their meaning or layout changes.
FINGERPRINT_VERSION: Final = 3

#: Numbers of a kernel that are in the fingerprint; `differences.py` compares the same.
KERNEL_NUMBERS: Final = (
    *("wave", "group_bytes", "private_bytes", "kernarg_bytes", "rsrc1", "rsrc2", "rsrc3"),
    *("properties", "preload", "entry_offset", "max_workgroup"),
)

Boundary = Literal["host", "queue", "other-queue"]
BOUNDARIES: Final = ("host", "queue", "other-queue")
SCHEDULES: Final = ("levels", "record")
FENCES: Final = ("minimal", "full")

#: Launches that the rounds of `_shifted` may visit in all, each round all of them; the fewest rounds that are tried.
_SHIFT_WORK, _SHIFT_ROUNDS = 50_000_000, 64


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A frozen graph. Compared by value through its fingerprint.

    `order` lists recorded indices in emitted order; `levels[i]` is the level of launch i: its hazard depth, or one more
    where that saves the drain between two replays. `boundary` says who touches memory between replays.
    """

    target: str
    order_mode: Order
    boundary: Boundary
    schedule: Literal["levels", "record"]
    fence_mode: Literal["minimal", "full"]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    slots: tuple[Slot, ...]
    accesses: Accesses
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

        boundary: who touches memory between replays. "host" is anyone, copy engines included; "queue" nobody: replays
        of this plan stand back to back on one queue; "other-queue" other compute queues of the same agent.
        schedule: "levels" orders by hazard depth, which needs the fewest drains of any legal order; "record" keeps the
        recorded order. fences: "minimal", or "full": a drain with every class before every launch. When results are
        wrong, try schedule="record" with fences="full" first: if that mends them, an access is not declared.

        Raises RecordError for an empty graph or an unknown option, HazardError for unordered conflicts in a graph of
        order="explicit".
        """
        if not isinstance(graph, Graph):
            raise RecordError("RL0131", where="Plan.of", seen=repr(graph), allowed="a Graph", do="record one first")
        _check_option("boundary", boundary, BOUNDARIES)
        _check_option("schedule", schedule, SCHEDULES)
        _check_option("fences", fences, FENCES)
        if not graph.launches:
            raise RecordError(
                "RL0131",
                where="Plan.of",
                seen="a graph without launches",
                allowed="at least one",
                do="record a launch",
            )
        launches, buffers, accesses = tuple(graph.launches), tuple(graph.buffers), graph.accesses()
        if graph.order == "explicit":
            check_ordered(accesses, launches, buffers)
        levels, order = _scheduled(accesses, schedule, boundary)
        return Plan(
            target=launches[0].kernel.target,
            order_mode=graph.order,
            boundary=boundary,  # type: ignore[arg-type]  # checked above
            schedule="levels" if schedule == "levels" else "record",
            fence_mode="minimal" if fences == "minimal" else "full",
            buffers=buffers,
            launches=launches,
            slots=tuple(graph.slots[name] for name in sorted(graph.slots)),
            accesses=accesses,
            levels=tuple(levels.tolist()),
            order=tuple(order.tolist()),
        )

    @cached_property
    def hazards(self) -> tuple[Hazard, ...]:
        """The neighbouring conflicts inside one replay; any other conflict is joined by a chain of them."""
        return find_hazards(self.accesses, range(len(self.launches)))

    @cached_property
    def carried(self) -> tuple[Hazard, ...]:
        """The neighbouring conflicts of one replay with the next; none unless boundary="queue"."""
        return find_carried(self.accesses, self.order) if self.boundary == "queue" else ()

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """(first, second) pairs of recorded indices inside one replay that need a wait: conflicts and `after=`."""
        edges = {(hazard.first, hazard.second) for hazard in self.hazards}
        edges.update((first, launch.index) for launch in self.launches for first in launch.after)
        return tuple(sorted(edges))

    @cached_property
    def fences(self) -> Fences:
        """The fences that this plan needs. Raises HazardError as `derive` does."""
        from .fences import derived

        return derived(self)

    @cached_property
    def program(self) -> Program:
        """The plan lowered to words, without addresses; with the options of `Graph.compile` if that made the plan.

        Raises RedlineError as `lower` does.
        """
        from .forms import lower

        return lower(self, self.fences)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (hex) over versioned little-endian columns; no labels, file names or call sites in it."""
        return hashlib.sha256(b"".join(_columns(self))).hexdigest()

    def unordered_pairs(self) -> tuple[UnorderedPair, ...]:
        """Conflicting launches that no chain of `after=` orders, largest overlap first.

        Never any in a plan of order="explicit", which would not compile; in one of order="record", what that order
        decides and explicit order would have to say. Bounded as in `Graph.lint`.
        """
        return unordered_pairs(self.accesses, self.launches, self.buffers)

    def explain(self, first: int | None = None, second: int | None = None, *, json: bool = False) -> Any:
        """Why each fence stands where it does, as text; `json=True` gives the same as a dict with call sites.

        With two recorded indices: why these launches are ordered and visible to one another, or why they need not be.
        Raises RecordError for an index that the plan does not have, RedlineError as `derive` does.
        """
        from .explain import explain, explain_pair

        whole = first is None and second is None
        return explain(self, json=json) if whole else explain_pair(self, first, second, json=json)

    def stats(self) -> dict[str, Any]:
        """Launches, drains, acquires, dwords, beside those of fences="full" and of a boundary per dependent launch.

        Raises RedlineError as `lower` does.
        """
        from .report import stats

        return stats(self)

    def memory(self) -> dict[str, int]:
        """What a replay of this plan allocates, in bytes and in signals, and the sum of the bytes.

        Raises RedlineError as `lower` does.
        """
        from .report import memory

        return memory(self)

    def dot(self) -> str:
        """The launches and the hazards between them as a Graphviz digraph, levels as ranks."""
        from .dot import dot

        return dot(self)

    def diff(self, other: Plan) -> tuple[str, ...]:
        """What differs between two plans, a line each; empty exactly when their fingerprints are equal.

        Raises RecordError for what is no plan.
        """
        from .differences import differences

        return differences(self, other)

    def split(self, k: int) -> tuple[Plan, Plan]:
        """Two plans that do the same, run one behind the other: the first k launches in emitted order, and the rest.

        Internal buffers become inout, because both plans touch them: bind the same memory in both. For finding the
        launch that goes wrong. Raises RecordError unless both have a launch, RedlineError as `lower` does.
        """
        from .split import split

        return split(self, k)

    def __repr__(self) -> str:
        what = f"boundary={self.boundary} schedule={self.schedule} fences={self.fence_mode}"
        return f"<Plan {self.fingerprint[:16]} {self.target} launches={len(self.launches)} {what}>"

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


def _scheduled(accesses: Accesses, schedule: str, boundary: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Level of each launch, and the order."""
    levels = hazard_depths(accesses)
    if schedule == "record":
        return levels, np.arange(len(levels))
    if boundary == "queue":
        levels = _shifted(accesses, levels)
    return levels, sort_by_level(levels)


def hazard_depths(accesses: Accesses, at_least: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """Hazard depth of each launch: edges on the longest chain that ends in it. Edges point forward."""
    a = accesses
    floor = np.zeros(len(a.starts) - 1, np.int32) if at_least is None else at_least
    found: NDArray[np.int32] = find_levels(a.starts, a.spans, a.does, a.after_starts, a.after, a.nodes, floor)
    return found


def _shifted(accesses: Accesses, levels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Levels such that no launch of the first conflicts with one of the last, where that adds no level.

    Replays back to back then need as many drains as the longest chain has edges; else one more, whatever the order.
    """
    a, deepest, shifted = accesses, int(levels.max()), levels
    at_least = np.zeros(len(levels), np.int32)
    for _ in range(max(_SHIFT_WORK // len(levels), _SHIFT_ROUNDS)):
        found = find_conflicts(shifted == 0, shifted == deepest, a.starts, a.spans, a.does, a.nodes)
        if not found.any():
            return shifted
        at_least[found] = 1
        shifted = hazard_depths(accesses, at_least)
        if shifted.max() > deepest:
            return levels
    return levels


def _columns(plan: Plan) -> list[bytes]:
    """The fingerprint's input. Every variable-length item is preceded by its length."""
    kernels: dict[bytes, int] = {}
    by_id: dict[int, int] = {}  # the plan keeps its kernels alive, so an id names one
    for launch in plan.launches:
        if id(launch.kernel) not in by_id:
            by_id[id(launch.kernel)] = kernels.setdefault(_kernel_column(launch.kernel), len(kernels))
    columns = [b"redline plan", struct.pack("<I", FINGERPRINT_VERSION)]
    columns += map(_text, (plan.target, plan.order_mode, plan.boundary, plan.schedule, plan.fence_mode))
    columns += [struct.pack("<IIII", len(kernels), len(plan.buffers), len(plan.slots), len(plan.launches))]
    columns += kernels
    columns += [_buffer_column(buffer) for buffer in plan.buffers]
    columns += [_slot_column(slot) for slot in plan.slots]
    columns += [_launch_column(launch, by_id[id(launch.kernel)]) for launch in plan.launches]
    columns.append(struct.pack(f"<{len(plan.order)}I", *plan.order))
    return columns


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def _kernel_column(kernel: Kernel) -> bytes:
    """A kernel and the object it is in: its code may call or read what lies elsewhere in the object."""
    values = [getattr(kernel, name) & 0xFFFFFFFFFFFFFFFF for name in KERNEL_NUMBERS]
    numbers = struct.pack(f"<{len(values) + 1}Q", *values, len(kernel.arguments))
    arguments = b"".join(struct.pack("<II", a.offset, a.size) + _text(a.kind) for a in kernel.arguments)
    reads = kernel.certificate
    certificate = _text("") if reads is None else _certificate_column(reads)
    module = _text(kernel.module.sha256 if kernel.module else "")
    return _text(kernel.name) + _text(bytes.fromhex(kernel.code_sha256)) + numbers + arguments + certificate + module


def _certificate_column(reads: Certificate) -> bytes:
    arguments = repr((sorted(reads.scalar_args), sorted(reads.l2_args)))
    return _text(f"{reads.reads} {arguments} {reads.kernarg_vector_loads} {reads.undeclared}")


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
