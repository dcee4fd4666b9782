# SPDX-License-Identifier: Apache-2.0
"""Sweeps over a plan's accesses: who must wait for whom, and the fewest points that serve a set of intervals.

All nopython code of the planner. Takes numpy columns and returns numpy columns; knows byte segments by number and
launches by index, never a buffer, a kernel, a family or a packet. Imports nothing of ours: numba caches by this file's
content alone and would not notice an edit elsewhere.

Every question is of one form: which is the latest earlier launch that touched any of these segments? Two segment trees
answer it, one over all accesses and one over writes. A node's `most` is the largest value given to any range inside it,
its `whole` the largest given to a range that covers it. Values only grow along a sweep, so a maximum forgets nothing
that matters: whoever is ordered behind the latest conflicting launch is ordered behind the earlier ones by way of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# What one access does, as bits. A read without K and V is done at L2.
READS_K, READS_V, READS, WRITES = 1, 2, 4, 8

_compiled = njit(cache=True, error_model="numpy", nogil=True)
_inlined = njit(inline="always", error_model="numpy")


@_inlined
def _raise(most, whole, leaves, low, high, value):  # type: ignore[no-untyped-def]
    """Give `value` to the segments [low, high)."""
    left, right = low + leaves, high + leaves
    while left < right:
        if left & 1:
            whole[left] = max(whole[left], value)
            left += 1
        if right & 1:
            right -= 1
            whole[right] = max(whole[right], value)
        left >>= 1
        right >>= 1
    # Nodes on the two paths up either lie inside the range or hold a part of it: for both, `most` is at least `value`.
    for end in (low + leaves, high - 1 + leaves):
        at = end
        while at > 0 and most[at] < value:
            most[at] = value
            at >>= 1


@_inlined
def _latest(most, whole, leaves, low, high):  # type: ignore[no-untyped-def]
    """The largest value given to any of the segments [low, high); -1 when none was."""
    found = -1
    left, right = low + leaves, high + leaves
    while left < right:
        if left & 1:
            found = max(found, most[left], whole[left])
            left += 1
        if right & 1:
            right -= 1
            found = max(found, most[right], whole[right])
        left >>= 1
        right >>= 1
    for end in (low + leaves, high - 1 + leaves):
        at = end
        while at > 0:
            found = max(found, whole[at])
            at >>= 1
    return found


@_inlined
def _trees(leaves):  # type: ignore[no-untyped-def]
    return np.full((4, 2 * leaves), -1, np.int32)


@_compiled
def find_levels(starts, low, high, does, after_starts, after, leaves, at_least):  # type: ignore[no-untyped-def]
    """Hazard depth of each launch, int32 by recorded index: edges on the longest chain that ends in it.

    `starts` (n + 1) delimits each launch's accesses in `low`, `high`, `does`; `after_starts` and `after` its explicit
    predecessors. `leaves` is a power of two, at least the number of segments. `at_least` raises single launches.
    """
    trees = _trees(leaves)
    n = len(starts) - 1
    levels = np.empty(n, np.int32)
    for i in range(n):
        level = at_least[i]
        for k in range(after_starts[i], after_starts[i + 1]):
            level = max(level, levels[after[k]] + 1)
        for k in range(starts[i], starts[i + 1]):
            row = 0 if does[k] & WRITES else 2
            level = max(level, _latest(trees[row], trees[row + 1], leaves, low[k], high[k]) + 1)
        levels[i] = level
        for k in range(starts[i], starts[i + 1]):
            _raise(trees[0], trees[1], leaves, low[k], high[k], level)
            if does[k] & WRITES:
                _raise(trees[2], trees[3], leaves, low[k], high[k], level)
    return levels


@_compiled
def find_needs(order, rounds, starts, low, high, does, after_starts, after, leaves):  # type: ignore[no-untyped-def]
    """What each launch of the last of `rounds` rounds of `order` needs, int32 (3, n) by position in the order.

    Row 0: the latest earlier position that it must wait for. Rows 1 and 2: the latest that wrote what it reads through
    K and through V. Positions count on from round to round; -1 is none.
    """
    trees = _trees(leaves)
    n = len(order)
    position = np.empty(n, np.int32)
    for p in range(n):
        position[order[p]] = p
    needs = np.full((3, n), -1, np.int32)
    for time in range(rounds * n):
        p = time % n
        i = order[p]
        needs[:, p] = -1
        for k in range(after_starts[i], after_starts[i + 1]):
            needs[0, p] = max(needs[0, p], time - p + position[after[k]])
        for k in range(starts[i], starts[i + 1]):
            what = does[k]
            row = 0 if what & WRITES else 2
            found = _latest(trees[row], trees[row + 1], leaves, low[k], high[k])
            needs[0, p] = max(needs[0, p], found)
            if what & (READS_K | READS_V):
                writer = found if row == 2 else _latest(trees[2], trees[3], leaves, low[k], high[k])
                if what & READS_K:
                    needs[1, p] = max(needs[1, p], writer)
                if what & READS_V:
                    needs[2, p] = max(needs[2, p], writer)
        for k in range(starts[i], starts[i + 1]):
            _raise(trees[0], trees[1], leaves, low[k], high[k], time)
            if does[k] & WRITES:
                _raise(trees[2], trees[3], leaves, low[k], high[k], time)
    return needs


@_compiled
def find_conflicts(asked, present, starts, low, high, does, leaves):  # type: ignore[no-untyped-def]
    """Which launches of the mask `asked` conflict with any of the mask `present`: a mask of all launches."""
    trees = _trees(leaves)
    n = len(starts) - 1
    for i in range(n):
        if present[i]:
            for k in range(starts[i], starts[i + 1]):
                _raise(trees[0], trees[1], leaves, low[k], high[k], 0)
                if does[k] & WRITES:
                    _raise(trees[2], trees[3], leaves, low[k], high[k], 0)
    found = np.zeros(n, np.bool_)
    for i in range(n):
        if asked[i]:
            for k in range(starts[i], starts[i + 1]):
                row = 0 if does[k] & WRITES else 2
                if _latest(trees[row], trees[row + 1], leaves, low[k], high[k]) >= 0:
                    found[i] = True
    return found


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


@_compiled
def reach(first, second, after_starts, after):  # type: ignore[no-untyped-def]
    """For each pair: does a chain of `after=` lead from `first` to `second`? Pairs come sorted by `first`.

    64 pairs at a time go forward through the launches between them, one bit each.
    """
    found = np.zeros(len(first), np.bool_)
    masks = np.zeros(len(after_starts), np.uint64)
    for begin in range(0, len(first), 64):
        end = min(begin + 64, len(first))
        start, stop = first[begin], second[begin]
        for k in range(begin, end):
            stop = max(stop, second[k])
        masks[start : stop + 1] = 0
        for k in range(begin, end):
            masks[first[k]] |= np.uint64(1) << np.uint64(k - begin)
        for i in range(start, stop + 1):
            for k in range(after_starts[i], after_starts[i + 1]):
                if after[k] >= start:
                    masks[i] |= masks[after[k]]
        for k in range(begin, end):
            found[k] = (masks[second[k]] >> np.uint64(k - begin)) & np.uint64(1) != 0
    return found
