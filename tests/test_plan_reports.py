# SPDX-License-Identifier: Apache-2.0
"""What a plan says about itself in numbers and differences: `stats`, `memory`, `diff`; and `dot`."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given

import redline as rl
from redline import report
from redline.fences import full_fences
from redline.hsa.agent import Agent
from redline.launch import PointerArg, SlotArg, Touch
from redline.plan import BOUNDARIES, KERNEL_NUMBERS
from tests.devices import buffers, module, two_launches
from tests.graphs import Node, build, nodes
from tests.realistic import cg, decode, vcycle

EACH = pytest.mark.parametrize("module", [decode, cg, vcycle], ids=lambda module: module.__name__.rpartition(".")[2])

# -- stats --


@pytest.mark.parametrize("boundary", BOUNDARIES)
@given(items=nodes())
def test_what_a_plan_is_compared_to_is_safe_and_never_cheaper(boundary: str, items: list[Node]) -> None:
    """fences="full" and a boundary per dependent launch would run, and have at least as many drains."""
    plan = build(items).compile(boundary=boundary)
    stats = plan.stats()
    for name, fences in (
        ("full", full_fences(plan)),
        ("per_dependent_launch", report._per_dependent_launch(plan)),
    ):
        assert rl.verify(plan, fences) == ()
        assert stats[name]["drains"] == fences.drains >= stats["drains"]
        assert stats[name]["dwords"] >= stats["dwords"]
    assert stats["full"]["drains"] >= stats["per_dependent_launch"]["drains"]


@pytest.mark.parametrize("boundary", ["queue", "other-queue"])
def test_a_boundary_per_dependent_launch_counts_what_happens_between_replays(boundary: str) -> None:
    """Patched arguments and other queues are a dependency of the first launch, whatever the launches share."""
    graph = rl.Graph()
    x = graph.buffer("x", 8)
    kernel = rl.Kernel.synthetic("k", scalars=(4,))
    graph.launch(kernel, grid=1, block=1, args=[rl.write(x[:4]), rl.slot("s", "i4")])
    plan = graph.compile(boundary=boundary)
    assert rl.verify(plan, report._per_dependent_launch(plan)) == ()


@pytest.mark.parametrize("options", [{"elide": False}, {"gfx10_wait": "partial_flush"}])
def test_figures_are_compared_with_equal_options_of_lowering(options: dict[str, Any]) -> None:
    """A plan of full fences has the very figures that a plan of fewest fences says they have."""
    graph = rl.Graph()
    x = graph.buffer("x", 8)
    for _ in range(4):
        kernel = rl.Kernel.synthetic("k", target="gfx1010")
        graph.launch(kernel, grid=1, block=1, args=[rl.update(x)])
    minimal, full = (graph.compile(fences=fences, **options).stats() for fences in ("minimal", "full"))
    assert minimal["full"]["dwords"] == full["dwords"]


# -- memory --


@EACH
def test_the_memory_of_a_plan_is_the_sum_of_its_parts(module: ModuleType) -> None:
    """Case 34: in bytes, and signals; only buffers that the replay allocates count."""
    plan = module.record().compile()
    memory = plan.memory()
    parts = {name: nbytes for name, nbytes in memory.items() if name.endswith("_bytes")}
    assert sum(parts.values()) == memory["bytes"]
    assert memory["kernarg_bytes"] == len(plan.program.kernarg)
    assert memory["ib_bytes"] == 4 * len(plan.program.words)
    assert memory["buffer_bytes"] == sum(b.nbytes for b in plan.buffers if b.role == "internal")
    assert (memory["scratch_bytes"], memory["signals"]) == (0, 1)


@pytest.mark.parametrize("target", ["gfx1010", "gfx1201"])
def test_a_replay_allocates_what_the_plan_says(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 34: every allocation and signal of `instantiate`, on the software device; gfx10 has a fence word more."""
    graph, allocated, signals = two_launches(target), list[int](), list[int]()
    allocate, signal = Agent.allocate, Agent.signal

    def counted(agent: Agent, nbytes: int, *args: Any, **options: Any) -> Any:
        allocated.append(nbytes)
        return allocate(agent, nbytes, *args, **options)

    def made(agent: Agent, value: int) -> Any:
        signals.append(value)
        return signal(agent, value)

    memory = graph.compile().memory()
    with rl.open(f"sim:{target}") as device:
        bound = buffers(device, graph)
        monkeypatch.setattr(Agent, "allocate", counted)
        monkeypatch.setattr(Agent, "signal", made)
        device.instantiate(graph.compile(), bound).close()
    assert sum(allocated) == memory["bytes"]
    assert len(signals) == memory["signals"]
    assert memory["fence_word_bytes"] == (64 if target == "gfx1010" else 0)


def test_a_hundred_piecewise_plans_take_a_hundred_times_the_memory() -> None:
    """Case 34: no plan costs more because there are others."""
    pieces = []
    for layer in range(100):
        graph = rl.Graph()
        x = graph.buffer("x", 4096, role="inout")
        t = graph.buffer("t", 4096)
        kernel = rl.Kernel.synthetic("k", pointers=2)
        graph.launch(kernel, grid=1, block=64, args=[rl.write(t), rl.read(x)], label=f"up {layer}")
        graph.launch(kernel, grid=1, block=64, args=[rl.write(x), rl.read(t)], label=f"down {layer}")
        pieces.append(graph.compile().memory())
    for name, each in pieces[0].items():
        assert sum(piece[name] for piece in pieces) == 100 * each
    assert pieces[0]["bytes"] > 4096


# -- diff --


def _example(**changes: Any) -> rl.Graph:
    """A graph of which each part can be changed by its name."""
    graph = rl.Graph(order=changes.get("order", "record"))
    if "first" in changes:
        graph.buffer("first", 4)
    x = graph.buffer(changes.get("name", "x"), changes.get("nbytes", 64), role=changes.get("role", "inout"))
    if "alias" in changes:
        graph.buffer("alias", 4, alias_of=x[changes["alias"] :])
    kernel = rl.Kernel.synthetic("k", scalars=(4,), certificate=changes.get("certificate"))
    kernel = replace(kernel, **changes.get("kernel", {}))
    value = changes.get("value", 3)
    access = changes.get("access", rl.update)
    a = graph.launch(kernel, grid=changes.get("grid", 1), block=changes.get("block", 1), args=[access(x[:8]), value])
    if "middle" in changes:
        graph.launch(kernel, grid=1, block=7, args=[rl.update(x[8:12]), 5], label="middle")
    after = [a] if "after" in changes or "order" in changes else []
    end = rl.update(x[changes.get("end", 0) : 16], base=x)
    graph.launch(kernel, grid=1, block=1, args=[end, 4], after=after, label=changes.get("label", "end"))
    return graph


SLOT = rl.slot("s", "i4")
CHANGES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"order": "explicit"}, "order_mode: record -> explicit"),
    ({}, {"name": "y"}, "buffer x, name: x -> y"),
    ({}, {"nbytes": 128}, "buffer x, bytes: 64 -> 128"),
    ({}, {"role": "out"}, "buffer x, role: inout -> out"),
    ({}, {"alias": 4}, "buffer alias: only in the second"),
    ({"alias": 4}, {"alias": 8}, "buffer alias, alias of: ('x', 4) -> ('x', 8)"),
    ({}, {"first": True}, "buffer first: only in the second"),
    ({}, {"value": SLOT}, "slot s: only in the second"),
    ({"value": SLOT}, {"value": rl.slot("t", "i4")}, "slot s, name: s -> t"),
    ({"value": SLOT}, {"value": rl.slot("s", "u4")}, "slot s, type: i4 -> u4"),
    ({"value": SLOT}, {"value": rl.slot("s", "i4", default=1)}, "slot s, default: none -> 01000000"),
    ({}, {"grid": 2}, "launch #0 k, global size: (1, 1, 1) -> (2, 1, 1)"),
    ({}, {"block": 2}, "launch #0 k, block: (1, 1, 1) -> (2, 1, 1)"),
    ({}, {"value": 258}, "launch #0 k, argument bytes: 0000000000000000 03000000 -> 0000000000000000 02010000"),
    ({}, {"access": rl.read}, "launch #0 k, accesses: "),
    ({}, {"end": 1}, "launch #1 end, accesses: "),
    ({}, {"after": True}, "launch #1 end, after: () -> (0,)"),
    ({}, {"middle": True}, "launch #1 middle: only in the second"),
    ({"middle": True}, {}, "launch #1 middle: only in the first"),
    ({}, {"kernel": {"name": "other"}}, "launch #0 k, kernel: k -> other"),
    ({}, {"kernel": {"code_sha256": "00" * 32}}, "launch #0 k, kernel's code: "),
    ({}, {"certificate": rl.Certificate("vmem_only")}, "launch #0 k, kernel's certificate: none -> ('vmem_only', "),
]


@pytest.mark.parametrize(("one", "other", "line"), CHANGES, ids=[line.rstrip(": ") for _, _, line in CHANGES])
def test_each_kind_of_change_is_named(one: dict[str, Any], other: dict[str, Any], line: str) -> None:
    """Where the fingerprints differ, what was changed and from what to what; the same without a word where not."""
    plan, changed = _example(**one).compile(), _example(**other).compile()
    found = plan.diff(changed)
    assert [text for text in found if text.startswith(line)], found
    assert plan.fingerprint != changed.fingerprint
    assert plan.diff(_example(**one).compile()) == changed.diff(changed) == ()


@pytest.mark.parametrize("name", KERNEL_NUMBERS)
def test_each_number_of_a_kernel_is_named(name: str) -> None:
    """Those of the descriptor too that recording would refuse."""
    plan = _example().compile()
    launch = plan.launches[0]
    number: dict[str, Any] = {name: 1 << 20}
    kernel = replace(launch.kernel, **number)
    changed = replace(plan, launches=(replace(launch, kernel=kernel), *plan.launches[1:]))
    assert plan.diff(changed) == (f"launch #0 k, kernel's {name}: {getattr(launch.kernel, name)} -> 1048576",)
    assert plan.fingerprint != changed.fingerprint


@pytest.mark.parametrize(
    ("fields", "of_kernel", "line"),
    [
        ({"dynamic_lds": 64}, {}, "launch #0 k, dynamic LDS: 0 -> 64"),
        ({"slots": (SlotArg(8, "s"),)}, {}, "launch #0 k, slots: [] -> [(8, 's')]"),
        ({"pointers": (PointerArg(0, 0, 4),)}, {}, "launch #0 k, pointers: [(0, 'x', 0)] -> [(0, 'x', 4)]"),
        ({"touches": (Touch(0, 0, 8, True, None),)}, {}, "launch #0 k, accesses: "),
        ({}, {"arguments": ()}, "launch #0 k, kernel's arguments: [(0, 8, 'global_buffer'), (8, 4, 'by_value')] -> []"),
        ({}, {"module": module("copy")}, "launch #0 k, kernel's module: none -> "),
    ],
    ids=["LDS", "slots", "pointers", "touches", "arguments", "module"],
)
def test_each_part_of_a_launch_is_named(fields: dict[str, Any], of_kernel: dict[str, Any], line: str) -> None:
    """Each on its own, as no recording changes it."""
    plan = _example().compile()
    launch = plan.launches[0]
    other = replace(launch, kernel=replace(launch.kernel, **of_kernel), **fields)
    changed = replace(plan, launches=(other, *plan.launches[1:]))
    (found,) = plan.diff(changed)
    assert found.startswith(line)
    assert plan.fingerprint != changed.fingerprint


def test_the_kind_of_a_buffer_is_named() -> None:
    """What may hold its bytes decides what the entry must invalidate."""
    plan = _example().compile()
    changed = replace(plan, buffers=(replace(plan.buffers[0], kind="fine"),))
    assert plan.diff(changed) == ("buffer x, kind: device -> fine",)
    assert plan.fingerprint != changed.fingerprint


@pytest.mark.parametrize("change", [{"first": True}, {"middle": True}])
def test_one_more_is_one_line(change: dict[str, Any]) -> None:
    """What stands behind an inserted buffer or launch has not changed."""
    assert len(_example().compile().diff(_example(**change).compile())) == 1


def test_options_and_order_are_named() -> None:
    """Of one graph, under other options of `Plan.of`."""
    graph = build([Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),)), Node(writes=((1, 0, 1),))])
    assert graph.compile().diff(graph.compile(schedule="record")) == (
        "schedule: levels -> record",
        "order, from position 1 on: #2 -> #1",
    )
    assert graph.compile().diff(graph.compile(fences="full")) == ("fence_mode: minimal -> full",)
    assert graph.compile().diff(graph.compile(boundary="queue")) == ("boundary: host -> queue",)
    here, there = (_chain(target) for target in ("gfx1200", "gfx1201"))
    assert here.diff(there) == ("target: gfx1200 -> gfx1201",)


def _chain(target: str) -> rl.Plan:
    graph = rl.Graph()
    x = graph.buffer("x", 4)
    graph.launch(rl.Kernel.synthetic("k", target=target), grid=1, block=1, args=[rl.update(x)])
    return graph.compile()


@given(one=nodes(most=3), other=nodes(most=3))
def test_no_difference_exactly_when_the_fingerprints_are_equal(one: list[Node], other: list[Node]) -> None:
    """On random pairs of graphs, and on a graph and its twin."""
    a, b, twin = build(one).compile(), build(other).compile(), build(one).compile()
    assert (a.diff(b) == ()) == (a.fingerprint == b.fingerprint)
    assert a.diff(twin) == ()


def test_labels_and_the_history_of_a_set_are_no_difference() -> None:
    """What the fingerprint does not hold is not compared; equal sets may list their members in another order."""
    assert _example().compile().diff(_example(label="z").compile()) == ()
    built = [frozenset((0, 8)), frozenset((8, 0))]
    assert str(built[0]) != str(built[1])
    one, other = (_example(certificate=rl.Certificate("scalar_args", args)).compile() for args in built)
    assert one.diff(other) == ()
    assert one.fingerprint == other.fingerprint


def test_kernels_that_differ_in_what_no_plan_holds_are_one() -> None:
    """A symbol or a requirement that recording has checked changes neither the fingerprint nor the comparison."""
    graph, twin = rl.Graph(), rl.Graph()
    kernel = rl.Kernel.synthetic("k")
    for made, kernels in ((graph, [kernel, kernel]), (twin, [kernel, replace(kernel, symbol="k.kd")])):
        x = made.buffer("x", 4)
        for each in kernels:
            made.launch(each, grid=1, block=1, args=[rl.update(x)])
    assert graph.compile().diff(twin.compile()) == ()
    assert graph.compile().fingerprint == twin.compile().fingerprint


# -- dot --

_STRING = r'"(?:[^"\\]|\\.)*"'
_PLAIN = r"[A-Za-z_][A-Za-z_0-9]*"
_ATTRIBUTES = rf"\[{_PLAIN}=(?:{_STRING}|{_PLAIN})(?:, {_PLAIN}=(?:{_STRING}|{_PLAIN}))*\]"
_STATEMENT = re.compile(
    rf"  (?:rankdir=LR; node {_ATTRIBUTES}; edge {_ATTRIBUTES};|subgraph {_PLAIN} {{ rank=same;|  n\d+ {_ATTRIBUTES};"
    rf"|}}|n\d+ -> n\d+ {_ATTRIBUTES};)"
)


def _check_dot(text: str) -> None:
    """By Graphviz where it is installed, and always by the statements that `dot` may consist of."""
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("digraph plan {", "}")
    assert [line for line in lines[1:-1] if not _STATEMENT.fullmatch(line)] == []
    assert sum(line.count("{") - line.count("}") for line in (re.sub(_STRING, "", line) for line in lines)) == 0
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=text, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("boundary", ["host", "queue"])
@EACH
def test_dot_has_every_launch_and_every_conflict(module: ModuleType, boundary: str) -> None:
    """Each launch once, at its level; an arrow for each edge inside a replay, a dashed one into the next."""
    plan = module.record().compile(boundary=boundary)
    text = plan.dot()
    _check_dot(text)
    assert [int(n) for n in re.findall(r"^    n(\d+) ", text, re.MULTILINE)] == sorted(
        plan.order, key=lambda index: (plan.levels[index], plan.order.index(index))
    )
    solid = re.findall(r"^  n(\d+) -> n(\d+) \[(?!.*style=dashed)", text, re.MULTILINE)
    dashed = re.findall(r"^  n(\d+) -> n(\d+) \[.*style=dashed", text, re.MULTILINE)
    assert {(int(a), int(b)) for a, b in solid} == set(plan.edges)
    assert {(int(a), int(b)) for a, b in dashed} == {(h.first, h.second) for h in plan.carried}
    assert bool(dashed) == (boundary == "queue")
    for level in range(max(plan.levels) + 1):
        assert f"  subgraph level{level} {{ rank=same;\n" in text


def test_dot_says_what_an_arrow_is() -> None:
    """Kind, buffer and bytes, a line each; after= by its name; labels are quoted whatever they hold."""
    graph = rl.Graph()
    x = graph.buffer("x", 8)
    kernel = rl.Kernel.synthetic("k")
    a = graph.launch(kernel, grid=1, block=1, args=[rl.write(x)], label='a "quoted" \\ path\nand a line }')
    graph.launch(kernel, grid=1, block=1, args=[rl.access(x, reads=[x[0:4]], writes=[x[4:8]])], after=[a])
    text = graph.compile().dot()
    _check_dot(text)
    assert r'[label="RAW x[0:4]\nWAW x[4:8]\nafter="]' in text
    assert r'n0 [label="#0 a \"quoted\" \\ path\nand a line }"' in text


def test_the_check_of_dot_finds_a_broken_text() -> None:
    """An unquoted label, a missing brace, a statement that is none."""
    good = build([Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),))]).compile().dot()
    _check_dot(good)
    for broken in (good.replace('"', "", 1), good.replace("  }\n", "", 1), good.replace("->", "--")):
        with pytest.raises(AssertionError):
            _check_dot(broken)


# -- forms of several queues --

#: Options of compile, and what four chains of two launches come to: form, queues, packets, signals.
FORMS: dict[str, tuple[dict[str, Any], tuple[str, int, dict[str, int], int]]] = {
    "one stream": ({}, ("pm4", 1, {"VENDOR": 1, "KERNEL_DISPATCH": 0, "BARRIER_AND": 0}, 1)),
    "two queues": ({"queues": 2}, ("pm4 lanes", 2, {"VENDOR": 2, "KERNEL_DISPATCH": 0, "BARRIER_AND": 1}, 2)),
    "phases": (
        {"queues": 2, "phased": True},
        ("pm4 phases", 2, {"VENDOR": 4, "KERNEL_DISPATCH": 0, "BARRIER_AND": 3}, 5),
    ),
    "AQL": ({"queues": 4, "form": "aql"}, ("aql", 4, {"VENDOR": 0, "KERNEL_DISPATCH": 8, "BARRIER_AND": 4}, 4)),
}


def chains() -> rl.Graph:
    """Four chains that share nothing."""
    graph = rl.Graph()
    for at in range(4):
        buffer = graph.buffer(f"b{at}", 64, role="out")
        graph.launch(rl.Kernel.synthetic("first"), grid=1, block=1, args=[rl.write(buffer)])
        graph.launch(rl.Kernel.synthetic("second"), grid=1, block=1, args=[rl.update(buffer)])
    return graph


@pytest.mark.parametrize("name", FORMS)
def test_stats_count_what_is_published(name: str) -> None:
    """Packets by type, queues and signals of each form; every launch on one queue."""
    options, (form, queues, packets, signals) = FORMS[name]
    plan = chains().compile(**options)
    found = plan.stats()["submission"]
    assert (found["form"], found["queues"], found["packets"], found["signals"]) == (form, queues, packets, signals)
    assert sum(found["packets"].values()) == len(plan.program.packets)
    assert sorted(index for launches in found["launches_by_queue"] for index in launches) == list(range(8))
    assert (f"submitted as {form}" in plan.explain()) == (form != "pm4")
    assert plan.explain(json=True)["submission"] == found


@pytest.mark.parametrize("name", FORMS)
def test_halves_are_lowered_like_the_whole(name: str) -> None:
    """With its options: form, and queues where a half has work for them."""
    options, (form, *_) = FORMS[name]
    plan = chains().compile(**options)
    for half in plan.split(6):
        assert replace(half.program.options, queues=0) == replace(plan.program.options, queues=0)
        assert rl.verify_program(half, half.program) == ()
    assert plan.split(6)[0].program.form == form


def test_halves_keep_the_lane_of_each_launch() -> None:
    """A list names lanes by recorded launch; the halves' launches are numbered anew."""
    plan = chains().compile(queues=[0, 0, 1, 1, 0, 0, 1, 1])
    first, second = plan.split(5)
    lanes = dict(enumerate([0, 0, 1, 1, 0, 0, 1, 1]))
    for half, order in ((first, plan.order[:5]), (second, plan.order[5:])):
        assert half.program.options.queues == tuple(lanes[index] for index in order)
