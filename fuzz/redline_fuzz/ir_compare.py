# SPDX-License-Identifier: Apache-2.0
"""Compare what host and device stored: equal bits, but any NaN equals any NaN of the same type.

Both sides start from the same filled memory, so a byte that only one side wrote is a difference too, whatever
lane or slot it lies in. It does not run anything and does not look for the cause; `ir_bisect` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redline_fuzz.ir_operations import BITS
from redline_fuzz.ir_programs import Program

Bytes = NDArray[np.uint8]

# Exponent mask and fraction mask: a NaN has all of the first and some of the second.
_NAN_FIELDS = {
    "half": (0x7C00, 0x03FF),
    "float": (0x7F80_0000, 0x007F_FFFF),
    "double": (0x7FF0_0000_0000_0000, 0x000F_FFFF_FFFF_FFFF),
}


@dataclass(frozen=True)
class Difference:
    """The first lane where one output differs; `value` is the index of the value in the program."""

    value: int
    lane: int
    host: int
    device: int


def differences(program: Program, outputs: Sequence[int], host: Bytes, device: Bytes) -> list[Difference]:
    """One `Difference` per output that differs, in the order of `outputs`.

    `host` and `device` have shape (records, 8 * len(outputs)).
    """
    left, right = (np.ascontiguousarray(side).view("<u8") for side in (host, device))
    found: list[Difference] = []
    for slot, value in enumerate(outputs):
        a, b = left[:, slot], right[:, slot]
        same = (a == b) | _both_nan(program.values[value].type, a, b)
        if not same.all():
            lane = int(np.argmin(same))
            found.append(Difference(value, lane, int(a[lane]), int(b[lane])))
    return found


def _both_nan(kind: str, a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Where both slots hold a NaN of this type below equal upper bytes. For a pair: each half equal or both NaN."""
    above = np.uint64(BITS[kind] if BITS[kind] > 1 else 32)
    rest = (a >> above) == (b >> above) if above < 64 else np.ones(a.shape, np.bool_)
    if kind in _NAN_FIELDS:
        return rest & _nan(kind, a) & _nan(kind, b)
    if kind == "<2 x half>":
        low_a, low_b = a & np.uint64(0xFFFF), b & np.uint64(0xFFFF)
        high_a, high_b = (a >> np.uint64(16)) & np.uint64(0xFFFF), (b >> np.uint64(16)) & np.uint64(0xFFFF)
        return rest & _half_same(low_a, low_b) & _half_same(high_a, high_b)
    return np.zeros(a.shape, np.bool_)


def _half_same(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (a == b) | (_nan("half", a) & _nan("half", b))
    return same


def _nan(kind: str, bits: NDArray[np.uint64]) -> NDArray[np.bool_]:
    exponent, fraction = (np.uint64(mask) for mask in _NAN_FIELDS[kind])
    result: NDArray[np.bool_] = ((bits & exponent) == exponent) & ((bits & fraction) != 0)
    return result
