# SPDX-License-Identifier: Apache-2.0
"""Loads a linked AMDGPU code object into device memory, as ROCr's loader does.

Its own use of pyelftools: `radiowave` reads the same bytes for other purposes. All PT_LOAD segments go into one
executable allocation, gaps zeroed; RELATIVE64 and ABS64 relocations are applied; kernels and variables are looked
up in `.symtab`, which is why a stripped object is refused. Does not read kernel descriptors beyond their place:
what a dispatch needs comes in packets.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from redline.sim.families import Target
from redline.sim.memory import Memory

ELFCLASS64, ELFDATA2LSB, ET_DYN = 2, 1, 3
EM_AMDGPU = 224
ELFOSABI_AMDGPU_HSA = 64
CODE_OBJECT_VERSIONS = {2: 4, 3: 5, 4: 6}  # EI_ABIVERSION -> code object version
EF_AMDGPU_MACH = 0xFF

# LLVM, AMDGPUUsage.rst, relocation records.
R_AMDGPU_ABS64 = 3
R_AMDGPU_RELATIVE64 = 13

SEGMENT_ALIGN = 4096
MAX_IMAGE = 1 << 31


class LoaderError(Exception):
    """Bytes that this loader refuses. `incompatible`: a sound object for another GPU."""

    def __init__(self, message: str, *, incompatible: bool = False) -> None:
        super().__init__(message)
        self.incompatible = incompatible


@dataclass(frozen=True)
class Symbol:
    """A defined symbol: where it lies in device memory."""

    name: str
    address: int
    nbytes: int

    @property
    def is_kernel(self) -> bool:
        return self.name.endswith(".kd")


@dataclass(frozen=True)
class LoadedImage:
    """One code object in device memory."""

    address: int
    nbytes: int
    symbols: dict[str, Symbol] = field(default_factory=dict)


def load_image(data: bytes, target: Target, memory: Memory) -> LoadedImage:
    """Place `data` in `memory`, or raise `LoaderError` with nothing allocated."""
    try:
        elf = ELFFile(io.BytesIO(data))
        _check_header(data, target)
        content = bytearray(_span(elf, len(data)))
        _copy_segments(elf, content)
        symbols = _symbols(elf)
        relocations = _relocations(elf, symbols)
    except LoaderError:
        raise
    except (ELFError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        # pyelftools answers hostile bytes with whatever its parsing ran into.
        raise LoaderError(f"not a sound ELF file: {error!r}") from error
    return _place(content, symbols, relocations, memory)


@dataclass(frozen=True)
class _Relocation:
    offset: int
    value: int  # relative to the load address


def _check_header(data: bytes, target: Target) -> None:
    """The few header fields that decide, from the bytes: pyelftools names them for other machines."""
    kind, machine = struct.unpack_from("<HH", data, 16)
    (flags,) = struct.unpack_from("<I", data, 48)
    if data[4] != ELFCLASS64 or data[5] != ELFDATA2LSB or machine != EM_AMDGPU:
        raise LoaderError(f"class {data[4]}, data {data[5]}, machine {machine}; allowed: 64-bit little-endian AMDGPU")
    if data[7] != ELFOSABI_AMDGPU_HSA:
        raise LoaderError(f"OS ABI {data[7]}; allowed: {ELFOSABI_AMDGPU_HSA} (ELFOSABI_AMDGPU_HSA)")
    if data[8] not in CODE_OBJECT_VERSIONS:
        versions = ", ".join(str(version) for version in CODE_OBJECT_VERSIONS.values())
        raise LoaderError(f"ABI version {data[8]}; allowed: code object versions {versions}")
    if kind != ET_DYN:
        raise LoaderError(f"file type {kind}; allowed: {ET_DYN} (ET_DYN), a linked code object")
    if flags & EF_AMDGPU_MACH != target.elf_machine:
        raise LoaderError(
            f"EF_AMDGPU_MACH {flags & EF_AMDGPU_MACH:#x}; allowed: {target.elf_machine:#x} ({target.name})",
            incompatible=True,
        )


def _segments(elf: ELFFile) -> list[Any]:
    return [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]


def _span(elf: ELFFile, file_bytes: int) -> int:
    """Bytes from virtual address 0 to the end of the last segment; the segments must be in order and apart."""
    end = 0
    for segment in _segments(elf):
        start, size = segment["p_vaddr"], segment["p_memsz"]
        if start < end or size < segment["p_filesz"] or start + size > MAX_IMAGE:
            raise LoaderError(f"PT_LOAD at {start:#x} of {size} bytes; allowed: ascending, disjoint, below 2 GiB")
        if segment["p_offset"] + segment["p_filesz"] > file_bytes:
            raise LoaderError(f"PT_LOAD at {start:#x} ends outside the file; allowed: the whole file")
        end = start + size
    if not end:
        raise LoaderError("no PT_LOAD segment; allowed: a linked code object")
    return int(end)


def _copy_segments(elf: ELFFile, content: bytearray) -> None:
    for segment in _segments(elf):
        start = segment["p_vaddr"]
        content[start : start + segment["p_filesz"]] = segment.data()


def _symbols(elf: ELFFile) -> dict[str, tuple[int, int]]:
    """Name -> virtual address and size, of what `.symtab` defines."""
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        raise LoaderError("no .symtab; allowed: an object that was never stripped")
    return {
        symbol.name: (symbol["st_value"], symbol["st_size"])
        for symbol in table.iter_symbols()
        if symbol.name and symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_OBJECT"
    }


def _relocations(elf: ELFFile, symbols: dict[str, tuple[int, int]]) -> list[_Relocation]:
    found: list[_Relocation] = []
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        table = elf.get_section(section["sh_link"])
        if not isinstance(table, SymbolTableSection):
            raise LoaderError(f"{section.name} has no symbol table; allowed: relocations that name one")
        for entry in section.iter_relocations():
            kind, offset = entry["r_info_type"], entry["r_offset"]
            addend = entry["r_addend"]
            if kind == R_AMDGPU_RELATIVE64:
                found.append(_Relocation(offset, addend))
            elif kind == R_AMDGPU_ABS64:
                symbol = table.get_symbol(entry["r_info_sym"])
                if symbol["st_shndx"] == "SHN_UNDEF":
                    raise LoaderError(f"undefined symbol {symbol.name!r}; allowed: symbols of this object")
                found.append(_Relocation(offset, symbol["st_value"] + addend))
            else:
                raise LoaderError(f"relocation type {kind}; allowed: R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64")
    return found


def _place(
    content: bytearray, symbols: dict[str, tuple[int, int]], relocations: list[_Relocation], memory: Memory
) -> LoadedImage:
    nbytes = len(content)
    for relocation in relocations:
        if not 0 <= relocation.offset <= nbytes - 8:
            raise LoaderError(f"relocation at {relocation.offset:#x}; allowed: inside the loaded segments")
    for name, (offset, size) in symbols.items():
        if offset + size > nbytes:
            raise LoaderError(f"symbol {name!r} at {offset:#x}; allowed: inside the loaded segments")
    address = memory.allocate(nbytes, align=SEGMENT_ALIGN, label="code object", executable=True)
    for relocation in relocations:
        value = (address + relocation.value) & 0xFFFFFFFFFFFFFFFF
        content[relocation.offset : relocation.offset + 8] = value.to_bytes(8, "little")
    memory.store(address, content)
    placed = {name: Symbol(name, address + offset, size) for name, (offset, size) in symbols.items()}
    return LoadedImage(address, nbytes, placed)
