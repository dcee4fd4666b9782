# SPDX-License-Identifier: Apache-2.0
"""Redline starts where nothing can be written but the temporary folder, and where numba's cache is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redline import compiled_cache


@pytest.fixture
def nothing_writable(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable set, and no folder that can be written (the tests may run as root, who can write anywhere)."""
    monkeypatch.delenv(compiled_cache.VARIABLE, raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)


@pytest.mark.usefixtures("nothing_writable")
def test_a_folder_is_named_when_there_is_none() -> None:
    """One per user, in the temporary directory."""
    named = compiled_cache.provide("/package")
    assert named == os.environ[compiled_cache.VARIABLE]
    assert str(os.getuid()) in str(named)


def test_what_works_or_was_chosen_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A writable package, a writable user cache or a set variable each suffice."""
    monkeypatch.delenv(compiled_cache.VARIABLE, raising=False)
    assert compiled_cache.provide(str(tmp_path)) is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert compiled_cache.provide("/proc/nowhere") is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setenv(compiled_cache.VARIABLE, "/elsewhere")
    assert compiled_cache.provide("/proc/nowhere") is None
    assert os.environ[compiled_cache.VARIABLE] == "/elsewhere"


COMPILED_CODE = """
import numpy as np
import redline
from redline.encoders.emit import RELOC, apply_relocs
from redline.sim.fma import fma
addresses = np.zeros(1, np.uint64)
apply_relocs(np.zeros(1, np.uint32), np.zeros(1, RELOC), addresses, addresses, addresses, addresses)
print(float(fma(1.5, 2.0, 3.0)))
"""


def run_compiled(cache: Path) -> dict[str, bytes]:
    """Call compiled functions in a new process with that cache; what the cache holds then, without its folders."""
    environment = {**os.environ, compiled_cache.VARIABLE: str(cache)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run([sys.executable, "-c", COMPILED_CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6.0\n"
    return {file.name: file.read_bytes() for file in cache.rglob("*.nb[ic]")}


def test_damaged_files_are_compiled_again_and_whole_ones_are_kept(tmp_path: Path) -> None:
    """An index or data file that is empty, cut short or overwritten does not end the program with numba's EOFError. A
    new process alone adds no file: what one compiles, the next one finds."""
    whole = run_compiled(tmp_path)
    assert any(name.startswith("fma.") for name in whole)
    assert any(name.startswith("emit.") for name in whole)
    assert run_compiled(tmp_path) == whole
    for file in sorted(tmp_path.rglob("*.nb[ic]")):
        content = file.read_bytes()
        for damaged in (b"", content[: len(content) // 2], content[:-1], b"\x00" + content[1:], content + b"x"):
            file.write_bytes(damaged)
            assert not compiled_cache._readable(str(file))
        file.write_bytes(content[:-1])
    assert run_compiled(tmp_path).keys() == whole.keys()


def test_only_our_own_files_are_touched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Broken files of other packages in the same cache are not ours to delete."""
    monkeypatch.setenv(compiled_cache.VARIABLE, str(tmp_path))
    for folder, name in (
        ("encoders_1", "emit.f-1.py311.nbi"),
        ("encoders_1", "other.f-1.py311.nbi"),
        ("x_1", "emit.f"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(b"broken")
    removed = compiled_cache.remove_damaged(str(tmp_path / "package"))
    assert removed == [str(tmp_path / "encoders_1" / "emit.f-1.py311.nbi")]
    assert sorted(file.name for file in tmp_path.rglob("*.*") if file.is_file()) == ["emit.f", "other.f-1.py311.nbi"]
