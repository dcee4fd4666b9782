# SPDX-License-Identifier: Apache-2.0
"""Compiling HIP: the same bytes everywhere, options that reach the compiler, refusals with reasons, finders' order."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from radiowave import CodeObject, Disassembler, Manifest, ToolchainError, UnsupportedTarget, certify, hip_compilers
from radiowave.cli import main
from radiowave.hip import HEADER, PROFILES, HipJob, compile_hip, compile_hip_file
from radiowave.hip_compilers import find_hip_compilers, hip_compiler
from radiowave.manifest import FileId

pytestmark = pytest.mark.clang

KERNEL = """
extern "C" __global__ void k(float *y, const float *x, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SCALE
  if (i < n) y[i] = x[i] * SCALE;
#else
  if (i < n) y[i] = x[i];
#endif
}
"""
JOB = HipJob("gfx1201")


def test_same_bytes_in_every_folder(tmp_path: Path) -> None:
    """Object and record; neither names a place of this machine."""
    found = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "k.hip").write_text(KERNEL)
        found.append(compile_hip_file(folder / "k.hip", JOB, toolchain="clang-22"))
    assert found[0] == found[1]
    text = json.dumps(found[0].record.as_json())
    assert str(tmp_path) not in text
    assert "/usr" not in text
    record = found[0].record
    assert record.source_sha256 == hashlib.sha256(KERNEL.encode()).hexdigest()
    assert record.header_sha256 == hashlib.sha256(HEADER.read_bytes()).hexdigest()
    assert record.output_sha256 == CodeObject.parse(found[0].data).sha256
    assert str(tmp_path).encode() not in found[0].data


def test_what_is_included_is_recorded(tmp_path: Path) -> None:
    """By the name below its folder, with its hash; a change of it changes the record."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "scale.h").write_text("#define SCALE 3.0f\n")
    (tmp_path / "k.hip").write_text('#include "sub/scale.h"\n' + KERNEL)
    build = compile_hip_file(tmp_path / "k.hip", JOB)
    digest = hashlib.sha256(b"#define SCALE 3.0f\n").hexdigest()
    assert build.record.dependencies == (("sub/scale.h", digest),)


def test_options_reach_the_compiler() -> None:
    """Wave size, code object version, defines, further arguments, float rules: in the command and in the code."""
    wide = CodeObject.parse(compile_hip(KERNEL, HipJob("gfx1030", 64, code_object_version=6)).data)
    assert (wide.kernels["k"].wave, wide.code_object_version, wide.target) == (64, 6, "gfx1030")
    plain, scaled = compile_hip(KERNEL, JOB), compile_hip(KERNEL, HipJob("gfx1201", defines={"SCALE": "2.0f"}))
    assert plain.data != scaled.data
    first = plain.record.commands[0]
    assert {"-fno-fast-math", "-ffp-contract=on", "-mno-wavefrontsize64", "-mcode-object-version=5"} <= set(first)
    fast = compile_hip(KERNEL, HipJob("gfx1201", fast_math=True, fp_contract="fast", arguments=("-O1",)))
    assert {"-ffast-math", "-ffp-contract=fast", "-O1"} <= set(fast.record.commands[0])


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles(profile: str) -> None:
    """Each is there in LLVM 22; clang 19 lacks one, and says which option it does not know."""
    job = HipJob("gfx1100", profile=profile)  # type: ignore[arg-type]
    flags = {
        flag
        for flag in compile_hip(KERNEL, job, toolchain="clang-22").record.commands[0]
        if flag.startswith("-misched")
    }
    assert flags == {flag for flag in PROFILES[job.profile] if flag.startswith("-misched")}
    if profile == "memory_clause":
        with pytest.raises(ToolchainError, match="RW0111 .*clang-19.*gcn-max-memory-clause"):
            compile_hip(KERNEL, job, toolchain="clang-19")


@pytest.mark.parametrize(
    ("job", "error", "words"),
    [
        (HipJob("gfx9999"), UnsupportedTarget, "gfx9999"),
        (HipJob("gfx1201", 16), UnsupportedTarget, "16"),
        (HipJob("gfx1201", code_object_version=3), UnsupportedTarget, "3"),
        (HipJob("gfx1201", profile="quick"), ToolchainError, "RW0111 .*profile='quick'.*max_ilp"),  # type: ignore[arg-type]
        (HipJob("gfx1201", fp_contract="much"), ToolchainError, "RW0111 .*fp_contract"),  # type: ignore[arg-type]
        (HipJob("gfx1201", arguments=("-fno-such-thing",)), ToolchainError, "RW0111 .*-fno-such-thing"),
    ],
)
def test_what_no_compiler_has(job: HipJob, error: type[Exception], words: str) -> None:
    """Before anything runs, or by the compiler's own word."""
    with pytest.raises(error, match=words):
        compile_hip(KERNEL, job)


def test_errors_in_the_source() -> None:
    """With the label, line and message of the compiler."""
    with pytest.raises(
        ToolchainError, match=r"RW0110 compiling k\.hip for gfx1201 wave32 with .*: k\.hip:2:1: error: "
    ):
        compile_hip("\nnonsense;", JOB, label="k.hip")


def test_a_compiler_that_dies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Python goes on; the signal and what was printed are said. One that hangs is stopped."""
    script(
        tmp_path / "clang",
        "echo 'clang version 99'; case $1 in -print-targets) echo amdgcn;; --version);; *) kill -6 $$;; esac",
    )
    monkeypatch.setenv(hip_compilers.CLANG_VARIABLE, str(tmp_path / "clang"))
    with pytest.raises(ToolchainError, match="RW0101 .*signal SIGABRT"):
        compile_hip(KERNEL, JOB)
    script(tmp_path / "slow", "case $1 in -print-targets) echo amdgcn;; --version) echo clang;; *) sleep 60;; esac")
    monkeypatch.setenv(hip_compilers.CLANG_VARIABLE, str(tmp_path / "slow"))
    monkeypatch.setattr("radiowave.hip.SECONDS", 0.2)
    with pytest.raises(ToolchainError, match="RW0105"):
        compile_hip(KERNEL, JOB)


def script(path: Path, text: str) -> Path:
    """A program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def rocm(root: Path, version: str, name: str = "lib/llvm/bin/amdclang") -> Path:
    """An installation whose compiler is Debian's clang 22 by another name."""
    (root / ".info").mkdir(parents=True)
    (root / ".info" / "version").write_text(version)
    script(root / "lib" / "llvm" / "bin" / "ld.lld", 'exec ld.lld-22 "$@"')
    return script(root / name, 'exec clang-22 "$@"')


def test_rocm_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ROCm >= 7.14 before the system's clang; an older one only by name, and its reason says why."""
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "new"))
    rocm(tmp_path / "new", "7.14.0")
    assert hip_compiler().name == "amdclang"
    build = compile_hip(KERNEL, HipJob("gfx1201", arguments=("-nogpuinc", "-nogpulib")))
    assert build.record.compiler["name"] == "amdclang"
    assert build.record.commands[0][0] == "amdclang"
    rocm(tmp_path / "old", "6.4.1")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "old"))
    assert hip_compiler().name == "clang-22"
    (row,) = (c for c in find_hip_compilers() if c.name == "amdclang")
    assert row.why_not == "of ROCm 6.4.1, older than 7.14"
    assert hip_compiler("amdclang") == row


def test_hipcc_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`hipcc --genco` writes a bundle; the object for the target is taken out of it."""
    lld = Path(os.path.realpath("/usr/bin/ld.lld-22")).parent
    device = "-x hip --offload-device-only --gpu-bundle-output -nogpuinc -nogpulib"
    text = f'shift; PATH={lld}:$PATH exec clang-22 {device} "$@"'
    path = script(tmp_path / "bin" / "hipcc", f'[ "$1" = --version ] && echo HIP version: 7.14 && exit; {text}')
    monkeypatch.setenv(hip_compilers.HIPCC_VARIABLE, str(path))
    build = compile_hip(KERNEL, JOB, toolchain="hipcc")
    assert list(CodeObject.parse(build.data).kernels) == ["k"]
    assert build.record.commands[0][:2] == ("hipcc", "--genco")


def test_nothing_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every place is named, with what speaks against it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(
        ToolchainError, match=r"RW0109 HIP compiler: amdclang: not found as /opt.*clang-22.*zig: ziglang is not"
    ):
        hip_compiler()
    with pytest.raises(ToolchainError, match="RW0109 --toolchain gcc: .*allowed: none on this machine"):
        hip_compiler("gcc")


def test_a_clang_without_the_target_or_a_linker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both are reasons."""
    for targets, why in (("x86", "built without the AMDGPU target"), ("amdgcn", "no linker beside it")):
        path = script(tmp_path / targets / "clang", f"echo {targets}")
        monkeypatch.setenv(hip_compilers.CLANG_VARIABLE, str(path))
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if why.startswith("built") else str(tmp_path))
        (row,) = (c for c in find_hip_compilers() if c.name == "clang")
        if targets == "x86":
            assert row.why_not == why
    assert row.compiler == ()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An object, and beside it a manifest that has source, build and certificates."""
    source, output = tmp_path / "k.hip", tmp_path / "k.co"
    source.write_text(KERNEL)
    options = ["--target", "gfx1201", "--toolchain", "clang-22", "--define", "SCALE=2.0f", "-o", str(output)]
    assert main(["compile", str(source), *options]) == 0
    assert f"manifest {tmp_path / 'k.radiowave.json'}" in capsys.readouterr().out
    manifest = Manifest.parse((tmp_path / "k.radiowave.json").read_bytes())
    digest = hashlib.sha256(KERNEL.encode()).hexdigest()
    assert manifest.source == FileId("k.hip", digest, len(KERNEL))
    assert manifest.build is not None
    assert manifest.build["compiler"]["name"] == "clang-22"
    with Disassembler() as disassembler:
        assert manifest.certificates == certify(CodeObject.parse(output.read_bytes()), disassembler)
    assert main(["verify", str(tmp_path / "k.radiowave.json")]) == 0
    (tmp_path / "k.radiowave.json").unlink()
    assert main(["compile", str(source), *options, "--no-manifest", "--json"]) == 0
    assert not (tmp_path / "k.radiowave.json").exists()
    source.write_text("static __device__ int f() { return 1; }")
    assert main(["compile", str(source), *options]) == 1
    assert "RW0108" in capsys.readouterr().err


def test_options_for_hip_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LLVM IR says wave size and target at most; what it cannot obey is refused, not passed over."""
    source = tmp_path / "k.ll"
    source.write_text("define amdgpu_kernel void @k() { ret void }")
    arguments = ["compile", str(source), "--target", "gfx1201", "-o", str(tmp_path / "k.co")]
    assert main([*arguments, "--fast-math", "--profile", "max_ilp"]) == 1
    assert "--profile, --fast-math for LLVM IR" in capsys.readouterr().err
    assert main(arguments) == 0


def test_header_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The path of the file that is part of the package."""
    assert main(["header"]) == 0
    assert Path(capsys.readouterr().out.strip()) == HEADER
    assert HEADER.is_file()


def test_header_is_used_for_what_it_says() -> None:
    """vmem_load makes a vector load of a uniform read, buffers go through resource descriptors."""
    uniform = 'extern "C" __global__ void k(int *y, const int *x) { y[threadIdx.x] = LOAD; }'
    jobs = {
        "x[3]": "scalar_args",
        "radiowave::vmem_load(x + 3)": "vmem_only",
        "radiowave::Buffer((void *)x, 64).load_b32(radiowave::opaque(12))": "vmem_only",
    }
    for load, verdict in jobs.items():
        build = compile_hip(uniform.replace("LOAD", load), JOB)
        assert certify(CodeObject.parse(build.data))["k"].verdict == verdict
