# SPDX-License-Identifier: Apache-2.0
"""Fourteen example kernels: LLVM IR sources, the build, their table (`SPECS`) and their oracles.

>>> import redline.kernels as kernels
>>> kernels.source("saxpy").name
'saxpy.ll'
>>> kernels.build("saxpy", "gfx1201", wave=32)[:4]
b'\\x7fELF'

One source text serves every target and both wave sizes. Objects are built at first use by Radiowave and
kept in the user's cache directory (`cache.py`); `python -m redline.kernels` writes them to files. Importing
this package imports neither numpy nor a compiler. It launches nothing: `redline.load` takes the bytes from
here.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from functools import cache as remember
from pathlib import Path

import radiowave
from redline.kernels import cache
from redline.kernels.specs import SPECS as SPECS
from redline.kernels.specs import Argument as Argument
from redline.kernels.specs import Spec as Spec

#: The names of the example kernels, in the order of `SPECS`.
NAMES: tuple[str, ...] = tuple(SPECS)
#: One target of each family: what `build_all`, the demo and the tests compile for by default.
DEMO_TARGETS: tuple[str, ...] = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")

Progress = Callable[[int, int], None]

__all__ = ["DEMO_TARGETS", "NAMES", "SPECS", "Argument", "Spec", "build", "build_all", "source"]


def source(name: str) -> Path:
    """The kernel's LLVM IR file in the installed package. Raises KeyError for a name that is not in `NAMES`."""
    if name not in SPECS:
        raise KeyError(f"no example kernel is named {name!r}; there are: {', '.join(NAMES)}")
    return Path(__file__).with_name(f"{name}.ll")


def build(name: str, target: str, wave: int = 32) -> bytes:
    """The kernel's linked code object, from the cache or freshly compiled. `wave` is 32 or 64 lanes.

    Raises as `build_all` does: KeyError, and radiowave's UnsupportedTarget, ToolchainError, LinkError, CodeObjectError.
    """
    return build_all([target], waves=[wave], names=[name])[name, target, wave]


def build_all(
    targets: Iterable[str] = DEMO_TARGETS,
    *,
    waves: Sequence[int] = (32,),
    names: Sequence[str] = NAMES,
    progress: Progress | None = None,
) -> dict[tuple[str, str, int], bytes]:
    """The code objects of many kernels by (name, target, wave), what the cache lacks compiled in one child.

    `waves` are 32 and 64 lanes. `progress(done, total)` is called as objects become ready. Raises KeyError for an
    unknown kernel; radiowave's UnsupportedTarget for an unknown target or wave size, ToolchainError when the compiler
    fails, LinkError or CodeObjectError when its object cannot be linked.
    """
    wanted = [(name, target, wave) for target in targets for wave in waves for name in names]
    jobs = {key: radiowave.CompileJob(_text(key[0]), key[1], key[2], label=str(source(key[0]))) for key in wanted}
    for job in jobs.values():
        job.check()
    found = {key: cache.read(_entry(*key)) for key in wanted}
    objects = {key: content for key, content in found.items() if content is not None}
    missing = [key for key in wanted if key not in objects]
    ready = len(objects)

    def tell(compiled: int) -> None:
        if progress is not None:
            progress(ready + compiled, len(wanted))

    tell(0)
    for key, content in zip(missing, radiowave.compile_many([jobs[key] for key in missing], tell), strict=True):
        cache.write(_entry(*key), content)
        objects[key] = content
    return {key: objects[key] for key in wanted}


def _text(name: str) -> str:
    return source(name).read_text(encoding="utf-8")


def _entry(name: str, target: str, wave: int) -> str:
    """The cache entry's name: readable, and a hash over all that decides the bytes."""
    decides = "\0".join((_text(name), target, str(wave), _toolchain()))
    return f"{name}-{target}-wave{wave}-{hashlib.sha256(decides.encode()).hexdigest()[:32]}"


@remember
def _toolchain() -> str:
    """LLVM's version and Radiowave's own source: a changed linker must not find the old linker's objects."""
    digest = hashlib.sha256(importlib.metadata.version("llvmlite").encode())
    for file in sorted(Path(radiowave.__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
