# SPDX-License-Identifier: Apache-2.0
"""Read-modify-write on memory or LDS: what each operation does, and in which order lanes act on one address.

Lanes of one instruction act one after another, lower waves and lanes first; hardware gives no order, and a kernel
whose result depends on one is not portable. `act` is given how to fetch and store, so it serves global, flat, buffer
and LDS alike.

Floats keep denormals and round to nearest even here; what the hardware's L2 does with them is not verified.

Sources: AMD's RDNA2 to RDNA4 instruction set manuals, "DS instructions" and "Flat, scratch and global".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import minmax
from .floats import make_quiet
from .op import Array


@dataclass(frozen=True)
class Atomic:
    """One operation: `fn(old, data)` is the new value; cmpswap also gets the value to compare with.

    `scan` says that `fn` is a ufunc whose accumulation is the chain of new values.
    """

    dtype: np.dtype[Any]
    fn: Callable[..., Any]
    compares: bool = False

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize

    @property
    def scan(self) -> bool:
        return isinstance(self.fn, np.ufunc)


def _increment(old: Array, limit: Array) -> Array:
    """Wraps to 0 after `limit`."""
    result: Array = np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))
    return result


def _decrement(old: Array, limit: Array) -> Array:
    """Wraps to `limit` after 0, and whenever it stands above it."""
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _reverse_subtract(old: Array, data: Array) -> Array:
    result: Array = data - old
    return result


def _swap(old: Array, data: Array) -> Array:
    return data


def _compare_swap(old: Array, data: Array, compare: Array) -> Array:
    return np.where(old == compare, data, old)


def _add_float(old: Array, data: Array) -> Array:
    return make_quiet(old + data)


def _rows() -> dict[str, Atomic]:
    rows: dict[str, Atomic] = {}
    for bits in (32, 64):
        u, i = np.dtype(f"u{bits // 8}"), np.dtype(f"i{bits // 8}")
        rows |= {
            f"add_u{bits}": Atomic(u, np.add),
            f"sub_u{bits}": Atomic(u, np.subtract),
            f"rsub_u{bits}": Atomic(u, _reverse_subtract),
            f"inc_u{bits}": Atomic(u, _increment),
            f"dec_u{bits}": Atomic(u, _decrement),
            f"min_u{bits}": Atomic(u, np.minimum),
            f"max_u{bits}": Atomic(u, np.maximum),
            f"min_i{bits}": Atomic(i, np.minimum),
            f"max_i{bits}": Atomic(i, np.maximum),
            f"and_b{bits}": Atomic(u, np.bitwise_and),
            f"or_b{bits}": Atomic(u, np.bitwise_or),
            f"xor_b{bits}": Atomic(u, np.bitwise_xor),
            f"swap_b{bits}": Atomic(u, _swap),
            f"cmpswap_b{bits}": Atomic(u, _compare_swap, compares=True),
        }
    for kind, dtype in (("f32", np.dtype(np.float32)), ("f64", np.dtype(np.float64))):
        rows |= {
            f"add_{kind}": Atomic(dtype, _add_float),
            f"min_{kind}": Atomic(dtype, minmax.MIN_IEEE),
            f"max_{kind}": Atomic(dtype, minmax.MAX_IEEE),
            f"min_num_{kind}": Atomic(dtype, minmax.MIN_NUMBER),
            f"max_num_{kind}": Atomic(dtype, minmax.MAX_NUMBER),
        }
    return rows


ATOMICS: dict[str, Atomic] = _rows()

Keys = NDArray[np.int64]
Fetch = Callable[[Keys], Array]  # values of the atomic's dtype at these addresses
Put = Callable[[Keys, Array], None]


def act(atomic: Atomic, keys: Keys, operands: tuple[Array, ...], fetch: Fetch, put: Put) -> Array:
    """Apply the operation for each key in order; returns what stood there before each."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    lengths = np.diff(np.r_[starts, len(keys)])
    unique, most = sorted_keys[starts], int(lengths.max())
    sorted_operands = tuple(operand[order] for operand in operands)
    before = np.empty(len(keys), atomic.dtype)
    if atomic.scan and most > len(unique):
        after = _scan(atomic, fetch(unique), starts, lengths, sorted_operands[0], before)
    else:
        after = _rounds(atomic, fetch(unique), starts, lengths, sorted_operands, before)
    put(unique, after)
    result = np.empty_like(before)
    result[order] = before
    return result


def _scan(atomic: Atomic, values: Array, starts: Keys, lengths: Keys, data: Array, before: Array) -> Array:
    """Few addresses with many lanes each: one running accumulation for each address."""
    after = values.copy()
    accumulate: Any = getattr(atomic.fn, "accumulate")  # noqa: B009 - a ufunc, see `scan`
    for place, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        chain = accumulate(np.r_[values[place : place + 1], data[start : start + length]])
        before[start : start + length] = chain[:-1]
        after[place] = chain[-1]
    return after


def _rounds(
    atomic: Atomic, values: Array, starts: Keys, lengths: Keys, operands: tuple[Array, ...], before: Array
) -> Array:
    """Round n applies the n-th lane of every address at once."""
    after = values.copy()
    for turn in range(int(lengths.max())):
        active = np.flatnonzero(lengths > turn)
        at = starts[active] + turn
        old = after[active]
        before[at] = old
        after[active] = atomic.fn(old, *(operand[at] for operand in operands))
    return after
