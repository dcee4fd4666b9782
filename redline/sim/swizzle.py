# SPDX-License-Identifier: Apache-2.0
"""The pattern of ds_swizzle_b32: from its printed form to the source lane of each of 32 lanes.

Sources: AMD's RDNA2 instruction set manual, DS_SWIZZLE_B32; LLVM's `AMDGPU::Swizzle` for the printed macros.
"""

from __future__ import annotations

import re

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
    numbers = [integer(argument) for argument in arguments]
    if kind == "QUAD_PERM" and len(numbers) == 4:
        return _quad(numbers)
    if kind == "SWAP" and len(numbers) == 1:
        return _LANES ^ numbers[0]
    if kind == "REVERSE" and len(numbers) == 1:
        return _LANES ^ (numbers[0] - 1)
    if kind == "BROADCAST" and len(numbers) == 2:
        return _LANES // numbers[0] * numbers[0] + numbers[1]
    if kind == "ROTATE" and len(numbers) == 2:
        return _rotate(-numbers[1] if numbers[0] else numbers[1], 0)
    raise ParseError(f"swizzle pattern {text}")


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


def _offset_lanes(offset: int) -> Lanes:
    """The raw 16-bit offset field, for patterns that have no macro."""
    if offset >> 15:
        if offset >> 14 & 1:
            amount = offset >> 5 & 31
            return _rotate(-amount if offset >> 10 & 1 else amount, offset & 31)
        return _quad([offset >> 2 * place & 3 for place in range(4)])
    return _bitmask(offset & 31, offset >> 5 & 31, offset >> 10 & 31)
