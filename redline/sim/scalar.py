# SPDX-License-Identifier: Apache-2.0
"""Compiling scalar ALU instructions: operands of `salu.py`'s rows, SCC, immediates, and EXEC saved and written.

What an operation computes is in `salu.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .op import OPERAND_TYPES, Array
from .operands import EXEC, Operand, Parsed, ParseError
from .registers import Reader, Writer, check_width, reader, scalar_writer
from .salu import COMPARE, LOGIC, SCALAR, Scalar, identity, move_if
from .state import Front
from .step import Code, Context

# SOPK: the second source is a 16-bit immediate, printed unsigned; "i16" extends its sign, "u16" does not.
_IMMEDIATE: dict[str, tuple[Scalar, str, bool]] = {
    # name -> (operation, extension, destination is also the first source)
    "s_movk_i32": (Scalar("i32", ("i32",), identity), "i16", False),
    "s_cmovk_i32": (Scalar("i32", ("i32",), move_if, reads_scc=True, reads_dst=True), "i16", False),
    "s_addk_co_i32": (SCALAR["s_add_co_i32"], "i16", True),
    "s_mulk_i32": (SCALAR["s_mul_i32"], "i16", True),
} | {
    f"s_cmpk_{name}_{kind}": (SCALAR[f"s_cmp_{name}_{kind}"], kind.replace("32", "16"), True)
    for name in COMPARE
    for kind in ("u32", "i32")
}

_SAVEEXEC = ("and", "or", "xor", "and_not1", "or_not1", "nand", "nor", "xnor", "and_not0", "or_not0")
_WREXEC = ("and_not0", "and_not1")


def compile_scalar(parsed: Parsed, context: Context) -> Code | None:
    """The code of a scalar ALU instruction, None when the tables lack its name."""
    if parsed.modifiers and parsed.name in SCALAR:
        raise ParseError(f"modifier {next(iter(parsed.modifiers))!r} on a scalar instruction")
    if parsed.name in _IMMEDIATE:
        return Code(run=_immediate(parsed, *_IMMEDIATE[parsed.name]))
    for joint, allowed in (("_saveexec_", _SAVEEXEC), ("_wrexec_", _WREXEC)):
        if joint in parsed.name:
            return Code(run=_exec_pair(parsed, context, joint, allowed))
    row = SCALAR.get(parsed.name)
    if row is None:
        return None
    places = list(parsed.operands)
    destination = places.pop(0) if row.dst is not None else None
    return Code(run=_bind(row, destination, places))


def _bind(row: Scalar, destination: Operand | None, sources: list[Operand]) -> Callable[[Front], None]:
    if len(sources) != len(row.src):
        raise ParseError(f"{len(sources)} sources where {len(row.src)} are expected")
    readers = [_scalar_source(operand, kind) for operand, kind in zip(sources, row.src, strict=True)]
    if destination is None or row.dst is None:
        return _comparison(row.fn, readers)
    if row.reads_dst:
        readers.append(_scalar_source(destination, row.dst))
    if row.reads_scc:
        readers.append(lambda front: front.scc)
    return _RUNS[row.scc](row.fn, readers, scalar_destination(destination, row.dst))


def _scalar_source(operand: Operand, kind: str) -> Reader:
    signed = (operand.neg or operand.abs) and not OPERAND_TYPES[kind].is_float
    if operand.kind not in ("s", "const", "scc", "null") or signed:
        raise ParseError(f"operand {operand.token!r} in a scalar instruction")
    return reader(operand, kind)


def scalar_destination(operand: Operand, kind: str) -> Writer:
    """Where a scalar result goes: a register or pair of the right width, or nowhere."""
    if operand.kind == "null":
        return lambda front, value: None
    if operand.kind != "s":
        raise ParseError(f"destination {operand.token!r} of a scalar instruction")
    check_width(operand, max(1, OPERAND_TYPES[kind].bits // 32))
    return scalar_writer(operand, OPERAND_TYPES[kind])


def _comparison(function: Callable[..., Any], readers: list[Reader]) -> Callable[[Front], None]:
    def run(front: Front) -> None:
        np.copyto(front.scc, function(*[read(front) for read in readers]))

    return run


def _run_kept(function: Callable[..., Any], readers: list[Reader], store: Writer) -> Callable[[Front], None]:
    def run(front: Front) -> None:
        store(front, function(*[read(front) for read in readers]))

    return run


def _run_result(function: Callable[..., Any], readers: list[Reader], store: Writer) -> Callable[[Front], None]:
    def run(front: Front) -> None:
        value = function(*[read(front) for read in readers])
        store(front, value)
        np.copyto(front.scc, value, casting="unsafe")  # nonzero

    return run


def _run_value(function: Callable[..., Any], readers: list[Reader], store: Writer) -> Callable[[Front], None]:
    def run(front: Front) -> None:
        value, scc = function(*[read(front) for read in readers])
        store(front, value)
        np.copyto(front.scc, scc)

    return run


_RUNS: dict[str, Callable[[Callable[..., Any], list[Reader], Writer], Callable[[Front], None]]] = {
    "kept": _run_kept,
    "result": _run_result,
    "value": _run_value,
}


def _immediate(parsed: Parsed, row: Scalar, extension: str, two_address: bool) -> Callable[[Front], None]:
    if len(parsed.operands) != 2:
        raise ParseError("a register and an immediate are expected")
    register, printed = parsed.operands
    value = int(printed.token, 0) & 0xFFFF
    if extension == "i16":
        value -= value >> 15 << 16
    constant = Operand(str(value), "const")
    if row.dst is None:
        return _bind(row, None, [register, constant])
    return _bind(row, register, [register, constant] if two_address else [constant])


def _exec_pair(parsed: Parsed, context: Context, joint: str, allowed: tuple[str, ...]) -> Callable[[Front], None]:
    """EXEC becomes a combination of the source and itself; SCC = new EXEC nonzero.

    saveexec: the destination gets the old EXEC; wrexec: the new one.
    """
    operation, _, rest = parsed.name.removeprefix("s_").partition(joint)
    width = f"b{context.wave}"
    if operation not in allowed or rest != width or len(parsed.operands) != 2:
        raise ParseError(f"{parsed.printed} in a wave of {context.wave} lanes")
    destination, source = parsed.operands
    fetch, store = _scalar_source(source, width), scalar_destination(destination, width)
    exec_operand = Operand("exec", "s", EXEC, context.wave // 32)
    fetch_exec, store_exec = reader(exec_operand, width), scalar_writer(exec_operand, OPERAND_TYPES[width])
    combine, saves = _exec_function(operation), joint == "_saveexec_"

    def run(front: Front) -> None:
        old = fetch_exec(front).copy()
        new = combine(fetch(front), old)
        store(front, old if saves else new)
        store_exec(front, new)
        np.copyto(front.scc, new, casting="unsafe")  # nonzero

    return run


def _exec_function(operation: str) -> Callable[[Array, Array], Array]:
    """new = source OP old EXEC; the not0 forms negate the source, the not1 forms EXEC."""
    if operation.endswith("_not0"):
        inner = LOGIC[operation.replace("_not0", "_not1")]
        return lambda source, old: inner(old, source)
    return LOGIC[operation]
