# SPDX-License-Identifier: Apache-2.0
"""Scalar float instructions (gfx11.5 and gfx12), and gfx12's scalar forms of approximate ones.

The same functions as the vector ones, on [wave, 1] arrays. A "mask" destination is SCC. A 16-bit result
leaves the upper half of its SGPR zero. Integer scalar instructions belong to the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import approximate, floats, minmax
from .fma import fma
from .op import Array, Op
from .valu_compare import FLOAT_COMPARISONS
from .valu_convert import pack_f16_toward_zero, to_float, to_float_quiet, to_integer

_FMA: dict[str, Any] = {"f16": floats.fma_f16, "f32": fma}


def high_half_to_f32(a: Array) -> Array:
    return floats.f16_to_f32(floats.halves(a)[1].view(np.float16))


def _arithmetic(kind: str) -> dict[str, Op]:
    two = (kind, kind)
    rows = {
        f"s_add_{kind}": Op((kind,), two, np.add),
        f"s_sub_{kind}": Op((kind,), two, np.subtract),
        f"s_mul_{kind}": Op((kind,), two, np.multiply),
        f"s_fmac_{kind}": Op((kind,), two, _FMA[kind], reads_dst=True),
        f"s_min_{kind}": Op((kind,), two, minmax.MIN_IEEE),
        f"s_max_{kind}": Op((kind,), two, minmax.MAX_IEEE),
        f"s_min_num_{kind}": Op((kind,), two, minmax.MIN_NUMBER),
        f"s_max_num_{kind}": Op((kind,), two, minmax.MAX_NUMBER),
        f"s_minimum_{kind}": Op((kind,), two, minmax.MIN_PROPAGATE),
        f"s_maximum_{kind}": Op((kind,), two, minmax.MAX_PROPAGATE),
    }
    for name, fn in {"ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "rndne": np.rint}.items():
        rows[f"s_{name}_{kind}"] = Op((kind,), (kind,), fn)
    for name, comparison in FLOAT_COMPARISONS.items():
        rows[f"s_cmp_{name}_{kind}"] = Op(("mask",), two, comparison)
    return rows


def _approximate(kind: str) -> dict[str, Op]:
    functions: dict[str, Any] = {
        "rcp": approximate.rcp,
        "rsq": approximate.rsq,
        "sqrt": approximate.sqrt,
        "exp": approximate.exp2,
        "log": approximate.log2,
    }
    return {f"v_s_{name}_{kind}": Op((kind,), (kind,), fn) for name, fn in functions.items()}


SALU_FLOAT: dict[str, Op] = (
    _arithmetic("f16")
    | _arithmetic("f32")
    | _approximate("f16")
    | _approximate("f32")
    | {
        "s_fmaak_f32": Op(("f32",), ("f32", "f32", "f32"), fma),
        "s_fmamk_f32": Op(("f32",), ("f32", "f32", "f32"), fma),
        "s_cvt_f32_i32": Op(("f32",), ("i32",), to_float(np.float32)),
        "s_cvt_f32_u32": Op(("f32",), ("u32",), to_float(np.float32)),
        "s_cvt_i32_f32": Op(("i32",), ("f32",), to_integer(np.int32)),
        "s_cvt_u32_f32": Op(("u32",), ("f32",), to_integer(np.uint32)),
        "s_cvt_f16_f32": Op(("f16",), ("f32",), to_float_quiet(np.float16)),
        "s_cvt_f32_f16": Op(("f32",), ("f16",), floats.f16_to_f32),
        "s_cvt_hi_f32_f16": Op(("f32",), ("b32",), high_half_to_f32),
        "s_cvt_pk_rtz_f16_f32": Op(("b32",), ("f32", "f32"), pack_f16_toward_zero),
    }
)
