# SPDX-License-Identifier: Apache-2.0
"""Graphs for tests of planning: random ones as hypothesis strategies, and a short way to write small ones down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

import redline as rl
from redline.ranges import Role

#: Certificates by the class that a kernel reads everything through.
READERS = {
    "KV": None,
    "V": rl.Certificate("vmem_only"),
    "L2": rl.Certificate("vmem_only", l2_args=frozenset(range(0, 256, 8))),
}

MEMORIES = 3
BYTES = 4


@dataclass(frozen=True)
class Node:
    """One launch: ranges read, ranges written as (memory, start, stop), explicit predecessors, reader class."""

    reads: tuple[tuple[int, int, int], ...] = ()
    writes: tuple[tuple[int, int, int], ...] = ()
    after: tuple[int, ...] = ()
    reader: str = "KV"


@st.composite
def ranges(draw: st.DrawFn) -> tuple[int, int, int]:
    """A non-empty byte range of one of a few tiny memories."""
    start = draw(st.integers(0, BYTES - 1))
    return draw(st.integers(0, MEMORIES - 1)), start, draw(st.integers(start + 1, BYTES))


@st.composite
def nodes(draw: st.DrawFn, most: int = 6) -> list[Node]:
    """A few launches that touch the same tiny memories, so that they conflict often."""
    drawn = draw(
        st.lists(
            st.builds(
                Node,
                reads=st.lists(ranges(), max_size=2).map(tuple),
                writes=st.lists(ranges(), max_size=2).map(tuple),
                after=st.sets(st.integers(0, most - 1), max_size=1).map(tuple),
                reader=st.sampled_from(sorted(READERS)),
            ),
            min_size=1,
            max_size=most,
        )
    )
    return [
        Node(node.reads, node.writes, tuple(i for i in node.after if i < at), node.reader)
        for at, node in enumerate(drawn)
    ]


@cache
def kernel_of(pointers: int, reader: str) -> rl.Kernel:
    """A kernel without code; graphs of the proofs share them."""
    return rl.Kernel.synthetic("k", pointers=pointers, certificate=READERS[reader])


def build(items: list[Node], *, order: str = "record", role: Role = "out") -> rl.Graph:
    """Record the nodes with synthetic kernels, one pointer argument per range."""
    graph = rl.Graph(order=order)  # type: ignore[arg-type]
    memories = [graph.buffer(f"m{index}", BYTES, role=role) for index in range(MEMORIES)]
    launches: list[rl.Launch] = []
    for node in items:
        args = [rl.read(memories[m][a:b]) for m, a, b in node.reads]
        args += [rl.write(memories[m][a:b]) for m, a, b in node.writes]
        kernel = kernel_of(len(args), node.reader)
        after = [launches[i] for i in node.after]
        launches.append(graph.launch(kernel, grid=1, block=1, args=args, after=after, label=f"n{len(launches)}"))
    return graph
