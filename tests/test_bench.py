# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run, say what they compare with, and assert no time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from redline_bench import compare, encode, plan, radiowave, replay, shapes, sim

import redline as rl
from redline import Plan, cli
from redline.accesses import Accesses, AccessRows
from redline.kernels import SPECS
from redline.ordering import unordered_pairs
from tests.devices import module, two_launches


def test_encode_reports_ratios_to_a_copy() -> None:
    """One record per target with the words that were written."""
    record = encode.measurements("gfx1201", 50, 2)
    assert record["dwords"] == 50 * 28
    assert {"encode_to_copy", "relocate_to_copy", "encode_ns_per_launch"} <= set(record)


def test_plan_shapes_have_the_fences_they_are_named_for() -> None:
    """Case 1: a chain needs a drain between neighbours, disjoint launches none, a fan-out one; a decoder layer nine
    levels; unrolled KV one drain at each step. 24 launches of every shape.
    """
    drains = {shape: make(24).compile().fences.drains for shape, make in shapes.SHAPES.items()}
    assert drains.pop("rnd") > 1
    assert drains == {"llm": 17, "wide": 0, "unrolled-kv": 23, "chain": 23, "fan-out": 1}


def test_shapes_are_the_same_every_time() -> None:
    """Records of different commits are compared: a shape that changes needs another name."""
    rows = {shape: make(100)._rows for shape, make in shapes.SHAPES.items()}
    columns = {name: bytes(r.memory) + bytes(r.start) + bytes(r.stop) + bytes(r.does) for name, r in rows.items()}
    assert {name: hashlib.sha256(column).hexdigest()[:16] for name, column in columns.items()} == {
        "llm": "fd582869735a1bb5",
        "wide": "077bc0eb162a6200",
        "rnd": "bd57cdf6295d0e89",
        "unrolled-kv": "51f13cc26220e964",
        "chain": "61d5a48058010872",
        "fan-out": "a54b44a9bb85e4cf",
    }


def test_the_explicit_llm_shape_has_exactly_the_edges_it_needs() -> None:
    """Nothing is unordered, and without any one edge something is."""
    recorded = shapes.llm(26, "explicit")
    assert recorded.lint() == ()
    assert Plan.of(recorded).levels == Plan.of(shapes.llm(26)).levels
    edges = [(launch.index, first) for launch in recorded.launches for first in launch.after]
    for index, first in edges:
        launches = list(recorded.launches)
        launches[index] = replace(launches[index], after=tuple(a for a in launches[index].after if a != first))
        rows = AccessRows()
        for launch in launches:
            rows.add(launch, recorded.buffers)
        assert unordered_pairs(Accesses.of(rows, recorded.buffers), launches, recorded.buffers), (index, first)


def test_plan_prints_a_table_or_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    """`redline bench plan`: a row for each shape and size; `--json` has the same with its schema."""
    asked = ["bench", "plan", "--launches", "30", "--rounds", "1", "--shape", "llm"]
    assert cli.main(asked) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["shape", "launches", "accesses"]
    # 40 accesses a layer: two layers, and 19 of the third up to its append
    assert row.split()[:3] == ["llm", "30", "99"]
    assert cli.main([*asked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["plan"]
    assert record["schema"] == plan.SCHEMA
    (found,) = record["rows"]
    assert found["samples"] == 1
    assert {"plan_ms", "derive_ms", "to_lexsort", "to_shuffled_lexsort", "extra_rss_per_launch"} <= set(found)


def test_replay_shapes_have_the_fences_of_case_2() -> None:
    """Case 2: chain, independent and fan-out for 1 and 941 launches, whatever the grid; lowered, patched, replayed."""
    rows = replay.measurements(1, blocks=(1, 8192))["shapes"]
    drains = {(row["shape"], row["launches"], row["groups"]): (row["drains"], row["acquires"]) for row in rows}
    wanted = {("chain", 941): (940, 940), ("fanout", 941): (1, 1)}
    shapes_of_case_2 = [(name, n) for name in ("chain", "indep", "fanout") for n in (1, 941)]
    assert drains == {(*key, groups): wanted.get(key, (0, 0)) for key in shapes_of_case_2 for groups in (1, 8192)}
    for row in rows:
        assert {"encode_ns_per_launch", "patch_ns", "dwords_per_launch", "replay_us_per_launch"} <= set(row)


def test_replay_prints_tables_or_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    """`redline bench replay`: calls beside a plain ctypes call and an empty dispatcher; `--json` has the same keys."""
    asked = ["bench", "replay", "--quick", "--rounds", "1", "--launches", "3"]
    assert cli.main(asked) == 0
    calls, per_shape = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert [line.split()[0] for line in per_shape.splitlines()] == ["shape", "chain", "indep", "fanout"]
    assert cli.main([*asked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["replay"]
    assert record["schema"] == replay.SCHEMA
    assert calls.split()[:5] == list(record["calls"][0])
    assert per_shape.splitlines()[0].split() == list(record["shapes"][0])
    names = ["plain ctypes call", "empty numba dispatcher", "reset + submit + wait", "patch", "16 patches + replay"]
    assert [row["call"] for row in record["calls"]] == names
    assert [record["calls"][0]["to_ctypes"], record["calls"][1]["to_numba"]] == [1, 1]
    assert all(row["p90_ns"] >= row["median_ns"] > 0 for row in record["calls"])


def _two_steps(factor: float) -> rl.Graph:
    """out = x, then residual += factor * x: a side buffer that is easily forgotten."""
    graph = rl.Graph()
    x = graph.buffer("x", 256, role="in")
    out, residual = graph.buffer("out", 256, role="out"), graph.buffer("residual", 256, role="inout")
    graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(out), rl.read(x), 64])
    args = [rl.update(residual), rl.read(out), rl.f32(factor), 64]
    graph.launch(module("saxpy")["saxpy"], grid=1, block=128, args=args)
    return graph


INITIAL = {name: bytes(range(64)) * 4 for name in ("x", "out", "residual")}


def test_compare_times_only_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 12: parity on the software device comes first; with different bits nothing is timed at all."""
    graph = _two_steps(2.0)
    found = compare.compare(graph.compile(), graph.compile(fences="full"), INITIAL, rounds=1)
    assert (found["compared"], found["one"]["drains"], found["ratio"] > 0) == (["out", "residual"], 1, True)
    assert found["one"]["replay_ns"] > 0
    monkeypatch.setattr(compare, "measure", lambda *_: pytest.fail("timed"))
    with pytest.raises(compare.DifferentResultError, match=r"residual\[\d+\]: 0x"):
        compare.compare(graph.compile(), _two_steps(3.0).compile(), INITIAL)


def test_compare_leaves_no_written_buffer_out() -> None:
    """Case 13: every buffer that is written is compared, side buffers too; what is missing fails closed."""
    plan = _two_steps(2.0).compile()
    with pytest.raises(compare.NotComparableError, match="uncompared writable buffer: residual"):
        compare.compare(plan, plan, INITIAL, compared=["out"])
    with pytest.raises(compare.NotComparableError, match="no initial bytes, or of another size: residual"):
        compare.compare(plan, plan, {"x": INITIAL["x"], "out": INITIAL["out"]})
    with pytest.raises(compare.NotComparableError, match="differ in target or outside buffers"):
        compare.compare(plan, two_launches().compile(), INITIAL)


def test_different_results_exit_with_2_and_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 12, `redline bench compare`: nothing on stdout."""
    one, other = _two_steps(2.0).compile(), _two_steps(3.0).compile()
    monkeypatch.setattr(compare, "measurements", lambda rounds: compare.compare(one, other, INITIAL, rounds=rounds))
    assert cli.main(["bench", "compare", "--quick"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "different results" in printed.err) == ("", True)
    monkeypatch.setattr(compare, "measurements", lambda rounds: compare.compare(one, one, INITIAL, rounds=rounds))
    assert cli.main(["bench", "compare", "--quick"]) == 0
    assert json.loads(capsys.readouterr().out)["compare"]["schema"] == compare.SCHEMA


def test_growth_is_an_exponent_between_sizes() -> None:
    """Ten times the launches in a hundred times the time is 2."""
    rows = [{"launches": n, "plan_ms": n * n / 2, "derive_ms": n * n / 2} for n in (10, 100)]
    assert plan._exponent(*rows) == 2


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


def test_radiowave_reports_ratios_to_what_it_rests_on() -> None:
    """One row a target; nothing about how long anything takes."""
    (row,) = radiowave.measurements(1, ("gfx1201",))["rows"]
    assert row["kernels"] == len(SPECS)
    assert set(row["ms_per_kernel"]) == {"inspect", "pyelftools", "certify", "disassemble"}
    assert {"inspect_to_pyelftools", "certify_to_disassemble"} <= set(row)
    assert "gfx1201" in radiowave.table({"rows": [row]})
