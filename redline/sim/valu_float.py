# SPDX-License-Identifier: Apache-2.0
"""Float arithmetic instructions: add, mul, fma and their kin in f16, f32 and f64."""

from __future__ import annotations

from . import floats
from .op import Op

FLOAT: dict[str, Op] = {
    "v_add_f32": Op(("f32",), ("f32", "f32"), floats.add),
    "v_mul_f32": Op(("f32",), ("f32", "f32"), floats.mul),
    "v_fma_f32": Op(("f32",), ("f32", "f32", "f32"), floats.fma),
    "v_fmac_f32": Op(("f32",), ("f32", "f32"), floats.fma, reads_dst=True),
}
