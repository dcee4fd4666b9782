# SPDX-License-Identifier: Apache-2.0
"""The examples run as a user runs them, and print what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def _run(name: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_words_prints_the_decoded_stream() -> None:
    """Two dispatches, one in work-items, with the barrier's cache bits by name."""
    text = _run("words.py")
    assert text.count("DISPATCH_DIRECT") == 2
    assert "GLV_INV" in text


def test_decode_loop_adds_up() -> None:
    """0.5 times 0 + 1 + ... + 7 is 14."""
    text = _run("decode_loop.py")
    assert "#1 publish reads state[0:4096] written by #0 accumulate (RAW); without the acquire" in text
    assert text.endswith("state after eight steps: 14.0\n")


def test_every_example_is_tested() -> None:
    """A new example gets a test here."""
    tested = Path(__file__).read_text()
    assert all(f'_run("{file.name}")' in tested for file in EXAMPLES.glob("*.py"))
