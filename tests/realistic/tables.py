# SPDX-License-Identifier: Apache-2.0
"""The tables of `docs/fences.md`: what each realistic graph needs, beside what others would emit, and fence by fence.

`python -m tests.realistic.tables` prints them; with a file name it replaces what stands there between the marks.
`tests/test_fences_doc.py` compares the two.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import redline as rl
from redline.fences import Fence
from tests.realistic import cg, decode, vcycle

GRAPHS: Final[dict[str, ModuleType]] = {"decode": decode, "CG": cg, "V-cycle": vcycle}

#: Launches of which the fence table shows the fences: of the decoder one layer, and the next one's first.
_SHOWN: Final = {"decode": range(1, 14)}

#: The generated part of the document.
BEGIN: Final = "<!-- printed by python -m tests.realistic.tables -->\n"
END: Final = "<!-- end -->\n"


def text() -> str:
    """All tables."""
    return "\n".join([*_figures(), "", *_fences()]) + "\n"


def replaced(document: str) -> str:
    """The document with the tables of today."""
    head, _, rest = document.partition(BEGIN)
    return head + BEGIN + text() + END + rest.partition(END)[2]


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _figures() -> Iterator[str]:
    yield _row(
        "graph", "boundary", "launches", "longest chain", "drains", "acquires (K, V)", "dwords", "full", "dependent"
    )
    yield "|" + "---|" * 9
    for name, module in GRAPHS.items():
        for boundary in ("host", "queue"):
            stats = module.record().compile(boundary=boundary).stats()
            by_class = stats["acquires_by_class"]
            yield _row(
                name,
                boundary,
                stats["launches"],
                stats["chain"],
                stats["drains"],
                f"{stats['acquires']} ({by_class['K']}, {by_class['V']})",
                stats["dwords"],
                _others(stats["full"]),
                _others(stats["per_dependent_launch"]),
            )


def _others(stats: dict[str, Any]) -> str:
    return f"{stats['drains']}, {stats['dwords']}"


def _fences() -> Iterator[str]:
    yield _row("graph", "before", "fence", "why")
    yield "|" + "---|" * 4
    for name, module in GRAPHS.items():
        plan = module.record().compile(boundary="queue")
        lines = plan.explain().splitlines()
        for fence in plan.fences.inner:
            launch = plan.launches[plan.order[fence.at]]
            if fence.at == 0 or launch.index in _SHOWN.get(name, range(len(plan.order))):
                yield _row(name, launch, _what(fence), _why(lines, plan, fence))


def _what(fence: Fence) -> str:
    return " + ".join([*(["drain"] if fence.drain else []), *([" ".join(fence.acquire)] if fence.acquire else [])])


def _why(lines: Sequence[str], plan: rl.Plan, fence: Fence) -> str:
    """The first reason that `explain()` prints below the fence, or the rule, without the buffer's bytes where it is
    whole.
    """
    launch = plan.launches[plan.order[fence.at]]
    at = next(
        i
        for i, line in enumerate(lines)
        if re.search(rf"(drain|acquire [KV ]+) before {re.escape(str(launch))}(   |$)", line)
    )
    if fence.rule:
        return lines[at].partition(": ")[2].partition("   ")[2]
    reason = lines[at + 1].strip().partition(";")[0]
    for buffer in plan.buffers:
        reason = reason.replace(str(buffer), buffer.name)
    return reason.removeprefix(f"{launch} ")


def main(arguments: Sequence[str]) -> None:
    """Print the tables, or write them into the documents named."""
    for name in arguments:
        file = Path(name)
        file.write_text(replaced(file.read_text()))
    if not arguments:
        print(text(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
