# SPDX-License-Identifier: Apache-2.0
"""What each example kernel takes, how it is launched, and how exact it is: one table.

The table repeats what the `.ll` files say, for programs: names and order of arguments, what is read and
written behind each pointer, the workgroup, and which scalar sizes the grid. It computes nothing;
`oracles.py` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Access = Literal["read", "write", "read_write"]
Dims = tuple[int, int, int]

# Against the oracle of the same kernel, relative, when v_rsq_f32 or v_exp_f32 is off by one unit in the
# last place: the factor changes by 2^-23, and each of the two to four roundings behind it may fall to the
# other side (2^-24 each).
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Argument:
    """One kernel argument.

    `type` is numpy's name (f4 = 32-bit float) of the scalar or, where `access` is set, of the element
    behind the pointer. V40 is `activate`'s struct.
    """

    name: str
    type: str
    access: Access | None = None


@dataclass(frozen=True)
class Spec:
    """One kernel as its users see it.

    `block` is the only workgroup it may be launched with, in work-items, None when any serves. `tiles` names for x, y
    and z the scalar argument that sizes the grid and the elements of it that one workgroup covers; None leaves the
    dimension to the caller (rows, batches, the box itself). `partial`: partial workgroups are legal. `tolerance` is 0
    for kernels whose result is fixed to the bit on every target.
    """

    name: str
    about: str
    block: Dims | None
    tiles: tuple[tuple[str, int] | None, tuple[str, int] | None, tuple[str, int] | None]
    partial: bool
    arguments: tuple[Argument, ...]
    tolerance: float = 0.0

    @property
    def exact(self) -> bool:
        """True when the result is fixed to the bit."""
        return self.tolerance == 0.0

    @property
    def pointers(self) -> tuple[Argument, ...]:
        """The arguments that are addresses."""
        return tuple(argument for argument in self.arguments if argument.access is not None)

    def groups(self, scalars: Mapping[str, int], free: Dims = (1, 1, 1)) -> Dims:
        """How many workgroups cover `scalars`; dimensions without a tile take their count from `free`.

        >>> from redline.kernels import SPECS
        >>> SPECS["matmul"].groups({"m": 1, "n": 100}, free=(1, 1, 2))
        (7, 1, 2)
        """
        x, y, z = (
            count if tile is None else max(1, -(-scalars[tile[0]] // tile[1]))
            for tile, count in zip(self.tiles, free, strict=True)
        )
        return x, y, z


def _arguments(text: str) -> tuple[Argument, ...]:
    """`"r f4 x, u4 n"` -> one pointer that is read and one scalar."""
    access: dict[str, Access] = {"r": "read", "w": "write", "rw": "read_write"}
    parts = [entry.split() for entry in text.split(",")]
    return tuple(Argument(part[-1], part[-2], access[part[0]] if len(part) == 3 else None) for part in parts)


_LIST = (
    Spec(
        "copy",
        "dst[i] = src[i], 32-bit words",
        (256, 1, 1),
        (("n", 256), None, None),
        True,
        _arguments("w u4 dst, r u4 src, u4 n"),
    ),
    Spec(
        "saxpy",
        "y[i] = a * x[i] + y[i], f32, one rounding",
        (128, 1, 1),
        (("n", 256), None, None),
        True,
        _arguments("rw f4 y, r f4 x, f4 a, u4 n"),
    ),
    Spec(
        "index3d",
        "a strided 3-D gather of 32-bit words into a dense array",
        (8, 4, 2),
        (("nx", 8), ("ny", 4), ("nz", 2)),
        True,
        _arguments("w u4 dst, r u4 src, u4 nx, u4 ny, u4 nz, u4 sx, u4 sy, u4 sz, u4 offset"),
    ),
    Spec(
        "fill",
        "a ramp and a constant behind it in a 3-D box; the grid is the box, its edges are partial workgroups",
        (16, 4, 2),
        (None, None, None),
        True,
        _arguments("w f4 dst, f4 value, f4 step, f4 rest, u4 limit, u4 pitch, u4 plane"),
    ),
    Spec(
        "argmax",
        "the greatest value of each row and its first index, by a tree in LDS",
        (256, 1, 1),
        (None, None, None),
        False,
        _arguments("w i4 index, w f4 value, r f4 src, u4 n, u4 pitch"),
    ),
    Spec(
        "transpose",
        "a matrix of 32-bit words transposed through tiles in LDS",
        (32, 8, 1),
        (("cols", 32), ("rows", 32), None),
        False,
        _arguments("w u4 dst, r u4 src, u4 rows, u4 cols, u4 src_pitch, u4 dst_pitch"),
    ),
    Spec(
        "matmul",
        "C = A x B in f32 through tiles in LDS, a batch along z",
        (16, 16, 1),
        (("n", 16), ("m", 16), None),
        False,
        _arguments(
            "w f4 c, r f4 a, r f4 b, u4 m, u4 n, u4 k, u4 lda, u4 ldb, u4 ldc,u4 batch_a, u4 batch_b, u4 batch_c"
        ),
    ),
    Spec(
        "rmsnorm",
        "each row divided by its root mean square and scaled by weights",
        (128, 1, 1),
        (None, None, None),
        False,
        _arguments("w f4 dst, r f4 src, r f4 weight, f4 eps, u4 n, u4 pitch"),
        TOLERANCE,
    ),
    Spec(
        "softmax",
        "the softmax of the first n columns of each row",
        (128, 1, 1),
        (None, None, None),
        False,
        _arguments("rw f4 dst, r f4 src, f4 scale, u4 n, u4 pitch"),
        TOLERANCE,
    ),
    Spec(
        "hash",
        "2^shift words of SplitMix64 for each 64-bit key",
        (64, 1, 1),
        (("n", 64), None, None),
        True,
        _arguments("w u8 dst, r u8 key, u8 seed, u4 n, u4 shift"),
    ),
    Spec(
        "axpy_f16",
        "y[i] = a * x[i] + y[i], f16, one rounding, two at a time",
        (64, 1, 1),
        (("n", 128), None, None),
        True,
        _arguments("rw f2 y, r f2 x, f2 a, u4 n"),
    ),
    Spec(
        "q8dot",
        "an int8 matrix times an int8 vector, scaled to f32",
        (64, 1, 1),
        (("rows", 64), None, None),
        True,
        _arguments("w f4 dst, r i1 weight, r i1 x, r f4 row_scale, f4 x_scale, u4 rows, u4 words"),
    ),
    Spec(
        "kv_write",
        "one row of keys and one of values written in place at a position",
        (64, 1, 1),
        (("width", 64), None, None),
        True,
        _arguments("w u4 k_cache, w u4 v_cache, r u4 k, r u4 v, u4 position, u4 width, u4 capacity"),
    ),
    Spec(
        "activate",
        "a clamped gate; parameters in a struct by value, extents from the hidden arguments",
        None,
        (None, None, None),
        True,
        _arguments("w f4 dst, r f4 src, r f2 gain, w u4 geometry, V40 params"),
    ),
)

#: Every example kernel by name: arguments, workgroup in work-items, exactness.
SPECS: dict[str, Spec] = {spec.name: spec for spec in _LIST}
