# SPDX-License-Identifier: Apache-2.0
"""What the proofs run over seeds: each judge returns "" or what is wrong, so that processes can hand it back."""

from __future__ import annotations

from random import Random

import redline as rl
from redline.fences import derive
from tests.exhaustive import FAMILIES, judge_small, random_graph, small_graphs
from tests.loops import judge_loop, random_loop
from tests.pairwise import is_safe
from tests.random_plans import FIVE, random_fences, random_plan, shuffled

#: Kinds of memory for which all families agree on what GL2 may hold; fine-grained memory differs on gfx12.
ALIKE = ("device", "host", "uncached")


def judge_verify(seed: int) -> str:
    """The product's check against the definition over all pairs: for derived fences, and for any other."""
    random = Random(seed)
    plan = random_plan(random)
    derived = derive(plan)
    if rl.verify(plan, derived) or not is_safe(plan, derived):
        return f"seed {seed}: derived fences are not safe"
    fences = random_fences(random, plan)
    if random.random() < 0.1:
        plan = shuffled(random, plan)
    product, definition = not rl.verify(plan, fences), is_safe(plan, fences)
    return "" if product == definition else f"seed {seed}: verify says {product}, the definition {definition}"


def judge_words(seed: int) -> str:
    """The check of fences against the check of the words that they are lowered to: the same findings."""
    random = Random(seed)
    target = random.choice(FIVE)
    plan = random_plan(random, target, ALIKE)
    fences, wait = random_fences(random, plan), random.choice(("fence", "partial_flush"))
    program = rl.lower(plan, fences, gfx10_wait=wait, elide=random.random() < 0.5)
    words = rl.verify_words(plan, program.words, target, ib=program.ibs[0], gfx10_wait=wait)
    return "" if words == rl.verify(plan, fences) else f"seed {seed}: {target} {fences.inner}: {words}"


def judge_loop_seed(seed: int) -> str:
    """One random loop against every order and every place for its fences."""
    wrong = judge_loop(random_loop(Random(seed)))
    return wrong and f"seed {seed}: {wrong}"


def judge_random_graph(seed: int) -> str:
    """One of all graphs of four launches over three ranges."""
    wrong = judge_small(random_graph(Random(seed), 4, 3))
    return wrong and f"seed {seed}: {wrong}"


def judge_family(part: tuple[int, int, int]) -> tuple[int, list[str]]:
    """(family, first, step): how many of its small graphs were judged, and what is wrong with them."""
    family, first, step = part
    launches, ranges, after = FAMILIES[family]
    count, found = 0, []
    for items in small_graphs(launches, ranges, after=after, first=first, step=step):
        wrong = judge_small(items)
        found += [f"{wrong}: {items}"] if wrong else []
        count += 1
    return count, found
