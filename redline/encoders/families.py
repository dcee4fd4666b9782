# SPDX-License-Identifier: Apache-2.0
"""The families that can be encoded, and the explicit list of their targets. An unknown name is refused, never
guessed.

To add a family: 1. copy the nearest `gfxNN.py`, change what differs and name the source of each change; 2. add it to
`FAMILIES`; 3. add its words from an outside source to `tests/answers`; 4. run the tests. No other file changes. Source
of each family's facts: its table's `source` (Mesa, Linux, tinygrad, IREE), `redline tables TARGET`.
"""

from __future__ import annotations

from redline.encoders.gfx10 import GFX10_1, GFX10_3
from redline.encoders.gfx11 import GFX11_0, GFX11_5
from redline.encoders.gfx12 import GFX12_0
from redline.encoders.table import FamilyTable
from redline.errors import UnsupportedTarget

#: Every table, one for each family of GPUs, oldest first.
FAMILIES: tuple[FamilyTable, ...] = (GFX10_1, GFX10_3, GFX11_0, GFX11_5, GFX12_0)
_BY_TARGET = {target: table for table in FAMILIES for target in table.targets}
#: Every name that `family_for` takes, in the order of their families.
TARGETS: tuple[str, ...] = tuple(_BY_TARGET)


def family_for(target: str) -> FamilyTable:
    """The table of a target's family. Raises UnsupportedTarget (RL0301) for a name that is not in `TARGETS`.

    >>> family_for("gfx1201").name
    'gfx12.0'
    """
    if target not in _BY_TARGET:
        raise UnsupportedTarget(
            "RL0301",
            where="target",
            seen=str(target),
            allowed=", ".join(TARGETS),
            do="choose a target of the list",
        )
    return _BY_TARGET[target]
