# SPDX-License-Identifier: Apache-2.0
"""What an executor needs to know of one ALU instruction: operand types, and a pure function on arrays.

The tables in `valu*.py` are made of `Op`. This file declares its fields and the operand types, and nothing
else: the text of an instruction, registers, EXEC and the order of reads and writes belong to the machine.

A function gets one numpy array per source, in the order the assembler prints them, viewed as the dtype of its
operand type. A shape is [wave, lane]; a scalar source arrives as [wave, 1] or [1, 1], never as a numpy
scalar, so every function broadcasts. It never modifies a source, but may return one as it is. numpy's
floating-point warnings are off around it (`floats.quiet()`, held by the caller). It may be a plain numpy
ufunc. It returns one array, or a tuple of arrays when `dst` has several entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


class OperandType(NamedTuple):
    """How the machine fetches or stores one operand."""

    dtype: np.dtype[Any]  # the view a function receives or returns
    bits: int  # register bits it occupies: 16 (one half), 32 or 64; 1 is a lane mask
    is_float: bool = False  # neg and abs are sign-bit operations, literals are floats, clamp and omod apply
    is_packed: bool = False  # two 16-bit halves; op_sel, op_sel_hi, neg_lo, neg_hi apply
    is_high_half: bool = False  # destination only: bits 31:16 are written, bits 15:0 are kept
    is_scalar: bool = False  # one value a wave: shape [wave, 1], an SGPR, whatever EXEC is


def _type(dtype: type[np.generic], bits: int, **flags: bool) -> OperandType:
    return OperandType(np.dtype(dtype), bits, **flags)


OPERAND_TYPES: dict[str, OperandType] = {
    "b16": _type(np.uint16, 16),
    "u16": _type(np.uint16, 16),
    "i16": _type(np.int16, 16),
    "f16": _type(np.float16, 16, is_float=True),
    "f16_high": _type(np.float16, 16, is_float=True, is_high_half=True),
    "b32": _type(np.uint32, 32),
    "u32": _type(np.uint32, 32),
    "i32": _type(np.int32, 32),
    "f32": _type(np.float32, 32, is_float=True),
    "b64": _type(np.uint64, 64),
    "u64": _type(np.uint64, 64),
    "i64": _type(np.int64, 64),
    "f64": _type(np.float64, 64, is_float=True),
    # Two halves in one dword, already arranged by op_sel and op_sel_hi, signs already changed.
    "pk_b16": _type(np.uint32, 32, is_packed=True),
    "pk_u16": _type(np.uint32, 32, is_packed=True),
    "pk_i16": _type(np.uint32, 32, is_packed=True),
    "pk_f16": _type(np.uint32, 32, is_float=True, is_packed=True),
    # v_fma_mix*: op_sel_hi picks f32 (0) or the f16 half that op_sel names (1). neg_lo is neg, neg_hi is abs;
    # they act on the bits as fetched; then the half is widened with floats.f16_to_f32.
    "mix": _type(np.float32, 32, is_float=True),
    # Lane masks: VCC, an SGPR (pair), or SCC when every operand is scalar.
    "mask": _type(np.bool_, 1),
    # The EXEC destination of v_cmpx_*; not printed.
    "exec": _type(np.bool_, 1),
    # One value a wave: v_readlane's destination and lane number, v_writelane's sources.
    "s32": _type(np.uint32, 32, is_scalar=True),
}

# Keywords that `needs` may name, and what the machine passes for them.
NEEDS: dict[str, str] = {
    "active": "bool [wave, lane]: EXEC",
    "vcc": "bool [wave, lane]: VCC, where the text does not print it (v_div_fmas_*, v_dual_cndmask_b32)",
    "wave": "int: 32 or 64",
    "op_sel": "tuple of ints, one a source (and the destination, when printed); all 0 when absent",
    "neg_lo": "tuple of ints, one a source; all 0 when absent (v_dot4_i32_iu8: 1 means signed)",
}


@dataclass(frozen=True)
class Op:
    """One instruction without its encoding suffix.

    `reads_dst`: the old value of every destination that is not a mask follows the sources, in the order of
    `dst`.
    `saturating`: the function to use instead of `fn` when `clamp` is printed and the destination is an
    integer; None means such a clamp is refused. Float destinations use `floats.clamp` and `floats.omod`
    after `fn`.
    `ignores_exec`: written whatever EXEC is (v_writelane, v_readlane, v_readfirstlane).
    """

    dst: tuple[str, ...]
    src: tuple[str, ...]
    fn: Callable[..., Any]
    reads_dst: bool = False
    needs: tuple[str, ...] = ()
    saturating: Callable[..., Any] | None = None
    ignores_exec: bool = False

    def __post_init__(self) -> None:
        unknown = [name for name in (*self.dst, *self.src) if name not in OPERAND_TYPES]
        unknown += [name for name in self.needs if name not in NEEDS]
        if unknown:
            raise KeyError(f"not an operand type or a need: {unknown}")
