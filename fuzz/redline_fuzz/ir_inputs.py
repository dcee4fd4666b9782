# SPDX-License-Identifier: Apache-2.0
"""Input data for random programs: columns of one type each, full of values that break arithmetic.

One slot of eight bytes holds one value in its low bytes, whatever its type; the bytes above it hold noise, so
that a load that is too wide is noticed. Bits come from SHAKE-256 and integer arithmetic, so a seed means the
same data everywhere.

It does not know programs; it only offers columns by type.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LANES = 250  # items that compute; more are launched, so that the bounds check has something to keep out
SLOTS = 256  # records in memory: uniform loads take the record of the workgroup's number
SLOT_BYTES = 8

Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Column:
    index: int
    type: str
    role: str  # "mixed"; "a" "b" "c": three columns made for one fused multiply-add; "zero": nothing but zeros


_PLAIN = ("i16", "i32", "i64", "half", "float", "double", "<2 x i16>", "<2 x half>")
_FORMATS = {"half": (5, 10), "float": (8, 23), "double": (11, 52)}


def _columns() -> tuple[Column, ...]:
    rows = [(kind, "mixed") for kind in _PLAIN for _ in range(4)]
    rows += [(kind, role) for kind in _FORMATS for role in "abc"]
    rows.append(("i32", "zero"))
    return tuple(Column(index, kind, role) for index, (kind, role) in enumerate(rows))


COLUMNS = _columns()
COLUMNS_OF = {kind: tuple(c.index for c in COLUMNS if c.type == kind and c.role == "mixed") for kind in _PLAIN}
TIED_COLUMNS_OF = {kind: tuple(c.index for c in COLUMNS if c.type == kind and c.role in "abc") for kind in _FORMATS}

ZERO_COLUMN = COLUMNS[-1].index


def make(seed: int, batch: int) -> Bits:
    """One record of all columns per lane, shape (SLOTS, columns), as the 64 bits of each slot.

    >>> make(1, 0).shape == (SLOTS, len(COLUMNS)), bool((make(1, 0) == make(1, 0)).all())
    (True, True)
    """
    return np.ascontiguousarray(np.stack([_column(column, seed, batch) for column in COLUMNS], axis=1))


def _stream(label: str, count: int) -> Bits:
    return np.frombuffer(hashlib.shake_256(label.encode()).digest(8 * count), "<u8").astype(np.uint64)


def _column(column: Column, seed: int, batch: int) -> Bits:
    label = f"redline-ir-data {seed} {batch} {column.index}"
    noise, choice, more = (_stream(f"{label} {part}", SLOTS) for part in ("noise", "choice", "more"))
    if column.role == "zero":
        values, width = np.zeros(SLOTS, np.uint64), 64
    elif column.role != "mixed":
        # The three columns of a triple read the same stream, so that a row belongs together.
        shared = _stream(f"redline-ir-data {seed} {batch} {column.type}", SLOTS)
        values, width = _tied(column, shared), sum(_FORMATS[column.type]) + 1
    elif column.type in _FORMATS:
        values, width = _floats(column.type, noise, choice), sum(_FORMATS[column.type]) + 1
    elif column.type.startswith("<"):
        element = "half" if "half" in column.type else "i16"
        low, high = _element(element, noise, choice), _element(element, more, choice >> np.uint64(20))
        values, width = low | (high << np.uint64(16)), 32
    else:
        values, width = _integers(int(column.type[1:]), noise, choice), int(column.type[1:])
    return values | _above(more, width)


def _element(kind: str, noise: Bits, choice: Bits) -> Bits:
    return _floats(kind, noise, choice) if kind == "half" else _integers(16, noise, choice)


def _above(noise: Bits, width: int) -> Bits:
    """Noise in the bytes of the slot that the value does not use."""
    return noise << np.uint64(width) if width < 64 else np.zeros_like(noise)


def _mask(width: int) -> np.uint64:
    return np.uint64((1 << width) - 1)


def _integers(width: int, noise: Bits, choice: Bits) -> Bits:
    edges = _integer_edges(width)
    small = noise % np.uint64(41) - np.uint64(20)
    sparse = noise & np.roll(noise, 1) & np.roll(noise, 2)
    edge = edges[(noise % np.uint64(len(edges))).astype(np.intp)]
    # 3 in 8 edges, 1 in 8 small, 1 in 8 few bits, 1 in 8 short, the rest any bits.
    kind = choice % np.uint64(8)
    short = noise >> (choice >> np.uint64(8)) % np.uint64(width)
    return np.select([kind < 3, kind == 3, kind == 4, kind == 5], [edge, small, sparse, short], noise) & _mask(width)


def _integer_edges(width: int) -> Bits:
    """Powers of two and their neighbours, both signs, and halfway cases of conversion to 11, 24 and 53 bits."""
    edges = {0, 1, -1, 2, 3, 7, -7, 10}
    for bit in (7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63):
        edges |= {(1 << bit) + step for step in (-1, 0, 1)} | {-(1 << bit) + step for step in (-1, 0, 1)}
    for precision in (11, 24, 53):
        edges |= {
            (1 << precision) + 1,
            (1 << precision) + 3,
            (3 << precision) + 2,
            (5 << precision) + 4 * 5 + 2,
        }
    limit = 1 << width
    return np.array(sorted({edge % limit for edge in edges}), dtype=np.uint64)


def _floats(kind: str, noise: Bits, choice: Bits) -> Bits:
    exponent_bits, fraction_bits = _FORMATS[kind]
    width = exponent_bits + fraction_bits + 1
    edges = _float_edges(kind)
    edge = edges[(noise % np.uint64(len(edges))).astype(np.intp)]
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = (choice >> np.uint64(8)) % np.uint64(13) + np.uint64(bias - 6)
    near = (noise & _mask(fraction_bits)) | (exponent << np.uint64(fraction_bits))
    sign = (choice >> np.uint64(16) & np.uint64(1)) << np.uint64(width - 1)
    whole = near & ~_mask(max(fraction_bits - 6, 0))  # few significant bits: products and sums stay exact
    # 3 in 8 edges, 2 in 8 moderate, 1 in 8 short, 1 in 8 halfway to a narrower format, the rest any bits.
    pick = choice % np.uint64(8)
    chosen = np.select(
        [pick < 3, pick < 5, pick == 5, pick == 6],
        [edge, near | sign, whole | sign, _halfway(kind, near) | sign],
        noise,
    )
    bits: Bits = chosen & _mask(width)
    return bits


def _halfway(kind: str, near: Bits) -> Bits:
    """Values that lie on, or one bit beside, the middle between two neighbours of a narrower format."""
    drop = {"half": 4, "float": 13, "double": 29}[kind]
    middle = near & ~_mask(drop) | np.uint64(1 << (drop - 1))
    beside = np.where(near & np.uint64(2) != 0, near & np.uint64(1), np.uint64(0))
    return middle | beside


def _float_edges(kind: str) -> Bits:
    exponent_bits, fraction_bits = _FORMATS[kind]
    top = (1 << exponent_bits) - 1
    bias = top >> 1
    sign = 1 << (exponent_bits + fraction_bits)
    one = bias << fraction_bits

    def power(exponent: int, fraction: int = 0) -> int:
        return (min(max(bias + exponent, 0), top) << fraction_bits) | fraction

    last = (1 << fraction_bits) - 1
    edges = {
        0,
        1,
        2,
        last,
        last - 1,
        power(1 - bias),
        power(1 - bias, 1),
        power(bias, last),
        power(bias, last - 1),
    }
    edges |= {power(bias), power(top - bias), power(top - bias, 1 << (fraction_bits - 1))}
    edges |= {
        power(top - bias, 1),
        power(top - bias, last),
    }  # a signalling NaN, and one with every payload bit
    edges |= {one, one + 1, one - 1, power(-1), power(-1, 1), power(-2, last), power(1), power(2)}
    edges |= {
        power(0, 1 << (fraction_bits - 1)),
        power(1, 1 << (fraction_bits - 2)),
        power(fraction_bits),
        power(fraction_bits - 1, 1),
    }
    # Limits of the integers, of half and of float, and halfway points beside them.
    for exponent in (15, 16, 31, 32, 63, 64, -14, -15, -24, -25, -126, -127, -149, -150, 127, 128):
        edges |= {power(exponent), power(exponent, 1), power(exponent - 1, last)}
    if kind != "half":
        edges |= {power(15, 0x7FF << (fraction_bits - 11)), power(15, (0x7FF << (fraction_bits - 11)) - 1)}
    if kind == "double":
        edges |= {
            power(127, 0x1FFFFFF << (fraction_bits - 25)),
            power(0, (1 << 41) + 1),
            power(0, (1 << 28) + 1),
        }
    return np.array(sorted(edges | {edge | sign for edge in edges}), dtype=np.uint64)


def _tied(column: Column, shared: Bits) -> Bits:
    """Rows of a, b, c with a * b = 1 - (i u)^2 and c an odd multiple of 2 where the spacing is 2.

    The sum then lies just below a halfway point, closer than twice the precision can tell: an fma that rounds its
    product or its sum on the way goes to the wrong side.
    """
    exponent_bits, fraction_bits = _FORMATS[column.type]
    bias = (1 << (exponent_bits - 1)) - 1
    one = np.uint64(bias << fraction_bits)
    step = shared % np.uint64(7) + np.uint64(1)
    sign = (shared >> np.uint64(8) & np.uint64(1)) << np.uint64(exponent_bits + fraction_bits)
    if column.role == "a":
        return (one + step) | sign
    if column.role == "b":
        # Below one the spacing is half as wide: 1 - i u is 2 i steps down.
        return one - np.uint64(2) * step
    odd = (shared >> np.uint64(16)) & _mask(fraction_bits) | np.uint64(1)
    return (
        np.uint64((bias + fraction_bits + 1) << fraction_bits)
        | odd
        | (shared >> np.uint64(9) & np.uint64(1)) << np.uint64(exponent_bits + fraction_bits)
    )
