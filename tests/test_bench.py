# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run, say what they compare with, and assert no time."""

from __future__ import annotations

from redline_bench import encode, plan


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
