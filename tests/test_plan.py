# SPDX-License-Identifier: Apache-2.0
"""Plans: legal orders, fingerprints by value, equal bytes in every process, and plans as text."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import redline as rl
from tests.graphs import Node, build, nodes


@given(items=nodes())
def test_every_edge_points_forward_in_the_emitted_order(items: list[Node]) -> None:
    """Both schedules keep the recorded order of conflicting launches and every after=."""
    for schedule in ("levels", "record"):
        plan = build(items).compile(schedule=schedule)
        position = {launch: at for at, launch in enumerate(plan.order)}
        assert sorted(position) == list(range(len(items)))
        assert all(position[a] < position[b] for a, b in plan.edges)


@given(items=nodes())
def test_neighbouring_conflicts_join_all_conflicts(items: list[Node]) -> None:
    """Any two conflicting launches are joined by a chain of edges, found here by comparing every pair."""
    plan = build(items).compile()
    reach: list[set[int]] = [set() for _ in items]
    for a, b in sorted(plan.edges, key=lambda edge: edge[1]):
        reach[b] |= {a} | reach[a]

    def overlap(xs: tuple[tuple[int, int, int], ...], ys: tuple[tuple[int, int, int], ...]) -> bool:
        return any(m == n and a < d and c < b for m, a, b in xs for n, c, d in ys)

    for b, late in enumerate(items):
        for a, early in enumerate(items[:b]):
            everything = late.reads + late.writes
            if overlap(early.writes, everything) or overlap(early.reads, late.writes):
                assert a in reach[b]


def test_the_record_schedule_keeps_the_recorded_order() -> None:
    """Levels move an independent launch forward; record does not."""
    items = [Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),)), Node(writes=((1, 0, 1),))]
    assert build(items).compile().order == (0, 2, 1)
    assert build(items).compile(schedule="record").order == (0, 1, 2)


def test_unknown_options_are_refused() -> None:
    """Each names what is allowed."""
    graph = build([Node()])
    for options in ({"boundary": "queues"}, {"schedule": "asap"}, {"fences": "none"}, {"gfx10_wait": "maybe"}):
        with pytest.raises(rl.RecordError, match="allowed"):
            graph.compile(**options)  # type: ignore[arg-type]
    with pytest.raises(rl.RecordError, match="without launches"):
        rl.Graph().compile()
    with pytest.raises(rl.RecordError, match="explicit"):
        rl.Graph(order="random")  # type: ignore[arg-type]


def _example(**changes: object) -> rl.Plan:
    graph = rl.Graph()
    x = graph.buffer("x", int(str(changes.get("nbytes", 64))), role="inout")
    kernel = rl.Kernel.synthetic("k", pointers=1, scalars=(4,))
    if "kernel" in changes:
        kernel = replace(kernel, rsrc3=0x10)
    value = changes.get("value", 3)
    args = [rl.update(x[: int(str(changes.get("stop", 8)))]), value]
    graph.launch(
        kernel, grid=int(str(changes.get("grid", 1))), block=1, args=args, label=str(changes.get("label", "a"))
    )
    return graph.compile(fences=str(changes.get("fences", "minimal")))


@pytest.mark.parametrize(
    "change",
    [
        {"nbytes": 128},
        {"kernel": True},
        {"value": 4},
        {"stop": 9},
        {"grid": 2},
        {"fences": "full"},
        {"value": rl.slot("s", "i4")},
        {"value": rl.slot("s", "i4", default=3)},
        {"value": rl.slot("s", "u4", default=3)},
    ],
)
def test_the_fingerprint_sees_every_part_of_the_plan(change: dict[str, object]) -> None:
    """Anything that can change a result or an option changes the fingerprint."""
    assert _example(**change).fingerprint != _example().fingerprint
    assert _example(**change) != _example()


def test_the_fingerprint_sees_what_a_kernels_code_only_refers_to() -> None:
    """Two objects with the same kernel bytes and another constant table are two plans."""
    import radiowave

    source = """
target triple = "amdgcn-amd-amdhsa"
@table = private addrspace(4) constant [4 x i32] [i32 {value}, i32 2, i32 3, i32 4]
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %i) {{
  %p = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %i
  %v = load i32, ptr addrspace(4) %p
  store i32 %v, ptr addrspace(1) %out
  ret void
}}
!llvm.module.flags = !{{!0}}
!0 = !{{i32 1, !"amdhsa_code_object_version", i32 500}}
"""
    plans = []
    for value in (100, 200):
        kernel = rl.load(radiowave.compile_ir(source.format(value=value), target="gfx1201"))["k"]
        graph = rl.Graph()
        graph.launch(kernel, grid=1, block=1, args=[rl.write(graph.buffer("x", 4)), 0])
        plans.append(graph.compile())
    one, two = plans
    assert one.launches[0].kernel.code_sha256 == two.launches[0].kernel.code_sha256
    assert one != two
    assert one.program != two.program


def test_labels_and_lines_are_not_in_the_fingerprint() -> None:
    """Plans are compared by what they do."""
    assert _example(label="b") == _example()
    assert hash(_example(label="b")) == hash(_example())


_SCRIPT = """
import redline as rl
from tests.graphs import Node, build
items = [Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4), (1, 0, 1)), writes=((2, 0, 1),)), Node(writes=((1, 0, 4),))]
plan = build(items).compile()
print(plan.fingerprint, plan.program.digest)
print(plan.explain())
loop = build(items).compile(boundary="queue")
print(loop.fingerprint, loop.program.digest, loop.fences.inner)
"""


def test_equal_bytes_in_fresh_processes() -> None:
    """Case 29: five processes with different hash seeds give the same fingerprint, words, fences and text."""
    outputs = set()
    for seed in range(5):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        outputs.add(
            subprocess.run([sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, check=True).stdout
        )
    assert len(outputs) == 1
    assert outputs.pop().count(b"\n") > 5


def test_explain_says_what_waits_for_what_and_through_which_cache() -> None:
    """Launches by recorded index and label, ranges, kinds, classes, and the rules at both ends."""
    text = build([Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4),)), Node(after=(1,))]).compile().explain()
    for part in (
        "3 launches, 2 drains, 1 acquire",
        "entry: drain, system acquire   rule cold-entry",
        "drain + acquire K V before #1 n1",
        "#1 n1 reads m0[2:3] written by #0 n0 (RAW); without the acquire it may read the bytes of the previous replay",
        "  drain before #2 n2",
        "#2 n2 was recorded with after=[#1 n1]",
        "exit: drain, system release   rule host-exit",
        "kept by rule ib-scope",
    ):
        assert part in text
    assert "glm-convention" not in text


def test_explain_names_the_glm_convention_where_it_applies() -> None:
    """gfx10 and gfx11 entries and exits carry metadata bits that no buffer needs."""
    graph = rl.Graph()
    x = graph.buffer("x", 4)
    graph.launch(rl.Kernel.synthetic("k", target="gfx1100"), grid=1, block=1, args=[rl.update(x)])
    assert "kept by rule glm-convention" in graph.compile().explain()


def test_recording_more_does_not_change_a_plan() -> None:
    """A plan is frozen when it is made."""
    graph = build([Node(writes=((0, 0, 1),))])
    plan = graph.compile()
    before = (plan.fingerprint, len(plan.launches))
    graph.launch(rl.Kernel.synthetic("k"), grid=1, block=1, args=[rl.read(graph.buffers[0])])
    graph.buffer("later", 4)
    assert (plan.fingerprint, len(plan.launches)) == before
    assert plan.explain().count("level 0") == 1


@pytest.mark.parametrize("fences", [rl.Fences([rl.Fence(9)]), rl.Fences([rl.Fence(0)]), [], None])
def test_fences_of_another_plan_are_not_verified(fences: Any) -> None:
    """A fence that stands nowhere protects nothing."""
    plan = build([Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4),))]).compile()
    with pytest.raises(rl.HazardError, match=r"RL0205 verify.*positions in 1\.\.1"):
        rl.verify(plan, fences)


def test_things_print_as_one_line() -> None:
    """What a user sees who prints a plan or a part of it."""
    graph = build([Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4),))])
    plan = graph.compile()
    assert repr(graph) == "<Graph order=record buffers=3 launches=2>"
    assert repr(plan) == (
        f"<Plan {plan.fingerprint[:16]} gfx1201 launches=2 boundary=host schedule=levels fences=minimal>"
    )
    assert repr(plan.launches[0]).startswith("<Launch #0 n0 (")
    assert repr(plan.launches[0].kernel) == "<Kernel k gfx1201 wave32 arguments=1>"
    assert repr(plan.fences) == "<Fences drains=1 acquires=1>"
    assert repr(plan.program).endswith(f" gfx1201 pm4 queues=1 dwords={len(plan.program.words)} kernels=1>")


def test_a_plan_differs_from_plans_only() -> None:
    """Anything else has nothing to compare."""
    with pytest.raises(rl.RecordError, match="RL0143"):
        build([Node()]).compile().diff(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [(0, None), (0, 9), (True, 0), ("a", 0)])
def test_a_pair_is_two_recorded_indices(pair: Any) -> None:
    """One alone, one too many, or a label."""
    with pytest.raises(rl.RecordError, match="RL0138"):
        build([Node(), Node()]).compile().explain(*pair)


def test_a_pair_is_explained_whatever_its_order_and_never_by_way_of_itself() -> None:
    """One index without the other is refused; a launch and itself meet from replay to replay or not at all."""
    items = [Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),), writes=((1, 0, 1),))]
    plan = build(items).compile(boundary="queue")
    assert plan.explain(1, 0) == plan.explain(0, 1)
    assert plan.explain(0, 1).count("in the replay before") == 1
    assert "#1 n1 writes m1[0:1] written by #1 n1 in the replay before (WAW)" in plan.explain(1, 1)
    assert "by way of" not in plan.explain(1, 1)
    for pair in ((1, None), (None, 1), (0, 2), (0, True)):
        with pytest.raises(rl.RecordError, match=r"RL0138 Plan\.explain: .* two recorded indices in 0\.\.1"):
            plan.explain(*pair)
