# SPDX-License-Identifier: Apache-2.0
"""The plain twin of `emit.py`: the same words and relocations, made one packet at a time with `Packet.pack`.

Slow and obvious. Knows registers by name and values as they are meant; keeps its own shadow of what was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from redline.encoders import emit
from redline.encoders.table import FamilyTable

# What a caller's array holds where room is left for words.
ROOM = 0xDEADDEAD

# One relocation: dword, kind, half, index, addend, as in the RELOC dtype.
Reloc = tuple[int, ...]


class Want(NamedTuple):
    """What a register shall hold: a value, or one half of the address that a table has at a place."""

    register: str
    value: int = 0
    kind: int = -1
    half: int = 0
    place: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        """Two registers are the same when this is: by value, or by source, and an arena has one high half."""
        if self.kind < 0:
            return (self.value,)
        anywhere = self.kind == emit.KERNARG and self.half == 1
        return (self.kind, self.half, None if anywhere else self.place)


def program(table: FamilyTable, ops: Sequence[Any], *, elide: bool) -> tuple[list[int], list[Reloc]]:
    """Words and relocations of the operations."""
    words: list[int] = []
    relocs: list[Reloc] = []
    held: dict[str, tuple[object, ...]] = {}
    for place, op in enumerate(ops):
        if op["code"] in (emit.DISPATCH, emit.SETUP):
            _dispatch(table, op, words, relocs, held, elide)
        elif op["code"] == emit.WORDS:
            relocs.append((len(words), emit.WORDS_HERE, 0, place, 0))
            words += [ROOM] * int(op["value"])
        else:
            _fence(table, op, words, relocs)
    return words, relocs


def _fence(table: FamilyTable, op: Any, words: list[int], relocs: list[Reloc]) -> None:
    code, value = op["code"], int(op["value"])
    if code == emit.ACQUIRE:
        words += [*table.form("acquire")[:-1], int(op["gcr"])]
    elif code == emit.DRAIN:
        words += table.form("drain")
    elif code == emit.FENCE_ZERO:
        words += _addressed(table.form("write_data", [0]), 2, op, len(words), relocs)
    else:
        words += _addressed(table.form("fence_release", DATA_LO=value), 3, op, len(words), relocs)
        words += _addressed(table.form("wait_memory", REFERENCE=value), 2, op, len(words), relocs)


def _addressed(packet: list[int], at: int, op: Any, start: int, relocs: list[Reloc]) -> list[int]:
    """The packet with the fence word's address at `at`."""
    if op["fence_reloc"] >= 0:
        relocs += [(start + at + half, emit.OWNED, half, int(op["fence_reloc"]), 0) for half in (0, 1)]
        return packet
    fence = int(op["fence"])
    return [*packet[:at], fence & 0xFFFFFFFF, fence >> 32, *packet[at + 2 :]]


def _wanted(op: Any) -> list[Want]:
    threads = [Want(f"NUM_THREAD_{axis}", int(n)) for axis, n in zip("XYZ", op["threads"], strict=True)]
    user = [Want(f"USER_DATA_{i}") for i in range(int(op["user_count"]))]
    at, kernarg = int(op["kernarg_at"]), int(op["kernarg"])
    if at != emit.NO_KERNARG:
        halves = ((0, kernarg & 0xFFFFFFFF), (1, kernarg >> 32))
        user[at : at + 2] = [
            _address(f"USER_DATA_{at + half}", emit.KERNARG, half, int(op["kernarg_reloc"]), value)
            for half, value in halves
        ]
    entry = int(op["entry"])
    return [
        *threads,
        _address("PGM_LO", emit.KERNEL_ENTRY, 0, int(op["entry_reloc"]), entry >> 8 & 0xFFFFFFFF),
        _address("PGM_HI", emit.KERNEL_ENTRY, 1, int(op["entry_reloc"]), entry >> 40),
        Want("PGM_RSRC1", int(op["rsrc1"])),
        Want("PGM_RSRC2", int(op["rsrc2"])),
        Want("RESOURCE_LIMITS"),
        Want("PGM_RSRC3", int(op["rsrc3"])),
        *user,
    ]


def _address(register: str, kind: int, half: int, index: int, value: int) -> Want:
    return Want(register, value) if index < 0 else Want(register, 0, kind, half, index)


def _dispatch(
    table: FamilyTable,
    op: Any,
    words: list[int],
    relocs: list[Reloc],
    held: dict[str, tuple[object, ...]],
    elide: bool,
) -> None:
    needed = [want for want in _wanted(op) if not (elide and held.get(want.register) == want.identity)]
    held |= {want.register: want.identity for want in needed}
    runs: list[list[Want]] = []
    for want in needed:
        if runs and _offset(table, want) == _offset(table, runs[-1][-1]) + 1:
            runs[-1].append(want)
        else:
            runs.append([want])
    for run in runs:
        relocs += [
            (len(words) + 2 + i, want.kind, want.half, want.place, 0) for i, want in enumerate(run) if want.kind >= 0
        ]
        words += table.packet["SET_SH_REG"].pack([want.value for want in run], REG_OFFSET=_offset(table, run[0]))
    if op["code"] == emit.SETUP:
        return
    dims = {f"DIM_{axis}": int(n) for axis, n in zip("XYZ", op["dims"], strict=True)}
    initiator = table.initiator.unpack(int(op["initiator"]))
    words += table.form("dispatch", (), **dims, **initiator)


def _offset(table: FamilyTable, want: Want) -> int:
    return table.register[f"COMPUTE_{want.register}"].offset
