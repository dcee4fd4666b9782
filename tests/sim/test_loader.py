# SPDX-License-Identifier: Apache-2.0
"""The software device's own loader: placement, relocations, and hostile bytes."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import given
from hypothesis import strategies as st

import radiowave
from redline.sim.families import TARGETS
from redline.sim.loader import LoaderError, load_image
from redline.sim.memory import Memory

SOURCE = """
target triple = "amdgcn-amd-amdhsa"
@table = addrspace(1) constant [4 x i32] [i32 11, i32 22, i32 33, i32 44]
@inside = addrspace(1) constant ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @table, i64 8)
@zeros = addrspace(1) global [64 x i32] zeroinitializer
define amdgpu_kernel void @look(ptr addrspace(1) %out) {
  %where = load volatile ptr addrspace(1), ptr addrspace(1) @inside
  %value = load i32, ptr addrspace(1) %where
  store i32 %value, ptr addrspace(1) @zeros
  store i32 %value, ptr addrspace(1) %out
  ret void
}
"""


@pytest.fixture(name="code", scope="module")
def _code() -> bytes:
    return radiowave.compile_ir(SOURCE, target="gfx1100", wave=32)


@pytest.fixture(name="memory")
def _memory() -> Iterator[Memory]:
    memory = Memory()
    yield memory
    memory.close()


def test_relocated_pointers_point_into_this_load(code: bytes, memory: Memory) -> None:
    """A pointer constant holds the loaded address of what it names; zeroed data is zero, not poison."""
    for _ in range(2):
        image = load_image(code, TARGETS["gfx1100"], memory)
        inside, table = image.symbols["inside"].address, image.symbols["table"].address
        assert memory.u64_at(inside) == table + 8
        assert memory.u32_at(memory.u64_at(inside)) == 33
        zeros = image.symbols["zeros"]
        assert memory.bytes_at(zeros.address, zeros.nbytes) == bytes(256)
        assert image.symbols["look.kd"].is_kernel
        assert not zeros.is_kernel
        assert all(image.address <= symbol.address < image.address + image.nbytes for symbol in image.symbols.values())


def test_absolute_relocations_add_symbol_and_addend(code: bytes, memory: Memory) -> None:
    """The linker writes RELATIVE64; the pointer's record is rewritten as ABS64 of `table`, with another addend."""
    elf = ELFFile(io.BytesIO(code))
    dynamic = elf.get_section_by_name(".dynsym")
    assert isinstance(dynamic, SymbolTableSection)
    number, table = next((i, s) for i, s in enumerate(dynamic.iter_symbols()) if s.name == "table")
    plain = load_image(code, TARGETS["gfx1100"], memory)
    place = plain.symbols["inside"].address - plain.address
    record = struct.pack("<QQq", place, 13, table["st_value"] + 8)
    assert code.count(record) == 1
    absolute = code.replace(record, struct.pack("<QQq", place, number << 32 | 3, 4))
    image = load_image(absolute, TARGETS["gfx1100"], memory)
    assert memory.u64_at(image.symbols["inside"].address) == image.symbols["table"].address + 4
    unknown = code.replace(record, struct.pack("<QQq", place, number << 32 | 7, 4))
    with pytest.raises(LoaderError, match="relocation type 7; allowed: R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64"):
        load_image(unknown, TARGETS["gfx1100"], memory)
    outside = code.replace(record, struct.pack("<QQq", 1 << 40, 13, 0))
    with pytest.raises(LoaderError, match="relocation at 0x10000000000; allowed: inside"):
        load_image(outside, TARGETS["gfx1100"], memory)


def test_segments_land_where_their_virtual_addresses_say(code: bytes, memory: Memory) -> None:
    """Read from the program headers by hand: each segment's file bytes, but for relocated pointers."""
    image = load_image(code, TARGETS["gfx1100"], memory)
    (table,), (entry_size, count) = struct.unpack_from("<Q", code, 32), struct.unpack_from("<HH", code, 54)
    loads, relocated = 0, list[int]()
    for i in range(count):
        kind, _flags, offset, vaddr, _paddr, file_bytes, _memory_bytes, _align = struct.unpack_from(
            "<IIQQQQQQ", code, table + i * entry_size
        )
        if kind != 1 or not file_bytes:
            continue
        loads += 1
        for at in range(0, file_bytes & ~7, 8):
            placed = memory.u64_at(image.address + vaddr + at)
            if placed != int.from_bytes(code[offset + at : offset + at + 8], "little"):
                assert image.address <= placed < image.address + image.nbytes
                relocated.append(image.address + vaddr + at)
    assert loads >= 2
    assert image.symbols["inside"].address in relocated
    assert len(relocated) < 8


BROKEN = {
    "magic": (0, b"\x7fELG", "not a sound ELF file"),
    "class": (4, b"\1", "class 1"),
    "big endian": (5, b"\2", "data 2"),
    "OS ABI": (7, b"\0", "OS ABI 0; allowed: 64"),
    "ABI version": (8, b"\1", "ABI version 1; allowed: code object versions 4, 5, 6"),
    "type": (16, b"\1\0", "file type 1; allowed: 3"),
    "machine": (18, b"\x3e\0", "machine 62"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_headers_of_other_files_are_refused(name: str, code: bytes, memory: Memory) -> None:
    """Each field that decides, with what was seen and what is allowed."""
    at, patch, message = BROKEN[name]
    broken = code[:at] + patch + code[at + len(patch) :]
    with pytest.raises(LoaderError, match=message):
        load_image(broken, TARGETS["gfx1100"], memory)
    assert memory.allocations == ()


def test_a_stripped_object_is_refused(code: bytes, memory: Memory) -> None:
    """ROCr needs .symtab as well; here it is renamed."""
    assert code.count(b".symtab\0") == 1
    with pytest.raises(LoaderError, match=r"no .symtab; allowed: an object that was never stripped"):
        load_image(code.replace(b".symtab\0", b".symbat\0"), TARGETS["gfx1100"], memory)


@given(at=st.integers(0, 4095), value=st.integers(0, 255), cut=st.one_of(st.none(), st.integers(0, 4096)))
def test_hostile_bytes_load_or_are_refused(at: int, value: int, cut: int | None, code: bytes) -> None:
    """One byte changed, or the end cut off: a sound image or `LoaderError`, and no allocation with the latter."""
    broken = bytearray(code)
    broken[at % len(code)] = value
    memory = Memory()
    try:
        image = load_image(bytes(broken[:cut]), TARGETS["gfx1100"], memory)
        assert memory.find(image.address, image.nbytes) is not None
    except LoaderError:
        assert memory.allocations == ()
    finally:
        memory.close()
