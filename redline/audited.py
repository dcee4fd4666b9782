# SPDX-License-Identifier: Apache-2.0
"""The answer of an audit: for each launch what it touched beside its declaration, and what of that it never touched.

Data, and its JSON; `auditing.py` runs, `judged.py` compares, `audit_text.py` and `suggestion.py` write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from .plan import Plan

#: Version of what `as_json` returns.
SCHEMA: Final = 1

Action: TypeAlias = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class AccessSite:
    """An instruction that touched memory: its ELF `address` in bytes, and its `text` as LLVM prints it.

    `offset` is in bytes from the kernel's first instruction; negative in a function that lies before it. `count` items
    are lanes, or scalar loads. Source of the texts: LLVM AMDGPUUsage.
    """

    address: int
    offset: int
    text: str
    count: int

    def as_json(self) -> dict[str, Any]:
        """Plain data, every field by its name."""
        return {"address": self.address, "offset": self.offset, "text": self.text, "count": self.count}


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Bytes of one piece of memory that a launch touched in one way and did not declare for it.

    `ranges` are (start, stop) pairs, sorted and merged, in bytes from the start of `buffer`. Where that is "", no
    buffer is near, and they are addresses: of the code object's image for its variables, else of the device. `memory`
    says in words what lies there. `arguments` are the kernarg offsets in bytes of the pointers into this buffer, in
    order of the arguments: empty when no argument leads there. `path` is how it was reached; `atomic` when by atomics,
    which read and write. `count` items are lanes, or scalar loads. `sites` are the instructions, the first to run
    first.
    """

    action: Action
    path: Literal["scalar", "vector"]
    atomic: bool
    buffer: str
    memory: str
    ranges: tuple[tuple[int, int], ...]
    arguments: tuple[int, ...]
    sites: tuple[AccessSite, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes."""
        return sum(stop - start for start, stop in self.ranges)

    @property
    def count(self) -> int:
        """How many items touched them: lanes, or scalar loads."""
        return sum(site.count for site in self.sites)

    def as_json(self) -> dict[str, Any]:
        """Plain data, every field by its name."""
        return {
            "action": self.action,
            "path": self.path,
            "atomic": self.atomic,
            "buffer": self.buffer or None,
            "memory": self.memory,
            "ranges": [list(pair) for pair in self.ranges],
            "nbytes": self.nbytes,
            "arguments": list(self.arguments),
            "count": self.count,
            "sites": [site.as_json() for site in self.sites],
        }


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared range, [start, stop) in bytes of `buffer`, and how much of it was touched as declared.

    `argument` is the kernarg offset in bytes of its pointer, None for `accesses=`. `touched` counts bytes; `hull` is
    the smallest range (bytes of the buffer) that holds them, None when there are none.
    """

    action: Action
    buffer: str
    start: int
    stop: int
    argument: int | None
    touched: int
    hull: tuple[int, int] | None

    def as_json(self) -> dict[str, Any]:
        """Plain data, every field by its name."""
        return {
            "action": self.action,
            "buffer": self.buffer,
            "start": self.start,
            "stop": self.stop,
            "argument": self.argument,
            "touched": self.touched,
            "hull": None if self.hull is None else list(self.hull),
        }


@dataclass(frozen=True, slots=True)
class LaunchAudit:
    """What one launch did. `launch` is its recorded index; `ran` is False when a fault ended the run before it."""

    launch: int
    label: str
    kernel: str
    site: str
    ran: bool
    undeclared: tuple[Undeclared, ...]
    declared: tuple[Declared, ...]

    @property
    def never_touched(self) -> tuple[Declared, ...]:
        """Declared ranges of which it touched no byte as declared."""
        return tuple(row for row in self.declared if self.ran and not row.touched)

    def as_json(self) -> dict[str, Any]:
        """Plain data; `site` is left out, because it depends on where files lie."""
        return {
            "launch": self.launch,
            "label": self.label,
            "kernel": self.kernel,
            "ran": self.ran,
            "undeclared": [row.as_json() for row in self.undeclared],
            "declared": [row.as_json() for row in self.declared],
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """One run of a plan on the software device, launch by launch; `fault` is what stopped it, "" for nothing.

    Printed as text by `str`. Says what these inputs made the kernels do: code that did not run was not seen.
    """

    plan: Plan = field(repr=False, compare=False)
    launches: tuple[LaunchAudit, ...]
    fault: str = ""

    @property
    def clean(self) -> bool:
        """Whether the run ended, and every byte that it touched was declared."""
        return not self.fault and not any(launch.undeclared for launch in self.launches)

    def suggest(self) -> str:
        """Accesses that would be right for this run, as Python to paste; "" when none would change.

        For each launch the arguments that change, `args[0] = rl.update(x[0:64])`, and `accesses = [...]` for memory
        that no argument leads to. Declared ranges stay whole where any byte of them was touched; others go, with a
        comment. Buffers go by their names.
        """
        from .suggestion import suggest

        return suggest(self)

    def as_json(self) -> dict[str, Any]:
        """Plain data with a `schema`; the same run gives the same data."""
        return {
            "schema": SCHEMA,
            "target": self.plan.target,
            "fingerprint": self.plan.fingerprint,
            "clean": self.clean,
            "fault": self.fault or None,
            "launches": [launch.as_json() for launch in self.launches],
        }

    def __str__(self) -> str:
        from .audit_text import text

        return text(self)
