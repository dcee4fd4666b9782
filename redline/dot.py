# SPDX-License-Identifier: Apache-2.0
"""A plan as a Graphviz digraph: launches by level, an arrow for each conflict or `after=` that orders two of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hazards import Hazard
    from .plan import Plan


def dot(plan: Plan) -> str:
    """The text of a digraph. Dashed arrows lead into the next replay."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield "digraph plan {"
    yield "  rankdir=LR; node [shape=box, fontname=monospace]; edge [fontname=monospace];"
    for level, group in groupby(sorted(plan.order, key=plan.levels.__getitem__), key=plan.levels.__getitem__):
        yield f"  subgraph level{level} {{ rank=same;"
        for index in group:
            launch = plan.launches[index]
            yield f"    n{index} [label={_quoted(f'#{index} {launch.label}')}, tooltip={_quoted(launch.site)}];"
        yield "  }"
    pairs: dict[tuple[int, int, bool], list[str]] = {}
    for hazard in (*plan.hazards, *plan.carried):
        pairs.setdefault((hazard.first, hazard.second, hazard.carried), []).append(_what(plan, hazard))
    for launch in plan.launches:
        for first in launch.after:
            pairs.setdefault((first, launch.index, False), []).append("after=")
    for (first, second, carried), what in sorted(pairs.items()):
        style = ", style=dashed, constraint=false" if carried else ""
        yield f"  n{first} -> n{second} [label={_quoted(chr(10).join(what))}{style}];"
    yield "}"


def _what(plan: Plan, hazard: Hazard) -> str:
    return f"{hazard.kind} {plan.buffers[hazard.buffer].name}[{hazard.start}:{hazard.stop}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
