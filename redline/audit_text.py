# SPDX-License-Identifier: Apache-2.0
"""An audit as text for people: launch by launch, what was touched and not declared, and what was never touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .audited import Audit, Declared, LaunchAudit, Undeclared
    from .kernel import Kernel

#: Ranges and instructions of one finding that are printed; JSON has all.
_SHOWN: Final = 4


def text(audit: Audit) -> str:
    """Several lines, without the last line end."""
    plan = audit.plan
    wrong = sum(bool(launch.undeclared) for launch in audit.launches)
    many = len(audit.launches)
    head = f"audit of plan {plan.fingerprint[:16]} {plan.target}: {many} launch{'es' if many != 1 else ''}, "
    lines = [head + (f"{wrong} with undeclared accesses" if wrong else "no undeclared access")]
    for launch in audit.launches:
        lines += _launch_lines(launch, plan.launches[launch.launch].kernel)
    if audit.fault:
        lines.append(f"stopped: {audit.fault}")
    return "\n".join([*lines, "Seen: what these inputs made the kernels do. Code that did not run was not seen."])


def _launch_lines(launch: LaunchAudit, kernel: Kernel) -> list[str]:
    verdict = "" if launch.undeclared else ": as declared" if launch.ran else ": did not run"
    lines = [f"launch #{launch.launch} {launch.label!r}, kernel {launch.kernel} ({launch.site}){verdict}"]
    for found in launch.undeclared:
        lines += _undeclared(launch, found, kernel)
    lines += [f"  never touched: {_declared(row, kernel)}" for row in launch.never_touched]
    for row in launch.declared:
        if row.hull is not None and row.hull != (row.start, row.stop):
            lines.append(f"  touched only [{row.hull[0]}:{row.hull[1]}] of {_declared(row, kernel)}")
    return lines


def _undeclared(launch: LaunchAudit, found: Undeclared, kernel: Kernel) -> list[str]:
    what = f"{found.path} {'atomic ' if found.atomic else ''}{found.action}"
    ranges = [f"[{start}:{stop}]" if found.buffer else f"[{start:#x}:{stop:#x}]" for start, stop in found.ranges]
    shown = " ".join(ranges[:_SHOWN]) + (f" and {len(ranges) - _SHOWN} more" if len(ranges) > _SHOWN else "")
    who = "lanes or loads" if found.path == "scalar" else "lanes"
    lines = [
        f"  undeclared {what}: {found.buffer or found.memory}{shown}, {found.nbytes} bytes, {found.count} {who}",
        f"    {_origin(launch, found, kernel)}",
    ]
    for number, site in enumerate(found.sites[:_SHOWN]):
        lines.append(f"    {'first' if not number else 'then '} {place(kernel.name, site.offset)}  {site.text}")
    if len(found.sites) > _SHOWN:
        lines.append(f"    and {len(found.sites) - _SHOWN} more instructions")
    return lines


def place(kernel: str, offset: int) -> str:
    """An instruction's place: bytes from the kernel's first one; a function that it calls may lie before."""
    return f"{kernel}{'-' if offset < 0 else '+'}{abs(offset):#x}"


def _origin(launch: LaunchAudit, found: Undeclared, kernel: Kernel) -> str:
    """Which arguments lead there, and what was declared of that memory."""
    if not found.buffer:
        return "no buffer is near: a wrong pointer, or memory that no argument carries"
    declared = [f"{row.action} [{row.start}:{row.stop}]" for row in launch.declared if row.buffer == found.buffer]
    said = f"; declared of it: {', '.join(declared)}" if declared else "; nothing of it is declared"
    past = "" if found.memory.startswith("buffer ") else f"{found.memory}; "
    if not found.arguments:
        return f"{past}no argument points into it: a pointer in memory or in a value, or one gone astray{said}"
    names = ", ".join(argument(kernel, offset) for offset in found.arguments)
    return f"{past}{'through' if len(found.arguments) == 1 else 'through one of'} {names}{said}"


def _declared(row: Declared, kernel: Kernel) -> str:
    carried = "accesses=" if row.argument is None else argument(kernel, row.argument)
    return f"declared {row.action} of {row.buffer}[{row.start}:{row.stop}], {carried}"


def argument(kernel: Kernel, offset: int) -> str:
    """What messages call the argument at a kernarg offset: its number among the explicit ones, and its name."""
    for number, item in enumerate(kernel.explicit_arguments):
        if item.offset == offset:
            return f"argument {number}" + (f" {item.name!r}" if item.name else "")
    return f"the argument at byte {offset}"
