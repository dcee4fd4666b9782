# SPDX-License-Identifier: Apache-2.0
"""The hostile machine does the worst that is legal, and no worse: each rule of it by a few hand-made runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from redline_fuzz.caches import GL1_INV, GL2_INV, GL2_WB, GLK_INV, GLV_INV, SEQ_FORWARD, Caches
from redline_fuzz.cases import Between, Case, Memory, Node, Touch
from redline_fuzz.judging import Judged, Tally
from redline_fuzz.oracles import ORACLES
from redline_fuzz.schedules import Schedule, schedules
from redline_fuzz.stage import Stage

import redline as rl
from redline.fences import Fence, Fences
from redline.sim.memory import Memory as Arena

OLDEST = Schedule("oldest", reverse=True)
NEWEST = Schedule("newest", reverse=True)


def _caches(*, has_gl1: bool = False, keeps: bool = True, cached: bool = True) -> tuple[Caches, int]:
    """Four settled bytes, each 1, and where they lie."""
    arena = Arena()
    at = arena.allocate(4)
    arena.store(at, b"\x01\x01\x01\x01")
    caches = Caches(arena, lambda _address: cached, {at}, has_gl1=has_gl1, keeps=keeps)
    caches.notice_host()
    return caches, at


def _through(caches: Caches, at: int, name: str) -> list[int]:
    return caches.since(at, caches.ages[name])


def test_a_cache_holds_every_value_since_its_invalidation() -> None:
    """Nobody need have read the byte before; an acquire makes the last value the oldest."""
    caches, at = _caches()
    caches.store(at, 2)
    caches.store(at, 3)
    assert _through(caches, at, "V") == [1, 2, 3]
    caches.acquire(GLV_INV, whole=True)
    assert _through(caches, at, "V") == [3]
    assert _through(caches, at, "K") == [1, 2, 3]


def test_k_and_v_are_as_old_as_gl1() -> None:
    """Memory model F1: without GL1 in the same packet they may fill again from what GL1 holds."""
    caches, at = _caches(has_gl1=True)
    caches.store(at, 2)
    caches.acquire(GLK_INV | GLV_INV, whole=True)
    assert _through(caches, at, "K") == [1, 2]
    caches.acquire(GL1_INV, whole=True)  # too late for what K has filled with
    assert _through(caches, at, "K") == [1, 2]
    caches.acquire(GLK_INV | GL1_INV, whole=True)
    assert _through(caches, at, "K") == [2]
    assert _through(caches, at, "V") == [1, 2]


@pytest.mark.parametrize(("gcr", "whole"), [(GLV_INV | GL1_INV | SEQ_FORWARD, True), (GLV_INV | GL1_INV, False)])
def test_an_acquire_inside_out_or_of_fewer_addresses_covers_nothing(gcr: int, whole: bool) -> None:
    """SEQ=FORWARD refreshes V before the GL1 that it fills from."""
    caches, at = _caches(has_gl1=True)
    caches.store(at, 2)
    caches.acquire(gcr, whole=whole)
    assert _through(caches, at, "V") == [1, 2]


def test_l2_keeps_its_bytes_from_the_host_and_the_host_s_from_shaders() -> None:
    """Until GL2_WB and GL2_INV; where L2 may not hold the page, both see each other at once."""
    caches, at = _caches()
    caches.store(at, 2)
    assert caches.home(at) == 1
    caches.acquire(GL2_WB, whole=True)
    assert caches.home(at) == 2
    caches.memory.store(at, b"\x07")
    caches.notice_host()
    assert caches.in_l2(at) == 2
    caches.acquire(GL2_WB | GL2_INV, whole=True)
    assert caches.in_l2(at) == 7
    uncached, at = _caches(cached=False)
    uncached.store(at, 2)
    assert uncached.home(at) == 2
    uncached.memory.store(at, b"\x07")
    uncached.notice_host()
    assert uncached.in_l2(at) == 7


def test_gl2_inv_alone_loses_dirty_bytes() -> None:
    """Memory model F16."""
    caches, at = _caches()
    caches.store(at, 2)
    caches.acquire(GL2_INV, whole=True)
    assert caches.in_l2(at) == 1


def _two(
    does: tuple[str, str],
    *,
    role: str = "internal",
    target: str = "gfx1201",
    boundary: str = "host",
    between: tuple[Between, ...] = (),
    **changed: str,
) -> Case:
    """Two launches on the same bytes."""
    nodes = tuple(Node((Touch(0, 0, 4, what),), **changed) for what in does)  # type: ignore[arg-type]
    return Case((Memory(role=role),), nodes, target, boundary, between=between)


def _goes_wrong(case: Case, fences: Fences) -> bool:
    judged = Judged(case, Tally())
    return bool(judged.shows(fences))


@pytest.mark.parametrize(
    "does", [("write", "read"), ("read", "write"), ("write", "write"), ("update", "update")], ids=str
)
def test_conflicts_without_a_drain_go_wrong(does: tuple[str, str]) -> None:
    """RAW, WAR, WAW (a dead write too), and all of them at once."""
    assert _goes_wrong(_two(does), Fences())
    assert not _goes_wrong(_two(does), Fences([Fence(1, ("K", "V"))]))


@pytest.mark.parametrize(
    ("reader", "acquire", "wrong"),
    [
        ("KV", ("K",), True),
        ("KV", ("V",), True),
        ("KV", ("K", "V"), False),
        ("V", ("V",), False),
        ("V", ("K",), True),
        ("L2", (), False),
        ("K0", ("V",), True),
    ],
)
def test_a_read_is_stale_through_each_cache_that_is_not_refreshed(
    reader: str, acquire: tuple[str, ...], wrong: bool
) -> None:
    """Certificates say which; behind a drain the order is right and only the value is old."""
    assert _goes_wrong(_two(("write", "read"), reader=reader), Fences([Fence(1, acquire)])) == wrong


def test_an_acquire_does_not_wait() -> None:
    """Memory model F2: an acquire while the writer still runs covers nothing of it."""
    nodes = (
        Node((Touch(0, 0, 1, "write"), Touch(0, 1, 2, "write"))),
        Node((Touch(0, 1, 2, "write"), Touch(0, 2, 3, "write"))),
        Node((Touch(0, 0, 1, "read"),)),
        Node((Touch(0, 2, 3, "read"),)),
    )
    case = Case((Memory(role="internal"),), nodes, schedule="record")
    early = Fences([Fence(1), Fence(2, ("K", "V")), Fence(3)])
    assert not rl.verify(Judged(case, Tally()).plan, Judged(case, Tally()).fences)
    late = Fences([Fence(1, ("K", "V")), Fence(3, ("K", "V"))])
    assert not _goes_wrong(case, early)  # #1 has drained before #2 starts
    assert not _goes_wrong(case, late)
    assert _goes_wrong(case, Fences([Fence(1, ("K", "V")), Fence(3)]))


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_what_one_replay_writes_the_next_may_read_stale(target: str) -> None:
    """Replays back to back without their warm entry."""
    case = _two(("read", "write"), target=target, boundary="queue", between=(Between(), Between()))
    assert _goes_wrong(case, Fences([Fence(1)]))
    assert not _goes_wrong(case, Judged(case, Tally()).fences)


def test_after_without_a_conflict_is_an_order_too() -> None:
    """Nothing in memory shows it; who ended first does."""
    case = Case((Memory(),), (Node(), Node(after=(0,))))
    assert _goes_wrong(case, Fences())
    assert not _goes_wrong(case, Judged(case, Tally()).fences)


@pytest.mark.parametrize(("kind", "target", "wrong"), [("fine", "gfx1201", True), ("fine", "gfx1100", False)])
def test_what_l2_may_hold_depends_on_kind_and_family(kind: str, target: str, wrong: bool) -> None:
    """Memory model F5, case 40: fine-grained memory is cached in GL2 on gfx12 only."""
    case = Case((Memory(kind=kind, role="out"),), (Node((Touch(0, 0, 4, "write"),)),), target)
    judged = Judged(case, Tally())
    program = judged.lower(judged.fences)
    words = program.words.copy()
    words[-1] = int(words[-1]) & ~GL2_WB  # the release's GCR_CNTL
    assert bool(judged.difference_of(replace(program, words=words))) == wrong


def test_every_example_runs_under_64_schedules_at_least() -> None:
    """And all orders of up to four undrained launches are among them."""
    made = list(schedules([], 1, 64, 1))
    assert len(made) >= 64
    assert len(set(made)) == len(made)
    wide = list(schedules([(0, 1)], 4, 64, 1))
    orders = {tuple(schedule.order(range(4), Random(1))) for schedule in wide if schedule.seed is None}
    assert len(orders) == 24


def test_the_machine_knows_no_plan() -> None:
    """It imports nothing of graphs, plans, fences, programs or encoders."""
    import redline_fuzz.caches
    import redline_fuzz.machine

    for module in (redline_fuzz.caches, redline_fuzz.machine):
        names = {getattr(item, "__module__", "") or "" for item in vars(module).values()}
        ours = {name for name in names if name.startswith("redline.")}
        assert all(name.startswith("redline.sim.") for name in ours), ours


def test_a_run_is_repeatable() -> None:
    """Equal schedules, equal outcomes, random ones too."""
    case = _two(("update", "update"), role="inout")
    judged = Judged(case, Tally())
    for schedule in (OLDEST, NEWEST, Schedule("random", seed=5)):
        with Stage(case, judged.plan, judged.plan.program) as stage:
            assert stage.run(schedule) == stage.run(schedule)


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_no_oracle_finds_anything_in_a_sound_case(name: str) -> None:
    """A chain with a slot, replayed with a patch between."""
    nodes = (Node((Touch(0, 0, 4, "update"),), slot="s"), Node((Touch(0, 0, 4, "read"), Touch(1, 0, 4, "write"))))
    order = "explicit" if name == "errors" else "record"
    chained = (nodes[0], Node(nodes[1].touches, after=(0,)))
    case = Case((Memory(role="inout"), Memory()), chained, order=order, between=(Between(patch=True),))
    judge: Callable[[Judged], str | None] = ORACLES[name]
    assert judge(Judged(case, Tally())) == ""
