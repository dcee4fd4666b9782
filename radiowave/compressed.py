# SPDX-License-Identifier: Apache-2.0
"""Compressed clang offload bundles ("CCOB"): the header of versions 1 to 3, and the bundle inside.

Says how long a compressed bundle is and unpacks it; what a bundle holds is `bundle.py`'s business. Memory is bounded:
nothing is unpacked past the size that the header states, nor past `MAX_UNPACKED_BYTES` for one file. The hash in the
header is checked, so a bundle that unpacks to other bytes than clang packed is refused.

Layout: LLVM, `clang/docs/ClangOffloadBundler.rst`, "Compression and Decompression", and struct
`RawCompressedBundleHeader` of `clang/lib/Driver/OffloadBundler.cpp` (version 1 has no total size).
"""

from __future__ import annotations

import hashlib
import importlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from radiowave.errors import CodeObjectError

MAGIC = b"CCOB"
ZLIB, ZSTD = 0, 1  # llvm::compression::Format
METHOD_NAMES = {ZLIB: "zlib", ZSTD: "zstd"}

# version -> the fields behind magic, version and method; the last three are unpacked size and hash, with the total
# size before them from version 2 on.
_COMMON = struct.Struct("<4sHH")
_FIELDS = {1: struct.Struct("<IQ"), 2: struct.Struct("<IIQ"), 3: struct.Struct("<QQQ")}

# All bundles of one file together; the largest libraries of ROCm stay below it.
MAX_UNPACKED_BYTES = 1 << 30
# What goes into a decompressor at once. A zstd block of 4 bytes may unpack to 128 KiB: 16 MiB past a limit at most.
_CHUNK_BYTES = 512

# Modules with a zstd decompressor, in order: the standard library from Python 3.14 on, its backport, the extra `zstd`.
_ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard")


@dataclass(frozen=True)
class CompressedHeader:
    """The header of a compressed bundle. `total_bytes` counts header and payload; version 1 does not say it."""

    version: int
    method: int
    total_bytes: int | None
    unpacked_bytes: int
    hash: int
    header_bytes: int

    @property
    def container(self) -> str:
        """What messages call the container.

        >>> CompressedHeader(3, 1, 3403, 11984, 0, 32).container
        'compressed clang offload bundle (CCOB v3, zstd)'
        """
        method = METHOD_NAMES.get(self.method, f"method {self.method}")
        return f"compressed clang offload bundle (CCOB v{self.version}, {method})"


def read_header(data: bytes, at: int = 0) -> CompressedHeader:
    """The header at byte `at`, whatever it announces; `CodeObjectError` when it is cut or of an unknown version."""
    where = f"compressed offload bundle at {at:#x}"
    if at + _COMMON.size > len(data):
        raise damaged(where, f"{len(data) - at} bytes", f"a header of at least {_COMMON.size}")
    _magic, version, method = _COMMON.unpack_from(data, at)
    fields = _FIELDS.get(version)
    if fields is None:
        raise damaged(where, f"CCOB version {version}", "versions 1, 2 and 3")
    header_bytes = _COMMON.size + fields.size
    if at + header_bytes > len(data):
        raise damaged(where, f"{len(data) - at} bytes", f"a header of {header_bytes} (CCOB v{version})")
    *total, unpacked, digest = fields.unpack_from(data, at + _COMMON.size)
    return CompressedHeader(version, method, total[0] if total else None, unpacked, digest, header_bytes)


def unpack(data: bytes, at: int, most: int = MAX_UNPACKED_BYTES) -> tuple[bytes, int]:
    """The bundle packed at byte `at`, and where the compressed one ends. `most` bounds the unpacked bytes."""
    header = read_header(data, at)
    where = f"{header.container} at {at:#x}"
    end = len(data) if header.total_bytes is None else at + header.total_bytes
    if not at + header.header_bytes <= end <= len(data):
        raise damaged(where, f"a total of {header.total_bytes:,} bytes", f"up to the {len(data) - at:,} that are there")
    if header.unpacked_bytes > most:
        seen = f"{header.unpacked_bytes:,} bytes unpacked"
        raise CodeObjectError("RW0313", where=where, seen=seen, allowed=f"{most:,} more in this file", do=_SPLIT)
    machine, failure = _decompressor(header, where)
    try:
        unpacked, used = _expand(machine, memoryview(data)[at + header.header_bytes : end], header, where)
    except failure as error:
        raise damaged(where, f"{type(error).__name__}: {error}"[:200], "a whole compressed stream") from None
    end_of_stream = at + header.header_bytes + used
    if header.total_bytes is not None and end_of_stream != end:
        raise damaged(where, f"a stream that ends {end - end_of_stream:,} bytes early", "one stream up to the end")
    if int.from_bytes(hashlib.md5(unpacked, usedforsecurity=False).digest()[:8], "little") != header.hash:
        raise damaged(where, "unpacked bytes with another hash", f"MD5 that begins as {header.hash:#018x}")
    return unpacked, end_of_stream


_SPLIT = "take the code object of one target out of it with clang-offload-bundler --unbundle"


def _expand(machine: Any, packed: memoryview, header: CompressedHeader, where: str) -> tuple[bytes, int]:
    """The unpacked bytes and how many packed ones they took; stops as soon as there are more than announced."""
    unpacked, at = bytearray(), 0
    while not machine.eof:
        chunk = packed[at : at + _CHUNK_BYTES]
        if not chunk:
            raise damaged(where, f"a stream cut after {len(unpacked):,} unpacked bytes", f"{header.unpacked_bytes:,}")
        at += len(chunk)
        unpacked += machine.decompress(bytes(chunk))
        if len(unpacked) > header.unpacked_bytes:
            raise damaged(where, f"more than {header.unpacked_bytes:,} unpacked bytes", "what the header states")
    if len(unpacked) != header.unpacked_bytes:
        raise damaged(where, f"{len(unpacked):,} unpacked bytes", f"{header.unpacked_bytes:,}, as the header states")
    return bytes(unpacked), at - len(machine.unused_data)


def _decompressor(header: CompressedHeader, where: str) -> tuple[Any, type[Exception]]:
    """A fresh decompressor and what it raises."""
    if header.method == ZLIB:
        return zlib.decompressobj(), zlib.error
    if header.method == ZSTD:
        return _zstd(where)
    raise damaged(where, f"compression method {header.method}", "0 (zlib) or 1 (zstd)")


def _zstd(where: str) -> tuple[Any, type[Exception]]:
    for name in _ZSTD_MODULES:
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        make: Callable[[], Any] = module.ZstdDecompressor
        return make().decompressobj() if name == "zstandard" else make(), module.ZstdError
    raise CodeObjectError(
        "RW0316",
        where=where,
        seen="no zstd decompressor for it in this Python",
        allowed=" or ".join(_ZSTD_MODULES),
        do="install zstandard (pip install 'redline[zstd]'), or compile with --no-offload-compress",
    )


def damaged(where: str, seen: str, allowed: str) -> CodeObjectError:
    """An error about a bundle's bytes."""
    return CodeObjectError("RW0315", where=where, seen=seen, allowed=allowed, do="build it again, or copy it again")
