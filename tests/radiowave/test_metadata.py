# SPDX-License-Identifier: Apache-2.0
"""The metadata note of a linked object: what is read from it, and damage against `CodeObjectError` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from radiowave import CodeObject, CodeObjectError, metadata
from radiowave import elf as e
from radiowave.inspection import inspect, inspection_json, inspection_lines
from radiowave.value_kinds import VALUE_KINDS
from tests.radiowave.damage import (
    both,
    descriptor_field,
    edit_argument,
    edit_kernel,
    header_field,
    segment_field,
    with_metadata,
    with_note,
)


def test_argument_offset_is_the_metadata_s(globals_object: bytes) -> None:
    """Case 47: where the metadata says 24, the argument is at 24, whatever C rules would say."""
    edit = both(edit_argument(1, offset=24), edit_kernel(kernarg_segment_size=28))
    linked = with_metadata(descriptor_field(8, "<I", 0)(globals_object), edit)
    assert [a.offset for a in CodeObject.parse(linked).kernel("one").arguments] == [0, 24]


@pytest.mark.parametrize(
    ("edit", "code", "words"),
    [
        (edit_kernel(wavefront_size=64), "RW0310", "descriptor says wave32, metadata says wave64"),
        (edit_kernel(wavefront_size=48), "RW0310", "metadata says wave48"),
        (edit_kernel(name="two"), "RW0308", "two kernels named 'two'"),
        (edit_kernel(symbol="three.kd"), "RW0309", "no symbol 'three.kd'"),
        (edit_kernel(name=5), "RW0308", "metadata kernel 0 .name: int 5; allowed: a str"),
        (edit_kernel(args={}), "RW0308", "kernel 'one' .args: dict {}"),
        (edit_kernel(args=[7]), "RW0308", "argument 0: int; allowed: a map"),
        (edit_kernel(kernarg_segment_size=-1), "RW0308", ".kernarg_segment_size: -1; allowed: 0..1048576"),
        (edit_kernel(kernarg_segment_size=1 << 40), "RW0308", ".kernarg_segment_size: 1099511627776"),
        (edit_kernel(kernarg_segment_size=True), "RW0308", "bool True; allowed: a int"),
        (edit_kernel(kernarg_segment_align=12), "RW0308", "12; allowed: a power of two"),
        (edit_kernel(kernarg_segment_align=0), "RW0308", "0; allowed: a power of two"),
        (edit_kernel(reqd_workgroup_size=[1, 2]), "RW0308", "[1, 2]; allowed: 3 integers"),
        (edit_kernel(uses_dynamic_stack=True), "RW0310", "dynamic stack"),
        (edit_argument(1, offset=10), "RW0308", "offset 10, size 4; allowed: inside the kernarg segment of 12 bytes"),
        (edit_argument(1, offset=4), "RW0308", "argument 'i' at 4; allowed: at or behind 8"),
        (edit_argument(1, size=0), "RW0308", "size 0"),
        (edit_argument(0, address_space="shared"), "RW0308", "'shared'; allowed: constant generic global"),
        (edit_argument(0, access="sometimes"), "RW0308", "'sometimes'; allowed: read_only"),
        (edit_argument(0, type_name=1), "RW0308", ".type_name: int 1; allowed: a str"),
        (edit_argument(0, is_const=1), "RW0308", ".is_const: int 1; allowed: a bool"),
        (edit_kernel(kind="main"), "RW0308", "'main'; allowed: fini init normal"),
        (edit_kernel(workgroup_size_hint=[1]), "RW0308", ".workgroup_size_hint: [1]; allowed: 3 integers"),
        (edit_argument(0, actual_access="none"), "RW0308", "'none'; allowed: read_only read_write write_only"),
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
        CodeObject.parse(with_metadata(globals_object, edit))
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
        CodeObject.parse(with_note(globals_object, payload))


@pytest.mark.parametrize("kind", VALUE_KINDS)
def test_every_kind_of_argument(kind: str, globals_object: bytes) -> None:
    """Each kind of LLVM's list is known; one that the ABI gives a size has that size and no other."""
    nbytes = VALUE_KINDS[kind].nbytes or 8
    segment = edit_kernel(kernarg_segment_size=16)
    # The descriptor may leave its kernarg size open.
    open_size = descriptor_field(8, "<I", 0)(globals_object)
    edit = both(segment, edit_argument(1, size=nbytes, value_kind=kind))
    argument = CodeObject.parse(with_metadata(open_size, edit)).kernel("one").arguments[1]
    assert (argument.kind, argument.size, argument.is_known) == (kind, nbytes, True)
    assert argument.is_hidden == kind.startswith("hidden_")
    if VALUE_KINDS[kind].nbytes:
        edit = both(segment, edit_argument(1, size=nbytes - 1, value_kind=kind))
        with pytest.raises(CodeObjectError, match=f"RW0308 .*argument 1: {kind} of {nbytes - 1} bytes"):
            CodeObject.parse(with_metadata(open_size, edit))


def test_unknown_kind_is_listed_and_marked(globals_object: bytes) -> None:
    """Case 49: a kind of tomorrow is not dropped, whatever its size."""
    changed = with_metadata(globals_object, edit_argument(1, value_kind="hidden_tomorrow"))
    argument = CodeObject.parse(changed).kernel("one").arguments[1]
    assert (argument.kind, argument.is_known, argument.is_hidden) == ("hidden_tomorrow", False, True)
    (shown,) = inspection_json(inspect(changed))["objects"]
    assert [row["known"] for row in shown["kernels"][0]["arguments"]] == [True, False]
    lines = list(inspection_lines(inspect(changed)))
    assert "      8    4  hidden_tomorrow i (unsupported kind)" in lines


def test_what_the_source_says_about_an_argument(globals_object: bytes) -> None:
    """OpenCL's type names and qualifiers, and the language; absent ones have defaults."""
    source = {"type_name": "image2d_t", "access": "read_only", "pointee_align": 4, "is_const": True, "is_pipe": True}
    edit = both(
        edit_argument(0, **source), edit_kernel(language="OpenCL C", kind="init", workgroup_size_hint=[8, 8, 1])
    )
    changed = with_metadata(globals_object, edit)
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
        CodeObject.parse(segment_field(index, 32, "<Q", 0)(globals_object))
    segment = elf.segments[index]
    twice = globals_object[segment.offset : segment.offset + segment.file_bytes] * 2
    moved = segment_field(index, 32, "<Q", len(twice))(
        segment_field(index, 8, "<Q", len(globals_object))(globals_object)
    )
    with pytest.raises(CodeObjectError, match="RW0308 notes: 2"):
        CodeObject.parse(moved + twice)


def test_note_larger_than_its_segment(globals_object: bytes) -> None:
    """A note's own sizes are checked too."""
    elf = e.Elf(globals_object)
    note = next(segment for segment in elf.segments if segment.type == e.PT_NOTE)
    for field in (0, 4):  # owner's size, payload's size
        with pytest.raises(CodeObjectError, match=f"RW0307 note at {note.offset:#x}"):
            CodeObject.parse(header_field(note.offset + field, "<I", 0xFFFFFFF0)(globals_object))
