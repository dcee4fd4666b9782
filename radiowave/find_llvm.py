# SPDX-License-Identifier: Apache-2.0
"""Where an LLVM shared library with the AMDGPU disassembler may be, in the order in which we look.

Only names places; `disassemble_child.py` loads them, in its own process.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Iterator
from typing import NamedTuple

from radiowave import rocm

CHOICE = "RADIOWAVE_LIBLLVM"

# The newest LLVM first; 19 is the first that knows every target of ours but gfx1152 and gfx1153.
SYSTEM_VERSIONS = (22, 21, 20, 19)


class Place(NamedTuple):
    """One place to look: who would have put a library there, and a path or a name for the dynamic loader."""

    source: str
    library: str


def places() -> Iterator[Place]:
    """Every place, best first. `$RADIOWAVE_LIBLLVM` is a decision: with it nothing else is looked at."""
    chosen = os.environ.get(CHOICE)
    if chosen:
        yield Place(f"${CHOICE}", chosen)
        return
    yield from _wheel()
    yield from _rocm()
    yield from _system()


def _wheel() -> Iterator[Place]:
    try:
        spec = importlib.util.find_spec("rocm.llvm")
    except ModuleNotFoundError:
        spec = None
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        yield Place("rocm-llvm-python (pip install 'redline[sim]')", "not installed")
        return
    for folder in folders:
        yield Place("rocm-llvm-python", os.path.join(folder, "librocmllvm.so"))


def _rocm() -> Iterator[Place]:
    for pattern in rocm.places("lib/llvm/lib/libLLVM*.so*"):
        for library in sorted(glob.glob(pattern)) or [pattern]:
            yield Place("ROCm", library)


def _system() -> Iterator[Place]:
    for version in SYSTEM_VERSIONS:
        for library in (
            f"libLLVM.so.{version}.1",
            f"libLLVM-{version}.so.1",
            f"libLLVM-{version}.so",
            f"/usr/lib/llvm-{version}/lib/libLLVM.so.1",
        ):
            yield Place(f"LLVM {version} of the system", library)
