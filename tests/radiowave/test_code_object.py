# SPDX-License-Identifier: Apache-2.0
"""The reader of linked objects: facts against outside answers, and damage against `CodeObjectError` alone."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import msgpack
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st
from redline_fuzz.bundles import host_elf

from radiowave import CodeObject, CodeObjectError, CompileJob, compile_ir, compile_many, image, metadata
from radiowave import elf as e
from radiowave.compile import compile_relocatable
from radiowave.inspection import inspect, inspection_json, inspection_lines
from radiowave.value_kinds import VALUE_KINDS
from tests.radiowave import sources

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


def _word(offset: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        struct.pack_into(layout, changed, offset, value)
        return bytes(changed)

    return change


def _relocatable(_data: bytes) -> bytes:
    return compile_relocatable([CompileJob(sources.GLOBALS, "gfx1201")])[0]


def _symbol_row(data: bytes, name: str) -> int:
    elf = e.Elf(data)
    table = next(s for s in elf.sections if s.type == e.SHT_SYMTAB)
    return table.offset + [s.name for s in elf.symbols(table)].index(name) * e.SYM.size


def _descriptor(at: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    """Change a field of kernel one's descriptor, which lies in the first segment: address equals offset."""

    def change(data: bytes) -> bytes:
        return _word(CodeObject.parse(data).kernel("one").descriptor_va + at, layout, value)(data)

    return change


def _symbol(name: str, at: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    return lambda data: _word(_symbol_row(data, name) + at, layout, value)(data)


def _segment(index: int, at: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    return _word(e.EHDR.size + index * e.PHDR.size + at, layout, value)


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
    ("32 bits", _word(4, "<B", 1), "RW0302", "01 01 01"),
    ("big endian", _word(5, "<B", 2), "RW0302", "02 02 01"),
    ("x86-64", _word(18, "<H", 62), "RW0303", "machine 62: not an AMDGPU object"),
    ("OSABI", _word(7, "<B", 97), "RW0303", "OSABI"),
    (
        "relocatable",
        _relocatable,
        "RW0306",
        "not linked; allowed: a linked one; do: link it: radiowave.link, or ld.lld",
    ),
    ("executable", _word(16, "<H", 2), "RW0302", "e_type: 2"),
    ("version 2", _word(8, "<B", 0), "RW0304", "code object v2, which LLVM gave up in release 18"),
    ("version 3", _word(8, "<B", 1), "RW0304", "code object v3, which LLVM gave up in release 18); allowed: 2 (v4), 3"),
    ("version 7", _word(8, "<B", 5), "RW0304", "5; allowed: 2 (v4), 3 (v5), 4 (v6)"),
    ("gfx1250", _word(48, "<I", 0x49), "RW0305", "gfx1250 (machine 0x49)"),
    (
        "generic",
        _word(48, "<I", 0x59),
        "RW0305",
        "gfx12-generic (machine 0x59): a generic target stands for several GPUs",
    ),
    ("xnack", _word(48, "<I", 0x34E), "RW0318", "xnack on, sramecc unsupported for gfx1201"),
    ("sramecc", _word(48, "<I", 0xC4E), "RW0318", "sramecc on for gfx1201; allowed: sramecc unsupported, xnack unsupp"),
    ("unknown GPU", _word(48, "<I", 0xFE), "RW0305", "unknown GPU (machine 0xfe)"),
    ("generic version", _word(48, "<I", 0x0100004E), "RW0305", "0x100004e"),
    ("another GPU", _word(48, "<I", 0x48), "RW0308", "gfx1201; allowed: gfx1200"),
    ("metadata version", _word(8, "<B", 2), "RW0308", "1.2; allowed: 1.1 (code object v4)"),
    ("section table", _word(40, "<Q", 1 << 63), "RW0307", "section headers"),
    ("program table", _word(32, "<Q", 1 << 63), "RW0307", "program headers"),
    ("shentsize", _word(58, "<H", 63), "RW0307", "e_shentsize"),
    ("phentsize", _word(54, "<H", 55), "RW0307", "e_phentsize"),
    ("shstrndx", _word(62, "<H", 400), "RW0307", "e_shstrndx: 400"),
    ("no segments", _word(56, "<H", 0), "RW0307", "inside the file bytes of one loaded segment"),
    ("segments overlap", _segment(2, 16, "<Q", 0), "RW0307", "segment at 0x0"),
    ("segment cut", _segment(4, 32, "<Q", 1 << 40), "RW0307", "no more bytes in the file than in memory"),
    ("segment huge", _segment(4, 40, "<Q", 1 << 47), "RW0307", "below 0x100000000"),
    ("segment past the file", _segment(2, 8, "<Q", 1 << 20), "RW0307", "inside the file of"),
    ("code not executable", _segment(2, 4, "<I", 4), "RW0311", "executable segment that is not writable"),
    ("code writable", _segment(2, 4, "<I", 7), "RW0311", "executable segment that is not writable"),
    ("entry misaligned", _descriptor(16, "<q", 0x20), "RW0311", "a multiple of 256"),
    ("entry elsewhere", _descriptor(16, "<q", -0x10C0), "RW0311", "a multiple of 256"),
    ("descriptor wave", _descriptor(56, "<H", 0x8), "RW0310", "descriptor says wave64, metadata says wave32"),
    ("group", _descriptor(0, "<I", 8), "RW0310", "group segment of kernel 'one': descriptor says 8, metadata says 0"),
    ("private", _descriptor(4, "<I", 8), "RW0310", "private segment"),
    (
        "kernarg",
        _descriptor(8, "<I", 16),
        "RW0310",
        "kernarg segment of kernel 'one': descriptor says 16, metadata says 12",
    ),
    ("dynamic stack", _descriptor(56, "<H", 0xC08), "RW0310", "descriptor says True, metadata says False"),
    ("reserved word", _descriptor(12, "<I", 1), "RW0309", "bytes 12..15 not zero"),
    ("reserved middle", _descriptor(40, "<I", 1), "RW0309", "bytes 24..43 not zero"),
    ("reserved end", _descriptor(60, "<I", 1), "RW0309", "bytes 60..63 not zero"),
    ("reserved property", _descriptor(56, "<H", 0x1408), "RW0309", "kernel code properties 0x1000"),
    ("descriptor symbol", _symbol("one.kd", 0, "<I", 0), "RW0309", "no symbol 'one.kd'"),
    ("descriptor misaligned", _symbol("one.kd", 8, "<Q", 0x744), "RW0309", "a multiple of 64"),
    ("descriptor outside", _symbol("one.kd", 8, "<Q", 1 << 40), "RW0307", "descriptor of kernel 'one'"),
    ("no function", _symbol("one", 8, "<Q", 0), "RW0311", "where no function of known size begins"),
    ("empty function", _symbol("one", 16, "<Q", 0), "RW0311", "where no function of known size begins"),
    ("endless function", _symbol("one", 16, "<Q", 1 << 62), "RW0311", "inside one executable segment"),
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
    kernel = CodeObject.parse(_descriptor(8, "<I", 0)(globals_object)).kernel("one")
    assert (kernel.descriptor.kernarg_bytes, kernel.kernarg_bytes) == (0, 12)


def _with_metadata(data: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """The object with another metadata note, which stands at the file's end."""
    elf = e.Elf(data)
    document: dict[str, Any] = msgpack.unpackb(elf.notes()[0].payload)
    edit(document)
    return _with_note(data, msgpack.packb(document))


def _with_note(data: bytes, payload: bytes) -> bytes:
    elf = e.Elf(data)
    index = next(i for i, segment in enumerate(elf.segments) if segment.type == e.PT_NOTE)
    note = e.NHDR.pack(7, len(payload), e.NT_AMDGPU_METADATA) + b"AMDGPU\0\0" + payload + bytes(-len(payload) % 4)
    moved = _segment(index, 8, "<Q", len(data))(data)
    return _segment(index, 32, "<Q", len(note))(moved) + note


def _edit_kernel(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for key, value in changes.items():
            document["amdhsa.kernels"][0][f".{key}"] = value

    return edit


def _edit_argument(index: int, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for key, value in changes.items():
            document["amdhsa.kernels"][0][".args"][index][f".{key}"] = value

    return edit


def _both(*edits: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for one in edits:
            one(document)

    return edit


def test_argument_offset_is_the_metadata_s(globals_object: bytes) -> None:
    """Case 47: where the metadata says 24, the argument is at 24, whatever C rules would say."""
    edit = _both(_edit_argument(1, offset=24), _edit_kernel(kernarg_segment_size=28))
    linked = _with_metadata(_descriptor(8, "<I", 0)(globals_object), edit)
    assert [a.offset for a in CodeObject.parse(linked).kernel("one").arguments] == [0, 24]


@pytest.mark.parametrize(
    ("edit", "code", "words"),
    [
        (_edit_kernel(wavefront_size=64), "RW0310", "descriptor says wave32, metadata says wave64"),
        (_edit_kernel(wavefront_size=48), "RW0310", "metadata says wave48"),
        (_edit_kernel(name="two"), "RW0308", "two kernels named 'two'"),
        (_edit_kernel(symbol="three.kd"), "RW0309", "no symbol 'three.kd'"),
        (_edit_kernel(name=5), "RW0308", "metadata kernel 0 .name: int 5; allowed: a str"),
        (_edit_kernel(args={}), "RW0308", "kernel 'one' .args: dict {}"),
        (_edit_kernel(args=[7]), "RW0308", "argument 0: int; allowed: a map"),
        (_edit_kernel(kernarg_segment_size=-1), "RW0308", ".kernarg_segment_size: -1; allowed: 0..1048576"),
        (_edit_kernel(kernarg_segment_size=1 << 40), "RW0308", ".kernarg_segment_size: 1099511627776"),
        (_edit_kernel(kernarg_segment_size=True), "RW0308", "bool True; allowed: a int"),
        (_edit_kernel(kernarg_segment_align=12), "RW0308", "12; allowed: a power of two"),
        (_edit_kernel(kernarg_segment_align=0), "RW0308", "0; allowed: a power of two"),
        (_edit_kernel(reqd_workgroup_size=[1, 2]), "RW0308", "[1, 2]; allowed: 3 integers"),
        (_edit_kernel(uses_dynamic_stack=True), "RW0310", "dynamic stack"),
        (_edit_argument(1, offset=10), "RW0308", "offset 10, size 4; allowed: inside the kernarg segment of 12 bytes"),
        (_edit_argument(1, offset=4), "RW0308", "argument 'i' at 4; allowed: at or behind 8"),
        (_edit_argument(1, size=0), "RW0308", "size 0"),
        (_edit_argument(0, address_space="shared"), "RW0308", "'shared'; allowed: constant generic global"),
        (_edit_argument(0, access="sometimes"), "RW0308", "'sometimes'; allowed: read_only"),
        (_edit_argument(0, type_name=1), "RW0308", ".type_name: int 1; allowed: a str"),
        (_edit_argument(0, is_const=1), "RW0308", ".is_const: int 1; allowed: a bool"),
        (_edit_kernel(kind="main"), "RW0308", "'main'; allowed: fini init normal"),
        (_edit_kernel(workgroup_size_hint=[1]), "RW0308", ".workgroup_size_hint: [1]; allowed: 3 integers"),
        (_edit_argument(0, actual_access="none"), "RW0308", "'none'; allowed: read_only read_write write_only"),
        (lambda d: d.update({"amdhsa.kernels": 3}), "RW0308", "metadata amdhsa.kernels: int 3"),
        (lambda d: d.update({"amdhsa.version": [1]}), "RW0308", "amdhsa.version: [1]; allowed: 2 integers"),
        (lambda d: d.pop("amdhsa.version"), "RW0308", "amdhsa.version: nothing"),
        (lambda d: d["amdhsa.kernels"][0].pop(".symbol"), "RW0308", ".symbol: nothing; allowed: a str"),
        (lambda d: d.update({"amdhsa.target": "amdgcn-amd-amdhsa--gfx1100"}), "RW0308", "as the ELF header says"),
    ],
)
def test_metadata_refused(edit: Callable[[dict[str, Any]], None], code: str, words: str, globals_object: bytes) -> None:
    """Every field has a type and a range, and says the same as the descriptor."""
    with pytest.raises(CodeObjectError) as caught:
        CodeObject.parse(_with_metadata(globals_object, edit))
    assert caught.value.code == code
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\x80",
        b"\x01",
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\x81\x80\x01",
        b"\x91" * 100_000,
    ],
    ids=["empty", "never used", "no keys", "number", "huge map", "huge list", "map as key", "deep"],
)
def test_metadata_that_is_no_document(payload: bytes, globals_object: bytes) -> None:
    """Neither counts nor depth in the note can cost memory or break the reader."""
    with pytest.raises(CodeObjectError, match="RW0308"):
        CodeObject.parse(_with_note(globals_object, payload))


@pytest.mark.parametrize("kind", VALUE_KINDS)
def test_every_kind_of_argument(kind: str, globals_object: bytes) -> None:
    """Each kind of LLVM's list is known; one that the ABI gives a size has that size and no other."""
    nbytes = VALUE_KINDS[kind].nbytes or 8
    segment = _edit_kernel(kernarg_segment_size=16)
    # The descriptor may leave its kernarg size open.
    open_size = _descriptor(8, "<I", 0)(globals_object)
    edit = _both(segment, _edit_argument(1, size=nbytes, value_kind=kind))
    argument = CodeObject.parse(_with_metadata(open_size, edit)).kernel("one").arguments[1]
    assert (argument.kind, argument.size, argument.is_known) == (kind, nbytes, True)
    assert argument.is_hidden == kind.startswith("hidden_")
    if VALUE_KINDS[kind].nbytes:
        edit = _both(segment, _edit_argument(1, size=nbytes - 1, value_kind=kind))
        with pytest.raises(CodeObjectError, match=f"RW0308 .*argument 1: {kind} of {nbytes - 1} bytes"):
            CodeObject.parse(_with_metadata(open_size, edit))


def test_unknown_kind_is_listed_and_marked(globals_object: bytes) -> None:
    """Case 49: a kind of tomorrow is not dropped, whatever its size."""
    changed = _with_metadata(globals_object, _edit_argument(1, value_kind="hidden_tomorrow"))
    argument = CodeObject.parse(changed).kernel("one").arguments[1]
    assert (argument.kind, argument.is_known, argument.is_hidden) == ("hidden_tomorrow", False, True)
    (shown,) = inspection_json(inspect(changed))["objects"]
    assert [row["known"] for row in shown["kernels"][0]["arguments"]] == [True, False]
    lines = list(inspection_lines(inspect(changed)))
    assert "      8    4  hidden_tomorrow i (unsupported kind)" in lines


def test_what_the_source_says_about_an_argument(globals_object: bytes) -> None:
    """OpenCL's type names and qualifiers, and the language; absent ones have defaults."""
    source = {"type_name": "image2d_t", "access": "read_only", "pointee_align": 4, "is_const": True, "is_pipe": True}
    edit = _both(
        _edit_argument(0, **source), _edit_kernel(language="OpenCL C", kind="init", workgroup_size_hint=[8, 8, 1])
    )
    changed = _with_metadata(globals_object, edit)
    kernel = CodeObject.parse(changed).kernel("one")
    assert (kernel.language, kernel.kind, kernel.workgroup_hint) == ("OpenCL C", "init", (8, 8, 1))
    first, second = kernel.arguments
    assert (first.type_name, first.declared_access, first.pointee_align) == ("image2d_t", "read_only", 4)
    assert (first.is_const, first.is_restrict, first.is_volatile, first.is_pipe) == (True, False, False, True)
    assert (second.type_name, second.declared_access, second.pointee_align, second.is_const) == ("", None, None, False)
    lines = list(inspection_lines(inspect(changed)))
    assert any(line.endswith("OpenCL C  runs at init") for line in lines)
    assert "      0    8  global_buffer y image2d_t global read_only const pipe aligned to 4" in lines


def test_size_of_the_metadata_is_limited(globals_object: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document may take many times its size in memory."""
    monkeypatch.setattr(metadata, "MAX_NOTE_BYTES", 100)
    with pytest.raises(CodeObjectError, match="RW0308 metadata note: [0-9]+ bytes; allowed: up to 100"):
        CodeObject.parse(globals_object)


def test_missing_note_and_second_note(globals_object: bytes) -> None:
    """Exactly one metadata note."""
    elf = e.Elf(globals_object)
    index = next(i for i, segment in enumerate(elf.segments) if segment.type == e.PT_NOTE)
    with pytest.raises(CodeObjectError, match="RW0308 notes: 0"):
        CodeObject.parse(_segment(index, 32, "<Q", 0)(globals_object))
    segment = elf.segments[index]
    twice = globals_object[segment.offset : segment.offset + segment.file_bytes] * 2
    moved = _segment(index, 32, "<Q", len(twice))(_segment(index, 8, "<Q", len(globals_object))(globals_object))
    with pytest.raises(CodeObjectError, match="RW0308 notes: 2"):
        CodeObject.parse(moved + twice)


def test_note_larger_than_its_segment(globals_object: bytes) -> None:
    """A note's own sizes are checked too."""
    elf = e.Elf(globals_object)
    note = next(segment for segment in elf.segments if segment.type == e.PT_NOTE)
    for field in (0, 4):  # owner's size, payload's size
        with pytest.raises(CodeObjectError, match=f"RW0307 note at {note.offset:#x}"):
            CodeObject.parse(_word(note.offset + field, "<I", 0xFFFFFFF0)(globals_object))


def test_stripped_object_is_read_by_dynsym(globals_object: bytes) -> None:
    """Without .symtab the dynamic symbols still lead to kernels and their code."""
    elf = e.Elf(globals_object)
    table = next(s for s in elf.sections if s.type == e.SHT_SYMTAB)
    header = struct.unpack_from("<Q", globals_object, 40)[0] + table.index * e.SHDR.size
    stripped = CodeObject.parse(_word(header + 4, "<I", e.SHT_PROGBITS)(globals_object))
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
    linked = _with_metadata(globals_object, _repeat_kernel(100))
    assert len(CodeObject.parse(linked).kernels) == 100
    monkeypatch.setattr(image, "MAX_CODE_READS", 0.1)
    with pytest.raises(CodeObjectError, match="RW0313 kernel 'k"):
        CodeObject.parse(linked)


def _repeat_kernel(times: int) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        first = document["amdhsa.kernels"][0]
        document["amdhsa.kernels"] = [{**first, ".name": f"k{index}"} for index in range(times)]

    return edit


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
