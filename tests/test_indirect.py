# SPDX-License-Identifier: Apache-2.0
"""Workgroup counts in memory: the command processor reads them, on gfx12 past GL2: written back first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import redline as rl
from redline import kernels
from redline.encoders import family_for
from redline.encoders.decode import read
from redline.fences import Fence, Fences
from redline.ranges import Kind
from tests.devices import module
from tests.pairwise import is_safe

BLOCK = 256


def _graph(target: str, *, kind: Kind = "device", start: int = 16) -> rl.Graph:
    """A launch that writes counts, and one of as many workgroups, with synthetic kernels."""
    graph = rl.Graph()
    counts, out = graph.buffer("counts", 64, kind=kind), graph.buffer("out", 4096, role="out")
    graph.launch(rl.Kernel.synthetic("count", target=target), grid=1, block=64, args=[rl.write(counts[16:28])])
    kernel = rl.Kernel.synthetic("fill", target=target)
    graph.launch(kernel, grid=rl.read(counts[start : start + 12]), block=64, args=[rl.write(out)])
    return graph


@pytest.mark.parametrize("target", kernels.DEMO_TARGETS)
def test_counts_are_waited_for_and_on_gfx12_written_back(target: str) -> None:
    """Design 4: P works at L2 on gfx10 and gfx11, at memory on gfx12."""
    plan = _graph(target).compile()
    past = family_for(target).processor_reads_past_l2
    assert past == (target == "gfx1201")
    assert plan.fences.inner == (Fence(1, ("P",) if past else ()),)
    inner = [c for c in read(plan.program.words, target) if c.name == "ACQUIRE_MEM"][1:-1]
    assert [c.words[7] for c in inner] == ([0x8000] if past else [])
    assert rl.verify(plan, plan.fences) == ()
    assert rl.verify_words(plan, plan.program.words, target) == ()
    drained = Fences([Fence(1)])
    findings = rl.verify(plan, drained)
    assert [(f.kind, f.cache) for f in findings] == ([("ordered but not visible", "P")] if past else [])
    assert is_safe(plan, drained) == (not past)
    assert rl.verify_words(plan, rl.lower(plan, drained).words, target) == findings


def test_memory_that_gl2_never_holds_needs_no_write_back() -> None:
    """Uncached counts are at memory when the drain is done."""
    assert _graph("gfx1201", kind="uncached").compile().fences.inner == (Fence(1),)


@pytest.mark.parametrize("kind", ["device", "host", "fine", "uncached"])
def test_counts_behind_an_alias_are_in_memory_of_its_root(kind: Kind) -> None:
    """Whatever name the counts are read by, the kind of their memory decides: fences are those without the alias."""
    graph = rl.Graph()
    counts, out = graph.buffer("counts", 64, kind=kind), graph.buffer("out", 4096, role="out")
    part = graph.buffer("part", 32, alias_of=counts[8:40])
    again = graph.buffer("again", 12, alias_of=part[8:20])
    graph.launch(rl.Kernel.synthetic("count"), grid=1, block=64, args=[rl.write(counts[16:28])])
    graph.launch(rl.Kernel.synthetic("fill"), grid=rl.read(again[0:12]), block=64, args=[rl.write(out)])
    plan = graph.compile()
    assert (part.kind, again.kind) == (kind, kind)
    assert plan.fences.inner == _graph(plan.target, kind=kind).compile().fences.inner


def test_an_alias_that_claims_another_kind_is_refused() -> None:
    """Counts behind an alias that says uncached, over memory that GL2 holds, were read stale on gfx12."""
    graph = rl.Graph()
    counts = graph.buffer("counts", 12)
    with pytest.raises(rl.RecordError, match=r"RL0133.*uncached.*device"):
        graph.buffer("alias", 12, kind="uncached", alias_of=counts)
    fine = graph.buffer("fine", 4, kind="fine")
    assert graph.buffer("same", 4, kind="fine", alias_of=fine).kind == "fine"


def test_an_indirect_launch_is_another_plan_and_says_so() -> None:
    """In the fingerprint, in diff, in explain, in the words."""
    plan = _graph("gfx1201").compile()
    other = _graph("gfx1201", start=20).compile()
    assert plan.fingerprint != other.fingerprint
    assert [line for line in plan.diff(other) if "counts:" in line] == [
        "launch #1 fill, counts: ('counts', 16) -> ('counts', 20)"
    ]
    assert "as many blocks of 64x1x1 as counts[16:28] says" in plan.explain()
    assert "reads counts[16:28] written by #0 count (RAW)" in plan.explain(0, 1)
    launched = [c.name for c in read(plan.program.words, "gfx1201") if c.name.startswith("DISPATCH")]
    assert launched == ["DISPATCH_DIRECT", "DISPATCH_INDIRECT"]


@pytest.mark.parametrize("target", ["gfx1030", "gfx1201"])
@pytest.mark.parametrize("boundary", ["host", "queue"])
def test_counts_written_by_a_launch_decide_how_much_runs(target: str, boundary: str) -> None:
    """On the software device: 2 of 4 workgroups, then 3 when the counts change, then from memory bound anew."""
    memory: dict[str, rl.DeviceBuffer] = {}
    with rl.open(f"sim:{target}") as device:
        copy = module("copy", target)["copy"]
        graph = rl.Graph()
        given, counts = graph.buffer("given", 16, role="in"), graph.buffer("counts", 64, role="out")
        source, out = graph.buffer("source", 4096, role="in"), graph.buffer("out", 4096, role="inout")
        graph.launch(copy, grid=1, block=BLOCK, args=[rl.write(counts[16:28]), rl.read(given[0:12]), 3])
        args = [rl.write(out), rl.read(source), 1024]
        graph.launch(copy, grid=rl.read(counts[16:28]), block=BLOCK, args=args)
        plan = graph.compile(boundary=boundary)
        for name, nbytes in (("given", 16), ("counts", 64), ("source", 4096), ("out", 4096), ("other", 64)):
            memory[name] = device.buffer(nbytes)
        memory["source"].write(np.arange(1, 1025, dtype="u4"))
        bound = {name: memory[name] for name in ("given", "counts", "source", "out")}
        with device.instantiate(plan, bound) as replay:
            for groups in (2, 3):
                memory["given"].write(np.array([groups, 1, 1, 0], "u4"))
                memory["out"].write(np.zeros(1024, "u4"))
                replay.run()
                assert np.count_nonzero(memory["out"].read("u4")) == groups * BLOCK
            replay.bind({"counts": memory["other"]})
            memory["counts"].write(np.full(16, 0xFFFF, "u4"))  # no longer anybody's counts
            memory["out"].write(np.zeros(1024, "u4"))
            replay.run()
            assert np.count_nonzero(memory["out"].read("u4")) == 3 * BLOCK
        for item in memory.values():
            item.close()


@pytest.mark.parametrize(
    ("start", "stop", "how"),
    [(0, 8, "read"), (0, 16, "read"), (2, 14, "read"), (0, 12, "write"), (0, 12, "update"), (0, 12, "base")],
)
def test_counts_are_twelve_aligned_bytes_that_are_read(start: int, stop: int, how: str) -> None:
    """Anything else is refused where it is recorded, with what was seen."""
    graph = rl.Graph()
    counts = graph.buffer("counts", 64)
    ways = {
        "read": lambda: rl.read(counts[start:stop]),
        "write": lambda: rl.write(counts[start:stop]),
        "update": lambda: rl.update(counts[start:stop]),
        "base": lambda: rl.read(counts[start:stop], base=counts[4:]),
    }
    with pytest.raises(rl.RecordError, match=rf"RL0141.*counts\[{start}:{stop}\].*12 bytes"):
        graph.launch(rl.Kernel.synthetic("k", pointers=0), grid=ways[how](), block=1)


def test_a_kernel_that_asks_for_the_grid_cannot_have_its_counts_in_memory() -> None:
    """Hidden block counts are filled when a launch is recorded: nobody knows them yet."""
    hidden = rl.Argument("", 0, 4, "hidden_block_count_x")
    kernel = replace(rl.Kernel.synthetic("k", pointers=0), arguments=(hidden,), kernarg_bytes=4)
    graph = rl.Graph()
    counts = graph.buffer("counts", 12)
    with pytest.raises(rl.RecordError, match=r"RL0141.*hidden_block_count_x"):
        graph.launch(kernel, grid=rl.read(counts), block=64)
    assert graph.launches == []
