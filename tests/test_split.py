# SPDX-License-Identifier: Apache-2.0
"""Plans in two: run one behind the other, the parts give the bits of the whole."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redline as rl
from redline import demo
from redline.kernels import decode
from tests.graphs import Node, build, nodes
from tests.realistic import cg, vcycle
from tests.realistic import decode as transformer

TARGET = "gfx1201"


@cache
def _demo_plan(boundary: str = "host") -> rl.Plan:
    return demo.record(demo.modules(TARGET, 32)).compile(boundary=boundary)


def _bits(parts: tuple[rl.Plan, ...], tokens: int = 2) -> dict[str, bytes]:
    """What the host sees in every buffer of the demo after some tokens; the parts share all memory."""
    with rl.open(f"sim:{TARGET}") as device:
        memory: dict[Any, rl.DeviceBuffer] = {}
        state = decode.initial()
        outside = {buffer.name: buffer.nbytes for part in parts for buffer in part.buffers if buffer.role != "internal"}
        for name, nbytes in outside.items():
            memory[name] = device.buffer(nbytes)
            memory[name].write(state[name] if decode.BUFFERS[name].role != "internal" else np.zeros(nbytes, np.uint8))
        replays = [device.instantiate(part, memory) for part in parts]
        for token in range(tokens):
            values = decode.slot_values(token)
            for part, replay in zip(parts, replays, strict=True):
                replay.patch(**{slot.name: values[slot.name] for slot in part.slots})
                replay.run(timeout=60.0)
        kept = [name for name, buffer in decode.BUFFERS.items() if buffer.role != "internal"]
        return {name: memory[name].read(np.uint8).tobytes() for name in kept}


@cache
def _whole() -> dict[str, bytes]:
    return _bits((_demo_plan(),))


@pytest.mark.parametrize("k", [1, 4, 9, 21, -1])
def test_two_parts_give_the_bits_of_the_whole(k: int) -> None:
    """Case 61: the demo plan cut behind its first launch, inside a layer, and before its last launch; two tokens."""
    plan = _demo_plan()
    parts = plan.split(k % len(plan.order))
    assert [len(part.launches) for part in parts] == [k % len(plan.order), len(plan.order) - k % len(plan.order)]
    assert _bits(parts) == _whole()


def test_a_plan_of_replays_back_to_back_is_cut_into_two_that_wait_for_the_host() -> None:
    """The parts meet other launches between two of their replays, so their boundary is "host"."""
    first, second = _demo_plan("queue").split(9)
    assert (first.boundary, second.boundary) == ("host", "host")
    assert _bits((first, second)) == _whole()


@pytest.mark.parametrize("module", [cg, vcycle, transformer], ids=["cg", "vcycle", "transformer"])
def test_the_realistic_graphs_can_be_cut_anywhere(module: Any) -> None:
    """Launches, labels and call sites in the emitted order; both parts are safe; drains no more than the whole's."""
    plan = module.record().compile()
    count = len(plan.order)
    for k in sorted({1, 2, count // 3, count // 2, count - 1}):
        first, second = plan.split(k)
        named = [(launch.label, launch.site) for part in (first, second) for launch in part.launches]
        assert named == [(plan.launches[index].label, plan.launches[index].site) for index in plan.order]
        assert rl.verify(first, first.fences) == rl.verify(second, second.fences) == ()
        assert plan.fences.drains - 1 <= first.fences.drains + second.fences.drains <= plan.fences.drains


@given(items=nodes(), data=st.data())
def test_parts_are_safe_and_keep_every_edge(items: list[Node], data: st.DataObject) -> None:
    """Random graphs with after=: an edge is inside one part, or leads from the first into the second."""
    plan = build(items, role="internal").compile()
    if len(items) < 2:
        return
    k = data.draw(st.integers(1, len(items) - 1))
    parts = plan.split(k)
    for part, order in zip(parts, (plan.order[:k], plan.order[k:]), strict=True):
        assert rl.verify(part, part.fences) == ()
        assert {b.role for b in part.buffers} == {"inout"}
        inside = {(a, b) for a, b in plan.edges if a in order and b in order}
        kept = {(order[a], order[b]) for a, b in part.edges}
        assert kept <= inside | {(a, b) for a in order for b in order if a < b}
        assert {pair for pair in inside if pair[0] in plan.launches[pair[1]].after} <= kept
    position = {index: at for at, index in enumerate(plan.order)}
    assert all(position[a] < position[b] for a, b in plan.edges)


def test_roles_slots_and_options_of_the_parts() -> None:
    """Internal and out become inout, in stays; aliases stay aliases; slots go where they are used; lowering stays."""
    graph = rl.Graph()
    w, t = graph.buffer("w", 8, role="in"), graph.buffer("t", 8)
    view, out = graph.buffer("view", 4, alias_of=t[4:]), graph.buffer("out", 8, role="out")
    kernel = rl.Kernel.synthetic("k", pointers=2, scalars=(4,), target="gfx1010")
    graph.launch(kernel, grid=1, block=1, args=[rl.write(t), rl.read(w), rl.slot("a", "i4")])
    graph.launch(kernel, grid=1, block=1, args=[rl.write(out), rl.read(view), rl.slot("b", "i4")])
    first, second = graph.compile(gfx10_wait="partial_flush", elide=False).split(1)
    assert [(b.name, b.role) for b in first.buffers] == [
        ("w", "in"),
        ("t", "inout"),
        ("view", "internal"),
        ("out", "inout"),
    ]
    assert [[slot.name for slot in part.slots] for part in (first, second)] == [["a"], ["b"]]
    assert [(p.program.options.gfx10_wait, p.program.options.elide) for p in (first, second)] == [
        ("partial_flush", False)
    ] * 2
    assert "#0 k reads" not in second.explain()


@pytest.mark.parametrize("k", [0, 2, -1, True, 1.0, "1", None])
def test_both_parts_have_a_launch(k: Any) -> None:
    """Anything but a number of launches that leaves some on both sides is refused."""
    plan = build([Node(), Node()]).compile()
    with pytest.raises(rl.RecordError, match=r"Plan.split.*a number of launches in 1\.\.1"):
        plan.split(k)
