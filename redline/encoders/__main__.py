# SPDX-License-Identifier: Apache-2.0
"""`python -m redline.encoders gfx12` prints tables as Markdown; `... decode gfx1201 FILE` explains a dump of
words.

The tables print themselves: nothing is said here that they do not know.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from redline.encoders.decode import read, text
from redline.encoders.families import FAMILIES, family_for
from redline.encoders.table import FamilyTable, Word
from redline.errors import RedlineError

EPILOG = """examples:
  python -m redline.encoders gfx12                tables of every gfx12 family
  python -m redline.encoders decode gfx1201 ib    FILE: hexadecimal words, or raw little-endian dwords
exit codes: 0 ok, 1 a dword is not understood, 2 usage"""


def tables(name: str) -> list[FamilyTable]:
    """Families by target ("gfx1201"), by name ("gfx12.0") or by generation ("gfx12")."""
    named = [table for table in FAMILIES if name in (table.name, table.name.split(".")[0])]
    return named or [family_for(name)]


def markdown(table: FamilyTable) -> Iterator[str]:
    """The table's registers, packets and cache words, line by line."""
    yield f"# {table.name}: {', '.join(table.targets)}"
    yield from ("", f"Source: {table.source}.")
    yield from ("", "## Registers", "", "| register | offset | fields |", "|---|---|---|")
    for register in table.registers:
        yield f"| {register.name} | {register.offset:#x} | {fields(register)} |"
    yield from ("", "## Registers of the queue, never written", "", "| register | offset |", "|---|---|")
    for name, offset in sorted(table.queue_owned.items(), key=lambda item: item[1]):
        yield f"| {name} | {offset:#x} |"
    yield from ("", "## Packets", "", "| packet | opcode | dword | fields |", "|---|---|---|---|")
    for packet in table.packets:
        for i, word in enumerate(packet.words, 1):
            yield f"| {packet.name} | {packet.opcode:#x} | {i} {word.name} | {fields(word)} |"
        if packet.tail:
            yield f"| {packet.name} | {packet.opcode:#x} | {packet.dwords} and on | {packet.tail} |"
    yield from ("", "## Cache control", "", "| boundary | GCR_CNTL |", "|---|---|")
    yield f"| entry, system acquire | {table.entry_gcr:#x} |"
    yield f"| same agent, read through K and V | {table.acquire_gcr(k=True, v=True):#x} |"
    yield f"| same agent, read through V | {table.acquire_gcr(k=False, v=True):#x} |"
    yield f"| same agent, read through K | {table.acquire_gcr(k=True, v=False):#x} |"
    yield f"| release to the system | {table.release_gcr:#x} |"


def fields(word: Word) -> str:
    """Every field with its bits and named values; reserved bits last."""
    parts = []
    for item in word.fields:
        bits = f"{item.low}" if item.high == item.low else f"{item.high}:{item.low}"
        named = ", ".join(f"{value} {name}" for name, value in item.names.items())
        parts.append(f"{item.name} [{bits}]" + (f" ({named})" if named else ""))
    if word.reserved:
        parts.append(f"reserved {word.reserved:#x}")
    return ", ".join(parts)


def read_words(path: Path) -> list[int]:
    """Words of a file: text in hexadecimal, separated by blanks or commas; else raw little-endian dwords."""
    data = path.read_bytes()
    try:
        return [int(word, 16) for word in data.decode("ascii").replace(",", " ").split()]
    except ValueError:
        if len(data) % 4:
            raise ValueError(f"{path}: {len(data)} bytes are neither hexadecimal words nor whole dwords") from None
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m redline.encoders",
        description="Print the tables of a GPU family as Markdown, or decode a dump of PM4 words.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", help="a family or target, or the word decode")
    parser.add_argument("rest", nargs="*", metavar="TARGET FILE", help="with decode")
    given = parser.parse_args(arguments)
    try:
        if given.what != "decode" and not given.rest:
            print("\n\n".join("\n".join(markdown(table)) for table in tables(given.what)))
            return 0
        if given.what == "decode" and len(given.rest) == 2:
            return _decode(*given.rest)
    except (RedlineError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    parser.print_usage(sys.stderr)
    return 2


def _decode(target: str, file: str) -> int:
    table, wrong = family_for(target), False
    for command in read(read_words(Path(file)), table):
        print("\n".join(text(command, table)))
        wrong |= bool(command.problem)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
