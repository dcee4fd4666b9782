# SPDX-License-Identifier: Apache-2.0
"""How the hostile machine chooses among what is legal: who runs first, how stale a read is, what L2 keeps.

A schedule is a value, so that a run can be repeated. Dispatches with no drain between them may run in any order; a
schedule orders them by their places in a replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import factorial
from random import Random

#: Dispatches without a drain between them that are tried in every order; more are tried in some.
EVERY_ORDER_OF = 4


@dataclass(frozen=True)
class Schedule:
    """`stale`: which legal value a read returns. `keeps`: L2 keeps what it holds. `early`: dispatches run at once.

    `first`: pairs (late, early) of places: where both run undrained, the second runs before the first. `permutation`
    numbers an order of up to four; `seed` draws orders, values and an interleaving byte by byte.
    """

    stale: str = "oldest"
    keeps: bool = True
    early: bool = False
    reverse: bool = False
    pair: tuple[int, int] | None = None
    permutation: int = 0
    seed: int | None = None

    def order(self, places: Sequence[int], random: Random) -> list[int]:
        """Indices of undrained dispatches, issued from these places of a replay, in the order in which they run."""
        indices = list(range(len(places)))
        if self.seed is not None:
            random.shuffle(indices)
        if self.permutation and len(indices) <= EVERY_ORDER_OF:
            indices = _permuted(indices, self.permutation % factorial(len(indices)))
        if self.pair is not None:
            indices = _swapped(indices, places, self.pair)
        return indices[::-1] if self.reverse else indices


def _permuted(items: list[int], number: int) -> list[int]:
    """The permutation of this number, in lexicographic order."""
    left, chosen = list(items), []
    for size in range(len(items), 0, -1):
        at, number = divmod(number, factorial(size - 1))
        chosen.append(left.pop(at))
    return chosen


def _swapped(indices: list[int], places: Sequence[int], pair: tuple[int, int]) -> list[int]:
    """The later of two places moved in front of the earlier."""
    if pair[0] not in places or pair[1] not in places:
        return indices
    before = places.index(pair[0])
    behind = len(places) - 1 - places[::-1].index(pair[1])
    if behind <= before:
        return indices
    kept = [index for index in indices if index != behind]
    kept.insert(kept.index(before), behind)
    return kept


def schedules(pairs: Sequence[tuple[int, int]], widest: int, least: int, seed: int) -> Iterator[Schedule]:
    """The schedules of one example: each adversary once, each pair reversed, every order of few, the rest random.

    `pairs` are places of a replay that conflict, `widest` the most dispatches that run undrained; at least `least`.
    """
    fixed = [*_adversaries(), *_reversed(pairs), *_orders(widest)]
    yield from fixed
    for number in range(max(least - len(fixed), 4)):
        yield Schedule(stale="random", keeps=number % 3 > 0, seed=seed + number)


def _adversaries() -> list[Schedule]:
    """Oldest and newest values, L2 that keeps or holds nothing, orders as issued, reversed and at once."""
    return [
        Schedule(stale, keeps, early, reverse)
        for stale in ("oldest", "newest")
        for keeps in (True, False)
        for early, reverse in ((False, True), (False, False), (True, False), (True, True))
    ]


def _reversed(pairs: Sequence[tuple[int, int]]) -> list[Schedule]:
    return [Schedule(stale, pair=pair) for pair in islice(pairs, 24) for stale in ("newest", "oldest")]


def _orders(widest: int) -> list[Schedule]:
    orders = factorial(min(widest, EVERY_ORDER_OF))
    return [Schedule("newest", permutation=number) for number in range(1, orders)]
