# SPDX-License-Identifier: Apache-2.0
"""The table of refused encodings against every opcode that LLVM decodes, and which code counts for which kernel."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from radiowave import CodeObject, Disassembler, InstructionCheck, RefusedInstruction, ToolchainError, compile_ir
from radiowave import refused as module
from radiowave.refused import ENCODINGS, Encoding
from radiowave.targets import TARGETS
from tests.radiowave import sources
from tests.radiowave.encodings import known
from tests.radiowave.patch import NOP, patched

#: One target of each generation whose instructions differ.
KINDS = ("gfx1010", "gfx1013", "gfx1030", "gfx1100", "gfx1151", "gfx1201")

_SCALAR = re.compile(r"s_(buffer_|scratch_)?(store|atomic)_")
_WRITE = re.compile(r"(t?buffer|flat|global|scratch)_(store|atomic)_")


def _is_refused(target: str, text: str) -> bool:
    """What the memory model says of LLVM's text, without a look at any bit."""
    by_dlc = target.startswith("gfx10") and bool(_WRITE.match(text)) and text.endswith(" dlc")
    return by_dlc or text.startswith("image_") or bool(_SCALAR.match(text))


@dataclass(frozen=True)
class _Decoded:
    """First dwords that LLVM decodes, its texts, and which of them the memory model refuses."""

    firsts: NDArray[np.uint32]
    texts: list[str]
    refused: NDArray[np.bool_]

    def differing(self, rows: tuple[Encoding, ...]) -> set[str]:
        """Texts that the table and the memory model see differently."""
        matched = np.zeros(len(self.firsts), bool)
        for row in rows:
            matched |= (self.firsts & np.uint32(row.mask)) == np.uint32(row.pattern)
        return {self.texts[index] for index in np.flatnonzero(matched != self.refused)}


def _decoded(target: str, found: dict[int, str]) -> _Decoded:
    # LLVM 22 decodes gfx9's v_fma_mix among gfx12's image opcodes; its assembler writes another word there.
    artefact = "v_fma_mix" if target.startswith("gfx12") else "none"
    rows = {first: _dlc_last(text) for first, text in found.items() if not text.startswith(artefact)}
    texts = list(rows.values())
    return _Decoded(np.array(list(rows), np.uint32), texts, np.array([_is_refused(target, text) for text in texts]))


def _dlc_last(text: str) -> str:
    return text.replace(" dlc", "") + " dlc" if " dlc" in text else text


@pytest.fixture(scope="module")
def decoded(disassembler: Disassembler) -> dict[str, _Decoded]:
    """For every generation."""
    return {target: _decoded(target, known(disassembler, target)) for target in KINDS}


@pytest.mark.parametrize("target", KINDS)
def test_the_table_is_what_llvm_decodes(target: str, decoded: dict[str, _Decoded]) -> None:
    """Every opcode of every encoding: matched exactly if its name is refused. Sound, and no other instruction hit."""
    assert decoded[target].differing(ENCODINGS[target]) == set()


#: How many names of refused instructions LLVM 22 knows: images, scalar stores and atomics, vector stores and atomics.
NAMES = {
    "gfx1010": (109, 61, 142),
    "gfx1013": (110, 61, 142),
    "gfx1030": (110, 0, 145),
    "gfx1100": (82, 0, 0),
    "gfx1151": (82, 0, 0),
    "gfx1201": (80, 0, 0),
}


@pytest.mark.parametrize("target", KINDS)
def test_llvm_was_asked_for_all_of_them(target: str, decoded: dict[str, _Decoded]) -> None:
    """The comparison is not hollow: 9 scalar stores and 2 x 26 atomics by name, and the rest by number."""
    names = {text.split()[0] for text in decoded[target].texts if _is_refused(target, text)}
    scalar = {name for name in names if name.startswith("s_")}
    images = {name for name in names if name.startswith("image_")}
    assert (len(images), len(scalar), len(names - images - scalar)) == NAMES[target]
    if scalar:
        operations = ("add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec", "swap", "cmpswap")
        atomics = {f"s_{b}atomic_{op}{x}" for b in ("", "buffer_") for op in operations for x in ("", "_x2")}
        widths = ("dword", "dwordx2", "dwordx4")
        assert scalar == atomics | {f"s_{b}store_{w}" for b in ("", "buffer_", "scratch_") for w in widths}


@pytest.mark.parametrize("target", KINDS)
def test_every_bit_of_the_table_matters(target: str, decoded: dict[str, _Decoded]) -> None:
    """Without a row, or with one pattern bit of one row turned over, the comparison fails."""
    rows = ENCODINGS[target]
    for index, row in enumerate(rows):
        before, behind = rows[:index], rows[index + 1 :]
        assert decoded[target].differing(before + behind), row
        for bit in range(32):
            if row.mask >> bit & 1:
                wrong = replace(row, pattern=row.pattern ^ 1 << bit)
                assert decoded[target].differing((*before, wrong, *behind)), (row, bit)
        assert row.pattern & ~row.mask == 0, row


def test_every_target_has_its_rows() -> None:
    """None is forgotten; the GPUs of a family share theirs."""
    assert set(ENCODINGS) == set(TARGETS)
    for target, rows in ENCODINGS.items():
        (kind,) = (kind for kind in ("gfx1010", "gfx1030", "gfx1100", "gfx1201") if ENCODINGS[kind] == rows)
        assert target[:-1] == kind[:-1] or (target[:-2], kind) == ("gfx11", "gfx1100")


# What clang 22 assembles `image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D` to for gfx1030.
IMAGE_LOAD = (0xF0000F00, 0x00000000)


def _check(data: bytes, kernel: str, disassembler: Disassembler) -> tuple[RefusedInstruction, ...]:
    code_object = CodeObject.parse(data)
    return InstructionCheck(code_object).refused(code_object.kernel(kernel).symbol, disassembler)


@pytest.fixture(scope="module")
def called() -> bytes:
    """Two kernels, one of which calls a function; gfx1030."""
    return compile_ir(sources.GLOBALS, target="gfx1030")


def test_an_instruction_in_a_kernel_is_its_own(called: bytes, disassembler: Disassembler) -> None:
    """With address and text, and of no other kernel."""
    data = patched(called, "one", [NOP, *IMAGE_LOAD])
    (found,) = _check(data, "one", disassembler)
    entry = CodeObject.parse(data).kernel("one").entry_va
    assert (found.address, found.text.split()[0]) == (entry + 4, "image_load")
    assert str(found).endswith(f"at {entry + 4:#x}")
    assert _check(data, "two", disassembler) == ()


def test_an_instruction_outside_of_kernels_is_everyones(called: bytes, disassembler: Disassembler) -> None:
    """A called function may be anyone's: who calls it is not known."""
    data = patched(called, "callee", IMAGE_LOAD)
    for kernel in ("one", "two"):
        (found,) = _check(data, kernel, disassembler)
        assert found.text.startswith("image_load")


@pytest.mark.parametrize("place", ["one", "callee"])
def test_a_constant_is_no_instruction(place: str, called: bytes, disassembler: Disassembler) -> None:
    """`v_mov_b32 v0, 0xf0000f00`: inside an instruction, in a kernel and in a function."""
    data = patched(called, place, [0x7E0002FF, IMAGE_LOAD[0], NOP])
    assert _check(data, "one", disassembler) == ()


def test_what_does_not_decode_is_refused(called: bytes, disassembler: Disassembler) -> None:
    """DLC on a buffer atomic, which LLVM does not decode; and whatever may begin behind such bytes."""
    data = patched(called, "one", [0xE0C88000, 0x80010000, 0x7E0002FF, *IMAGE_LOAD])
    first, second = _check(data, "one", disassembler)
    assert (first.text, second.text.split()[0]) == ("", "image_load")
    assert str(first).startswith("an encoding that LLVM does not decode at 0x")


def test_an_instruction_without_a_function(called: bytes, disassembler: Disassembler) -> None:
    """Between functions nobody says what begins where: a dword that looks like one is taken for one."""
    padding = patched(called, "callee", [0x7E0002FF, *IMAGE_LOAD], at=16)  # behind the function's 16 bytes
    for kernel in ("one", "two"):
        (found,) = _check(padding, kernel, disassembler)
        assert found.text.startswith("image_load")


def test_the_list_ends(called: bytes, disassembler: Disassembler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many the first are enough."""
    monkeypatch.setattr(module, "MOST", 3)
    data = patched(called, "one", [*IMAGE_LOAD] * 5)
    assert len(_check(data, "one", disassembler)) == 3


def test_clean_code_needs_no_disassembler(called: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail closed only where something must be told apart; and ask again once there is a disassembler."""
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")
    code_object = CodeObject.parse(patched(called, "one", IMAGE_LOAD))
    check = InstructionCheck(code_object)
    assert check.refused("two.kd") == ()
    with pytest.raises(ToolchainError, match=r"RW0102 .*pip install"):
        check.refused("one.kd")
    monkeypatch.delenv("RADIOWAVE_LIBLLVM")
    assert len(check.refused("one.kd")) == 1


def test_an_empty_code_segment(called: bytes) -> None:
    """Hostile segments of a few bytes, off by one: nothing to find and nothing raised."""
    code_object = CodeObject.parse(called)
    elf = bytearray(called)
    count, at = struct.unpack_from("<H", elf, 56)[0], struct.unpack_from("<Q", elf, 32)[0]
    for index in range(count):
        kind, flags = struct.unpack_from("<II", elf, at + 56 * index)
        if kind == 1 and flags & 1:
            struct.pack_into("<QQ", elf, at + 56 * index + 32, 3, 3)
    assert InstructionCheck(replace(code_object, data=bytes(elf))).refused("one.kd") == ()
