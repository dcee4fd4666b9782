# SPDX-License-Identifier: Apache-2.0
"""Split LLVM's text of one AMDGPU instruction into name, operands and modifiers, and name the registers in them.

Knows the text's form only; what an instruction does is `scalar_flow.py`, `vector_flow.py` and `memory_flow.py`.
Numbers of scalar registers are those of the encodings: SGPRs 0..105, VCC 106, TTMP 108, M0 124, NULL 125, EXEC 126.
Source: LLVM AMDGPUInstPrinter's output as seen on every target of `targets.py`; operand numbers as in AMD's RDNA
instruction set documents, "Scalar Data Operands".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

VCC, TTMP, M0, NULL, EXEC = 106, 108, 124, 125, 126
_NAMED = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
    "null": (NULL, 1),
    # gfx10 and later keep them in hardware registers; LLVM names them where old code does.
    "flat_scratch": (NULL, 1),
    "xnack_mask": (NULL, 1),
}
_REGISTER = re.compile(r"\b(?:(v|s|ttmp)(\d+)(?:\.[lh])?|(v|s|ttmp)\[(\d+):(\d+)\])(?![\w\[])")
_WORD = re.compile(r"\b(" + "|".join(sorted(_NAMED, key=len, reverse=True)) + r")\b")
_INTEGER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)$")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its text, and the registers in it. `bank` is "s", "v" or "" for what is no register.

    `first` and `count` are register numbers. `value` is an integer as printed, None for anything else.
    """

    text: str
    bank: str = ""
    first: int = 0
    count: int = 0
    value: int | None = None

    @property
    def registers(self) -> range:
        """The numbers of its registers."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction: name without encoding suffix, operands, and the modifiers behind them as one text."""

    name: str
    operands: tuple[Operand, ...]
    modifiers: str


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> tuple[Operation, ...]:
    """The operations of an instruction's text: one, or the two halves of a dual-issued one."""
    return tuple(_operation(part) for part in " ".join(text.split()).split(" :: "))


def _operation(text: str) -> Operation:
    name, _, rest = text.partition(" ")
    fields = _split(rest)
    modifiers = ""
    if fields:
        fields[-1], _, modifiers = fields[-1].partition(" ")
    operands = tuple(_operand(field) for field in fields if field)
    return Operation(re.sub(r"_(e32|e64|dpp|e64_dpp|sdwa|dpp8)$", "", name), operands, _marked(name, modifiers))


def _marked(name: str, modifiers: str) -> str:
    """Lane patterns stand in the suffix too; a reader of modifiers must not miss one."""
    return f"{modifiers} dpp" if "dpp" in name else f"{modifiers} sdwa" if name.endswith("sdwa") else modifiers


def _split(rest: str) -> list[str]:
    """Operands end at commas outside of brackets."""
    fields, depth, start = [], 0, 0
    for at, character in enumerate(rest):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            fields.append(rest[start:at].strip())
            start = at + 1
    return [*fields, rest[start:].strip()] if rest else fields


def _operand(text: str) -> Operand:
    if _INTEGER.match(text):
        return Operand(text, value=int(text, 0))
    found = _REGISTER.search(text)
    if found:
        kind, number, kind_of_range, low, high = found.groups()
        first, last = (int(number), int(number)) if number else (int(low), int(high))
        kind = kind or kind_of_range
        base = TTMP if kind == "ttmp" else 0
        return Operand(text, "v" if kind == "v" else "s", base + first, last - first + 1)
    named = _WORD.search(text)
    if named:
        first, count = _NAMED[named.group(1)]
        return Operand(text, "s", first, count)
    return Operand(text)
