# SPDX-License-Identifier: Apache-2.0
"""Patches: values of slots, checked, to wherever they belong in the kernarg memory of one replay.

What a choice of slots needs is kept, for the same slots are patched again and again. Decides not
when a patch may happen (`replay.py`). Values become bytes as `kernarg.encode` says, which refuses what does not fit;
plain numbers of a whole choice take one `struct.pack`, checked against it in `tests/test_patching.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .encoders.emit import apply_patches
from .errors import NotRecorded
from .kernarg import TYPES, Slot, encode, slot_bytes

if TYPE_CHECKING:
    from .program import Program

_CELL: Final = 8  # bytes of a value among the staged ones
_CHOICES: Final = 64  # how many are kept
_PLAIN: Final = frozenset({int, float})  # what struct takes as `encode` does; bool is of neither type


@dataclass(frozen=True, slots=True)
class Choice:
    """Some slots in an order: the values that are about to be patched, and where they go.

    `staged`: uint8 with eight bytes for each slot, whose memory `cells` is. `rows`: those of `apply_patches`.
    """

    slots: tuple[Slot, ...]
    pack: Callable[..., bytes]
    staged: NDArray[np.uint8]
    cells: memoryview
    rows: NDArray[np.uint64]


class Patches:
    """The slots of a replay whose kernarg arena is `kernarg`. `missing` are those that have no value yet."""

    def __init__(self, program: Program, kernarg: NDArray[np.uint8]) -> None:
        self._program, self._kernarg = program, kernarg
        self._slots = {slot.name: slot for slot in program.slots}
        self._numbers = {slot.name: number for number, slot in enumerate(program.slots)}
        self.missing = {slot.name for slot in program.slots if slot.default is None}
        self._choices: dict[tuple[str, ...], Choice] = {}

    def stage(self, values: Mapping[str, Any]) -> Choice:
        """Check names and values and have them ready, all or none.

        Raises NotRecorded for a name without a slot, RecordError for a value that does not fit its type.
        """
        choice = self._choices.get(tuple(values)) or self._choice(tuple(values))
        given = values.values()
        data = None
        if _PLAIN.issuperset(map(type, given)):
            try:
                data = choice.pack(*given)
            except (struct.error, OverflowError):
                data = None  # `encode` says which one, and why
        choice.cells[:] = data or _encoded(choice.slots, given)
        return choice

    def apply(self, choice: Choice) -> None:
        """Copy what was staged to where it belongs: one call of compiled code, which no signal handler interrupts."""
        apply_patches(self._kernarg, choice.rows, choice.staged)
        if self.missing:
            self.missing.difference_update(slot.name for slot in choice.slots)

    def _choice(self, names: tuple[str, ...]) -> Choice:
        slots = tuple(self._known(name) for name in names)
        rows = [_points(self._program, self._numbers[name], at) for at, name in enumerate(names)]
        staged = np.zeros(_CELL * len(names), np.uint8)
        pack = struct.Struct("<" + "".join(map(_cell, slots))).pack
        made = Choice(slots, pack, staged, staged.data, np.concatenate([np.zeros((0, 3), np.uint64), *rows]))
        if len(self._choices) >= _CHOICES:
            self._choices.clear()
        self._choices[names] = made
        return made

    def _known(self, name: str) -> Slot:
        if name not in self._slots:
            raise NotRecorded(
                "RL1201",
                where="Replay.patch",
                seen=f"slot {name!r}",
                allowed=", ".join(sorted(self._slots)) or "no slots in this plan",
                do="use the name given to rl.slot(...)",
            )
        return self._slots[name]


def _encoded(slots: Sequence[Slot], values: Collection[Any]) -> bytes:
    pairs = zip(slots, values, strict=True)
    return b"".join(encode(slot.type, value, f"slot {slot.name!r}").ljust(_CELL, b"\0") for slot, value in pairs)


def _cell(slot: Slot) -> str:
    """The value and zeros, as `struct` spells them."""
    return f"{TYPES[slot.type][1:]}{_CELL - slot_bytes(slot.type)}x"


def _points(program: Program, slot: int, place: int) -> NDArray[np.uint64]:
    """Where the value at `place` of the staged ones goes: rows of offset, source and size in bytes."""
    rows = program.patches[program.patches["slot"] == slot]
    made = np.zeros((len(rows), 3), np.uint64)
    made[:, 0], made[:, 1], made[:, 2] = rows["offset"], _CELL * place, rows["size"]
    return made
