# SPDX-License-Identifier: Apache-2.0
"""Operand values for the ALU tests, and the comparison of one table entry with its oracle.

Values are edge cases of each operand type, combined with each other and with seeded random bits. What an
entry should give is in `alu_oracles.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redline.sim import floats
from redline.sim.op import OPERAND_TYPES, Op
from tests.sim import softfloat as sf

Bits = Sequence[int]

# Values that a float operand takes besides the bit edges of its format.
_NUMBERS = (0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, 0.1, -0.7, 100.0, 65504.0, -65505.0, 32767.5, 4294967040.0, 1e-6)


def _float_edges(f: sf.Format) -> list[int]:
    largest = f.infinity - 1
    smallest_normal = 1 << f.mantissa
    magnitudes = [0, 1, 3, smallest_normal - 1, smallest_normal, largest, f.infinity, f.nan, f.infinity + 1]
    numbers = [f.round(Fraction(number)) for number in _NUMBERS]
    one = f.round(Fraction(1))
    return [*magnitudes, *(f.negative(m) for m in magnitudes), *numbers, one - 1, one + 1]


def _integer_edges(width: int) -> list[int]:
    top = 1 << (width - 1)
    full = (1 << width) - 1
    return [0, 1, 2, 3, 5, 7, 15, 16, 31, 32, width - 1, 0x7F, 0x80, top - 1, top, top + 1, full - 1, full]


def edges(kind: str) -> list[int]:
    """The edge values of an operand type, as bits."""
    if kind in ("mask", "exec"):
        return [0, 1]
    operand = OPERAND_TYPES[kind]
    if kind == "pk_f16":
        halves = _float_edges(sf.F16)
        return [low | high << 16 for low, high in zip(halves, reversed(halves), strict=True)] + halves
    if operand.is_packed:
        halves = _integer_edges(16)
        return [low | high << 16 for low, high in zip(halves, reversed(halves), strict=True)] + halves
    if operand.is_float:
        return _float_edges(sf.FORMATS["f32" if kind == "mix" else kind])
    return _integer_edges(operand.bits)


def columns(kinds: Sequence[str], seed: int, limit: int = 220) -> list[list[int]]:
    """One list of bits per source: pairs of edges first, then mixtures of edges and random bits."""
    chooser = random.Random(seed)
    pools = [edges(kind) for kind in kinds]
    rows = list(product(*pools)) if len(kinds) <= 2 else []
    chooser.shuffle(rows)
    rows = rows[: limit * 3 // 4]
    while len(rows) < limit:
        rows.append(tuple(_any(kind, pool, chooser) for kind, pool in zip(kinds, pools, strict=True)))
    return [list(column) for column in zip(*rows, strict=True)]


def _any(kind: str, pool: list[int], chooser: random.Random) -> int:
    if len(pool) == 2 or chooser.random() < 0.6:
        return chooser.choice(pool)
    return chooser.getrandbits(OPERAND_TYPES[kind].bits)


def array(kind: str, bits: Bits) -> NDArray[Any]:
    """Bits as the [1, lane] array that a function receives."""
    dtype = OPERAND_TYPES[kind].dtype
    if dtype == np.bool_:
        return np.array([bits], np.bool_)
    return np.array([bits], f"u{dtype.itemsize}").view(dtype)


def bits(values: NDArray[Any]) -> list[int]:
    """The bits of a result, one lane after the other."""
    if values.dtype == np.bool_:
        return [int(value) for value in values.reshape(-1)]
    return [int(value) for value in values.reshape(-1).view(f"u{values.dtype.itemsize}")]


def source_kinds(op: Op) -> list[str]:
    """What a function takes by position: the sources, old destinations, and VCC where the text hides it."""
    old = [kind for kind in op.dst if kind not in ("mask", "exec")] if op.reads_dst else []
    return [*op.src, *old, *(["mask"] if "vcc" in op.needs else [])]


def call(op: Op, function: Callable[..., Any], sources: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """The function under test, called as the machine does; always a tuple of results."""
    named: dict[str, Any] = {"neg_lo": (1, 0, 0)} if "neg_lo" in op.needs else {}
    if "vcc" in op.needs:
        *sources, named["vcc"] = sources
    with floats.quiet():
        results = function(*sources, **named)
    return results if isinstance(results, tuple) else (results,)


class Check:
    """One table entry with its cases and the oracle's answers, to judge functions by."""

    def __init__(
        self, op: Op, oracle: Callable[..., Any], seed: int, compared_as: tuple[str, ...] | None = None
    ) -> None:
        self.op, self.compared_as = op, compared_as or op.dst
        kinds = source_kinds(op)
        table = columns(kinds, seed)
        self.rows = list(zip(*table, strict=True))
        self.sources = [array(kind, column) for kind, column in zip(kinds, table, strict=True)]
        answers = [oracle(*row) for row in self.rows]
        self.wanted = [answer if isinstance(answer, tuple) else (answer,) for answer in answers]

    def differences(self, function: Callable[..., Any]) -> list[str]:
        """Every case in which the function and the oracle disagree."""
        results = call(self.op, function, self.sources)
        got = zip(*(bits(np.broadcast_to(result, (1, len(self.rows)))) for result in results), strict=True)
        found: list[str] = []
        for row, values, wanted in zip(self.rows, got, self.wanted, strict=True):
            for kind, value, want in zip(self.compared_as, values, wanted, strict=True):
                if not same(kind, value, int(want)):
                    found.append(f"{[hex(v) for v in row]} gave {value:#x}, wanted {int(want):#x}")
        return found


def same(kind: str, value: int, wanted: int) -> bool:
    """Equal bits; of two NaNs only that the value is a quiet one."""
    if kind == "pk_f16":
        pairs = [(value >> at & 0xFFFF, wanted >> at & 0xFFFF) for at in (0, 16)]
        return all(same("f16", *pair) for pair in pairs)
    form = sf.FORMATS.get(kind.removesuffix("_high"))
    if form is not None and form.is_nan(wanted):
        return form.is_nan(value) and not form.is_signalling(value)
    return value == wanted
