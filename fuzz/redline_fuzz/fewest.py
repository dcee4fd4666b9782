# SPDX-License-Identifier: Apache-2.0
"""Whether fewer drains, acquire packets or classes would do, by trying all that are one fewer.

`oracles.minimal` takes single things away; this moves what is left too. Drains are counted from what launches touch
alone; `verify`, which shares no code with the derivation, says whether fewer packets or classes are safe. Rules keep
what stands at entry; it is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import redline as rl
from redline.fences import Fence, Fences, all_classes
from redline_fuzz.cases import Case
from redline_fuzz.judging import Judged, conflicts, longest_chain

#: Launches whose legal orders are all tried.
_EVERY_ORDER_OF = 5


def fewest(judged: Judged) -> str | None:
    """No fences with fewer drains, then fewer packets, then fewer classes are safe for this order; nor, where the
    schedule chose it, for another.
    """
    if judged.case.fences == "full":
        return None
    return _fewer_drains(judged) or _fewer_packets(judged) or _fewer_classes(judged)


def _fewer_drains(judged: Judged) -> str:
    case, fences = judged.case, judged.fences
    loop = case.boundary == "queue"
    count = fences.drains - (case.boundary == "other-queue")  # that rule's drain stands at entry, whatever launches do
    if _serves(_spans(case, judged.plan.order, loop=loop), len(case.nodes), count - 1, loop=loop):
        return f"{count - 1} drains serve this order, not {count}"
    chosen = case.schedule == "levels" and loop and count > longest_chain(case)
    for order in _orders(case) if chosen else ():
        if _serves(_spans(case, order, loop=loop), len(order), count - 1, loop=loop):
            return f"{count - 1} drains serve the order {order}, not {count}"
    return ""


def _orders(case: Case) -> Iterator[tuple[int, ...]]:
    """All that keep conflicts as recorded and every `after=`."""
    if len(case.nodes) > _EVERY_ORDER_OF:
        return
    edges = {*conflicts(case), *((first, at) for at, node in enumerate(case.nodes) for first in node.after)}
    for order in permutations(range(len(case.nodes))):
        if all(order.index(first) < order.index(second) for first, second in edges):
            yield order


def _spans(case: Case, order: Sequence[int], *, loop: bool) -> set[int]:
    """Masks of positions, in one of which a drain must stand: behind the first launch and not behind the second."""
    count, at = len(order), {index: place for place, index in enumerate(order)}
    touching = set(conflicts(case))
    within = touching | {(first, second) for second, node in enumerate(case.nodes) for first in node.after}
    pairs = [(at[a], at[b]) for a, b in within]
    if loop:
        pairs += [(at[b], count + at[a]) for a, b in touching]
        writers = (
            index for index, node in enumerate(case.nodes) if any(t.writes for t in (*node.touches, *node.extra))
        )
        pairs += [(at[index], count + at[index]) for index in writers]
    return {sum(1 << place for place in {p % count for p in range(a + 1, b + 1)}) for a, b in pairs}


def _serves(spans: set[int], positions: int, drains: int, *, loop: bool) -> bool:
    """Whether some choice of so many positions meets every span."""
    if drains < 0:
        return False
    needed = [span for span in spans if not any(other & span == other for other in spans - {span})]
    places = [1 << place for place in range(0 if loop else 1, positions)]
    return any(all(sum(chosen) & span for span in needed) for chosen in combinations(places, drains))


def _fewer_packets(judged: Judged) -> str:
    """Whether one packet fewer is enough, behind the same drains and each for every class."""
    fences, every = judged.fences, all_classes(judged.plan)
    kept = [fence.at for fence in fences.inner if fence.rule and fence.acquire]
    free = [fence.at for fence in fences.inner if fence.drain and fence.at not in kept]
    fewer = fences.acquires - len(kept) - 1
    for chosen in combinations(free, fewer) if fewer >= 0 else ():
        if _is_safe(judged, dict.fromkeys((*kept, *chosen), every)):
            return f"{fewer} acquires serve, before {chosen}, not {fewer + 1}"
    return ""


def _fewer_classes(judged: Judged) -> str:
    """Whether a class is needed in one packet fewer of those there are."""
    inner = judged.fences.inner
    for name in all_classes(judged.plan):
        rest = {fence.at: tuple(other for other in fence.acquire if other != name) for fence in inner}
        kept = [fence.at for fence in inner if fence.rule and name in fence.acquire]
        packets = [fence.at for fence in inner if fence.acquire and fence.at not in kept]
        fewer = sum(name in fence.acquire for fence in inner) - len(kept) - 1
        for chosen in combinations(packets, fewer) if fewer >= 0 else ():
            if _is_safe(judged, rest | {at: (*rest[at], name) for at in (*kept, *chosen)}):
                return f"{name} is needed {fewer} times, before {chosen}, not {fewer + 1}"
    return ""


def _is_safe(judged: Judged, acquires: dict[int, tuple[str, ...]]) -> bool:
    """Whether `verify` believes the same drains with these classes behind them."""
    changed = [Fence(fence.at, acquires.get(fence.at, ()), fence.drain, fence.rule) for fence in judged.fences.inner]
    return not rl.verify(judged.plan, Fences([fence for fence in changed if fence.drain or fence.acquire]))
