# SPDX-License-Identifier: Apache-2.0
"""Fused multiply-add with one rounding, for float32 and float64, as a numpy ufunc.

numpy has none. The compiled form is LLVM's `fma` intrinsic, which the host executes as one instruction or
by a call of libm. The plain form computes with Python integers; it is the reference of the tests, and it is
what runs when numba's compiler is off. Nothing here knows f16 (see `floats.py`) or silences warnings.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core.extending import intrinsic


def exact_fma(a: float, b: float, c: float, precision: int) -> float:
    """a * b + c rounded once to nearest even; `precision` is 24 (float32 operands) or 53 (float64).

    The result is a Python float that the target format holds exactly.

    >>> exact_fma(1.0 + 2.0**-23, 1.0 - 2.0**-23, -1.0, 24) == -(2.0**-46)
    True
    """
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return _special(a, b, c)
    numerator, denominator = (a.as_integer_ratio(), b.as_integer_ratio())
    top, bottom = numerator[0] * denominator[0], numerator[1] * denominator[1]
    addend, scale = c.as_integer_ratio()
    total = top * scale + addend * bottom
    if total == 0:
        return _zero(a, b, c)
    return _round(total, bottom * scale, precision)


def _special(a: float, b: float, c: float) -> float:
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        return math.nan
    if math.isinf(a) or math.isinf(b):
        if a == 0 or b == 0:
            return math.nan
        product = math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))
        return math.nan if math.isinf(c) and c != product else product
    return c


def _zero(a: float, b: float, c: float) -> float:
    """The sign of an exact zero: negative only when both terms are negative zeros."""
    product_is_zero = a == 0 or b == 0
    product_is_negative = math.copysign(1.0, a) * math.copysign(1.0, b) < 0
    both_negative = product_is_zero and product_is_negative and math.copysign(1.0, c) < 0
    return -0.0 if both_negative else 0.0


def _round(top: int, bottom: int, precision: int) -> float:
    """top / bottom (a power of two) to nearest even in a binary format, with its denormals and infinity."""
    lowest, highest = (-149, 128) if precision == 24 else (-1074, 1024)
    sign, magnitude = (-1.0 if top < 0 else 1.0), abs(top)
    shift = bottom.bit_length() - 1
    unit = max(magnitude.bit_length() - shift - precision, lowest)  # exponent of the last place kept
    drop = unit + shift
    if drop <= 0:
        kept = magnitude << -drop
    else:
        kept, rest, half = magnitude >> drop, magnitude & ((1 << drop) - 1), 1 << (drop - 1)
        kept += rest > half or (rest == half and kept & 1 == 1)
    if kept.bit_length() + unit > highest:
        return math.copysign(math.inf, sign)
    return math.copysign(math.ldexp(float(kept), unit), sign)


def _plain(a: Any, b: Any, c: Any) -> Any:
    """The same call as the compiled ufunc, element by element."""
    arrays = np.broadcast_arrays(a, b, c)
    dtype = np.result_type(*arrays)
    precision = 24 if dtype == np.float32 else 53
    out = np.empty(arrays[0].shape, dtype)
    left, right, addend = (array.reshape(-1).tolist() for array in arrays)
    out.reshape(-1)[:] = [exact_fma(x, y, z, precision) for x, y, z in zip(left, right, addend, strict=True)]
    return out


@intrinsic
def _llvm_fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.fma(*values)

    return a(a, b, c), generate


_intrinsic_fma: Any = _llvm_fma  # what numba adds to a signature is not in its type


# A function of the module, not of another function: numba's cache finds no closure again in the next process.
def _fused(a: Any, b: Any, c: Any) -> Any:
    return _intrinsic_fma(a, b, c)


def _compiled() -> Any:
    signatures = ["float32(float32,float32,float32)", "float64(float64,float64,float64)"]
    vectorize: Any = numba.vectorize
    return vectorize(signatures, cache=True)(_fused).ufunc  # the plain ufunc: a third of the call cost of numba's


# numba.vectorize compiles even under NUMBA_DISABLE_JIT, so the choice is made here.
_settings: Any = numba.config
fma: Any = _plain if _settings.DISABLE_JIT else _compiled()
