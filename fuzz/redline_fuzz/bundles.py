# SPDX-License-Identifier: Apache-2.0
"""Offload bundles, written: the opposite of `radiowave.unbundle`, for tests and for the fuzzer of hostile files.

Writes what it is told, wrong numbers included. Shares no code with the reader: the layout is typed a second time.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any

HOST = "host-x86_64-unknown-linux-gnu-"
ALIGN = 4096


def device_id(target: str) -> str:
    """The id of an entry as clang writes it for a target id."""
    return f"hipv4-amdgcn-amd-amdhsa--{target}"


def bundle(entries: Sequence[tuple[str, bytes]], *, align: int = ALIGN, host: str = HOST) -> bytes:
    """A plain bundle: the empty host entry first, then ids and their bytes, each aligned."""
    rows = [(host, b""), *entries]
    at = 32 + sum(24 + len(name.encode()) for name, _ in rows)
    table, body = b"", b""
    for name, data in rows:
        at += -at % align
        table += struct.pack("<QQQ", at, len(data), len(name.encode())) + name.encode()
        body += bytes(at - 32 - len(body)) + data
        at += len(data)
    table = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(rows)) + table
    return table + body[len(table) - 32 :]


def compress(data: bytes, *, version: int = 3, method: str = "zstd", level: int = 3, **fields: int) -> bytes:
    """A compressed bundle. `fields` overrides `total`, `unpacked`, `hash` and `method_number` of the header."""
    packed = zlib.compress(data, level) if method == "zlib" else _zstd(data, level)
    sizes = {1: "IQ", 2: "IIQ", 3: "QQQ"}[version]
    header = 8 + struct.calcsize(f"<{sizes}")
    digest = int.from_bytes(hashlib.md5(data, usedforsecurity=False).digest()[:8], "little")
    number = fields.get("method_number", 0 if method == "zlib" else 1)
    values = [fields.get("unpacked", len(data)), fields.get("hash", digest)]
    if version > 1:
        values.insert(0, fields.get("total", header + len(packed)))
    return b"CCOB" + struct.pack(f"<HH{sizes}", version, number, *values) + packed


def _zstd(data: bytes, level: int) -> bytes:
    import zstandard

    compressor: Any = zstandard.ZstdCompressor(level=level)
    return bytes(compressor.compress(data))


def host_elf(fatbin: bytes, *, section: str = ".hip_fatbin", machine: int = 62) -> bytes:
    """A host's ELF file with two sections: its names, and the bundles."""
    names = b"\0.shstrtab\0" + section.encode() + b"\0"
    at_names, at_fatbin = 64, 64 + len(names)
    at_table = at_fatbin + len(fatbin)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, machine, 1, 0, 0, at_table, 0, 64, 56, 0, 64, 3, 1)
    rows = [(0, 0, 0, 0), (1, 3, at_names, len(names)), (11, 1, at_fatbin, len(fatbin))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, kind, 0, 0, at, size, 0, 0, 1, 0) for n, kind, at, size in rows)
    return header + names + fatbin + table
