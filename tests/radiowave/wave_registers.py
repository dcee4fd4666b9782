# SPDX-License-Identifier: Apache-2.0
"""The registers of one wave that runs on real numbers, and how instructions name them.

Every 32-bit register carries, beside its number, the pointers that it was computed from (taint). Two of the lanes are
modelled. Knows no instructions; shares no code with the certifier, nor with the software device.
Register numbers: AMD's RDNA instruction set documents, "Scalar Data Operands".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.radiowave.scalar_memory import Memory

WORD, LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
VCC, M0, NULL, EXEC = 106, 124, 125, 126
LANES = 2
_NAMED = {"vcc_lo": VCC, "vcc_hi": VCC + 1, "m0": M0, "null": NULL, "exec_lo": EXEC, "exec_hi": EXEC + 1}
_PAIRS = {"vcc": VCC, "exec": EXEC}


class Access(NamedTuple):
    """One load or store that was executed; the address without the bits that the hardware drops. `high` is the taint of
    the base's upper half alone."""

    pc: int
    address: int
    nbytes: int
    taint: int
    high: int
    is_scalar: bool


class Number(NamedTuple):
    """A value and what it was computed from."""

    value: int
    taint: int = 0


class UnknownTextError(Exception):
    """The machine does not know an instruction: the generator must not write it, or it belongs in here."""


@dataclass
class Machine:
    """The registers of one wave and its accesses so far."""

    memory: Memory
    scalars: list[Number] = field(default_factory=lambda: [Number(0)] * 128)
    vectors: list[list[Number]] = field(default_factory=lambda: [[Number(0)] * 64 for _ in range(LANES)])
    scc: Number = field(default_factory=lambda: Number(0))
    accesses: list[Access] = field(default_factory=list)

    def read(self, index: int, words: int = 1) -> Number:
        """One or two scalar registers."""
        low = self.scalars[index]
        if words == 1:
            return low
        high = self.scalars[index + 1] if index != NULL else Number(0)
        return Number(low.value | high.value << 32, low.taint | high.taint)

    def write(self, index: int, number: Number, words: int = 1) -> None:
        """One or two scalar registers; the two keep one taint."""
        for n in range(words):
            if index != NULL:
                self.scalars[index + n] = Number(number.value >> 32 * n & WORD, number.taint)

    def active(self) -> Iterable[int]:
        """The lanes that vector instructions write."""
        return [lane for lane in range(LANES) if self.scalars[EXEC].value >> lane & 1]


Step = Callable[[Machine], int | None]  # the next program counter, where it is not simply the next instruction
Form = Callable[[str, list[str]], Step]  # from an instruction's name and operands


def register(text: str) -> int | None:
    """The number of a scalar register, or of the first of several."""
    if text in _NAMED:
        return _NAMED[text]
    if text in _PAIRS:
        return _PAIRS[text]
    found = re.fullmatch(r"s\[?(\d+)(?::\d+\])?", text)
    return int(found[1]) if found else None


def vector(text: str) -> int:
    """The number of a vector register, or of the first of several."""
    found = re.fullmatch(r"v\[?(\d+)(?::\d+\])?", text)
    if found is None:
        raise UnknownTextError(text)
    return int(found[1])


def source_of(text: str, words: int = 1) -> Callable[[Machine], Number]:
    """How to read an operand of one or two words."""
    index = register(text)
    if index == NULL:
        return lambda machine: Number(0)
    if index is not None:
        return lambda machine: machine.read(index, words)
    # A small number is sign-extended, a literal (printed as hexadecimal) is not.
    constant = Number(int(text, 0) & (WORD if words == 1 else LONG))
    return lambda machine: constant


def target_of(text: str) -> int:
    """The number of a scalar register that is written."""
    index = register(text)
    if index is None:
        raise UnknownTextError(text)
    return index


def signed(value: int, bits: int = 32) -> int:
    """The same bits as a number with a sign."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def words_of(name: str) -> int:
    """How many registers an operand of an instruction takes."""
    return 2 if name.endswith(("64", "64_b32")) else 1
