# SPDX-License-Identifier: Apache-2.0
"""Find the instructions whose memory accesses no fence between kernels can order: images, scalar stores, DLC stores.

Two steps. First a filter over every dword of the executable segments: an instruction begins at a multiple of four
bytes, and its first dword says its encoding, its opcode and DLC, so where no dword matches there is no such
instruction, and no disassembler is asked. A literal constant can match too; so where a dword does, the disassembler
says whether an instruction begins there. Its text is for people: the bits decide. Follows no jumps: code reached in the
middle of another instruction is not looked for, nor is code outside the executable segments. What to do about a finding
is the caller's business.

Sources: field positions and opcodes as LLVM 22 assembles and decodes them (`tests/radiowave/test_refused.py` compares
every opcode), named as in AMD's RDNA1 to RDNA4 instruction set documents, chapter "Microcode Formats". What DLC does to
stores and atomics on gfx10: Mesa 25.0.7 `ac_shader_util.c`, the comment above `ac_get_hw_cache_flags`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from radiowave import elf as e
from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler, Instruction
from radiowave.image import LoadImage

# Longer than any instruction: an image instruction with all its address dwords has five.
LONGEST_BYTES = 32
# Findings listed for one kernel. One is enough to refuse it, and hostile bytes could hold millions.
MOST = 100


@dataclass(frozen=True)
class Kind:
    """Instructions refused for one reason: the reason, and what serves instead."""

    why: str
    do: str


IMAGE = Kind(
    "image caches hold texels by view, and a range of bytes does not say which views must be invalidated",
    "read and write the memory through global or buffer instructions",
)
SCALAR_STORE = Kind(
    "it writes the scalar cache, and no fence writes that back",
    "store from a vector register",
)
DLC_STORE = Kind(
    "with DLC it bypasses L2 and is not ordered with other accesses",
    "leave the dlc modifier out, as compilers do",
)


@dataclass(frozen=True)
class Encoding:
    """First dwords of some opcodes: those that equal `pattern` in the bits of `mask`."""

    name: str
    mask: int
    pattern: int
    kind: Kind


# Bits 31..26 are the encoding. SMEM: OP 25..18. FLAT: OP 24..18, DLC 12. MUBUF: OP 25..18, DLC 15. MTBUF: OP 18..16, of
# which 18 is set in stores (the fourth bit, D16, is in the second dword), DLC 15.
_GFX101X_SMEM = (
    Encoding("SMEM store 0x10..0x17", 0xFFE00000, 0xF4400000, SCALAR_STORE),
    Encoding("SMEM buffer store 0x18..0x1b", 0xFFF00000, 0xF4600000, SCALAR_STORE),
    Encoding("SMEM buffer atomic 0x40..0x7f", 0xFF000000, 0xF5000000, SCALAR_STORE),
    Encoding("SMEM atomic 0x80..0xff", 0xFE000000, 0xF6000000, SCALAR_STORE),
)
_GFX10_DLC = (
    Encoding("FLAT store 0x18..0x1f", 0xFDE01000, 0xDC601000, DLC_STORE),
    Encoding("FLAT atomic 0x30..0x3f", 0xFDC01000, 0xDCC01000, DLC_STORE),
    Encoding("FLAT atomic 0x40..0x7f", 0xFD001000, 0xDD001000, DLC_STORE),
    Encoding("MUBUF store format 0x04..0x07", 0xFFF08000, 0xE0108000, DLC_STORE),
    Encoding("MUBUF store 0x18..0x1f", 0xFFE08000, 0xE0608000, DLC_STORE),
    Encoding("MUBUF store format d16 hi 0x27", 0xFFFC8000, 0xE09C8000, DLC_STORE),
    Encoding("MUBUF atomic 0x30..0x3f", 0xFFC08000, 0xE0C08000, DLC_STORE),
    Encoding("MUBUF atomic 0x40..0x5f", 0xFF808000, 0xE1008000, DLC_STORE),
    Encoding("MUBUF atomic 0x60..0x6f", 0xFFC08000, 0xE1808000, DLC_STORE),
    Encoding("MUBUF store format d16 0x84..0x87", 0xFFF08000, 0xE2108000, DLC_STORE),
    Encoding("MTBUF store", 0xFC048000, 0xE8048000, DLC_STORE),
)
_GFX10_3_DLC = (Encoding("FLAT store addtid 0x17", 0xFDFC1000, 0xDC5C1000, DLC_STORE),)
_MIMG = (Encoding("MIMG", 0xFC000000, 0xF0000000, IMAGE),)
_GFX12_IMAGE = (
    Encoding("VIMAGE", 0xFC000000, 0xD0000000, IMAGE),
    Encoding("VSAMPLE", 0xFC000000, 0xE4000000, IMAGE),
)
_GFX10_3 = ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036")
_GFX11 = ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153")

ENCODINGS: dict[str, tuple[Encoding, ...]] = {
    **dict.fromkeys(("gfx1010", "gfx1011", "gfx1012", "gfx1013"), _GFX101X_SMEM + _GFX10_DLC + _MIMG),
    **dict.fromkeys(_GFX10_3, _GFX10_DLC + _GFX10_3_DLC + _MIMG),
    **dict.fromkeys(_GFX11, _MIMG),
    **dict.fromkeys(("gfx1200", "gfx1201"), _GFX12_IMAGE),
}


@dataclass(frozen=True)
class RefusedInstruction:
    """One finding: its ELF address in bytes, LLVM's text ("" where LLVM cannot decode it), why, and what to do."""

    address: int
    text: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.text or 'an encoding that LLVM does not decode'} at {self.address:#x}"


class InstructionCheck:
    """The refused instructions of one code object, kernel by kernel.

    To a kernel belong the bytes of its own symbol. An instruction outside of every kernel, such as one in a function
    that is called, counts for every kernel of the object: who calls it is not known. Making a check filters the whole
    object; what was found is kept. Of a kernel with very many the first `MOST` are listed.

    Raises CodeObjectError where segments do not hold what they claim.
    """

    def __init__(self, code_object: CodeObject) -> None:
        elf = e.Elf(code_object.data)
        self._target, self._image = code_object.target, LoadImage(elf)
        self._kernels = {kernel.symbol: kernel for kernel in code_object.kernels.values()}
        self._kinds = dict(self._filter())
        addresses = np.array(sorted(self._kinds), np.int64)
        is_outside = np.ones(len(addresses), bool)
        self._own: dict[str, list[int]] = {}
        for kernel in self._kernels.values():
            first, end = np.searchsorted(addresses, (kernel.entry_va, kernel.entry_va + kernel.code_bytes))
            is_outside[first:end] = False
            self._own[kernel.symbol] = addresses[first:end].tolist()
        self._outside: list[int] = addresses[is_outside].tolist()
        self._functions = _functions(elf) if self._outside else []
        self._found: dict[str, tuple[RefusedInstruction, ...]] = {}

    def refused(self, symbol: str, disassembler: Disassembler | None = None) -> tuple[RefusedInstruction, ...]:
        """What the kernel with this descriptor symbol ("name.kd") holds.

        Starts a disassembler of its own when none is given and one is needed. Raises ToolchainError if nobody can tell,
        UnsupportedTarget for a target that the disassembler does not take, CodeObjectError where the code is not whole.
        """
        if symbol not in self._found:
            self._found[symbol] = self._refused(self._kernels[symbol], disassembler)
        return self._found[symbol]

    def _filter(self) -> Iterator[tuple[int, Kind]]:
        """Address and kind of each dword that begins like a refused instruction."""
        for segment in self._image.segments:
            if segment.flags & e.PF_X:
                begin = segment.address + -segment.address % 4
                end = segment.address + segment.file_bytes
                nbytes = max(0, end - begin) // 4 * 4
                words = np.frombuffer(self._image.bytes_at(begin, nbytes, "code") if nbytes else b"", "<u4")
                for row in ENCODINGS[self._target]:
                    for index in np.flatnonzero((words & np.uint32(row.mask)) == row.pattern):
                        yield begin + 4 * int(index), row.kind

    def _refused(self, kernel: KernelFacts, disassembler: Disassembler | None) -> tuple[RefusedInstruction, ...]:
        own, outside = self._own[kernel.symbol], self._outside
        if not own and not outside:
            return ()
        if disassembler is None:
            with Disassembler() as mine:
                return self._refused(kernel, mine)
        listing = _Listing(self._image, self._target, kernel.wave, disassembler)
        span = (kernel.entry_va, kernel.entry_va + kernel.code_bytes)
        places = [*((address, span) for address in own), *((address, self._span(address)) for address in outside)]
        found: list[RefusedInstruction] = []
        for address, span in places:
            text, kind = listing.text(address, span), self._kinds[address]
            if text is not None:
                found.append(RefusedInstruction(address, " ".join(text.split()), kind.why, kind.do))
            if len(found) == MOST:
                break
        return tuple(found)

    def _span(self, address: int) -> tuple[int, int]:
        """The function around an address, up to the next one; without one, what an instruction there could cover."""
        (segment,) = (s for s in self._image.segments if s.address <= address < s.address + s.file_bytes)
        index = bisect_right(self._functions, address, key=lambda function: function[0])
        begin, end = self._functions[index - 1] if index else (0, 0)
        if not segment.address <= begin <= address < end:
            begin, end = address, address + LONGEST_BYTES
        return begin, min(end, segment.address + segment.file_bytes)


class _Listing:
    """Texts of instructions by address, each span disassembled once."""

    def __init__(self, image: LoadImage, target: str, wave: int, disassembler: Disassembler) -> None:
        self._image, self._target, self._wave, self._disassembler = image, target, wave, disassembler
        self._texts: dict[tuple[int, int], tuple[dict[int, str], int]] = {}

    def text(self, address: int, span: tuple[int, int]) -> str | None:
        """What begins at an address: None for the inside of another instruction of the span, "" if nothing decodes.

        Past the first bytes of the span that do not decode, where nothing is known to begin, whatever might begin does.
        """
        texts, end = self._decoded(span)
        if address < end:
            return texts.get(address)
        return self._decode(address, min(span[1], address + LONGEST_BYTES))[0].text

    def _decoded(self, span: tuple[int, int]) -> tuple[dict[int, str], int]:
        if span not in self._texts:
            found = [i for i in self._decode(*span) if i.text]
            self._texts[span] = {i.pc: i.text for i in found}, found[-1].pc + found[-1].length if found else span[0]
        return self._texts[span]

    def _decode(self, start: int, end: int) -> list[Instruction]:
        code = self._image.bytes_at(start, end - start, "code")
        return self._disassembler.decode(code, start, self._target, self._wave)


def _functions(elf: e.Elf) -> list[tuple[int, int]]:
    """Begin and end of each function symbol, in order; one that begins inside another ends it."""
    tables = [s for s in elf.sections if s.type == e.SHT_SYMTAB]
    tables = tables or [s for s in elf.sections if s.type == e.SHT_DYNSYM]
    ends: dict[int, int] = {}
    for symbol in elf.symbols(tables[0]) if tables else ():
        if symbol.type == e.STT_FUNC and symbol.section != e.SHN_UNDEF:
            ends[symbol.value] = max(symbol.value + symbol.nbytes, ends.get(symbol.value, 0))
    begins = sorted(ends)
    return (
        [(a, min(ends[a], b)) for a, b in zip(begins, [*begins[1:], ends[begins[-1]]], strict=True)] if begins else []
    )
