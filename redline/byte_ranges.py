# SPDX-License-Identifier: Apache-2.0
"""Sets of byte addresses as sorted, disjoint, half-open ranges: union, difference, what lies inside, how many bytes.

A set is an int64 array of shape (ranges, 2), start and stop in each row, no two rows touching. Knows no buffers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ranges = NDArray[np.int64]

EMPTY: Ranges = np.zeros((0, 2), np.int64)


def merged(parts: Iterable[Ranges]) -> Ranges:
    """The union of ranges in any order.

    >>> merged([np.array([[8, 12], [0, 4]]), np.array([[4, 6]])]).tolist()
    [[0, 6], [8, 12]]
    """
    rows = np.concatenate([EMPTY, *parts])
    rows = rows[rows[:, 0] < rows[:, 1]]
    if not len(rows):
        return EMPTY
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    reach = np.maximum.accumulate(rows[:, 1])
    first = np.concatenate([[True], rows[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([rows[first, 0], reach[last]], axis=1)


def inside(ranges: Ranges, start: int, stop: int) -> Ranges:
    """The part of a set in [start, stop).

    >>> inside(np.array([[0, 6], [8, 12]]), 4, 10).tolist()
    [[4, 6], [8, 10]]
    """
    cut = np.clip(ranges, start, stop)
    return cut[cut[:, 0] < cut[:, 1]]


def without(ranges: Ranges, removed: Ranges) -> Ranges:
    """The part of a set that is not in another.

    >>> without(np.array([[0, 10]]), np.array([[2, 4], [8, 20]])).tolist()
    [[0, 2], [4, 8]]
    """
    if not len(ranges) or not len(removed):
        return ranges
    # Every point where membership changes, as pieces between neighbours; kept are those in the one and not the other.
    points = np.unique(np.concatenate([ranges.ravel(), removed.ravel()]))
    low = points[:-1]
    kept = contains(ranges, low) & ~contains(removed, low)
    return merged([np.stack([low, points[1:]], axis=1)[kept]])


def contains(ranges: Ranges, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each address, whether it is in the set.

    >>> contains(np.array([[0, 6], [8, 12]]), np.array([5, 6, 8])).tolist()
    [True, False, True]
    """
    if not len(ranges):
        return np.zeros(len(places), np.bool_)
    at = np.searchsorted(ranges[:, 0], places, side="right") - 1
    found: NDArray[np.bool_] = (at >= 0) & (places < ranges[np.maximum(at, 0), 1])
    return found


def touching(ranges: Ranges, starts: NDArray[np.int64], nbytes: int) -> NDArray[np.bool_]:
    """For each start, whether any of the `nbytes` bytes from it on is in the set.

    >>> touching(np.array([[4, 6]]), np.array([0, 1, 6]), 4).tolist()
    [False, True, False]
    """
    if not len(ranges):
        return np.zeros(len(starts), np.bool_)
    at = np.searchsorted(ranges[:, 1], starts, side="right")
    row = np.minimum(at, len(ranges) - 1)
    found: NDArray[np.bool_] = (at < len(ranges)) & (ranges[row, 0] < starts + nbytes)
    return found


def count(ranges: Ranges) -> int:
    """How many bytes a set has."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())
