# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans, and so between their fingerprints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .kernel import Kernel
    from .launch import Launch
    from .plan import Plan
    from .ranges import Buffer

_OPTIONS: Final = ("target", "order_mode", "boundary", "schedule", "fence_mode")
_LAUNCH: Final[dict[str, Callable[[Launch], Any]]] = {
    "kernel": lambda launch: _kernel(launch.kernel),
    "global size": lambda launch: launch.global_size,
    "block": lambda launch: launch.block,
    "dynamic LDS": lambda launch: launch.dynamic_lds,
    "argument bytes": lambda launch: launch.kernarg.hex(" ", 8),
    "pointers": lambda launch: [(p.offset, p.buffer, p.addend) for p in launch.pointers],
    "slots": lambda launch: [(s.offset, s.slot) for s in launch.slots],
    "accesses": lambda launch: [
        ("write" if t.writes else "read", t.buffer, t.start, t.stop, t.argument) for t in launch.touches
    ],
    "after": lambda launch: launch.after,
}


def differences(one: Plan, other: Plan) -> tuple[str, ...]:
    """A line for each difference that the fingerprint sees; empty exactly when the fingerprints are equal."""
    found = tuple(_lines(one, other))
    if not found and one.fingerprint != other.fingerprint:
        return ("the fingerprints differ, in something that this comparison does not know",)
    return found


def _lines(one: Plan, other: Plan) -> Iterator[str]:
    for name in _OPTIONS:
        if getattr(one, name) != getattr(other, name):
            yield f"{name}: {getattr(one, name)} -> {getattr(other, name)}"
    yield from _listed("buffer", [_buffer(b) for b in one.buffers], [_buffer(b) for b in other.buffers])
    yield from _listed("slot", [str(slot) for slot in one.slots], [str(slot) for slot in other.slots])
    yield from _launches(one.launches, other.launches)
    at = next((i for i, (a, b) in enumerate(zip(one.order, other.order, strict=False)) if a != b), None)
    if at is not None:
        yield f"order, from position {at} on: #{one.order[at]} -> #{other.order[at]}"


def _launches(one: Sequence[Launch], other: Sequence[Launch]) -> Iterator[str]:
    for a, b in zip(one, other, strict=False):
        for name, of in _LAUNCH.items():
            if of(a) != of(b):
                yield f"launch {a}, {name}: {of(a)} -> {of(b)}"
    for launch in one[len(other) :]:
        yield f"launch {launch}: only in the first"
    for launch in other[len(one) :]:
        yield f"launch {launch}: only in the second"


def _listed(what: str, one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    for a, b in zip(one, other, strict=False):
        if a != b:
            yield f"{what}: {a} -> {b}"
    for text in one[len(other) :]:
        yield f"{what} {text}: only in the first"
    for text in other[len(one) :]:
        yield f"{what} {text}: only in the second"


def _buffer(buffer: Buffer) -> str:
    where = "" if buffer.root == buffer.index else f" alias of buffer {buffer.root} at {buffer.root_offset}"
    return f"{buffer} kind={buffer.kind} role={buffer.role}{where}"


def _kernel(kernel: Kernel) -> str:
    module = kernel.module.sha256[:16] if kernel.module else "no module"
    return f"{kernel.name} (code {kernel.code_sha256[:16]}, {module}, certificate {kernel.certificate})"
