# SPDX-License-Identifier: Apache-2.0
"""Sweeps over a plan's accesses: their byte segments, how deep each launch is, and who must wait for whom.

Nopython code: takes numpy columns and returns numpy columns; knows byte segments by number and launches by index, never
a buffer, a kernel, a family or a packet. Where fences go is `stabbing.py`'s. Imports nothing of ours: numba caches by
this file's content alone and would not notice an edit elsewhere.

Every question is of one form: which is the latest earlier launch that touched any of these segments? Segment trees
answer it: one for each run of segments that accesses join, so that bytes always touched as a whole cost one node. Two
ranges overlap exactly when one begins inside the other. So a node keeps `begun`, the largest value given to a range
that begins inside it, and `whole`, the largest given to a range that covers it, both over all accesses and over writes.
Values only grow along a sweep, so a maximum forgets nothing that matters: whoever is ordered behind the latest
conflicting launch is ordered behind the earlier ones by way of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# What one access does, as bits. A read through none of K, V and P is done at L2.
READS_K, READS_V, READS, WRITES, READS_P = 1, 2, 4, 8, 16

# The numbers of a tree's node; those of writes stand _WRITTEN behind those of all accesses.
_BEGUN, _WHOLE, _WRITTEN = 0, 1, 2

_compiled = njit(cache=True, error_model="numpy", nogil=True)
_inlined = njit(inline="always", error_model="numpy")


@_inlined
def _slot_of(point, mask):  # type: ignore[no-untyped-def]
    """Where a table of mask + 1 slots looks for a point first. No product reaches 2**63, as numpy wants it."""
    mixed = (point & 0x7FFFFFFF) * 0x9E3779B1 ^ (point >> 31) * 0x5851F42D
    return (mixed >> 24) & mask


@_compiled
def number_points(memory, start, stop, bases):  # type: ignore[no-untyped-def]
    """The distinct end points of all accesses, and which of these each access begins and ends at: (points, ends).

    Points are int64 in order of appearance, absolute: `bases` holds the place of each memory. `ends` is int32 (2, k).
    Hashing costs less than sorting all of them: most accesses touch ranges that others touched before.
    """
    ends = np.empty((2, len(memory)), np.int32)
    points = np.empty(2048, np.int64)
    table = np.full(2 * len(points), -1, np.int32)
    known = 0
    for k in range(len(memory)):
        for end in range(2):
            point = bases[memory[k]] + (stop[k] if end else start[k])
            slot = _slot_of(point, len(table) - 1)
            while table[slot] >= 0 and points[table[slot]] != point:
                slot = (slot + 1) & (len(table) - 1)
            if table[slot] < 0:
                if known == len(points):
                    points = np.concatenate((points, np.empty_like(points)))
                    table = np.full(2 * len(points), -1, np.int32)
                    for at in range(known):
                        slot = _slot_of(points[at], len(table) - 1)
                        while table[slot] >= 0:
                            slot = (slot + 1) & (len(table) - 1)
                        table[slot] = at
                    slot = _slot_of(point, len(table) - 1)
                    while table[slot] >= 0:
                        slot = (slot + 1) & (len(table) - 1)
                table[slot] = known
                points[known] = point
                known += 1
            ends[end, k] = table[slot]
    return points[:known].copy(), ends


@_compiled
def plant(low, high, segments):  # type: ignore[no-untyped-def]
    """A tree for each run of segments that accesses join: (spans, nodes).

    `spans` is int32 (k, 3): the node that an access's tree begins behind, and the leaves [left, right) that it covers,
    counted from there. A tree has as many leaves as the run has segments, rounded up to a power of two, and its leaves
    begin at that number; `nodes` is what all trees take together. A run of one segment takes one node.
    """
    joined = np.zeros(segments + 1, np.int32)
    for k in range(len(low)):
        if high[k] - low[k] > 1:
            joined[low[k]] += 1
            joined[high[k] - 1] -= 1
    trees, leaf = np.empty(segments, np.int32), np.empty(segments, np.int32)
    nodes, first, depth = 0, 0, 0
    for at in range(segments):
        depth += joined[at]
        if depth == 0:  # nothing joins this segment to the next one: the run ends here
            leaves = 1
            while leaves < at + 1 - first:
                leaves *= 2
            for segment in range(first, at + 1):
                trees[segment], leaf[segment] = nodes, leaves + segment - first
            nodes += 2 * leaves - 1
            first = at + 1
    spans = np.empty((len(low), 3), np.int32)
    for k in range(len(low)):
        spans[k, 0], spans[k, 1], spans[k, 2] = trees[low[k]], leaf[low[k]], leaf[high[k] - 1] + 1
    return spans, nodes + 1


@_inlined
def _raise(forest, span, value, writes):  # type: ignore[no-untyped-def]
    """Give `value` to the segments of a span; also among the writes, if it is one."""
    tree, left, right = np.int64(span[0]), np.int64(span[1]), np.int64(span[2])
    for column in range(0, 2 * _WRITTEN if writes else _WRITTEN, _WRITTEN):
        at = left
        while at > 0 and forest[tree + at, column + _BEGUN] < value:
            forest[tree + at, column + _BEGUN] = value
            at >>= 1
    while left < right:
        if left & 1:
            _cover(forest[tree + left], value, writes)
            left += 1
        if right & 1:
            right -= 1
            _cover(forest[tree + right], value, writes)
        left >>= 1
        right >>= 1


@_inlined
def _cover(node, value, writes):  # type: ignore[no-untyped-def]
    node[_WHOLE] = max(node[_WHOLE], value)
    if writes:
        node[_WRITTEN + _WHOLE] = max(node[_WRITTEN + _WHOLE], value)


@_inlined
def _latest(forest, span, column):  # type: ignore[no-untyped-def]
    """The largest value given to any of the segments of a span, by any access or (_WRITTEN) by a write; -1 for none."""
    found = -1
    tree, left, right = np.int64(span[0]), np.int64(span[1]), np.int64(span[2])
    at = left
    while at > 0:
        found = max(found, forest[tree + at, column + _WHOLE])
        at >>= 1
    while left < right:
        if left & 1:
            found = max(found, forest[tree + left, column + _BEGUN])
            left += 1
        if right & 1:
            right -= 1
            found = max(found, forest[tree + right, column + _BEGUN])
        left >>= 1
        right >>= 1
    return found


@_inlined
def _forest(nodes):  # type: ignore[no-untyped-def]
    return np.full((nodes, 2 * _WRITTEN), -1, np.int32)


@_compiled
def find_levels(starts, spans, does, after_starts, after, nodes, at_least):  # type: ignore[no-untyped-def]
    """Hazard depth of each launch, int32 by recorded index: edges on the longest chain that ends in it.

    `starts` (n + 1) delimits each launch's accesses in `spans` and `does`; `after_starts` and `after` its explicit
    predecessors. `spans` and `nodes` are `plant`'s. `at_least` raises single launches.
    """
    forest = _forest(nodes)
    n = len(starts) - 1
    levels = np.empty(n, np.int32)
    for i in range(n):
        level = at_least[i]
        for k in range(after_starts[i], after_starts[i + 1]):
            level = max(level, levels[after[k]] + 1)
        for k in range(starts[i], starts[i + 1]):
            column = 0 if does[k] & WRITES else _WRITTEN
            level = max(level, _latest(forest, spans[k], column) + 1)
        levels[i] = level
        for k in range(starts[i], starts[i + 1]):
            _raise(forest, spans[k], level, does[k] & WRITES != 0)
    return levels


@_compiled
def sort_by_level(levels):  # type: ignore[no-untyped-def]
    """The launches by level, those of one level as recorded: int64 recorded indices."""
    begins = np.zeros(levels.max() + 2, np.int64)
    for level in levels:
        begins[level + 1] += 1
    for level in range(1, len(begins)):
        begins[level] += begins[level - 1]
    order = np.empty(len(levels), np.int64)
    for i in range(len(levels)):
        order[begins[levels[i]]] = i
        begins[levels[i]] += 1
    return order


@_compiled
def find_needs(order, rounds, starts, spans, does, after_starts, after, nodes):  # type: ignore[no-untyped-def]
    """What each launch of the last of `rounds` rounds of `order` needs, int32 (4, n) by position in the order.

    Row 0: the latest earlier position that it must wait for. Rows 1 to 3: the latest that wrote what it reads through
    K, through V and through P. Positions count on from round to round; -1 is none. `order` may be a part of the
    launches that no `after` leaves.
    """
    forest = _forest(nodes)
    n = len(order)
    position = np.empty(len(starts) - 1, np.int32)
    for p in range(n):
        position[order[p]] = p
    needs = np.empty((4, n), np.int32)
    for time in range(rounds * n):
        p = time % n
        i = order[p]
        waits = reads_k = reads_v = reads_p = -1
        for k in range(after_starts[i], after_starts[i + 1]):
            waits = max(waits, time - p + position[after[k]])
        for k in range(starts[i], starts[i + 1]):
            what = does[k]
            column = 0 if what & WRITES else _WRITTEN
            found = _latest(forest, spans[k], column)
            waits = max(waits, found)
            if what & (READS_K | READS_V | READS_P):
                writer = found if column else _latest(forest, spans[k], _WRITTEN)
                if what & READS_K:
                    reads_k = max(reads_k, writer)
                if what & READS_V:
                    reads_v = max(reads_v, writer)
                if what & READS_P:
                    reads_p = max(reads_p, writer)
        needs[0, p], needs[1, p], needs[2, p], needs[3, p] = waits, reads_k, reads_v, reads_p
        for k in range(starts[i], starts[i + 1]):
            _raise(forest, spans[k], time, does[k] & WRITES != 0)
    return needs


@_compiled
def find_conflicts(asked, present, starts, spans, does, nodes):  # type: ignore[no-untyped-def]
    """Which launches of the mask `asked` conflict with any of the mask `present`: a mask of all launches."""
    forest = _forest(nodes)
    n = len(starts) - 1
    for i in range(n):
        if present[i]:
            for k in range(starts[i], starts[i + 1]):
                _raise(forest, spans[k], 0, does[k] & WRITES != 0)
    found = np.zeros(n, np.bool_)
    for i in range(n):
        if asked[i]:
            for k in range(starts[i], starts[i + 1]):
                if _latest(forest, spans[k], 0 if does[k] & WRITES else _WRITTEN) >= 0:
                    found[i] = True
    return found


@_compiled
def find_neighbours(starts, low, high, does, segments):  # type: ignore[no-untyped-def]
    """Pairs of launches with a conflict that no third launch stands between: (first, second), sorted by second.

    Each segment remembers its last writer and the readers since; a pair is named once, whatever it conflicts on. A
    chain of such pairs joins any two launches that conflict.
    """
    n = len(starts) - 1
    writer = np.full(segments, -1, np.int32)
    # The readers of a segment since its last write as a list: the newest is at newest[segment], others behind it.
    newest = np.full(segments, -1, np.int64)
    behind, reader = np.empty(1024, np.int64), np.empty(1024, np.int32)
    read = found = 0
    pairs = np.empty((1024, 2), np.int32)
    paired = np.full(n, -1, np.int32)  # the latest second that a first was paired with
    for i in range(n):
        for writes in (False, True):  # a launch's own reads come before its writes
            for k in range(starts[i], starts[i + 1]):
                if (does[k] & WRITES != 0) != writes:
                    continue
                for at in range(low[k], high[k]):
                    others = newest[at] if writes else -1
                    other = writer[at] if others < 0 else reader[others]
                    while other >= 0:
                        if other != i and paired[other] != i:
                            paired[other] = i
                            if found == len(pairs):
                                pairs = np.concatenate((pairs, np.empty_like(pairs)))
                            pairs[found, 0], pairs[found, 1] = other, i
                            found += 1
                        others = behind[others] if others >= 0 else -1
                        other = reader[others] if others >= 0 else -1
                    if writes:
                        writer[at], newest[at] = i, -1
                    elif newest[at] < 0 or reader[newest[at]] != i:
                        if read == len(reader):
                            behind = np.concatenate((behind, np.empty_like(behind)))
                            reader = np.concatenate((reader, np.empty_like(reader)))
                        behind[read], reader[read], newest[at] = newest[at], i, read
                        read += 1
    return pairs[:found].copy()


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
