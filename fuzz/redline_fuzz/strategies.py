# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies of cases: any legal one. The shapes that real graphs have are `shapes.py`'s.

Nodes are drawn whole, in lists, so that a failure shrinks to two or three launches over one memory. A draw names
memories by index and bytes by any numbers; what does not fit the memories that were drawn is folded into them, so that
no draw is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from redline.plan import BOUNDARIES, SCHEDULES
from redline.ranges import KINDS, ROLES
from redline_fuzz.cases import COUNT_BYTES, READERS, Between, Case, Memory, Node, Touch
from redline_fuzz.oracles import FIVE

MOST_NODES, MOST_MEMORIES, MOST_BYTES = 5, 3, 4

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
