# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans, and so between their fingerprints.

Compares what the fingerprint holds and nothing else. Buffers are compared by name, so that one buffer more does not
change every launch behind it; lists that begin and end alike are compared in the middle only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from .fitting import require
from .plan import KERNEL_NUMBERS, Plan

if TYPE_CHECKING:
    from .kernarg import Slot
    from .kernel import Certificate, Kernel
    from .launch import Launch
    from .ranges import Buffer

_OPTIONS: Final = ("target", "order_mode", "boundary", "schedule", "fence_mode")

#: One thing of a plan: what to call it, and its fields by name.
_Item = tuple[str, dict[str, Any]]


def differences(one: Plan, other: Plan) -> tuple[str, ...]:
    """A line for each difference that the fingerprint sees; empty exactly when the fingerprints are equal.

    Raises RecordError for what is no plan.
    """
    for plan in (one, other):
        require(plan, "Plan", "Plan.diff")
    return tuple(_lines(one, other))


def _lines(one: Plan, other: Plan) -> Iterator[str]:
    for name in _OPTIONS:
        if getattr(one, name) != getattr(other, name):
            yield f"{name}: {getattr(one, name)} -> {getattr(other, name)}"
    yield from _listed(
        [_buffer(b, one.buffers) for b in one.buffers], [_buffer(b, other.buffers) for b in other.buffers]
    )
    yield from _listed(*([(f"slot {s.name}", _slot(s)) for s in plan.slots] for plan in (one, other)))
    yield from _listed(*([_launch(launch, plan.buffers) for launch in plan.launches] for plan in (one, other)))
    at = next((i for i, (a, b) in enumerate(zip(one.order, other.order, strict=False)) if a != b), None)
    if at is not None:
        yield f"order, from position {at} on: #{one.order[at]} -> #{other.order[at]}"


def _listed(one: Sequence[_Item], other: Sequence[_Item]) -> Iterator[str]:
    """The differences of two lists, whose items have names that do not count unless they are among the fields."""
    head = 0
    while head < min(len(one), len(other)) and one[head][1] == other[head][1]:
        head += 1
    tail = 0
    while tail < min(len(one), len(other)) - head and one[-1 - tail][1] == other[-1 - tail][1]:
        tail += 1
    left, right = one[head : len(one) - tail], other[head : len(other) - tail]
    for (name, a), (_, b) in zip(left, right, strict=False):
        for field in {**a, **b}:
            if a.get(field) != b.get(field):
                yield f"{name}, {field}: {_words(a.get(field))} -> {_words(b.get(field))}"
    for name, _ in left[len(right) :]:
        yield f"{name}: only in the first"
    for name, _ in right[len(left) :]:
        yield f"{name}: only in the second"


def _words(value: Any) -> str:
    if value is None:
        return "none"
    return value.hex(" ", -8) if isinstance(value, bytes) else str(value)


def _buffer(buffer: Buffer, buffers: Sequence[Buffer]) -> _Item:
    fields = {"name": buffer.name, "bytes": buffer.nbytes, "kind": buffer.kind, "role": buffer.role}
    alias = (buffers[buffer.root].name, buffer.root_offset) if buffer.root != buffer.index else None
    return f"buffer {buffer.name}", {**fields, "alias of": alias}


def _slot(slot: Slot) -> dict[str, Any]:
    return {"name": slot.name, "type": slot.type, "default": slot.default}


def _launch(launch: Launch, buffers: Sequence[Buffer]) -> _Item:
    return f"launch {launch}", {
        **_kernel(launch.kernel),
        "global size": launch.global_size,
        "block": launch.block,
        "counts": launch.indirect and (buffers[launch.indirect.buffer].name, launch.indirect.addend),
        "dynamic LDS": launch.dynamic_lds,
        "argument bytes": launch.kernarg,
        "pointers": [(p.offset, buffers[p.buffer].name, p.addend) for p in launch.pointers],
        "slots": [(use.offset, use.slot) for use in launch.slots],
        "accesses": [
            ("write" if t.writes else "read", buffers[t.buffer].name, t.start, t.stop, t.argument)
            for t in launch.touches
        ],
        "after": launch.after,
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "kernel": kernel.name,
        "kernel's code": kernel.code_sha256,
        **{f"kernel's {name}": getattr(kernel, name) for name in KERNEL_NUMBERS},
        "kernel's arguments": [(a.offset, a.size, a.kind) for a in kernel.arguments],
        "kernel's certificate": _certificate(kernel.certificate),
        "kernel's module": kernel.module.sha256 if kernel.module else None,
    }


def _certificate(reads: Certificate | None) -> tuple[Any, ...] | None:
    if reads is None:
        return None
    arguments = sorted(reads.scalar_args), sorted(reads.l2_args)
    return (reads.reads, *arguments, reads.kernarg_vector_loads, reads.undeclared)
