# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies of cases: any legal one, and the shapes that real graphs have.

Nodes are drawn whole, in lists, so that a failure shrinks to two or three launches over one memory. A draw names
memories by index and bytes by any numbers; what does not fit the memories that were drawn is folded into them, so that
no draw is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from redline.plan import BOUNDARIES, SCHEDULES
from redline.ranges import KINDS, ROLES
from redline_fuzz.cases import COUNT_BYTES, READERS, Between, Case, Memory, Node, Touch
from redline_fuzz.oracles import FIVE

MOST_NODES, MOST_MEMORIES, MOST_BYTES = 5, 3, 4
LANES = 4

#: What a case is compiled with and what happens around it, drawn apart from its graph.
Setting = dict[str, Any]


@dataclass(frozen=True)
class _Draft:
    """An access before it is folded into the memories: which one, where, how long, and what it does."""

    memory: int
    start: int
    nbytes: int
    does: str


@dataclass(frozen=True)
class _Launch:
    touches: tuple[_Draft, ...]
    extra: tuple[_Draft, ...]
    reader: str
    slot: str
    counts: bool
    after: int | None


_DRAFTS = st.builds(
    _Draft,
    st.integers(0, MOST_MEMORIES),
    st.integers(0, MOST_BYTES - 1),
    st.integers(1, MOST_BYTES),
    st.sampled_from(("read", "write", "update")),
)
_RARELY = st.sampled_from((False, False, False, True))
_LAUNCHES = st.builds(
    _Launch,
    st.lists(_DRAFTS, max_size=2).map(tuple),
    st.one_of(st.just(()), st.just(()), st.lists(_DRAFTS, max_size=1).map(tuple)),
    st.sampled_from(tuple(READERS)),
    st.sampled_from(("", "", "s", "t")),
    _RARELY,
    st.one_of(st.none(), st.none(), st.integers(0, MOST_NODES)),
)
_MEMORIES = st.builds(
    Memory, st.integers(1, MOST_BYTES), st.sampled_from(KINDS), st.sampled_from(ROLES), zeros=st.just(False)
)
_COUNTS = st.builds(
    Memory, st.just(COUNT_BYTES), st.sampled_from(KINDS), st.sampled_from(ROLES), zeros=st.sampled_from((False, True))
)
_BETWEEN = st.lists(st.builds(Between, st.booleans(), _RARELY, _RARELY), max_size=3).map(tuple)


@st.composite
def settings_of(draw: st.DrawFn, targets: Sequence[str] = FIVE) -> Setting:
    """Target, options of `Plan.of` and `lower`, what happens between replays, and the seed of all data."""
    return {
        "target": draw(st.sampled_from(tuple(targets))),
        "boundary": draw(st.sampled_from(BOUNDARIES)),
        "schedule": draw(st.sampled_from(SCHEDULES)),
        "fences": draw(st.sampled_from(("minimal",) * 9 + ("full",))),
        "gfx10_wait": draw(st.sampled_from(("fence", "partial_flush"))),
        "elide": draw(st.booleans()),
        "between": draw(_BETWEEN),
        "seed": draw(st.integers(0, 255)),
    }


@st.composite
def cases(draw: st.DrawFn, targets: Sequence[str] = FIVE) -> Case:
    """Any legal case of order="record"."""
    memories = tuple(draw(st.lists(_MEMORIES, min_size=1, max_size=MOST_MEMORIES)))
    memories += draw(st.one_of(st.just(()), st.tuples(st.builds(_alias, st.integers(0, MOST_BYTES)))))
    counts = draw(st.one_of(st.just(()), st.tuples(_COUNTS)))
    setting = draw(settings_of(targets))
    drawn = draw(st.lists(_LAUNCHES, min_size=1, max_size=MOST_NODES))
    whole = _with_aliases((*memories, *counts))
    has_counts = len(whole) - 1 if counts else None
    nodes = tuple(_node(launch, at, whole, has_counts) for at, launch in enumerate(drawn))
    return made(whole, nodes, setting)


def explicit_cases(targets: Sequence[str] = FIVE) -> SearchStrategy[Case]:
    """Graphs in explicit order: most of them leave a conflict unordered and must be refused."""
    return cases(targets).map(lambda case: replace(case, order="explicit", fences="minimal"))


def made(memories: tuple[Memory, ...], nodes: tuple[Node, ...], setting: Setting) -> Case:
    """A case, without the steps that it has nothing for: no patch without slots, no bind under absolute addresses."""
    patched = any(node.slot for node in nodes)
    bound = not any(node.extra for node in nodes)
    between = tuple(replace(b, patch=b.patch and patched, bind=b.bind and bound) for b in setting["between"])
    return Case(memories, nodes, **(setting | {"between": between}))


def _alias(start: int) -> Memory:
    """A view of the first memory, from a byte that is folded into it later."""
    return Memory(alias=(0, start))


def _with_aliases(memories: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """Views cut to what their memory holds; they have its role and kind."""
    root = memories[0]
    folded = []
    for memory in memories:
        start = memory.alias[1] % root.nbytes if memory.alias else 0
        view = Memory(root.nbytes - start, root.kind, root.role, (0, start))
        folded.append(view if memory.alias else memory)
    return tuple(folded)


def _node(launch: _Launch, at: int, memories: tuple[Memory, ...], counts: int | None) -> Node:
    after = () if launch.after is None or not at else (launch.after % at,)
    return Node(
        tuple(_touch(draft, memories) for draft in launch.touches),
        tuple(_touch(draft, memories) for draft in launch.extra),
        launch.reader,
        launch.slot,
        counts if launch.counts else None,
        after,
    )


def _touch(draft: _Draft, memories: tuple[Memory, ...]) -> Touch:
    index = draft.memory % len(memories)
    memory = memories[index]
    start = draft.start % memory.nbytes
    does = "read" if memory.role == "in" else draft.does
    return Touch(index, start, min(start + draft.nbytes, memory.nbytes), does)  # type: ignore[arg-type]


# Shapes


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


def _shape(graphs: SearchStrategy[_Graph]) -> Callable[..., SearchStrategy[Case]]:
    def strategy(targets: Sequence[str] = FIVE) -> SearchStrategy[Case]:
        return st.builds(lambda graph, setting: made(graph[0], graph[1], setting), graphs, settings_of(targets))

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
}
