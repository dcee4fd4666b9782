# SPDX-License-Identifier: Apache-2.0
"""One PM4 packet under the reader's eye: its words, its place, and the checks that every packet needs.

What a packet does is in `packets.py` (registers, caches, dispatches), `transfers.py` (writes to memory) and `waits.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redline.sim.dispatch import Dispatch
from redline.sim.errors import MemoryFault, PacketFault


@dataclass(frozen=True)
class Executed:
    """One packet that a queue ran, for tests and traces. A kernel-dispatch AQL packet has no `ib`: 0, and its index."""

    name: str
    ib: int
    dword: int  # place of its header in the indirect buffer
    words: tuple[int, ...]
    dispatch: Dispatch | None = None


@dataclass(frozen=True)
class Packet:
    """A packet that is complete and as long as its opcode wants it; nothing else is known of it yet."""

    name: str
    ib: int
    dword: int
    words: tuple[int, ...]

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"PM4 stream at {self.ib:#x}, dword {self.dword}"

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A memory fault inside says that this packet made the access."""
        try:
            yield
        except MemoryFault as fault:
            fault.add_note(f"by {self.name}, {self.place}")
            raise

    def fault(self, index: int, name: str, allowed: str) -> PacketFault:
        """A fault at word `index` of this packet, in the field or thing called `name`."""
        where = f"PM4 stream at {self.ib:#x}, dword {self.dword + index}: {self.name} {name}"
        return PacketFault(where, f"{self.words[index]:#010x}", allowed)

    def require(self, index: int, mask: int, name: str) -> None:
        """Bits outside `mask` of word `index` must be clear."""
        if self.words[index] & ~mask & 0xFFFFFFFF:
            raise self.fault(index, name, f"bits within {mask:#010x}; the others are reserved or not covered")

    def field(self, index: int, shift: int, bits: int) -> int:
        """Bits [shift, shift + bits) of word `index`."""
        return self.words[index] >> shift & (1 << bits) - 1

    def u64(self, index: int) -> int:
        """Words `index` and `index + 1` as one number."""
        return self.words[index] | self.words[index + 1] << 32

    def address(self, index: int, align: int) -> int:
        """The 48-bit address in words `index` and `index + 1`."""
        self.require(index + 1, 0xFFFF, "address high half")
        address = self.u64(index)
        if address % align:
            raise self.fault(index, "address", f"a multiple of {align}")
        return address
