# SPDX-License-Identifier: Apache-2.0
"""A case as JSON, which reads back to the same case, and as a Python program that uses the public API alone."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from redline_fuzz.cases import COUNT_BYTES, READERS, Between, Case, Memory, Node, Touch

SCHEMA = 1


def to_json(case: Case) -> str:
    """Sorted keys, one line each: equal cases have equal texts."""
    return json.dumps({"schema": SCHEMA, **asdict(case)}, indent=1, sort_keys=True) + "\n"


def from_json(text: str) -> Case:
    """Raises ValueError for another schema."""
    found = json.loads(text)
    if found.pop("schema", None) != SCHEMA:
        raise ValueError(f"a kept case of another schema than {SCHEMA}")
    found["memories"] = tuple(_memory(row) for row in found["memories"])
    found["nodes"] = tuple(_node(row) for row in found["nodes"])
    found["between"] = tuple(Between(**row) for row in found["between"])
    return Case(**found)


def _memory(row: dict[str, Any]) -> Memory:
    return Memory(**row | {"alias": tuple(row["alias"]) if row["alias"] else None})


def _node(row: dict[str, Any]) -> Node:
    touches, extra = (tuple(Touch(**touch) for touch in row[name]) for name in ("touches", "extra"))
    return Node(**row | {"touches": touches, "extra": extra, "after": tuple(row["after"])})


def case_id(case: Case) -> str:
    """Twelve hexadecimal digits that name it."""
    return hashlib.sha256(to_json(case).encode()).hexdigest()[:12]


def as_python(case: Case, wrong: str = "") -> str:
    """A program that records and checks the graph, runnable as it stands; `wrong` is what an oracle said."""
    lines = ["import redline as rl", "", f"g = rl.Graph(order={case.order!r})"]
    lines += [_buffer_line(index, memory) for index, memory in enumerate(case.memories)]
    for at, node in enumerate(case.nodes):
        lines += _launch_lines(case, at, node)
    options = f"boundary={case.boundary!r}, schedule={case.schedule!r}, fences={case.fences!r}"
    lines += [
        f"plan = rl.Plan.of(g, {options})",
        f"program = rl.lower(plan, plan.fences, gfx10_wait={case.gfx10_wait!r}, elide={case.elide!r})",
        "print(plan.explain())",
        "print(rl.verify(plan, plan.fences))",
    ]
    between = ", then ".join(_between_text(step) for step in case.between) or "one replay"
    lines.append(f"# between replays: {between}; data of seed {case.seed}")
    lines += [f"# wrong: {line}" for line in wrong.splitlines()]
    lines.append(f"# again: redline-fuzz replay {case_id(case)}")
    return "\n".join(lines) + "\n"


def _between_text(step: Between) -> str:
    return "+".join(name for name, value in asdict(step).items() if value) or "nothing"


def _buffer_line(index: int, memory: Memory) -> str:
    if memory.alias is not None:
        root, start = memory.alias
        view = f"m{root}[{start}:{start + memory.nbytes}]"
        return f'm{index} = g.buffer("m{index}", {memory.nbytes}, alias_of={view})'
    return f'm{index} = g.buffer("m{index}", {memory.nbytes}, kind={memory.kind!r}, role={memory.role!r})'


def _launch_lines(case: Case, at: int, node: Node) -> list[str]:
    args = [_access_text(touch) for touch in node.touches]
    args += [f'rl.slot({node.slot!r}, "i4", default=0)'] if node.slot else []
    grid = "1" if node.counts is None else f"rl.read(m{node.counts}[0:{COUNT_BYTES}])"
    more = f", accesses=[{', '.join(map(_access_text, node.extra))}]" if node.extra else ""
    more += f", after=[{', '.join(f'n{first}' for first in node.after)}]" if node.after else ""
    certificate = READERS[node.reader]
    given = f", certificate=rl.{certificate!r}" if certificate is not None else ""
    scalars = ", scalars=(4,)" if node.slot else ""
    return [
        f'k = rl.Kernel.synthetic("k{at}", pointers={len(node.touches)}{scalars}, target={case.target!r}{given})',
        f"n{at} = g.launch(k, grid={grid}, block=1, args=[{', '.join(args)}]{more})",
    ]


def _access_text(touch: Touch) -> str:
    return f"rl.{touch.does}(m{touch.memory}[{touch.start}:{touch.stop}])"
