# SPDX-License-Identifier: Apache-2.0
"""The command `redline-fuzz`: what it runs, prints, keeps and returns."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase
from redline_fuzz import cli, corpus, oracles, run, self_test
from redline_fuzz.judging import Judged
from redline_fuzz.oracles import ORACLES
from redline_fuzz.planting import Search

import redline as rl
from redline.fences import Fences


def _record(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def test_a_clean_run_returns_0_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """Examples, schedules, and per oracle what was judged, tried and noticed."""
    given = ["safe", "minimal", "verify", "--examples", "25", "--seed", "3", "--workers", "1", "--json"]
    assert cli.main(given) == cli.CLEAN
    record = _record(capsys)
    assert record["schema"] == 1
    assert record["clean"]
    assert record["schedules"] >= 64 * record["oracles"]["safe"]["judged"]
    minimal = record["oracles"]["minimal"]
    assert minimal["tried"] == minimal["killed"] > 0


def test_same_seed_same_work_whatever_the_workers(capsys: pytest.CaptureFixture[str]) -> None:
    """Chunks have seeds of their own, so that two processes do what one does."""
    records = []
    for workers in ("1", "2"):
        assert cli.main(["bounds", "round-trip", "--examples", "60", "--workers", workers, "--json"]) == cli.CLEAN
        records.append(_record(capsys))
    assert records[0] == records[1]
    assert cli.main(["bounds", "--examples", "60", "--seed", "2", "--workers", "1", "--json"]) == cli.CLEAN


def test_the_table_names_targets_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress goes to standard error, the table to standard output."""
    assert cli.main(["bounds", "streams", "--examples", "5", "--workers", "1"]) == cli.CLEAN
    printed = capsys.readouterr()
    assert "bounds" in printed.out
    assert "streams" in printed.out
    assert printed.out.rstrip().endswith("clean")
    assert "5/5 examples" in printed.err


def _no_fences(judged: Judged) -> str:
    """An oracle that wants no fences to do: wrong for whatever has a conflict."""
    return "a conflict" if rl.verify(judged.plan, Fences()) else ""


def test_a_finding_is_shrunk_kept_and_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1, a program with the public API, a file, and `replay` that finds it again."""
    monkeypatch.setitem(ORACLES, "bounds", _no_fences)
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    assert cli.main(["bounds", "--examples", "50", "--workers", "1", "--json"]) == cli.FOUND
    record = _record(capsys)
    assert not record["clean"]
    assert [failure["oracle"] for failure in record["failures"]] == ["bounds"]
    kept = record["kept"][0]
    assert Path(kept["file"]).exists()
    names: dict[str, object] = {}
    exec(kept["python"], names)
    assert isinstance(names["plan"], rl.Plan)
    assert len(corpus.load(kept["id"]).case.nodes) <= 3
    capsys.readouterr()
    assert cli.main(["replay", kept["id"]]) == cli.FOUND
    assert "FOUND by bounds" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    assert cli.main(["replay", kept["id"]]) == cli.CLEAN


@pytest.mark.parametrize("family", sorted(run.FAMILIES))
def test_a_family_is_all_that_is_drawn(family: str) -> None:
    """Targets of the chunks; `lowering` still compares all five."""
    chunks = list(run.chunks(("safe",), 100, 1, run.FAMILIES[family]))
    assert all(target.startswith(family) for chunk in chunks for target in chunk.targets)
    assert sum(chunk.examples for chunk in chunks) == 100


def test_a_shared_database_holds_what_was_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hypothesis's own directory: another run, or another machine, tries its examples first."""
    monkeypatch.setitem(ORACLES, "bounds", _no_fences)
    chunk = next(run.chunks(("bounds",), 25, 1, database=str(tmp_path / "shared")))
    first = run.run_chunk(chunk)
    assert first.failure is not None
    assert list((tmp_path / "shared").iterdir())
    again = run.run_chunk(replace(chunk, seed=99, examples=1))
    assert again.failure is not None
    assert isinstance(run.database_of(str(tmp_path)), DirectoryBasedExampleDatabase)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["nonsense"], "no target 'nonsense'"),
        (["replay", "nonsense"], "no kept case 'nonsense'"),
        (["self-test", "nonsense"], "no planted fault 'nonsense'"),
    ],
)
def test_what_there_is_not_is_usage(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2 and where to look."""
    assert cli.main(given) == cli.USAGE
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--profile", "slow"], ["--seed", "-1"], ["--examples", "0"], ["--workers", "x"]])
def test_options_are_checked(given: list[str]) -> None:
    """By argparse, with exit status 2."""
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    assert ended.value.code == 2


_WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
from redline_fuzz import cli
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("given", [["safe", "--workers", "1"], ["list"], ["self-test", "WAR wait skipped"]])
def test_without_the_extra_the_answer_is_how_to_install_it(given: list[str]) -> None:
    """Exit status 2, not 1: nothing was found. Nor is a fault found because its process cannot import anything."""
    done = subprocess.run([sys.executable, "-c", _WITHOUT_HYPOTHESIS, *given], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (cli.USAGE, "")
    assert done.stderr == "redline-fuzz: hypothesis is not installed; do: pip install 'redline[fuzz]'\n"


def test_what_an_oracle_passes_over_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not among what it judged, in the record and in the table."""
    monkeypatch.setitem(ORACLES, "bounds", lambda judged: None if judged.case.boundary == "host" else "")
    given = ["bounds", "--examples", "30", "--workers", "1"]
    assert cli.main([*given, "--json"]) == cli.CLEAN
    row = _record(capsys)["oracles"]["bounds"]
    assert row["judged"] + row["passed_over"] == 30
    assert row["judged"] > 0
    assert row["passed_over"] > 0
    assert cli.main(given) == cli.CLEAN
    printed = capsys.readouterr().out
    assert "passed over" in printed
    assert re.search(rf"bounds\W+{row['judged']}\W+{row['passed_over']}\b", printed)


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """Targets, shapes and kept cases; each graph target is an oracle."""
    assert cli.main(["list"]) == cli.CLEAN
    printed = capsys.readouterr().out
    for name in (*cli.GRAPH_TARGETS, *cli.HOSTILE_TARGETS, "long-chain", *(kept.id for kept in corpus.load_all())):
        assert name in printed
    assert set(cli.GRAPH_TARGETS) == set(oracles.ORACLES)


def test_self_test_prints_its_record(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON with killed and total; exit status 1 where a fault was not found in time."""
    assert cli.main(["self-test", "WAR wait skipped", "--workers", "1", "--json"]) == cli.CLEAN
    record = _record(capsys)
    assert (record["killed"], record["total"]) == (1, 1)
    monkeypatch.setattr(self_test, "_searched", lambda *_: iter([Search("WAR wait skipped", "", 1)]))
    assert cli.main(["self-test", "WAR wait skipped", "--workers", "1"]) == cli.FOUND
    assert "NOT FOUND" in capsys.readouterr().out
