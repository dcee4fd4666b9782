# SPDX-License-Identifier: Apache-2.0
"""The fewest points that serve a set of intervals, on a line or on a circle: where drains and acquires stand.

Nopython code: takes numpy columns and returns numpy columns; knows positions and indices of fences, never a launch or a
byte. Which intervals there are is `sweep.py`'s. Imports nothing of ours: numba caches by this file's content alone and
would not notice an edit elsewhere.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_compiled = njit(cache=True, error_model="numpy", nogil=True)


@_compiled
def find_spans(writers, at, drains, turns):  # type: ignore[no-untyped-def]
    """Which fences may acquire what launches read: (low, high), int32 (n, rows) of indices into `at`, low -1 for none.

    `writers` (rows, n) are rows of `sweep.find_needs` with `turns` rounds; fence j stands before position at[j] of each
    round, behind a drain if drains[j]. The first is behind the first drain after the write, the last before the read.
    Indices count on past the end, low < len(at).
    """
    rows, n = writers.shape
    points = len(at)
    stood = np.zeros(turns * n, np.int32)  # fences up to a time
    drained = np.zeros(turns * n, np.int32)  # the first drain behind a time
    for turn in range(turns):
        for j in range(points):
            stood[turn * n + at[j]] = 1
            drained[turn * n + at[j]] = turn * points + j if drains[j] else -1
    for time in range(1, turns * n):
        stood[time] += stood[time - 1]
    nearest = 0
    for time in range(turns * n - 1, -1, -1):
        own = drained[time]
        fenced = stood[time] > (stood[time - 1] if time else 0)
        drained[time] = nearest
        if fenced and own >= 0:
            nearest = own
    low, high = np.full((n, rows), -1, np.int32), np.full((n, rows), -1, np.int32)
    for p in range(n):
        for row in range(rows):
            if writers[row, p] >= 0:
                first = drained[writers[row, p]]
                turned = points if first >= points else 0
                low[p, row] = first - turned
                high[p, row] = stood[(turns - 1) * n + p] - 1 - turned
    return low, high


@_compiled
def find_spans_among(low, high, chosen, points):  # type: ignore[no-untyped-def]
    """The same intervals as indices into the `chosen` ones of the `points` fences, each of which holds one at least."""
    below = np.zeros(points + 1, np.int32)  # chosen ones before each fence
    for index in chosen:
        below[index + 1] = 1
    for at in range(points):
        below[at + 1] += below[at]
    found_low, found_high = np.full_like(low, -1), np.full_like(high, -1)
    for p in range(low.shape[0]):
        for row in range(low.shape[1]):
            if low[p, row] >= 0:
                first, last, turn = low[p, row], high[p, row], 0
                if last >= points:
                    last, turn = last - points, len(chosen)
                found_low[p, row] = below[first]
                found_high[p, row] = below[last + 1] + turn - 1
                if found_low[p, row] == len(chosen):
                    found_low[p, row] -= len(chosen)
                    found_high[p, row] -= len(chosen)
    return found_low, found_high


@_compiled
def stab_line(low, high, points):  # type: ignore[no-untyped-def]
    """The fewest of the numbers 0 to points - 1 such that every interval [low, high] holds one: a mask.

    Intervals come sorted by `high`; one with low < 0 asks for nothing. Each number is the latest possible.
    """
    chosen = np.zeros(points, np.bool_)
    last = -1
    for k in range(len(low)):
        if low[k] >= 0 and low[k] > last:
            last = high[k]
            chosen[last] = True
    return chosen


@_compiled
def stab_circle(low, high, points, forced):  # type: ignore[no-untyped-def]
    """The same on a circle of `points` numbers: intervals run from low to high, counted on past the end, low < points.

    `forced` is a number that must be chosen, or -1. A greedy walk from every number of the shortest interval finds the
    fewest; the walks get shorter as that interval gets longer, so all of them together are linear.
    """
    chosen = np.zeros(points, np.bool_)
    if points == 0:
        return chosen
    # The nearest end of any interval that begins at or behind a number, over two turns.
    ends = np.full(2 * points + 1, 4 * points, np.int64)
    shortest = -1
    for k in range(len(low)):
        if low[k] < 0:
            continue
        length = high[k] - low[k]
        if shortest < 0 or length < high[shortest] - low[shortest]:
            shortest = k
        for turn in range(2):
            ends[low[k] + turn * points] = min(ends[low[k] + turn * points], high[k] + turn * points)
    for at in range(2 * points - 1, -1, -1):
        ends[at] = min(ends[at], ends[at + 1])
    if shortest < 0 and forced < 0:
        return chosen
    first, tries = forced, 1
    if forced < 0:
        first, tries = high[shortest], min(high[shortest] - low[shortest] + 1, points)
    best, fewest = first, 4 * points
    for k in range(tries):  # from the latest number on, so that equals keep the latest
        start = (first - k) % points
        count, at = 1, start
        while ends[at + 1] < start + points and count < fewest:
            at = ends[at + 1]
            count += 1
        if count < fewest:
            best, fewest = start, count
    at = best
    chosen[at % points] = True
    while ends[at + 1] < best + points:
        at = ends[at + 1]
        chosen[at % points] = True
    return chosen
