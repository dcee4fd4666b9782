# SPDX-License-Identifier: Apache-2.0
"""Code objects kept on disk between runs, each checked against its own hash when it is read.

An entry is named by everything that decides its bytes and carries the sha256 of its content. An entry that
is missing, cut short or changed counts as absent and is written again. Nothing is trusted for being there,
nothing is ever deleted, and a directory that cannot be written only costs time. What is built, and how, is
not known here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

MAGIC = b"redline code object 1\n"
DIGEST_BYTES = 32


def directory() -> Path | None:
    """`$XDG_CACHE_HOME/redline`, else `~/.cache/redline`; None where there is no home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # the XDG specification has relative names ignored
        return Path(named) / "redline"
    try:
        return Path.home() / ".cache" / "redline"
    except RuntimeError:
        return None


def read(name: str) -> bytes | None:
    """The entry's content when it is present and whole."""
    folder = directory()
    if folder is None:
        return None
    try:
        entry = (folder / name).read_bytes()
    except OSError:
        return None
    head, content = entry[: len(MAGIC) + DIGEST_BYTES], entry[len(MAGIC) + DIGEST_BYTES :]
    return content if head == MAGIC + hashlib.sha256(content).digest() else None


def write(name: str, content: bytes) -> None:
    """Put an entry in place in one step, so that no reader ever sees half of it."""
    folder = directory()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, folder / name)
        except OSError:
            os.unlink(temporary)
            raise
