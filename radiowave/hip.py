# SPDX-License-Identifier: Apache-2.0
"""Compile HIP sources into linked AMDGPU code objects, with a record of what was done that names no machine.

The compiler runs in processes of its own, in an empty folder with fixed names, so that the same inputs give the same
bytes wherever they lie; it may die without harm. `radiowave/include/radiowave/hip.h` is included before the source.
Which compilers there are is `hip_compilers.py`'s; what is in the result, `code_object.py`'s.

Source of the scheduler's flags: LLVM 22 `GCNSchedStrategy.cpp`, `AMDGPUIGroupLP.cpp`; of the code object versions: LLVM
AMDGPUUsage.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from radiowave.child import how_it_ended
from radiowave.code_object import CodeObject
from radiowave.errors import ToolchainError
from radiowave.hip_compilers import HipCompiler, hip_compiler
from radiowave.targets import check_code_object_version, check_target, check_wave

SECONDS: Final = 300.0
HEADER: Final = Path(__file__).parent / "include" / "radiowave" / "hip.h"

Profile = Literal["default", "max_ilp", "iterative_ilp", "memory_clause", "pipeline_ilp"]
FpContract = Literal["off", "on", "fast", "fast-honor-pragmas"]
PROFILES: Final[dict[Profile, tuple[str, ...]]] = {
    "default": (),
    "max_ilp": ("-misched=gcn-max-ilp",),
    "iterative_ilp": ("-misched=gcn-iterative-ilp",),
    "memory_clause": ("-misched=gcn-max-memory-clause", "-amdgpu-max-memory-clause=4"),
    "pipeline_ilp": (
        "-misched=gcn-max-ilp",
        "-amdgpu-schedule-relaxed-occupancy",
        "-amdgpu-igrouplp-exact-solver",
        "-enable-pipeliner",
    ),
}
# clang's driver ignores -MD for one device; the compiler behind it writes what was included all the same.
_DEPENDENCIES: Final = ("-dependency-file", "kernel.d", "-MT", "kernel")
# What LLVM says to an option, or a value of one, that it does not have.
_LACKS: Final = re.compile(r"Unknown command line argument|Cannot find option named|[Uu]nknown argument")
_MOST_LINES: Final = 30


@dataclass(frozen=True)
class HipJob:
    """How to compile. `target` is a GPU such as "gfx1201", `wave` 32 or 64 lanes; `defines` by name, `arguments` go to
    the compiler behind everything else, `include` are folders.

    Fast math is off unless asked for. `fp_contract` says which products and sums may become one instruction: "on"
    within an expression, "fast-honor-pragmas" as hipcc does by itself, across them.
    """

    target: str
    wave: int = 32
    profile: Profile = "default"
    defines: Mapping[str, str] | None = None
    arguments: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    fast_math: bool = False
    fp_contract: FpContract = "on"
    code_object_version: int = 5

    def check(self, where: str) -> None:
        """Refuse what must not reach a compiler. Raises UnsupportedTarget, and ToolchainError for other options."""
        check_target(self.target, where=where)
        check_wave(self.wave, where=where)
        check_code_object_version(self.code_object_version, where=where)
        for name, value, allowed in (
            ("profile", self.profile, tuple(PROFILES)),
            ("fp_contract", self.fp_contract, get_args(FpContract)),
        ):
            if value not in allowed:
                raise _lacking(where, f"{name}={value!r}", ", ".join(allowed))


@dataclass(frozen=True)
class HipRecord:
    """What was done: tools, commands without paths, hashes (hex) of the source, the header and everything included."""

    compiler: dict[str, Any]
    commands: tuple[tuple[str, ...], ...]
    source_sha256: str
    header_sha256: str
    dependencies: tuple[tuple[str, str], ...]
    output_sha256: str

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {**asdict(self), "commands": [list(c) for c in self.commands], "dependencies": dict(self.dependencies)}


@dataclass(frozen=True)
class HipBuild:
    """A linked code object and how it came to be."""

    data: bytes
    record: HipRecord


def compile_hip(source: str, job: HipJob, *, toolchain: str | None = None, label: str = "HIP source") -> HipBuild:
    """Compile and link one HIP source text. `toolchain` names a compiler of `find_hip_compilers`, else the best is
    taken; `label` is how messages call the source.

    Raises UnsupportedTarget for a target, wave size or code object version outside the lists; ToolchainError where
    there is no compiler, it refuses the source or lacks what was asked for, dies, or takes longer than five minutes;
    CodeObjectError when what it wrote is no code object.
    """
    job.check(label)
    compiler = hip_compiler(toolchain)
    with tempfile.TemporaryDirectory(prefix="radiowave-") as name:
        folder = Path(name)
        (folder / "radiowave").mkdir()
        shutil.copyfile(HEADER, folder / "radiowave" / "hip.h")
        (folder / "source.hip").write_text(source, encoding="utf-8")
        commands = list(_commands(job, compiler))
        for command in commands:
            _run(command, folder, job, compiler, label)
        data = CodeObject.read((folder / "kernel.co").read_bytes(), job.target).data
        dependencies = _dependencies(folder, job)
    record = HipRecord(
        compiler.identity(),
        tuple(_without_paths(command, compiler) for command in commands),
        hashlib.sha256(source.encode()).hexdigest(),
        hashlib.sha256(HEADER.read_bytes()).hexdigest(),
        dependencies,
        hashlib.sha256(data).hexdigest(),
    )
    return HipBuild(data, record)


def compile_hip_file(path: str | Path, job: HipJob, *, toolchain: str | None = None) -> HipBuild:
    """The same for a file; its folder is looked into for what it includes.

    Raises what `compile_hip` raises, OSError when the file cannot be read, UnicodeDecodeError when it is no UTF-8.
    """
    path = Path(path)
    inner = HipJob(**{**vars(job), "include": (*job.include, str(path.resolve().parent))})
    return compile_hip(path.read_text(encoding="utf-8"), inner, toolchain=toolchain, label=str(path))


def _commands(job: HipJob, compiler: HipCompiler) -> Iterator[tuple[str, ...]]:
    """What to run, one after another: clang writes assembly, assembles it, and lld links; hipcc does all by itself."""
    wave = ("-mwavefrontsize64",) if job.wave == 64 else ()
    if compiler.kind == "hipcc":
        yield (*compiler.compiler, "--genco", *_flags(job, compiler), "-o", "kernel.co", "source.hip")
        return
    compile_only = ("-x", "hip", "--offload-device-only", "-S")
    yield (*compiler.compiler, *compile_only, *_flags(job, compiler), "-o", "kernel.s", "source.hip")
    machine = ("--target=amdgcn-amd-amdhsa", f"-mcpu={job.target}", *wave)
    yield (*compiler.compiler, *machine, "-c", "-x", "assembler", "-o", "kernel.o", "kernel.s")
    yield (*compiler.linker, "-m", "elf64_amdgpu", "--no-undefined", "-shared", "-o", "kernel.co", "kernel.o")


def _flags(job: HipJob, compiler: HipCompiler) -> tuple[str, ...]:
    return (
        f"--offload-arch={job.target}",
        *(("-mwavefrontsize64",) if job.wave == 64 else ("-mno-wavefrontsize64",)),
        "-O3",
        "-std=c++17",
        "-ffast-math" if job.fast_math else "-fno-fast-math",
        f"-ffp-contract={job.fp_contract}",
        "-fno-exceptions",
        "-fno-rtti",
        "-fuse-cuid=none",  # a symbol named by a hash of paths
        f"-mcode-object-version={job.code_object_version}",
        *(() if compiler.has_rocm else ("-nogpuinc", "-nogpulib")),
        "-I.",
        "-include",
        "radiowave/hip.h",
        "-DRADIOWAVE_ACTIVE=1",
        *(part for flag in PROFILES[job.profile] for part in ("-mllvm", flag)),
        *(f"-D{name}={value}" if value else f"-D{name}" for name, value in (job.defines or {}).items()),
        *(f"-I{folder}" for folder in job.include),
        *(part for word in _DEPENDENCIES for part in ("-Xclang", word)),
        *job.arguments,
    )


def _run(command: Sequence[str], folder: Path, job: HipJob, compiler: HipCompiler, label: str) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "ROCM_PATH", "HIP_PATH") if name in os.environ}
    where = f"compiling {label} for {job.target} wave{job.wave} with {compiler.name}"
    try:
        done = subprocess.run(
            command, cwd=folder, env={**kept, "LC_ALL": "C"}, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            "RW0105",
            where=where,
            seen=f"no end after {SECONDS:g} s",
            allowed=f"{SECONDS:g} s",
            do="make the source smaller; the compiler was stopped",
        ) from error
    except OSError as error:
        raise _lacking(where, str(error), "a compiler that can be started") from error
    if done.returncode == 0:
        return
    printed = done.stderr.decode(errors="replace").replace("source.hip", label).strip()
    shown = "\n".join(printed.splitlines()[:_MOST_LINES])
    if _LACKS.search(printed):
        raise _lacking(where, shown, f"a compiler that knows profile {job.profile!r} and {list(job.arguments)}")
    if done.returncode < 0 or "PLEASE submit a bug report" in printed:
        raise ToolchainError(
            "RW0101",
            where=where,
            seen=f"{how_it_ended(done.returncode)}: {shown}",
            allowed="a source that the compiler survives",
            do="change what the message names, or choose another compiler with --toolchain",
        )
    raise ToolchainError(
        "RW0110",
        where=where,
        seen=shown or how_it_ended(done.returncode),
        allowed="HIP that this compiler takes for the target",
        do="change what the message names",
    )


def _lacking(where: str, seen: str, allowed: str) -> ToolchainError:
    return ToolchainError(
        "RW0111", where=where, seen=seen, allowed=allowed, do="leave the option out, or choose another --toolchain"
    )


def _dependencies(folder: Path, job: HipJob) -> tuple[tuple[str, str], ...]:
    """What else was included, by the name below the folder that it was found in, with its hash; no system headers."""
    if not (folder / "kernel.d").is_file():
        return ()
    text = (folder / "kernel.d").read_text(errors="replace").partition(":")[2].replace("\\\n", " ")
    found = {}
    for name in re.findall(r"(?:\\ |\S)+", text):
        path = Path(name.replace("\\ ", " "))
        for root in job.include:
            if path.is_absolute() and path.is_relative_to(root):
                found[path.relative_to(root).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return tuple(sorted(found.items()))


def _without_paths(command: Sequence[str], compiler: HipCompiler) -> tuple[str, ...]:
    """Programs by name, folders of the user left out."""
    programs = {*compiler.compiler, *compiler.linker}
    kept = (part for part in command if not part.startswith(f"-I{os.sep}"))
    return tuple(Path(part).name if part in programs else part for part in kept)
