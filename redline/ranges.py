# SPDX-License-Identifier: Apache-2.0
"""What a launch reads and writes: byte ranges of named buffers.

A `Buffer` here is a name for memory inside a graph; it has no address. A `View` is a half-open byte range of one. An
`Access` is one pointer argument (or a declaration without one) together with the ranges that the kernel reads and
writes through it. Nothing here orders launches; `plan.py` compares ranges.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from .callsite import callsite
from .errors import RecordError

Kind: TypeAlias = Literal["device", "host", "fine", "uncached"]
Role: TypeAlias = Literal["internal", "in", "out", "inout"]

KINDS: Final = ("device", "host", "fine", "uncached")
ROLES: Final = ("internal", "in", "out", "inout")

#: Device addresses stay below this, so no buffer can be larger. `encoders/limits.py` states it for words: neither layer
#: may import the other, and a test compares the two.
MAX_BYTES: Final = 1 << 48

#: All memories of a graph, which are planned laid end to end in signed 64-bit columns.
MAX_GRAPH_BYTES: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named piece of memory of one graph, in bytes. Made by `Graph.buffer`; slices are `View`s.

    `root` and `root_offset` say which memory it is: itself, or the buffer that it is an alias of. Raises RecordError
    for a slice that is no plain, non-empty byte range inside the buffer.
    """

    name: str
    nbytes: int
    kind: Kind
    role: Role
    index: int
    owner: int
    root: int
    root_offset: int

    def __getitem__(self, item: slice) -> View:
        return _slice(self, 0, self.nbytes, item)

    def __str__(self) -> str:
        return f"{self.name}[0:{self.nbytes}]"

    def __repr__(self) -> str:
        return f"<Buffer {self}>"


@dataclass(frozen=True, slots=True)
class View:
    """The bytes [start, stop) of a buffer. Slicing a view is relative to its start, as in numpy.

    Raises RecordError for a slice that is no plain, non-empty byte range inside the view.
    """

    buffer: Buffer
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Its length in bytes."""
        return self.stop - self.start

    def __getitem__(self, item: slice) -> View:
        return _slice(self.buffer, self.start, self.stop, item)

    def __str__(self) -> str:
        return f"{self.buffer.name}[{self.start}:{self.stop}]"


@dataclass(frozen=True, slots=True)
class Access:
    """Ranges read and written behind one pointer. `base` is the address that the kernel gets."""

    base: View
    reads: tuple[View, ...]
    writes: tuple[View, ...]


def read(where: Buffer | View, *, base: Buffer | View | None = None) -> Access:
    """The kernel reads these bytes. It gets the address of `where`'s start, or of `base`'s if that is given.

    Raises RecordError for what is no buffer or slice of one, and for a `base` in another buffer.
    """
    view = as_view(where)
    return Access(_base(view, base), (view,), ())


def write(where: Buffer | View, *, base: Buffer | View | None = None) -> Access:
    """The kernel writes these bytes, all or some of them, and reads none of them. Pointer and errors as for `read`.

    Raises RecordError for what is no buffer or slice of one, and for a `base` in another buffer.
    """
    view = as_view(where)
    return Access(_base(view, base), (), (view,))


def update(where: Buffer | View, *, base: Buffer | View | None = None) -> Access:
    """The kernel reads and writes these bytes: state that is changed in place. Pointer as for `read`.

    Raises RecordError for what is no buffer or slice of one, and for a `base` in another buffer.
    """
    view = as_view(where)
    return Access(_base(view, base), (view,), (view,))


def access(base: Buffer | View, *, reads: Sequence[Buffer | View] = (), writes: Sequence[Buffer | View] = ()) -> Access:
    """Several ranges behind one pointer, which is `base`'s start. The ranges are slices of the same memory.

    Raises RecordError for no range at all, a range of another buffer, or what is no buffer or slice of one.
    """
    start = as_view(base)
    ranges = _views(reads), _views(writes)
    if not ranges[0] and not ranges[1]:
        raise RecordError(
            "RL0101",
            where=f"{callsite()} access({start})",
            seen="neither reads nor writes",
            allowed="at least one range",
            do="declare the bytes that the kernel touches, or pass the pointer with read() or write()",
        )
    for view in (*ranges[0], *ranges[1]):
        _same_memory(start, view)
    return Access(start, *ranges)


def _views(items: Sequence[Buffer | View]) -> tuple[View, ...]:
    """Each item as a view; a single one stands for itself."""
    listed: list[Any] = list(items) if isinstance(items, list | tuple) else [items]
    return tuple(as_view(item) for item in listed)


def as_view(where: Buffer | View) -> View:
    """A buffer as the view of all its bytes."""
    if isinstance(where, View):
        return where
    if isinstance(where, Buffer):
        return View(where, 0, where.nbytes)
    raise RecordError(
        "RL0102",
        where=f"{callsite()} access",
        seen=f"{type(where).__name__} {where!r}",
        allowed="a buffer of this graph or a slice of one",
        do="make one with graph.buffer(name, nbytes)",
    )


def _base(view: View, base: Buffer | View | None) -> View:
    if base is None:
        return view
    start = as_view(base)
    _same_memory(start, view)
    return start


def _same_memory(base: View, view: View) -> None:
    if base.buffer.owner != view.buffer.owner or base.buffer.index != view.buffer.index:
        raise RecordError(
            "RL0103",
            where=f"{callsite()} access through the pointer {base}",
            seen=f"the range {view} of another buffer",
            allowed=f"ranges of {base.buffer.name!r}",
            do="pass one pointer per buffer, or declare the other range with launch(accesses=[...])",
        )


def _slice(buffer: Buffer, start: int, stop: int, item: slice) -> View:
    """A byte slice inside [start, stop), refused unless it is plain, non-empty and in bounds."""
    if not isinstance(item, slice) or item.step not in (None, 1):
        raise RecordError(
            "RL0104",
            where=f"{callsite()} buffer {buffer.name!r}",
            seen=f"index {item!r}",
            allowed="a byte slice [start:stop] with step 1",
            do="slice bytes; a strided access declares the whole range that it spans",
        )
    low, high = _index(item.start, 0), _index(item.stop, stop - start)
    if low is None or high is None or not 0 <= low < high <= stop - start:
        raise RecordError(
            "RL0105",
            where=f"{callsite()} buffer {buffer.name!r}",
            seen=f"[{item.start}:{item.stop}]",
            allowed=f"0 <= start < stop <= {stop - start} bytes",
            do="give a half-open byte range inside the buffer",
        )
    return View(buffer, start + low, start + high)


def _index(value: Any, default: int) -> int | None:
    """A slice bound as an int, numpy's integers included; None for what is no integer."""
    try:
        return default if value is None else operator.index(value)
    except TypeError:
        return None
