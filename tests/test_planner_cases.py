# SPDX-License-Identifier: Apache-2.0
"""Reports of people who do this job, as plans: what must be fenced, what must not, and what a plan tells about itself.

By the numbers of the list of cases. Others stand beside what they are about: 9 in `test_verify_words.py`, 29 in
`test_plan.py`, 40 in `test_counterexamples.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import redline as rl
from redline.fences import Fence, Fences
from redline.plan import Plan
from tests.devices import buffers, device_memory, two_launches
from tests.graphs import Node, build


def _launch(graph: rl.Graph, *args: Any, **options: Any) -> rl.Launch:
    kernel = rl.Kernel.synthetic("k", pointers=len(args))
    return graph.launch(kernel, grid=1, block=1, args=list(args), **options)


def _shape(shape: str, count: int = 941) -> rl.Plan:
    graph = rl.Graph()
    x, out = graph.buffer("x", 4), graph.buffer("out", 4096 * count)
    for i in range(count):
        own = rl.write(out[4096 * i : 4096 * (i + 1)])
        if shape == "chain":
            _launch(graph, rl.update(x))
        elif shape == "independent":
            _launch(graph, own)
        else:
            _launch(graph, *((rl.read(x), own) if i else (rl.write(x),)))
    return graph.compile()


@pytest.mark.parametrize(("shape", "drains"), [("chain", 940), ("independent", 0), ("fan-out", 1)])
def test_case_1_three_shapes_of_941_launches(shape: str, drains: int) -> None:
    """Case 1: as many fences as the shape has steps; `stats` prints launches, chain and drains."""
    stats = _shape(shape).stats()
    assert (stats["launches"], stats["chain"], stats["drains"], stats["acquires"]) == (941, drains, drains, drains)
    assert stats["full"]["drains"] == 940


def test_case_4_a_shared_input_is_no_reason() -> None:
    """Case 4: 64 readers of one buffer with outputs of their own have no fence. One that updates it is fenced on both
    sides, and only there.
    """
    graph = rl.Graph()
    w, out = graph.buffer("w", 64, role="inout"), graph.buffer("out", 64)
    for i in range(64):
        _launch(graph, (rl.update if i == 30 else rl.read)(w), rl.write(out[i : i + 1]))
    plan = graph.compile()
    assert plan.order[30] == 30
    assert plan.fences.inner == (Fence(30), Fence(31, ("K", "V")))
    assert all(30 in edge for edge in plan.edges)


def test_case_8c_hazards_go_on_into_the_next_replay() -> None:
    """Case 8: k0 reads A, writes B; k1 reads B, writes A. Back to back, RAW on A into k0 and WAR on B are carried, and
    k0 has an acquire at entry; with the host between, neither.
    """
    a, b = (0, 0, 4), (1, 0, 4)
    graph = build([Node(reads=(a,), writes=(b,)), Node(reads=(b,), writes=(a,))])
    loop, single = Plan.of(graph, boundary="queue"), Plan.of(graph)
    carried = {(h.kind, h.first, h.second, h.buffer) for h in loop.carried}
    assert {("RAW", 1, 0, 0), ("WAR", 1, 0, 1)} <= carried
    assert loop.fences.inner == (Fence(0, ("K", "V")), Fence(1, ("K", "V")))
    assert (single.carried, single.fences.inner) == ((), (Fence(1, ("K", "V")),))


@pytest.mark.parametrize("layers", [28, 142, 1428])
def test_case_17_entry_and_slots_hold_past_any_size(layers: int) -> None:
    """Case 17: 198, about 1,000 and about 10,000 launches, `pos` written by the host. The entry acquires at system
    scope before the first reader; each launch has a kernarg slot of its own, inside the pool.
    """
    graph = rl.Graph()
    pos, acts = graph.buffer("pos", 4, role="in"), graph.buffer("acts", 4, role="out")
    for _ in range(7 * layers + 2):
        _launch(graph, rl.read(pos), rl.update(acts))
    plan = graph.compile()
    program = plan.program
    offsets = program.slot_offsets.astype(np.int64)
    assert len(np.unique(offsets)) == 7 * layers + 2
    assert offsets.min() == 0
    assert offsets.max() + 64 == len(program.kernarg)
    assert not (offsets % 64).any()
    if layers == 28:
        assert rl.verify_words(plan, program.words, plan.target) == ()
        found = rl.verify(plan, Fences(plan.fences.inner, entry_rule=""))
        assert ("host", 0, "GL2_INV", "pos") in {(f.first, f.second, f.cache, f.buffer) for f in found}


@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1201"])
def test_case_18_the_entry_has_the_scope_of_the_boundary(target: str) -> None:
    """Case 18, the acquires: what the host may have written needs system scope, other queues the agent's. Header bits
    of AQL streams come with those streams.
    """
    graph = rl.Graph()
    x = graph.buffer("x", 4, role="in")
    graph.launch(rl.Kernel.synthetic("k", target=target), grid=1, block=1, args=[rl.read(x)])
    gfx12 = target == "gfx1201"
    scopes = {"host": 0xC181 if gfx12 else 0xC3B1, "other-queue": 0x180 if gfx12 else 0x380}
    for boundary, gcr in scopes.items():
        plan = graph.compile(boundary=boundary)
        words = plan.program.words[int(plan.program.ibs[0]["warm"]) :].tolist()
        header = words.index(0xC0065800)
        assert words[header + 7] == gcr


def test_case_26_a_host_reader_needs_the_release() -> None:
    """Case 26: a buffer that the host reads is written back behind its last writer; one that only launches touch is
    not a reason to. Without the release the check names writer, range and cache.
    """
    for role, expected in (("out", ["#1 -> host: host reads x[0:4], which may be in L2 only"]), ("internal", [])):
        graph = rl.Graph()
        x = graph.buffer("x", 4, role=role)  # type: ignore[arg-type]
        for _ in range(2):
            _launch(graph, rl.write(x))
        plan = graph.compile()
        found = rl.verify(plan, Fences(plan.fences.inner, exit_rule=""))
        # Whoever observes the end may free memory: the last launch has to have ended, whatever the role.
        assert [(f.first, f.second) for f in found if f.kind == "not ordered"] == [(1, "host")]
        stream = plan.program.words.tolist()
        stream[-1] &= ~0x8000  # the drain stays, GL2_WB goes
        words = [str(f) for f in rl.verify_words(plan, stream, plan.target)]
        assert words == [f"ordered but not visible: {text}" for text in expected]


def test_case_28_a_pool_that_is_full_changes_no_plan(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 28: the error names the pool; plan and program are what they were, and the next replay of them runs."""
    graph = two_launches()
    plan, memory = graph.compile(), buffers(device, graph)
    before = plan.fingerprint, plan.program.digest, plan.program.kernarg.tobytes()
    allocations = len(device_memory(device).allocations)
    with monkeypatch.context() as patched:
        patched.setattr("redline.placed._WINDOW", 1)
        with pytest.raises(rl.KernargPoolExhausted, match="RL1301"):
            device.instantiate(plan, memory)
    assert len(device_memory(device).allocations) == allocations
    assert (plan.fingerprint, plan.program.digest, plan.program.kernarg.tobytes()) == before
    with device.instantiate(plan, memory) as replay:
        kernarg = replay.placed.kernarg.nbytes
        for i in range(100_000):
            replay.patch(a=float(i % 5))
        replay.run()
        assert replay.placed.kernarg.nbytes == kernarg


def test_case_34_memory_is_the_sum_of_its_parts_and_linear() -> None:
    """Case 34: what a plan costs before it is made real: the parts have names, and grow with the launches."""
    graph = two_launches(count=1024)
    found = graph.compile().memory()
    parts = {name: size for name, size in found.items() if name not in ("bytes", "signals")}
    assert set(parts) == {
        *("kernarg_bytes", "ib_bytes", "fence_word_bytes", "stamp_bytes", "buffer_bytes", "scratch_bytes"),
    }
    assert found["bytes"] == sum(parts.values())
    assert (found["buffer_bytes"], found["scratch_bytes"], found["signals"]) == (4096, 0, 1)
    sizes = [_shape("chain", count).memory()["bytes"] for count in (50, 100, 150)]
    assert sizes[2] - sizes[1] == pytest.approx(sizes[1] - sizes[0], rel=0.02)


def test_case_34_memory_is_what_a_replay_allocates(device: rl.Device) -> None:
    """Case 34: counted on the device that runs it."""
    graph = two_launches()
    plan, memory = graph.compile(), buffers(device, graph)
    known = device_memory(device)
    before = set(known.allocations)
    with device.instantiate(plan, memory):
        sizes = [made.nbytes for made in set(known.allocations) - before]
        # Beside these only the code and the queue's own memory, whatever the plan.
        for part in ("kernarg_bytes", "ib_bytes", "buffer_bytes"):
            assert plan.memory()[part] in sizes, part


def test_case_63_hazards_are_exact_to_the_byte() -> None:
    """Case 63: writing [0:4096) and copying [4096:8192) is nothing; one byte more is a RAW on that byte, reported with
    both labels and the range.
    """
    for stop, hazards in ((4096, []), (4097, [("RAW", 4096, 4097)])):
        graph = rl.Graph(order="explicit")
        a, b = graph.buffer("A", 8192), graph.buffer("B", 4096)
        _launch(graph, rl.write(a[0:stop]), label="fill")
        _launch(graph, rl.read(a[4096:8192]), rl.write(b), label="copy")
        found = graph.lint()
        assert [(*pair.kinds, pair.start, pair.stop) for pair in found] == hazards
        for pair in found:
            assert pair.labels == ("fill", "copy")
            assert "RAW on A[4096:4097]" in str(pair)


def test_case_65_full_fences_are_a_boundary_everywhere() -> None:
    """Case 65: N - 1 full boundaries, of which the minimal fences are a subset; in a loop, N. That both give the same
    bits is `test_replay.py`'s.
    """
    items = [Node(writes=((0, 0, 1),)), Node(), Node(reads=((0, 0, 1),), reader="V"), Node(writes=((1, 0, 1),))]
    for boundary, count in (("host", 3), ("queue", 4), ("other-queue", 4)):
        full = Plan.of(build(items), boundary=boundary, schedule="record", fences="full")
        least = Plan.of(build(items), boundary=boundary, schedule="record")
        whole = {fence.at: fence for fence in full.fences.inner}
        assert len(whole) == count
        assert all(fence.drain and fence.acquire == ("K", "V") for fence in whole.values())
        assert all(set(f.acquire) <= set(whole[f.at].acquire) for f in least.fences.inner)
        assert rl.verify(full, full.fences) == ()


def test_case_67_conditional_nodes_are_refused_with_the_reason() -> None:
    """Case 67: no silent unrolling; the message says what a replay can do instead. The graph stays as it was."""
    graph = build([Node()])
    with pytest.raises(rl.RecordError, match=r"RL0142 .*test_planner_cases\.py:\d+.*host loop.*fixed number") as error:
        graph.while_("converged", lambda: None, max_iter=5)
    assert "runs each once" in error.value.allowed
    assert len(graph.launches) == 1


def test_case_68_equal_values_are_different_arguments(device: rl.Device) -> None:
    """Case 68: two scalars hold the very bits of a pointer. Binding other memory changes the pointer alone, patching a
    slot that slot alone: arguments are known by what they were recorded as, never by value.
    """
    graph = two_launches()
    memory = buffers(device, graph)
    value = memory["x"].address
    plan = graph.compile()
    with device.instantiate(plan, memory) as replay:
        replay.patch(a=np.frombuffer(value.to_bytes(8, "little")[:4], np.float32)[0])
        before = replay.placed.kernarg.copy()
        spare = device.buffer(1024)
        replay.bind({"x": spare})
        changed = np.flatnonzero(replay.placed.kernarg != before)
        uses = [int(row["offset"]) for row in plan.program.kernarg_relocs if int(row["buffer"]) == 0]
        assert {int(at) // 8 * 8 for at in changed} == set(uses)
        middle = replay.placed.kernarg.copy()
        replay.patch(a=-0.0)
        points = [int(row["offset"]) for row in plan.program.patches]
        assert {int(at) // 4 * 4 for at in np.flatnonzero(replay.placed.kernarg != middle)} == set(points)
