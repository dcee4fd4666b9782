# SPDX-License-Identifier: Apache-2.0
"""Compilation in a child process: what it makes, what it refuses, and what is left when LLVM ends the child."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

import radiowave.compile as compiler
from radiowave import CodeObject, CompileJob, ToolchainError, UnsupportedTarget, compile_ir, compile_many
from radiowave.child import command, environment
from radiowave.elf import Elf
from radiowave.targets import TARGETS
from tests.radiowave import sources

ASSEMBLY = sources.TRIPLE + 'define amdgpu_kernel void @k() { call void asm sideeffect "s_nop 1", ""() ret void }'


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any start of a child fails the test."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.usefixtures("no_child")
@pytest.mark.parametrize("target", ["gfx1250", "gfx12-generic", "gfx11", "GFX1201", "", "gfx1201 "])
def test_unknown_target_never_reaches_llvm(target: str) -> None:
    """LLVM would end the process; the list is asked first, and by whole names."""
    with pytest.raises(UnsupportedTarget, match=r"RW0201 .*gfx1201"):
        compile_ir(sources.SAXPY, target=target)


@pytest.mark.usefixtures("no_child")
def test_unknown_wave_and_version_are_refused() -> None:
    """Both with the values that are allowed."""
    with pytest.raises(UnsupportedTarget, match=r"RW0202 .*16.*32 or 64"):
        compile_ir(sources.SAXPY, target="gfx1201", wave=16)
    with pytest.raises(UnsupportedTarget, match=r"RW0203 .*3.*4, 5, 6"):
        compile_ir(sources.SAXPY, target="gfx1201", code_object_version=3)
    assert compile_many([]) == []


# EF_AMDGPU_MACH and the xnack bits of e_flags, as LLVM's own output was seen to carry them.
E_FLAGS = {
    "gfx1010": 0x133,
    "gfx1030": 0x36,
    "gfx1031": 0x37,
    "gfx1100": 0x41,
    "gfx1101": 0x46,
    "gfx1102": 0x47,
    "gfx1103": 0x44,
    "gfx1150": 0x43,
    "gfx1151": 0x4A,
    "gfx1200": 0x48,
    "gfx1201": 0x4E,
}


def test_every_target_compiles_to_its_own_machine_number(saxpy: dict[tuple[str, int], bytes]) -> None:
    """LLVM writes the machine number that our list has, for every name on it."""
    flags = {target: Elf(saxpy[target, 32]).flags for target in TARGETS}
    assert {target: value & 0xFF for target, value in flags.items()} == TARGETS
    assert {target: flags[target] for target in E_FLAGS} == E_FLAGS


def test_same_bytes_in_another_process(saxpy: dict[tuple[str, int], bytes]) -> None:
    """Compiling and linking again gives the same bytes."""
    assert compile_ir(sources.SAXPY, target="gfx1201") == saxpy["gfx1201", 32]
    assert compile_ir(sources.SAXPY, target="gfx1010", wave=64) == saxpy["gfx1010", 64]


def test_optimiser_knows_the_target(saxpy: dict[tuple[str, int], bytes]) -> None:
    """Without LLVM's AMDGPU attributor a kernel asks for hidden arguments and the dispatch pointer."""
    for (target, wave), linked in saxpy.items():
        kernel = CodeObject.parse(linked).kernel("saxpy")
        assert not any(argument.is_hidden for argument in kernel.arguments), (target, wave)
        assert kernel.kernarg_bytes == 24
        assert kernel.descriptor.properties & 0b1110110 == 0  # dispatch, queue, dispatch id, flat scratch, size


def test_version_is_the_argument_else_the_source_else_5() -> None:
    """A source that states its version keeps it; a contradiction is refused, not resolved."""
    flag = '\n!llvm.module.flags = !{!9}\n!9 = !{i32 1, !"amdhsa_code_object_version", i32 600}\n'
    jobs = [CompileJob(sources.SAXPY, "gfx1201", code_object_version=v) for v in (4, 5, 6, None)]
    jobs += [CompileJob(sources.SAXPY + flag, "gfx1201", code_object_version=v) for v in (6, None)]
    assert [CodeObject.parse(o).code_object_version for o in compile_many(jobs)] == [4, 5, 6, 5, 6, 6]
    with pytest.raises(ToolchainError, match="conflicting values"):
        compile_ir(sources.SAXPY + flag, target="gfx1201", code_object_version=5)


def test_source_without_triple_or_layout_is_an_amdgpu_source() -> None:
    """What the source leaves out is filled in before it is parsed: "A", the alloca address space, is 5."""
    text = """define amdgpu_kernel void @k(i32 %i) {
      %a = alloca [64 x i32], addrspace("A")
      %q = getelementptr i32, ptr addrspace(5) %a, i32 %i
      store volatile i32 1, ptr addrspace(5) %q
      ret void }"""
    assert list(CodeObject.parse(compile_ir(text, target="gfx1100")).kernels) == ["k"]


@pytest.mark.parametrize(
    ("text", "seen", "allowed", "do"),
    [
        ('target triple = "x86_64-pc-linux-gnu"\n', '"x86_64-pc-linux-gnu"', "amdgcn-amd-amdhsa", "for AMDGPU"),
        ('target datalayout = "e-p:32:32"\n', 'datalayout = "e-p:32:32"', "no such line, or", "remove the line"),
        ('attributes #0 = { "target-cpu"="gfx1100" }\n', '"gfx1100"', '"target-cpu"="gfx1201"', "compile for gfx1100"),
        (
            'attributes #0 = { "target-features"="+dpp,+wavefrontsize64" }\n',
            "+wavefrontsize64",
            "+wavefrontsize32",
            "wave size 64",
        ),
    ],
)
def test_source_for_something_else_is_refused(text: str, seen: str, allowed: str, do: str) -> None:
    """Attributes in the source override the target machine, so they are compared with the request."""
    with pytest.raises(ToolchainError, match=r"RW0106 compiling LLVM IR text for gfx1201 wave32: ") as caught:
        compile_ir(text, target="gfx1201")
    assert seen in caught.value.seen
    assert allowed in caught.value.allowed
    assert do in caught.value.do


@pytest.mark.parametrize("text", ["define void @f( {", "\n\n  define void @f( {"])
def test_parser_error_speaks_of_the_source(text: str, tmp_path: Path) -> None:
    """Line and column are those of the file, and the command in the message repeats the error."""
    source = tmp_path / "broken.ll"
    source.write_text(text)
    with pytest.raises(ToolchainError, match="RW0101") as caught:
        compiler.compile_file(source, target="gfx1201")
    line = text.count("\n") + 1
    column = len(text.splitlines()[-1]) + 1
    assert caught.value.where == f"{source}:{line}:{column}, compiled for gfx1201 wave32"
    assert caught.value.seen == "expected type: define void @f( {"
    assert str(source) in caught.value.do
    again = _repeat(caught.value)
    assert again.returncode == 1
    assert f"<string>:{line}:{column}: error: expected type" in again.stderr
    assert "datalayout" not in again.stderr


def test_llvm_fatal_error_becomes_an_exception() -> None:
    """LLVM ends the child; we say how, what it printed, and how to repeat it. The job before it is not blamed."""
    jobs = [CompileJob(sources.SAXPY, "gfx1201"), CompileJob(ASSEMBLY, "gfx1030", 64, label="second")]
    done: list[int] = []
    with pytest.raises(ToolchainError, match="RW0101 compiling second for gfx1030 wave64") as caught:
        compile_many(jobs, done.append)
    assert done == [1]
    assert "asm parser" in caught.value.seen
    assert re.search("exit code|signal", caught.value.seen)
    try:
        assert "asm parser" in _repeat(caught.value).stderr
    finally:
        Path(_command_in(caught.value)[4]).unlink()


def _command_in(error: ToolchainError) -> list[str]:
    return shlex.split(error.do.partition("repeat with: ")[2])


def _repeat(error: ToolchainError) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command_in(error), env=environment(), capture_output=True, text=True, check=False)


def test_stuck_compiler_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A child that never answers is killed when its time is over."""
    monkeypatch.setattr(compiler, "SECONDS_TO_START", 0.2)
    monkeypatch.setattr(compiler, "SECONDS_PER_JOB", 0.1)
    monkeypatch.setattr(compiler, "command", lambda *_arguments: [command("x")[0], "-c", "import time; time.sleep(60)"])
    source = tmp_path / "k.ll"
    source.write_text(sources.SAXPY)
    with pytest.raises(ToolchainError, match=r"RW0105 .*0\.3 s"):
        compiler.compile_file(source, target="gfx1201")


def test_flat_double_store_compiles_everywhere() -> None:
    """Some LLVM 22 cannot emit some flat double stores on gfx1100 (case 59): keep the plain one compiling."""
    text = sources.TRIPLE + "define amdgpu_kernel void @k(ptr %p) { store double 0.0, ptr %p ret void }"
    objects = compile_many([CompileJob(text, target) for target in TARGETS])
    assert [CodeObject.parse(o).target for o in objects] == list(TARGETS)
