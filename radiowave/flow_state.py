# SPDX-License-Identifier: Apache-2.0
"""The abstract registers of a wave between two instructions, and what they are where paths meet.

Scalar registers hold a `Value`. Vector registers hold atoms twice: for the lanes that are active now, and for the rest,
since a write leaves the other lanes as they were and a later, wider mask brings them back. Knows no instructions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from radiowave.operands import EXEC, NULL
from radiowave.values import ALL_LANES, PLAIN, UNSET, Atom, Value, either, join, join_pair

Atoms = frozenset[Atom]
NONE: Atoms = frozenset()
_UNSET: Atoms = frozenset({"unset"})


@dataclass(slots=True)
class State:
    """Registers by number; what is missing was never written.

    `scc` is ("scc", who wrote it last) or a `Carry` of `scalar_flow.py`.
    """

    scalars: dict[int, Value] = field(default_factory=dict)
    active: dict[int, Atoms] = field(default_factory=dict)
    resting: dict[int, Atoms] = field(default_factory=dict)
    scc: tuple[Hashable, ...] = ("scc", None)
    wave: int = 32

    @property
    def masks(self) -> range:
        """The registers of the execution mask."""
        return range(EXEC, EXEC + self.wave // 32)

    def copy(self) -> State:
        """A state of its own."""
        return State(dict(self.scalars), dict(self.active), dict(self.resting), self.scc, self.wave)

    def scalar(self, number: int) -> Value:
        """What a scalar register holds; the null register reads as zero and is no concern of anybody."""
        return PLAIN if number == NULL else self.scalars.get(number, UNSET)

    def set_scalar(self, number: int, value: Value) -> None:
        """Write one. The execution mask is written by `narrow` and `widen`."""
        if number != NULL:
            self.scalars[number] = value

    def vector(self, number: int) -> Atoms:
        """What the active lanes of a vector register hold."""
        return self.active.get(number, _UNSET)

    def any_lane(self, number: int) -> Atoms:
        """What any lane of a vector register may hold."""
        if number not in self.resting:
            return self.vector(number)
        return either(self.vector(number), self.resting[number])

    def set_vector(self, number: int, atoms: Atoms) -> None:
        """Write the active lanes."""
        self.active[number] = atoms

    def narrow(self) -> None:
        """Some lanes go to rest, nobody knows which."""
        for number, atoms in self.active.items():
            self.resting[number] = either(self.resting.get(number, atoms), atoms)

    def widen(self, *, to_all: bool) -> None:
        """Lanes come back; `to_all`: exactly those with which the wave began, so none is left to rest.

        Otherwise lanes may come that the wave never had, with whatever an earlier wave left in them.
        """
        for number in self.active.keys() | self.resting.keys():
            atoms = self.any_lane(number)
            self.active[number] = atoms if to_all else atoms | _UNSET
        if to_all:
            self.resting.clear()

    def any_mask(self) -> None:
        """Nobody knows which lanes are active now."""
        self.widen(to_all=False)
        self.narrow()
        self.set_masks(PLAIN)

    def set_masks(self, value: Value) -> None:
        """The number in the execution mask; which lanes it leaves on is said by the methods above."""
        for number in self.masks:
            self.scalars[number] = value

    def forget_scalars(self) -> None:
        """Any scalar register may have been written."""
        for number in self.scalars:
            if number < EXEC:
                self.scalars[number] = UNSET


def merge(states: Iterable[State], where: Hashable) -> State:
    """What holds on every path into `where`, a place that two paths lead to.

    Pairs of registers that hold one pointer on each path hold one afterwards, named by this place and the pair.
    """
    first, *others = states
    merged = first.copy()
    for other in others or [first]:
        _merge_scalars(merged, other, where)
        for number in merged.active.keys() | other.active.keys():
            merged.active[number] = either(merged.vector(number), other.vector(number))
        for number, atoms in other.resting.items():
            merged.resting[number] = either(merged.resting.get(number, atoms), atoms)
        if merged.scc != other.scc or merged.scc[0] != "scc":
            merged.scc = ("scc", ("join", where))
    return merged


def _merge_scalars(merged: State, other: State, where: Hashable) -> None:
    numbers = sorted(merged.scalars.keys() | other.scalars.keys())
    done: set[int] = set()
    result: dict[int, Value] = {}
    for low in numbers:
        if low in done:
            continue
        high = low + 1
        if low % 2 == 0:
            pair = join_pair(
                (merged.scalar(low), merged.scalar(high)), (other.scalar(low), other.scalar(high)), ("join", where, low)
            )
            if pair is not None:
                result[low], result[high] = pair
                done.add(high)
                continue
        result[low] = join(merged.scalar(low), other.scalar(low))
    merged.scalars = result


def first_state(wave: int) -> State:
    """Nothing but the mask of a wave of 32 or 64 lanes at its first instruction."""
    state = State(wave=wave)
    state.set_masks(ALL_LANES)
    return state
