# SPDX-License-Identifier: Apache-2.0
"""One example of the fuzz suite as a value: memories, launches, and what happens between replays.

`record` makes the graph of it through the public API; nothing here plans, derives or runs anything. How cases are drawn
is `strategies.py`'s, what they mean `reference.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import redline as rl
from redline_fuzz.patterns import ABSOLUTE, Access, Pattern

#: How kernels read, by name: their certificates. "0" is the first pointer, "args" the kernel's own arguments.
READERS: dict[str, rl.Certificate | None] = {
    "KV": None,
    "V": rl.Certificate("vmem_only"),
    "V, args K": rl.Certificate("vmem_only", kernarg_vector_loads=False),
    "K0": rl.Certificate("scalar_args", scalar_args=frozenset({0})),
    "KV, args K": rl.Certificate("scalar_or_unknown", kernarg_vector_loads=False),
    "L2 0": rl.Certificate("vmem_only", l2_args=frozenset({0})),
    "L2": rl.Certificate("vmem_only", l2_args=frozenset(range(0, 128, 8))),
}

COUNT_BYTES = 12


@dataclass(frozen=True)
class Memory:
    """A buffer. `alias`: (another memory, first byte in it) that it is a view of. Sizes in bytes.

    `zeros`: whoever fills it from outside writes zeros, as counts that say that there is no work.
    """

    nbytes: int = 4
    kind: str = "device"
    role: str = "out"
    alias: tuple[int, int] | None = None
    zeros: bool = False


@dataclass(frozen=True)
class Touch:
    """Bytes [start, stop) of a memory, read, written, or both ("update")."""

    memory: int
    start: int
    stop: int
    does: Literal["read", "write", "update"]

    @property
    def reads(self) -> bool:
        return self.does != "write"

    @property
    def writes(self) -> bool:
        return self.does != "read"


@dataclass(frozen=True)
class Node:
    """One launch. `extra`: accesses that no pointer argument carries; `counts`: the memory of its workgroup counts."""

    touches: tuple[Touch, ...] = ()
    extra: tuple[Touch, ...] = ()
    reader: str = "KV"
    slot: str = ""
    counts: int | None = None
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Between:
    """What happens before the next replay: slots patched, outside memory bound anew, the host reading and writing."""

    patch: bool = False
    bind: bool = False
    host: bool = False


@dataclass(frozen=True)
class Case:
    """A graph, the options it is compiled with, and what happens between replays: one replay more than `between`."""

    memories: tuple[Memory, ...]
    nodes: tuple[Node, ...]
    target: str = "gfx1201"
    boundary: str = "host"
    schedule: str = "levels"
    fences: str = "minimal"
    order: str = "record"
    gfx10_wait: str = "fence"
    elide: bool = True
    between: tuple[Between, ...] = ()
    seed: int = 0

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(sorted({node.slot for node in self.nodes if node.slot}))


def working(case: Case) -> Case:
    """The same with no counts of zero: every launch does something."""
    return replace(case, memories=tuple(replace(memory, zeros=False) for memory in case.memories))


def record(case: Case, kernel_of: Callable[[Node], rl.Kernel] | None = None) -> rl.Graph:
    """The graph of a case, of synthetic kernels or of those that are given. Raises what recording raises."""
    graph = rl.Graph(order=case.order)  # type: ignore[arg-type]
    buffers: list[Any] = []
    for index, memory in enumerate(case.memories):
        if memory.alias is None:
            made = graph.buffer(f"m{index}", memory.nbytes, role=memory.role, kind=memory.kind)  # type: ignore[arg-type]
        else:
            root, start = memory.alias
            made = graph.buffer(f"m{index}", memory.nbytes, alias_of=buffers[root][start : start + memory.nbytes])
        buffers.append(made)
    launches: list[rl.Launch] = []
    for node in case.nodes:
        args = [_access(buffers, touch) for touch in node.touches]
        args += [rl.slot(node.slot, "i4", default=0)] if node.slot else []
        launches.append(
            graph.launch(
                kernel_of(node) if kernel_of else kernel(node, case.target),
                grid=1 if node.counts is None else rl.read(buffers[node.counts][0:COUNT_BYTES]),
                block=1,
                args=args,
                accesses=[_access(buffers, touch) for touch in node.extra],
                after=[launches[at] for at in node.after],
            )
        )
    return graph


def _access(buffers: list[Any], touch: Touch) -> Any:
    form = {"read": rl.read, "write": rl.write, "update": rl.update}[touch.does]
    return form(buffers[touch.memory][touch.start : touch.stop])


def kernel(node: Node, target: str) -> rl.Kernel:
    """The kernel of a launch: nodes that do the same to ranges of the same sizes share one."""
    return _kernel(_shape(node), target)


def number(node: Node) -> int:
    """The number of its pattern."""
    return _number(_shape(node))


Shape = tuple[tuple[tuple[int, str], ...], tuple[Touch, ...], str, bool]


def _shape(node: Node) -> Shape:
    sizes = tuple((touch.stop - touch.start, touch.does) for touch in node.touches)
    return sizes, node.extra, node.reader, bool(node.slot)


@cache
def _number(shape: Shape) -> int:
    text = repr(shape).encode()
    return int.from_bytes(text, "little") % ((1 << 61) - 1) + 1


@cache
def _kernel(shape: Shape, target: str) -> rl.Kernel:
    sizes, _, reader, slot = shape
    name = f"k{_number(shape):x}"
    return rl.Kernel.synthetic(
        name, pointers=len(sizes), scalars=(4,) * slot, target=target, certificate=READERS[reader]
    )


def pattern(node: Node, extra_va: list[int]) -> Pattern:
    """What its kernel does; `extra_va` are the addresses of what no pointer carries."""
    certificate = READERS[node.reader]
    narrow = certificate is not None and not certificate.kernarg_vector_loads
    carried = [
        Access(8 * at, 0, touch.stop - touch.start, touch.reads, touch.writes, reads_through(node.reader, 8 * at))
        for at, touch in enumerate(node.touches)
    ]
    other = [
        Access(ABSOLUTE, va, touch.stop - touch.start, touch.reads, touch.writes)
        for touch, va in zip(node.extra, extra_va, strict=True)
    ]
    values = ((8 * len(node.touches), 4),) if node.slot else ()
    return Pattern(number(node), (*carried, *other), values, ("K",) if narrow else ("K", "V"))


def reads_through(reader: str, argument: int) -> tuple[str, ...]:
    """The caches behind a pointer at this kernarg offset, in bytes; the meaning of certificates, said once more."""
    certificate = READERS[reader]
    if certificate is None:
        return ("K", "V")
    if argument in certificate.l2_args:
        return ()
    scalar = certificate.reads == "scalar_or_unknown" or argument in certificate.scalar_args
    return ("K", "V") if scalar else ("V",)
