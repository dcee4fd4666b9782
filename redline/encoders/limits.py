# SPDX-License-Identifier: Apache-2.0
"""Limits of addresses and launch sizes that PM4, AQL and the linter share, checked with the numbers seen and allowed.

Does not know what one device allows per dimension: the agent says that, and who has an agent checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index

from redline.errors import EncodeError

BLOCK_LIMIT = 1024
WORK_ITEM_LIMIT = 0xFFFFFFFF
ADDRESS_LIMIT = 1 << 48
ENTRY_ALIGN = 256
KERNARG_ALIGN = 16
LDS_LIMIT_BYTES = 65536
LDS_UNIT_BYTES = 512  # of RSRC2.LDS_SIZE on gfx7 to gfx12: L 5888-5915

Size = tuple[int, int, int]


def check_address(where: str, address: int, align: int) -> None:
    """An address that the GPU can use: below ADDRESS_LIMIT and aligned."""
    if not 0 <= address < ADDRESS_LIMIT or address % align:
        raise EncodeError(
            "RL0505",
            where=where,
            seen=f"{address:#x}",
            allowed=f"below {ADDRESS_LIMIT:#x} and a multiple of {align}",
            do="give the address that the GPU sees",
        )


def three(where: str, sizes: int | Sequence[int]) -> Size:
    """One to three sizes of at least 1, padded with 1."""
    given = sizes if isinstance(sizes, Sequence) else (sizes,)
    try:
        values = (*(index(size) for size in given), 1, 1)
    except TypeError:
        values = (0,)
    if not 1 <= len(given) <= 3 or min(values) < 1:
        raise EncodeError(
            "RL0503",
            where=where,
            seen=str(sizes),
            allowed="one to three whole numbers, each at least 1",
            do="give a size for each dimension",
        )
    return values[0], values[1], values[2]


def geometry(name: str, global_size: int | Sequence[int], block: int | Sequence[int]) -> tuple[Size, Size]:
    """Work-items of the grid and of a workgroup in three dimensions, padded with 1."""
    size, group = three(f"{name}.global_size", global_size), three(f"{name}.block", block)
    if prod(size) > WORK_ITEM_LIMIT:
        raise EncodeError(
            "RL0503",
            where=f"{name}.global_size",
            seen=f"{size}: {prod(size)} work-items",
            allowed=f"at most {WORK_ITEM_LIMIT} in all",
            do="split the launch",
        )
    if prod(group) > BLOCK_LIMIT:
        raise EncodeError(
            "RL0504",
            where=f"{name}.block",
            seen=f"{group}: {prod(group)} work-items",
            allowed=f"at most {BLOCK_LIMIT}",
            do="use smaller workgroups",
        )
    return size, group
