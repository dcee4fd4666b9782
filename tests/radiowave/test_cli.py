# SPDX-License-Identifier: Apache-2.0
"""The command `radiowave`: output, JSON and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from radiowave import CodeObject, find_tools
from radiowave.child import command, environment
from radiowave.cli import main
from tests.radiowave import sources


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """`sources.GLOBALS` as a file."""
    path = tmp_path / "kernels.ll"
    path.write_text(sources.GLOBALS)
    return path


@pytest.fixture
def built(globals_object: bytes, tmp_path: Path) -> Path:
    """The linked object as a file."""
    path = tmp_path / "kernels.hsaco"
    path.write_bytes(globals_object)
    return path


def test_compile_writes_the_object(source: Path, globals_object: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders are made, the object is the library's, and the output says what was built."""
    output = source.parent / "new" / "out.hsaco"
    assert main(["compile", str(source), "--target", "gfx1201", "-o", str(output)]) == 0
    assert output.read_bytes() == globals_object
    printed = capsys.readouterr().out
    assert "gfx1201  one, two" in printed
    assert CodeObject.parse(globals_object).sha256 in printed


def test_compile_options_reach_the_compiler(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wave size and code object version."""
    arguments = ["compile", str(source), "--target", "gfx1030", "--wave", "64", "--code-object-version", "6", "--json"]
    assert main([*arguments, "-o", str(source.with_suffix(".o"))]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["target"], document["code_object_version"]) == (1, "gfx1030", 6)
    assert [kernel["wave"] for kernel in document["kernels"]] == [64, 64]


def test_inspect_json_has_every_fact(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 49: the JSON holds what the reader knows, nothing renamed, nothing dropped."""
    assert main(["inspect", str(built), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    code_object = CodeObject.parse(built.read_bytes())
    assert document["schema"] == 1
    for row, kernel in zip(document["kernels"], code_object.kernels.values(), strict=True):
        marks = [(argument.pop("hidden"), argument.pop("known")) for argument in row["arguments"]]
        assert marks == [(a.is_hidden, a.is_known) for a in kernel.arguments]
        assert row == json.loads(json.dumps(asdict(kernel)))


def test_inspect_shows_arguments(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels, descriptor words and arguments, for people."""
    assert main(["inspect", str(built)]) == 0
    printed = capsys.readouterr().out
    assert "kernel one (one.kd)  wave32" in printed
    assert "rsrc1 0xe00f0000  rsrc2 0x00000084" in printed
    assert "global_buffer y global" in printed


def test_disassemble(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One kernel as text, all as JSON."""
    assert main(["disassemble", str(built), "--kernel", "two"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("two:  gfx1201 wave32\n")
    assert printed.rstrip().endswith("s_endpgm")
    assert "one:" not in printed
    assert main(["disassemble", str(built), "--json"]) == 0
    listings = json.loads(capsys.readouterr().out)["kernels"]
    assert list(listings) == ["one", "two"]
    assert listings["one"][-1]["text"] == "s_endpgm"


def test_undecodable_code_is_a_finding(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the listing says where it stopped."""
    data = bytearray(built.read_bytes())
    code_object = CodeObject.parse(bytes(data))
    at = bytes(data).index(code_object.code(code_object.kernel("one")))
    data[at : at + 4] = b"\xff" * 4
    built.write_bytes(data)
    assert main(["disassemble", str(built), "--kernel", "one"]) == 1
    assert "does not decode" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["inspect", "{folder}/absent"], 2, "No such file"),
        (["inspect", "{source}"], 1, "RW0301"),
        (["disassemble", "{built}", "--kernel", "three"], 1, "RW0314"),
        (["compile", "{source}", "--target", "gfx1250", "-o", "{folder}/o"], 2, "RW0201"),
        (["compile", "{folder}/absent.ll", "--target", "gfx1201", "-o", "{folder}/o"], 2, "No such file"),
        (["compile", "{built}", "--target", "gfx1201", "-o", "{folder}/o"], 2, "codec can't decode"),
        (["compile", "{broken}", "--target", "gfx1201", "-o", "{folder}/o"], 1, "RW0101"),
    ],
)
def test_exit_codes(
    arguments: list[str], code: int, words: str, source: Path, built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 for a fault in the input, 2 for a wrong call; one line on stderr, nothing written."""
    broken = source.with_name("broken.ll")
    broken.write_text("define")
    places = {"folder": source.parent, "source": source, "built": built, "broken": broken}
    assert main([argument.format(**places) for argument in arguments]) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.startswith("radiowave: ")
    assert captured.out == ""
    assert not (source.parent / "o").exists()


@pytest.mark.parametrize("arguments", [[], ["compile"], ["inspect", "f", "--nothing"]])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse ends with 2."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: radiowave" in capsys.readouterr().err


def test_as_a_module(built: Path) -> None:
    """`python -m radiowave` is the command, and survives a reader that closes early."""
    inspect = command("radiowave", "inspect", str(built))
    done = subprocess.run(inspect, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("gfx1201  code object v5")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(inspect, env=environment(), stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found tools have a path and a version; missing ones say where they were looked for."""
    program = tmp_path / "hipcc"
    program.write_text("#!/bin/sh\necho HIP version: 7.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("HIPCC", str(program))
    monkeypatch.setenv("RADIOWAVE_CLANG", str(tmp_path / "absent"))
    tools = {tool.name: tool for tool in find_tools()}
    assert list(tools) == ["disassembler", "llvmlite", "clang", "hipcc"]
    assert "LLVM 22" in tools["llvmlite"].version
    assert tools["disassembler"].path
    assert "LLVM" in tools["disassembler"].version
    assert (tools["hipcc"].path, tools["hipcc"].version) == (str(program), "HIP version: 7.0")
    assert tools["clang"].path is None
    assert tools["clang"].looked == (f"$RADIOWAVE_CLANG: {tmp_path / 'absent'}",)
    assert main(["tools"]) == 0
    assert f"looked at $RADIOWAVE_CLANG: {tmp_path / 'absent'}" in capsys.readouterr().out


def test_tools_without_a_disassembler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing disassembler is reported, not raised."""
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")
    assert main(["tools", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = [tool for tool in document["tools"] if tool["name"] == "disassembler"]
    assert row["path"] is None
    assert row["looked"] == ["$RADIOWAVE_LIBLLVM: /absent/libLLVM.so"]
