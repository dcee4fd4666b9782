# SPDX-License-Identifier: Apache-2.0
"""Float instructions in f16, f32 and f64: arithmetic, minimum and maximum, rounding, division,
approximations.

Conversions are in `valu_convert.py`, comparisons in `valu_compare.py`, packed f16 in `valu_packed.py`.
Names ending in `_num_` and the v_minimum/v_maximum ones are gfx12's; v_min_f32 and its kin are those of
gfx10 and gfx11, with IEEE mode on. `v_mad_f32`, `v_mac_f32`, `v_madmk_f32`, `v_madak_f32` exist on
gfx10.1 only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import approximate, division, floats, minmax
from .fma import fma
from .op import Array, Op

_KINDS = ("f16", "f32", "f64")
_FMA: dict[str, Any] = {"f16": floats.fma_f16, "f32": fma, "f64": fma}


def mix_to_f16(a: Array, b: Array, c: Array) -> Array:
    """v_fma_mixlo, v_fma_mixhi: an f32 fused multiply-add, then rounded again to f16."""
    return floats.make_quiet(fma(a, b, c).astype(np.float16))


def _arithmetic() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in _KINDS:
        two, three = (kind, kind), (kind, kind, kind)
        rows[f"v_add_{kind}"] = Op((kind,), two, np.add)
        rows[f"v_sub_{kind}"] = Op((kind,), two, np.subtract)
        rows[f"v_subrev_{kind}"] = Op((kind,), two, floats.sub_rev)
        rows[f"v_mul_{kind}"] = Op((kind,), two, np.multiply)
        rows[f"v_fma_{kind}"] = Op((kind,), three, _FMA[kind])
        rows[f"v_fmac_{kind}"] = Op((kind,), two, _FMA[kind], reads_dst=True)
    for kind in ("f16", "f32"):
        three = (kind, kind, kind)
        rows[f"v_fmaak_{kind}"] = Op((kind,), three, _FMA[kind])
        rows[f"v_fmamk_{kind}"] = Op((kind,), three, _FMA[kind])
    return rows


def _single_precision_only() -> dict[str, Op]:
    two, three = ("f32", "f32"), ("f32", "f32", "f32")
    mix = ("mix", "mix", "mix")
    return {
        "v_mul_dx9_zero_f32": Op(("f32",), two, floats.mul_dx9_zero),
        "v_fma_dx9_zero_f32": Op(("f32",), three, floats.fma_dx9_zero),
        "v_fmac_dx9_zero_f32": Op(("f32",), two, floats.fma_dx9_zero, reads_dst=True),
        "v_mad_f32": Op(("f32",), three, floats.mul_add_unfused),
        "v_mac_f32": Op(("f32",), two, floats.mul_add_unfused, reads_dst=True),
        "v_madak_f32": Op(("f32",), three, floats.mul_add_unfused),
        "v_madmk_f32": Op(("f32",), three, floats.mul_add_unfused),
        "v_fma_mix_f32": Op(("f32",), mix, fma),
        "v_fma_mixlo_f16": Op(("f16",), mix, mix_to_f16),
        "v_fma_mixhi_f16": Op(("f16_high",), mix, mix_to_f16),
    }


def _extremes(kind: str, small: minmax.Binary, large: minmax.Binary, names: dict[str, str]) -> dict[str, Op]:
    """The rows of one NaN rule; `names` maps the seven roles to names, and leaves out what does not exist."""
    two: dict[str, Any] = {"min": small, "max": large}
    three: dict[str, Any] = {
        "min3": minmax.nest(small, small),
        "max3": minmax.nest(large, large),
        "minmax": minmax.nest(small, large),
        "maxmin": minmax.nest(large, small),
        "med3": minmax.median(small),
    }
    rows = {names[role]: Op((kind,), (kind,) * 2, fn) for role, fn in two.items() if role in names}
    return rows | {names[role]: Op((kind,), (kind,) * 3, fn) for role, fn in three.items() if role in names}


def _minimum_maximum() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    for kind in _KINDS:
        roles = ("min", "max") if kind == "f64" else ("min", "max", "min3", "max3", "minmax", "maxmin", "med3")
        plain = {role: f"v_{role}_{kind}" for role in roles}
        number = {role: f"v_{role}_num_{kind}" for role in roles}
        propagating = {
            role: f"v_{role.replace('min', 'minimum').replace('max', 'maximum')}_{kind}"
            for role in roles
            if role != "med3"
        }
        rows |= _extremes(kind, minmax.MIN_IEEE, minmax.MAX_IEEE, plain)
        rows |= _extremes(kind, minmax.MIN_NUMBER, minmax.MAX_NUMBER, number)
        rows |= _extremes(kind, minmax.MIN_PROPAGATE, minmax.MAX_PROPAGATE, propagating)
    return rows


def _rounding() -> dict[str, Op]:
    rows: dict[str, Op] = {}
    functions: dict[str, Any] = {
        "trunc": np.trunc,
        "ceil": np.ceil,
        "floor": np.floor,
        "rndne": np.rint,
        "fract": floats.fract,
    }
    for kind in _KINDS:
        for name, fn in functions.items():
            rows[f"v_{name}_{kind}"] = Op((kind,), (kind,), fn)
        power = "i16" if kind == "f16" else "i32"
        rows[f"v_ldexp_{kind}"] = Op((kind,), (kind, power), floats.ldexp)
        rows[f"v_frexp_mant_{kind}"] = Op((kind,), (kind,), floats.frexp_mantissa)
        rows[f"v_frexp_exp_{power}_{kind}"] = Op((power,), (kind,), floats.frexp_exponent)
    return rows


def _division() -> dict[str, Op]:
    rows = {"v_div_fixup_f16": Op(("f16",), ("f16",) * 3, division.fixup_f16)}
    for kind in ("f32", "f64"):
        three = (kind, kind, kind)
        rows[f"v_div_scale_{kind}"] = Op((kind, "mask"), three, division.scale)
        rows[f"v_div_fmas_{kind}"] = Op((kind,), three, division.fmas, needs=("vcc",))
        rows[f"v_div_fixup_{kind}"] = Op((kind,), three, division.fixup)
    return rows


def _approximate() -> dict[str, Op]:
    rows: dict[str, Op] = {"v_rcp_iflag_f32": Op(("f32",), ("f32",), approximate.rcp)}
    both = {
        "exp": approximate.exp2,
        "log": approximate.log2,
        "sin": approximate.sin_turns,
        "cos": approximate.cos_turns,
    }
    three = {"rcp": approximate.rcp, "rsq": approximate.rsq, "sqrt": approximate.sqrt}
    for kind in _KINDS:
        functions: dict[str, Any] = three if kind == "f64" else three | both
        for name, fn in functions.items():
            rows[f"v_{name}_{kind}"] = Op((kind,), (kind,), fn)
    return rows


FLOAT: dict[str, Op] = (
    _arithmetic()
    | _single_precision_only()
    | _minimum_maximum()
    | _rounding()
    | _division()
    | _approximate()
    | {"v_pack_b32_f16": Op(("b32",), ("f16", "f16"), floats.join)}
)
