# SPDX-License-Identifier: Apache-2.0
"""`redline decode`, `lint` and `tables`: files in, explanations and findings out, exit codes 0, 1 and 2."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import redline as rl
from redline import kernels
from redline.cli import main
from redline.encoders import FAMILIES, Pm4Stream, family_for
from redline.encoders.decode import explain, read
from redline.encoders.lint import lint
from redline.kernel import load
from tests.encoders import golden

pytestmark = pytest.mark.nopython
STREAM = golden.answers("gfx12.0")["stream"]
MASKED = "C0017600 00000216 00000000 C0004600 00000407"


def written(path: Path, words: list[int]) -> str:
    path.write_bytes(struct.pack(f"<{len(words)}I", *words))
    return str(path)


@pytest.mark.parametrize("form", ["columns", "markdown"])
def test_tables_of_a_generation_name_every_constant(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Registers with offsets, packets with opcodes, forms, cache words, sources."""
    assert main(["tables", "gfx12", *(["--markdown"] if form == "markdown" else [])]) == 0
    printed, table = capsys.readouterr().out, FAMILIES[4]
    rows = {" ".join(line.replace("|", " ").split()) for line in printed.splitlines()}
    starts = [f"{item.name} {item.offset:#x} " for item in table.registers]
    starts += [f"{item.name} {item.opcode:#x} " for item in table.packets]
    starts += [f"{name} {form.packet} " for name, form in table.forms.items()]
    starts += [f"{name} {offset:#x}" for name, offset in {**table.queue_owned, **table.not_needed}.items()]
    for start in starts:
        assert any((row + " ").startswith(start) for row in rows), start
    assert "NUM_THREAD_FULL [12:0], INTERLEAVE_BITS [15:13], NUM_THREAD_PARTIAL [31:16]" in printed
    assert "entry, system acquire 0xc181" in rows
    assert table.source in printed


def test_markdown_tables_have_as_many_cells_in_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    """A cell with a bar in it would break its row."""
    assert main(["tables", "gfx11", "--markdown"]) == 0
    width = 0
    for line in capsys.readouterr().out.splitlines():
        cells = line.replace("\\|", "").count("|") if line.startswith("|") else 0
        assert not (cells and width) or cells == width, line
        width = cells


@pytest.mark.parametrize(("name", "families"), [("gfx10", 2), ("gfx10.3", 1), ("gfx1036", 1), ("gfx11", 2)])
def test_a_generation_a_family_or_a_target_may_be_named(
    name: str, families: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One heading for each family."""
    assert main(["tables", name, "--markdown"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# ")]
    assert len(headings) == families


@pytest.mark.parametrize("form", ["text", "commas", "binary", "standard input"])
def test_a_dump_is_explained_line_by_line(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hexadecimal text or raw dwords, from a file or standard input."""
    file, text = tmp_path / "ib", (", " if form == "commas" else "\n").join(f"{word:#010x}" for word in STREAM)
    if form == "binary":
        written(file, STREAM)
    else:
        file.write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["decode", "-" if form == "standard input" else str(file), "--target", "gfx1201"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(STREAM)
    assert lines[7].split(maxsplit=2) == ["7", "0000C181", "GCR_CNTL GLI_INV=ALL GLK_INV GLV_INV GL2_INV GL2_WB"]


def test_decoded_json_has_every_packet_and_every_dword(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a schema number; the words in order are the file."""
    assert main(["decode", written(tmp_path / "ib", STREAM), "--target", "gfx1201", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["schema"], report["target"], report["dwords"]) == (1, "gfx1201", len(STREAM))
    lines = [line for packet in report["packets"] for line in packet["lines"]]
    assert [line["dword"] for line in lines] == list(range(len(STREAM)))
    assert [int(line["word"], 16) for line in lines] == STREAM
    assert all(line["meaning"] for line in lines)
    first = report["packets"][0]
    assert (first["name"], first["fields"]["GL2_WB"], first["problems"]) == ("ACQUIRE_MEM", 1, [])


def test_a_dump_with_a_problem_exits_1_and_marks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest is explained all the same."""
    file = tmp_path / "ib"
    file.write_text(MASKED)
    assert main(["decode", str(file), "--target", "gfx1201"]) == 1
    printed = capsys.readouterr().out
    assert "!! dword 2: SET_SH_REG 0x216: COMPUTE_STATIC_THREAD_MGMT_SE0" in printed
    assert "EVENT_TYPE=CS_PARTIAL_FLUSH" in printed
    assert main(["decode", str(file), "--target", "gfx1201", "--json"]) == 1
    [problem] = json.loads(capsys.readouterr().out)["packets"][0]["problems"]
    assert (problem["dword"], problem["rule"]) == (2, "register")


def test_a_clean_stream_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says how much was read."""
    assert main(["lint", written(tmp_path / "ib", STREAM), "--target", "gfx1201"]) == 0
    assert capsys.readouterr().out == f"no findings in {len(STREAM)} dwords\n"


def test_findings_exit_1_with_dword_rule_and_the_explained_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text and as JSON; foreign streams may be allowed their registers."""
    file = tmp_path / "ib"
    file.write_text(MASKED)
    arguments = ["lint", str(file), "--target", "gfx1201"]
    assert main(arguments) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("dword 2: error: COMPUTE_STATIC_THREAD_MGMT_SE0 (0x216)")
    assert printed[1].split()[:2] == ["2", "00000000"]
    assert printed[-1] == "1 finding in 5 dwords"
    assert main([*arguments, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["schema"], report["dwords"]) == (1, 5)
    assert [(item["dword"], item["rule"], item["level"]) for item in report["findings"]] == [
        (2, "queue-owned", "error")
    ]
    assert main([*arguments, "--allow-queue-owned"]) == 0


def test_a_launch_is_compared_with_a_code_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Descriptor, entry, arguments and size, all from the command line."""
    code = kernels.build("saxpy", "gfx1201")
    words = load(code)["saxpy"].words("saxpy")
    s = Pm4Stream("gfx1201")
    s.acquire_system()
    s.dispatch(replace(words, entry=0x7F0012345600, kernarg=0x7F00ABCD0040), global_size=1000, block=256)
    s.release_system()
    (tmp_path / "k.co").write_bytes(code)
    arguments = ["lint", written(tmp_path / "ib", s.words.tolist()), "--target", "gfx1201"]
    arguments += ["--object", str(tmp_path / "k.co"), "--kernel", "saxpy", "--block", "256"]
    right = ["--entry", "0x7f0012345600", "--kernarg", "0x7f00abcd0040", "--global-size", "1000,1,1"]
    assert main([*arguments, *right]) == 0
    for i, wrong in ((1, "0x7f0012345700"), (3, "0x7f00abcd0080"), (5, "1001")):
        assert main([*arguments, *right[:i], wrong, *right[i + 1 :]]) == 1
    assert main([*arguments, *right, "--dynamic-lds", "512"]) == 1
    assert "LDS_SIZE 0, not 1" in capsys.readouterr().out


@pytest.mark.parametrize("launches", [1, 2])
def test_words_without_addresses_say_what_to_leave_out(
    launches: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program holds 0 where a replay puts addresses: no entry compares them, an entry says so."""
    code = kernels.build("saxpy", "gfx1201")
    graph = rl.Graph()
    y = graph.buffer("y", 4096, role="inout")
    for _ in range(launches):
        arguments = [rl.update(y), rl.read(y), 2.0, 1024]
        graph.launch(rl.load(code)["saxpy"], global_size=512, block=128, args=arguments)
    (tmp_path / "k.co").write_bytes(code)
    file = written(tmp_path / "ib", graph.compile().program.words.tolist())
    command = ["lint", file, "--target", "gfx1201", "--object", str(tmp_path / "k.co"), "--kernel", "saxpy"]
    assert main([*command, "--global-size", "512", "--block", "128"]) == 0
    assert main([*command, "--entry", "0x7f0012345600"]) == 1
    assert "0x0 is an address not filled in yet: give no entry" in capsys.readouterr().out


USAGE: list[tuple[list[str], str]] = [
    (["tables", "gfx1250"], "RL0301"),
    (["decode", "FILE", "--target", "gfx1250"], "RL0301"),
    (["lint", "FILE", "--target", "gfx1250"], "RL0301"),
    (["decode", "/nonexistent", "--target", "gfx1201"], "/nonexistent: No such file"),
    (["decode", "EMPTY", "--target", "gfx1201"], "no words"),
    (["decode", "BYTES", "--target", "gfx1201"], "5 bytes"),
    (["lint", "FILE", "--target", "gfx1201", "--kernel", "saxpy"], "--object and --kernel"),
    (["lint", "FILE", "--target", "gfx1201", "--block", "64"], "need --object"),
    (["lint", "FILE", "--target", "gfx1201", "--object", "BYTES", "--kernel", "saxpy"], "RL06"),
    (["lint", "FILE", "--target", "gfx1201", "--object", "/nonexistent", "--kernel", "saxpy"], "/nonexistent"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_use_exits_2_with_the_reason(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed to standard output."""
    files = {"FILE": MASKED.encode(), "EMPTY": b" \n", "BYTES": b"\xff\x00\x01\x02\x03"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert main([str(tmp_path / part) if part in files else part for part in arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    "arguments", [["decode"], ["decode", "x"], ["lint", "x"], ["tables"], ["lint", "x", "--block", "q"]]
)
def test_missing_arguments_are_usage(arguments: list[str]) -> None:
    """As argparse says it."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_tables_and_decode_need_no_compiler() -> None:
    """Printing loads neither numba nor numpy."""
    code = (
        "import sys; from redline.cli import main; main(['tables', 'gfx12']);"
        "sys.exit(bool({'numba', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False, timeout=60)
    assert done.returncode == 0


@pytest.fixture(scope="module", params=sorted(kernels.DEMO_TARGETS))
def demo(request: pytest.FixtureRequest) -> Any:
    """The demo's program, lowered as it is replayed."""
    from redline import demo

    return demo.record(demo.modules(request.param, 32)).compile().program


def test_every_dword_of_the_demo_is_explained(demo: Any) -> None:
    """Both layers: no problem anywhere, and each line says more than its number."""
    table, lines = family_for(demo.target), 0
    for command in read(demo.words, table):
        assert command.problems == ()
        meanings = explain(command, table)
        assert all(meaning.strip() for meaning in meanings)
        lines += len(meanings)
    assert lines == len(demo.words) > 500


def test_the_demo_is_clean_from_either_start_once_it_has_addresses(demo: Any) -> None:
    """A warm start leaves to the loop what a cold entry acquires; nothing else is found."""
    words = [int(word) for word in demo.words]
    for row in demo.relocs:
        words[row["dword"]] |= 0 if row["half"] else 0x1000 * (1 + int(row["index"]))
    assert lint(words, demo.target) == []
    [ib] = demo.ibs
    assert {item.rule for item in lint(words[int(ib["warm"]) :], demo.target)} <= {"entry"}
    unreleased = lint(words[: int(ib["end"])], demo.target)
    assert {item.rule for item in unreleased} <= {"final-drain", "final-release"}
    assert unreleased
