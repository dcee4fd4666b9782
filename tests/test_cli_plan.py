# SPDX-License-Identifier: Apache-2.0
"""`redline plan` and `redline explain` on graphs in files: figures, reasons, JSON, and every way to name nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redline.cli import main

_FILE = """
import redline as rl

def graph():
    made = rl.Graph()
    x, y = made.buffer("x", 64), made.buffer("y", 64, role="out")
    made.launch(rl.Kernel.synthetic("first"), grid=1, block=1, args=[rl.write(x)])
    made.launch(rl.Kernel.synthetic("second", pointers=2), grid=1, block=1, args=[rl.read(x), rl.write(y)])
    made.launch(rl.Kernel.synthetic("third"), grid=1, block=1, args=[rl.read(x)])
    return made

recorded = graph()
planned = graph().compile(boundary="queue")

def unordered():
    made = rl.Graph(order="explicit")
    x = made.buffer("x", 64)
    for name in ("first", "second"):
        made.launch(rl.Kernel.synthetic(name), grid=1, block=1, args=[rl.write(x)])
    return made

def takes(argument): return graph()
number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with graphs and other things."""
    path = tmp_path / "app.py"
    path.write_text(_FILE)
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("name", ["graph", "recorded"])
def test_plan_prints_figures_beside_those_of_more_fences(
    file: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A graph or a function that returns one: one drain here, two with a fence per launch or per dependent launch."""
    code, out, _ = _run(capsys, "plan", f"{file}:{name}")
    rows = {line[:22].strip(): line[22:].split() for line in out.splitlines()[3:6]}
    assert code == 0
    assert {name: row[:4] for name, row in rows.items()} == {
        "this plan": ["1", "1", "1", "1"],
        'fences="full"': ["2", "2", "2", "2"],
        "per dependent launch": ["2", "2", "2", "2"],
    }
    assert "longest chain of hazards has 1 edges" in out


def test_plan_as_json_and_as_a_digraph(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same figures with a schema; arrows for the hazards."""
    code, out, _ = _run(capsys, "plan", f"{file}:graph", "--json", "--boundary", "queue")
    report = json.loads(out)
    assert (code, report["schema"], report["launches"], report["chain"]) == (0, 1, 3, 1)
    assert report["drains"] == 2, "the chain's edge, and one more because the first launch conflicts with itself"
    assert report["memory"]["bytes"] == sum(v for k, v in report["memory"].items() if k not in ("bytes", "signals"))
    _, out, _ = _run(capsys, "plan", f"{file}:graph", "--dot")
    assert 'n0 -> n1 [label="RAW x[0:64]"];' in out


def test_explain_a_plan_and_a_pair(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All fences with their reasons; two launches, by number, in any order."""
    code, out, _ = _run(capsys, "explain", f"{file}:planned")
    assert code == 0
    assert "warm entry: drain" in out
    code, out, _ = _run(capsys, "explain", f"{file}:graph", "2", "#0")
    assert code == 0
    assert "#2 third reads x[0:64] written by #0 first (RAW)" in out
    code, out, _ = _run(capsys, "explain", f"{file}:graph", "1", "2", "--json")
    assert json.loads(out)["hazards"] == []
    code, out, _ = _run(capsys, "explain", f"{file}:graph", "--json")
    told = json.loads(out)
    assert [fence["before"] for fence in told["fences"]] == [1]
    assert told["fences"][0]["shows"]["K"][0]["sites"][0].endswith("app.py:7")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "{}:nothing"], "it has graph, planned, recorded"),
        (["plan", "{}"], "not FILE.py:NAME"),
        (["plan", "none.py:graph"], "not FILE.py:NAME"),
        (["plan", "{}:number"], "gives int, not a Graph or a Plan"),
        (["plan", "{}:takes"], "cannot be called without arguments"),
        (["plan", "{}:planned", "--boundary", "host"], "leave out --boundary"),
        (["explain", "{}:graph", "0"], "not two launches"),
        (["explain", "{}:graph", "a", "b"], "not two launches"),
        (["explain", "{}:nothing"], "it has graph"),
        (["explain", "RL0201", "0", "1"], "launches and options go with a graph"),
        (["explain", "RL0201", "--boundary", "queue"], "launches and options go with a graph"),
    ],
)
def test_what_names_no_graph_is_usage(
    file: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, with what was seen and what is there."""
    code, out, err = _run(capsys, *(word.format(file) for word in words))
    assert (code, out) == (2, "")
    assert said in err


def test_a_graph_that_does_not_compile_exits_with_1(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And says both launches and their lines."""
    code, _, err = _run(capsys, "plan", f"{file}:unordered")
    assert code == 1
    assert "RL0201" in err
    assert err.count("app.py:19") == 2
