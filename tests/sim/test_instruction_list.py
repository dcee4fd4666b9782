# SPDX-License-Identifier: Apache-2.0
"""docs/instructions.md lists what the tables hold, no more and no less."""

from __future__ import annotations

import re

import pytest

from redline.sim import inventory
from redline.sim.approximate import APPROXIMATE
from redline.sim.names import normalise
from tests.sim import instruction_list


def _listed(title: str) -> list[str]:
    """The names under a heading of the document."""
    text = instruction_list.DOCUMENT.read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"`([a-z0-9_]+)`", section)


@pytest.mark.parametrize("title", inventory.entries())
def test_document_lists_every_entry_once(title: str) -> None:
    """A new row of a table makes the document stale; so does one that is gone."""
    assert sorted(_listed(title)) == inventory.entries()[title]


def test_names_are_the_newest_spelling() -> None:
    for names in inventory.entries().values():
        assert [name for name in names if normalise(name) != name and not name.startswith("v_dual_")] == []


def test_approximate_instructions_are_named() -> None:
    """All of them, by the table that computes them."""
    assert {name for name in APPROXIMATE if name not in _listed("Approximate")} == set()


@pytest.mark.clang
def test_document_is_current() -> None:
    """Also which target has what, as LLVM 22's assembler knows it."""
    assert instruction_list.DOCUMENT.read_text(encoding="utf-8") == instruction_list.document()
