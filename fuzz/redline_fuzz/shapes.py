# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies of graphs that users have, and of those that single decisions of the planner turn on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from redline.ranges import KINDS, ROLES
from redline_fuzz.cases import COUNT_BYTES, READERS, Case, Memory, Node, Touch
from redline_fuzz.oracles import FIVE
from redline_fuzz.strategies import made, settings_of

LANES = 4


def _reads(memory: int, start: int, stop: int) -> Touch:
    return Touch(memory, start, stop, "read")


def _writes(memory: int, start: int, stop: int) -> Touch:
    return Touch(memory, start, stop, "write")


def _updates(memory: int, start: int, stop: int) -> Touch:
    return Touch(memory, start, stop, "update")


_Graph = tuple[tuple[Memory, ...], tuple[Node, ...]]
_READER = st.sampled_from(tuple(READERS))
_OUTSIDE = st.builds(Memory, st.just(4), st.sampled_from(KINDS), st.sampled_from(("out", "inout")))


@st.composite
def _chain(draw: st.DrawFn) -> _Graph:
    """Launches that each read what the one before wrote."""
    readers = draw(st.lists(_READER, min_size=1, max_size=12))
    memories = (draw(_OUTSIDE), Memory(4, role="internal"))
    nodes = [Node((_reads(at % 2, 0, 4), _writes(1 - at % 2, 0, 4)), reader=r) for at, r in enumerate(readers)]
    return memories, tuple(nodes)


@st.composite
def _parallel(draw: st.DrawFn) -> _Graph:
    """Chains that touch nothing in common, recorded one behind the other: they drain together."""
    lengths = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    memories = tuple(Memory(2, role="inout") for _ in lengths)
    return memories, tuple(Node((_updates(at, 0, 2),)) for at, length in enumerate(lengths) for _ in range(length))


@st.composite
def _fan_out(draw: st.DrawFn) -> _Graph:
    """3Q + 1 launches that read one buffer, for Q lanes, and one that reads what they wrote."""
    readers = draw(st.lists(_READER, min_size=1, max_size=3 * LANES + 1))
    nodes = [Node((_writes(0, 0, 4),))]
    nodes += [Node((_reads(0, 0, 4), _writes(1, at, at + 1)), reader=r) for at, r in enumerate(readers)]
    nodes.append(Node((_reads(1, 0, len(readers)), _writes(2, 0, 4))))
    return (Memory(4, role="internal"), Memory(3 * LANES + 1, role="internal"), draw(_OUTSIDE)), tuple(nodes)


@st.composite
def _diamond(draw: st.DrawFn) -> _Graph:
    """One writes, some read it, one joins; again and again."""
    rounds = draw(st.lists(st.tuples(_READER, _READER), min_size=1, max_size=4))
    nodes: list[Node] = []
    for left, right in rounds:
        nodes += [
            Node((_updates(0, 0, 4),)),
            Node((_reads(0, 0, 4), _writes(1, 0, 2)), reader=left),
            Node((_reads(0, 0, 4), _writes(1, 2, 4)), reader=right),
            Node((_reads(1, 0, 4), _writes(0, 0, 4))),
        ]
    return (draw(_OUTSIDE), Memory(4, role="internal")), tuple(nodes)


@st.composite
def _in_place(draw: st.DrawFn) -> _Graph:
    """Every launch updates the same bytes."""
    readers = draw(st.lists(_READER, min_size=1, max_size=6))
    return (draw(_OUTSIDE),), tuple(Node((_updates(0, 0, 4),), reader=reader) for reader in readers)


@st.composite
def _arena(draw: st.DrawFn) -> _Graph:
    """Temporaries that share an arena: a range is written again once its reader is done with it."""
    places = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    memories = (Memory(8, role="internal"), draw(_OUTSIDE), Memory(4, role="internal", alias=(0, 2)))
    nodes: list[Node] = []
    for place in places:
        nodes += [Node((_writes(0, place, place + 2),)), Node((_reads(0, place, place + 2), _updates(1, 0, 4)))]
    nodes.append(Node((_updates(2, 0, 4),)))
    return memories, tuple(nodes)


@st.composite
def _one_byte(draw: st.DrawFn) -> _Graph:
    """Ranges that overlap in one byte, or touch without overlapping."""
    starts = draw(st.lists(st.tuples(st.integers(0, 5), st.booleans(), _READER), min_size=2, max_size=5))
    nodes = [Node((Touch(0, a, a + 2, "write" if w else "read"),), reader=r) for a, w, r in starts]
    return (Memory(7, role="inout"),), tuple(nodes)


@st.composite
def _layers(draw: st.DrawFn) -> _Graph:
    """Decode: norm, qkv with the cache written in place, attention, and a residual that is updated."""
    readers = draw(st.lists(_READER, min_size=1, max_size=3))
    memories = (Memory(4, role="inout"), Memory(4, role="internal"), Memory(8, role="inout"), Memory(2, role="in"))
    nodes: list[Node] = []
    for layer, reader in enumerate(readers):
        cache = layer % 4 * 2
        nodes += [
            Node((_reads(0, 0, 4), _writes(1, 0, 2)), reader=reader),
            Node((_reads(1, 0, 2), _writes(1, 2, 4), _writes(2, cache, cache + 1)), reader=reader, slot="s"),
            Node((_reads(2, 0, 8), _reads(1, 2, 4), _reads(3, 0, 2), _writes(1, 0, 2)), reader=reader),
            Node((_reads(1, 0, 2), _updates(0, 0, 4))),
        ]
    return memories, tuple(nodes)


@st.composite
def _disabled(draw: st.DrawFn) -> _Graph:
    """Launches in the middle whose counts are zero: they do nothing, and what is around them stays ordered."""
    off = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    counts = Memory(COUNT_BYTES, role="in", kind=draw(st.sampled_from(KINDS)), zeros=True)
    middle = [Node((_updates(0, 0, 4),), counts=1 if zero else None) for zero in off]
    return (draw(_OUTSIDE), counts), (Node((_writes(0, 0, 4),)), *middle, Node((_updates(0, 0, 4),)))


@st.composite
def _one_launch(draw: st.DrawFn) -> _Graph:
    """A single launch, over one memory or over nothing at all."""
    touches = draw(st.sampled_from(((), (_updates(0, 0, 4),), (_reads(0, 0, 4), _writes(0, 0, 4)))))
    return (draw(_OUTSIDE),), (Node(touches, reader=draw(_READER), slot=draw(st.sampled_from(("", "s")))),)


@st.composite
def _every_kind(draw: st.DrawFn) -> _Graph:
    """One launch reads and one updates a buffer of every kind and role."""
    chosen = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(ROLES)), min_size=1, max_size=6))
    memories = tuple(Memory(2, kind, role) for kind, role in chosen)
    nodes = []
    for _ in range(2):
        for at, memory in enumerate(memories):
            nodes.append(Node((_reads(at, 0, 2) if memory.role == "in" else _updates(at, 0, 2),)))
    return memories, tuple(nodes)


@st.composite
def _ping_pong(draw: st.DrawFn) -> _Graph:
    """What one replay leaves in one buffer the next one reads: only replays in a row conflict."""
    readers = draw(st.lists(_READER, min_size=1, max_size=3))
    memories = tuple(Memory(4, role=role) for role in ("inout", "internal", "internal", "out"))
    nodes = [Node((_reads(1 + at % 2, 0, 4), _writes(3, at, at + 1)), reader=r) for at, r in enumerate(readers)]
    return memories, (*nodes, Node((_reads(0, 0, 4), _writes(1, 0, 4))), Node((_updates(2, 0, 4),)))


@st.composite
def _late_start(draw: st.DrawFn) -> _Graph:
    """Beside a chain a launch that only its end conflicts with: replays in a row want it one level later."""
    links = draw(st.lists(_READER, min_size=1, max_size=2))
    nodes = [Node((_reads(0, 0, 2),)), Node((_writes(1, 0, 2),))]
    nodes += [Node((_reads(at, 0, 2), _writes(at + 1, 0, 2)), reader=r) for at, r in enumerate(links, 1)]
    nodes.append(Node((_reads(len(links) + 1, 0, 2), _writes(0, 0, 2))))
    return (draw(_OUTSIDE), *(Memory(2, role="internal") for _ in range(3))), tuple(nodes)


@st.composite
def _patched(draw: st.DrawFn) -> _Graph:
    """One slot in many launches, another in one of them."""
    readers = draw(st.lists(_READER, min_size=1, max_size=4))
    nodes = [Node((_updates(0, 0, 4),), reader=reader, slot="s" if at else "t") for at, reader in enumerate(readers)]
    return (draw(_OUTSIDE),), tuple(nodes)


@st.composite
def _counted(draw: st.DrawFn) -> _Graph:
    """Workgroup counts that an earlier launch wrote, and that a later one writes again."""
    counts = Memory(COUNT_BYTES, draw(st.sampled_from(KINDS)), draw(st.sampled_from(("internal", "inout"))))
    again = draw(st.booleans())
    nodes = [Node((_writes(0, 0, 12),)), Node((_updates(1, 0, 4),), counts=0, reader=draw(_READER))]
    return (counts, draw(_OUTSIDE)), (*nodes, *([Node((_writes(0, 4, 8),))] if again else []))


@st.composite
def _ring(draw: st.DrawFn) -> _Graph:
    """Launches that all must wait for the one before, and few of which read what another wrote, round the loop: where
    acquires stand is open.
    """
    count = draw(st.integers(2, 6))
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(1, 3)), min_size=1, max_size=4))
    memories = (Memory(1, role="internal"), Memory(len(pairs), role="internal"))
    nodes = []
    for at in range(count):
        written = [_writes(1, byte, byte + 1) for byte, (writer, _) in enumerate(pairs) if writer == at]
        read = [_reads(1, byte, byte + 1) for byte, (writer, by) in enumerate(pairs) if (writer + by) % count == at]
        nodes.append(Node((_updates(0, 0, 1), *written, *read), reader="L2 0"))
    return memories, tuple(nodes)


def _shape(graphs: SearchStrategy[_Graph], **fixed: str) -> Callable[..., SearchStrategy[Case]]:
    def strategy(targets: Sequence[str] = FIVE) -> SearchStrategy[Case]:
        return st.builds(lambda graph, setting: made(graph[0], graph[1], setting | fixed), graphs, settings_of(targets))

    return strategy


#: Graphs that users have, by name; each takes `targets=`.
SHAPES: dict[str, Callable[..., SearchStrategy[Case]]] = {
    "long-chain": _shape(_chain()),
    "fan-out": _shape(_fan_out()),
    "parallel-chains": _shape(_parallel()),
    "diamonds": _shape(_diamond()),
    "in-place": _shape(_in_place()),
    "arena-reuse": _shape(_arena()),
    "one-byte-overlaps": _shape(_one_byte()),
    "decode-layers": _shape(_layers()),
    "disabled-nodes": _shape(_disabled()),
    "one-launch": _shape(_one_launch()),
    "every-kind": _shape(_every_kind()),
    "ping-pong": _shape(_ping_pong()),
    "late-start": _shape(_late_start()),
    "patched": _shape(_patched()),
    "counted": _shape(_counted()),
    "ring": _shape(_ring(), boundary="queue"),
    "counted-full": _shape(_counted(), fences="full"),
}
