# SPDX-License-Identifier: Apache-2.0
"""LLVM IR with a record: llvmlite by version and hash, and scheduler profiles that reach LLVM."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from radiowave import CompileJob, ToolchainError, compile_ir, compile_many
from radiowave.child import command, environment
from radiowave.hip import PROFILES
from radiowave.ir import compile_ir_file
from radiowave.linker import link
from tests.radiowave import sources

# Twenty-four loads and stores that may be put in any order.
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


def test_same_bytes_with_a_record(tmp_path: Path) -> None:
    """Those of `compile_ir`, the same record from every folder, and a command that repeats the object."""
    builds = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        source = tmp_path / name / f"{name}.ll"
        source.write_text(sources.SAXPY)
        builds.append(compile_ir_file(source, target="gfx1100", wave=64, code_object_version=6, profile="max_ilp"))
    assert builds[0] == builds[1]
    build = builds[0]
    assert build.record["source_sha256"] == hashlib.sha256(sources.SAXPY.encode()).hexdigest()
    assert build.record["output_sha256"] == hashlib.sha256(build.data).hexdigest()
    assert build.record["compiler"]["name"] == "llvmlite"
    assert len(build.record["compiler"]["sha256"]) == 64
    ((module, _, *arguments),) = build.record["commands"]
    output = tmp_path / "again.o"
    again = command(module, str(tmp_path / "a" / "a.ll"), *arguments, "-o", str(output))
    subprocess.run(again, env=environment(), check=True)
    assert link(output.read_bytes()) == build.data


def test_profiles_reach_llvm(tmp_path: Path) -> None:
    """LLVM takes an unknown option without a word, so what is looked at is the code: it must not be the same."""
    source = tmp_path / "many.ll"
    source.write_text(MANY_LOADS)
    objects = {profile: compile_ir_file(source, target="gfx1100", profile=profile).data for profile in PROFILES}
    assert objects["default"] == compile_ir(MANY_LOADS, target="gfx1100")
    assert len({objects[name] for name in ("default", "max_ilp", "iterative_ilp", "memory_clause")}) == 4


def test_refused(tmp_path: Path) -> None:
    """A profile that nobody has; two sets of options in one process."""
    with pytest.raises(ToolchainError, match=r"RW0111 k\.ll: profile='quick'; allowed: default, max_ilp"):
        compile_ir_file("k.ll", target="gfx1100", profile="quick")  # type: ignore[arg-type]
    jobs = [CompileJob(sources.SAXPY, "gfx1100", llvm_options=PROFILES[name]) for name in ("default", "max_ilp")]
    with pytest.raises(ValueError, match="different llvm_options"):
        compile_many(jobs)
