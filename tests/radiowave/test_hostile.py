# SPDX-License-Identifier: Apache-2.0
"""Hostile files: an error of ours in bounded time and memory, never a crash. `make prove` does many more."""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable

import msgpack
import pytest
from redline_fuzz import hostile_objects
from redline_fuzz.hostile_mutations import with_note

from radiowave import CodeObject, CodeObjectError
from radiowave import elf as e

MIB = 1 << 20


def test_two_thousand_damaged_files() -> None:
    """Objects, relocatable ones and bundles, damaged at random and where it hurts; every reader answers each."""
    record = hostile_objects.run(2000, 1, workers=1)
    assert record["failures"] == []
    assert record["answers"]["read"] < 800, "most damage is noticed"
    wanted = {"RW0301", "RW0302", "RW0303", "RW0306", "RW0307", "RW0308", "RW0309", "RW0310", "RW0311", "RW0315"}
    assert wanted <= record["answers"].keys()
    assert len(record["mutations"]) > 20


def test_a_case_is_repeatable() -> None:
    """The number of a failure is enough to see it again, whatever was made before it."""
    first = [hostile_objects.case(1, index) for index in range(300)]
    assert [hostile_objects.case(1, index) for index in reversed(range(300))] == first[::-1]
    assert first != [hostile_objects.case(2, index) for index in range(300)]


def test_the_judge_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is not ours, a reader that hangs, and an error that says nothing are failures."""

    def foreign(_case: hostile_objects.Case) -> str:
        raise IndexError("list index out of range")

    def hanging(_case: hostile_objects.Case) -> str:
        time.sleep(30)
        return "read"

    def silent(_case: hostile_objects.Case) -> str:
        raise CodeObjectError("RW0307", where="", seen="", allowed="", do="")

    damaged = hostile_objects.Case("object cut", "", b"", "gfx1201")
    monkeypatch.setattr(hostile_objects, "SECONDS_PER_CASE", 1)
    for reader, words in ((foreign, "IndexError: list index"), (hanging, "no answer"), (silent, "lacks a part")):
        monkeypatch.setattr(hostile_objects, "READERS", (reader, reader))
        assert words in hostile_objects.judge(damaged)[1]


def _with_segments(data: bytes, row: bytes, count: int, nbytes: int) -> bytes:
    """The object in a larger file, with other program headers behind it."""
    changed = bytearray(data.ljust(nbytes, b"\0") + row * count)
    struct.pack_into("<Q", changed, 32, max(nbytes, len(data)))
    struct.pack_into("<H", changed, 56, count)
    return bytes(changed)


def _same_note_again_and_again(data: bytes) -> bytes:
    row = e.PHDR.pack(e.PT_NOTE, 4, len(data), 0, 0, 3 * MIB, 3 * MIB, 1)
    return _with_segments(data, row, 60_000, 4 * MIB)


def _large_note_again_and_again(data: bytes) -> bytes:
    note = e.NHDR.pack(7, 3 * MIB, e.NT_AMDGPU_METADATA) + b"AMDGPU\0\0"
    row = e.PHDR.pack(e.PT_NOTE, 4, len(data), 0, 0, 3 * MIB + len(note), 3 * MIB + len(note), 1)
    return _with_segments(data + note, row, 60_000, 4 * MIB)


def _section_names(data: bytes) -> bytes:
    """Every section header there can be, each with the longest name there can be, all the same bytes."""
    names = len(data) + 65535 * e.SHDR.size
    table = [e.SHDR.pack(1, 3, 0, 0, names, 16002, 0, 0, 1, 0)] * 65535
    changed = bytearray(data + b"".join(table) + b"\0" + b"n" * 16000 + b"\0")
    struct.pack_into("<Q", changed, 40, len(data))
    struct.pack_into("<HH", changed, 60, 65535, 5)
    return bytes(changed)


def _maps(data: bytes) -> bytes:
    return with_note(data, b"\xdd" + struct.pack(">I", 8 * MIB) + b"\x80" * (8 * MIB))


def _entries_that_share_bytes(data: bytes) -> bytes:
    """A bundle whose entries are all the same megabyte."""
    names = [f"hip-amdgcn-amd-amdhsa--gfx{n}" for n in range(10_000)]
    start = 32 + sum(24 + len(name) for name in names)
    rows = [struct.pack("<QQQ", start, MIB, len(name)) + name.encode() for name in names]
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(rows)) + b"".join(rows) + data.ljust(MIB, b"\0")


BOMBS: tuple[Callable[[bytes], bytes], ...] = (
    _same_note_again_and_again,
    _large_note_again_and_again,
    _section_names,
    _maps,
    _entries_that_share_bytes,
)


@pytest.mark.parametrize("make", BOMBS)
def test_files_that_ask_for_memory(make: Callable[[bytes], bytes], globals_object: bytes) -> None:
    """A few megabytes that name their own bytes over and over: refused, within a few times their size."""
    bomb = make(globals_object)
    tracemalloc.start()
    try:
        with pytest.raises(CodeObjectError):
            CodeObject.read(bomb)
        assert tracemalloc.get_traced_memory()[1] < 200 * MIB
    finally:
        tracemalloc.stop()


def test_a_message_has_an_end(globals_object: bytes) -> None:
    """Found by the fuzzer: a name of 20,000 characters that stood in the message whole."""
    document = msgpack.unpackb(e.Elf(globals_object).notes()[0].payload)
    document["amdhsa.kernels"][0][".args"][1] |= {".name": "x" * 20_000, ".offset": 4}
    with pytest.raises(CodeObjectError, match="RW0308 .*argument 'xxx") as caught:
        CodeObject.parse(with_note(globals_object, msgpack.packb(document)))
    assert len(str(caught.value)) < 4000


def test_segments_that_share_their_bytes(globals_object: bytes) -> None:
    """Loaded segments may share file bytes; checking them copies nothing, so that thousands cost no time."""
    rows = [e.PHDR.pack(e.PT_LOAD, 5, 0, i * 65536, 0, 65536, 65536, 1) for i in range(60_000)]
    changed = bytearray(globals_object.ljust(65536, b"\0") + b"".join(rows))
    struct.pack_into("<Q", changed, 32, 65536)
    struct.pack_into("<H", changed, 56, len(rows))
    tracemalloc.start()
    try:
        assert list(CodeObject.read(bytes(changed)).kernels) == ["one", "two"]
        assert tracemalloc.get_traced_memory()[1] < 100 * MIB
    finally:
        tracemalloc.stop()
