# SPDX-License-Identifier: Apache-2.0
"""The disassembler process: LLVM's text for known words, and a parent that outlives whatever happens to the child."""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from radiowave import CodeObject, Disassembler, Instruction, ToolchainError, UnsupportedTarget, compile_ir
from radiowave import disassemble as module
from radiowave.disassemble_child import _plain
from radiowave.find_llvm import places
from radiowave.targets import TARGETS, WAVES
from tests.radiowave import sources


def _words(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


# Words and mnemonics from AMD's public ISA manuals: RDNA1/RDNA2 (SOPP 0x01 s_endpgm, 0x0c s_waitcnt, 0x02 s_branch;
# SOP1 0x03 s_mov_b32), RDNA3 (SOPP 0x30 s_endpgm, 0x20 s_branch; SOPK 0x00 s_movk_i32; VOPD), RDNA4 (SOPP 0x30).
KNOWN = [
    ("gfx1010", 32, (0xBF810000,), ["s_endpgm"]),
    ("gfx1030", 64, (0xBF810000,), ["s_endpgm"]),
    ("gfx1100", 32, (0xBFB00000,), ["s_endpgm"]),
    ("gfx1201", 32, (0xBFB00000,), ["s_endpgm"]),
    ("gfx1030", 32, (0xBE8003FF, 0x12345678), ["s_mov_b32 s0, 0x12345678"]),
    ("gfx1100", 32, (0xB000FFFB,), ["s_movk_i32 s0, 0xfffb"]),
    ("gfx1010", 32, (0xBF82FFFE,), ["s_branch 65534"]),
    ("gfx1100", 32, (0xBFA0FFFE,), ["s_branch 65534"]),
    ("gfx1201", 64, (0x7E020280, 0xBFB00000), ["v_mov_b32_e32 v1, 0", "s_endpgm"]),
    ("gfx1100", 32, (0xCA100080, 0x00000081), ["v_dual_mov_b32 v0, 0 :: v_dual_mov_b32 v1, 1"]),
]


@pytest.mark.parametrize(("target", "wave", "words", "texts"), KNOWN)
def test_known_words(
    target: str, wave: int, words: tuple[int, ...], texts: list[str], disassembler: Disassembler
) -> None:
    """One blank behind the mnemonic, no comments, branch distances as unsigned dwords."""
    found = disassembler.decode(_words(*words), 0x1000, target, wave)
    assert [i.text for i in found] == texts
    assert found[0].pc == 0x1000
    assert sum(i.length for i in found) == 4 * len(words)


def test_wave_size_names_other_registers(disassembler: Disassembler) -> None:
    """The same word names VCC by half in wave32 and whole in wave64 (RDNA1 VOPC 0x81 v_cmp_lt_i32)."""
    word = _words(0x7D020300)
    texts = [disassembler.decode(word, 0, "gfx1030", wave)[0].text for wave in WAVES]
    assert texts == ["v_cmp_lt_i32_e32 vcc_lo, v0, v1", "v_cmp_lt_i32_e32 vcc, v0, v1"]


@pytest.mark.parametrize("wave", WAVES)
def test_compiled_code_decodes_to_its_end(
    wave: int, saxpy: dict[tuple[str, int], bytes], disassembler: Disassembler
) -> None:
    """Lengths of 4, 8 and 12 bytes add up to the symbol's size on every target, and the last is s_endpgm."""
    for target in TARGETS:
        code_object = CodeObject.parse(saxpy[target, wave])
        kernel = code_object.kernel("saxpy")
        found = disassembler.decode(code_object.code(kernel), kernel.entry_va, target, wave)
        assert found[-1].text == "s_endpgm"
        assert {i.length for i in found} <= {4, 8, 12}
        ends = [i.pc + i.length for i in found]
        assert [i.pc for i in found] == [kernel.entry_va, *ends[:-1]]
        assert ends[-1] == kernel.entry_va + kernel.code_bytes


def test_undecodable_word_comes_last_and_empty(disassembler: Disassembler) -> None:
    """Decoding stops at it; what follows is not guessed."""
    code = _words(0xBFB00000, 0xFFFFFFFF, 0xBFB00000)
    assert disassembler.decode(code, 8, "gfx1201", 32) == [Instruction(8, 4, "s_endpgm"), Instruction(12, 4, "")]
    assert disassembler.decode(b"\x00\x00", 0, "gfx1201", 32) == [Instruction(0, 2, "")]
    assert disassembler.decode(b"", 0, "gfx1201", 32) == []


def test_cut_literal_is_no_instruction(disassembler: Disassembler) -> None:
    """An instruction whose literal lies behind the end does not decode."""
    found = disassembler.decode(_words(0xBE8003FF), 0, "gfx1030", 32)
    assert [i.text for i in found] == [""]


def test_big_request(disassembler: Disassembler) -> None:
    """More than a pipe holds, in both directions."""
    code = _words(0xBF800000) * 200_000
    found = disassembler.decode(code, 0, "gfx1201", 32)
    assert len(found) == 200_000
    assert {found[i].text for i in (0, 100_000, -1)} == {"s_nop 0"}


def test_hostile_bytes_leave_the_parent_alive(disassembler: Disassembler) -> None:
    """Random bytes on every target: each answer covers a prefix of the bytes, or the child dies and says so."""
    draw = random.Random(20251130)
    for target in TARGETS:
        for _ in range(40):
            code = draw.randbytes(draw.choice((3, 16, 64)))
            try:
                found = disassembler.decode(code, 1 << 47, target, draw.choice(WAVES))
            except ToolchainError as error:
                assert error.code == "RW0103"  # noqa: PT017
                continue
            assert sum(i.length for i in found) <= len(code)
            assert all(i.text and "\t" not in i.text and ";" not in i.text for i in found[:-1])


def test_unknown_names_never_reach_the_child() -> None:
    """An unknown CPU name would end LLVM: no child is even started for it."""
    with Disassembler() as fresh:
        with pytest.raises(UnsupportedTarget, match="RW0201"):
            fresh.decode(b"", 0, "gfx1250", 32)
        with pytest.raises(UnsupportedTarget, match="RW0202"):
            fresh.decode(b"", 0, "gfx1201", 16)
        assert fresh._child is None


@pytest.fixture
def mortal() -> Iterator[tuple[Disassembler, int]]:
    """A disassembler of our own and its child's process id."""
    with Disassembler(seconds=0.5) as own:
        own.library()
        assert own._child is not None
        yield own, own._child._process.pid


def test_dead_child_raises_and_the_next_call_works(mortal: tuple[Disassembler, int]) -> None:
    """A killed child is an error that names the signal, once."""
    own, child = mortal
    os.kill(child, signal.SIGKILL)
    with pytest.raises(ToolchainError, match=r"RW0103 .*signal SIGKILL"):
        own.decode(_words(0xBFB00000), 0, "gfx1201", 32)
    assert [i.text for i in own.decode(_words(0xBFB00000), 0, "gfx1201", 32)] == ["s_endpgm"]
    assert own._child is not None
    assert own._child._process.pid != child


@pytest.mark.parametrize("nbytes", [4, 4 << 20])
def test_stuck_child_is_ended_in_time(nbytes: int, mortal: tuple[Disassembler, int]) -> None:
    """A stopped child neither answers nor reads; the call ends all the same, and the next one works."""
    own, child = mortal
    os.kill(child, signal.SIGSTOP)
    with pytest.raises(ToolchainError, match=r"RW0104 .*after 0\.5 s"):
        own.decode(bytes(nbytes), 0, "gfx1201", 32)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert own.decode(_words(0xBFB00000), 0, "gfx1201", 32)[0].text == "s_endpgm"


def test_close_ends_the_child(mortal: tuple[Disassembler, int]) -> None:
    """Nothing is left running; closing twice is harmless."""
    own, child = mortal
    own.close()
    own.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_too_much_code_is_refused(disassembler: Disassembler, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit with its number."""
    monkeypatch.setattr(module, "MAX_CODE_BYTES", 8)
    with pytest.raises(ToolchainError, match=r"RW0107 .*12 bytes of code; allowed: up to 8 bytes"):
        disassembler.decode(bytes(12), 0, "gfx1201", 32)


def test_an_answer_without_end_is_refused_in_time(disassembler: Disassembler, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than any answer may have: the child, which still sends, is ended and not waited for."""
    monkeypatch.setattr(module, "MAX_MESSAGE_BYTES", 1000)
    with pytest.raises(ToolchainError, match=r"RW0107 .*more than 1,000 bytes .*; allowed: up to 1,000 bytes"):
        disassembler.decode(_words(0xBF800000) * 200_000, 0, "gfx1201", 32)
    assert [i.text for i in disassembler.decode(_words(0xBFB00000), 0, "gfx1201", 32)] == ["s_endpgm"]


def test_a_child_that_falls_silent_and_lives_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes its output and goes on: an error after a while, and no process is left."""
    silent = "import os, time; os.close(1); time.sleep(60)"
    monkeypatch.setattr(module, "command", lambda *_: [sys.executable, "-c", silent])
    monkeypatch.setattr(module, "SECONDS_TO_END", 0.05)
    with Disassembler() as own, pytest.raises(ToolchainError, match=r"RW0103 .*SIGKILL"):
        own.library()


def test_threads_take_turns(disassembler: Disassembler) -> None:
    """Answers do not get mixed up between threads."""
    seen: list[bool] = []

    def ask(target: str, word: int) -> None:
        for _ in range(50):
            seen.append(disassembler.decode(_words(word), 0, target, 32)[0].text == "s_endpgm")

    threads = [threading.Thread(target=ask, args=row) for row in (("gfx1030", 0xBF810000), ("gfx1201", 0xBFB00000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 100


@pytest.mark.parametrize("problem", ["missing", "no library", "another library"])
def test_no_library_says_where_it_looked(problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """$RADIOWAVE_LIBLLVM decides alone: a wrong one is an error, never a silent second choice."""
    path = tmp_path / "libLLVM.so"
    if problem == "no library":
        path.write_bytes(b"not a library")
    chosen = "libm.so.6" if problem == "another library" else str(path)
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", chosen)
    with Disassembler() as fresh, pytest.raises(ToolchainError, match=r"RW0102 .*RADIOWAVE_LIBLLVM") as caught:
        fresh.decode(_words(0xBFB00000), 0, "gfx1201", 32)
    assert chosen in caught.value.seen
    assert "pip install" in caught.value.do


def test_search_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel first, then ROCm, then the system from the newest version down; a chosen library alone."""
    monkeypatch.delenv("RADIOWAVE_LIBLLVM", raising=False)
    monkeypatch.setenv("ROCM_PATH", "/somewhere/rocm")
    found = [f"{source} {library}" for source, library in places()]
    marks = ("librocmllvm.so", "/somewhere/rocm/lib/llvm/lib/", "/opt/rocm/", "libLLVM.so.22.1", "libLLVM.so.19.1")
    where = [next(i for i, place in enumerate(found) if mark in place) for mark in marks]
    assert where == sorted(where)
    assert where[0] == 0
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/x.so")
    assert list(places()) == [("$RADIOWAVE_LIBLLVM", "/x.so")]


def test_text_is_normalised() -> None:
    """LLVM versions differ in tabs and comments; ours has one blank and no comment."""
    for raw in (b"\ts_mov_b32 s0, 1", b"\ts_mov_b32\ts0, 1", b"s_mov_b32 s0, 1 // 000: BE", b"s_mov_b32 s0, 1 ; x"):
        assert _plain(raw) == "s_mov_b32 s0, 1"


def test_text_equals_the_source(disassembler: Disassembler) -> None:
    """A constant of the source shows up as the instruction's literal."""
    text = (
        sources.TRIPLE
        + "define amdgpu_kernel void @k(ptr addrspace(1) %p) { store i32 -559038737, ptr addrspace(1) %p ret void }"
    )
    code_object = CodeObject.parse(compile_ir(text, target="gfx1151"))
    kernel = code_object.kernel("k")
    found = disassembler.decode(code_object.code(kernel), kernel.entry_va, "gfx1151", 32)
    assert any("0xdeadbeef" in i.text for i in found)
    assert "s_load_b64" in found[0].text
