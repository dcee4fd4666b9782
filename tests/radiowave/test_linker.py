# SPDX-License-Identifier: Apache-2.0
"""The linker: what a loader needs, addresses that code really reaches, and refusals by name.

pyelftools reads the results: it shares no code with the linker or with `radiowave.elf`.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from radiowave import CodeObject, CodeObjectError, CompileJob, Disassembler, LinkError
from radiowave import elf as e
from radiowave.compile import compile_ir, compile_relocatable
from radiowave.linker import link
from tests.radiowave import sources


@cache
def _relocatable() -> bytes:
    return compile_relocatable([CompileJob(sources.GLOBALS, "gfx1201")])[0]


@pytest.fixture
def relocatable() -> bytes:
    """`sources.GLOBALS` as LLVM wrote it, for gfx1201 wave32."""
    return _relocatable()


def _table(elf: ELFFile, name: str) -> Any:
    """A section, whose methods depend on its type."""
    return elf.get_section_by_name(name)


def _symbol(elf: ELFFile, name: str) -> int:
    (symbol,) = _table(elf, ".symtab").get_symbol_by_name(name)
    return int(symbol["st_value"])


def test_segments_are_what_a_loader_takes(globals_object: bytes) -> None:
    """PT_LOADs ascend, do not overlap, and agree with their file offsets modulo the page size."""
    elf = ELFFile(io.BytesIO(globals_object))
    loads = [s.header for s in elf.iter_segments("PT_LOAD")]
    assert [load.p_flags for load in loads] == [e.PF_R, e.PF_R | e.PF_X, e.PF_R | e.PF_W, e.PF_R | e.PF_W]
    assert loads[0].p_offset == 0
    for below, above in pairwise(loads):
        assert below.p_vaddr + below.p_memsz <= above.p_vaddr
        assert below.p_vaddr // 4096 < above.p_vaddr // 4096  # never two protections in one page
    assert all(load.p_vaddr % 4096 == load.p_offset % 4096 for load in loads)
    kinds = [segment.header.p_type for segment in elf.iter_segments()]
    assert kinds == ["PT_PHDR", *["PT_LOAD"] * 4, "PT_DYNAMIC", "PT_GNU_RELRO", "PT_GNU_STACK", "PT_NOTE"]


def test_header_is_kept(globals_object: bytes, relocatable: bytes) -> None:
    """Machine, OSABI, ABI version and flags come from the input; the type becomes ET_DYN."""
    elf = ELFFile(io.BytesIO(globals_object))
    assert (elf.header.e_type, elf.header.e_machine, elf.header.e_flags) == ("ET_DYN", "EM_AMDGPU", 0x4E)
    assert globals_object[:9] == relocatable[:9]
    assert globals_object[7:9] == b"\x40\x03"


def test_dynamic_section_finds_every_exported_symbol(globals_object: bytes) -> None:
    """The hash table leads to each kernel, descriptor and exported variable, and to nothing else."""
    elf = ELFFile(io.BytesIO(globals_object))
    dynamic: Any = next(elf.iter_segments("PT_DYNAMIC"))
    tags = {tag.entry.d_tag: tag.entry.d_val for tag in dynamic.iter_tags()}
    assert tags["DT_SYMTAB"] == _table(elf, ".dynsym")["sh_addr"]
    assert (tags["DT_RELACOUNT"], tags["DT_RELASZ"]) == (4, 96)
    table = _table(elf, ".hash")
    for name in ("one", "one.kd", "two", "two.kd", "public_counter", "public_gate"):
        assert table.get_symbol(name)["st_value"] == _symbol(elf, name)
    assert table.get_symbol("private") is None
    assert table.get_symbol("hidden") is None
    assert table.get_number_of_symbols() == 7  # the six, and the null symbol


def test_symtab_is_kept_with_locals_first(globals_object: bytes) -> None:
    """ROCr looks kernels up in .symtab; ELF wants its locals before its globals. Hidden symbols become local."""
    elf = ELFFile(io.BytesIO(globals_object))
    table = _table(elf, ".symtab")
    bindings = [symbol["st_info"]["bind"] for symbol in table.iter_symbols()]
    assert bindings == sorted(bindings, key=["STB_LOCAL", "STB_GLOBAL"].index)
    assert bindings.index("STB_GLOBAL") == table["sh_info"]
    (hidden,) = table.get_symbol_by_name("hidden")
    assert hidden["st_info"]["bind"] == "STB_LOCAL"


def test_relocations_left_for_the_loader(globals_object: bytes) -> None:
    """One RELATIVE64 for each pointer in data: a GOT slot for each exported variable, the words of @pointers."""
    elf = ELFFile(io.BytesIO(globals_object))
    table = _table(elf, ".rela.dyn")
    assert table["sh_info"] == 0
    rows = [(r["r_offset"], r["r_info_type"], r["r_addend"]) for r in table.iter_relocations()]
    got, pointers = _table(elf, ".got")["sh_addr"], _symbol(elf, "pointers")
    counter, gate, private = (_symbol(elf, name) for name in ("public_counter", "public_gate", "private"))
    assert [row[:2] for row in rows[:2]] == [(got, 13), (got + 8, 13)]
    assert {row[2] for row in rows[:2]} == {counter, gate}
    assert rows[2:] == [(pointers, 13, counter), (pointers + 8, 13, private)]
    (relro,) = elf.iter_segments("PT_GNU_RELRO")
    inside = range(relro.header.p_vaddr, relro.header.p_vaddr + relro.header.p_memsz)
    assert all(row[0] in inside for row in rows)


def test_initial_values_lie_at_their_symbols(globals_object: bytes) -> None:
    """Constants, data and zero-filled data are where the symbols say."""
    elf = ELFFile(io.BytesIO(globals_object))
    assert _load(elf, _symbol(elf, "table"), 16) == struct.pack("<4f", 1, 2, 3, 5)
    words = [_load(elf, _symbol(elf, name), 4) for name in ("public_counter", "public_gate", "private", "hidden")]
    assert words == [struct.pack("<I", value) for value in (7, 8, 9, 11)]
    (*_, data) = elf.iter_segments("PT_LOAD")
    assert data.header.p_memsz - data.header.p_filesz >= 64
    assert _symbol(elf, "zeros") >= data.header.p_vaddr + data.header.p_filesz


def _load(elf: ELFFile, address: int, nbytes: int) -> bytes:
    for segment in elf.iter_segments("PT_LOAD"):
        start = address - segment.header.p_vaddr
        if start >= 0 and start + nbytes <= segment.header.p_filesz:
            return bytes(segment.data()[start : start + nbytes])
    raise AssertionError(f"{address:#x} is in no segment")


@pytest.mark.parametrize(("target", "wave"), [("gfx1010", 32), ("gfx1100", 64), ("gfx1201", 32)])
def test_code_reaches_what_it_names(target: str, wave: int, disassembler: Disassembler) -> None:
    """Add up every `s_getpc` and the two literals behind it: the sums are the symbols that the source names."""
    linked = compile_ir(sources.GLOBALS, target=target, wave=wave)
    elf = ELFFile(io.BytesIO(linked))
    code_object = CodeObject.parse(linked)
    reached: dict[str, set[int]] = {}
    for name, kernel in code_object.kernels.items():
        code = code_object.code(kernel)
        listing = disassembler.decode(code, kernel.entry_va, target, wave)
        reached[name] = set(_pc_relative(listing, code, kernel.entry_va))
    names = {"one": ("table", "private", "hidden", "zeros"), "two": ("pointers", "zeros", "callee")}
    wanted = {kernel: {_symbol(elf, name) for name in symbols} for kernel, symbols in names.items()}
    got = _table(elf, ".got")["sh_addr"]
    wanted["one"] |= {got, got + 8}
    assert reached == wanted


def _pc_relative(listing: Sequence[tuple[int, int, str]], code: bytes, entry: int) -> list[int]:
    """Targets of getpc, add literal low, add-with-carry literal high. LLVM measures from the end of s_getpc."""
    found, base = [], 0
    literals: list[int] = []
    for pc, length, text in listing:
        if text.startswith("s_getpc"):
            base, literals = pc + length, []
        elif base and length == 8 and text.startswith(("s_add_u32", "s_addc_u32", "s_add_co")):
            literals.append(struct.unpack_from("<I", code, pc - entry + 4)[0])
            if len(literals) == 2:
                found.append((base + literals[0] + (literals[1] << 32)) & 0xFFFFFFFFFFFFFFFF)
                base = 0
    return found


def test_descriptors_point_at_their_kernels(globals_object: bytes) -> None:
    """The REL64 relocation of each descriptor leads to the function of the same name."""
    elf = ELFFile(io.BytesIO(globals_object))
    for name in ("one", "two"):
        descriptor = _symbol(elf, f"{name}.kd")
        (offset,) = struct.unpack("<q", _load(elf, descriptor + 16, 8))
        assert descriptor + offset == _symbol(elf, name)
        assert _symbol(elf, name) % 256 == 0


def test_same_input_same_bytes(relocatable: bytes, globals_object: bytes) -> None:
    """Linking is a function of the input."""
    assert link(relocatable) == link(relocatable) == globals_object


def _sections(relocatable: bytes) -> dict[str, tuple[int, e.Section]]:
    """Section name -> file offset of its header, and the section."""
    at = struct.unpack_from("<Q", relocatable, 40)[0]
    return {s.name: (at + s.index * e.SHDR.size, s) for s in e.Elf(relocatable).sections}


def _with_word(data: bytes, offset: int, layout: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, offset, value)
    return bytes(changed)


def _retype_relocation(data: bytes, kind: int) -> bytes:
    section = _sections(data)[".rela.text"][1]
    return _with_word(data, section.offset + 8, "<I", kind)


def _move_relocation(data: bytes) -> bytes:
    section = _sections(data)[".rela.text"][1]
    return _with_word(data, section.offset, "<Q", 1 << 40)


def _far_addend(data: bytes) -> bytes:
    section = _sections(data)[".rela.rodata"][1]
    return _with_word(data, section.offset + 16, "<q", (1 << 63) - 1)


def _table_symbol(data: bytes) -> int:
    """File offset of the symbol @table."""
    elf = e.Elf(data)
    section = _sections(data)[".symtab"][1]
    names = [symbol.name for symbol in elf.symbols(section)]
    return section.offset + names.index("table") * e.SYM.size


def _symbol_outside(data: bytes) -> bytes:
    return _with_word(data, _table_symbol(data) + 8, "<Q", (1 << 64) - 1)


def _lds_symbol(data: bytes) -> bytes:
    """SHN_AMDGPU_LDS: memory that a linker would have to lay out."""
    without_relocations = _with_word(data, _sections(data)[".rela.text"][0] + 4, "<I", 1)
    return _with_word(without_relocations, _table_symbol(data) + 6, "<H", 0xFF00)


def _set_flags(data: bytes, name: str, flags: int) -> bytes:
    return _with_word(data, _sections(data)[name][0] + 8, "<Q", flags)


def _set_size(data: bytes, name: str, nbytes: int) -> bytes:
    return _with_word(data, _sections(data)[name][0] + 32, "<Q", nbytes)


def _set_align(data: bytes, name: str, align: int) -> bytes:
    return _with_word(data, _sections(data)[name][0] + 48, "<Q", align)


@pytest.mark.parametrize(
    ("damage", "code", "words"),
    [
        (lambda data: _retype_relocation(data, 1), "RW0401", ".text+0x10: R_AMDGPU_ABS32_LO"),
        (lambda data: _retype_relocation(data, 99), "RW0401", "relocation type 99"),
        (_move_relocation, "RW0404", "inside the"),
        (_far_addend, "RW0404", "addend 0x7fffffffffffffff"),
        (_symbol_outside, "RW0404", "symbol table: offset 0xffffffffffffffff"),
        (_lds_symbol, "RW0404", "symbol table: section 0xff00"),
        (lambda data: _set_flags(data, ".data.rel.ro", 2), "RW0404", "R_AMDGPU_ABS64 in read-only data"),
        (lambda data: _set_flags(data, ".data", 0x403), "RW0403", "section .data: type 1, flags 0x403"),
        (lambda data: _set_flags(data, ".text", 7), "RW0403", "section .text"),
        (lambda data: _set_align(data, ".data", 3), "RW0403", "alignment 3"),
        (lambda data: _set_align(data, ".data", 1 << 20), "RW0403", "alignment 1048576"),
        (lambda data: _set_size(data, ".bss", 1 << 62), "RW0403", "4,611,686,018,427,387,904 bytes"),
        (lambda data: _with_word(data, 18, "<H", 62), "RW0406", "machine 62"),
        (link, "RW0406", "type 3"),
    ],
)
def test_refusals_name_what_they_met(
    damage: Callable[[bytes], bytes], code: str, words: str, relocatable: bytes
) -> None:
    """Each kind of input that the linker does not do is refused with what it saw."""
    with pytest.raises(LinkError) as caught:
        link(damage(relocatable))
    assert caught.value.code == code
    assert words in str(caught.value)


def test_undefined_symbol_is_named() -> None:
    """One object in, one out: nothing else can define a symbol."""
    text = sources.TRIPLE + "\n".join(
        (
            "@elsewhere = external addrspace(1) global i32",
            "define amdgpu_kernel void @k(ptr addrspace(1) %p) {",
            "%v = load i32, ptr addrspace(1) @elsewhere store i32 %v, ptr addrspace(1) %p ret void }",
        )
    )
    message = (
        r"RW0402 linking LLVM IR text for gfx1100 wave32, symbol elsewhere: used here and defined nowhere.*@elsewhere"
    )
    with pytest.raises(LinkError, match=message):
        compile_ir(text, target="gfx1100")


def _append_note(data: bytes, payload: bytes) -> bytes:
    """The object with a second metadata note, as module-level assembly leaves one."""
    header, section = _sections(data)[".note"]
    note = e.NHDR.pack(7, len(payload), e.NT_AMDGPU_METADATA) + b"AMDGPU\0\0" + payload + bytes(-len(payload) % 4)
    notes = data[section.offset : section.offset + section.nbytes] + note
    moved = _with_word(data + bytes(-len(data) % 4), header + 24, "<Q", len(data) + -len(data) % 4)
    return _with_word(moved, header + 32, "<Q", len(notes)) + notes


def test_second_metadata_note_without_kernels_is_dropped(relocatable: bytes, globals_object: bytes) -> None:
    """It changes no byte of the result; a second note with kernels is refused."""
    empty = b"\x81\xaeamdhsa.version\x92\x01\x02"
    assert link(_append_note(relocatable, empty)) == globals_object
    full = next(note.payload for note in e.Elf(relocatable).notes())
    with pytest.raises(LinkError, match=r"RW0405 .*2 of them name kernels"):
        link(_append_note(relocatable, full))


def test_object_without_data_has_no_empty_segments(saxpy: dict[tuple[str, int], bytes]) -> None:
    """A plain kernel gives three PT_LOADs: tables and descriptor, code, dynamic section."""
    elf = ELFFile(io.BytesIO(saxpy["gfx1100", 32]))
    assert [s.header.p_memsz > 0 for s in elf.iter_segments("PT_LOAD")] == [True] * 3
    assert _table(elf, ".rela.dyn") is None


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=6), st.data())
def test_damaged_input_raises_our_errors_alone(changes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever the bytes are, the linker links them or raises an error of the tree."""
    damaged = bytearray(_relocatable())
    for place, value in changes:
        damaged[place % len(damaged)] = value
    cut = data.draw(st.sampled_from([len(damaged), len(damaged) - 1, len(damaged) // 2, 64]))
    with suppress(LinkError, CodeObjectError):
        link(bytes(damaged[:cut]))
