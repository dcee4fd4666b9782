# SPDX-License-Identifier: Apache-2.0
"""The pattern of ds_swizzle_b32: from its printed form to the source lane of each of 32 lanes.

Sources: AMD's RDNA2 instruction set manual, DS_SWIZZLE_B32; LLVM's `AMDGPU::Swizzle` for the printed macros.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .operands import ParseError, integer

_CALL = re.compile(r"swizzle\((\w+),(.+)\)$")
_LANES: NDArray[np.int64] = np.arange(32)
Lanes = NDArray[np.int64]


def swizzle_lanes(text: str) -> Lanes:
    """Source lane of each lane of a group of 32.

    >>> swizzle_lanes("swizzle(SWAP,1)")[:4].tolist()
    [1, 0, 3, 2]
    >>> swizzle_lanes('swizzle(BITMASK_PERM,"01pip")')[:4].tolist()
    [10, 11, 8, 9]
    """
    found = _CALL.match(text.replace(" ", ""))
    if not found:
        return _offset_lanes(integer(text))
    kind, arguments = found[1], found[2].split(",")
    if kind == "BITMASK_PERM":
        return _bitmask(*_masks(arguments[0].strip('"')))
    count, lanes = PATTERNS.get(kind, (0, None))
    if lanes is None or len(arguments) != count:
        raise ParseError(f"swizzle pattern {text}")
    return lanes(*(integer(argument) for argument in arguments))


def _masks(pattern: str) -> tuple[int, int, int]:
    """and, or, xor masks of a pattern like 01pip, most significant bit first: 0, 1, p = keep, i = invert."""
    if len(pattern) != 5 or set(pattern) - set("01pi"):
        raise ParseError(f"swizzle mask {pattern}")
    keep = int("".join("1" if char in "pi" else "0" for char in pattern), 2)
    ones = int("".join("1" if char == "1" else "0" for char in pattern), 2)
    flips = int("".join("1" if char == "i" else "0" for char in pattern), 2)
    return keep, ones, flips


def _bitmask(keep: int, ones: int, flips: int) -> Lanes:
    lanes: Lanes = (_LANES & keep | ones) ^ flips
    return lanes


def _quad(order: list[int]) -> Lanes:
    lanes: Lanes = _LANES // 4 * 4 + np.array(order)[_LANES % 4]
    return lanes


def _rotate(amount: int, mask: int) -> Lanes:
    """Bits of `mask` stay; the rest of the lane number moves by `amount`."""
    lanes: Lanes = (_LANES & mask) | (_LANES + amount & ~mask & 31)
    return lanes


# macro -> how many numbers it has, and the source lanes for them
PATTERNS: dict[str, tuple[int, Callable[..., Lanes]]] = {
    "QUAD_PERM": (4, lambda *order: _quad(list(order))),
    "SWAP": (1, lambda distance: _LANES ^ distance),
    "REVERSE": (1, lambda size: _LANES ^ (size - 1)),
    "BROADCAST": (2, lambda size, lane: _LANES // size * size + lane),
    "ROTATE": (2, lambda left, amount: _rotate(-amount if left else amount, 0)),
}


def _offset_lanes(offset: int) -> Lanes:
    """The raw 16-bit offset field, for patterns that have no macro."""
    if offset >> 15:
        if offset >> 14 & 1:
            amount = offset >> 5 & 31
            return _rotate(-amount if offset >> 10 & 1 else amount, offset & 31)
        return _quad([offset >> 2 * place & 3 for place in range(4)])
    return _bitmask(offset & 31, offset >> 5 & 31, offset >> 10 & 31)
