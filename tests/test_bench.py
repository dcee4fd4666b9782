# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run, say what they compare with, and assert no time."""

from __future__ import annotations

import json

import pytest
from redline_bench import encode, plan, sim

from redline import cli


def test_encode_reports_ratios_to_a_copy() -> None:
    """One record per target with the words that were written."""
    record = encode.measurements("gfx1201", 50, 2)
    assert record["dwords"] == 50 * 28
    assert {"encode_to_copy", "relocate_to_copy", "encode_ns_per_launch"} <= set(record)


def test_plan_shapes_have_the_fences_they_are_named_for() -> None:
    """Case 1: a chain needs a drain between neighbours, independent launches none, a fan-out one."""
    drains = {shape: plan.graph(shape, 20).compile().fences.drains for shape in plan.SHAPES}
    assert drains == {"chain": 19, "independent": 0, "fan-out": 1}
    assert plan.measurements("chain", 20, 1)["compile_us_per_launch"] > 0


def test_sim_counts_wave_instructions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`redline bench sim`: 512 waves of matmul 128^3, the rate of each round, and exit code 1 when it is too slow."""
    monkeypatch.setattr(sim, "TARGETS", ("gfx1100",))
    monkeypatch.setattr(sim, "WANTED", 1)
    assert cli.main(["bench", "sim", "--rounds", "1"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["sim"]
    assert (found["waves"], found["kernel"]) == (512, "matmul 128x128x128")
    assert found["wave_instructions"] > 512 * 128 * 2  # at least a multiply-add and a load for each step of k
    assert found["best"] == max(found["per_second"]) > 0
    monkeypatch.setattr(sim, "WANTED", 10**12)
    assert cli.main(["bench", "sim", "--rounds", "1"]) == 1


def test_unknown_benchmark_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["bench", "gpu"])
    assert "no benchmark 'gpu'" in capsys.readouterr().err
