# SPDX-License-Identifier: Apache-2.0
"""The command `radiowave`: output, JSON and exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
from redline_fuzz.bundles import bundle, compress, device_id

from radiowave import CodeObject, find_tools
from radiowave.child import command, environment
from radiowave.cli import main
from tests.radiowave import sources
from tests.radiowave.patch import patched


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
    """The object is the library's, and the output says what was built."""
    output = source.parent / "out.hsaco"
    assert main(["compile", str(source), "--target", "gfx1201", "-o", str(output)]) == 0
    assert output.read_bytes() == globals_object
    printed = capsys.readouterr().out
    assert "gfx1201  one, two" in printed
    assert CodeObject.parse(globals_object).sha256 in printed


def test_compile_makes_no_folders(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped folder is refused before LLVM starts, by its name."""
    output = source.parent / "new" / "out.hsaco"
    assert main(["compile", str(source), "--target", "gfx1201", "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"radiowave: {output}: the folder {output.parent} does not exist; make it first\n"
    assert not output.parent.exists()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("define void @f(ptr %p) { ret void }", "but @f"),
        ('define float @"g h"(float %x) {\n ret float %x }\ndefine void @f.1() { ret void }', 'but @"g h", @f.1'),
        ("@x = addrspace(1) global i32 1", "but no function at all"),
    ],
)
def test_a_source_without_kernels_is_refused(
    text: str, seen: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the functions are called, and what to write; nothing is written."""
    source, output = tmp_path / "f.ll", tmp_path / "f.co"
    source.write_text(text)
    assert main(["compile", str(source), "--target", "gfx1201", "-o", str(output)]) == 1
    error = capsys.readouterr().err
    assert f"RW0108 {source}: no function with the calling convention amdgpu_kernel, {seen}; allowed: " in error
    assert "do: write `define amdgpu_kernel void @" in error
    assert not output.exists()


def test_compile_options_reach_the_compiler(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wave size and code object version."""
    arguments = ["compile", str(source), "--target", "gfx1030", "--wave", "64", "--code-object-version", "6", "--json"]
    assert main([*arguments, "-o", str(source.with_suffix(".o"))]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["target"], document["code_object_version"]) == (3, "gfx1030", 6)
    assert [kernel["wave"] for kernel in document["kernels"]] == [64, 64]


#: Both kernels use variables of their module, `one` behind its own stores, so by vector loads.
VERDICTS = {"one": "vmem_only", "two": "scalar_or_unknown"}
PAST = "which memory it touches past its pointer arguments: see `radiowave certify --explain`"


def test_inspect_json_has_every_fact(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 49: the JSON holds what the reader knows, nothing renamed, nothing dropped."""
    assert main(["inspect", str(built), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    code_object = CodeObject.parse(built.read_bytes())
    assert document["schema"] == 3
    assert document["file"] == {"container": None, "bytes": built.stat().st_size, "sha256": code_object.sha256}
    (shown,) = document["objects"]
    assert (shown["entry"], shown["bundle"], shown["fault"]) == (None, None, None)
    assert (shown["target"], shown["target_id"], shown["code_object_version"]) == ("gfx1201", "gfx1201", 5)
    assert (shown["metadata_version"], shown["xnack"], shown["sramecc"]) == ([1, 2], "unsupported", "unsupported")
    for row, kernel in zip(shown["kernels"], code_object.kernels.values(), strict=True):
        marks = [(argument.pop("hidden"), argument.pop("known")) for argument in row["arguments"]]
        assert marks == [(a.is_hidden, a.is_known) for a in kernel.arguments]
        assert row.pop("refused_instructions") == []
        assert (row.pop("occupancy")["waves_per_simd"], row.pop("statistics")["ends"]) == (16, 1)
        assert row.pop("unknown") == [PAST]
        assert row.pop("certificate")["verdict"] == VERDICTS[kernel.name]
        assert row.pop("accesses") == [{"offset": 0, "reads": [], "writes": True}]
        assert row == json.loads(json.dumps(asdict(kernel)))


#: What "HSA reflection" asks for (case 49), as keys of the JSON.
REFLECTION = {
    "object": {"target", "metadata_version"},
    "kernel": {
        *("name", "symbol", "arguments", "kernarg_bytes", "kernarg_align", "required_workgroup", "max_workgroup"),
        *("descriptor", "language", "kind", "workgroup_hint", "uses_dynamic_stack", "wave"),
    },
    "descriptor": {"group_bytes", "private_bytes", "kernarg_bytes"},
    "argument": {
        *("name", "type_name", "offset", "size", "kind", "address_space", "access", "declared_access"),
        *("pointee_align", "is_const", "is_restrict", "is_volatile", "is_pipe", "hidden", "known"),
    },
}


def test_inspect_json_has_what_was_asked_for(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 49: each field of the request, by name."""
    assert main(["inspect", str(built), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["objects"]
    kernel = shown["kernels"][0]
    rows = {"object": shown, "kernel": kernel, "descriptor": kernel["descriptor"], "argument": kernel["arguments"][0]}
    assert {what: wanted - rows[what].keys() for what, wanted in REFLECTION.items()} == {what: set() for what in rows}


def test_inspect_lists_refused_instructions(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Instructions that no fence orders: in text and JSON, by kernel. The object is sound: exit code 0."""
    data = patched(built.read_bytes(), "two", (0xD3C00000, 0, 0))  # clang 22: image_load v[0:3], v0, s[0:7] ...
    built.write_bytes(data)
    entry = CodeObject.parse(data).kernel("two").entry_va
    assert main(["inspect", str(built), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["objects"]
    one, two = (kernel["refused_instructions"] for kernel in shown["kernels"])
    assert (one, [(row["address"], row["text"].split()[0], sorted(row)) for row in two]) == (
        [],
        [(entry, "image_load", ["address", "do", "text", "why"])],
    )
    assert main(["inspect", str(built)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "refused" in line]
    assert [line.startswith("  refused: image_load ") and f" at {entry:#x}: image" in line for line in lines] == [True]


def test_inspect_without_a_disassembler(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be told is null and said, and the exit code is 1; code without such words needs nobody."""
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")
    assert main(["inspect", str(built)]) == 0
    assert "refused" not in capsys.readouterr().out
    built.write_bytes(patched(built.read_bytes(), "two", (0xD3C00000, 0, 0)))
    assert main(["inspect", str(built), "--json"]) == 1
    (shown,) = json.loads(capsys.readouterr().out)["objects"]
    assert [kernel["refused_instructions"] for kernel in shown["kernels"]] == [[], None]
    assert main(["inspect", str(built)]) == 1
    assert "  not known: refused instructions: RW0102 disassembler: " in capsys.readouterr().out


def test_inspect_shows_arguments(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels, descriptor words and arguments, for people."""
    assert main(["inspect", str(built)]) == 0
    printed = capsys.readouterr().out
    assert "gfx1201  code object v5  metadata 1.2" in printed
    assert "kernel one (one.kd)  wave32" in printed
    assert "rsrc1 0xe00f0000  rsrc2 0x00000084" in printed
    assert "workgroup up to 256" in printed
    assert " offset size  argument\n      0    8  global_buffer y global\n      8    4  by_value i\n" in printed


@pytest.fixture
def fat(globals_object: bytes, tmp_path: Path) -> Path:
    """A compressed bundle with an object, one that is damaged, and one for a GPU that is not on the list."""
    foreign = bytearray(globals_object)
    struct.pack_into("<I", foreign, 48, 0x3F)
    entries = [("gfx1201", globals_object), ("gfx1100", globals_object[:700]), ("gfx90a", bytes(foreign))]
    path = tmp_path / "kernels.hipfb"
    path.write_bytes(compress(bundle([(device_id(name), data) for name, data in entries])))
    return path


def test_inspect_a_bundle(fat: Path, globals_object: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Every entry is listed, readable or not; a damaged one makes the exit code 1."""
    assert main(["inspect", str(fat), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["file"]["container"] == "compressed clang offload bundle (CCOB v3, zstd)"
    good, damaged, foreign = document["objects"]
    assert (good["entry"], good["fault"], good["bytes"]) == (device_id("gfx1201"), None, len(globals_object))
    assert [kernel["name"] for kernel in good["kernels"]] == ["one", "two"]
    assert (damaged["entry"], damaged["fault"]["code"], damaged["bytes"]) == (device_id("gfx1100"), "RW0307", 700)
    assert (foreign["fault"]["code"], "kernels" in foreign) == ("RW0305", False)
    assert main(["inspect", str(fat)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("compressed clang offload bundle (CCOB v3, zstd)  3 code objects  ")
    assert "\n\nentry hipv4-amdgcn-amd-amdhsa--gfx1201  bundle 0  " in printed
    assert "\nnot read: RW0305 ELF header e_flags: gfx90a (machine 0x3f)" in printed


def test_inspect_one_target(fat: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The object asked for and no other; a target that is not there is a fault, one not on the list is usage."""
    assert main(["inspect", str(fat), "--target", "gfx1201", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["entry"] for row in document["objects"]] == [device_id("gfx1201")]
    assert main(["inspect", str(fat), "--target", "gfx1030"]) == 1
    assert f"RW0317 offload bundle, target gfx1030: {device_id('gfx1201')}, " in capsys.readouterr().err
    assert main(["inspect", str(fat), "--target", "gfx90a"]) == 2


def test_inspect_passes_over_foreign_objects(globals_object: bytes, fat: Path) -> None:
    """A library for many GPUs is no finding as long as something in it can be used."""
    foreign = bytearray(globals_object)
    struct.pack_into("<I", foreign, 48, 0x3F)
    odd = [("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02#\x07"), (device_id("gfx90a"), bytes(foreign))]
    fat.write_bytes(bundle([*odd, (device_id("gfx1201"), globals_object)]))
    assert main(["inspect", str(fat)]) == 0
    fat.write_bytes(bundle(odd))
    assert main(["inspect", str(fat)]) == 1


def test_disassemble_out_of_a_bundle(fat: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The target chooses; without it the message lists what there is."""
    assert main(["disassemble", str(fat), "--target", "gfx1201", "--kernel", "two"]) == 0
    assert capsys.readouterr().out.startswith("two:  gfx1201 wave32\n")
    assert main(["disassemble", str(fat)]) == 1
    assert "3 code objects" in capsys.readouterr().err


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
    assert list(tools) == ["disassembler", "llvmlite", "amdclang", "hipcc", "clang", "zig"]
    assert "LLVM 22" in tools["llvmlite"].version
    assert tools["disassembler"].path
    assert "LLVM" in tools["disassembler"].version
    assert (tools["hipcc"].path, tools["hipcc"].version) == (str(program), "HIP version: 7.0")
    assert tools["hipcc"].sha256 == hashlib.sha256(program.read_bytes()).hexdigest()
    assert tools["hipcc"].found == "usable, links with itself"
    assert tools["clang"].path is None
    assert tools["clang"].looked == (f"not found as {tmp_path / 'absent'}",)
    assert main(["tools"]) == 0
    printed = capsys.readouterr().out
    assert f"looked at not found as {tmp_path / 'absent'}" not in printed
    assert f"not found as {tmp_path / 'absent'}" in printed
    assert f"sha256 {tools['hipcc'].sha256}" in printed


def test_tools_without_a_disassembler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing disassembler is reported, not raised."""
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")
    assert main(["tools", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = [tool for tool in document["tools"] if tool["name"] == "disassembler"]
    assert row["path"] is None
    assert row["looked"] == ["$RADIOWAVE_LIBLLVM: /absent/libLLVM.so"]
