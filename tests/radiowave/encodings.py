# SPDX-License-Identifier: Apache-2.0
"""Asks LLVM what first dwords mean: decodes many of them, each with zeros and no-ops behind it. Holds no tests."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator

from radiowave import Disassembler

_NOP = 0xBF800000  # s_nop 0 on every generation
_BLOCK = struct.Struct("<8I")
_BLOCKS_PER_REQUEST = 64

#: Encoding (bits 31..26) -> what to vary below bit 18 beside each bit alone, and second dwords that LLVM takes.
MEMORY: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    0x34: ((0, 0x4000, 0x8000, 0xC000, 0x10000, 0x14000, 0x18000, 0x1C000), (0,)),  # VIMAGE on gfx12, VOP3P before
    0x37: ((0, 0x1000, 0x8000, 0x9000, 0x11000, 0x19000), (0, 0x007D0000)),  # FLAT: segment, GLC, DLC
    0x38: ((0, 0x4000, 0x8000, 0xC000), (0x80000000,)),  # MUBUF: GLC, DLC
    0x39: ((0, 0x4000, 0x8000, 0xC000, 0x10000, 0x14000, 0x18000, 0x1C000), (0,)),  # VSAMPLE
    0x3A: ((0, 0x8000, 0x18000, 0x28000, 0x38000), (0x80000000, 0x80200000)),  # MTBUF: OP, DLC; D16
    0x3C: ((0, 1, 0xF00, 0xF01, 0x8F00, 0x8F01, 0xF02), (0,)),  # MIMG: OP's high bit, DMASK, UNORM, NSA
    0x3D: ((0, 0x10000), (0xFA000000,)),  # SMEM: GLC
}


def decode(disassembler: Disassembler, target: str, firsts: Iterable[int], second: int) -> Iterator[tuple[int, str]]:
    """First dword and text, for those that LLVM decodes."""
    waiting = list(firsts)
    while waiting:
        block = waiting[:_BLOCKS_PER_REQUEST]
        code = b"".join(_BLOCK.pack(first, second, 0, 0, _NOP, _NOP, _NOP, _NOP) for first in block)
        texts = {i.pc: i.text for i in disassembler.decode(code, 0, target, 32)}
        done = next((n for n in range(len(block)) if not texts.get(_BLOCK.size * n)), len(block))
        yield from ((block[n], texts[_BLOCK.size * n]) for n in range(done))
        waiting = waiting[done + 1 :] if done < len(block) else waiting[done:]


def firsts_of(encoding: int) -> list[int]:
    """First dwords of an encoding: every value of bits 25..18, with each of its low parts."""
    lows = MEMORY[encoding][0] if encoding in MEMORY else (0,)
    return [encoding << 26 | op << 18 | low for op, low in itertools.product(range(256), lows)]


#: Encoding -> its DLC bit on gfx10, as LLVM sets it in stores (AMD's RDNA2 document has the same).
DLC = {0x37: 1 << 12, 0x38: 1 << 15, 0x3A: 1 << 15}


def known(disassembler: Disassembler, target: str) -> dict[int, str]:
    """First dword -> text, over every encoding and opcode; and for each memory instruction each other bit alone."""
    found: dict[int, str] = {}
    for encoding in range(64):
        for second in MEMORY[encoding][1] if encoding in MEMORY else (0,):
            rows = dict(decode(disassembler, target, firsts_of(encoding), second))
            if encoding in MEMORY:
                one = {(text.split()[0], first & DLC.get(encoding, 0)): first for first, text in rows.items()}
                near = {first ^ 1 << bit for first in one.values() for bit in range(32)}
                rows |= dict(decode(disassembler, target, sorted(near - rows.keys()), second))
            found |= rows
    return found | _with_dlc(found) if target.startswith("gfx10") else found


def _with_dlc(found: dict[int, str]) -> dict[int, str]:
    """LLVM neither assembles nor decodes DLC on buffer atomics; the bit is there all the same."""
    plain = {first: text for first, text in found.items() if first >> 26 in DLC and "_atomic_" in text}
    marked = {first | DLC[first >> 26]: f"{text} dlc" for first, text in plain.items()}
    return {first: text for first, text in marked.items() if first not in found}
