# SPDX-License-Identifier: Apache-2.0
"""Vector ALU instructions: from an `Op` and the printed operands to a function on a `Front`.

All sources are read before anything is written, also across the two halves of a VOPD. What the operation computes
is in `valu.py`; op_sel, packed and mixed sources are fetched by `halves.py`, DPP by `dpp.py`, SDWA by `sdwa.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import dpp, floats, sdwa
from .halves import Selection, source_reader
from .op import OPERAND_TYPES, Array, Op
from .operands import VCC, Operand, Parsed, ParseError
from .registers import Reader, Writer, mask_writer, writer
from .state import Front
from .step import Code, Context, Run
from .valu import VALU

Compute = Callable[[Front], tuple[Array, ...]]
Store = Callable[[Front, tuple[Array, ...]], None]


@dataclass(frozen=True)
class Half:
    """One vector instruction: reading and computing, then writing."""

    compute: Compute
    store: Store
    direct: Run | None = None  # both at once, without a temporary, where that is possible


def compile_vector(parts: tuple[Parsed, ...], context: Context) -> Code | None:
    """The code of a vector ALU instruction or VOPD pair, None when the table lacks a name."""
    halves = []
    for parsed in parts:
        op = VALU.get(parsed.name)
        if op is None:
            return None
        halves.append(_half(parsed, op, context))
    if len(halves) == 2:
        return Code(run=_dual(*halves))
    return Code(run=halves[0].direct or _single(halves[0]))


def _single(half: Half) -> Run:
    compute, store = half.compute, half.store
    return lambda front: store(front, compute(front))


def _dual(x: Half, y: Half) -> Run:
    def run(front: Front) -> None:
        first, second = x.compute(front), y.compute(front)
        second = tuple(_own(value) for value in second)
        x.store(front, first)
        y.store(front, second)

    return run


def _own(value: Array) -> Array:
    """A copy when the value is a view: a register it shows may be written first."""
    return value if value.base is None else value.copy()


def _half(parsed: Parsed, op: Op, context: Context) -> Half:
    selection = Selection(parsed, op)
    destinations, sources = _places(parsed, op)
    readers = [
        _source(operand, kind, index, parsed, selection)
        for index, (operand, kind) in enumerate(zip(sources, op.src, strict=True))
    ]
    stores = _stores(parsed, op, destinations, selection)
    if op.reads_dst:
        readers += _old_values(op, destinations, selection)
    function = _function(parsed, op)
    needs = _needs(op, context, selection)
    lanes = dpp.compile_lanes(parsed, readers, context, selection)
    selection.check_all_used()
    compute, store = _compute(function, readers, needs, parsed, op), _store(stores)
    if lanes is not None:
        return Half(compute, dpp.masked(store, lanes, op))
    return Half(compute, store, _direct(function, readers, needs, parsed, op, destinations))


def _places(parsed: Parsed, op: Op) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """Printed destinations and sources. The EXEC destination of v_cmpx is not printed."""
    printed = [kind for kind in op.dst if kind != "exec"]
    if len(parsed.operands) != len(printed) + len(op.src):
        raise ParseError(f"{len(parsed.operands)} operands where {len(printed) + len(op.src)} are expected")
    return parsed.operands[: len(printed)], parsed.operands[len(printed) :]


def _source(operand: Operand, kind: str, index: int, parsed: Parsed, selection: Selection) -> Reader:
    if "sdwa" in parsed.suffixes:
        return sdwa.source(operand, kind, index, selection)
    return source_reader(operand, kind, index, selection)


def _stores(parsed: Parsed, op: Op, places: tuple[Operand, ...], selection: Selection) -> list[Writer]:
    if "sdwa" in parsed.suffixes and op.dst[0] not in ("mask", "exec"):
        return [sdwa.destination(places[0], op.dst[0], selection)]
    stores: list[Writer] = []
    rest = list(places)
    for kind in op.dst:
        if kind == "exec":
            stores.append(_write_exec)
            continue
        rule, place = OPERAND_TYPES[kind], rest.pop(0)
        if place.kind == "s" and not (rule.is_scalar or kind == "mask"):
            raise ParseError(f"scalar destination {place.token} of a vector result")
        high = rule.bits == 16 and selection.destination_is_high(len(op.src))
        stores.append(writer(place, kind, high=high, ignores_exec=op.ignores_exec))
    return stores


def _write_exec(front: Front, value: Array) -> None:
    front.set_exec(value & front.exec)


def _old_values(op: Op, places: tuple[Operand, ...], selection: Selection) -> list[Reader]:
    """Old destinations in the order of `dst`; they carry no sign modifier."""
    found = []
    for operand, kind in zip(places, (kind for kind in op.dst if kind != "exec"), strict=True):
        if kind != "mask":
            found.append(selection.old_destination(operand, kind, len(op.src)))
    return found


def _function(parsed: Parsed, op: Op) -> Callable[..., Any]:
    """The operation, or its saturating form for an integer result that is printed with clamp."""
    if "clamp" in parsed.modifiers and not OPERAND_TYPES[op.dst[0]].is_float:
        if op.saturating is None:
            raise ParseError("clamp on a result that has no saturating form")
        return op.saturating
    return op.fn


def _needs(op: Op, context: Context, selection: Selection) -> dict[str, Callable[[Front], Any]]:
    wave = context.wave
    sources = len(op.src)
    makers: dict[str, Callable[[Front], Any]] = {
        "active": lambda front: front.exec,
        "vcc": lambda front: front.mask(VCC),
        "wave": lambda front: wave,
    }
    for name in ("op_sel", "neg_lo"):
        if name in op.needs:
            bits = selection.bits(name, sources)
            makers[name] = _always(bits)
    return {name: makers[name] for name in op.needs}


def _always(value: Any) -> Callable[[Front], Any]:
    return lambda front: value


def _compute(
    function: Callable[..., Any],
    readers: list[Reader],
    needs: dict[str, Callable[[Front], Any]],
    parsed: Parsed,
    op: Op,
) -> Compute:
    """Fetch, compute, clamp; always a tuple."""
    rule, single = OPERAND_TYPES[op.dst[0]], len(op.dst) == 1
    clamps = "clamp" in parsed.modifiers and rule.is_float
    clamp = floats.clamp_packed if rule.is_packed else floats.clamp

    def compute(front: Front) -> tuple[Array, ...]:
        keywords = {name: make(front) for name, make in needs.items()}
        result = function(*[fetch(front) for fetch in readers], **keywords)
        values: tuple[Array, ...] = (result,) if single else result
        if clamps:
            values = (clamp(values[0]), *values[1:])
        return values

    return compute


def _store(stores: list[Writer]) -> Store:
    if len(stores) == 1:
        only = stores[0]
        return lambda front, values: only(front, values[0])

    def store(front: Front, values: tuple[Array, ...]) -> None:
        owned = [_own(value) for value in values]
        for write, value in zip(stores, owned, strict=True):
            write(front, value)

    return store


_VIEWS = {"uint32": "u32", "int32": "i32", "float32": "f32"}


def _direct(
    function: Callable[..., Any],
    readers: list[Reader],
    needs: dict[str, Callable[[Front], Any]],
    parsed: Parsed,
    op: Op,
    destinations: tuple[Operand, ...],
) -> Run | None:
    """A shorter run for the common case: one 32-bit vector result and no clamp."""
    if len(op.dst) != 1 or needs or "clamp" in parsed.modifiers or "sdwa" in parsed.suffixes or op.ignores_exec:
        return None
    kind = op.dst[0]
    if kind == "mask":
        return _direct_mask(function, readers, destinations[0])
    view = _VIEWS.get(OPERAND_TYPES[kind].dtype.name)
    if view is None or OPERAND_TYPES[kind].is_scalar or destinations == () or destinations[0].kind != "v":
        return None
    index = destinations[0].first
    if isinstance(function, np.ufunc) and function.nout == 1:
        return _direct_ufunc(function, readers, view, index)
    return _direct_function(function, readers, view, index)


def _direct_ufunc(function: np.ufunc, readers: list[Reader], view: str, index: int) -> Run:
    if len(readers) == 3:
        return _direct_ternary(function, readers, view, index)
    if len(readers) != 2:
        return _direct_function(function, readers, view, index)
    first, second = readers

    def run(front: Front) -> None:
        target = getattr(front, view)[index]
        if front.full:
            function(first(front), second(front), out=target, casting="equiv")
        else:
            function(first(front), second(front), out=target, casting="equiv", where=front.exec)

    return run


def _direct_ternary(function: np.ufunc, readers: list[Reader], view: str, index: int) -> Run:
    first, second, third = readers

    def run(front: Front) -> None:
        target = getattr(front, view)[index]
        if front.full:
            function(first(front), second(front), third(front), out=target)
        else:
            value = function(first(front), second(front), third(front))
            np.copyto(target, value, casting="equiv", where=front.exec)

    return run


def _direct_function(function: Callable[..., Any], readers: list[Reader], view: str, index: int) -> Run:
    fetch: Callable[[Front], Array]
    if len(readers) == 1:
        (only,) = readers
        fetch = lambda front: function(only(front))  # noqa: E731
    elif len(readers) == 2:
        first, second = readers
        fetch = lambda front: function(first(front), second(front))  # noqa: E731
    else:
        fetch = lambda front: function(*[read(front) for read in readers])  # noqa: E731

    def run(front: Front) -> None:
        value = fetch(front)
        target = getattr(front, view)[index]
        if front.full:
            np.copyto(target, value, casting="equiv")
        else:
            np.copyto(target, value, casting="equiv", where=front.exec)

    return run


def _direct_mask(function: Callable[..., Any], readers: list[Reader], destination: Operand) -> Run:
    store = mask_writer(destination)

    def run(front: Front) -> None:
        store(front, function(*[read(front) for read in readers]))

    return run
