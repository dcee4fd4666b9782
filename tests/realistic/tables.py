# SPDX-License-Identifier: Apache-2.0
"""The tables of `docs/fences.md`: what each realistic graph needs, beside what others would emit, and fence by fence.

`python -m tests.realistic.tables` prints them; with a file name it replaces what stands there between the marks.
`tests/test_fences_doc.py` compares the two.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
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
        "graph",
        "boundary",
        "launches",
        "longest chain",
        "drains",
        "acquires (K, V)",
        "dwords",
        "full",
        "dependent",
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
        for before, what, why in _alike(_table(name, module.record().compile(boundary="queue"))):
            yield _row(name, ", ".join(before), what, why + (", and so on" if len(before) > 1 else ""))


def _table(name: str, plan: rl.Plan) -> Iterator[tuple[str, str, str]]:
    """Before which launch, which fence, and why."""
    lines = plan.explain().splitlines()
    for fence in plan.fences.inner:
        launch = plan.launches[plan.order[fence.at]]
        if fence.at == 0 or launch.index in _SHOWN.get(name, range(len(plan.order))):
            yield str(launch), _what(fence), _why(lines, plan, fence)


def _alike(rows: Iterable[tuple[str, str, str]]) -> Iterator[tuple[list[str], str, str]]:
    """Rows that are equal but for their numbers as one, with the first one's reason."""
    found: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    for row in rows:
        found.setdefault(tuple(re.sub(r"\d+", "", cell) for cell in row), []).append(row)
    for same in found.values():
        yield [before for before, _, _ in same], same[0][1], same[0][2]


def _what(fence: Fence) -> str:
    return " + ".join([*(["drain"] if fence.drain else []), *([" ".join(fence.acquire)] if fence.acquire else [])])


def _why(lines: Sequence[str], plan: rl.Plan, fence: Fence) -> str:
    """The reasons that `explain()` prints below the fence, or the rule; a buffer's bytes only where they are a part."""
    launch = plan.launches[plan.order[fence.at]]
    line = re.compile(rf"(drain|acquire [KV ]+) before {re.escape(str(launch))}(   |$)")
    at = next(i for i, text in enumerate(lines) if line.search(text))
    if fence.rule:
        return lines[at].partition("   ")[2]
    below = takewhile(lambda text: text.startswith("    "), lines[at + 1 :])
    why = "; ".join(text.strip().partition(";")[0].removeprefix(f"{launch} ") for text in below)
    for buffer in plan.buffers:
        why = why.replace(str(buffer), buffer.name)
    return why


def main(arguments: Sequence[str]) -> None:
    """Print the tables, or write them into the documents named."""
    for name in arguments:
        file = Path(name)
        file.write_text(replaced(file.read_text()))
    if not arguments:
        print(text(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
