# SPDX-License-Identifier: Apache-2.0
"""From an audit to the accesses that would be right, as Python in the words of `ranges.py`.

Declared ranges stay whole where any byte of them was touched as declared, so that other inputs are not cut off; ranges
that were touched and not declared are added, neighbours joined. Judges nothing: `judged.py` has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from .byte_ranges import Ranges, merged

if TYPE_CHECKING:
    from .audited import Audit, LaunchAudit, Undeclared
    from .launch import Launch, PointerArg
    from .plan import Plan
    from .ranges import Buffer

#: More separate ranges than this behind one pointer become the one that spans them: a strided access.
_MOST_RANGES: Final = 4


@dataclass
class _Wanted:
    """Ranges of one buffer, by whether they are written."""

    parts: dict[bool, list[tuple[int, int]]] = field(default_factory=lambda: {False: [], True: []})

    def ranges(self, *, writes: bool) -> list[tuple[int, int]]:
        joined: Ranges = merged([np.array(self.parts[writes], np.int64).reshape(-1, 2)])
        rows = [(int(start), int(stop)) for start, stop in joined]
        return rows if len(rows) <= _MOST_RANGES else [(rows[0][0], rows[-1][1])]


def suggest(audit: Audit) -> str:
    """Python for each launch whose accesses would change; "" when none would."""
    blocks = [_launch(audit.plan, launch) for launch in audit.launches if launch.undeclared or launch.never_touched]
    return "\n".join(block for block in blocks if block)


def _launch(plan: Plan, found: LaunchAudit) -> str:
    launch = plan.launches[found.launch]
    lines, comments = [], []
    for number, item in enumerate(launch.kernel.explicit_arguments):
        pointer = next((p for p in launch.pointers if p.offset == item.offset), None)
        if pointer is not None:
            now, dropped = _argument(plan, launch, found, pointer)
            was = _written(plan.buffers[pointer.buffer], _as_declared(launch, pointer.offset), pointer.addend)
            comments += dropped
            if now != was:
                lines.append(f"args[{number}] = {now}  # was {was}")
    extra = _extra(plan, launch, found)
    before = [_written(plan.buffers[index], wanted, None) for index, wanted in _undirected(launch).items()]
    if extra != before:
        lines.append(f"accesses = [{', '.join(extra)}]")
    comments += _unfit(plan, found)
    if not lines and not comments:
        return ""
    return "\n".join([f"# launch #{launch.index} {launch.label!r} ({launch.site})", *comments, *lines, ""])


def _as_declared(launch: Launch, argument: int) -> _Wanted:
    wanted = _Wanted()
    for touch in launch.touches:
        if touch.argument == argument:
            wanted.parts[touch.writes].append((touch.start, touch.stop))
    return wanted


def _undirected(launch: Launch) -> dict[int, _Wanted]:
    """What `accesses=` declares, by buffer."""
    found: dict[int, _Wanted] = {}
    for touch in launch.touches:
        if touch.argument is None:
            found.setdefault(touch.buffer, _Wanted()).parts[touch.writes].append((touch.start, touch.stop))
    return found


def _argument(plan: Plan, launch: Launch, found: LaunchAudit, pointer: PointerArg) -> tuple[str, list[str]]:
    """The access of one pointer, and comments on ranges that it no longer declares."""
    wanted, dropped = _Wanted(), []
    for row in found.declared:
        if row.argument == pointer.offset and (row.touched or not found.ran):
            wanted.parts[row.action == "write"].append((row.start, row.stop))
        elif row.argument == pointer.offset:
            dropped.append(f"# not touched here: {row.action} of {row.buffer}[{row.start}:{row.stop}]")
    for undeclared, start, stop in _inside_buffers(plan, found):
        if _carrier(plan, launch, undeclared, start, stop) == pointer.offset:
            shift = plan.buffers[pointer.buffer].root_offset
            wanted.parts[undeclared.action == "write"].append((start - shift, stop - shift))
    if not any(wanted.parts.values()):  # a pointer is passed with some access
        return _written(plan.buffers[pointer.buffer], _as_declared(launch, pointer.offset), pointer.addend), []
    return _written(plan.buffers[pointer.buffer], wanted, pointer.addend), dropped


def _inside_buffers(plan: Plan, found: LaunchAudit) -> list[tuple[Undeclared, int, int]]:
    """Undeclared ranges that a declaration can name."""
    sizes = {buffer.name: buffer.nbytes for buffer in plan.buffers}
    return [
        (row, start, stop)
        for row in found.undeclared
        if row.buffer and row.memory.startswith("buffer ")
        for start, stop in row.ranges
        if 0 <= start < stop <= sizes[row.buffer]
    ]


def _carrier(plan: Plan, launch: Launch, found: Undeclared, start: int, stop: int) -> int | None:
    """The pointer that a range of a root buffer is declared behind: the nearest below it, else the first.

    None when no pointer's own buffer holds the range.
    """
    fits = []
    for pointer in launch.pointers:
        buffer = plan.buffers[pointer.buffer]
        if pointer.offset in found.arguments and buffer.root_offset <= start and stop <= _end(buffer):
            fits.append((pointer.offset, buffer.root_offset + pointer.addend))
    below = [item for item in fits if item[1] <= start]
    return max(below, key=lambda item: item[1])[0] if below else fits[0][0] if fits else None


def _end(buffer: Buffer) -> int:
    return buffer.root_offset + buffer.nbytes


def _extra(plan: Plan, launch: Launch, found: LaunchAudit) -> list[str]:
    """Items of `accesses=`, one for each buffer."""
    wanted: dict[int, _Wanted] = {}
    by_name = {buffer.name: buffer.index for buffer in plan.buffers}
    for row in found.declared:
        if row.argument is None and (row.touched or not found.ran):
            ranges = wanted.setdefault(by_name[row.buffer], _Wanted()).parts[row.action == "write"]
            ranges.append((row.start, row.stop))
    for undeclared, start, stop in _inside_buffers(plan, found):
        if _carrier(plan, launch, undeclared, start, stop) is None:
            ranges = wanted.setdefault(by_name[undeclared.buffer], _Wanted()).parts[undeclared.action == "write"]
            ranges.append((start, stop))
    return [_written(plan.buffers[index], item, None) for index, item in sorted(wanted.items())]


def _unfit(plan: Plan, found: LaunchAudit) -> list[str]:
    """What no declaration can mend."""
    lines = []
    roles = {buffer.name: buffer.role for buffer in plan.buffers}
    for row in found.undeclared:
        if not row.memory.startswith("buffer "):
            lines.append(f"# no declaration covers a {row.action} of {row.memory}: mend the kernel or its arguments")
        elif row.action == "write" and roles[row.buffer] == "in":
            lines.append(f"# give buffer {row.buffer!r} the role 'inout': this launch writes it")
    return lines


# As Python


def _written(buffer: Buffer, wanted: _Wanted, addend: int | None) -> str:
    """An access as Python. `addend`: where its pointer points in the buffer; None when there is no pointer."""
    reads, writes = wanted.ranges(writes=False), wanted.ranges(writes=True)
    words = {(True, False): "read", (False, True): "write"}
    one = words.get((len(reads) == 1, len(writes) == 1)) if not (reads and writes) else None
    if reads == writes and len(reads) == 1:
        one = "update"
    base = 0 if addend is None else addend
    if one is None:
        listed = [f"{name}=[{_listed(buffer, rows)}]" for name, rows in (("reads", reads), ("writes", writes)) if rows]
        return f"rl.access({_view(buffer, base, buffer.nbytes)}, {', '.join(listed)})"
    start, stop = (reads or writes)[0]
    behind = "" if addend is None or start == addend else f", base={_view(buffer, base, buffer.nbytes)}"
    return f"rl.{one}({_view(buffer, start, stop)}{behind})"


def _listed(buffer: Buffer, rows: list[tuple[int, int]]) -> str:
    return ", ".join(_view(buffer, start, stop) for start, stop in rows)


def _view(buffer: Buffer, start: int, stop: int) -> str:
    """A buffer or a slice; a name that is no identifier is looked up in `buffers`."""
    name = buffer.name if buffer.name.isidentifier() else f"buffers[{buffer.name!r}]"
    if (start, stop) == (0, buffer.nbytes):
        return name
    return f"{name}[{start}:{stop if stop != buffer.nbytes or start == 0 else ''}]"
