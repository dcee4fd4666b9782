# SPDX-License-Identifier: Apache-2.0
"""Recipes: chosen by kernel and evidence, never one that was rejected; ledgers are taken in whole or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from radiowave import Catalogue, Recipe, RecipeError, UnsupportedTarget
from radiowave.cli import main
from radiowave.recipes import BUILTIN, Action, Evidence, Selector

WON = {"verdict": "WIN", "recipe": "wave64", "target": "gfx1151", "artifact": "ab" * 32, "gain": 3.5, "samples": 8}


def line(**changes: Any) -> bytes:
    """One row of a ledger."""
    return json.dumps(WON | changes).encode() + b"\n"


def with_evidence(recipe: Recipe, *evidence: tuple[str, str]) -> Recipe:
    """The same, measured on (target, verdict)."""
    rows = tuple(Evidence(target, verdict, "ab" * 32) for target, verdict in evidence)  # type: ignore[arg-type]
    return replace(recipe, evidence=rows)


def ids(found: tuple[Recipe, ...]) -> list[str]:
    """In order."""
    return [recipe.id for recipe in found]


def test_catalogues_come_back() -> None:
    """Written and read: the same bytes."""
    assert Catalogue.parse(Catalogue().to_bytes()) == Catalogue()
    assert Catalogue().recipes == BUILTIN


def test_only_what_was_promoted_on_this_target_is_applied() -> None:
    """Built-in recipes are candidates; evidence of another target or of another kind changes nothing."""
    first, second, third = BUILTIN[:3]
    rows = (
        with_evidence(first, ("gfx1151", "promoted")),
        with_evidence(second, ("gfx1100", "promoted"), ("gfx1151", "correctness_only")),
        with_evidence(third, ("gfx1151", "promoted"), ("gfx1151", "rejected")),
    )
    catalogue = Catalogue(rows)
    assert ids(catalogue.select("gfx1151", "k")) == [first.id]
    assert ids(catalogue.select("gfx1151", "k", candidates=True)) == [first.id, second.id]
    assert ids(Catalogue().select("gfx1201", "k")) == []
    assert len(Catalogue().select("gfx1201", "k", candidates=True)) == len(BUILTIN)


SELECTORS = [
    (Selector(), True),
    (Selector(kernels=("matmul_16",)), True),
    (Selector(kernels=("matmul",)), False),
    (Selector(prefixes=("x", "matmul")), True),
    (Selector(prefixes=("soft",)), False),
    (Selector(kernels=("x",), prefixes=("mat",)), True),
    (Selector(families=("gemm",)), True),
    (Selector(families=("norm",)), False),
    (Selector(tags=("f16",)), True),
    (Selector(tags=("f16", "f32")), False),
    (Selector(without_tags=("f32",)), True),
    (Selector(without_tags=("f16",)), False),
]


@pytest.mark.parametrize(("selector", "fits"), SELECTORS)
def test_selectors(selector: Selector, fits: bool) -> None:
    """Names, beginnings, families, tags; all that are given must fit."""
    catalogue = Catalogue((Recipe("r", "", Action(wave=32), selector),))
    found = catalogue.select("gfx1100", "matmul_16", family="gemm", tags=["f16", "tiled"], candidates=True)
    assert bool(found) == fits


def test_contradicting_recipes_are_refused() -> None:
    """Two waves, or two values of one define; as candidates they may stand side by side."""
    on = ("gfx1151", "promoted")
    waves = Catalogue(tuple(with_evidence(recipe, on) for recipe in BUILTIN[:2]))
    with pytest.raises(RecipeError, match="RW0503 recipes: wave32 wants wave 32, wave64 wants 64"):
        waves.select("gfx1151", "k")
    assert len(waves.select("gfx1151", "k", candidates=True)) == 2
    defines = [Recipe(name, "", Action(defines={"N": name})) for name in "ab"]
    with pytest.raises(RecipeError, match="define N"):
        Catalogue(tuple(with_evidence(recipe, on) for recipe in defines)).select("gfx1151", "k")


def test_ledgers() -> None:
    """Won rows that name recipes count, once for each target and artifact."""
    ledger = line() + line() + line(target="gfx1100") + line(verdict="LOSS") + line(recipe="") + b"\n"
    ledger += line(recipe="", recipes=["wave32", "max_ilp"], artifact="cd" * 32)
    catalogue, count = Catalogue().ingest(ledger)
    assert count == 4
    assert ids(catalogue.select("gfx1100", "k")) == ["wave64"]
    (row,) = (e for r in catalogue.recipes if r.id == "wave64" for e in r.evidence if e.target == "gfx1151")
    assert (row.verdict, row.artifact, row.gain, row.samples) == ("promoted", "ab" * 32, 3.5, 8)
    assert catalogue.ingest(ledger) == (catalogue, 0)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (line(recipe="wave128"), "line 2: recipe 'wave128'; allowed: iterative_ilp"),
        (line(artifact=3), r"line 2: .*artifact"),
        (line(gain="much"), r"line 2: .*gain"),
        (b"{", "line 2"),
        (b"[]\n", "line 2: a JSON list"),
        (b'{"verdict":"WIN","verdict":"WIN"}', "keys given twice"),
        (b'{"gain": NaN}', "NaN"),
        (line().replace(b"3.5", b"1e400"), "1e400 is larger than any number"),
        (line(artifact="ab"), "artifact"),
        (line(artifact="ab" * 32 + "\n"), "artifact"),
        (line(samples=-1), "samples"),
        (line(samples=10**50), "line 2"),
        (line().replace(b"3.5", b"9" * 5000), "line 2"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe{", "line 2"),
    ],
)
def test_rows_that_cannot_be_taken_in(row: bytes, words: str) -> None:
    """With the line; nothing is lost or half taken in."""
    with pytest.raises(RecipeError, match=f"RW0502 .*{words}"):
        Catalogue().ingest(line() + row)


def test_ledger_of_an_unknown_gpu() -> None:
    """A target that is not on the list."""
    with pytest.raises(UnsupportedTarget, match="gfx9999"):
        Catalogue().ingest(line(target="gfx9999"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "RW0501"),
        (b"[]", "a JSON list"),
        (b'{"recipes":[],"schema":2}', "schema"),
        (b'{"recipes":[],"schema":1,"x":1}', "fields that catalogues do not have"),
        (b'{"recipes":[{"id":"a","why":"","action":{"wave":48}}],"schema":1}', "wave"),
        (b'{"recipes":[{"id":"a","why":"","action":{"profile":"fast"}}],"schema":1}', "profile"),
        (b'{"recipes":[{"id":"a","why":"","action":{"workgroup":0}}],"schema":1}', "workgroup"),
        (b'{"recipes":[{"id":"a","why":"","action":{"workgroup":1025}}],"schema":1}', "workgroup"),
    ],
)
def test_damaged_catalogues(text: bytes, words: str) -> None:
    """By the field."""
    with pytest.raises(RecipeError, match=words):
        Catalogue.parse(text)


def test_two_of_one_id() -> None:
    """An id is a name for ever."""
    with pytest.raises(RecipeError, match="RW0501 .*two recipes of one id: wave32"):
        Catalogue((BUILTIN[0], BUILTIN[0]))


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """List, take in, choose."""
    ledger, path = tmp_path / "rows.jsonl", tmp_path / "catalogue.json"
    ledger.write_bytes(line())
    assert main(["recipes", "builtin"]) == 0
    assert capsys.readouterr().out.encode() == Catalogue().to_bytes()
    assert main(["recipes", "ingest", "--ledger", str(ledger), "-o", str(path)]) == 0
    assert "1 new rows" in capsys.readouterr().err
    choose = ["recipes", "select", "--catalogue", str(path), "--target", "gfx1151", "--kernel", "k"]
    assert main(choose) == 0
    assert capsys.readouterr().out.startswith("wave64  promoted  half the scalar work")
    assert main([*choose, "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)["recipes"]] == ["wave64"]
    assert main(["recipes", "select", "--target", "gfx1201", "--kernel", "k"]) == 0
    assert "nothing was promoted" in capsys.readouterr().out
    assert main(["recipes", "select"]) == 2
    path.write_bytes(b"{}")
    assert main(["recipes", "builtin", "--catalogue", str(path)]) == 1
    assert "RW0501" in capsys.readouterr().err
