# SPDX-License-Identifier: Apache-2.0
"""Floating point as the vector ALU does it: rounding, NaN rules, min and max, clamp, conversions.

Every function is pure, takes and returns numpy arrays, and never warns. It covers one mode only: round to
nearest even with all denormals kept (FLOAT_MODE 0xF0); the machine refuses kernels that ask for another.
Tables of instructions are in `valu_*.py`, the fused multiply-add in `fma.py`.
"""

from __future__ import annotations

import numpy as np

from .fma import fma as _fused
from .op import Array

quiet = np.errstate(all="ignore")


@quiet
def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once. f16 goes through f64, which holds every product and every sum that can tie."""
    if a.dtype == np.float16:
        wide: Array = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return wide.astype(np.float16)
    result: Array = _fused(a, b, c)
    return result


@quiet
def add(a: Array, b: Array) -> Array:
    result: Array = a + b
    return result


@quiet
def sub(a: Array, b: Array) -> Array:
    result: Array = a - b
    return result


@quiet
def mul(a: Array, b: Array) -> Array:
    result: Array = a * b
    return result
