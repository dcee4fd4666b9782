# SPDX-License-Identifier: Apache-2.0
"""The graphs that broke earlier rules, each by its number in the memory model's list of findings.

F4 and F11, which need a replay, are in `test_replay_loops.py`. What is said in words of the hardware is checked on the
words, on five families.
"""

from __future__ import annotations

from typing import Any

import pytest

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import decode
from redline.fences import Fence, Fences, derive
from redline.plan import Plan, hazard_depths
from tests.graphs import Node, build
from tests.pairwise import is_safe
from tests.random_plans import FIVE
from tests.word_edits import GCR, Stream, changed, cleared, gcr_bits, joined, packets, where

A, B, C, D, E = (0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 2), (2, 0, 1)


def _safe(plan: rl.Plan, fences: Fences) -> bool:
    """By `verify` and by the definition over all pairs."""
    verdict = is_safe(plan, fences)
    assert verdict == (rl.verify(plan, fences) == ())
    return verdict


def _patched(target: str, certificate: rl.Certificate | None) -> rl.Plan:
    """One launch whose argument the host patches between replays."""
    graph = rl.Graph()
    kernel = rl.Kernel.synthetic("k", scalars=(4,), target=target, certificate=certificate)
    x = graph.buffer("x", 4)
    graph.launch(kernel, grid=1, block=1, args=[rl.read(x), rl.slot("s", "i4", default=0)])
    return graph.compile(boundary="queue")


def _warm(plan: rl.Plan) -> tuple[list[int], Stream]:
    """The stream before the warm start, and the packets behind it."""
    words, row = plan.program.words.tolist(), plan.program.ibs[0]
    return words[: row["warm"]], packets(words[row["warm"] :], plan.target)


def _warm_findings(plan: rl.Plan, head: list[int], warm: Stream) -> list[str]:
    found = rl.verify_words(plan, head + joined(warm), plan.target, ib=plan.program.ibs[0])
    return [str(finding) for finding in found]


@pytest.mark.parametrize("target", FIVE)
def test_f1_k_carries_gl1(target: str) -> None:
    """F1: K alone is 0x280, 0x080 on gfx12: GLK_INV alone refills K from a GL1 that still has the last argument."""
    plan = _patched(target, rl.Certificate("vmem_only", kernarg_vector_loads=False))
    assert plan.fences.inner == (Fence(0, ("K",), drain=False, rule="patched-kernargs"),)
    head, warm = _warm(plan)
    at = where(warm, target, "ACQUIRE_MEM")[0]
    has_gl1 = target != "gfx1201"
    assert warm[at][GCR] == (0x280 if has_gl1 else 0x080)
    assert _warm_findings(plan, head, warm) == []
    alone = changed(warm, at, GCR, lambda _: 0x080)
    stale = ["ordered but not visible: host -> #0: patched arguments through K"]
    assert _warm_findings(plan, head, alone) == (stale if has_gl1 else [])


@pytest.mark.parametrize("target", FIVE)
def test_f1_each_class_has_its_word(target: str) -> None:
    """F1: K 0x280, V 0x300, both 0x380; without GL1 0x080, 0x100, 0x180."""
    words = [family_for(target).acquire_gcr(k, v) for k, v in ((True, False), (False, True), (True, True))]
    assert words == ([0x280, 0x300, 0x380] if target != "gfx1201" else [0x080, 0x100, 0x180])


def test_f2_an_acquire_does_not_cover_what_had_not_drained() -> None:
    """F2: n1 writes A without having drained when V is acquired for n2; n3 reads A and needs its own."""
    items = [
        Node(writes=(B, C), reader="V"),
        Node(writes=(C, A), reader="V"),
        Node(reads=(B,), reader="V"),
        Node(reads=(A,), reader="V"),
    ]
    plan = Plan.of(build(items), schedule="record")
    assert [(f.at, f.acquire) for f in plan.fences.inner] == [(1, ("V",)), (3, ("V",))]
    assert _safe(plan, plan.fences)
    assert not _safe(plan, Fences([Fence(1, ("V",)), Fence(3)]))


def test_f3_a_pass_from_an_empty_state_is_stale() -> None:
    """F3: every launch also writes T. The acquire that one replay needs leaves D of the replay before stale; two passes
    are safe, and no fewer packets are.
    """
    t, w1, w2 = E, A, B
    items = [
        Node(writes=(t,), reader="V"),
        Node(writes=(t, w1), reader="V"),
        Node(reads=(D,), writes=(t, w2), reader="V"),
        Node(reads=(w1,), writes=(t, D), reader="V"),
        Node(reads=(w2,), writes=(t,), reader="V"),
    ]
    plan = Plan.of(build(items), boundary="queue", schedule="record")

    def acquires(*places: int) -> Fences:
        return Fences([Fence(at, ("V",) if at in places else ()) for at in range(5)])

    (stale,) = rl.verify(plan, acquires(3))
    assert (stale.first, stale.second, stale.carried, stale.cache) == (3, 2, True, "V")
    assert _safe(plan, acquires(2, 4))
    assert not any(_safe(plan, acquires(at)) for at in range(5))
    assert _safe(plan, plan.fences)
    assert (plan.fences.drains, plan.fences.acquires) == (5, 2)


def _io(target: str, kind: Any) -> rl.Plan:
    """One launch that reads what the host wrote and writes what the host reads."""
    graph = rl.Graph()
    ctl, out = graph.buffer("ctl", 4, kind=kind, role="in"), graph.buffer("out", 4, kind=kind, role="out")
    kernel = rl.Kernel.synthetic("k", pointers=2, target=target)
    graph.launch(kernel, grid=1, block=1, args=[rl.read(ctl), rl.write(out)])
    return graph.compile()


@pytest.mark.parametrize("target", FIVE)
@pytest.mark.parametrize("kind", ["device", "host", "fine", "uncached"])
def test_f5_what_gl2_holds_depends_on_kind_and_family(target: str, kind: str) -> None:
    """F5, case 40: without GL2 bits at both ends, uncached memory is served everywhere, fine-grained on gfx10 and gfx11
    only; elsewhere the launch reads the last token from GL2 and the host reads memory that GL2 has not written.
    """
    plan = _io(target, kind)
    stream = packets(plan.program.words, target)
    assert rl.verify_words(plan, joined(stream), target) == ()
    first, last = where(stream, target, "ACQUIRE_MEM")
    agent = cleared(cleared(stream, first, target, "GL2_INV", "GL2_WB"), last, target, "GL2_WB")
    held = kind in ("device", "host") or (kind == "fine" and target == "gfx1201")
    caches = [finding.cache for finding in rl.verify_words(plan, joined(agent), target)]
    assert caches == (["GL2_INV", "GL2_WB"] if held else [])


def test_f7_memory_that_no_argument_carries_is_read_through_both() -> None:
    """F7: a table t of pointers; B, reached through it, is declared beside the arguments. scalar_args says nothing of
    it, so V alone would leave K stale.
    """
    graph = rl.Graph()
    b, t, o = (graph.buffer(name, 8) for name in "bto")
    graph.launch(rl.Kernel.synthetic("k0"), grid=1, block=1, args=[rl.write(b)])
    certified = rl.Kernel.synthetic("k1", pointers=2, certificate=rl.Certificate("scalar_args", frozenset({0})))
    graph.launch(certified, grid=1, block=1, args=[rl.read(t), rl.write(o)], accesses=[rl.read(b)])
    plan = Plan.of(graph)
    assert plan.fences.inner == (Fence(1, ("K", "V")),)
    assert [f.cache for f in rl.verify(plan, Fences([Fence(1, ("V",))]))] == ["K"]


def _loop(target: str) -> rl.Plan:
    """A loop of one launch on memory of the host."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 4, role="in"), graph.buffer("y", 4, role="out")
    graph.launch(rl.Kernel.synthetic("k", pointers=2, target=target), grid=1, block=1, args=[rl.read(x), rl.write(y)])
    return graph.compile(boundary="queue")


@pytest.mark.parametrize("target", FIVE)
def test_f10_a_loop_is_entered_cold_and_left_with_a_release(target: str) -> None:
    """F10: the cold entry drains and invalidates I, K, V and GL2 at system scope; the loop's own start does not.
    Results are written back behind the last replay; a stream that ends before that serves no host.
    """
    plan = _loop(target)
    cold, warm, end, end_release = (int(at) for at in plan.program.ibs[0].tolist())
    assert cold == 0 < warm < end < end_release == len(plan.program.words)
    head, _ = _warm(plan)
    entry = [c for c in decode(head[: warm - 1], family_for(target)) if c.name == "ACQUIRE_MEM"]
    assert [c.words[GCR] for c in entry] == [0xC181 if target == "gfx1201" else 0xC3B1]
    words = plan.program.words

    def caches(*ib: int) -> set[str]:
        return {finding.cache for finding in rl.verify_words(plan, words, target, ib=ib)}

    assert caches(cold, warm, end, end_release) == set()
    assert caches(warm, warm, end, end_release) == {"GL2_INV", "I", "K", "V"}
    unreleased = rl.verify_words(plan, words, target, ib=(cold, warm, end, end))
    assert [(f.kind, f.first, f.second) for f in unreleased] == [("not ordered", 0, "host")]


@pytest.mark.parametrize("target", FIVE)
def test_f12_the_stream_drains_first_and_last(target: str) -> None:
    """F12: order against earlier packets must not rest on a barrier bit, nor completion on the packet: the first and
    the last packets that do anything are drains and what stands behind them.
    """
    plan = _loop(target)
    _, _, end, end_release = plan.program.ibs[0].tolist()
    names = [c.name for c in decode(plan.program.words.tolist(), family_for(target))]
    wait = ["RELEASE_MEM", "WAIT_REG_MEM"] if target.startswith("gfx10") else ["EVENT_WRITE"]
    zero = ["WRITE_DATA"] if target.startswith("gfx10") else []
    begin = [*zero, *wait, "ACQUIRE_MEM"]
    assert names[: len(begin)] == begin
    tail = [c.name for c in decode(plan.program.words[end:end_release].tolist(), family_for(target))]
    assert tail == [*wait, "ACQUIRE_MEM"]
    stream = packets(plan.program.words, target)[: -len(tail)]
    found = rl.verify_words(plan, joined(stream), target)
    assert ("not ordered", 0, "host") in {(f.kind, f.first, f.second) for f in found}


@pytest.mark.parametrize("target", FIVE)
def test_f13_arguments_indexed_per_lane_are_vector_loads(target: str) -> None:
    """F13: a patch needs K and V unless the certificate excludes vector loads of arguments."""
    plan = _patched(target, rl.Certificate("vmem_only"))
    assert plan.fences.inner == (Fence(0, ("K", "V"), drain=False, rule="patched-kernargs"),)
    head, warm = _warm(plan)
    at = where(warm, target, "ACQUIRE_MEM")[0]
    assert warm[at][GCR] == (0x180 if target == "gfx1201" else 0x380)
    k_only = changed(warm, at, GCR, lambda gcr: gcr & ~gcr_bits(target, "GLV_INV"))
    assert _warm_findings(plan, head, k_only) == ["ordered but not visible: host -> #0: patched arguments through V"]


@pytest.mark.parametrize("target", FIVE)
def test_f16_gl2_is_never_invalidated_without_write_back(target: str) -> None:
    """F16: in no word of the family's; in a foreign one it is a finding of its own, wherever it stands."""
    family = family_for(target)
    inv, back = gcr_bits(target, "GL2_INV"), gcr_bits(target, "GL2_WB")
    for word in (family.entry_gcr, family.release_gcr, family.acquire_gcr(True, True)):
        assert word & back or not word & inv
    plan = _io(target, "uncached")
    stream = packets(plan.program.words, target)
    for at in where(stream, target, "ACQUIRE_MEM"):
        alone = changed(stream, at, GCR, lambda gcr: (gcr | inv) & ~back)
        assert {f.kind for f in rl.verify_words(plan, joined(alone), target)} == {"may lose bytes"}


def test_f17_a_write_is_pending_from_the_wait_on_not_from_its_recording() -> None:
    """F17, as far as one queue goes: an acquire that stands between a write's recording and the wait for it does not
    serve its reader. Here k0 wrote X and nothing has waited for it when V is acquired for Y; k1 reads X behind its own
    wait. What waits for lanes: the graph of two lanes itself, that another lane's writer enters at the wait for its
    signal, and that only a lane's own acquires clear it.
    """
    x, y = A, C
    items = [
        Node(writes=(y,), reader="V"),
        Node(reads=(y,), writes=(x,), reader="V"),
        Node(reads=(x,), reader="V"),
    ]
    plan = Plan.of(build(items))
    assert plan.fences.inner == (Fence(1, ("V",)), Fence(2, ("V",)))
    assert [(f.first, f.second) for f in rl.verify(plan, Fences([Fence(1, ("V",)), Fence(2)]))] == [(1, 2)]


def test_f20_three_drains_of_a_replay_become_two() -> None:
    """F20: v R Z, W Q · a W X · b R X, W Y · c R Y, W Z. By hazard depth v and a come first and c last, and c of one
    replay conflicts with v of the next; with v one level later the chain's two edges are all.
    """
    z, q, x, y = A, B, C, D
    items = [
        Node(reads=(z,), writes=(q,)),
        Node(writes=(x,)),
        Node(reads=(x,), writes=(y,)),
        Node(reads=(y,), writes=(z,)),
    ]
    graph = build(items)
    assert hazard_depths(graph.accesses()).tolist() == [0, 0, 1, 2]
    assert Plan.of(graph).fences.drains == 2
    by_depth = Plan.of(graph, boundary="queue", schedule="record")
    assert derive(by_depth).drains == 3
    plan = Plan.of(graph, boundary="queue")
    assert (plan.order, plan.levels) == ((1, 0, 2, 3), (1, 0, 1, 2))
    assert (plan.fences.drains, _safe(plan, plan.fences)) == (2, True)


def test_f21_two_classes_share_a_packet() -> None:
    """F21: V before n1 and K before n2 can be one packet before n1; class by class there would be two."""
    a, z, t = A, C, E
    graph = rl.Graph()
    m = [graph.buffer(f"m{i}", 4) for i in range(3)]
    vector, scalar = rl.Certificate("vmem_only"), rl.Certificate("scalar_args", frozenset({0}))

    def go(reads: tuple[Any, ...], writes: tuple[Any, ...], certificate: rl.Certificate) -> None:
        args = [rl.read(m[i][p:q]) for i, p, q in reads] + [rl.write(m[i][p:q]) for i, p, q in writes]
        kernel = rl.Kernel.synthetic("k", pointers=len(args), certificate=certificate)
        graph.launch(kernel, grid=1, block=1, args=args)

    go((), (a, z, t), vector)
    go((a,), (t,), vector)
    go((z,), (t,), scalar)
    plan = Plan.of(graph, schedule="record")
    assert _safe(plan, plan.fences)
    assert [(f.at, f.acquire) for f in plan.fences.inner if f.acquire] == [(1, ("K", "V"))]
    assert _safe(plan, Fences([Fence(1, ("V",)), Fence(2, ("K", "V"))]))
