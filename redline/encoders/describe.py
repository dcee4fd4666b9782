# SPDX-License-Identifier: Apache-2.0
"""A family's tables as text: registers, packets, forms and cache words, in columns or as Markdown.

The tables print themselves: nothing is said here that they do not know. Parses no arguments and prints nothing;
`redline tables` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redline.encoders.families import FAMILIES, family_for
from redline.encoders.table import FamilyTable, Value, Word


@dataclass(frozen=True)
class Section:
    """Rows under a title; every row has as many cells as `columns`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def named(name: str) -> list[FamilyTable]:
    """Families by target ("gfx1201"), by name ("gfx12.0") or by generation ("gfx12"); others are refused."""
    found = [table for table in FAMILIES if name in (table.name, table.name.split(".")[0])]
    return found or [family_for(name)]


def sections(table: FamilyTable) -> list[Section]:
    """Everything that the table knows."""
    return [
        Section(
            "Registers that a launch writes",
            ("register", "offset", "fields"),
            tuple((item.name, f"{item.offset:#x}", fields(item)) for item in table.registers),
        ),
        Section("Registers of the queue, never written", ("register", "offset"), _offsets(table.queue_owned)),
        Section("Registers that a launch may set to 0", ("register", "offset"), _offsets(table.not_needed)),
        Section("Packets", ("packet", "opcode", "dword", "fields"), tuple(_packets(table))),
        Section(
            "Forms that are emitted",
            ("form", "packet", "fields"),
            tuple((name, form.packet, _values(form.values)) for name, form in table.forms.items()),
        ),
        Section("Cache control", ("boundary", "GCR_CNTL"), tuple(_boundaries(table))),
    ]


def text(table: FamilyTable, *, markdown: bool = False) -> Iterator[str]:
    """The sections, line by line."""
    mark = "#" if markdown else ""
    yield f"{mark} {table.name}: {', '.join(table.targets)}".strip()
    yield from ("", f"Source: {table.source}.")
    for section in sections(table):
        yield from ("", f"{mark * 2} {section.title}".strip(), "")
        yield from _markdown(section) if markdown else _columns(section)


def fields(word: Word) -> str:
    """Every field with its bits and named values; reserved bits last."""
    parts = []
    for item in word.fields:
        bits = f"{item.low}" if item.high == item.low else f"{item.high}:{item.low}"
        values = ", ".join(f"{value} {name}" for name, value in item.names.items())
        parts.append(f"{item.name} [{bits}]" + (f" ({values})" if values else ""))
    if word.reserved:
        parts.append(f"reserved {word.reserved:#x}")
    return ", ".join(parts)


def _offsets(registers: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, f"{offset:#x}") for name, offset in sorted(registers.items(), key=lambda item: item[1]))


def _packets(table: FamilyTable) -> Iterator[tuple[str, ...]]:
    for packet in table.packets:
        opcode = f"{packet.opcode:#x}"
        for i, word in enumerate(packet.words, 1):
            yield packet.name, opcode, f"{i} {word.name}", fields(word)
        if packet.tail:
            yield packet.name, opcode, f"{packet.dwords} and on", packet.tail


def _values(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in values.items()) or "none"


def _value(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:#x}" if value > 9 else str(value)


def _boundaries(table: FamilyTable) -> Iterator[tuple[str, str]]:
    yield "entry, system acquire", f"{table.entry_gcr:#x}"
    yield "same agent, read through K and V", f"{table.acquire_gcr(k=True, v=True):#x}"
    yield "same agent, read through V", f"{table.acquire_gcr(k=False, v=True):#x}"
    yield "same agent, read through K", f"{table.acquire_gcr(k=True, v=False):#x}"
    yield "release to the system", f"{table.release_gcr:#x}"


def _markdown(section: Section) -> Iterator[str]:
    yield _row(section.columns)
    yield "|" + "---|" * len(section.columns)
    for row in section.rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    # A bar inside a cell would end it.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _columns(section: Section) -> Iterator[str]:
    widths = [max(len(row[i]) for row in (section.columns, *section.rows)) for i in range(len(section.columns))]
    for row in (section.columns, *section.rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
