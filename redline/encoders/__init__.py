# SPDX-License-Identifier: Apache-2.0
"""Tables of GPU families, and the words that they become.

- `families.py` lists the families; `gfx10.py`, `gfx11.py`, `gfx12.py`, `pm4.py` and `aql.py` hold their facts
  as data.
- `table.py` says what a fact is, packs and unpacks; `decode.py` turns words back into text from the same
  tables.
- `lint.py` and `lint_launch.py` ask whether a stream of any origin does what a stream must.
- `dispatch.py` checks a launch, `stream.py` is the low-level builder, `emit.py` writes whole programs in
  compiled code.

Imports nothing of Redline but `redline.errors`. Names are loaded at first use: reading a table loads no
compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redline.encoders.families import FAMILIES, TARGETS, family_for
    from redline.encoders.stream import DispatchWords, Pm4Stream
    from redline.encoders.table import FamilyTable

__all__ = ["FAMILIES", "TARGETS", "DispatchWords", "FamilyTable", "Pm4Stream", "family_for"]

_HOME = {
    "FAMILIES": "families",
    "TARGETS": "families",
    "family_for": "families",
    "FamilyTable": "table",
    "DispatchWords": "dispatch",
    "Pm4Stream": "stream",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
