# SPDX-License-Identifier: Apache-2.0
"""The side-by-side harness: bytes first, every writable buffer, and no number where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from redline_bench.compare import DIFFERS, EQUAL, Uncompared, compare, differing

import redline as rl
from tests.devices import module

X = np.arange(64, dtype=np.float32).tobytes()


def _graph(a: float = 2.0) -> rl.Graph:
    """out = copy of kv; kv += a x; residual = copy of x: results, state and a side buffer."""
    graph = rl.Graph()
    x, kv = graph.buffer("x", 256, role="in"), graph.buffer("kv", 256, role="inout")
    out, residual = graph.buffer("out", 256, role="out"), graph.buffer("residual", 256, role="out")
    saxpy, copy = module("saxpy")["saxpy"], module("copy")["copy"]
    args: list[Any] = [rl.update(kv), rl.read(x), a, 64]
    graph.launch(saxpy, grid=1, block=128, args=args)
    graph.launch(copy, grid=1, block=256, args=[rl.write(out), rl.read(kv), 64])
    graph.launch(copy, grid=1, block=256, args=[rl.write(residual), rl.read(x), 64])
    return graph


def test_equal_plans_are_timed(device: rl.Device, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 12: parity first, then a ratio to the first plan in the same run."""
    plans = {"one queue": _graph().compile(), "two lanes": _graph().compile(form="aql", queues=2)}
    assert compare(device, plans, {"x": X}, rounds=1) == EQUAL
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "1.000 of one queue" in lines[0]
    assert "ns a replay" in lines[1]


def test_plans_that_differ_have_no_number(device: rl.Device, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 12: exit status 2, the buffers by name, and nothing else."""
    plans = {"right": _graph().compile(), "wrong": _graph(3.0).compile()}
    assert compare(device, plans, {"x": X}, rounds=1) == DIFFERS
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "wrong differs from right in: kv, out; nothing was timed\n"


def test_a_buffer_that_is_left_out_is_an_error(device: rl.Device) -> None:
    """Case 13: an oracle that does not look at all state fails closed."""
    plan = _graph().compile()
    with pytest.raises(Uncompared, match="uncompared writable buffer: residual"):
        differing(device, plan, plan, {"x": X}, ["out", "kv"])
    assert differing(device, plan, plan, {"x": X}, ["out", "kv", "residual"]) == []
