# SPDX-License-Identifier: Apache-2.0
"""Which half of a register a source means: op_sel, op_sel_hi, neg_lo, neg_hi, true16 names, mixed precision.

Also keeps the account of an instruction's modifiers: each must be used by someone, or the instruction is refused.
Does not know DPP and SDWA controls (`dpp.py`, `sdwa.py`) beyond letting them take their modifiers from here.
"""

from __future__ import annotations

import numpy as np

from . import floats
from .op import OPERAND_TYPES, Array, Op
from .operands import Operand, Parsed, ParseError
from .registers import Reader, apply_sign, reader
from .state import Front

Bits = tuple[int, ...]


class Selection:
    """The modifiers of one instruction, and which of them nobody has used yet."""

    def __init__(self, parsed: Parsed, op: Op) -> None:
        self.parsed, self.op = parsed, op
        self._unused = set(parsed.modifiers)
        self.take("clamp")  # vector.py applies it, or refuses it, for every instruction
        self.packed = any(OPERAND_TYPES[kind].is_packed for kind in op.src)
        self.mixed = "mix" in op.src

    def take(self, name: str) -> str | None:
        """The text of a modifier, None when it is not printed."""
        self._unused.discard(name)
        return self.parsed.modifiers.get(name)

    def bits(self, name: str, count: int, default: int = 0) -> Bits:
        """A modifier like `op_sel:[0,1]` as bits, one an operand."""
        text = self.take(name)
        if text is None:
            return (default,) * count
        values = tuple(int(bit) for bit in text.strip("[]").split(","))
        if name in self.op.needs:  # v_permlane16 prints two bits for three sources
            values += (0,) * (count - len(values))
        if not set(values) <= {0, 1} or len(values) < count:
            raise ParseError(f"{name}:{text} for {count} operands")
        return values

    def destination_is_high(self, sources: int) -> bool:
        """The last bit of op_sel, when it has one for the destination: bits 31:16 are written."""
        if "op_sel" not in self.parsed.modifiers or self.packed or self.mixed:
            return False
        values = self.bits("op_sel", sources)
        return len(values) > sources and values[sources] == 1

    def source_is_high(self, index: int) -> bool:
        if "op_sel" not in self.parsed.modifiers:
            return False
        return self.bits("op_sel", len(self.op.src))[index] == 1

    def old_destination(self, operand: Operand, kind: str, sources: int) -> Reader:
        """The destination as a source: the half that will be written."""
        high = OPERAND_TYPES[kind].is_high_half or self.destination_is_high(sources)
        return reader(operand, kind, high=high, sign=False)

    def check_all_used(self) -> None:
        if self._unused:
            raise ParseError(f"modifier {sorted(self._unused)[0]!r} is not supported here")


def source_reader(operand: Operand, kind: str, index: int, selection: Selection) -> Reader:
    """Fetch one source of a vector instruction that has neither DPP nor SDWA."""
    rule = OPERAND_TYPES[kind]
    if operand.sext:
        raise ParseError("sext outside SDWA")
    if kind == "mix":
        return _mixed(operand, index, selection)
    if rule.is_packed:
        return _packed(operand, kind, index, selection)
    signed = operand.neg or operand.abs
    if signed and not rule.is_float and not (kind == "b32" and selection.op.src[:2] == ("b32", "b32")):
        raise ParseError(f"sign modifier on an operand of type {kind}")
    if rule.bits != 16:
        return reader(operand, kind)
    # True16 text has both `v1.h` and op_sel for the same bit: it counts once.
    high = selection.source_is_high(index) and operand.kind in ("v", "s")
    return reader(operand, kind, high=high)


def _packed(operand: Operand, kind: str, index: int, selection: Selection) -> Reader:
    """Two halves, each from either half of the source, each with its own sign."""
    count = len(selection.op.src)
    low, high = selection.bits("op_sel", count)[index], selection.bits("op_sel_hi", count, 1)[index]
    neg_low, neg_high = selection.bits("neg_lo", count)[index], selection.bits("neg_hi", count)[index]
    if (neg_low or neg_high) and not OPERAND_TYPES[kind].is_float:
        raise ParseError(f"neg_lo or neg_hi on an operand of type {kind}")
    if operand.neg or operand.abs:
        raise ParseError("neg or abs on a packed operand")
    fetch = reader(operand, kind)
    flip = np.uint32(neg_low << 15 | neg_high << 31)
    if (low, high) == (0, 1):
        return (lambda front: fetch(front) ^ flip) if flip else fetch
    return _rearranged(fetch, low, high, flip)


def _rearranged(fetch: Reader, low: int, high: int, flip: np.uint32) -> Reader:
    sixteen, lower, upper = np.uint32(16), np.uint32(0xFFFF), np.uint32(0xFFFF0000)

    def read(front: Front) -> Array:
        value = fetch(front)
        bottom = value >> sixteen if low else value & lower
        top = value & upper if high else value << sixteen
        result: Array = (bottom | top) ^ flip
        return result

    return read


def _mixed(operand: Operand, index: int, selection: Selection) -> Reader:
    """A source of v_fma_mix*: f32, or one f16 half widened. neg_lo is neg, neg_hi is abs."""
    count = len(selection.op.src)
    is_half = selection.bits("op_sel_hi", count)[index]
    high = selection.bits("op_sel", count)[index] == 1
    neg = selection.bits("neg_lo", count)[index] == 1 or operand.neg
    absolute = selection.bits("neg_hi", count)[index] == 1 or operand.abs
    if not is_half:
        fetch32 = reader(operand, "u32", sign=False) if operand.kind != "const" else reader(operand, "f32", sign=False)
        return lambda front: apply_sign(fetch32(front).view(np.uint32), neg, absolute).view(np.float32)
    fetch16 = reader(operand, "f16", high=high, sign=False)
    return lambda front: floats.f16_to_f32(apply_sign(fetch16(front).view(np.uint16), neg, absolute).view(np.float16))
