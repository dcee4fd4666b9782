# SPDX-License-Identifier: Apache-2.0
"""A software device some of whose calls are replaced: what a test needs the runtime to do, it does."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from redline.hsa import Agent, Runtime
from redline.hsa.lib import Hsa, RuntimeTable, callback_table
from redline.sim.runtime import SimRuntime
from tests.sim.streams import Remembering


def table_with(
    base: RuntimeTable, functions: dict[str, Callable[..., Any]], errors: list[BaseException] | None = None
) -> RuntimeTable:
    """`base` with some functions replaced; what they raise is put into `errors`."""
    errors = [] if errors is None else errors
    changed = callback_table("fake", functions, remember=errors.append)
    return replace(base, kind="fake", addresses={**base.addresses, **changed.addresses}, keep=(base.keep, changed.keep))


@contextmanager
def fake_agent(
    functions: dict[str, Callable[..., Any]], target: str = "gfx1201", backend: Remembering | None = None
) -> Iterator[Agent]:
    """The GPU agent of a device with `functions` in place of the sim's own."""
    sim = SimRuntime(target, backend or Remembering())
    errors: list[BaseException] = []
    table = table_with(sim.table, functions, errors)
    with Runtime.of_table(table) as runtime:
        yield runtime.agents()[0]
    assert errors == []
    assert sim.errors == []


def recording(calls: list[tuple[str, tuple[Any, ...]]], names: list[str], sim: SimRuntime) -> dict[str, Any]:
    """Functions that note their arguments and then do what the sim does."""
    hsa = Hsa(sim.table)

    def make(name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            calls.append((name, args))
            return hsa.call(name, *args)

        return call

    return {name: make(name) for name in names}


def u64_at(address: int) -> int:
    """A 64-bit word of host memory."""
    return int(ctypes.c_uint64.from_address(address).value)
