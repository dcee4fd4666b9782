# SPDX-License-Identifier: Apache-2.0
"""Compile a source and write down how: HIP with a clang, LLVM IR with llvmlite.

Chooses the toolchain, checks what was asked for and what came out of it, makes the record. Runs no compiler itself:
`hip_source.py` and `compile.py` do. Does not cache.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from radiowave.code_object import CodeObject
from radiowave.compile import CompileJob, compile_many
from radiowave.compilers import HIP, IR, Toolchain, choose_toolchain
from radiowave.errors import ToolchainError
from radiowave.hip_source import compile_with_clang
from radiowave.options import SCHEDULERS, Options
from radiowave.record import Compiled, CompileRecord

LANGUAGES = {".hip": HIP, ".cpp": HIP, ".cu": HIP, ".ll": IR}
DEFAULT_VERSION = 5


def compile_hip(
    source: str | Path,
    *,
    target: str,
    wave: int = 32,
    toolchain: str | None = None,
    code_object_version: int = DEFAULT_VERSION,
    scheduler: str = "default",
    fast_math: bool = False,
    fp_contract: str | None = None,
    defines: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> Compiled:
    """Compile HIP device code: a Path is a file, a str the text itself. The options are those of `Options`.

    `toolchain` is a name of `radiowave tools`; None takes the best that is there. Raises UnsupportedTarget for a
    target, wave size or code object version outside the lists, ToolchainError for anything else that is refused or
    fails, OSError when the file cannot be read.
    """
    options = Options(
        target, wave, code_object_version, scheduler, fast_math, fp_contract, tuple(defines), tuple(arguments)
    )
    if isinstance(source, Path):
        return _compile_hip(source, options, toolchain)
    folder = Path(tempfile.mkdtemp(prefix="radiowave-"))
    file = folder / "source.hip"
    file.write_text(source, encoding="utf-8")
    try:
        compiled = _compile_hip(file, options, toolchain)
    except ToolchainError as error:
        if error.code != "RW0101":  # whose message has a command that reads the file
            shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)
    return compiled


def compile_source(path: Path, options: Options, toolchain: str | None = None) -> Compiled:
    """Compile a file of either language, told by the end of its name. Raises as `compile_hip` does, and LinkError."""
    language = LANGUAGES.get(path.suffix)
    if language is None:
        raise ToolchainError(
            "RW0111",
            where=str(path),
            seen=f"a name that ends in {path.suffix or 'nothing'}",
            allowed=", ".join(LANGUAGES),
            do="rename the file after its language",
        )
    return (_compile_hip if language == HIP else _compile_ir)(path, options, toolchain)


def _compile_hip(path: Path, options: Options, name: str | None) -> Compiled:
    text = path.read_bytes()
    toolchain = _chosen(path, options, HIP, name)
    version = options.code_object_version or DEFAULT_VERSION
    made = compile_with_clang(path, options, toolchain, version)
    found = CodeObject.parse(made.code_object)
    _check_result(path, options, found)
    return _with_record(path, text, options, toolchain, found, made.argv, made.headers)


def _compile_ir(path: Path, options: Options, name: str | None) -> Compiled:
    text = path.read_text(encoding="utf-8")
    toolchain = _chosen(path, options, IR, name)
    flags = SCHEDULERS[options.scheduler]
    job = CompileJob(text, options.target, options.wave, options.code_object_version, str(path), flags)
    found = CodeObject.parse(compile_many([job])[0])
    argv = [toolchain.name, path.name, "--target", options.target, "--wave", str(options.wave)]
    if options.code_object_version is not None:
        argv += ["--code-object-version", str(options.code_object_version)]
    argv += [f"--llvm-option={flag}" for flag in flags]
    return _with_record(path, text.encode(), options, toolchain, found, tuple(argv), ())


def _chosen(path: Path, options: Options, language: str, name: str | None) -> Toolchain:
    options.check(str(path))
    toolchain = choose_toolchain(language, name)
    options.check_toolchain(toolchain, str(path))
    return toolchain


def _check_result(path: Path, options: Options, found: CodeObject) -> None:
    """What came out is what was asked for, and has something to launch."""
    if not found.kernels:
        raise ToolchainError(
            "RW0108",
            where=str(path),
            seen="no function with __global__",
            allowed="at least one kernel; a template is one only where it is instantiated",
            do='write `extern "C" __global__ void name(...)` for what is launched',
        )
    waves = {kernel.wave for kernel in found.kernels.values()}
    if found.target != options.target or waves != {options.wave}:
        raise ToolchainError(
            "RW0106",
            where=str(path),
            seen=f"an object for {found.target} with waves of {sorted(waves)}",
            allowed=f"{options.target} with waves of {options.wave}",
            do="remove what chooses another target or wave size from the source or the arguments",
        )


def _with_record(
    path: Path,
    text: bytes,
    options: Options,
    toolchain: Toolchain,
    found: CodeObject,
    argv: tuple[str, ...],
    headers: tuple[tuple[str, str], ...],
) -> Compiled:
    record = CompileRecord(
        language=toolchain.language,
        source=path.name,
        source_sha256=hashlib.sha256(text).hexdigest(),
        target=options.target,
        wave=options.wave,
        code_object_version=found.code_object_version,
        scheduler=options.scheduler,
        fast_math=options.fast_math,
        fp_contract=options.contract if toolchain.language == HIP else None,
        defines=options.defines,
        arguments=options.arguments,
        toolchain=toolchain.identity(),
        argv=argv,
        headers=headers,
        object_sha256=found.sha256,
    )
    return Compiled(found.data, record)
