# SPDX-License-Identifier: Apache-2.0
"""Link one relocatable AMDGPU object (ET_REL, as LLVM writes it) into a code object that ROCr loads (ET_DYN).

Places the sections, resolves the relocations that LLVM's AMDGPU back end emits, and hands the result to
`linked_image.py`, which writes the file. One object in, one out: no libraries, no archives, no section merging,
no debug sections. Global symbols are bound inside the object. What it does not know, it refuses by name.

Relocation numbers and formulas: LLVM AMDGPUUsage, "Relocation Records" (S symbol, A addend, P place, G + GOT
the symbol's slot in the global offset table).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from radiowave import elf as e
from radiowave.errors import LinkError
from radiowave.image import MAX_IMAGE_BYTES
from radiowave.linked_image import DynamicRelocation, Image, Output, Placed
from radiowave.metadata import unpack_document

R_ABS64, R_REL64 = 3, 5
R_GOTPCREL32_LO, R_GOTPCREL32_HI = 8, 9
R_REL32_LO, R_REL32_HI = 10, 11

RELOCATION_NAMES = {
    0: "R_AMDGPU_NONE",
    1: "R_AMDGPU_ABS32_LO",
    2: "R_AMDGPU_ABS32_HI",
    3: "R_AMDGPU_ABS64",
    4: "R_AMDGPU_REL32",
    5: "R_AMDGPU_REL64",
    6: "R_AMDGPU_ABS32",
    7: "R_AMDGPU_GOTPCREL",
    8: "R_AMDGPU_GOTPCREL32_LO",
    9: "R_AMDGPU_GOTPCREL32_HI",
    10: "R_AMDGPU_REL32_LO",
    11: "R_AMDGPU_REL32_HI",
    13: "R_AMDGPU_RELATIVE64",
    14: "R_AMDGPU_REL16",
}
LINKED = (R_ABS64, R_REL64, R_GOTPCREL32_LO, R_GOTPCREL32_HI, R_REL32_LO, R_REL32_HI)


@dataclass
class _Object:
    """The input: its tables, and where each of its sections went."""

    elf: e.Elf
    symbols: list[e.Symbol]
    placed: dict[int, tuple[Output, int]] = field(default_factory=dict)

    def address(self, symbol: e.Symbol) -> int:
        output, offset = self.placed[symbol.section]
        return output.address + offset + symbol.value


def link(relocatable: bytes) -> bytes:
    """The linked code object. The same input gives the same bytes, in every process and on every machine.

    Raises LinkError for what the linker does not do (an undefined symbol, an unknown relocation or section),
    CodeObjectError for bytes that are no whole ELF file.
    """
    source = _read(relocatable)
    image = Image(flags=source.elf.flags, abi_version=source.elf.ident[8])
    _place_sections(source, image)
    relocations = list(_relocations(source))
    slots = _allocate_slots(source, relocations, image)
    absolute = sum(row.type == R_ABS64 for _, row, _ in relocations)
    image.lay_out(list(_placed_symbols(source)), dynamic_relocations=absolute + len(slots))
    for place, row, symbol in relocations:
        _apply(source, image, place, row, symbol, slots)
    for index, slot in slots.items():
        addend = source.address(source.symbols[index])
        image.relative.append(DynamicRelocation(image.got.address + slot, addend))
    return image.write()


def _read(relocatable: bytes) -> _Object:
    elf = e.Elf(relocatable)
    if elf.type != e.ET_REL or elf.machine != e.EM_AMDGPU or elf.ident[7] != e.ELFOSABI_AMDGPU_HSA:
        raise LinkError(
            "RW0406",
            where="ELF header",
            seen=f"type {elf.type}, machine {elf.machine}, OSABI {elf.ident[7]}",
            allowed="type 1 (relocatable), machine 224 (AMDGPU), OSABI 64 (HSA)",
            do="pass the object file that the compiler wrote; a linked code object needs no linking",
        )
    tables = [section for section in elf.sections if section.type == e.SHT_SYMTAB]
    symbols = elf.symbols(tables[0]) if tables else []
    for symbol in symbols[1:]:
        if symbol.section == e.SHN_UNDEF:
            raise LinkError(
                "RW0402",
                where=f"symbol {symbol.name}",
                seen="used here and defined nowhere: the source only declares it",
                allowed="symbols that the source defines itself; one object is linked alone, without libraries",
                do=f"define @{symbol.name} in the same LLVM IR module, or link the modules before (llvm-link)",
            )
    return _Object(elf, symbols)


def _place_sections(source: _Object, image: Image) -> None:
    for section in source.elf.sections:
        if not section.flags & e.SHF_ALLOC:
            continue
        output = _output_for(section, image)
        raw = b"" if section.type == e.SHT_NOBITS else source.elf.section_bytes(section)
        if section.type == e.SHT_NOTE:
            raw = _one_metadata_note(source.elf)
            if output.nbytes:
                continue
        source.placed[section.index] = (output, output.append(raw, section.nbytes, max(section.align, 1)))


def _output_for(section: e.Section, image: Image) -> Output:
    """Which output section takes an input section; by flags, as LLVM sets them, not by name."""
    writable = bool(section.flags & e.SHF_WRITE)
    is_aligned = section.align & (section.align - 1) == 0 and section.align <= 4096
    if section.flags & e.SHF_TLS or not is_aligned or section.nbytes > MAX_IMAGE_BYTES:
        raise _unplaced(section)
    if section.type == e.SHT_NOTE and not writable:
        return image.note
    if section.type == e.SHT_NOBITS and writable:
        return image.bss
    if section.type != e.SHT_PROGBITS:
        raise _unplaced(section)
    if section.flags & e.SHF_EXECINSTR:
        if writable:
            raise _unplaced(section)
        return image.text
    if not writable:
        return image.rodata
    # Read-only but for its relocations: the name is the only mark that LLVM leaves.
    return image.relro if section.name.startswith(".data.rel.ro") else image.data


def _unplaced(section: e.Section) -> LinkError:
    return LinkError(
        "RW0403",
        where=f"section {section.name}",
        seen=f"type {section.type}, flags {section.flags:#x}, alignment {section.align}, {section.nbytes:,} bytes",
        allowed="code, read-only data, data, zero-filled data, notes; aligned to a power of two up to 4096",
        do="remove what needs this section (thread-local data, global constructors) from the source",
    )


def _one_metadata_note(elf: e.Elf) -> bytes:
    """The AMDGPU metadata note as it goes into the output. Assembly inside a module leaves a second one
    without kernels, which is dropped."""
    notes = [n for n in elf.notes() if n.owner == b"AMDGPU" and n.type == e.NT_AMDGPU_METADATA]
    full = [n for n in notes if _names_kernels(n)] or notes[:1]
    if len(full) != 1:
        raise LinkError(
            "RW0405",
            where="notes of type NT_AMDGPU_METADATA",
            seen=f"{len(full)} of them name kernels",
            allowed="one",
            do="link the modules into one before code generation",
        )
    owner, payload = b"AMDGPU\0\0", full[0].payload
    return e.NHDR.pack(7, len(payload), e.NT_AMDGPU_METADATA) + owner + payload + bytes(-len(payload) % 4)


def _names_kernels(note: e.Note) -> bool:
    document = unpack_document(note.payload)
    return bool(isinstance(document, dict) and document.get("amdhsa.kernels"))


Located = tuple[tuple[Output, int], e.Relocation, e.Symbol]


def _relocations(source: _Object) -> Iterator[Located]:
    """Every relocation of a placed section: its place, the row, and the symbol, all checked."""
    for table in source.elf.sections:
        if table.type != e.SHT_RELA or table.info not in source.placed:
            continue
        output, start = source.placed[table.info]
        section = source.elf.sections[table.info]
        for row in source.elf.relocations(table):
            symbol = _checked_symbol(source, section, row)
            yield (output, start + row.offset), row, symbol


def _checked_symbol(source: _Object, section: e.Section, row: e.Relocation) -> e.Symbol:
    where = f"{section.name}+{row.offset:#x}"
    name = RELOCATION_NAMES.get(row.type, f"relocation type {row.type}")
    if row.type not in LINKED:
        known = ", ".join(RELOCATION_NAMES[kind] for kind in LINKED)
        raise _misfit("RW0401", where, name, known)
    if row.symbol >= len(source.symbols) or source.symbols[row.symbol].section not in source.placed:
        raise _misfit("RW0404", where, f"{name} against symbol {row.symbol}", "a symbol in a placed section")
    width = 8 if row.type in (R_ABS64, R_REL64) else 4
    if section.type == e.SHT_NOBITS or row.offset + width > section.nbytes:
        raise _misfit("RW0404", where, name, f"inside the {section.nbytes} bytes of the section")
    if row.type == R_ABS64 and not section.flags & e.SHF_WRITE:
        raise _misfit("RW0404", where, f"{name} in read-only data", "position-independent code (reloc=pic)")
    return source.symbols[row.symbol]


def _misfit(code: str, where: str, seen: str, allowed: str) -> LinkError:
    return LinkError(
        code,
        where=where,
        seen=seen,
        allowed=allowed,
        do="compile with LLVM's AMDGPU back end, or use ld.lld -shared",
    )


def _allocate_slots(source: _Object, relocations: list[Located], image: Image) -> dict[int, int]:
    """Symbol index -> byte offset of its slot in the global offset table, in order of first use."""
    slots: dict[int, int] = {}
    for _place, row, _symbol in relocations:
        if row.type in (R_GOTPCREL32_LO, R_GOTPCREL32_HI) and row.symbol not in slots:
            slots[row.symbol] = image.got.append(bytes(8), 8, 8)
    return slots


def _placed_symbols(source: _Object) -> Iterator[Placed]:
    for symbol in source.symbols[1:]:
        if symbol.section == e.SHN_ABS:
            yield Placed(symbol, None, symbol.value)
        elif symbol.section in source.placed:
            limit = source.elf.sections[symbol.section].nbytes
            if symbol.value > limit:
                raise _misfit("RW0404", f"symbol {symbol.name}", f"offset {symbol.value:#x}", f"up to {limit:#x}")
            output, offset = source.placed[symbol.section]
            if symbol.type != e.STT_SECTION:
                yield Placed(symbol, output, offset + symbol.value)
        elif symbol.section >= e.SHN_LORESERVE:
            raise _misfit("RW0404", f"symbol {symbol.name}", f"section {symbol.section:#x}", "a section of this object")


def _apply(
    source: _Object,
    image: Image,
    place: tuple[Output, int],
    row: e.Relocation,
    symbol: e.Symbol,
    slots: dict[int, int],
) -> None:
    output, offset = place
    here, there = output.address + offset, source.address(symbol)
    if row.type in (R_GOTPCREL32_LO, R_GOTPCREL32_HI):
        there = image.got.address + slots[row.symbol]
    if abs(row.addend) > MAX_IMAGE_BYTES:
        raise _misfit(
            "RW0404", f"{output.name}+{offset:#x}", f"addend {row.addend:#x}", f"{MAX_IMAGE_BYTES:#x} at most"
        )
    distance = there + row.addend - here
    if row.type == R_ABS64:
        image.relative.append(DynamicRelocation(here, there + row.addend))
    elif row.type == R_REL64:
        struct.pack_into("<q", output.content, offset, distance)
    elif row.type in (R_REL32_HI, R_GOTPCREL32_HI):
        struct.pack_into("<I", output.content, offset, distance >> 32 & 0xFFFFFFFF)
    else:
        struct.pack_into("<I", output.content, offset, distance & 0xFFFFFFFF)
