# SPDX-License-Identifier: Apache-2.0
"""The memory that random kernels run in: which object each address lies in, and what a load brings from there.

Objects lie 16 TiB apart and an index is small, so a pointer plus an index stays with its object, as C wants it, and a
wrong half of a pointer leads elsewhere. What memory holds is hostile: loads of 8 bytes and more bring noise, and
pointers into every object. A load of 4 bytes brings a small number, as it may be an index.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

#: What a value was computed from, as bits: memory, each pointer, number arguments; argument n is FROM_ARGUMENT << n.
FROM_MEMORY, FROM_KERNARG, FROM_CODE, FROM_NUMBER, FROM_ARGUMENT = 1, 2, 4, 8, 16

SHIFT = 44  # an object's share of the address space, 1 << SHIFT bytes
FARTHEST = 1 << 31  # from an object's start, with every index of these programs


class Object(IntEnum):
    """The objects, by an address's bits from SHIFT on; each starts in the middle of its share."""

    NOWHERE = 0
    KERNARG = 1
    CODE = 2
    HEAP = 3  # what is reached through pointers in memory alone
    ARGUMENT = 4  # and those behind it


def start_of(number: int) -> int:
    """Where an object starts, give or take 4 GiB."""
    return (number << SHIFT) + (1 << SHIFT - 1)


CODE = start_of(Object.CODE)


@dataclass
class Memory:
    """One placement of all objects, with numbers for the kernel's arguments.

    `pointers` and `numbers` are kernarg offsets in bytes; `image` is the code object's memory by its ELF address.
    """

    seed: int
    pointers: Sequence[int]
    numbers: Sequence[int]
    kernarg_bytes: int
    image: bytes
    kernarg: int = field(init=False)
    arguments: list[int] = field(init=False)
    slot: bytes = field(init=False)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        # Redline never lets a slot cross 4 GiB; up to its very end is allowed.
        low = rng.choice((0, 0x1000, 0xFFFFFF80, 0x7FFFFFC0))
        self.kernarg = start_of(Object.KERNARG) + low
        slot = bytearray(rng.randbytes(128))
        lows = (0, 0x10, 0xFFFFFFF0, 0x80000000, rng.getrandbits(28) << 4)
        self.arguments = [start_of(Object.ARGUMENT + n) + rng.choice(lows) for n in range(len(self.pointers))]
        for start, offset in zip(self.arguments, self.pointers, strict=True):
            struct.pack_into("<Q", slot, offset, start)
        for offset in self.numbers:
            struct.pack_into("<I", slot, offset, rng.choice((0, 1, 2, 8, 40, 0x3F0)))
        self.slot = bytes(slot)

    def owner(self, address: int) -> int:
        """Which object is near an address, inside of its bounds or not; NOWHERE for none."""
        number = address >> SHIFT
        argument = number - Object.ARGUMENT
        if 0 <= argument < len(self.arguments):
            start = self.arguments[argument]
        else:
            start = self.kernarg if number == Object.KERNARG else start_of(number)
        is_near = number == Object.HEAP or abs(address - start) < FARTHEST
        return number if is_near and number <= Object.ARGUMENT + len(self.arguments) else Object.NOWHERE

    def word(self, address: int, words: int = 2) -> int:
        """The 32-bit word at an address, which is a multiple of 4, for a load of so many words."""
        if 0 <= address - self.kernarg < len(self.slot):
            return int.from_bytes(self.slot[address - self.kernarg :][:4], "little")
        if 0 <= address - CODE < len(self.image):
            found = int.from_bytes(self.image[address - CODE :][:4], "little")
        else:
            found = self._long(address >> 3) >> (32 if address & 4 else 0)
        return found & (0x3F if words == 1 else 0xFFFFFFFF)

    def _long(self, place: int) -> int:
        """Eight bytes of memory: a pointer into one of the objects, a small number, or noise."""
        noise = (place * 0x9E3779B97F4A7C15 ^ self.seed * 0xC2B2AE3D27D4EB4F) & (1 << 64) - 1
        noise ^= noise >> 29
        noise = noise * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        noise ^= noise >> 32
        match noise & 3:
            case 0:
                return start_of(Object.HEAP + (noise >> 2) % (1 + len(self.pointers))) + (noise >> 8 & 0xFFF0)
            case 1:
                return start_of(Object.HEAP) + (noise >> 8 & 0xFFFFFFF0)
            case 2:
                return noise >> 8 & 0x3F
            case _:
                return noise

    def taint(self, address: int) -> int:
        """What a word of memory counts as computed from."""
        if not 0 <= address - self.kernarg < self.kernarg_bytes:
            return 0 if 0 <= address - CODE < len(self.image) else FROM_MEMORY
        for n, offset in enumerate(self.pointers):
            if offset <= address - self.kernarg < offset + 8:
                return FROM_ARGUMENT << n
        return FROM_NUMBER
