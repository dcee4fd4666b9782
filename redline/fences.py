# SPDX-License-Identifier: Apache-2.0
"""Derive the drains and acquires that a plan needs: the fewest drains, then the fewest acquire packets, then classes.

Order and visibility are two facts, kept apart: a *drain* makes later launches wait for earlier ones, an *acquire* makes
what drained launches wrote visible through a cache that nothing keeps coherent (K scalar, V vector, P: what
the command processor reads past GL2). Read-after-write needs both; write-after-read and write-after-write need only the
drain.

Each launch that must wait is an interval of positions of which one must hold a drain; each launch that reads what
another wrote is an interval of drains of which one must carry an acquire. One replay is a line, replays back to back
are a circle, and on both the fewest points that serve all intervals are found exactly (`stabbing.py`).

Knows caches by class, never a family's bits: `lowering.py` asks the family for those. Reasons are `reasons.py`'s, on
demand. `safety.py` checks the result without sharing any of this.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from .accesses import CLASSES, KERNEL_CLASSES, kernarg_classes
from .errors import HazardError
from .fitting import require
from .stabbing import find_spans, find_spans_among, stab_circle, stab_line
from .sweep import READS_P, find_needs

if TYPE_CHECKING:
    from .plan import Plan

#: Rules that keep a fence without a hazard as its reason; `explain` prints them by name.
RULES: Final = {
    "cold-entry": "anything may have touched memory before: drain, then invalidate every cache at system scope",
    "host-exit": "the host reads the results: drain, then write back at system scope",
    "full": 'fences="full" was asked for',
    "other-queue": "other queues touch memory between replays: drain, then invalidate K and V",
    "patched-kernargs": "the host patches arguments between replays: invalidate what kernels read them through",
    "ib-scope": "the AQL header 0x1500 asks for system scope too; whether it covers an indirect buffer is undocumented",
    "glm-convention": "GLM bits go with GL2 bits by convention of the drivers; buffers do not need them",
}

#: The bit of each class in the `classes` column.
CLASS_BITS: Final = {"K": 1, "V": 2, "P": 4}
_NAMES: Final = tuple(tuple(name for name, bit in CLASS_BITS.items() if bits & bit) for bits in range(8))


#: Positions fit the int64 column, and no plan has as many launches.
_MOST: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Fence:
    """What stands before position `at` of the emitted order: a drain, and behind it an acquire of the classes named.

    Position 0 is the warm entry of replays back to back; only there an acquire may stand without a drain.
    """

    at: int
    acquire: tuple[str, ...] = ()
    drain: bool = True
    rule: str | None = None


class Fences:
    """The fences of a plan: between launches (`inner`, in emitted order), at entry and at exit.

    Columns of the same: `at` (position, int64), `drains_at` (bool), `classes` (bits, uint8). `entry_rule` and
    `exit_rule` say why the cold entry (drain, system acquire) and the release (drain, system release) stand there; ""
    leaves them out.

    Raises HazardError for positions that are repeated, out of order or no positions, for a fence that does nothing, and
    for what is no Fence of classes K, V and P, each once.
    """

    def __init__(
        self, inner: Iterable[Fence] = (), *, entry_rule: str = "cold-entry", exit_rule: str = "host-exit"
    ) -> None:
        listed = _checked(inner)
        _check_places(listed)
        self.entry_rule, self.exit_rule = entry_rule, exit_rule
        self.at = np.array([fence.at for fence in listed], np.int64)
        self.drains_at = np.array([fence.drain for fence in listed], np.bool_)
        self.classes = np.array([sum(CLASS_BITS[name] for name in fence.acquire) for fence in listed], np.uint8)
        self.rules = {fence.at: fence.rule for fence in listed if fence.rule}

    @classmethod
    def of_columns(
        cls, at: NDArray[np.int64], drains: NDArray[np.bool_], classes: NDArray[np.uint8], rules: dict[int, str]
    ) -> Fences:
        """Fences of columns that `derive` made, each of shape (fences,); the same as from a list of `Fence`."""
        made = cls()
        made.at, made.drains_at, made.classes, made.rules = at, drains, classes, rules
        return made

    @cached_property
    def inner(self) -> tuple[Fence, ...]:
        """The fences between launches, and at position 0 the warm entry."""
        rows = zip(self.at.tolist(), self.classes.tolist(), self.drains_at.tolist(), strict=True)
        return tuple(Fence(at, _NAMES[classes], drain, self.rules.get(at)) for at, classes, drain in rows)

    @property
    def drains(self) -> int:
        """Drains of one replay, the warm entry's included; cold entry and release are not counted."""
        return int(self.drains_at.sum())

    @property
    def acquires(self) -> int:
        """Acquire packets of one replay, the warm entry's included; the cold entry's is not counted."""
        return int((self.classes > 0).sum())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fences) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def __repr__(self) -> str:
        return f"<Fences drains={self.drains} acquires={self.acquires}>"

    def _value(self) -> tuple[object, ...]:
        return self.inner, self.entry_rule, self.exit_rule


def _checked(inner: Iterable[Fence]) -> tuple[Fence, ...]:
    """What is a list of fences; a class that is named twice would be added up to another one."""
    listed = tuple(inner) if isinstance(inner, Iterable) else (inner,)
    for fence in listed:
        named = fence.acquire if isinstance(fence, Fence) and isinstance(fence.acquire, tuple) else (fence,)
        if not all(isinstance(name, str) and name in CLASS_BITS for name in named) or len(set(named)) < len(named):
            raise HazardError(
                "RL0204",
                where="Fences",
                seen=reprlib.repr(fence),
                allowed=f"Fence(at, acquire), acquire a tuple of {', '.join(CLASS_BITS)}, each at most once",
                do="name the caches to acquire behind the drain",
            )
    return listed


def _check_places(inner: tuple[Fence, ...]) -> None:
    places = [fence.at for fence in inner]
    whole = all(isinstance(at, int) and not isinstance(at, bool) and 0 <= at < _MOST for at in places)
    idle = [fence.at for fence in inner if not fence.drain and (fence.at or not fence.acquire)]
    if not whole or places != sorted(set(places)) or idle:
        raise HazardError(
            "RL0202",
            where="Fences",
            seen=f"fences before positions {places}" + (f", without a drain before {idle}" if idle else ""),
            allowed="positions from 0 on, each once, in order; an acquire without a drain before position 0 only",
            do="join the classes of fences at one position",
        )


def derive(plan: Plan) -> Fences:
    """The fences of a plan: fewest drains for its order, then fewest acquire packets, then fewest classes in them.

    For boundary="queue" the fewest of replays back to back: every replay runs through the same fences.

    Raises RecordError for what is no plan, HazardError for one whose order contradicts its `after=`; `Plan.of` makes no
    such plan.
    """
    require(plan, "Plan", "derive")
    return derived(plan)


def derived(plan: Plan) -> Fences:
    """The same for what is known to be a plan."""
    if plan.fence_mode == "full":
        return full_fences(plan)
    a, loop = plan.accesses, plan.boundary == "queue"
    order = np.array(plan.order, np.int64)
    needs = find_needs(order, 1 + loop, a.starts, a.spans, a.does, a.after_starts, a.after, a.nodes)
    _check_order(order, needs[0], len(order) if loop else 0)
    drains = _loop_drains(needs[0]) if loop else _line_drains(needs[0])
    entry, rule = _entry(plan)
    if plan.boundary == "other-queue":
        drains[0] = True
    stands = drains.copy()
    stands[0] |= entry > 0
    at = np.flatnonzero(stands)
    bits = acquires_at(needs[1:], at, drains[at], entry, loop=loop)
    return Fences.of_columns(at, drains[at], bits, {0: rule} if rule else {})


def classes_of(bits: int) -> tuple[str, ...]:
    """The classes that these bits stand for."""
    return _NAMES[bits]


def full_fences(plan: Plan) -> Fences:
    """A drain and every class before each launch, at the warm entry too; fences="full" asks for these."""
    at = np.arange(int(plan.boundary == "host"), len(plan.order))
    rules = dict.fromkeys(at.tolist(), "full")
    bits = sum(CLASS_BITS[name] for name in all_classes(plan))
    return Fences.of_columns(at, np.ones(len(at), np.bool_), np.full(len(at), bits, np.uint8), rules)


def all_classes(plan: Plan) -> tuple[str, ...]:
    """Every class that a launch may read through: P only where one does."""
    return CLASSES if (plan.accesses.does & READS_P).any() else KERNEL_CLASSES


def _check_order(order: NDArray[np.int64], waits: NDArray[np.int32], begin: int) -> None:
    """No launch may wait for a later one: there is no drain for that."""
    wrong = np.flatnonzero(waits >= begin + np.arange(len(order)))
    if len(wrong):
        raise HazardError(
            "RL0203",
            where="derive",
            seen=f"launch #{order[wrong[0]]} before a launch that it is recorded after=",
            allowed="an order that keeps every after=",
            do="take the plan from Plan.of",
        )


def _entry(plan: Plan) -> tuple[int, str]:
    """The classes that the warm entry must acquire whatever the launches do, and the rule that says so."""
    if plan.boundary == "other-queue":
        return sum(CLASS_BITS[name] for name in all_classes(plan)), "other-queue"
    if plan.boundary == "host" or not plan.slots:
        return 0, ""
    through = {name for launch in plan.launches if launch.slots for name in kernarg_classes(launch.kernel)}
    return sum(CLASS_BITS[name] for name in through), "patched-kernargs"


def _line_drains(waits: NDArray[np.int32]) -> NDArray[np.bool_]:
    """A mask of positions before which a drain stands, for one replay: where a launch needs one not drained yet."""
    high = np.arange(len(waits), dtype=np.int32)
    drains: NDArray[np.bool_] = stab_line(np.where(waits < 0, np.int32(-1), waits + np.int32(1)), high, len(waits))
    return drains


def _loop_drains(waits: NDArray[np.int32]) -> NDArray[np.bool_]:
    """The same for replays back to back. `waits` are those of the second of two replays."""
    count = len(waits)
    low, high = waits + np.int32(1), count + np.arange(count, dtype=np.int32)
    turn = np.where(low >= count, np.int32(count), np.int32(0))
    drains: NDArray[np.bool_] = stab_circle(np.where(waits < 0, np.int32(-1), low - turn), high - turn, count, -1)
    return drains


def acquires_at(
    writers: NDArray[np.int32], at: NDArray[np.int64], drains: NDArray[np.bool_], entry: int, *, loop: bool
) -> NDArray[np.uint8]:
    """The classes to acquire at each of the positions `at`.

    A value written at one position and read at a later one through a class needs an acquire of it behind the first
    drain after the write and before the read. One pass over all classes together finds the fewest positions; a second
    gives each class the latest of these that serves it.
    """
    if not len(at):
        return np.zeros(0, np.uint8)
    low, high = find_spans(writers, at, drains, 1 + loop)
    chosen = np.flatnonzero(_stab(low.ravel(), high.ravel(), len(at), 0 if entry else -1, loop=loop))
    bits = np.zeros(len(at), np.uint8)
    low, high = find_spans_among(low, high, chosen, len(at))
    for row, name in enumerate(CLASSES):
        forced = 0 if entry & CLASS_BITS[name] else -1
        mask = _stab(low[:, row].copy(), high[:, row].copy(), len(chosen), forced, loop=loop)
        bits[chosen[mask]] |= CLASS_BITS[name]
    return bits


def _stab(
    low: NDArray[np.int32], high: NDArray[np.int32], points: int, forced: int, *, loop: bool
) -> NDArray[np.bool_]:
    if loop:
        circle: NDArray[np.bool_] = stab_circle(low, high, points, forced)
        return circle
    line: NDArray[np.bool_] = stab_line(low, high, points)
    if forced >= 0:
        line[forced] = True
    return line
