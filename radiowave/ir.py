# SPDX-License-Identifier: Apache-2.0
"""Compile an LLVM IR file with a scheduler profile, and write down how, as `hip.py` does for HIP.

`compile.py` compiles and links; here are the profile's options and the record alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radiowave.compile import CompileJob, compile_many
from radiowave.errors import ToolchainError
from radiowave.hip import PROFILES, Profile
from radiowave.toolchain import llvmlite_tool


@dataclass(frozen=True)
class IrBuild:
    """A linked code object, and its record ready for `json.dumps`: LLVM's library, the command, and hashes (hex)."""

    data: bytes
    record: dict[str, Any]


def compile_ir_file(
    path: str | Path,
    *,
    target: str,
    wave: int = 32,
    code_object_version: int | None = None,
    profile: Profile = "default",
) -> IrBuild:
    """Compile and link one LLVM IR file. `wave` is 32 or 64 lanes; fast math is what the IR's instructions say.

    Raises UnsupportedTarget, ToolchainError, LinkError and CodeObjectError as `compile_many` does, OSError when the
    file cannot be read, UnicodeDecodeError when it is no UTF-8 text.
    """
    if profile not in PROFILES:
        raise ToolchainError(
            "RW0111", where=str(path), seen=f"profile={profile!r}", allowed=", ".join(PROFILES), do="name one of these"
        )
    text = Path(path).read_text(encoding="utf-8")
    job = CompileJob(text, target, wave, code_object_version, str(path), PROFILES[profile])
    (data,) = compile_many([job])
    return IrBuild(data, _record(job, data))


def _record(job: CompileJob, data: bytes) -> dict[str, Any]:
    tool = llvmlite_tool()
    version = [] if job.code_object_version is None else ["--code-object-version", str(job.code_object_version)]
    options = [f"--llvm-option={option}" for option in job.llvm_options]
    command = ["radiowave.llvm_child", "source.ll", "--target", job.target, "--wave", str(job.wave), *version, *options]
    return {
        "compiler": {"name": tool.name, "version": tool.version, "sha256": tool.sha256},
        "commands": [command],
        "source_sha256": hashlib.sha256(job.text.encode()).hexdigest(),
        "output_sha256": hashlib.sha256(data).hexdigest(),
    }
