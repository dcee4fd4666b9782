# SPDX-License-Identifier: Apache-2.0
"""Find the compilers of this machine that can build HIP sources for AMD GPUs, and say why each is taken or not.

In order: ROCm's amdclang and hipcc, the ROCm Core SDK's layout first; clang-N with lld-N of the system; the `zig clang`
and `zig ld.lld` of PyPI's ziglang. Only looks: `hip.py` compiles.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from radiowave import rocm
from radiowave.errors import ToolchainError
from radiowave.find_llvm import SYSTEM_VERSIONS

SECONDS: Final = 30.0
LEAST_ROCM: Final = (7, 14)
CLANG_VARIABLE, HIPCC_VARIABLE = "RADIOWAVE_CLANG", "HIPCC"


@dataclass(frozen=True)
class HipCompiler:
    """One compiler. `compiler` and `linker` are commands, empty where there is none; `sha256` (hex) is that of the
    compiler's file.

    `why_not` says why it is not taken by itself, "" where nothing speaks against it; one that has a compiler can still
    be asked for by name. `has_rocm`: HIP's own headers and device libraries belong to it.
    """

    name: str
    kind: Literal["clang", "hipcc"]
    compiler: tuple[str, ...]
    linker: tuple[str, ...]
    version: str
    sha256: str
    why_not: str
    has_rocm: bool = False

    def identity(self) -> dict[str, Any]:
        """Name, version and hash, ready for `json.dumps`: nothing that differs between machines with the same tool."""
        return {"name": self.name, "version": self.version, "sha256": self.sha256}


def find_hip_compilers() -> list[HipCompiler]:
    """Every compiler that Radiowave knows of, best first, usable or not. What is missing is no error."""
    return [*_of_rocm(), *_of_the_system(), _zig()]


def hip_compiler(name: str | None = None) -> HipCompiler:
    """The one of that name, or the best. Raises ToolchainError (RW0109) where there is none, with where it looked."""
    found = find_hip_compilers()
    for compiler in found:
        if compiler.compiler and (name == compiler.name if name else not compiler.why_not):
            return compiler
    looked = "; ".join(f"{c.name}: {c.why_not or 'usable'}" for c in found)
    names = ", ".join(c.name for c in found if c.compiler) or "none on this machine"
    raise ToolchainError(
        "RW0109",
        where=f"--toolchain {name}" if name else "HIP compiler",
        seen=looked,
        allowed=names if name else "amdclang or hipcc of ROCm >= 7.14, clang-19 or newer with lld, or ziglang",
        do="install clang-22 and lld-22, or pip install 'redline[clang]'",
    )


def _of_rocm() -> Iterator[HipCompiler]:
    chosen = os.environ.get(HIPCC_VARIABLE)
    clangs = [*rocm.places("lib/llvm/bin/amdclang"), *rocm.places("bin/amdclang"), *rocm.places("llvm/bin/clang")]
    linkers = [*rocm.places("lib/llvm/bin/ld.lld"), *rocm.places("llvm/bin/ld.lld")]
    yield _clang("amdclang", clangs, linkers, _old_rocm, has_rocm=True)
    paths = [chosen] if chosen else [*rocm.places("bin/hipcc"), "hipcc"]
    path = _first(paths)
    if path is None:
        yield _missing("hipcc", "hipcc", paths)
        return
    version = _printed((path, "--version"))
    why_not = "it does not run" if not version else _old_rocm(path)
    compiler = (path,) if version else ()
    yield HipCompiler("hipcc", "hipcc", compiler, (), _line(version), _sha256(path), why_not, has_rocm=True)


def _of_the_system() -> Iterator[HipCompiler]:
    chosen = os.environ.get(CLANG_VARIABLE)
    if chosen:
        yield _clang("clang", [chosen], _linkers(""), lambda _path: "")
        return
    for version in SYSTEM_VERSIONS:
        yield _clang(f"clang-{version}", [f"clang-{version}"], _linkers(str(version)), lambda _path: "")


def _linkers(version: str) -> list[str]:
    """lld of the same LLVM first; any other reads what clang writes."""
    others = [f"ld.lld-{other}" for other in SYSTEM_VERSIONS]
    return [*([f"ld.lld-{version}"] if version else []), "ld.lld", *others]


def _clang(name: str, paths: list[str], linkers: list[str], old: Any, *, has_rocm: bool = False) -> HipCompiler:
    path, linker = _first(paths), _first(linkers)
    if path is None:
        return _missing(name, "clang", paths)
    version, why_not = _printed((path, "--version")), ""
    if not version:
        return HipCompiler(name, "clang", (), (), "", _sha256(path), "it does not run", has_rocm)
    if "amdgcn" not in _printed((path, "-print-targets")):
        why_not = "built without the AMDGPU target"
    elif linker is None:
        why_not = f"no linker beside it: {', '.join(linkers[:2])}"
    compiler = () if why_not else (path,)
    lld = (linker,) if linker else ()
    return HipCompiler(name, "clang", compiler, lld, _line(version), _sha256(path), why_not or old(path), has_rocm)


def _zig() -> HipCompiler:
    spec = importlib.util.find_spec("ziglang")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    path = _first([os.path.join(folder, "zig") for folder in folders])
    if path is None:
        return HipCompiler("zig", "clang", (), (), "", "", "ziglang is not installed: pip install 'redline[clang]'")
    version = _printed((path, "clang", "--version"))
    has_target = "amdgcn" in _printed((path, "clang", "-print-targets"))
    why_not = "" if version and has_target else "its clang does not run, or has no AMDGPU target"
    compiler = () if why_not else (path, "clang")
    return HipCompiler("zig", "clang", compiler, (path, "ld.lld"), _line(version), _sha256(path), why_not)


def _old_rocm(path: str) -> str:
    """What speaks against the ROCm that a file belongs to; a version that nobody states speaks against nothing."""
    for folder in Path(path).resolve().parents:
        stated = folder / ".info" / "version"
        if stated.is_file():
            version = stated.read_text().strip()
            numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
            least = ".".join(map(str, LEAST_ROCM))
            return f"of ROCm {version}, older than {least}" if numbers and numbers < LEAST_ROCM else ""
    return ""


def _missing(name: str, kind: Literal["clang", "hipcc"], paths: list[str]) -> HipCompiler:
    return HipCompiler(name, kind, (), (), "", "", f"not found as {', '.join(paths)}")


def _first(paths: list[str]) -> str | None:
    return next((found for path in paths if (found := shutil.which(path))), None)


@lru_cache(maxsize=64)
def _printed(command: tuple[str, ...]) -> str:
    """What a program prints; empty if it does not run."""
    try:
        return subprocess.run(command, capture_output=True, timeout=SECONDS, check=True).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return ""


def _line(text: str) -> str:
    return text.partition("\n")[0].strip()


@lru_cache(maxsize=64)
def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
