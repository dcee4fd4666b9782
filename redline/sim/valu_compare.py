# SPDX-License-Identifier: Apache-2.0
"""Comparisons: v_cmp_* give a lane mask, v_cmpx_* give EXEC; class tests.

A mask covers every lane; the machine clears the bits of inactive lanes before it stores one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .floats import quiet
from .op import Array, Op


def _ordered(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    @quiet
    def compare(a: Array, b: Array) -> Array:
        return function(a, b)

    return compare


_ORDER: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_INTEGER_TYPES = ("i16", "u16", "i32", "u32", "i64", "u64")
_INTEGER_ORDER = _ORDER | {"ne": np.not_equal}


def _integer_rows() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in _INTEGER_TYPES:
        for name, function in _INTEGER_ORDER.items():
            rows[f"v_cmp_{name}_{kind}"] = Op(("mask",), (kind, kind), function)
            rows[f"v_cmpx_{name}_{kind}"] = Op(("exec",), (kind, kind), function)
    return rows


def _float_rows() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in ("f16", "f32", "f64"):
        for name, function in _ORDER.items():
            rows[f"v_cmp_{name}_{kind}"] = Op(("mask",), (kind, kind), _ordered(function))
            rows[f"v_cmpx_{name}_{kind}"] = Op(("exec",), (kind, kind), _ordered(function))
    return rows


COMPARE: dict[str, Op] = _integer_rows() | _float_rows()
