# SPDX-License-Identifier: Apache-2.0
"""Which toolchains are taken, which are not and why, and what a record says of them. The programs here are scripts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from radiowave import ToolchainError
from radiowave.compilers import HIP, IR, choose_toolchain, find_toolchains

AMD = "AMD clang version 22.0.0git (https://github.com/ROCm/llvm-project roc-{} 26014)"


def script(path: Path, prints: str) -> str:
    """A program that prints these lines and ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f"echo '{line}'" for line in prints.splitlines())
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def rocm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The root of a ROCm installation that nothing is in yet, and nothing else to find."""
    for name in ("ROCM_HOME", "HIPCC", "RADIOWAVE_CLANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("radiowave.rocm.ROOTS", ())
    return tmp_path / "rocm"


def _found(name: str) -> tuple[bool, str]:
    (toolchain,) = [one for one in find_toolchains() if one.name == name]
    return toolchain.is_usable, toolchain.reason


@pytest.mark.parametrize(
    ("banner", "taken", "why"),
    [
        (AMD.format("7.14.0"), True, "AMD's clang of ROCm"),
        (AMD.format("8.0.1"), True, "AMD's clang of ROCm"),
        (AMD.format("7.2.2"), False, "of ROCm 7.2, older than 7.14"),
        ("AMD clang version 22.0.0git", False, "does not say of which ROCm release"),
        ("clang version 22.1.8", False, "does not say `AMD clang version`"),
        ("", False, "does not say `AMD clang version`"),
    ],
)
def test_amdclang_by_its_banner(rocm: Path, banner: str, taken: bool, why: str) -> None:
    """AMD's compiler of 7.14 or newer; anything else is named and left."""
    path = script(rocm / "lib/llvm/bin/amdclang++", banner)
    usable, reason = _found("amdclang")
    assert usable == taken
    assert reason.startswith(path)
    assert why in reason


def test_amdclang_by_the_release_file(rocm: Path) -> None:
    """Where the banner does not say it, `.info/version` does; HIP's headers are seen where they are."""
    script(rocm / "lib/llvm/bin/amdclang++", "AMD clang version 23.0.0git")
    (rocm / ".info").mkdir()
    (rocm / ".info/version").write_text("7.14.0-1")
    assert _found("amdclang")[0]
    assert not choose_toolchain(HIP).has_hip_headers
    (rocm / "include/hip").mkdir(parents=True)
    (rocm / "include/hip/hip_runtime.h").touch()
    assert choose_toolchain(HIP).has_hip_headers


def test_hipcc_by_its_banner(rocm: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The release stands in hipcc's first line; `HIPCC` decides alone."""
    script(rocm / "bin/hipcc", f"HIP version: 7.14.60850\n{AMD.format('7.14.0')}")
    assert _found("hipcc")[0]
    monkeypatch.setenv("HIPCC", script(tmp_path / "hipcc", f"HIP version: 6.4.1\n{AMD.format('6.4.1')}"))
    assert _found("hipcc") == (False, f"{tmp_path / 'hipcc'}: of ROCm 6.4, older than 7.14")


def test_clang_needs_a_linker(rocm: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The one beside it first, then a release as new; one that is older is not taken."""
    clang = script(tmp_path / "a/bin/clang-20", "clang version 20.1.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'a/bin'}:/usr/bin:/bin")
    monkeypatch.setattr("radiowave.compilers.SYSTEM_VERSIONS", (99, 20, 19))
    script(tmp_path / "a/bin/ld.lld-19", "LLD 19")
    usable, reason = _found("clang-20")
    assert (usable, reason) == (False, f"{clang}: no linker; apt-get install lld-20")
    newer = script(tmp_path / "a/bin/ld.lld-99", "LLD 99")
    assert _found("clang-20") == (True, f"{clang} with {newer}")
    beside = script(tmp_path / "a/bin/lld", "LLD 20")
    assert _found("clang-20") == (True, f"{clang} with {beside}")


def test_identity_names_no_path(rocm: Path) -> None:
    """File names and hashes of what they hold now."""
    path = Path(script(rocm / "lib/llvm/bin/amdclang++", AMD.format("7.14.0")))
    toolchain = choose_toolchain(HIP, "amdclang")
    first = toolchain.identity()
    assert first.files == (("amdclang++", hashlib.sha256(path.read_bytes()).hexdigest()),)
    assert str(rocm) not in str(first)
    path.write_text(path.read_text() + "# another\n")
    assert toolchain.identity() != first


@pytest.mark.usefixtures("rocm")
def test_choice_by_language_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken that does not compile the language; every candidate says what is wrong with it."""
    assert choose_toolchain(IR).name == "llvmlite"
    with pytest.raises(ToolchainError, match=r"RW0109 toolchain llvmlite: llvmlite: compiles ir, not hip"):
        choose_toolchain(HIP, "llvmlite")
    with pytest.raises(ToolchainError, match=r"RW0109 .*no toolchain is called gcc; allowed: amdclang, hipcc"):
        choose_toolchain(HIP, "gcc")
    monkeypatch.setattr("radiowave.compilers.importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ToolchainError, match=r"RW0109 .*amdclang: not found: .*; hipcc: .*; zig: .*redline\[clang\]"):
        choose_toolchain(HIP)
