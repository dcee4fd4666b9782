# SPDX-License-Identifier: Apache-2.0
"""Redline starts where nothing can be written but the temporary folder."""

from __future__ import annotations

import os
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
