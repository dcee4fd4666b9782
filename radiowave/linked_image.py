# SPDX-License-Identifier: Apache-2.0
"""Write a linked AMDGPU code object: addresses, segments, dynamic tables, symbol tables, headers.

Knows nothing of relocatable input; `linker.py` fills the sections and resolves relocations. Layout as ROCr's
loader wants it: PT_LOADs in address order inside one allocation, `.symtab` kept (ROCr looks kernels up
there), RELA relocations with sh_info 0. Four loadable segments: read-only, code, data that is read-only once
relocated, data.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from radiowave import elf as e

PAGE = 0x1000
R_AMDGPU_RELATIVE64 = 13
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT, DT_STRSZ, DT_SYMENT = (
    0, 4, 5, 6, 7, 8, 9, 10, 11,
)  # fmt: skip
DT_RELACOUNT = 0x6FFFFFF9


@dataclass
class Output:
    """One output section: its bytes, and after layout its address and file offset."""

    name: str
    type: int
    flags: int
    align: int = 1
    content: bytearray = field(default_factory=bytearray)
    nbytes: int = 0
    entry_bytes: int = 0
    address: int = 0
    offset: int = 0
    index: int = 0

    def append(self, raw: bytes, nbytes: int, align: int) -> int:
        """Add an input section behind what is there; its offset in this one."""
        self.align = max(self.align, align)
        at = _up(self.nbytes, align)
        if self.type != e.SHT_NOBITS:
            self.content += bytes(at - self.nbytes) + raw
            nbytes = len(raw)
        self.nbytes = at + nbytes
        return at

    def fill(self, raw: bytes) -> None:
        """Set the whole content."""
        self.content = bytearray(raw)
        self.nbytes = len(raw)


@dataclass(frozen=True)
class Placed:
    """A symbol of the input with its place: an offset in an output section, or an absolute value."""

    symbol: e.Symbol
    output: Output | None
    offset: int

    @property
    def is_exported(self) -> bool:
        """Whether the dynamic symbol table lists it."""
        visible = self.symbol.visibility in (e.STV_DEFAULT, e.STV_PROTECTED)
        return visible and self.symbol.binding != e.STB_LOCAL and self.output is not None

    @property
    def is_local(self) -> bool:
        """Whether nothing outside the object may name it: hidden symbols become local when linked."""
        return self.symbol.binding == e.STB_LOCAL or self.symbol.visibility in (e.STV_HIDDEN, e.STV_INTERNAL)

    def pack(self, name_at: int) -> bytes:
        """Its row in a symbol table."""
        binding = e.STB_LOCAL if self.is_local else self.symbol.binding
        section = self.output.index if self.output else e.SHN_ABS
        value = self.offset + (self.output.address if self.output else 0)
        info = binding << 4 | self.symbol.type
        return e.SYM.pack(name_at, info, self.symbol.visibility, section, value, self.symbol.nbytes)


@dataclass(frozen=True)
class DynamicRelocation:
    """R_AMDGPU_RELATIVE64: the loader stores load address + addend at `address`."""

    address: int
    addend: int


class Image:
    """The output file while it grows."""

    def __init__(self, *, flags: int, abi_version: int) -> None:
        a, w, x = e.SHF_ALLOC, e.SHF_WRITE, e.SHF_EXECINSTR
        self.flags, self.abi_version = flags, abi_version
        self.note = Output(".note", e.SHT_NOTE, a, 4)
        self.dynsym = Output(".dynsym", e.SHT_DYNSYM, a, 8, entry_bytes=e.SYM.size)
        self.hash = Output(".hash", e.SHT_HASH, a, 4, entry_bytes=4)
        self.dynstr = Output(".dynstr", e.SHT_STRTAB, a)
        self.rela = Output(".rela.dyn", e.SHT_RELA, a, 8, entry_bytes=e.RELA.size)
        self.rodata = Output(".rodata", e.SHT_PROGBITS, a)
        self.text = Output(".text", e.SHT_PROGBITS, a | x, 256)
        self.dynamic = Output(".dynamic", e.SHT_DYNAMIC, a | w, 8, entry_bytes=16)
        self.got = Output(".got", e.SHT_PROGBITS, a | w, 8)
        self.relro = Output(".data.rel.ro", e.SHT_PROGBITS, a | w)
        self.data = Output(".data", e.SHT_PROGBITS, a | w)
        self.bss = Output(".bss", e.SHT_NOBITS, a | w)
        self.symtab = Output(".symtab", e.SHT_SYMTAB, 0, 8, entry_bytes=e.SYM.size)
        self.shstrtab = Output(".shstrtab", e.SHT_STRTAB, 0)
        self.strtab = Output(".strtab", e.SHT_STRTAB, 0)
        self.relative: list[DynamicRelocation] = []
        self._symbols: list[Placed] = []

    def lay_out(self, symbols: list[Placed], *, dynamic_relocations: int) -> None:
        """Give every section its address. Sizes are known now; values that depend on addresses follow in
        `write`."""
        self._symbols = sorted(symbols, key=lambda placed: not placed.is_local)  # stable: locals come first
        self._size_tables(dynamic_relocations)
        self._groups = [
            (e.PF_R, _present(self.note, self.dynsym, self.hash, self.dynstr, self.rela, self.rodata)),
            (e.PF_R | e.PF_X, _present(self.text)),
            (e.PF_R | e.PF_W, _present(self.dynamic, self.got, self.relro)),
            (e.PF_R | e.PF_W, _present(self.data, self.bss)),
        ]
        self._groups = [(flags, outputs) for flags, outputs in self._groups if outputs]
        offset = e.EHDR.size + e.PHDR.size * (len(self._groups) + 5)
        address = offset
        for position, (_flags, outputs) in enumerate(self._groups):
            offset = _up(offset, max(output.align for output in outputs))
            address = offset if position == 0 else _up(address, PAGE) + offset % PAGE
            address, offset = _place(outputs, address, offset)
        loaded = [output for _flags, outputs in self._groups for output in outputs]
        self._sections = [*loaded, self.symtab, self.shstrtab, self.strtab]
        for index, output in enumerate(self._sections, start=1):
            output.index = index

    def _size_tables(self, dynamic_relocations: int) -> None:
        exported = [placed for placed in self._symbols if placed.is_exported]
        names, self._dynamic_names = _string_table([placed.symbol.name for placed in exported])
        self.dynstr.fill(names)
        self.dynsym.fill(bytes(e.SYM.size * (len(exported) + 1)))
        self.hash.fill(_hash_table([placed.symbol.name for placed in exported]))
        self.rela.fill(bytes(e.RELA.size * dynamic_relocations))
        self.dynamic.fill(bytes(16 * (6 + (4 if dynamic_relocations else 0))))

    def write(self) -> bytes:
        """The finished file."""
        self._fill_tables()
        file = bytearray()
        for output in self._sections:
            if output.index >= self.symtab.index:  # not loaded: placed behind everything else
                output.offset = _up(len(file), output.align)
            if output.type != e.SHT_NOBITS:
                file += bytes(output.offset - len(file)) + output.content
        headers_at = _up(len(file), 8)
        file += bytes(headers_at - len(file)) + self._section_headers()
        segments = self._program_headers()
        head = self._elf_header(len(segments), headers_at) + b"".join(segments)
        file[: len(head)] = head
        return bytes(file)

    def _fill_tables(self) -> None:
        exported = [placed for placed in self._symbols if placed.is_exported]
        self.dynsym.fill(_symbol_table(exported, self._dynamic_names))
        self.relative.sort(key=lambda row: row.address)
        rows = (e.RELA.pack(row.address, R_AMDGPU_RELATIVE64, row.addend) for row in self.relative)
        self.rela.fill(b"".join(rows))
        self.dynamic.fill(self._dynamic_entries())
        names, offsets = _string_table([placed.symbol.name for placed in self._symbols])
        self.strtab.fill(names)
        self.symtab.fill(_symbol_table(self._symbols, offsets))
        names, self._section_names = _string_table([output.name for output in self._sections])
        self.shstrtab.fill(names)

    def _dynamic_entries(self) -> bytes:
        entries = []
        if self.rela.nbytes:
            entries = [
                (DT_RELA, self.rela.address),
                (DT_RELASZ, self.rela.nbytes),
                (DT_RELAENT, e.RELA.size),
                (DT_RELACOUNT, len(self.relative)),
            ]
        entries += [
            (DT_SYMTAB, self.dynsym.address),
            (DT_SYMENT, e.SYM.size),
            (DT_STRTAB, self.dynstr.address),
        ]
        entries += [(DT_STRSZ, self.dynstr.nbytes), (DT_HASH, self.hash.address), (DT_NULL, 0)]
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)

    def _program_headers(self) -> list[bytes]:
        nbytes = e.PHDR.size * (len(self._groups) + 5)
        rows = [_segment(e.PT_PHDR, e.PF_R, e.EHDR.size, e.EHDR.size, nbytes, nbytes, 8)]
        for position, (flags, outputs) in enumerate(self._groups):
            rows.append(_segment_over(e.PT_LOAD, flags, outputs, PAGE, from_start=position == 0))
        relro = next(outputs for _flags, outputs in self._groups if self.dynamic in outputs)
        rows.append(_segment_over(e.PT_DYNAMIC, e.PF_R | e.PF_W, [self.dynamic], 8))
        rows.append(_segment_over(e.PT_GNU_RELRO, e.PF_R, relro, 1))
        rows.append(_segment(e.PT_GNU_STACK, e.PF_R | e.PF_W, 0, 0, 0, 0, 0))
        rows.append(_segment_over(e.PT_NOTE, e.PF_R, [self.note], 4))
        return rows

    def _section_headers(self) -> bytes:
        local = 1 + sum(placed.is_local for placed in self._symbols)
        linked = {
            ".dynsym": (self.dynstr.index, 1),
            ".hash": (self.dynsym.index, 0),
            ".rela.dyn": (self.dynsym.index, 0),
            ".dynamic": (self.dynstr.index, 0),
            ".symtab": (self.strtab.index, local),
        }
        rows = [bytes(e.SHDR.size)]
        for output in self._sections:
            link, info = linked.get(output.name, (0, 0))
            place = (
                output.address,
                output.offset,
                output.nbytes,
                link,
                info,
                output.align,
                output.entry_bytes,
            )
            rows.append(e.SHDR.pack(self._section_names[output.name], output.type, output.flags, *place))
        return b"".join(rows)

    def _elf_header(self, segments: int, headers_at: int) -> bytes:
        kind = bytes((e.ELFCLASS64, e.ELFDATA2LSB, e.EV_CURRENT, e.ELFOSABI_AMDGPU_HSA, self.abi_version))
        counts = (
            e.EHDR.size,
            e.PHDR.size,
            segments,
            e.SHDR.size,
            len(self._sections) + 1,
            self.shstrtab.index,
        )
        where = (0, e.EHDR.size, headers_at, self.flags)
        return e.EHDR.pack(e.MAGIC + kind, e.ET_DYN, e.EM_AMDGPU, e.EV_CURRENT, *where, *counts)


def _present(*outputs: Output) -> list[Output]:
    return [output for output in outputs if output.nbytes]


def _place(outputs: list[Output], address: int, offset: int) -> tuple[int, int]:
    """Place sections one behind another; the ends. Address and offset stay congruent modulo the page size."""
    for output in outputs:
        gap = -address % output.align
        output.address, output.offset = address + gap, offset + gap
        address = output.address + output.nbytes
        offset = output.offset + (0 if output.type == e.SHT_NOBITS else output.nbytes)
    return address, offset


def _string_table(names: list[str]) -> tuple[bytes, dict[str, int]]:
    table, offsets = bytearray(b"\0"), {"": 0}
    for name in names:
        if name not in offsets:
            offsets[name] = len(table)
            table += name.encode() + b"\0"
    return bytes(table), offsets


def _symbol_table(symbols: list[Placed], names: dict[str, int]) -> bytes:
    return bytes(e.SYM.size) + b"".join(placed.pack(names[placed.symbol.name]) for placed in symbols)


def _hash_table(names: list[str]) -> bytes:
    """DT_HASH with one bucket per symbol (gABI chapter 5, "Hash Table"). Symbol 0 is the null symbol."""
    buckets, chains = [0] * max(len(names), 1), [0] * (len(names) + 1)
    for symbol, name in enumerate(names, start=1):
        bucket = _elf_hash(name.encode()) % len(buckets)
        chains[symbol], buckets[bucket] = buckets[bucket], symbol
    words = [len(buckets), len(chains), *buckets, *chains]
    return struct.pack(f"<{len(words)}I", *words)


def _elf_hash(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def _segment(kind: int, flags: int, offset: int, address: int, in_file: int, in_memory: int, align: int) -> bytes:
    return e.PHDR.pack(kind, flags, offset, address, address, in_file, in_memory, align)


def _segment_over(kind: int, flags: int, outputs: list[Output], align: int, *, from_start: bool = False) -> bytes:
    first, last = outputs[0], outputs[-1]
    offset, address = (0, 0) if from_start else (first.offset, first.address)
    in_file = last.offset + (0 if last.type == e.SHT_NOBITS else last.nbytes) - offset
    in_memory = last.address + last.nbytes - address
    return _segment(kind, flags, offset, address, in_file, in_memory, align)


def _up(value: int, align: int) -> int:
    return (value + align - 1) // align * align
