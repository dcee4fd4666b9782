# SPDX-License-Identifier: Apache-2.0
"""Kept cases: every one still passes every oracle, and is filed under its own name."""

from __future__ import annotations

from pathlib import Path

import pytest
from redline_fuzz import corpus
from redline_fuzz.cases import Case, Memory, Node, Touch
from redline_fuzz.judging import Tally
from redline_fuzz.oracles import ORACLES, judge
from redline_fuzz.printing import case_id

KEPT = {kept.id: kept for kept in corpus.load_all()}


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_kept_case_passes_every_oracle(name: str) -> None:
    """Each once went wrong, in Redline or in a known mistake of such planners; its file says how."""
    kept = KEPT[name]
    assert case_id(kept.case) == name
    assert kept.oracle in ORACLES
    assert kept.why
    failure = judge(kept.case, tuple(ORACLES), Tally())
    assert failure is None, failure


def test_the_counterexamples_of_the_memory_model_are_kept() -> None:
    """By the numbers of its findings."""
    whys = " ".join(kept.why for kept in KEPT.values())
    for finding in ("F1", "F2", "F3", "F4", "F5", "F10", "F13", "F20", "F21"):
        assert f"{finding}:" in whys, finding


def test_a_finding_is_kept_once(tmp_path: Path) -> None:
    """Under its id; what was written about it first stays."""
    case = Case((Memory(),), (Node((Touch(0, 0, 4, "update"),)),))
    first = corpus.save(case, "safe", "first", tmp_path)
    again = corpus.save(case, "minimal", "second", tmp_path)
    assert first == again
    assert first.stem == case_id(case)
    assert '"why": "first"' in first.read_text()


@pytest.mark.parametrize("name", ["", "..", "../corpus", "000000000000"])
def test_a_case_that_is_not_kept_is_a_key_error(name: str) -> None:
    """A name is no path."""
    with pytest.raises(KeyError):
        corpus.load(name)
