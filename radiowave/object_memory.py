# SPDX-License-Identifier: Apache-2.0
"""What lies where in a loaded code object: bytes that nothing writes, variables by name, and pointers in tables.

Works on ELF addresses. A place is immutable in a section that is not writable, and in what the loader writes once and
protects (PT_GNU_RELRO). Source: System V gABI; LLVM AMDGPUUsage, "Relocation Records".
"""

from __future__ import annotations

from bisect import bisect_right

from radiowave import elf as e

# Clang marks each HIP translation unit with one byte of .bss that no code touches.
_MARKER = "__hip_cuid_"
_R_AMDGPU_ABS64, _R_AMDGPU_RELATIVE64 = 3, 13


class ObjectMemory:
    """The allocated sections of one linked object, its symbols, and the pointers that the loader puts into it."""

    def __init__(self, elf: e.Elf) -> None:
        self._sections = sorted(
            (s for s in elf.sections if s.flags & e.SHF_ALLOC and s.nbytes), key=lambda section: section.address
        )
        self._starts = [section.address for section in self._sections]
        self._relro = [(s.address, s.address + s.memory_bytes) for s in elf.segments if s.type == e.PT_GNU_RELRO]
        tables = [s for s in elf.sections if s.type in (e.SHT_SYMTAB, e.SHT_DYNSYM)]
        self._symbols = sorted(
            {
                (symbol.value, symbol.nbytes, symbol.name)
                for table in tables
                for symbol in elf.symbols(table)
                if symbol.type == e.STT_OBJECT and symbol.section != e.SHN_UNDEF
            }
        )
        self._pointers = self._loaded_pointers(elf)

    def _loaded_pointers(self, elf: e.Elf) -> dict[int, int | None]:
        """Where the loader writes an address, and the ELF address that it points at; None where that is not known."""
        found: dict[int, int | None] = {}
        for table in elf.sections:
            if table.type != e.SHT_RELA or not table.flags & e.SHF_ALLOC:
                continue
            symbols = elf.symbols(elf.sections[table.link]) if 0 < table.link < len(elf.sections) else []
            for row in elf.relocations(table):
                found[row.offset] = _pointee(row, symbols)
        return found

    def section(self, address: int) -> e.Section | None:
        """The allocated section that holds an address."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._sections[at].address + self._sections[at].nbytes:
            return None
        return self._sections[at]

    def is_immutable(self, address: int) -> bool:
        """Whether nothing can write the section at an address once it is loaded."""
        section = self.section(address)
        if section is None:
            return False
        protected = any(
            low <= section.address and section.address + section.nbytes <= high for low, high in self._relro
        )
        return not section.flags & e.SHF_WRITE or protected

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether all of these bytes lie in the section at the address."""
        section = self.section(address)
        return section is not None and address + nbytes <= section.address + section.nbytes

    def variable(self, address: int) -> str:
        """What to call the variable at an address: its symbol, and the section where there is none."""
        for value, nbytes, name in reversed(self._symbols[: bisect_right(self._symbols, (address, 1 << 62, ""))]):
            if value <= address < value + max(nbytes, 1) and not name.startswith(_MARKER):
                return name
        section = self.section(address)
        return f"{section.name if section else 'address'} {address:#x}"

    def pointer(self, address: int) -> int | None:
        """The ELF address that the 8 bytes here point at once loaded; None where they are no pointer or not known."""
        return self._pointers.get(address)

    def has_pointers(self, address: int, nbytes: int) -> bool:
        """Whether the loader writes an address into these bytes, or anywhere in the section for `nbytes` of 0."""
        if nbytes == 0:
            section = self.section(address)
            return section is not None and self.has_pointers(section.address, section.nbytes)
        return any(address - 7 <= at < address + nbytes for at in self._pointers)


def _pointee(row: e.Relocation, symbols: list[e.Symbol]) -> int | None:
    if row.type == _R_AMDGPU_RELATIVE64:
        return row.addend
    if row.type == _R_AMDGPU_ABS64 and row.symbol < len(symbols):
        symbol = symbols[row.symbol]
        return symbol.value + row.addend if symbol.section != e.SHN_UNDEF else None
    return None
