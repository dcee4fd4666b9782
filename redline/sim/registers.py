# SPDX-License-Identifier: Apache-2.0
"""Reading and writing one operand: from the printed operand and its type to a function on a `Front`.

A reader returns an array of the type's dtype, [wave, lane] or [wave, 1]; usually a view, never to be changed. A
writer stores into the lanes that are on (scalars: whatever EXEC is). Sign modifiers of floats are applied here, as
bit operations. op_sel, DPP, SDWA and packed operands are not: `vector.py` and `halves.py` have those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .op import OPERAND_TYPES, Array, OperandType
from .operands import EXEC, Operand, ParseError, constant_bits
from .state import Front

Reader = Callable[[Front], Array]
Writer = Callable[[Front, Array], None]

_UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_VECTOR_VIEW = {"uint32": "u32", "int32": "i32", "float32": "f32"}
_HALF_VIEW = {"uint16": "u16", "int16": "i16", "float16": "f16"}
_SCALAR_VIEW = {"uint32": "s32", "int32": "si32", "float32": "sf32"}
_PAIR_VIEW = {"uint64": "s64", "int64": "si64"}


def reader(operand: Operand, kind: str, *, high: bool = False, sign: bool = True) -> Reader:
    """Fetch `operand` as `kind`. `high` takes bits 31:16 for a 16-bit type. `sign=False` ignores neg and abs."""
    rule = OPERAND_TYPES[kind]
    if operand.kind == "const":
        return _constant(operand, kind, rule, sign)
    fetch = _fetcher(operand, kind, rule, high or operand.high)
    if not sign or not (operand.neg or operand.abs):
        return fetch
    return _signed(fetch, operand, rule)


def _constant(operand: Operand, kind: str, rule: OperandType, sign: bool) -> Reader:
    if kind in ("mask", "exec"):
        value = np.full((1, 1), _uniform_mask(operand.token), np.bool_)
        return lambda front: value
    bits = np.full((1, 1), constant_bits(operand.token, kind), _UNSIGNED[rule.bits])
    if sign:
        bits = apply_sign(bits, operand.neg, operand.abs)
    constant = bits.view(rule.dtype)
    return lambda front: constant


def _uniform_mask(token: str) -> bool:
    if token not in ("0", "-1"):
        raise ParseError(f"constant {token} as a lane mask")
    return token == "-1"


def apply_sign(bits: Array, neg: bool, absolute: bool) -> Array:
    """Clear, then flip, the sign bit of each unsigned element."""
    top = bits.dtype.type(1 << (bits.dtype.itemsize * 8 - 1))
    if absolute:
        bits = bits & ~top
    return bits ^ top if neg else bits


def _signed(fetch: Reader, operand: Operand, rule: OperandType) -> Reader:
    unsigned = np.dtype(_UNSIGNED[rule.bits])
    neg, absolute, dtype = operand.neg, operand.abs, rule.dtype
    return lambda front: apply_sign(fetch(front).view(unsigned), neg, absolute).view(dtype)


def _fetcher(operand: Operand, kind: str, rule: OperandType, high: bool) -> Reader:
    if kind in ("mask", "exec"):
        return _mask_reader(operand)
    if operand.kind == "scc":
        return _scc_reader(rule)
    if operand.kind == "null":
        zero = np.zeros((1, 1), rule.dtype)
        return lambda front: zero
    check_width(operand, max(1, rule.bits // 32), half=rule.bits == 16)
    if operand.kind == "v":
        return _vector_reader(operand.first, rule, high)
    if operand.kind == "s":
        return _scalar_reader(operand.first, rule, high)
    raise ParseError(f"operand {operand.token!r}")


def check_width(operand: Operand, dwords: int, *, half: bool = False) -> None:
    """Refuse a register operand that is wider or narrower than its type; `half` allows v1.l and v1.h."""
    if operand.count != dwords or (operand.halved and not half):
        raise ParseError(f"operand {operand.token} where {dwords} registers are expected")


def _mask_reader(operand: Operand) -> Reader:
    column = operand.first
    if operand.kind == "null":
        zero = np.zeros((1, 1), np.bool_)
        return lambda front: zero
    if operand.kind != "s":
        raise ParseError(f"operand {operand.token!r} as a lane mask")
    if column == EXEC:
        return lambda front: front.exec
    return lambda front: front.mask(column)


def _scc_reader(rule: OperandType) -> Reader:
    dtype = rule.dtype
    return lambda front: front.scc.astype(dtype)


def _vector_reader(index: int, rule: OperandType, high: bool) -> Reader:
    name = rule.dtype.name
    if rule.bits == 16:
        view, start = _HALF_VIEW[name], int(high)
        return lambda front: getattr(front, view)[index][:, start::2]
    if rule.bits == 64:
        dtype = rule.dtype
        return lambda front: vector_pair(front, index).view(dtype)
    if name == "float32":
        return lambda front: front.f32[index]
    if name == "int32":
        return lambda front: front.i32[index]
    return lambda front: front.u32[index]


def vector_pair(front: Front, index: int) -> Array:
    """Two neighbouring vector registers as uint64 [wave, lane]."""
    out = np.empty((*front.shape, 2), np.uint32)
    out[..., 0] = front.u32[index]
    out[..., 1] = front.u32[index + 1]
    return out.view(np.uint64)[..., 0]


def _scalar_reader(column: int, rule: OperandType, high: bool) -> Reader:
    name, dtype = rule.dtype.name, rule.dtype
    if rule.bits == 64:
        if column % 2:
            raise ParseError(f"64-bit scalar operand at odd register {column}")
        place = (slice(None), slice(column // 2, column // 2 + 1))
        if name == "int64":
            return lambda front: front.si64[place]
        return lambda front: front.s64[place].view(dtype)
    if rule.bits == 16:
        at = column * 2 + int(high)
        place = (slice(None), slice(at, at + 1))
        return lambda front: front.s16[place].view(dtype)
    place = (slice(None), slice(column, column + 1))
    if name == "float32":
        return lambda front: front.sf32[place]
    if name == "int32":
        return lambda front: front.si32[place]
    return lambda front: front.s32[place]


def writer(operand: Operand, kind: str, *, high: bool = False, ignores_exec: bool = False) -> Writer:
    """Store a value of `kind` into `operand`. A 16-bit value leaves the other half of its register alone."""
    rule = OPERAND_TYPES[kind]
    if operand.neg or operand.abs:
        raise ParseError(f"sign modifier on destination {operand.token}")
    if operand.kind == "null":
        return lambda front, value: None
    if kind == "mask":
        return mask_writer(operand)
    check_width(operand, max(1, rule.bits // 32), half=rule.bits == 16)
    if operand.kind == "s":
        return scalar_writer(operand, rule)
    if operand.kind != "v":
        raise ParseError(f"destination {operand.token!r}")
    if rule.bits == 64:
        return _pair_writer(operand.first, ignores_exec)
    if rule.bits == 16:
        return _half_writer(operand.first, rule, high or operand.high or rule.is_high_half)
    return _vector_writer(operand.first, rule, ignores_exec)


def _vector_writer(index: int, rule: OperandType, ignores_exec: bool) -> Writer:
    view = _VECTOR_VIEW[rule.dtype.name]
    if ignores_exec:
        return lambda front, value: np.copyto(getattr(front, view)[index], value, casting="equiv")

    def write(front: Front, value: Array) -> None:
        target = getattr(front, view)[index]
        if front.full:
            np.copyto(target, value, casting="equiv")
        else:
            np.copyto(target, value, casting="equiv", where=front.exec)

    return write


def _half_writer(index: int, rule: OperandType, high: bool) -> Writer:
    view, start = _HALF_VIEW[rule.dtype.name], int(high)

    def write(front: Front, value: Array) -> None:
        target = getattr(front, view)[index][:, start::2]
        np.copyto(target, value, casting="equiv", where=front.exec)

    return write


def _pair_writer(index: int, ignores_exec: bool) -> Writer:
    def write(front: Front, value: Array) -> None:
        halves = np.ascontiguousarray(value).view(np.uint32)
        where: Any = True if front.full or ignores_exec else front.exec
        np.copyto(front.u32[index], halves[:, 0::2], where=where)
        np.copyto(front.u32[index + 1], halves[:, 1::2], where=where)

    return write


def mask_writer(operand: Operand) -> Writer:
    """A lane mask into a scalar register (pair); lanes that are off get 0."""
    column = operand.first
    if operand.kind == "null":
        return lambda front, value: None
    if operand.kind != "s":
        raise ParseError(f"lane mask destination {operand.token!r}")
    if column == EXEC:
        return lambda front, value: front.set_exec(value & front.exec)
    return lambda front, value: front.set_mask(column, value & front.exec)


def scalar_writer(operand: Operand, rule: OperandType) -> Writer:
    """One value a wave into a scalar register or pair; EXEC is spread over the lanes again when it is hit.

    A 16-bit result clears the upper half (not verified on hardware).
    """
    column, wide = operand.first, rule.bits == 64
    if wide and column % 2:
        raise ParseError(f"64-bit scalar destination at odd register {column}")
    at = column // 2 if wide else column
    place = (slice(None), slice(at, at + 1))
    unsigned: Any = {16: np.uint16, 32: np.uint32, 64: np.uint64}[rule.bits]

    def write(front: Front, value: Array) -> None:
        target = front.s64 if wide else front.s32
        target[place] = value.view(unsigned)

    def write_exec(front: Front, value: Array) -> None:
        write(front, value)
        front.exec_written()

    return write_exec if column >= EXEC else write
