# SPDX-License-Identifier: Apache-2.0
"""Fields of a plan that are tuples to whoever reads them and numpy columns to the planner, made when first asked for.

Holds no plan and decides nothing; `plan.py` says what the columns mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

#: A column as it may be given: as numbers, or as the call that makes it.
Given = Sequence[int] | NDArray[Any] | Callable[[], NDArray[Any]]


class Column:
    """A dataclass field of whole numbers. Given as a tuple, an array, or a call that returns one; read as a tuple.

    A tuple of 100,000 numbers costs more than deriving fences from the array, and most plans' are never read.
    """

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Column: ...
    @overload
    def __get__(self, owner: object, kind: type) -> tuple[int, ...]: ...
    def __get__(self, owner: object | None, kind: type) -> Column | tuple[int, ...]:
        if owner is None:
            raise AttributeError(self.name)  # so dataclasses see a field without a default
        kept = vars(owner)
        if not isinstance(kept[self.name], tuple):
            kept[self.name] = tuple(column(owner, self.name).tolist())
        found: tuple[int, ...] = kept[self.name]
        return found

    def __set__(self, owner: object, value: Given) -> None:
        vars(owner)[self.name] = value if callable(value) or isinstance(value, np.ndarray) else tuple(value)


def column(owner: object, name: str) -> NDArray[Any]:
    """The field as an array; made from the tuple if that is all there is."""
    kept = vars(owner)
    if callable(kept[name]):
        kept[name] = kept[name]()
    found: NDArray[Any] = np.asarray(kept[name])
    return found
