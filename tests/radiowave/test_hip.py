# SPDX-License-Identifier: Apache-2.0
"""HIP through clang: the same inputs give the same bytes and record, and what goes wrong is an error of ours."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

import radiowave.hip_source
from radiowave import CodeObject, Compiled, Options, ToolchainError, compile_hip, compile_source
from radiowave.cli import main
from radiowave.hip_source import HEADER
from radiowave.manifest import Manifest
from radiowave.options import SCHEDULERS
from radiowave.verification import verify
from tests.radiowave.hip_kernels import FOLDER, toolchains

pytestmark = pytest.mark.clang

DOT = """
#include "scale.h"
extern "C" __global__ void dot(float *y, const float *a, const float *b, const float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a[i] * b[i] + c[i] * SCALE;
}
"""


@pytest.fixture(autouse=True)
def _sources_are_kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that failed stays, for the command in the message."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source with a header of its own."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "scale.h").write_text("#define SCALE 2.0f\n")
    path = folder / "dot.hip"
    path.write_text(DOT)
    return path


@pytest.fixture(params=[toolchain.name for toolchain in toolchains()])
def toolchain(request: pytest.FixtureRequest) -> str:
    """Each of this machine."""
    return str(request.param)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_same_inputs_same_bytes_and_record(
    source: Path, toolchain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another working folder, out of another source folder, with another environment; nothing names a place."""
    first = compile_hip(source, target="gfx1100", toolchain=toolchain)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in source.parent.iterdir():
        (elsewhere / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("CPATH", "/nowhere")
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "+-DSCALE=3.0f")
    again = compile_hip(Path("dot.hip"), target="gfx1100", toolchain=toolchain)
    assert again == first
    assert str(tmp_path).encode() not in first.code_object
    assert not re.search(r"(?<!{include})/\w+/", json.dumps(first.record.as_json()))


def test_record_says_what_was_read(source: Path, toolchain: str) -> None:
    """The source, its headers and ours, the result, all by hash; a change of a header shows."""
    record = compile_hip(source, target="gfx1100", toolchain=toolchain).record
    assert record.source_sha256 == _sha256(source)
    own = {"scale.h": _sha256(source.parent / "scale.h"), "radiowave/hip.h": _sha256(HEADER)}
    assert dict(record.headers) == own
    assert (record.toolchain.name, record.language, record.fast_math, record.fp_contract) == (
        toolchain,
        "hip",
        False,
        "on",
    )
    assert {"-fno-fast-math", "-ffp-contract=on", "-mcode-object-version=5"} <= set(record.argv)
    (source.parent / "scale.h").write_text("#define SCALE 3.0f\n")
    changed = compile_hip(source, target="gfx1100", toolchain=toolchain).record
    assert changed.headers != record.headers
    assert changed.object_sha256 != record.object_sha256


def test_recorded_command_repeats_the_build(source: Path) -> None:
    """With folders in place of the braces, and the linker where clang looks: the same bytes."""
    made = compile_hip(source, target="gfx1201", toolchain="clang-22", defines=["A=1"], arguments=["-Wall"])
    places = {"{source_folder}": str(source.parent), "{include}": str(HEADER.parents[1]), "{output}": "out.co"}
    words = list(made.record.argv)
    for brace, place in places.items():
        words = [word.replace(brace, place) for word in words]
    subprocess.run(words, cwd=source.parent, check=True, env={"PATH": os.environ["PATH"]})
    assert (source.parent / "out.co").read_bytes() == made.code_object


def test_options_reach_the_compiler(source: Path, toolchain: str) -> None:
    """Definitions, fast math, contraction, waves and versions change the object; the record has them."""

    def made(**choice: object) -> Compiled:
        return compile_source(source, Options(**{"target": "gfx1100", **choice}), toolchain)  # type: ignore[arg-type]

    objects = {
        "plain": made(),
        "off": made(fp_contract="off"),
        "wave64": made(wave=64),
        "version 6": made(code_object_version=6),
        "target": made(target="gfx1201"),
        "-O1": made(arguments=("-O1", "-fno-inline")),
    }
    assert len({compiled.code_object for compiled in objects.values()}) >= len(objects) - 1
    assert [c.record.code_object_version for c in objects.values()] == [5, 5, 5, 6, 5, 5]
    assert made(fast_math=True).record.fp_contract == "fast"
    text = source.read_text().replace('#include "scale.h"', "")
    assert compile_hip(text, target="gfx1100", toolchain=toolchain, defines=["SCALE=4"]).record.defines == ("SCALE=4",)
    with pytest.raises(ToolchainError, match="RW0101"):
        compile_hip(text, target="gfx1100", toolchain=toolchain)


def test_contraction_is_in_the_code(disassembled: dict[str, str]) -> None:
    """`off` multiplies and adds; `on` fuses."""
    assert "_mul_f32" in disassembled["off"]
    assert re.search("_fma_|_fmac_", disassembled["on"])
    assert not re.search("_fma_|_fmac_", disassembled["off"])


@pytest.fixture
def disassembled(source: Path) -> dict[str, str]:
    """The code of `dot` by its fp_contract."""
    from radiowave import Disassembler

    texts = {}
    with Disassembler() as disassembler:
        for contract in ("on", "off"):
            found = CodeObject.parse(compile_hip(source, target="gfx1100", fp_contract=contract).code_object)
            kernel = found.kernel("dot")
            code = disassembler.decode(found.code(kernel), kernel.entry_va, "gfx1100", 32)
            texts[contract] = "\n".join(instruction.text or "" for instruction in code)
    return texts


@pytest.mark.parametrize("profile", SCHEDULERS)
def test_scheduler_profiles(toolchain: str, profile: str) -> None:
    """Every profile compiles, or is refused because this compiler lacks it; clang itself refuses unknown ones."""
    source, (release,) = FOLDER / "matmul.hip", {t.clang_release for t in toolchains() if t.name == toolchain}
    if profile == "memory_clause" and release == 19:
        with pytest.raises(ToolchainError, match=r"RW0110 .*clang-19 .*clang 20 or newer"):
            compile_hip(source, target="gfx1151", toolchain=toolchain, scheduler=profile)
    else:
        record = compile_hip(source, target="gfx1151", toolchain=toolchain, scheduler=profile).record
        assert [word for word in record.argv if word in SCHEDULERS[profile]] == list(SCHEDULERS[profile])


def test_a_compiler_that_crashes(toolchain: str) -> None:
    """An error with what it printed; Python goes on, and the command in the message shows it again."""
    with pytest.raises(ToolchainError, match="RW0101 .*the compiler ended with") as caught:
        compile_hip("#pragma clang __debug crash\n", target="gfx1100", toolchain=toolchain)
    again = shlex.split(caught.value.do.partition("all of it: ")[2])
    assert subprocess.run(again, capture_output=True, check=False).returncode != 0
    assert Path(again[-1]).exists()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('extern "C" __global__ void k(int *p) {\n  *p = foo;\n}', ":2:8", "undeclared identifier 'foo'"),
        ('extern "C" __global__ void k() { asm("bogus"); }', ":1:", "invalid instruction"),
        ('#include "absent.h"\n', ":1:10", "'absent.h' file not found"),
    ],
)
def test_a_source_with_a_fault(text: str, place: str, words: str) -> None:
    """Where, and the compiler's own words."""
    with pytest.raises(ToolchainError, match="RW0101") as caught:
        compile_hip(text, target="gfx1100")
    assert place in caught.value.where
    assert words in caught.value.seen


def test_a_source_without_a_kernel_or_with_another_wave() -> None:
    """Nothing to launch; something else than was asked for."""
    with pytest.raises(ToolchainError, match="RW0108 .*no function with __global__"):
        compile_hip("__device__ int f() { return 1; }", target="gfx1100")
    text = '__attribute__((target("wavefrontsize64"))) __global__ void k(int *p) { *p = 1; }'
    with pytest.raises(ToolchainError, match="RW0101|RW0106"):
        compile_hip(text, target="gfx1100")


def test_a_stuck_compiler_is_ended(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """With everything that it started."""
    monkeypatch.setattr(radiowave.hip_source, "SECONDS", 0.01)
    with pytest.raises(ToolchainError, match=r"RW0105 .*no answer after 0\.01 s"):
        compile_hip(source, target="gfx1100")


def test_the_date_is_no_input() -> None:
    """`__DATE__` is the same on every day."""
    text = 'extern "C" __global__ void k(char *p) { const char *d = __DATE__ __TIME__; *p = d[*p & 7]; }'
    assert b"Jan  1 1970" in compile_hip(text, target="gfx1100", toolchain="clang-22").code_object


def test_command_line(source: Path, toolchain: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same object as from Python, with its record as JSON and in a manifest that verifies."""
    output = source.with_suffix(".co")
    words = ["compile", str(source), "--target", "gfx1151", "--wave", "64", "--toolchain", toolchain, "-o", str(output)]
    options = ["--scheduler", "max-ilp", "--fast-math", "--define", "A=1", "--arg=-Wall", "--code-object-version", "6"]
    assert main([*words, *options, "--manifest", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["record"]
    choice: dict[str, Any] = {"scheduler": "max_ilp", "fast_math": True, "defines": ["A=1"], "arguments": ["-Wall"]}
    made = compile_hip(source, target="gfx1151", wave=64, toolchain=toolchain, code_object_version=6, **choice)
    assert output.read_bytes() == made.code_object
    assert record == made.record.as_json()
    manifest = Manifest.parse(output.with_suffix(".radiowave.json").read_bytes())
    assert manifest.build == record
    assert verify(manifest, output.read_bytes()).notes == ()
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert f"compiled by {toolchain}: " in printed
    assert "fast math off, fp contract on, scheduler default" in printed


def test_header_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The path alone, for `-include $(radiowave header)`; its hash with --json."""
    assert main(["header"]) == 0
    assert capsys.readouterr().out == f"{HEADER}\n"
    assert main(["header", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sha256"] == _sha256(HEADER)
