# SPDX-License-Identifier: Apache-2.0
"""Puts instructions into a linked object, for tests: llvmlite assembles no text. The result is read, never run."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from radiowave import CodeObject
from radiowave.elf import PT_LOAD, SHT_SYMTAB, STT_FUNC, Elf

NOP = 0xBF800000  # s_nop 0 on every generation


def patched(data: bytes, function: str, words: Sequence[int], at: int | None = None) -> bytes:
    """The object with a function's code replaced by words and no-ops; with `at`, these bytes behind its entry alone."""
    elf = Elf(CodeObject.parse(data).data)
    (table,) = [section for section in elf.sections if section.type == SHT_SYMTAB]
    (symbol,) = [s for s in elf.symbols(table) if s.name == function and s.type == STT_FUNC]
    count = symbol.nbytes // 4 if at is None else len(words)
    assert len(words) <= count, f"{function} has room for {count} dwords"
    (segment,) = [s for s in elf.segments if s.type == PT_LOAD and 0 <= symbol.value - s.address < s.file_bytes]
    changed = bytearray(data)
    begin = segment.offset + symbol.value - segment.address + (at or 0)
    struct.pack_into(f"<{count}I", changed, begin, *words, *[NOP] * (count - len(words)))
    return bytes(changed)
