# SPDX-License-Identifier: Apache-2.0
"""SDWA, gfx10 only: a source is a byte or word of a register, the result goes to a byte or word of one.

Source: AMD's RDNA1 instruction set manual, section "SDWA". The value that reaches the operation is the selected bits
as unsigned, or sign-extended with sext(). What the operation computes is in `valu.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .halves import Selection
from .op import OPERAND_TYPES, Array
from .operands import Operand, ParseError
from .registers import Reader, Writer, apply_sign, reader
from .state import Front

# name -> (shift, bits)
SELECTS: dict[str, tuple[int, int]] = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}
_UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")


def _select(selection: Selection, name: str) -> tuple[int, int]:
    text = selection.take(name) or "DWORD"
    if text not in SELECTS:
        raise ParseError(f"{name}:{text}")
    return SELECTS[text]


def source(operand: Operand, kind: str, index: int, selection: Selection) -> Reader:
    """The selected bits of source `index`, as `kind`. A lane mask (the carry in) has no selection."""
    if kind == "mask":
        return reader(operand, kind)
    rule = OPERAND_TYPES[kind]
    shift, bits = _select(selection, f"src{index}_sel")
    if operand.kind not in ("v", "s") or rule.bits > 32 or rule.is_packed:
        raise ParseError(f"SDWA on operand {operand.token}")
    if (operand.neg or operand.abs) and not rule.is_float:
        raise ParseError(f"sign modifier on an operand of type {kind}")
    fetch = reader(operand, "u32", sign=False)
    extract = _extractor(shift, bits, operand.sext)
    unsigned = np.dtype(f"u{rule.bits // 8}")
    neg, absolute, dtype = operand.neg, operand.abs, rule.dtype

    def read(front: Front) -> Array:
        return apply_sign(extract(fetch(front)).astype(unsigned), neg, absolute).view(dtype)

    return read


def _extractor(shift: int, bits: int, signed: bool) -> Callable[[Array], Array]:
    left, right = 32 - shift - bits, 32 - bits
    if signed:
        return lambda value: ((value << np.uint32(left)).view(np.int32) >> np.int32(right)).view(np.uint32)
    return lambda value: value << np.uint32(left) >> np.uint32(right)


def destination(operand: Operand, kind: str, selection: Selection) -> Writer:
    """Put the low bits of the result where dst_sel says; dst_unused says what becomes of the rest."""
    shift, bits = _select(selection, "dst_sel")
    unused = selection.take("dst_unused") or "UNUSED_PAD"
    rule = OPERAND_TYPES[kind]
    if unused not in _UNUSED or operand.kind != "v" or rule.bits > 32:
        raise ParseError(f"SDWA destination {operand.token} {unused}")
    if unused == "UNUSED_SEXT":
        raise ParseError("dst_unused:UNUSED_SEXT is not supported")
    index = operand.first
    field = np.uint32(((1 << bits) - 1) << shift)
    unsigned = np.dtype(f"u{rule.bits // 8}")

    def write(front: Front, value: Array) -> None:
        target = front.u32[index]
        placed = value.view(unsigned).astype(np.uint32) << np.uint32(shift) & field
        if unused == "UNUSED_PRESERVE":
            placed = placed | target & ~field
        np.copyto(target, placed, where=front.exec)

    return write
