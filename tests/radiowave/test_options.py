# SPDX-License-Identifier: Apache-2.0
"""What a compilation may be asked for: refused before any compiler starts, with what is allowed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from radiowave import CompileJob, Options, ToolchainError, UnsupportedTarget, compile_many, compile_source
from radiowave.compilers import HIP, IR, Toolchain
from radiowave.options import SCHEDULERS
from tests.radiowave import sources

OLD = Toolchain("clang-19", HIP, "Debian clang version 19.1.7", is_usable=True)
NEW = Toolchain("zig", HIP, "zig 0.17.0, clang version 22.1.8", is_usable=True)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"scheduler": "max-ilp"}, "scheduler profile 'max-ilp'; allowed: default, max_ilp, iterative_ilp"),
        ({"fp_contract": "always"}, "fp_contract 'always'; allowed: off, on, fast"),
        ({"defines": ("1X=2",)}, "definition '1X=2'; allowed: NAME or NAME=VALUE"),
        ({"arguments": ("-o", "x")}, "argument -o; allowed: not as an argument: one linked code object"),
        ({"arguments": ("-Wall", "--offload-arch=gfx900")}, "argument --offload-arch=gfx900"),
        ({"arguments": ("-mwavefrontsize64",)}, r"wave= \(--wave\)"),
        ({"arguments": ("-ffast-math",)}, "fast_math="),
        ({"arguments": ("-mllvm", "-misched=gcn-max-ilp")}, "scheduler="),
        ({"arguments": ("-DX",)}, "defines="),
        ({"arguments": ("@flags",)}, "would not be recorded"),
    ],
)
def test_refused_options(choice: dict[str, Any], words: str) -> None:
    """Each with the option that decides instead."""
    with pytest.raises(ToolchainError, match=f"RW0111 k.hip: .*{words}"):
        Options("gfx1201", **choice).check("k.hip")


def test_accepted_options() -> None:
    """Arguments that contradict nothing; definitions with any value."""
    Options("gfx1201", arguments=("-Iinclude", "-Wall", "-O2"), defines=("A", "_B=", "C=a b=c\n")).check("k.hip")


def test_targets_and_versions_are_checked_first() -> None:
    """By the same lists as everywhere."""
    with pytest.raises(UnsupportedTarget, match="RW0201"):
        Options("gfx900").check("k.hip")
    with pytest.raises(UnsupportedTarget, match="RW0202"):
        Options("gfx1201", wave=16).check("k.hip")
    with pytest.raises(UnsupportedTarget, match="RW0203"):
        Options("gfx1201", code_object_version=3).check("k.hip")


def test_profile_that_a_compiler_lacks() -> None:
    """LLVM 19 would end with `Cannot find option named`."""
    with pytest.raises(ToolchainError, match=r"RW0110 k.hip: clang-19 .*memory_clause; allowed: clang 20 or newer"):
        Options("gfx1201", scheduler="memory_clause").check_toolchain(OLD, "k.hip")
    for profile in SCHEDULERS:
        Options("gfx1201", scheduler=profile).check_toolchain(NEW, "k.hip")


def test_fp_contract_and_fast_math() -> None:
    """Fast math allows contraction everywhere unless that is refused."""
    chosen = [
        Options("gfx1201", fast_math=f, fp_contract=c).contract for f in (False, True) for c in (None, "off", "fast")
    ]
    assert chosen == ["on", "off", "fast", "fast", "off", "fast"]


@pytest.mark.parametrize("choice", [{"fast_math": True}, {"fp_contract": "off"}, {"defines": ("A",)}])
def test_ir_has_no_options_of_c(choice: dict[str, Any]) -> None:
    """LLVM IR carries its flags in its instructions."""
    with pytest.raises(ToolchainError, match=r"RW0110 k.ll: .*for LLVM IR.*leave \w+ out"):
        Options("gfx1201", **choice).check_toolchain(Toolchain("llvmlite", IR), "k.ll")


def test_names_tell_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything but the four endings is refused before a process starts."""
    monkeypatch.setattr(subprocess, "run", None)
    with pytest.raises(ToolchainError, match=r"RW0111 .*k.c: a name that ends in .c; allowed: .hip, .cpp, .cu, .ll"):
        compile_source(tmp_path / "k.c", Options("gfx1201"))


def test_ir_with_a_record(tmp_path: Path) -> None:
    """The bytes of `compile_ir`, the command, and the library that holds LLVM."""
    source = tmp_path / "k.ll"
    source.write_text(sources.SAXPY)
    made = compile_source(source, Options("gfx1100", wave=64))
    assert made.code_object == compile_many([CompileJob(sources.SAXPY, "gfx1100", 64)])[0]
    assert made.record.argv == ("llvmlite", "k.ll", "--target", "gfx1100", "--wave", "64")
    assert (made.record.code_object_version, made.record.fp_contract) == (5, None)
    assert [name for name, _ in made.record.toolchain.files] == ["libllvmlite.so"]


MANY_LOADS = sources.TRIPLE + (
    "define amdgpu_kernel void @k(ptr addrspace(1) noalias %p, ptr addrspace(1) noalias %q) {\n"
    "%i = call i32 @llvm.amdgcn.workitem.id.x()\n%s0 = fadd float 0.0, 1.0\n"
    + "".join(
        f"%o{n} = add i32 %i, {1024 * n}\n%a{n} = getelementptr float, ptr addrspace(1) %p, i32 %o{n}\n"
        f"%v{n} = load float, ptr addrspace(1) %a{n}\n%m{n} = fmul float %v{n}, %s{n}\n"
        f"%s{n + 1} = fadd float %m{n}, %v{n}\n"
        f"%b{n} = getelementptr float, ptr addrspace(1) %q, i32 %o{n}\nstore float %s{n + 1}, ptr addrspace(1) %b{n}\n"
        for n in range(24)
    )
    + "ret void }\ndeclare i32 @llvm.amdgcn.workitem.id.x()\n"
)


def test_profiles_reach_llvm() -> None:
    """LLVM takes an unknown option without a word, so what is looked at is the code: it must not be the same."""
    objects = {
        name: compile_many([CompileJob(MANY_LOADS, "gfx1100", llvm_options=options)])[0]
        for name, options in SCHEDULERS.items()
    }
    assert objects["max_ilp"] != objects["default"]
    assert objects["memory_clause"] != objects["default"]
    assert objects["iterative_ilp"] != objects["default"]


def test_one_batch_has_one_set_of_llvm_options() -> None:
    """They hold for the process."""
    jobs = [CompileJob(sources.SAXPY, "gfx1100", llvm_options=SCHEDULERS[name]) for name in ("default", "max_ilp")]
    with pytest.raises(ValueError, match="different llvm_options"):
        compile_many(jobs)
