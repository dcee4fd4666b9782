# SPDX-License-Identifier: Apache-2.0
"""Compiles the corpus with clang: one code object of all HIP kernels, one of all LLVM IR kernels, for one build."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.radiowave.clang import program

HERE = Path(__file__).parent
HIP = ("-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib")
IR = ("-x", "ir", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-Wno-override-module")


@dataclass(frozen=True, order=True)
class Build:
    """What is compiled for what, by which clang, how hard."""

    language: str  # "hip" or "ir"
    clang: int
    target: str
    wave: int
    level: int

    def __str__(self) -> str:
        return f"{self.language} clang-{self.clang} {self.target} wave{self.wave} -O{self.level}"


def compiled(build: Build) -> bytes:
    """The linked code object."""
    wide = ("-mwavefrontsize64",) if build.wave == 64 else ("-mno-wavefrontsize64",)
    words: tuple[str | Path, ...]
    if build.language == "hip":
        words = (*HIP, f"--offload-arch={build.target}", f"-DWAVE={build.wave}", *wide, HERE / "corpus.hip")
    else:
        words = (*IR, f"-mcpu={build.target}", *wide, HERE / "kernels.ll")
    linker = Path(program("ld.lld", 22)).resolve().parent  # clang looks for a program called lld
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:{linker}"}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "out")
        command = (program("clang", build.clang), f"-O{build.level}", *words, "-o", output)
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{build}: {done.stderr}"
        return output.read_bytes()
