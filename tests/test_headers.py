# SPDX-License-Identifier: Apache-2.0
"""AQL headers say in barrier bits and scopes what the fences say in drains and acquires."""

from __future__ import annotations

import pytest
from hypothesis import given

import redline as rl
from redline.encoders.aql import HEADER, header
from redline.headers import aql_headers
from tests.graphs import Node, build, nodes

NONE, AGENT, SYSTEM = 0, 1, 2


@pytest.mark.parametrize(("scope", "word"), [("SYSTEM", 0x1502), ("AGENT", 0x0B02)])
def test_scopes_of_a_dispatch_header(scope: str, word: int) -> None:
    """Case 18: an entry from the host and one from another queue differ in exactly these bits."""
    assert header("KERNEL_DISPATCH", acquire=scope, release=scope) == word


@given(items=nodes())
def test_headers_are_the_fences(items: list[Node]) -> None:
    """A barrier bit for each drain, an acquire scope for each acquire, system scope at the entry."""
    plan = build(items).compile()
    fields = [HEADER.unpack(word) for word in aql_headers(plan, plan.fences)]
    assert [at for at, found in enumerate(fields) if at and found["BARRIER"]] == [f.at for f in plan.fences.inner]
    assert [at for at, found in enumerate(fields) if at and found["ACQUIRE"]] == [
        fence.at for fence in plan.fences.inner if fence.acquire
    ]
    assert (fields[0]["BARRIER"], fields[0]["ACQUIRE"]) == (1, SYSTEM)


def test_counts_in_memory_have_no_aql_packet() -> None:
    """Refused with the launch, instead of a header for a grid that nobody knows."""
    graph = rl.Graph()
    counts = graph.buffer("counts", 12)
    graph.launch(rl.Kernel.synthetic("k", pointers=0), grid=rl.read(counts), block=64)
    plan = graph.compile()
    with pytest.raises(rl.RecordError, match=r"RL0144 aql_headers, #0 k"):
        aql_headers(plan, plan.fences)


def test_release_scopes_follow_who_reads() -> None:
    """Case 26: system for the last writer of what the host reads, agent for what launches read, none for others."""
    graph = rl.Graph()
    x, out = graph.buffer("x", 8), graph.buffer("out", 8, role="out")

    def go(reads: list[rl.View], writes: list[rl.View]) -> None:
        args = [rl.read(view) for view in reads] + [rl.write(view) for view in writes]
        graph.launch(rl.Kernel.synthetic("k", pointers=len(args)), grid=1, block=1, args=args)

    go([], [x[0:4]])  # read by the second
    go([x[0:4]], [out[0:4]])  # overwritten by the third
    go([], [out[0:8]])  # the last writer of what the host reads
    go([], [x[4:8]])  # read by nobody
    plan = graph.compile(schedule="record")
    releases = [HEADER.unpack(word)["RELEASE"] for word in aql_headers(plan, plan.fences)]
    assert releases == [AGENT, NONE, SYSTEM, NONE]
