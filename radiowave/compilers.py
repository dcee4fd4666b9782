# SPDX-License-Identifier: Apache-2.0
"""Find the toolchains that compile sources for the GPU, say what each one is, and choose one.

A toolchain is a compiler and its linker. Looks, asks for versions and hashes files; compiles nothing. Order of
preference: ROCm's amdclang and hipcc, Debian's clang, the clang in the PyPI package `ziglang`; llvmlite for LLVM IR.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from radiowave import rocm
from radiowave.child import command, environment
from radiowave.errors import ToolchainError
from radiowave.find_llvm import SYSTEM_VERSIONS

SECONDS = 30.0
HIP, IR = "hip", "ir"

# The first release in the layout and with the headers that `radiowave/hip.h` was written for.
OLDEST_ROCM = (7, 14)
AMD_BANNER = "AMD clang version"

# The libraries that hold a compiler's code where the program itself is only a few lines.
_CODE = re.compile(r"^\s*(lib(?:LLVM|clang)\S*) => (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Toolchain:
    """One compiler with its linker. `reason` says why it may be used, or why not; `command` and `linker` start the two.

    `paths` are the files that decide what it does. Nothing in a compile record names a path: only `identity` goes in.
    """

    name: str
    language: str
    version: str = ""
    command: tuple[str, ...] = ()
    linker: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    is_usable: bool = False
    has_hip_headers: bool = False
    reason: str = ""

    @property
    def clang_release(self) -> int:
        """The major version of its clang; 0 where it has none."""
        found = re.search(r"clang version (\d+)", self.version)
        return int(found[1]) if found else 0

    def identity(self) -> ToolIdentity:
        """What a record says of it: hashes all of its files, which takes up to a second at first."""
        files = {(Path(path).name, file_sha256(path)) for path in self.paths}
        return ToolIdentity(self.name, self.version, tuple(sorted(files)))


@dataclass(frozen=True)
class ToolIdentity:
    """A toolchain without the machine it was found on: `files` are pairs of a file name and its sha256."""

    name: str
    version: str
    files: tuple[tuple[str, str], ...]


def find_toolchains() -> list[Toolchain]:
    """Every toolchain that Radiowave knows of, best first, usable or not. Takes about half a second."""
    return [find() for _, find in _finders()]


def choose_toolchain(language: str, name: str | None = None) -> Toolchain:
    """The best usable toolchain for `hip` or `ir`, or the one of that name. Raises ToolchainError without one."""
    seen = []
    for known, find in _finders():
        if name not in (None, known):
            continue
        toolchain = find()
        if toolchain.is_usable and toolchain.language == language:
            return toolchain
        if name is not None or toolchain.language == language:
            wrong = f"compiles {toolchain.language}, not {language}" if toolchain.is_usable else toolchain.reason
            seen.append(f"{known}: {wrong}")
    raise ToolchainError(
        "RW0109",
        where=f"toolchain {name}" if name else f"toolchains for {language}",
        seen="; ".join(seen) or f"no toolchain is called {name}",
        allowed=", ".join(known for known, _ in _finders()),
        do="install one (`pip install 'redline[clang]'`, or Debian's clang-22 and lld-22); see `radiowave tools`",
    )


def _finders() -> Iterator[tuple[str, Callable[[], Toolchain]]]:
    yield "amdclang", _amdclang
    yield "hipcc", _hipcc
    chosen = os.environ.get("RADIOWAVE_CLANG")
    if chosen:  # a decision: Debian's are not looked at
        yield "clang", partial(_clang, "clang", chosen, None)
    else:
        yield from ((f"clang-{n}", partial(_clang, f"clang-{n}", f"clang-{n}", n)) for n in SYSTEM_VERSIONS)
    yield "zig", _zig
    yield "llvmlite", _llvmlite


def _amdclang() -> Toolchain:
    paths = rocm.places("lib/llvm/bin/amdclang++")
    path = next((path for path in paths if shutil.which(path)), None)
    if path is None:
        return Toolchain("amdclang", HIP, reason=f"not found: looked at {', '.join(paths)}")
    banner = printed_version(path)
    root = Path(path).parents[3]
    return _of_rocm("amdclang", path, banner, re.search(r"\broc-(\d+)\.(\d+)", banner) or _release_file(root), root)


def _hipcc() -> Toolchain:
    chosen = os.environ.get("HIPCC")
    places = [chosen] if chosen else [*rocm.places("bin/hipcc"), "hipcc"]
    path = next((found for place in places if (found := shutil.which(place))), None)
    if path is None:
        return Toolchain("hipcc", HIP, reason=f"not found: looked at {', '.join(places)}")
    banner = printed_version(path)
    release = re.search(r"HIP version: (\d+)\.(\d+)", banner)
    return _of_rocm("hipcc", path, banner, release, Path(path).resolve().parents[1])


def _release_file(root: Path) -> re.Match[str] | None:
    """ROCm writes its release where the root of the installation is."""
    try:
        return re.match(r"(\d+)\.(\d+)", (root / ".info" / "version").read_text(encoding="utf-8"))
    except OSError:
        return None


def _of_rocm(name: str, path: str, banner: str, release: re.Match[str] | None, root: Path) -> Toolchain:
    """AMD's compiler, and new enough; an old or unknown one is not used unseen."""
    line = next((line for line in banner.splitlines() if AMD_BANNER in line), "").strip()
    oldest = ".".join(map(str, OLDEST_ROCM))
    reason = f"{path}: AMD's clang of ROCm {release[0].split()[-1]}" if release else ""
    if not line:
        reason = f"{path}: does not say `{AMD_BANNER}`"
    elif release is None:
        reason = f"{path}: does not say of which ROCm release it is; {oldest} or newer is wanted"
    elif (int(release[1]), int(release[2])) < OLDEST_ROCM:
        reason = f"{path}: of ROCm {release[1]}.{release[2]}, older than {oldest}"
    else:
        headers = (root / "include" / "hip" / "hip_runtime.h").is_file()
        behind = [str(root / "lib" / "llvm" / "bin" / program) for program in ("clang", "lld")]
        files = [file for start in (path, *behind) if Path(start).is_file() for file in _files(start)]
        return Toolchain(name, HIP, line, (path,), (), tuple(dict.fromkeys(files)), True, headers, reason)
    return Toolchain(name, HIP, line, reason=reason)


def _clang(name: str, program: str, release: int | None) -> Toolchain:
    path = shutil.which(program)
    if path is None:
        return Toolchain(name, HIP, reason=f"not found: {program} on PATH")
    version = printed_version(path).partition("\n")[0].strip()
    if not version:
        return Toolchain(name, HIP, reason=f"{path}: does not run")
    linker = _lld(Path(path).resolve().parent, release)
    if linker is None:
        reason = f"{path}: no linker; apt-get install lld-{release or SYSTEM_VERSIONS[0]}"
        return Toolchain(name, HIP, version, reason=reason)
    files = tuple(dict.fromkeys([*_files(path), *_files(linker)]))
    return Toolchain(name, HIP, version, (path,), (linker,), files, True, False, f"{path} with {linker}")


def _lld(folder: Path, release: int | None) -> str | None:
    """The linker beside a clang, else of its release, else a newer one: an older lld may not know its objects."""
    beside = folder / "lld"
    if beside.is_file():
        return str(beside)
    others = [version for version in SYSTEM_VERSIONS if release is None or version >= release]
    for name in (f"ld.lld-{version}" for version in reversed(others)):
        if found := shutil.which(name):
            return str(Path(found).resolve())
    return None


def _zig() -> Toolchain:
    spec = importlib.util.find_spec("ziglang")
    folders = spec.submodule_search_locations if spec else None
    path = str(Path(folders[0]) / "zig") if folders else None
    if path is None or not shutil.which(path):
        return Toolchain("zig", HIP, reason="not found: pip install 'redline[clang]'")
    version = printed_version(path, "clang").partition("\n")[0].strip()
    if not version:
        return Toolchain("zig", HIP, reason=f"{path}: does not run")
    version = f"zig {printed_version(path, option='version').strip()}, {version}"
    return Toolchain("zig", HIP, version, (path, "clang"), (path, "ld.lld"), (path,), True, False, f"{path}")


def _llvmlite() -> Toolchain:
    arguments = command("radiowave.llvm_child", "--versions")
    try:
        done = subprocess.run(arguments, capture_output=True, env=environment(), timeout=SECONDS, check=True)
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Toolchain("llvmlite", IR, reason=f"llvmlite in this Python does not run: {error}")
    version, library = f"llvmlite {found['llvmlite']}, LLVM {found['llvm']}", found["library"]
    return Toolchain("llvmlite", IR, version, ("llvmlite",), (), (library,), True, False, found["path"])


def printed_version(path: str, *words: str, option: str = "--version") -> str:
    """What a program prints about its version; empty if it does not run."""
    try:
        done = subprocess.run([path, *words, option], capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def _files(path: str) -> Iterator[str]:
    """A program and the libraries of LLVM that it loads."""
    yield str(Path(path).resolve())
    try:
        done = subprocess.run(["ldd", path], capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return
    for _name, library in _CODE.findall(done.stdout.decode(errors="replace")):
        yield str(Path(library).resolve())


def file_sha256(path: str) -> str:
    """The sha256 of a file; read again only when its size or time has changed."""
    state = os.stat(path)
    return _hashed(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _hashed(path: str, _nbytes: int, _modified_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
