# SPDX-License-Identifier: Apache-2.0
"""What a HIP build depends on is in its record, and nothing else changes its bytes: folders, days, environment."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from radiowave import HipBuild, HipJob, ToolchainError, compile_hip, compile_hip_file, hip_compilers
from radiowave.hip_compilers import find_hip_compilers, hip_compiler
from tests.radiowave.test_hip_compile import KERNEL, script

pytestmark = pytest.mark.clang
JOB = HipJob("gfx1201")
TOOLCHAINS = [compiler.name for compiler in find_hip_compilers() if compiler.compiler]


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_days_folders_and_environment_do_not_show(
    toolchain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that stores its date, its file and its header's file."""
    text = """
#include "where.h"
extern "C" __global__ void k(char *p) {
#ifdef FROM_ENVIRONMENT
#error an argument that no record has
#endif
  const char *all = __DATE__ __TIME__ __FILE__;
  p[threadIdx.x] = all[threadIdx.x] + where()[threadIdx.x];
}
"""
    found: list[HipBuild] = []
    for name in ("a", "another folder"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "where.h").write_text("static __device__ const char *where() { return __FILE__; }\n")
        (folder / "k.hip").write_text(text)
        monkeypatch.chdir(folder if found else tmp_path)
        found.append(compile_hip_file("k.hip" if len(found) else folder / "k.hip", JOB, toolchain=toolchain))
        monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "+-DFROM_ENVIRONMENT")
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert found[0] == found[1]
    assert str(tmp_path).encode() not in found[0].data
    assert b"Jan  1 1970" in found[0].data
    assert not re.search(r"['\"=]/\w+", str(found[0].record.as_json()))


def test_every_header_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of folders that are named, from where the caller stands, and of the compiler itself."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "scale.h").write_text("#define SCALE 3.0f\n")
    monkeypatch.chdir(tmp_path)
    text = "#include <scale.h>\n#include <limits.h>\n" + KERNEL
    record = compile_hip(text, HipJob("gfx1201", include=("more",)), toolchain="clang-22").record
    names = [name for name, _ in record.dependencies]
    assert ("scale.h", hashlib.sha256(b"#define SCALE 3.0f\n").hexdigest()) in record.dependencies
    assert names.count("limits.h") > 1, "clang's and the C library's"
    assert not any("/" in name for name in names)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_hip_runtime_may_be_included(toolchain: str) -> None:
    """As HIP sources do, and without HIP."""
    text = "#include <hip/hip_runtime.h>\n" + KERNEL
    assert compile_hip(text, JOB, toolchain=toolchain).data == compile_hip(KERNEL, JOB, toolchain=toolchain).data


def test_hip_headers_of_the_system_are_left_alone(tmp_path: Path) -> None:
    """They want device libraries that Debian's clang does not have: only a compiler beside them takes them."""
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip" / "hip_runtime.h").write_text("#error of the system\n")
    assert compile_hip(KERNEL, HipJob("gfx1201", include=(str(tmp_path),))).data == compile_hip(KERNEL, JOB).data


def test_hip_headers_of_rocm_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they belong to the compiler; then clang's own flags for them stay on."""
    root = tmp_path / "rocm"
    script(root / "lib/llvm/bin/ld.lld", 'exec ld.lld-22 "$@"')
    script(root / "lib/llvm/bin/amdclang", f'exec clang-22 -nogpuinc -nogpulib -isystem {root}/include "$@"')
    (root / "include/hip").mkdir(parents=True)
    (root / "include/hip/hip_runtime.h").write_text("#define FROM_ROCM 1\n")
    monkeypatch.setenv("ROCM_PATH", str(root))
    text = "__attribute__((global)) void k(int *p) { *p = FROM_ROCM; }"
    build = compile_hip(text, JOB, toolchain="amdclang")
    assert "-DRADIOWAVE_HIP_HEADERS=1" in build.record.commands[0]
    assert "-nogpulib" not in build.record.commands[0]
    assert "hip_runtime.h" in dict(build.record.dependencies)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "x"), "-o; allowed: not as an argument: one object is compiled and linked"),
        (("-Wall", "--offload-arch=gfx900"), "--offload-arch=gfx900"),
        (("-mwavefrontsize64",), r"wave \(--wave\)"),
        (("-ffast-math",), "fast_math"),
        (("-ffp-contract=fast",), "fp_contract"),
        (("-mllvm", "-misched=gcn-max-ilp"), "profile"),
        (("-DX",), "defines"),
        (("-I/usr/include",), r"include \(--include\)"),
        (("@flags",), "would not be recorded"),
    ],
)
def test_arguments_that_something_else_decides(arguments: tuple[str, ...], words: str) -> None:
    """The record would be untrue; refused with what decides."""
    with pytest.raises(ToolchainError, match=f"RW0111 HIP source: argument .*{words}"):
        compile_hip(KERNEL, HipJob("gfx1201", arguments=arguments), toolchain="none: refused before it is looked for")
    with pytest.raises(ToolchainError, match="RW0111 HIP source: macro '1X'"):
        compile_hip(KERNEL, HipJob("gfx1201", defines={"1X": ""}))


def test_what_a_stopped_compiler_started_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """hipcc is a script around the compiler: both must go."""
    mark = tmp_path / "pid"
    waits = f"sleep 60 & echo $! > {mark}; wait"
    slow = f"case $1 in -print-targets) echo amdgcn;; --version) echo clang;; *) {waits};; esac"
    monkeypatch.setenv(hip_compilers.CLANG_VARIABLE, str(script(tmp_path / "slow", slow)))
    monkeypatch.setattr("radiowave.hip.SECONDS", 1.0)
    with pytest.raises(ToolchainError, match="RW0105"):
        compile_hip(KERNEL, JOB)
    process = Path("/proc") / mark.read_text().strip()
    for _ in range(500):
        if not process.exists() or "(zombie)" in (process / "status").read_text():
            return
        time.sleep(0.01)
    raise AssertionError("it still sleeps")


def test_a_crash_leaves_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """clang writes the source that killed it beside others' temporary files, if it is let."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(Path("/tmp").glob("source-gfx*"))
    for toolchain in TOOLCHAINS:
        with pytest.raises(ToolchainError, match="RW0101"):
            compile_hip("#pragma clang __debug crash\n", JOB, toolchain=toolchain)
    assert list(tmp_path.iterdir()) == []
    assert set(Path("/tmp").glob("source-gfx*")) == before


def test_identity_is_of_all_that_compiles() -> None:
    """Debian's clang is a small program: its libraries and its linker decide too."""
    compiler = hip_compiler("clang-22")
    identity = compiler.identity()
    names = [row["name"] for row in identity["files"]]
    assert {"clang", "libLLVM.so.22.1", "libclang-cpp.so.22.1", "lld"} <= set(names)
    path = os.path.realpath(compiler.compiler[0])
    assert {"name": "clang", "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()} in identity["files"]


def test_an_old_hipcc_says_so_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Debian's has no file for its version: it must not go before clang 22."""
    path = script(tmp_path / "hipcc", "echo 'HIP version: 5.2.21153-0'")
    monkeypatch.setenv(hip_compilers.HIPCC_VARIABLE, str(path))
    (row,) = (c for c in find_hip_compilers() if c.name == "hipcc")
    assert row.why_not == "of ROCm 5.2.21153-0, older than 7.14"
    assert hip_compiler().name == "clang-22"


def test_recorded_commands_repeat_the_build(tmp_path: Path) -> None:
    """In an empty folder with the two files, by the names that the record has."""
    build = compile_hip(KERNEL, JOB, toolchain="clang-22")
    (tmp_path / "radiowave").mkdir()
    (tmp_path / "radiowave" / "hip.h").write_bytes(hip_header().read_bytes())
    (tmp_path / "source.hip").write_text(KERNEL)
    for command in build.record.commands:
        subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "kernel.co").read_bytes() == build.data


def hip_header() -> Path:
    """Where the package has it."""
    from radiowave.hip import HEADER

    return HEADER
