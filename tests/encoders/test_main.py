# SPDX-License-Identifier: Apache-2.0
"""`python -m redline.encoders`: tables as Markdown, and a dump explained."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from redline.encoders import FAMILIES
from redline.encoders.__main__ import main
from tests.encoders import golden

STREAM = golden.answers("gfx12.0")["stream"]


def test_tables_of_a_generation_name_every_constant(capsys: pytest.CaptureFixture[str]) -> None:
    """Registers with offsets, packets with opcodes, cache words, sources."""
    assert main(["gfx12"]) == 0
    printed = capsys.readouterr().out
    table = FAMILIES[4]
    for register in table.registers:
        assert f"| {register.name} | {register.offset:#x} | " in printed
    for packet in table.packets:
        assert f"| {packet.name} | {packet.opcode:#x} | " in printed
    for name, offset in table.queue_owned.items():
        assert f"| {name} | {offset:#x} |" in printed
    assert "NUM_THREAD_FULL [12:0], INTERLEAVE_BITS [15:13], NUM_THREAD_PARTIAL [31:16]" in printed
    assert "| entry, system acquire | 0xc181 |" in printed
    assert table.source in printed


@pytest.mark.parametrize(("name", "families"), [("gfx10", 2), ("gfx10.3", 1), ("gfx1036", 1), ("gfx11", 2)])
def test_a_generation_a_family_or_a_target_may_be_named(
    name: str, families: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One heading for each family."""
    assert main([name]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# ")]
    assert len(headings) == families


@pytest.mark.parametrize("form", ["text", "commas", "binary"])
def test_a_dump_is_explained_line_by_line(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hexadecimal text or raw dwords."""
    file = tmp_path / "ib"
    if form == "binary":
        file.write_bytes(struct.pack(f"<{len(STREAM)}I", *STREAM))
    else:
        file.write_text((", " if form == "commas" else "\n").join(f"{word:#010x}" for word in STREAM))
    assert main(["decode", "gfx1201", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(STREAM)
    assert lines[7].split(maxsplit=2) == ["7", "0000C181", "GCR_CNTL GLI_INV=ALL GLK_INV GLV_INV GL2_INV GL2_WB"]


def test_a_dump_with_a_problem_exits_1_and_marks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest is explained all the same."""
    file = tmp_path / "ib"
    file.write_text("C0017600 00000216 00000000 C0004600 00000407")
    assert main(["decode", "gfx1201", str(file)]) == 1
    printed = capsys.readouterr().out
    assert "!! dword 2: SET_SH_REG 0x216: COMPUTE_STATIC_THREAD_MGMT_SE0" in printed
    assert "EVENT_TYPE=CS_PARTIAL_FLUSH" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gfx1250"], "RL0301"),
        (["decode", "gfx1250", "x"], "RL0301"),
        (["decode", "gfx1201", "/nonexistent"], "/nonexistent"),
        (["decode", "gfx1201"], "usage"),
        (["gfx12", "x"], "usage"),
    ],
)
def test_wrong_use_exits_2_with_the_reason(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed to standard output."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_bytes_that_are_neither_text_nor_dwords_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five bytes are no dwords."""
    file = tmp_path / "ib"
    file.write_bytes(b"\xff\x00\x01\x02\x03")
    assert main(["decode", "gfx1201", str(file)]) == 2
    assert "5 bytes" in capsys.readouterr().err


def test_the_tables_need_no_compiler() -> None:
    """Printing and decoding load neither numba nor numpy's consumers of it."""
    code = "import sys, redline.encoders.__main__ as m; m.main(['gfx12']); sys.exit('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False, timeout=60)
    assert done.returncode == 0
