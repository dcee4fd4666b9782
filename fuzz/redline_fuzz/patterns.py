# SPDX-License-Identifier: Apache-2.0
"""What a kernel of the fuzz suite is: ranges behind pointers, read whole and then written whole.

Every byte written is mixed from every byte read, the arguments and the grid, so that one stale or early byte changes
everything after it. The reference and the hostile machine share this function and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CODE_BYTES = 8  # what stands at a kernel's entry: the number of its pattern
ABSOLUTE = -1  # in place of a pointer's offset: `start` is an address

_MASK, _PRIME = (1 << 64) - 1, 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Access:
    """`nbytes` from `start` on behind the pointer at kernarg offset `pointer`, in bytes.

    `through`: the caches that the kernel reads it through, K and V; none for what it reads at L2.
    """

    pointer: int
    start: int
    nbytes: int
    reads: bool
    writes: bool
    through: tuple[str, ...] = ("K", "V")


@dataclass(frozen=True)
class Pattern:
    """A kernel: what it touches, its by-value arguments as (offset, bytes), and how it reads its arguments."""

    number: int
    accesses: tuple[Access, ...]
    values: tuple[tuple[int, int], ...] = ()
    arguments_through: tuple[str, ...] = ("K", "V")


def mix(number: int, ordinal: int, dims: Sequence[int], values: bytes, read: bytes) -> int:
    """64 bits that depend on all of it. `ordinal`: which launch of the submission it is, so that no two write alike."""
    state = number + ordinal + 1
    for word in (*dims, *values, *read):
        state = ((state ^ word) * _PRIME + 0x632BE59BD9B4E019) & _MASK
        state ^= state >> 29
    return state


def mixed_byte(state: int, place: int) -> int:
    """The byte that a launch writes at its `place`-th byte."""
    return ((state ^ place * 0xD1B54A32D192ED03) * _PRIME & _MASK) >> 56
