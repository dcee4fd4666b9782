# SPDX-License-Identifier: Apache-2.0
"""Sixteen words of a ring, where they stood, and the checks that every AQL packet needs.

What a packet does is `aql.py` (vendor and barrier packets) and `kernel_dispatch.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redline.sim.errors import MemoryFault, PacketFault

PACKET_BYTES = 64
PACKET_WORDS = 16
HEADER_TYPE = 0xFF
TYPE_VENDOR, TYPE_INVALID, TYPE_KERNEL_DISPATCH, TYPE_BARRIER_AND, TYPE_BARRIER_OR = 0, 1, 2, 3, 5


@dataclass(frozen=True)
class AqlPacket:
    """One packet. `index` counts from the queue's beginning, not modulo the ring."""

    index: int
    words: tuple[int, ...]

    @property
    def type(self) -> int:
        return self.words[0] & HEADER_TYPE

    @property
    def completion_signal(self) -> int:
        return self.u64(14)

    def u64(self, word: int) -> int:
        """Words `word` and `word + 1` as one number."""
        return self.words[word] | self.words[word + 1] << 32

    def fault(self, word: int, name: str, allowed: str) -> PacketFault:
        """A fault at `word` of this packet, in the field or thing called `name`."""
        return PacketFault(f"AQL packet {self.index}, dword {word}: {name}", f"{self.words[word]:#010x}", allowed)

    def require(self, word: int, mask: int, name: str) -> None:
        """Bits outside `mask` must be clear."""
        if self.words[word] & ~mask & 0xFFFFFFFF:
            raise self.fault(word, name, f"bits within {mask:#010x}; the others are reserved or not covered")

    def address(self, word: int, align: int, name: str) -> int:
        """The 48-bit address in words `word` and `word + 1`."""
        self.require(word + 1, 0xFFFF, f"{name}, high half")
        if self.words[word] % align:
            raise self.fault(word, name, f"a multiple of {align}")
        return self.u64(word)

    @contextmanager
    def noted(self, name: str) -> Iterator[None]:
        """A memory fault inside says which field of this packet led there."""
        try:
            yield
        except MemoryFault as fault:
            fault.add_note(f"by {name} of AQL packet {self.index}")
            raise
