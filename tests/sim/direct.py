# SPDX-License-Identifier: Apache-2.0
"""Calls the tests of a module one after another without pytest, as fast checks for mutants.

Understands parametrization and the fixtures `memory` and `wave`; a test with another fixture is left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

from redline.sim.memory import Memory


def checks(module: ModuleType) -> Iterator[Callable[[], None]]:
    """Each case of each test of the module."""
    for name, function in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(function):
            yield from _cases(function)


def _cases(function: Callable[..., None]) -> Iterator[Callable[[], None]]:
    axes = [_axis(mark) for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    for choice in product(*axes):
        values: dict[str, Any] = {name: value for part in choice for name, value in part.items()}
        wanted = set(inspect.signature(function).parameters) - values.keys()
        if wanted <= {"memory", "wave"}:
            for wave in (32, 64) if "wave" in wanted else (0,):
                own = {"wave": wave} if wave else {}
                yield partial(_call, function, values | own, "memory" in wanted)


def _axis(mark: Any) -> list[dict[str, Any]]:
    names, rows = mark.args[0], mark.args[1]
    names = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    return [dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in rows]


def _call(function: Callable[..., None], values: dict[str, Any], needs_memory: bool) -> None:
    if not needs_memory:
        function(**values)
        return
    memory = Memory()
    try:
        function(**values, memory=memory)
    finally:
        memory.close()
