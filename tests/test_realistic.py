# SPDX-License-Identifier: Apache-2.0
"""The realistic graphs: fences as worked out by hand, safe, without anything to take away, and explained."""

from __future__ import annotations

import random
from functools import cache
from types import ModuleType

import pytest

import redline as rl
from redline.fences import Fences
from redline.reasons import reasons
from tests.exhaustive import weaker
from tests.realistic import cg, decode, vcycle
from tests.realistic.expected import Expected, HandFence

GRAPHS = (decode, cg, vcycle)
BOTH = pytest.mark.parametrize("boundary", ["host", "queue"])
EACH = pytest.mark.parametrize("module", GRAPHS, ids=lambda module: module.__name__.rpartition(".")[2])

#: Weaker fences that are tried on a graph: all of them where there are fewer.
TRIED = 40


@cache
def _plan(module: ModuleType, boundary: str) -> rl.Plan:
    plan: rl.Plan = module.record().compile(boundary=boundary)
    return plan


def _by_hand(module: ModuleType, boundary: str) -> tuple[Expected, tuple[HandFence, ...]]:
    if boundary == "host":
        return module.HOST, module.HOST_FENCES
    return module.QUEUE, module.QUEUE_FENCES


@BOTH
@EACH
def test_the_figures_are_those_worked_out_by_hand(module: ModuleType, boundary: str) -> None:
    """Launches, longest chain, drains, acquires by class, and what others would emit."""
    stats = _plan(module, boundary).stats()
    seen = Expected(
        drains=stats["drains"],
        acquires=stats["acquires"],
        k=stats["acquires_by_class"]["K"],
        v=stats["acquires_by_class"]["V"],
        full=stats["full"]["drains"],
        dependent=stats["per_dependent_launch"]["drains"],
    )
    assert (stats["launches"], stats["chain"]) == (module.LAUNCHES, module.CHAIN)
    assert seen == _by_hand(module, boundary)[0]


@BOTH
@EACH
def test_each_fence_is_the_one_worked_out_by_hand(module: ModuleType, boundary: str) -> None:
    """Before which launch, and which classes, one by one. A warm entry without a drain is the decoder's only."""
    plan = _plan(module, boundary)
    seen = tuple((plan.launches[plan.order[f.at]].label, "".join(f.acquire)) for f in plan.fences.inner)
    assert seen == _by_hand(module, boundary)[1]
    undrained = [f for f in plan.fences.inner if not f.drain]
    assert [f.rule for f in undrained] == (["patched-kernargs"] if (module, boundary) == (decode, "queue") else [])


@EACH
def test_drains_are_the_longest_chain(module: ModuleType) -> None:
    """Memory model F20: one replay needs the chain's edges; the solvers feed themselves and close it to a ring of one
    edge more, the decoder does not.
    """
    host, queue = _plan(module, "host"), _plan(module, "queue")
    assert host.fences.drains == max(host.levels) == module.CHAIN
    assert queue.fences.drains == module.CHAIN + (module is not decode)


@BOTH
@EACH
def test_fences_are_safe_and_so_are_the_words(module: ModuleType, boundary: str) -> None:
    """By the definition, on the fences and on the decoded stream."""
    plan = _plan(module, boundary)
    assert rl.verify(plan, plan.fences) == ()
    entries = [int(at) for at in plan.program.ibs[0].tolist()]
    assert rl.verify_words(plan, plan.program.words.tolist(), plan.target, ib=entries) == ()


@BOTH
@EACH
def test_weaker_fences_are_unsafe(module: ModuleType, boundary: str) -> None:
    """Without any one drain, acquire or class, both judges find a pair. Case 9: the finding names the two launches."""
    plan = _plan(module, boundary)
    every = list(weaker(plan.fences))
    tried = every if len(every) <= TRIED else random.Random(7).sample(every, TRIED)
    for fewer in tried:
        assert rl.verify(plan, fewer)
    program = rl.lower(plan, tried[0])
    assert rl.verify_words(plan, program.words.tolist(), plan.target, ib=program.ibs[0].tolist())


@BOTH
def test_attention_without_its_fence_reads_the_old_cache(boundary: str) -> None:
    """The launches and bytes that a missing fence exposes are those of the hand-written reason."""
    plan = _plan(decode, boundary)
    at = next(at for at, index in enumerate(plan.order) if plan.launches[index].label == "attention 0")
    undone = Fences([fence for fence in plan.fences.inner if fence.at != at])
    found = {(f.kind, f.first, f.second, f.buffer) for f in rl.verify(plan, undone)}
    assert ("not ordered", 4, 5, "k_cache0") in found
    assert ("not ordered", 4, 5, "v_cache0") in found


@BOTH
@EACH
def test_the_explanation_says_what_was_found_by_hand(module: ModuleType, boundary: str) -> None:
    """Whole lines, and every fence has a reason or a rule."""
    plan = _plan(module, boundary)
    lines = plan.explain().splitlines()
    for sentence in (*module.SENTENCES, *(module.QUEUE_SENTENCES if boundary == "queue" else ())):
        assert any(line.startswith(sentence) for line in lines), sentence
    for found in reasons(plan):
        assert found.waits or found.shows or found.fence.rule


def test_no_fence_claims_what_another_shows_as_well() -> None:
    """`add` reads the x of embed behind seven acquires: the one before it is there for o, and says so alone."""
    text = _plan(decode, "host").explain()
    assert "#8 add 0 reads o[0:6144] written by #7 output 0" in text
    assert "#8 add 0 reads x[0:6144]" not in text


def test_a_pair_is_explained() -> None:
    """By bytes, by a shortest chain (of two equally short ones the first recorded), or why there is no order."""
    plan = _plan(decode, "host")
    assert "ordered: #5 attention 0 reads k_cache0[0:8388608] written by #4 append 0 (RAW)" in plan.explain(4, 5)
    assert "by way of #2 qkv 0 -> #3 rope 0 -> #5 attention 0" in plan.explain(2, 5)
    assert "not ordered: no byte" in plan.explain(3, 4)


@EACH
def test_other_queues_add_no_more_than_the_entry(module: ModuleType) -> None:
    """boundary="other-queue": a drain, K and V at the entry, and inside what one replay needs."""
    plan = module.record().compile(boundary="other-queue")
    assert [(f.acquire, f.rule) for f in plan.fences.inner if not f.at] == [(("K", "V"), "other-queue")]
    assert plan.fences.drains == module.CHAIN + 1
    assert rl.verify(plan, plan.fences) == ()
