# SPDX-License-Identifier: Apache-2.0
"""Turn PM4 words back into packets, fields and text, from the tables that the encoder uses.

Strict: an unknown opcode or register, a wrong count, a set reserved bit or a cut-off packet is a problem,
named with its dword. Knows nothing about what a stream should do: `lint.py` asks that of the commands found
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from redline.encoders.families import family_for
from redline.encoders.table import HEADER, PAD_COUNT, FamilyTable, Packet, Word, dword
from redline.errors import EncodeError


@dataclass(frozen=True)
class Problem:
    """What is not understood at a dword. `rule`: "header", "opcode", "count", "reserved" or "register"."""

    dword: int
    rule: str
    text: str


# Problems after which nobody knows where the next packet starts.
STRUCTURAL = ("header", "opcode", "count")


@dataclass(frozen=True)
class Command:
    """One packet of a stream. `dword` is where its header stands; without problems all of it is understood.

    `fields` and `tail` are empty when the packet's size is wrong or its kind unknown.
    """

    dword: int
    words: tuple[int, ...]
    name: str
    fields: dict[str, int]
    tail: tuple[int, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def problem(self) -> str:
        """The first problem's text; empty when there is none."""
        return self.problems[0].text if self.problems else ""

    @property
    def whole(self) -> bool:
        """Whether kind and size are understood."""
        return not any(problem.rule in STRUCTURAL for problem in self.problems)

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
                where=f"dword {command.problems[0].dword}",
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
    meanings = explain(command, table)
    lines = [
        f"{command.dword + i:6}  {word:08X}  {meaning}".rstrip()
        for i, (word, meaning) in enumerate(zip(command.words, meanings, strict=True))
    ]
    return [*lines, *(f"        !! dword {problem.dword}: {problem.text}" for problem in command.problems)]


def header_of(word: int, room: int, table: FamilyTable) -> Packet | None:
    """The packet that a word is the header of, when its size is right and it fits in `room` dwords."""
    packet = table.packet_of.get(HEADER.by_name["OPCODE"].unpack(word))
    count = HEADER.by_name["COUNT"].unpack(word)
    size = 1 if count == PAD_COUNT else count + 2
    if word >> 30 != 3 or packet is None or _wrong_size(packet, size, min(size, room)):
        return None
    return packet


def hidden_packets(command: Command, table: FamilyTable) -> list[Command]:
    """The packets in a NOP's body, when it holds nothing but whole packets: another start address may begin there."""
    inside = list(read(command.tail, table)) if command.name == "NOP" else []
    return inside if not any(packet.problems for packet in inside) else []


def _command(table: FamilyTable, stream: Sequence[int], at: int) -> Command:
    word = stream[at]
    if not 0 <= word <= 0xFFFFFFFF or word >> 30 != 3:
        return Command(at, (word,), "?", {}, problems=(Problem(at, "header", f"{word:#010x} is no type-3 header"),))
    opcode, count = HEADER.by_name["OPCODE"].unpack(word), HEADER.by_name["COUNT"].unpack(word)
    packet = table.packet_of.get(opcode)
    size = 1 if count == PAD_COUNT else count + 2
    found = tuple(stream[at : at + size])
    if packet is None:
        text = f"opcode {opcode:#04x} is not in the tables of {table.name}"
        return Command(at, found, "?", {}, problems=(Problem(at, "opcode", text),))
    wrong = _wrong_size(packet, size, len(found))
    if wrong:
        return Command(at, found, packet.name, {}, problems=(Problem(at, "count", f"{packet.name}: {wrong}"),))
    fields = {
        item.name: item.unpack(value)
        for part, value in zip(packet.words, found[1:], strict=False)
        for item in part.fields
    }
    command = Command(at, found, packet.name, fields, found[packet.dwords :])
    return replace(command, problems=tuple(_problems(table, packet, command)))


def _wrong_size(packet: Packet, size: int, found: int) -> str:
    """What is wrong with a packet's size; empty when nothing is. A NOP may be its header alone."""
    if found < size:
        return f"a packet of {size} dwords, not {found} to the end of the stream"
    tail = size - packet.dwords
    if (size == 1 and not packet.words) or (tail >= 0 and bool(tail) == bool(packet.tail)):
        return ""
    return f"{size} dwords, not {packet.dwords}{' and more' if packet.tail else ''}"


def _problems(table: FamilyTable, packet: Packet, command: Command) -> Iterator[Problem]:
    """Every problem of a packet of the right size, in order of dwords."""
    at, tail = command.dword, len(command.tail)
    header = packet.header(tail) if len(command.words) > 1 else packet.pad()
    if command.words[0] != header:
        yield Problem(at, "reserved", f"{packet.name}: header {command.words[0]:#010x}, not {header:#010x}")
    for i, (part, value) in enumerate(zip(packet.words, command.words[1:], strict=False), 1):
        yield from _reserved(at + i, f"{packet.name}.{part.name}", part, value)
    registers = command.registers
    for i, value in enumerate(command.tail, packet.dwords):
        offset = command.fields.get("REG_OFFSET", 0) + i - packet.dwords
        if not registers:
            yield from _reserved(at + i, packet.name, dword(packet.tail), value)
        elif offset in table.register_at:
            yield from _reserved(at + i, table.register_at[offset].name, table.register_at[offset], value)
        else:
            text = f"SET_SH_REG {offset:#x}: {_other_register(table, offset)}, not a register that a launch writes"
            yield Problem(at + i, "register", text)


def _reserved(at: int, where: str, word: Word, value: int) -> Iterator[Problem]:
    if value & word.reserved or not 0 <= value <= 0xFFFFFFFF:
        bits = f"sets reserved bits {value & word.reserved:#x}, not bits of {0xFFFFFFFF & ~word.reserved:#010x}"
        yield Problem(at, "reserved", f"{where}: {value:#010x} {bits}")


def _other_register(table: FamilyTable, offset: int) -> str:
    known = table.queue_owned_at | table.not_needed_at
    return known.get(offset, "no register of the tables")


def explain(command: Command, table: FamilyTable) -> list[str]:
    """What each dword of a command says; empty behind the header where it is not understood."""
    return _explained(command, table, _skipped(command, table))


def _explained(command: Command, table: FamilyTable, skipped: list[str]) -> list[str]:
    size = len(command.words)
    head = f"{command.name}, {size} dword{'s' if size > 1 else ''}"
    if not command.whole or size == 1:
        return [head, *("" for _ in command.words[1:])]
    packet = table.packet[command.name]
    body = command.words[1 : packet.dwords]
    lines = [_meaning(word, value) for word, value in zip(packet.words, body, strict=True)]
    registers = [_register_meaning(table, offset, value) for offset, value in command.registers.items()]
    if registers:
        lines = [f"  from {_register_name(table, command.fields['REG_OFFSET'])}"]
    rest = registers or skipped or [f"  {packet.tail} {value:#x}" for value in command.tail]
    return [head, *lines, *rest]


def _skipped(command: Command, table: FamilyTable) -> list[str]:
    """A NOP inside a NOP is not opened: thousands may be nested, each longer to explain than the one inside it."""
    inside = hidden_packets(command, table)
    return [f"  skipped: {line.strip()}" for packet in inside for line in _explained(packet, table, [])]


def _register_name(table: FamilyTable, offset: int) -> str:
    known = table.register_at.get(offset)
    return known.name if known else f"{offset:#x}, {_other_register(table, offset)}"


def _register_meaning(table: FamilyTable, offset: int, value: int) -> str:
    known = table.register_at.get(offset)
    return _meaning(known, value) if known else f"  {_register_name(table, offset)} {value:#x}"


def _meaning(word: Word, value: int) -> str:
    """The word's name and its fields that are not 0; a flag is its name alone."""
    found = [(item, item.unpack(value)) for item in word.fields]
    if len(found) == 1:
        return f"  {word.name} {found[0][0].text(found[0][1])}"
    shown = [
        item.name if item.high == item.low else f"{item.name}={item.text(number)}" for item, number in found if number
    ]
    return f"  {word.name} {' '.join(shown) or '0'}"
