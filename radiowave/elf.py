# SPDX-License-Identifier: Apache-2.0
"""ELF64 little-endian tables: header, sections, segments, symbols, relocations, notes.

Every read is checked against the file, so broken and hostile bytes raise `CodeObjectError` and nothing else,
and cost no more time than their size allows. What the tables mean for an AMDGPU object is not known here:
`code_object.py` reads linked objects and `linker.py` relocatable ones. Nothing else in the package reads ELF.

Numbers: System V gABI (elf.h) and LLVM's `ELF.h`; layouts as in gABI chapters 4 and 5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from radiowave.errors import CodeObjectError

MAGIC = b"\x7fELF"
ELFCLASS64, ELFDATA2LSB, EV_CURRENT = 2, 1, 1
EM_AMDGPU, ELFOSABI_AMDGPU_HSA = 224, 64
ET_REL, ET_DYN = 1, 3
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC = 1, 2, 3, 4, 5, 6
SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 7, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
SHN_UNDEF, SHN_LORESERVE, SHN_ABS = 0, 0xFF00, 0xFFF1
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE = 0, 1, 2, 3, 4
STV_DEFAULT, STV_INTERNAL, STV_HIDDEN, STV_PROTECTED = 0, 1, 2, 3
NT_AMDGPU_METADATA = 32

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
NHDR = struct.Struct("<III")

MAX_FILE_BYTES = 1 << 30
# Mangled names of templates run to a few thousand characters.
MAX_NAME_BYTES = 16384
# Rows of one table. The largest libraries have some ten thousand kernels in one object, with two symbols each.
MAX_ROWS = 1 << 20
# Names may share their ends, and tables their bytes; an object that repeats more than this is damage, and would cost
# memory without end.
MAX_REPETITION = 4
# What a note takes in memory beside its bytes.
_NOTE_COST = 256


@dataclass(frozen=True)
class Section:
    """One row of the section header table, with its name."""

    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    nbytes: int
    link: int
    info: int
    align: int
    entry_bytes: int


@dataclass(frozen=True)
class Segment:
    """One row of the program header table."""

    type: int
    flags: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int
    align: int


@dataclass(frozen=True)
class Symbol:
    """One row of a symbol table, with its name."""

    name: str
    value: int
    nbytes: int
    binding: int
    type: int
    visibility: int
    section: int


@dataclass(frozen=True)
class Relocation:
    """One row of a relocation table."""

    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Note:
    """One note: who wrote it, its type, and its bytes."""

    owner: bytes
    type: int
    payload: bytes


class Elf:
    """The tables of one ELF64 file, checked against the file's size."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._budget = MAX_REPETITION * len(data) + MAX_NAME_BYTES
        if len(data) > MAX_FILE_BYTES:
            raise self.error("RW0313", "file", f"{len(data):,} bytes", f"up to {MAX_FILE_BYTES:,} bytes")
        if data[:4] != MAGIC:
            raise self.error("RW0301", "file offset 0", f"bytes {data[:4].hex(' ') or 'none'}", "7f 45 4c 46")
        fields = EHDR.unpack(self.bytes_at(0, EHDR.size, "ELF header"))
        self.ident: bytes = fields[0]
        self.type, self.machine, self.flags, self.entry = fields[1], fields[2], fields[7], fields[4]
        if self.ident[4:7] != bytes((ELFCLASS64, ELFDATA2LSB, EV_CURRENT)):
            seen = f"class, data, version {self.ident[4:7].hex(' ')}"
            raise self.error("RW0302", "ELF header bytes 4..6", seen, "02 01 01 (ELF64, little-endian)")
        self.segments = tuple(self._segments(fields[5], fields[9], fields[10]))
        self.sections = tuple(self._sections(fields[6], fields[11], fields[12], fields[13]))

    def error(self, code: str, where: str, seen: str, allowed: str, do: str = "") -> CodeObjectError:
        """An error about this file."""
        return CodeObjectError(
            code, where=where, seen=seen, allowed=allowed, do=do or "rebuild or copy the object again"
        )

    def check_range(self, offset: int, nbytes: int, where: str) -> None:
        """An error that names the table when these bytes are not all in the file."""
        if offset + nbytes > len(self.data):
            seen = f"bytes {offset:#x}..{offset + nbytes:#x}"
            raise self.error("RW0307", where, seen, f"inside the file of {len(self.data):#x} bytes")

    def bytes_at(self, offset: int, nbytes: int, where: str) -> bytes:
        """Bytes of the file, or an error that names the table they belong to."""
        self.check_range(offset, nbytes, where)
        return self.data[offset : offset + nbytes]

    def spend(self, nbytes: int, where: str) -> None:
        """Count bytes that are kept, names and notes; an object that names its own bytes over and over is refused."""
        self._budget -= nbytes
        if self._budget < 0:
            allowed = f"{MAX_REPETITION} times the file's {len(self.data):,} bytes in names and notes"
            raise self.error("RW0313", where, "more", allowed)

    def section_bytes(self, section: Section) -> bytes:
        """The file bytes of a section."""
        return self.bytes_at(section.offset, section.nbytes, f"section {section.name}")

    def symbols(self, table: Section) -> list[Symbol]:
        """All symbols of a symbol table, in order, the null symbol included."""
        strings = self._linked_strings(table)
        where = f"symbol table {table.name}"
        raw = self._rows(table, SYM, where)
        return [
            Symbol(_name(self, strings, name, where), value, nbytes, info >> 4, info & 15, other & 3, section)
            for name, info, other, section, value, nbytes in raw
        ]

    def relocations(self, table: Section) -> list[Relocation]:
        """All rows of a SHT_RELA section."""
        rows = self._rows(table, RELA, f"relocations {table.name}")
        return [Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend) for offset, info, addend in rows]

    def notes(self) -> list[Note]:
        """The notes of every PT_NOTE segment, and where there is none, of every SHT_NOTE section."""
        places = [(s.offset, s.file_bytes) for s in self.segments if s.type == PT_NOTE]
        if not places:
            places = [(s.offset, s.nbytes) for s in self.sections if s.type == SHT_NOTE]
        return [note for offset, nbytes in places for note in self._notes_at(offset, nbytes)]

    def _notes_at(self, offset: int, nbytes: int) -> Iterator[Note]:
        raw, at = self.bytes_at(offset, nbytes, "notes"), 0
        self.spend(nbytes, "notes")
        while at + NHDR.size <= len(raw):
            owner_bytes, payload_bytes, kind = NHDR.unpack_from(raw, at)
            payload_at = at + NHDR.size + _up(owner_bytes, 4)
            if payload_at + payload_bytes > len(raw):
                seen = f"owner of {owner_bytes:,} and payload of {payload_bytes:,} bytes"
                raise self.error("RW0307", f"note at {offset + at:#x}", seen, f"{len(raw) - at:,} bytes left")
            self.spend(_NOTE_COST, f"note at {offset + at:#x}")
            owner = raw[at + NHDR.size : at + NHDR.size + owner_bytes].rstrip(b"\0")
            yield Note(owner, kind, raw[payload_at : payload_at + payload_bytes])
            at = payload_at + _up(payload_bytes, 4)

    def _rows(self, table: Section, layout: struct.Struct, where: str) -> list[tuple[int, ...]]:
        if table.entry_bytes != layout.size or table.nbytes % layout.size:
            seen = f"{table.nbytes} bytes in rows of {table.entry_bytes}"
            raise self.error("RW0307", where, seen, f"rows of {layout.size} bytes")
        if table.nbytes > MAX_ROWS * layout.size:
            raise self.error("RW0313", where, f"{table.nbytes // layout.size:,} rows", f"up to {MAX_ROWS:,}")
        return list(layout.iter_unpack(self.section_bytes(table)))

    def _linked_strings(self, table: Section) -> bytes:
        if table.link >= len(self.sections) or self.sections[table.link].type != SHT_STRTAB:
            seen = f"sh_link {table.link}"
            raise self.error("RW0307", f"section {table.name}", seen, "the index of a string table")
        return self.section_bytes(self.sections[table.link])

    def _segments(self, offset: int, entry_bytes: int, count: int) -> Iterator[Segment]:
        if count and entry_bytes != PHDR.size:
            raise self.error("RW0307", "ELF header e_phentsize", str(entry_bytes), str(PHDR.size))
        for row in PHDR.iter_unpack(self.bytes_at(offset, count * PHDR.size, "program headers")):
            kind, flags, at, address, _physical, file_bytes, memory_bytes, align = row
            yield Segment(kind, flags, at, address, file_bytes, memory_bytes, align)

    def _sections(self, offset: int, entry_bytes: int, count: int, names: int) -> Iterator[Section]:
        if not count:
            return
        if entry_bytes != SHDR.size:
            raise self.error("RW0307", "ELF header e_shentsize", str(entry_bytes), str(SHDR.size))
        rows = list(SHDR.iter_unpack(self.bytes_at(offset, count * SHDR.size, "section headers")))
        if names >= count:
            raise self.error("RW0307", "ELF header e_shstrndx", str(names), f"below {count}")
        strings = self.bytes_at(rows[names][4], rows[names][5], "section names")
        for index, row in enumerate(rows):
            name = _name(self, strings, row[0], f"section header {index}")
            yield Section(index, name, *row[1:])


def _name(elf: Elf, strings: bytes, at: int, where: str) -> str:
    end = strings.find(b"\0", at, at + MAX_NAME_BYTES) if at < len(strings) else -1
    if end < 0:
        seen = f"a name at {at:#x} without an end"
        raise elf.error("RW0307", where, seen, f"below {MAX_NAME_BYTES} bytes, inside {len(strings):#x} bytes")
    elf.spend(end - at, where)
    # A mangled name is ASCII; whatever else stands there must still print.
    return strings[at:end].decode("utf-8", errors="backslashreplace")


def _up(value: int, align: int) -> int:
    return (value + align - 1) // align * align
