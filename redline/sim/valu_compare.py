# SPDX-License-Identifier: Apache-2.0
"""Comparisons: v_cmp_* give a lane mask, v_cmpx_* give EXEC; class tests.

A mask covers every lane; the machine clears the bits of inactive lanes before it stores one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .floats import FORMATS, bits_of
from .op import Array, Op

Comparison = Callable[[Array, Array], Any]

_ORDER: dict[str, Comparison] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _less_or_greater(a: Array, b: Array) -> Array:
    result: Array = (a < b) | (a > b)
    return result


def ordered(a: Array, b: Array) -> Array:
    result: Array = (a == a) & (b == b)
    return result


def _not(function: Comparison) -> Comparison:
    """The negated comparison: true when an operand is NaN."""

    def negated(a: Array, b: Array) -> Array:
        result: Array = ~function(a, b)
        return result

    return negated


def always(value: bool) -> Comparison:
    def constant(a: Array, b: Array) -> Array:
        return np.full(np.broadcast_shapes(a.shape, b.shape), value)

    return constant


FLOAT_COMPARISONS: dict[str, Comparison] = _ORDER | {
    "lg": _less_or_greater,
    "o": ordered,
    "u": _not(ordered),
    "nge": _not(np.greater_equal),
    "nlg": _not(_less_or_greater),
    "ngt": _not(np.greater),
    "nle": _not(np.less_equal),
    "neq": np.not_equal,
    "nlt": _not(np.less),
    "f": always(False),
    "t": always(True),
}
_INTEGER_COMPARISONS: dict[str, Comparison] = _ORDER | {"ne": np.not_equal, "f": always(False), "t": always(True)}


def has_class(a: Array, wanted: Array) -> Array:
    """Whether the class of `a` is among the ten bits of `wanted`, bit 0 first: signalling NaN, quiet NaN,
    -infinity, -normal, -denormal, -0, +0, +denormal, +normal, +infinity."""
    chosen: Array = (wanted >> _class_number(a)) & wanted.dtype.type(1)
    return chosen.astype(np.bool_)


# Class numbers by position: 0 zero, 1 denormal, 2 normal, 3 infinity, 4 signalling NaN, 5 quiet NaN; sign
# as bit 3.
_CLASS_NUMBERS = np.array([6, 7, 8, 9, 0, 1, 0, 0, 5, 4, 3, 2, 0, 1, 0, 0], np.uint8)


def _class_number(a: Array) -> Array:
    form = FORMATS[a.dtype]
    kind = form.bits.type
    magnitude = bits_of(a) & kind(form.sign - 1)
    steps = (1, 1 << form.mantissa, form.infinity, form.infinity + 1, form.infinity | form.quiet_bit)
    position = np.signbit(a).view(np.uint8) << 3
    for step in steps:
        position = position + (magnitude >= kind(step)).view(np.uint8)
    numbers: Array = _CLASS_NUMBERS[position]
    return numbers


def _rows(kinds: tuple[str, ...], comparisons: dict[str, Comparison]) -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in kinds:
        for name, function in comparisons.items():
            rows[f"v_cmp_{name}_{kind}"] = Op(("mask",), (kind, kind), function)
            rows[f"v_cmpx_{name}_{kind}"] = Op(("exec",), (kind, kind), function)
    return rows


def _class_rows() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind, wanted in (("f16", "u16"), ("f32", "u32"), ("f64", "u32")):
        rows[f"v_cmp_class_{kind}"] = Op(("mask",), (kind, wanted), has_class)
        rows[f"v_cmpx_class_{kind}"] = Op(("exec",), (kind, wanted), has_class)
    return rows


COMPARE: dict[str, Op] = (
    _rows(("i16", "u16", "i32", "u32", "i64", "u64"), _INTEGER_COMPARISONS)
    | _rows(("f16", "f32", "f64"), FLOAT_COMPARISONS)
    | _class_rows()
)
