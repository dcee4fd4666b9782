# SPDX-License-Identifier: Apache-2.0
"""Turn PM4 words back into packets, fields and text, from the tables that the encoder uses.

Strict: an unknown opcode or register, a wrong count, a set reserved bit or a cut-off packet is a problem,
named with its dword. Knows nothing about what a stream should do; a linter may ask that of the commands found
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from redline.encoders.families import family_for
from redline.encoders.table import HEADER, PAD_COUNT, FamilyTable, Packet, Register, Word, dword
from redline.errors import EncodeError


@dataclass(frozen=True)
class Command:
    """One packet of a stream. `dword` is where its header stands; `problem` is empty when all of it is
    understood.
    """

    dword: int
    words: tuple[int, ...]
    name: str
    fields: dict[str, int]
    tail: tuple[int, ...] = ()
    problem: str = ""

    @property
    def registers(self) -> dict[int, int]:
        """SET_SH_REG: offset -> value. Empty for other packets."""
        if self.name != "SET_SH_REG" or not self.fields:
            return {}
        return {self.fields["REG_OFFSET"] + i: value for i, value in enumerate(self.tail)}


def decode(words: Iterable[int], target: str | FamilyTable) -> list[Command]:
    """Every packet of a stream; the first problem is an EncodeError that names its dword."""
    commands = []
    for command in read(words, target):
        if command.problem:
            raise EncodeError(
                "RL0508",
                where=f"dword {command.dword}",
                seen=command.problem,
                allowed="packets, registers and bits of the target's tables",
                do="check the words and the target that they are for",
            )
        commands.append(command)
    return commands


def read(words: Iterable[int], target: str | FamilyTable) -> Iterator[Command]:
    """Every packet of a stream, those with a problem included. A packet of unknown kind is skipped by its
    count.
    """
    table = family_for(target) if isinstance(target, str) else target
    stream = [int(word) for word in words]
    at = 0
    while at < len(stream):
        command = _command(table, stream, at)
        yield command
        at += len(command.words)


def text(command: Command, target: str | FamilyTable) -> list[str]:
    """One line for each dword: index, word, meaning."""
    table = family_for(target) if isinstance(target, str) else target
    meanings = _meanings(table, command)
    lines = [
        f"{command.dword + i:6}  {word:08X}  {meaning}".rstrip()
        for i, (word, meaning) in enumerate(zip(command.words, meanings, strict=True))
    ]
    return [*lines, f"        !! {command.problem}"] if command.problem else lines


def _command(table: FamilyTable, stream: Sequence[int], at: int) -> Command:
    word = stream[at]
    if not 0 <= word <= 0xFFFFFFFF or word >> 30 != 3:
        return Command(at, (word,), "?", {}, problem=f"{word:#010x} is no type-3 header")
    opcode, count = HEADER.by_name["OPCODE"].unpack(word), HEADER.by_name["COUNT"].unpack(word)
    packet = next((item for item in table.packets if item.opcode == opcode), None)
    size = 1 if count == PAD_COUNT else count + 2
    found = tuple(stream[at : at + size])
    if packet is None:
        return Command(at, found, "?", {}, problem=f"opcode {opcode:#04x} is not in the tables of {table.name}")
    try:
        return _understood(table, packet, at, found, size)
    except EncodeError as error:
        return Command(at, found, packet.name, {}, problem=f"{error.where}: {error.seen}, not {error.allowed}")


def _understood(table: FamilyTable, packet: Packet, at: int, words: tuple[int, ...], size: int) -> Command:
    if len(words) < size:
        raise _wrong(packet, f"a packet of {size} dwords", f"{len(words)} to the end of the stream")
    if size == 1 and not packet.words:
        _same_header(packet, words[0], packet.pad())
        return Command(at, words, packet.name, {})
    tail = size - packet.dwords
    if tail < 0 or bool(tail) != bool(packet.tail):
        raise _wrong(packet, f"{size} dwords", f"{packet.dwords}{' and more' if packet.tail else ''}")
    _same_header(packet, words[0], packet.header(tail))
    fields = packet.fields(words[1 : packet.dwords])
    command = Command(at, words, packet.name, fields, words[packet.dwords :])
    for value in command.tail:
        dword(packet.tail).unpack(value)
    for offset, value in command.registers.items():
        _register(table, offset).unpack(value)
    return command


def _wrong(packet: Packet, seen: str, allowed: str) -> EncodeError:
    return EncodeError("RL0509", where=packet.name, seen=seen, allowed=allowed, do="check the count of the header")


def _same_header(packet: Packet, seen: int, wanted: int) -> None:
    if seen != wanted:
        raise _wrong(packet, f"header {seen:#010x}", f"{wanted:#010x}")


def _register(table: FamilyTable, offset: int) -> Register:
    if offset not in table.register_at:
        name = table.queue_owned_at.get(offset, "no register of the tables")
        raise EncodeError(
            "RL0508",
            where=f"SET_SH_REG {offset:#x}",
            seen=name,
            allowed="a register that a launch writes",
            do="leave it to the queue",
        )
    return table.register_at[offset]


def _meanings(table: FamilyTable, command: Command) -> list[str]:
    """What each dword of a command says; empty behind the header where it is not understood."""
    size = len(command.words)
    head = f"{command.name}, {size} dword{'s' if size > 1 else ''}"
    if command.problem or len(command.words) == 1:
        return [head, *("" for _ in command.words[1:])]
    packet = table.packet[command.name]
    body = command.words[1 : packet.dwords]
    lines = [_meaning(word, value) for word, value in zip(packet.words, body, strict=True)]
    registers = [_meaning(table.register_at[offset], value) for offset, value in command.registers.items()]
    if registers:
        lines = [f"  from {table.register_at[command.fields['REG_OFFSET']].name}"]
    rest = registers or [f"  {packet.tail} {value:#x}" for value in command.tail]
    return [head, *lines, *rest]


def _meaning(word: Word, value: int) -> str:
    """The word's name and its fields that are not 0; a flag is its name alone."""
    found = [(item, item.unpack(value)) for item in word.fields]
    if len(found) == 1:
        return f"  {word.name} {found[0][0].text(found[0][1])}"
    shown = [
        item.name if item.high == item.low else f"{item.name}={item.text(number)}" for item, number in found if number
    ]
    return f"  {word.name} {' '.join(shown) or '0'}"
