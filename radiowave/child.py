# SPDX-License-Identifier: Apache-2.0
"""How Radiowave starts its child processes, and how the two ends frame their messages.

LLVM ends its process at a fatal error, and hostile bytes can crash it, so it only ever runs in a child. This
file does not know what the children do; `llvm_child.py` and `disassemble_child.py` do.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path
from typing import IO, Any

import msgpack

# A reply is at most the text of one kernel; far below this. A wrong length means a broken stream.
MAX_MESSAGE_BYTES = 1 << 30

_LENGTH = struct.Struct("<I")


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs one of our modules. `-P`: never import from the current folder."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """This process's environment, with the folder that holds our packages importable."""
    root = str(Path(__file__).resolve().parent.parent)
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}


def how_it_ended(returncode: int) -> str:
    """A return code in words.

    >>> how_it_ended(-6), how_it_ended(1)
    ('signal SIGABRT', 'exit code 1')
    """
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"


def pack_message(message: object) -> bytes:
    """One message as it travels: its length in four bytes, then msgpack."""
    body: bytes = msgpack.packb(message)
    return _LENGTH.pack(len(body)) + body


def read_message(stream: IO[bytes]) -> Any | None:
    """The next message, or None where the stream ends."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (nbytes,) = _LENGTH.unpack(head)
    body = stream.read(nbytes) if nbytes <= MAX_MESSAGE_BYTES else b""
    return msgpack.unpackb(body, strict_map_key=False) if len(body) == nbytes else None


def private_stdout() -> IO[bytes]:
    """The child's stdout for messages alone; what LLVM prints to descriptor 1 goes to stderr from now on."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream
