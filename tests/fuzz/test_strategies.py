# SPDX-License-Identifier: Apache-2.0
"""What is drawn: every case is legal, everything that it promises occurs, and failures shrink to a few launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, find, given, settings
from redline_fuzz.cases import READERS, Case, record
from redline_fuzz.judging import Judged, Tally
from redline_fuzz.oracles import FIVE
from redline_fuzz.printing import as_python, case_id, from_json, to_json
from redline_fuzz.shapes import SHAPES
from redline_fuzz.strategies import cases, explicit_cases

import redline as rl
from redline.fences import Fences
from redline.plan import BOUNDARIES, SCHEDULES
from redline.ranges import KINDS, ROLES

_FIND = settings(
    derandomize=True, database=None, max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck)
)


@given(cases())
def test_every_case_is_legal_and_reads_back(case: Case) -> None:
    """It records, plans and lowers; its JSON is the same case."""
    judged = Judged(case, Tally())
    assert judged.lower(judged.fences).words.size
    assert from_json(to_json(case)) == case
    assert case_id(from_json(to_json(case))) == case_id(case)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_is_legal(name: str) -> None:
    """A few of each, on every family."""

    @settings(max_examples=10)
    @given(SHAPES[name]())
    def shapes(case: Case) -> None:
        judged = Judged(case, Tally())
        assert judged.lower(judged.fences).words.size

    shapes()


def test_everything_that_is_promised_occurs() -> None:
    """Kinds, roles, readers, targets, options, steps between replays, and each way to name memory."""
    seen: Counter[str] = Counter()

    @settings(max_examples=300)
    @given(cases())
    def collect(case: Case) -> None:
        seen.update(_features(case))

    collect()
    wanted = {*KINDS, *ROLES, *READERS, *FIVE, *BOUNDARIES, *SCHEDULES, "full", "partial_flush", "fence"}
    wanted |= {"alias", "counts", "zeros", "extra", "after", "slot", "patch", "bind", "host access", "batch"}
    wanted |= {"read", "write", "update", "elide", "no elide", "no access"}
    assert wanted <= seen.keys(), wanted - seen.keys()


def _features(case: Case) -> set[str]:
    found = {case.target, case.boundary, case.schedule, case.fences, case.gfx10_wait}
    found |= {"elide" if case.elide else "no elide"}
    for memory in case.memories:
        found |= {memory.kind, memory.role} | ({"alias"} if memory.alias else set())
        found |= {"zeros"} if memory.zeros else set()
    for node in case.nodes:
        found |= {node.reader, *(touch.does for touch in node.touches)}
        given_ = {"counts": node.counts is not None, "extra": node.extra, "after": node.after, "slot": node.slot}
        found |= {name for name, value in given_.items() if value} | ({"no access"} if not node.touches else set())
    for step in case.between:
        found |= {n for n, v in (("patch", step.patch), ("bind", step.bind), ("host access", step.host)) if v}
        found |= {"batch"} if step == step.__class__() else set()
    return found


def test_fan_out_is_wider_than_the_lanes() -> None:
    """3Q + 1 launches for four lanes read what one wrote."""
    case = find(SHAPES["fan-out"](), lambda case: len(case.nodes) == 15, settings=_FIND)
    assert case.nodes[0].touches[0].does == "write"
    assert case.nodes[-1].touches[0].does == "read"


def test_disabled_launches_have_zero_counts() -> None:
    """And the machine sees that they do nothing, with everything around them in order."""
    case = find(SHAPES["disabled-nodes"](), lambda case: case.nodes[1].counts is not None, settings=_FIND)
    seen = Judged(case, Tally()).expected.seen
    assert seen[1].dims == (0, 0, 0)


def test_an_empty_graph_is_refused() -> None:
    """There is no such case, because there is no such plan."""
    with pytest.raises(rl.RecordError, match="RL0131"):
        rl.Graph().compile()


MOST_LAUNCHES = 3

#: What a fault of that kind looks like.
_WRONG: dict[str, Callable[[Judged], bool]] = {
    "a drain is missing": lambda j: bool(j.fences.drains and rl.verify(j.plan, Fences())),
    "a scalar refresh is missing": lambda j: (
        j.case.boundary == "host" and any("K" in fence.acquire for fence in j.fences.inner)
    ),
    "a loop-carried drain is missing": lambda j: (
        j.case.boundary == "queue" and any(fence.at == 0 and fence.drain for fence in j.fences.inner)
    ),
    "three in a row": lambda j: j.case.boundary == "host" and j.fences.drains == 2,
}


@pytest.mark.parametrize("name", sorted(_WRONG))
def test_failures_shrink_to_few_launches(name: str) -> None:
    """Nodes are drawn whole, so that hypothesis can leave them out one by one."""

    def shown(case: Case) -> bool:
        return case.fences == "minimal" and _WRONG[name](Judged(case, Tally()))

    case = find(cases(), shown, settings=_FIND)
    assert len(case.nodes) <= MOST_LAUNCHES
    assert len(case.memories) == 1
    assert all(len(node.touches) <= 1 for node in case.nodes)
    assert not case.between


def test_an_unordered_pair_shrinks_to_few_launches() -> None:
    """Explicit order: what is refused is little more than the pair."""

    def refused(case: Case) -> bool:
        try:
            rl.Plan.of(record(case))
        except rl.HazardError:
            return True
        return False

    case = find(explicit_cases(), refused, settings=_FIND)
    assert len(case.nodes) <= MOST_LAUNCHES
    assert len(case.memories) == 1


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_case_prints_as_a_program_that_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the public API alone; it says how to run the case again."""
    case = find(SHAPES[name](), lambda case: True, settings=_FIND)
    text = as_python(case, "what an oracle said\non two lines")
    names: dict[str, object] = {}
    exec(compile(text, "case.py", "exec"), names)
    plan = names["plan"]
    assert isinstance(plan, rl.Plan)
    assert plan.levels == Judged(case, Tally()).plan.levels
    assert f"redline-fuzz replay {case_id(case)}" in text
    assert "# wrong: on two lines" in text
    imports = [line for line in text.splitlines() if "import" in line]
    assert imports == ["import redline as rl"]
    assert capsys.readouterr().out
