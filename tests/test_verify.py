# SPDX-License-Identifier: Apache-2.0
"""`verify`: independent of the derivation, equal to the definition over all pairs, and exact in what it reports."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import redline as rl
from redline import stabbing, sweep
from redline.fences import Fence, Fences, derive
from redline.plan import Plan
from tests.graphs import Node, build
from tests.judges import judge_verify
from tests.random_plans import random_fences, random_plan


def test_verify_agrees_with_the_definition_over_all_pairs() -> None:
    """2,000 random plans with certificates, slots, aliases, roles and kinds; derived, changed and arbitrary fences."""
    assert [wrong for wrong in map(judge_verify, range(2000)) if wrong] == []


def test_random_fences_are_often_safe_and_often_not() -> None:
    """Else the agreement would prove little."""
    verdicts = []
    for seed in range(300):
        random = Random(seed)
        plan = random_plan(random)
        verdicts.append(rl.verify(plan, random_fences(random, plan)) == ())
    assert 90 < sum(verdicts) < 210


def test_verify_runs_without_the_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    """`derive` and every sweep raise; plans were made before. Its verdicts do not change."""
    made = []
    for seed in range(100):
        random = Random(seed)
        plan = random_plan(random)
        fences = random_fences(random, plan)
        made.append((plan, fences, rl.verify(plan, fences)))

    def refuse(*_: object) -> Any:
        raise AssertionError("verify asked the derivation")

    monkeypatch.setattr("redline.fences.derive", refuse)
    monkeypatch.setattr("redline.fences.derived", refuse)
    compiled = {**vars(sweep), **vars(stabbing)}
    patched = [name for name, value in compiled.items() if callable(value) and not inspect.isclass(value)]
    homes = ("sweep", "stabbing", "fences", "plan", "ordering")
    for name in patched:
        for home in homes:
            monkeypatch.setattr(f"redline.{home}.{name}", refuse, raising=False)
    assert {"find_levels", "find_needs", "find_conflicts", "stab_line", "stab_circle", "reach"} <= set(patched)
    with pytest.raises(AssertionError, match="asked the derivation"):
        Plan.of(build([Node()]))
    for plan, fences, findings in made:
        assert rl.verify(plan, fences) == findings


def _pair() -> rl.Plan:
    """#0 writes [0:3) of m0, #1 reads [2:4)."""
    return build([Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4),))]).compile()


def test_a_finding_names_both_launches_the_bytes_and_the_class() -> None:
    """Producer, consumer, range and cache, and the shortest run that goes wrong, as text and as JSON."""
    (finding,) = rl.verify(_pair(), Fences([Fence(1, ("V",))]))
    assert (finding.kind, finding.first, finding.second) == ("ordered but not visible", 0, 1)
    assert (finding.buffer, finding.start, finding.stop, finding.cache) == ("m0", 2, 3, "K")
    assert str(finding) == "ordered but not visible: #0 -> #1: RAW on m0[2:3] through K"
    assert finding.counterexample == (
        "K holds m0[2:3] from before #0",
        "#0 writes them and drains",
        "#1 reads them through K: the old bytes",
    )
    assert json.loads(json.dumps(finding.as_json())) == {
        "kind": "ordered but not visible",
        "first": 0,
        "second": 1,
        "what": "RAW on m0[2:3] through K",
        "buffer": "m0",
        "start": 2,
        "stop": 3,
        "cache": "K",
        "carried": False,
        "counterexample": list(finding.counterexample),
    }


def test_what_is_not_ordered_is_a_kind_of_its_own() -> None:
    """No class then: the order is at fault."""
    (finding,) = rl.verify(_pair(), Fences())
    assert (finding.kind, finding.cache, finding.start, finding.stop) == ("not ordered", "", 2, 3)
    assert finding.counterexample == ("#0 starts on m0[2:3]", "#1 starts too and is faster", "#0 ends: RAW on m0[2:3]")


def test_a_finding_between_replays_says_so() -> None:
    """The reader of one replay and the writer of the replay before."""
    plan = build([Node(reads=((0, 0, 1),)), Node(writes=((0, 0, 1),))]).compile(boundary="queue")
    inner = plan.fences.inner
    assert [fence.at for fence in inner] == [0, 1]
    (finding,) = rl.verify(plan, Fences([Fence(0, ("V",)), inner[1]]))
    assert (finding.first, finding.second, finding.carried, finding.cache) == (1, 0, True, "K")
    assert str(finding) == "ordered but not visible: #1 -> #0 of the next replay: RAW on m0[0:1] through K"


def test_an_after_without_a_drain_is_found() -> None:
    """`after=` alone is an edge, without any byte in common."""
    plan = build([Node(), Node(after=(0,))]).compile()
    (finding,) = rl.verify(plan, Fences())
    assert (finding.kind, finding.first, finding.second, finding.what) == ("not ordered", 0, 1, "after=")


def test_patched_arguments_are_read_through_what_the_certificate_says() -> None:
    """Case 40's kernargs, memory model F13: K and V; K alone for a kernel certified without vector loads of them."""
    for vector, expected in ((True, ("K", "V")), (False, ("K",))):
        certificate = rl.Certificate("vmem_only", kernarg_vector_loads=vector)
        graph = rl.Graph()
        kernel = rl.Kernel.synthetic("k", pointers=0, scalars=(4,), certificate=certificate)
        graph.launch(kernel, grid=1, block=1, args=[rl.slot("s", "i4", default=0)])
        plan = graph.compile(boundary="queue")
        assert plan.fences.inner == (Fence(0, expected, drain=False, rule="patched-kernargs"),)
        assert [f.what for f in rl.verify(plan, Fences())] == [f"patched arguments through {c}" for c in expected]


@pytest.mark.parametrize("boundary", ["host", "queue", "other-queue"])
def test_an_order_that_contradicts_after_is_refused_by_derive_and_found_by_verify(boundary: str) -> None:
    """`Plan.of` makes no such plan; with one, derive would have no end to look for."""
    plan = Plan.of(build([Node(), Node(after=(0,))]), boundary=boundary)
    wrong = replace(plan, order=(1, 0))
    with pytest.raises(rl.HazardError, match="RL0203 derive: launch #1 before a launch that it is recorded after="):
        derive(wrong)
    assert "wrong order" in {finding.kind for finding in rl.verify(wrong, plan.fences)}


def test_findings_are_capped() -> None:
    """At most 1,000, however many there are."""
    graph = rl.Graph()
    x = graph.buffer("x", 1200)
    graph.launch(rl.Kernel.synthetic("w"), grid=1, block=1, args=[rl.write(x)])
    for at in range(1200):
        graph.launch(rl.Kernel.synthetic("r"), grid=1, block=1, args=[rl.read(x[at : at + 1])])
    assert len(rl.verify(Plan.of(graph), Fences())) == 1000


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("derive", (None,)),
        ("lower", (None, "fences")),
        ("lower", ("plan", None)),
        ("verify", ("x", "fences")),
        ("verify_words", (3, (), "gfx1201")),
        ("verify_program", (None, "program")),
        ("verify_program", ("plan", "plan")),
    ],
)
def test_other_things_than_plans_are_named(name: str, given: tuple[Any, ...]) -> None:
    """Where, what was given, what is allowed, how to get it."""
    graph = rl.Graph()
    graph.launch(rl.Kernel.synthetic("k"), grid=1, block=1, args=[rl.write(graph.buffer("x", 4))])
    plan = graph.compile()
    real: dict[Any, Any] = {"plan": plan, "fences": plan.fences, "program": plan.program}
    with pytest.raises(rl.RecordError, match=f"RL0143 {name}: .*; allowed: a "):
        getattr(rl, name)(*(real.get(thing, thing) for thing in given))
