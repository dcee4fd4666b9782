# SPDX-License-Identifier: Apache-2.0
"""Every scalar and vector arithmetic opcode of a target, as LLVM decodes it.

Goes through the opcode field of each encoding with operands that most instructions take; what does not decode with any
of them is no instruction. Source of the fields: AMD's RDNA1 to RDNA4 instruction set documents, "Microcode Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from radiowave import Disassembler

LITERAL = 0x12345678


def _scalar() -> Iterator[list[list[int]]]:
    for op in range(128):
        yield [[0x80000000 | op << 23 | 4 << 16 | 6 << 8 | 8], [0x80000000 | op << 23 | 4 << 16 | 6 << 8 | 8, LITERAL]]
    for op in range(32):
        yield [[0xB0000000 | op << 23 | 4 << 16 | 8], [0xB0000000 | op << 23 | 4 << 16 | 8, LITERAL]]
    for op in range(256):
        yield [
            [0xBE800000 | 4 << 16 | op << 8 | 8],
            [0xBE800000 | op << 8 | 8],
            [0xBE800000 | 4 << 16 | op << 8 | 0x84],
        ]
    for op in range(128):
        yield [[0xBF000000 | op << 16 | 6 << 8 | 8], [0xBF800000 | op << 16 | 8], [0xBF800000 | op << 16]]


def _vector() -> Iterator[list[list[int]]]:
    for op in range(256):
        yield [[0x7E000000 | 4 << 17 | op << 9 | 0x107], [0x7E000000]]
        yield [[0x7C000000 | op << 17 | 6 << 9 | 0x107]]
    for op in range(62):
        yield [[op << 25 | 4 << 17 | 6 << 9 | 0x107, LITERAL]]
    for op in range(1024):
        sources = (0x107 | 0x10A << 9 | 0x10C << 18, 0x107 | 6 << 9 | 8 << 18, 0x107 | 6 << 9, 0x107 | 0x10A << 9)
        masks = (0, 14 << 8)  # gfx10 and gfx11 encode the mask that VOP3B writes here
        yield [[0xD4000000 | op << 16 | mask | 4, source] for source in sources for mask in masks]
    for op in range(128):
        yield [
            [0xCC000000 | op << 16 | 1 << 14 | 0x20, 3 << 27 | 0x100 | 0x108 << 9 | 0x120 << 18],
            [0xCC000000 | op << 16 | 1 << 14 | 0x20, 3 << 27 | 0x100 | 0x108 << 9 | 0x110 << 18],
        ]
    for op in range(16):
        yield [[0xC8000000 | op << 22 | 8 << 17 | 6 << 9 | 0x101, 4 << 24 | 2 << 17 | 7 << 9 | 0x102, 0x11]]


def texts(target: str, wave: int, disassembler: Disassembler) -> Iterator[str]:
    """The text of one instruction for each opcode that decodes."""
    for forms in (*_scalar(), *_vector()):
        for words in forms:
            code = struct.pack(f"<{len(words)}I", *words)
            text = " ".join(disassembler.decode(code, 0, target, wave)[0].text.split())
            if text and "Invalid register" not in text:
                yield text
                break
