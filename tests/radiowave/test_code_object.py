# SPDX-License-Identifier: Apache-2.0
"""The reader of linked objects: facts against outside answers, and damage against `CodeObjectError` alone."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st
from redline_fuzz.bundles import host_elf

from radiowave import CodeObject, CodeObjectError, CompileJob, compile_ir, compile_many, image, metadata
from radiowave import elf as e
from radiowave.compile import compile_relocatable
from tests.radiowave import sources
from tests.radiowave.damage import (
    descriptor_field,
    header_field,
    repeat_kernel,
    segment_field,
    symbol_field,
    with_metadata,
)

# What LLVM 22.1 was seen to write for a kernel that uses workgroup id x and 1 KiB of LDS, wave32: rsrc1, rsrc2, rsrc3,
# kernel code properties. gfx1100 and gfx1102 pad their user SGPRs to 15.
DESCRIPTORS = {
    "gfx1010": (0xE0AF0000, 0x8C, 0x00, 0x0409),
    "gfx1030": (0xE0AF0000, 0x8C, 0x00, 0x0409),
    "gfx1031": (0xE0AF0000, 0x8C, 0x00, 0x0409),
    "gfx1100": (0xE0AF0000, 0x9E, 0x20, 0x0408),
    "gfx1102": (0xE0AF0000, 0x9E, 0x20, 0x0408),
    "gfx1101": (0xE0AF0000, 0x84, 0x20, 0x0408),
    "gfx1103": (0xE0AF0000, 0x84, 0x20, 0x0408),
    "gfx1150": (0xE0AF0000, 0x84, 0x20, 0x0408),
    "gfx1151": (0xE0AF0000, 0x84, 0x20, 0x0408),
    "gfx1200": (0xE00F0000, 0x84, 0x20, 0x0408),
    "gfx1201": (0xE00F0000, 0x84, 0x20, 0x0408),
}


@pytest.mark.parametrize("target", DESCRIPTORS)
def test_descriptor_words(target: str, saxpy: dict[tuple[str, int], bytes]) -> None:
    """The words of the descriptor are those that LLVM was seen to write, each in its own field."""
    code_object = CodeObject.parse(saxpy[target, 32])
    d = code_object.kernel("saxpy").descriptor
    assert (d.rsrc1, d.rsrc2, d.rsrc3, d.properties) == DESCRIPTORS[target]
    assert (d.group_bytes, d.private_bytes, d.kernarg_bytes, d.preload) == (1024, 0, 24, 0)
    assert code_object.target == target
    assert code_object.xnack == ("any" if target == "gfx1010" else "unsupported")
    assert code_object.sramecc == "unsupported"


def test_wave_size(saxpy: dict[tuple[str, int], bytes]) -> None:
    """Case 56: the same source for wave64 says 64 in metadata and clears the descriptor's bit 10."""
    for wave, bit in ((32, 1), (64, 0)):
        kernel = CodeObject.parse(saxpy["gfx1151", wave]).kernel("saxpy")
        assert kernel.wave == wave
        assert kernel.descriptor.properties >> 10 & 1 == bit


def test_implicit_arguments(argument_objects: dict[str, CodeObject]) -> None:
    """Case 46: where LLVM puts the hidden arguments of code object v5, listed although most are unused."""
    kernel = argument_objects["implicit"].kernel("saxpy")
    assert (kernel.kernarg_bytes, kernel.kernarg_align) == (280, 8)
    assert [a.offset for a in kernel.arguments if not a.is_hidden] == [0, 8, 16, 20]
    hidden = {a.kind.removeprefix("hidden_"): (a.offset, a.size) for a in kernel.arguments if a.is_hidden}
    assert {kind: hidden[kind] for kind in IMPLICIT} == IMPLICIT
    assert all(a.is_known for a in kernel.arguments)


IMPLICIT = {
    "block_count_x": (24, 4),
    "block_count_y": (28, 4),
    "block_count_z": (32, 4),
    "group_size_x": (36, 2),
    "group_size_y": (38, 2),
    "group_size_z": (40, 2),
    "remainder_x": (42, 2),
    "remainder_y": (44, 2),
    "remainder_z": (46, 2),
    "global_offset_x": (64, 8),
    "global_offset_y": (72, 8),
    "global_offset_z": (80, 8),
    "grid_dims": (88, 2),
}


def test_argument_places_come_from_metadata(argument_objects: dict[str, CodeObject]) -> None:
    """Case 47: i8, double, i16, <3 x i32>, pointer; and a struct of 100 bytes by value."""
    mixed = argument_objects["arguments"].kernel("mixed")
    assert [a.offset for a in mixed.arguments] == [0, 8, 16, 32, 48]
    assert (mixed.kernarg_bytes, mixed.kernarg_align) == (56, 16)
    struct_, out, source = argument_objects["arguments"].kernel("by_value").arguments[:3]
    assert (struct_.offset, struct_.size, struct_.kind) == (0, 100, "by_value")
    assert (out.offset, out.kind, out.address_space, out.access) == (104, "global_buffer", "global", "write_only")
    assert (source.offset, source.access) == (112, "read_only")


def test_workgroup_sizes(argument_objects: dict[str, CodeObject], saxpy: dict[tuple[str, int], bytes]) -> None:
    """Case 49: required and largest workgroup."""
    sized = argument_objects["arguments"].kernel("sized")
    assert sized.required_workgroup == (64, 2, 1)
    plain = CodeObject.parse(saxpy["gfx1100", 32]).kernel("saxpy")
    assert (plain.required_workgroup, plain.max_workgroup) == (None, 256)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_versions(version: int) -> None:
    """EI_ABIVERSION 2, 3, 4 are code object v4, v5, v6; the metadata version follows."""
    linked = compile_ir(sources.SAXPY, target="gfx1030", code_object_version=version)
    assert linked[8] == version - 2
    code_object = CodeObject.parse(linked)
    assert (code_object.code_object_version, code_object.metadata_version[0]) == (version, 1)


def test_addresses_and_code_hash_agree_with_another_reader(globals_object: bytes) -> None:
    """pyelftools finds the same descriptors, entries and code bytes."""
    code_object = CodeObject.parse(globals_object)
    assert code_object.sha256 == hashlib.sha256(globals_object).hexdigest()
    elf = ELFFile(io.BytesIO(globals_object))
    table: Any = elf.get_section_by_name(".symtab")
    text: Any = elf.get_section_by_name(".text")
    assert list(code_object.kernels) == ["one", "two"]
    for name, kernel in code_object.kernels.items():
        function, descriptor = (table.get_symbol_by_name(n)[0] for n in (name, f"{name}.kd"))
        assert (kernel.symbol, kernel.entry_va) == (f"{name}.kd", function["st_value"])
        assert kernel.descriptor_va == descriptor["st_value"]
        assert kernel.descriptor.entry_offset == kernel.entry_va - kernel.descriptor_va
        start = kernel.entry_va - text["sh_addr"]
        code = text.data()[start : start + function["st_size"]]
        assert (kernel.code_bytes, kernel.code_sha256) == (len(code), hashlib.sha256(code).hexdigest())
        assert code_object.code(kernel) == code


def test_kernel_by_name(globals_object: bytes) -> None:
    """With or without .kd; another name lists those there are."""
    code_object = CodeObject.parse(globals_object)
    assert code_object.kernel("one.kd") == code_object.kernel("one") == code_object.kernels["one"]
    with pytest.raises(CodeObjectError, match=r"RW0314 .*no kernel 'three'; allowed: one, two"):
        code_object.kernel("three")


def test_compared_by_value(globals_object: bytes) -> None:
    """Parsing twice gives equal facts."""
    assert CodeObject.parse(globals_object) == CodeObject.parse(bytes(bytearray(globals_object)))


def test_object_without_kernels_is_an_object() -> None:
    """A module of functions alone has a target and no kernels."""
    linked = compile_ir(sources.TRIPLE + "define void @f() { ret void }", target="gfx1100")
    assert CodeObject.parse(linked).kernels == {}


def _relocatable(_data: bytes) -> bytes:
    return compile_relocatable([CompileJob(sources.GLOBALS, "gfx1201")])[0]


REFUSED: list[tuple[str, Callable[[bytes], bytes], str, str]] = [
    ("empty", lambda data: b"", "RW0301", "bytes none"),
    ("text", lambda data: b"define void @f()", "RW0301", 'this is text: "define void @f()"'),
    ("bundle", lambda data: b"__CLANG_OFFLOAD_BUNDLE__" + data, "RW0312", "clang offload bundle"),
    (
        "compressed",
        lambda data: b"CCOB\x03\x00\x01\x00" + data,
        "RW0312",
        "compressed clang offload bundle (CCOB v3, zstd)",
    ),
    ("bundle in a host file", lambda data: host_elf(data), "RW0312", "host ELF file with section .hip_fatbin"),
    ("bitcode", lambda data: b"BC\xc0\xde" + data, "RW0301", "LLVM bitcode"),
    ("32 bits", header_field(4, "<B", 1), "RW0302", "01 01 01"),
    ("big endian", header_field(5, "<B", 2), "RW0302", "02 02 01"),
    ("x86-64", header_field(18, "<H", 62), "RW0303", "machine 62: not an AMDGPU object"),
    ("OSABI", header_field(7, "<B", 97), "RW0303", "OSABI"),
    (
        "relocatable",
        _relocatable,
        "RW0306",
        "not linked; allowed: a linked one; do: link it: radiowave.link, or ld.lld",
    ),
    ("executable", header_field(16, "<H", 2), "RW0302", "e_type: 2"),
    ("version 2", header_field(8, "<B", 0), "RW0304", "code object v2, which LLVM gave up in release 18"),
    (
        "version 3",
        header_field(8, "<B", 1),
        "RW0304",
        "code object v3, which LLVM gave up in release 18); allowed: 2 (v4), 3",
    ),
    ("version 7", header_field(8, "<B", 5), "RW0304", "5; allowed: 2 (v4), 3 (v5), 4 (v6)"),
    ("gfx1250", header_field(48, "<I", 0x49), "RW0305", "gfx1250 (machine 0x49)"),
    (
        "generic",
        header_field(48, "<I", 0x59),
        "RW0305",
        "gfx12-generic (machine 0x59): a generic target stands for several GPUs",
    ),
    ("xnack", header_field(48, "<I", 0x34E), "RW0318", "xnack on, sramecc unsupported for gfx1201"),
    (
        "sramecc",
        header_field(48, "<I", 0xC4E),
        "RW0318",
        "sramecc on for gfx1201; allowed: sramecc unsupported, xnack unsupp",
    ),
    ("unknown GPU", header_field(48, "<I", 0xFE), "RW0305", "unknown GPU (machine 0xfe)"),
    ("generic version", header_field(48, "<I", 0x0100004E), "RW0305", "0x100004e"),
    ("another GPU", header_field(48, "<I", 0x48), "RW0308", "gfx1201; allowed: gfx1200"),
    ("metadata version", header_field(8, "<B", 2), "RW0308", "1.2; allowed: 1.1 (code object v4)"),
    ("section table", header_field(40, "<Q", 1 << 63), "RW0307", "section headers"),
    ("program table", header_field(32, "<Q", 1 << 63), "RW0307", "program headers"),
    ("shentsize", header_field(58, "<H", 63), "RW0307", "e_shentsize"),
    ("phentsize", header_field(54, "<H", 55), "RW0307", "e_phentsize"),
    ("shstrndx", header_field(62, "<H", 400), "RW0307", "e_shstrndx: 400"),
    ("no segments", header_field(56, "<H", 0), "RW0307", "inside the file bytes of one loaded segment"),
    ("segments overlap", segment_field(2, 16, "<Q", 0), "RW0307", "segment at 0x0"),
    ("segment cut", segment_field(4, 32, "<Q", 1 << 40), "RW0307", "no more bytes in the file than in memory"),
    ("segment huge", segment_field(4, 40, "<Q", 1 << 47), "RW0307", "below 0x100000000"),
    ("segment past the file", segment_field(2, 8, "<Q", 1 << 20), "RW0307", "inside the file of"),
    ("code not executable", segment_field(2, 4, "<I", 4), "RW0311", "executable segment that is not writable"),
    ("code writable", segment_field(2, 4, "<I", 7), "RW0311", "executable segment that is not writable"),
    ("entry misaligned", descriptor_field(16, "<q", 0x20), "RW0311", "a multiple of 256"),
    ("entry elsewhere", descriptor_field(16, "<q", -0x10C0), "RW0311", "a multiple of 256"),
    ("descriptor wave", descriptor_field(56, "<H", 0x8), "RW0310", "descriptor says wave64, metadata says wave32"),
    (
        "group",
        descriptor_field(0, "<I", 8),
        "RW0310",
        "group segment of kernel 'one': descriptor says 8, metadata says 0",
    ),
    ("private", descriptor_field(4, "<I", 8), "RW0310", "private segment"),
    (
        "kernarg",
        descriptor_field(8, "<I", 16),
        "RW0310",
        "kernarg segment of kernel 'one': descriptor says 16, metadata says 12",
    ),
    ("dynamic stack", descriptor_field(56, "<H", 0xC08), "RW0310", "descriptor says True, metadata says False"),
    ("reserved word", descriptor_field(12, "<I", 1), "RW0309", "bytes 12..15 not zero"),
    ("reserved middle", descriptor_field(40, "<I", 1), "RW0309", "bytes 24..43 not zero"),
    ("reserved end", descriptor_field(60, "<I", 1), "RW0309", "bytes 60..63 not zero"),
    ("reserved property", descriptor_field(56, "<H", 0x1408), "RW0309", "kernel code properties 0x1000"),
    ("descriptor symbol", symbol_field("one.kd", 0, "<I", 0), "RW0309", "no symbol 'one.kd'"),
    ("descriptor misaligned", symbol_field("one.kd", 8, "<Q", 0x744), "RW0309", "a multiple of 64"),
    ("descriptor outside", symbol_field("one.kd", 8, "<Q", 1 << 40), "RW0307", "descriptor of kernel 'one'"),
    ("no function", symbol_field("one", 8, "<Q", 0), "RW0311", "where no function of known size begins"),
    ("empty function", symbol_field("one", 16, "<Q", 0), "RW0311", "where no function of known size begins"),
    ("endless function", symbol_field("one", 16, "<Q", 1 << 62), "RW0311", "inside one executable segment"),
]


@pytest.mark.parametrize(("damage", "code", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(damage: Callable[[bytes], bytes], code: str, words: str, globals_object: bytes) -> None:
    """Case 52 and its like: each fault by its own code, with what was seen and what is allowed."""
    damaged = damage(globals_object)
    with pytest.raises(CodeObjectError) as caught:
        CodeObject.parse(damaged)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert caught.value.do


def test_unstated_kernarg_size_of_a_descriptor(globals_object: bytes) -> None:
    """Assemblers may leave the descriptor's kernarg size at 0; the metadata has it."""
    kernel = CodeObject.parse(descriptor_field(8, "<I", 0)(globals_object)).kernel("one")
    assert (kernel.descriptor.kernarg_bytes, kernel.kernarg_bytes) == (0, 12)


def test_stripped_object_is_read_by_dynsym(globals_object: bytes) -> None:
    """Without .symtab the dynamic symbols still lead to kernels and their code."""
    elf = e.Elf(globals_object)
    table = next(s for s in elf.sections if s.type == e.SHT_SYMTAB)
    header = struct.unpack_from("<Q", globals_object, 40)[0] + table.index * e.SHDR.size
    stripped = CodeObject.parse(header_field(header + 4, "<I", e.SHT_PROGBITS)(globals_object))
    assert stripped.kernels == CodeObject.parse(globals_object).kernels


def test_number_of_kernels_is_limited(globals_object: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted before any of them is read."""
    monkeypatch.setattr(metadata, "MAX_KERNELS", 1)
    with pytest.raises(CodeObjectError, match=r"RW0308 metadata amdhsa\.kernels: 2 kernels; allowed: up to 1"):
        CodeObject.parse(globals_object)


def test_target_id_of_an_object() -> None:
    """Asked for by target id, an object's own features decide: any fits both, a fixed one only itself."""
    text = sources.TRIPLE + 'define amdgpu_kernel void @k() "target-features"="{}" {{ ret void }}'
    jobs = [CompileJob(text.format(features), "gfx1010") for features in ("+xnack", "-xnack", "")]
    on, off, either = compile_many(jobs)
    assert [CodeObject.parse(data).target_id for data in (on, off, either)] == [
        "gfx1010:xnack+",
        "gfx1010:xnack-",
        "gfx1010",
    ]
    for data, target in ((on, "gfx1010:xnack+"), (off, "gfx1010:xnack-"), (on, "gfx1010"), (either, "gfx1010:xnack+")):
        assert CodeObject.read(data, target).data == data
    for data, target in ((on, "gfx1010:xnack-"), (off, "gfx1010:xnack+"), (either, "gfx1010:sramecc+")):
        with pytest.raises(CodeObjectError, match="RW0317 code object: gfx1010") as caught:
            CodeObject.read(data, target)
        assert caught.value.allowed == target


def test_names_and_notes_that_repeat_themselves(globals_object: bytes) -> None:
    """Symbols may share the bytes of a name, segments those of a note: only as often as honest files do."""
    elf = e.Elf(globals_object)
    names = b"\0" + b"n" * 16000 + b"\0"
    rows = e.SYM.pack(1, 0, 0, 0, 0, 0) * 4000
    at, table = len(globals_object), next(s for s in elf.sections if s.type == e.SHT_SYMTAB)
    header = struct.unpack_from("<Q", globals_object, 40)[0]
    moved = {table.index: (at, len(rows)), table.link: (at + len(rows), len(names))}
    changed = bytearray(globals_object + rows + names)
    for index, (offset, nbytes) in moved.items():
        struct.pack_into("<QQ", changed, header + index * e.SHDR.size + 24, offset, nbytes)
    with pytest.raises(CodeObjectError, match="RW0313 .*4 times the file's"):
        CodeObject.parse(bytes(changed))


def test_tables_of_too_many_rows(globals_object: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row costs many times its size in memory."""
    monkeypatch.setattr(e, "MAX_ROWS", 3)
    with pytest.raises(CodeObjectError, match=r"RW0313 symbol table \.symtab: [0-9]+ rows; allowed: up to 3"):
        CodeObject.parse(globals_object)


def test_kernels_that_share_code_cost_no_time(globals_object: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel after kernel over the same bytes is damage, not work to do: the reader has a budget."""
    linked = with_metadata(globals_object, repeat_kernel(100))
    assert len(CodeObject.parse(linked).kernels) == 100
    monkeypatch.setattr(image, "MAX_CODE_READS", 0.1)
    with pytest.raises(CodeObjectError, match="RW0313 kernel 'k"):
        CodeObject.parse(linked)


@cache
def _small() -> bytes:
    return compile_many([CompileJob(sources.ARGUMENTS, "gfx1010", 64)])[0]


def test_every_truncation_is_refused() -> None:
    """No prefix of an object is an object."""
    whole = _small()
    CodeObject.parse(whole)
    for length in range(len(whole)):
        with pytest.raises(CodeObjectError):
            CodeObject.parse(whole[:length])


@settings(max_examples=600, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(1, 255)), min_size=1, max_size=5))
def test_flipped_bytes_raise_one_kind_of_error(changes: list[tuple[int, int]]) -> None:
    """A damaged object is refused as such, or the damage lies where only the hashes see it."""
    whole = _small()
    damaged = bytearray(whole)
    for place, bits in changes:
        damaged[place % len(damaged)] ^= bits
    try:
        parsed = CodeObject.parse(bytes(damaged))
    except CodeObjectError:
        return
    assert parsed.sha256 != CodeObject.parse(whole).sha256 or bytes(damaged) == whole


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_arbitrary_bytes(tail: bytes, is_elf: bool) -> None:
    """Bytes alone, and bytes behind a valid header, so that the tables are reached."""
    head = _small()[:64] if is_elf else b""
    with pytest.raises(CodeObjectError):
        CodeObject.parse(head + tail)
