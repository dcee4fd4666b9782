# SPDX-License-Identifier: Apache-2.0
"""Derived fences: safe by the pairwise definition, nothing in them can be taken away, and no fewer would do."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redline as rl
from redline.accesses import read_classes
from redline.fences import Fence, Fences
from redline.reasons import reasons
from tests.exhaustive import cheapest, every_graph, judge, weaker
from tests.graphs import BYTES, Node, build, nodes

W, R = "writes", "reads"


def _chain(count: int) -> list[Node]:
    return [Node(reads=((0, 0, 1),), writes=((0, 0, 1),)) for _ in range(count)]


@pytest.mark.parametrize("schedule", ["levels", "record"])
@given(items=nodes())
def test_derived_fences_are_safe(schedule: str, items: list[Node]) -> None:
    """Every pair that conflicts is ordered and visible, by a check that shares no code with the derivation."""
    plan = build(items).compile(schedule=schedule)
    assert rl.verify(plan, plan.fences) == ()


@given(items=nodes())
def test_full_fences_are_safe(items: list[Node]) -> None:
    """fences="full" fences after every launch, whatever the launches do."""
    plan = build(items).compile(fences="full")
    assert rl.verify(plan, plan.fences) == ()
    assert plan.fences.drains == plan.fences.acquires == len(items) - 1


@pytest.mark.parametrize("schedule", ["levels", "record"])
@given(items=nodes())
def test_nothing_can_be_taken_away(schedule: str, items: list[Node]) -> None:
    """Without any one drain, acquire or class of an acquire, some pair is unsafe. And each has a reason."""
    plan = build(items).compile(schedule=schedule)
    for found in reasons(plan):
        assert found.waits or found.after
        assert set(found.shows) == set(found.fence.acquire)
    for fewer in weaker(plan.fences):
        assert rl.verify(plan, fewer)


@pytest.mark.parametrize("boundary", ["host", "queue"])
@given(items=nodes())
def test_a_reason_is_what_goes_wrong_without_the_fence(boundary: str, items: list[Node]) -> None:
    """Without the class that is said to show a write to a launch, the check finds that launch reading through it."""
    plan = build(items).compile(boundary=boundary)
    for at, found in enumerate(reasons(plan)):
        for name, hazards in found.shows.items():
            rest = tuple(other for other in found.fence.acquire if other != name)
            less = [replace(found.fence, acquire=rest)] if found.fence.drain or rest else []
            inner = plan.fences.inner
            wrong = rl.verify(plan, Fences((*inner[:at], *less, *inner[at + 1 :])))
            seen = {(f.second, f.cache) for f in wrong if f.kind == "ordered but not visible"}
            assert {(hazard.second, name) for hazard in hazards} <= seen


def _cost(plan: rl.Plan) -> tuple[int, int, int]:
    fences = plan.fences
    return fences.drains, fences.acquires, sum(len(fence.acquire) for fence in fences.inner)


@settings(max_examples=40)
@given(items=nodes(most=5))
def test_no_fences_for_the_same_order_are_cheaper(items: list[Node]) -> None:
    """Drains first, then acquire packets, against every possible set of fences of small graphs.

    Class bits are irredundant but not always fewest: facts say so of the second greedy pass.
    """
    plan = build(items).compile(schedule="record")
    assert _cost(plan)[:2] == cheapest(plan)[:2]


@settings(max_examples=40)
@given(items=nodes(most=5))
def test_no_legal_order_needs_fewer_drains(items: list[Node]) -> None:
    """The levels schedule against every order that keeps the edges: none beats the longest chain."""
    plan = build(items).compile()
    fewest = min(
        _drains_of(plan, order)
        for order in permutations(range(len(items)))
        if all(order.index(a) < order.index(b) for a, b in plan.edges)
    )
    assert plan.fences.drains == fewest == max(plan.levels)


def _drains_of(plan: rl.Plan, order: tuple[int, ...]) -> int:
    drains, epoch = 0, set[int]()
    for launch in order:
        if any((before, launch) in plan.edges for before in epoch):
            drains, epoch = drains + 1, set()
        epoch.add(launch)
    return drains


def test_a_chain_drains_between_neighbours() -> None:
    """Case 1: N launches that update the same four bytes need N - 1 drains."""
    plan = build(_chain(20)).compile()
    assert (plan.fences.drains, plan.fences.acquires) == (19, 19)


def test_independent_launches_need_no_fence() -> None:
    """Case 1, case 4: readers of one buffer that write their own bytes share an epoch."""
    graph = rl.Graph()
    w, out = graph.buffer("w", 64, role="in"), graph.buffer("out", 64, role="out")
    for i in range(64):
        kernel = rl.Kernel.synthetic("k", pointers=2)
        graph.launch(kernel, grid=1, block=1, args=[rl.read(w), rl.write(out[i : i + 1])])
    plan = graph.compile()
    assert (plan.edges, plan.fences.inner) == ((), ())


def test_a_fan_out_has_one_boundary() -> None:
    """Case 1: one writer and 40 readers with outputs of their own: exactly one fence, after the writer."""
    graph = rl.Graph()
    x, out = graph.buffer("x", 4), graph.buffer("out", 40, role="out")
    graph.launch(rl.Kernel.synthetic("w"), grid=1, block=1, args=[rl.write(x)])
    for i in range(40):
        kernel = rl.Kernel.synthetic("r", pointers=2)
        graph.launch(kernel, grid=1, block=1, args=[rl.read(x), rl.write(out[i : i + 1])])
    assert [(f.at, f.acquire) for f in graph.compile().fences.inner] == [(1, ("K", "V"))]


@pytest.mark.parametrize(
    ("first", "second", "drain", "acquire"),
    [
        (W, R, True, ("K", "V")),
        (R, W, True, ()),
        (W, W, True, ()),
        (R, R, False, ()),
    ],
)
def test_only_read_after_write_acquires(first: str, second: str, drain: bool, acquire: tuple[str, ...]) -> None:
    """RAW needs the wait and the visibility, WAR and WAW the wait, RAR nothing. One shared byte is enough."""
    pair = [Node(**{first: ((0, 0, 2),)}), Node(**{second: ((0, 1, BYTES),)})]  # type: ignore[arg-type]
    fences = build(pair).compile().fences
    assert [f.acquire for f in fences.inner] == ([acquire] if drain else [])


def test_disjoint_ranges_of_one_buffer_do_not_conflict() -> None:
    """Case 63: [0:2) against [2:4) is no hazard; one byte of overlap is one, and the byte is named."""
    apart = [Node(writes=((0, 0, 2),)), Node(reads=((0, 2, 4),))]
    touching = [Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4),))]
    assert build(apart).compile().hazards == ()
    (hazard,) = build(touching).compile().hazards
    assert (hazard.kind, hazard.first, hazard.second, hazard.start, hazard.stop) == ("RAW", 0, 1, 2, 3)


def test_ordered_is_not_visible() -> None:
    """Case 9: the acquire alone taken away is its own diagnosis, with launches, range and cache."""
    plan = build([Node(writes=((0, 0, 4),)), Node(reads=((0, 0, 4),))]).compile()
    drained = Fences((Fence(1),))
    findings = [str(finding) for finding in rl.verify(plan, drained)]
    assert findings == [
        "ordered but not visible: #0 -> #1: RAW on m0[0:4] through K",
        "ordered but not visible: #0 -> #1: RAW on m0[0:4] through V",
    ]
    assert {f.kind for f in rl.verify(plan, Fences(()))} == {"not ordered"}


@pytest.mark.parametrize("places", [[1, 1], [2, 1], [-1], [1.5], [True]])
def test_fences_stand_at_positions_once_and_in_order(places: list[Any]) -> None:
    """Anything else could be verified as one thing and lowered as another."""
    with pytest.raises(rl.HazardError, match="each once, in order"):
        Fences(tuple(Fence(at) for at in places))


def test_lowering_refuses_fences_of_another_plan() -> None:
    """A fence behind the last launch would be dropped."""
    plan = build(_chain(2)).compile()
    with pytest.raises(rl.EncodeError, match=r"positions 2 to 2; allowed: positions 1\.\.1"):
        rl.lower(plan, Fences((Fence(2),)))


def test_only_the_exact_words_of_a_certificate_narrow() -> None:
    """What cannot be proved gets the wider class."""
    for words in ("unknown", "vmem-only", "", "scalar"):
        with pytest.raises(rl.RecordError, match="vmem_only, scalar_args, scalar_or_unknown"):
            rl.Certificate(words)  # type: ignore[arg-type]
        assert read_classes(_certified(words), 0) == ("K", "V")
    assert read_classes(_certified("vmem_only"), 0) == ("V",)
    assert read_classes(_certified("vmem_only"), None) == ("K", "V")
    assert read_classes(_certified("scalar_args", frozenset({0})), 0) == ("K", "V")
    assert read_classes(_certified("scalar_args", frozenset({0})), 8) == ("V",)


def _certified(reads: Any, scalar_args: frozenset[int] = frozenset()) -> rl.Kernel:
    kernel = rl.Kernel.synthetic("k", pointers=2)
    certificate = rl.Certificate()
    object.__setattr__(certificate, "reads", reads)
    object.__setattr__(certificate, "scalar_args", scalar_args)
    return replace(kernel, certificate=certificate)


def test_verify_sees_the_host_and_the_order() -> None:
    """Without the entry's acquire or the exit's release the host is not served; a reversed order is wrong."""
    items = [Node(writes=((0, 0, 2),)), Node(reads=((0, 0, 4),))]
    plan = build(items, role="inout").compile()
    inner = plan.fences.inner
    cold = rl.verify(plan, Fences(inner, entry_rule=""))
    assert {f.kind for f in cold} == {"ordered but not visible"}
    # Code through I and arguments through K and V; the fence before #1 has these two, and nothing but an entry has GL2.
    assert [(f.first, f.second, f.cache) for f in cold] == [
        *(("host", 0, cache) for cache in "IKV"),
        ("host", 1, "I"),
        ("host", 1, "GL2_INV"),
    ]
    drained = rl.verify(plan, Fences([Fence(1)], entry_rule=""))
    assert [(f.first, f.cache) for f in drained if f.second == 1] == [
        *(("host", cache) for cache in ("I", "K", "V", "GL2_INV")),
        (0, "K"),
        (0, "V"),
    ]
    assert [str(f) for f in rl.verify(plan, Fences(inner, exit_rule=""))] == [
        "not ordered: #1 -> host: the submission ends before the launch does",
        "ordered but not visible: #0 -> host: host reads m0[0:2], which may be in L2 only",
    ]
    backwards = replace(plan, order=(1, 0))
    assert {f.kind for f in rl.verify(backwards, plan.fences)} == {"wrong order"}


def test_after_orders_and_makes_nothing_visible() -> None:
    """`after=` between launches that share no byte is a drain without an acquire."""
    plan = build([Node(), Node(after=(0,))]).compile()
    (found,) = reasons(plan)
    assert (found.fence, found.waits, found.after) == (Fence(1), [], [(0, 1)])


def test_certificates_narrow_the_acquire() -> None:
    """A kernel certified vector-only needs V; memory that no argument carries is read through both."""
    graph = rl.Graph()
    x = graph.buffer("x", 8)
    vector = rl.Kernel.synthetic("v", certificate=rl.Certificate("vmem_only"))
    graph.launch(rl.Kernel.synthetic("w"), grid=1, block=1, args=[rl.write(x)])
    graph.launch(vector, grid=1, block=1, args=[rl.read(x)])
    assert [f.acquire for f in graph.compile().fences.inner] == [("V",)]
    graph.launch(rl.Kernel.synthetic("w"), grid=1, block=1, args=[rl.write(x)])
    graph.launch(rl.Kernel.synthetic("n", pointers=0), grid=1, block=1, accesses=[rl.read(x)])
    assert [f.acquire for f in graph.compile().fences.inner] == [("V",), (), ("K", "V")]


def test_aliases_are_one_memory() -> None:
    """A slice by another name conflicts byte for byte, in the memory's own coordinates."""
    graph = rl.Graph()
    x = graph.buffer("x", 64)
    view = graph.buffer("view", 16, alias_of=x[32:48])
    graph.launch(rl.Kernel.synthetic("w"), grid=1, block=1, args=[rl.write(view[4:8])])
    graph.launch(rl.Kernel.synthetic("r"), grid=1, block=1, args=[rl.read(x[0:40])])
    (hazard,) = graph.compile().hazards
    assert (hazard.buffer, hazard.start, hazard.stop) == (0, 36, 40)


@given(items=nodes(), data=st.data())
def test_explicit_order_wants_every_conflict_ordered(items: list[Node], data: st.DataObject) -> None:
    """order="explicit": accepted exactly when every conflicting pair has a chain of after= between its ends."""
    after = [tuple(data.draw(st.sets(st.integers(0, at - 1))) if at else ()) for at in range(len(items))]
    items = [replace(node, after=edges) for node, edges in zip(items, after, strict=True)]
    reach: list[set[int]] = []
    for edges in after:
        reach.append(set(edges).union(*(reach[i] for i in edges)))
    conflicts = [(h.first, h.second) for h in build(items).compile().hazards]
    ordered = all(a in reach[b] for a, b in conflicts)
    if ordered:
        plan = build(items, order="explicit").compile()
        assert rl.verify(plan, plan.fences) == ()
    else:
        with pytest.raises(rl.HazardError, match=r"(RAW|WAR|WAW) on m\d\[\d:\d\].*after="):
            build(items, order="explicit").compile()


def test_an_unordered_conflict_names_both_launches_lines_and_bytes() -> None:
    """order="explicit": the message has labels, call sites, kind, range and the fix."""
    graph = build([Node(writes=((0, 0, 3),)), Node(reads=((0, 2, 4),))], order="explicit")
    with pytest.raises(rl.HazardError) as caught:
        graph.compile()
    text = str(caught.value)
    for part in ("#0 n0", "#1 n1", "graphs.py:", "RAW on m0[2:3]", "after= #0 n0"):
        assert part in text


@pytest.mark.parametrize("launches", [1, 2])
def test_every_graph_of_few_launches(launches: int) -> None:
    """All of them over two bytes: safe, nothing to take away, nothing cheaper. `make prove` goes on to three."""
    count = 0
    for items in every_graph(launches):
        assert judge(items) == "", items
        count += 1
    assert count == 32**launches


@pytest.mark.parametrize(
    "given",
    [
        [Fence(1, ("K", "K"))],
        [Fence(1, ("V", "V", "P"))],
        [Fence(1, ("X",))],
        [Fence(1, "KV")],  # type: ignore[arg-type]
        [Fence(1, None)],  # type: ignore[arg-type]
        [Fence(1, ([],))],  # type: ignore[arg-type]
        [Fence(1), None],
        [1],
        None,
        7,
    ],
)
def test_what_is_no_list_of_fences_is_refused(given: Any) -> None:
    """A class named twice was added up to another class: K and K were V."""
    with pytest.raises(rl.HazardError, match="acquire a tuple of K, V, P, each at most once") as caught:
        Fences(given)
    assert caught.value.code == "RL0204"


def test_a_position_beyond_every_plan_is_refused() -> None:
    """10**30 does not fit the column."""
    with pytest.raises(rl.HazardError, match="positions from 0 on"):
        Fences([Fence(10**30)])
