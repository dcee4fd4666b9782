# SPDX-License-Identifier: Apache-2.0
"""`docs/fences.md`: its code runs and prints what it says, and its tables are those of today."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import redline
from redline.fences import RULES
from redline.plan import BOUNDARIES
from tests.realistic import tables

FILE = Path(redline.__file__).parent.parent / "docs" / "fences.md"
TEXT = FILE.read_text()


def test_every_code_block_runs_and_prints_what_stands_below_it() -> None:
    """One after the other, as a reader would type them; a block that is not followed by a text prints nothing."""
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```\n)?", TEXT, re.DOTALL)
    assert TEXT.count("```") == sum(4 if printed else 2 for _, printed in blocks)
    assert len(blocks) >= 4
    for code, wanted in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(FILE), "exec"), names)
        assert printed.getvalue() == wanted


def test_the_tables_are_those_of_today() -> None:
    """`python -m tests.realistic.tables docs/fences.md` writes them anew."""
    assert tables.replaced(TEXT) == TEXT
    assert tables.text() in TEXT


def test_a_stale_table_is_noticed(tmp_path: Path) -> None:
    """One figure changed, and the command puts it right."""
    stale = tmp_path / "fences.md"
    stale.write_text(TEXT.replace("| 310 |", "| 311 |", 1))
    assert tables.replaced(stale.read_text()) != stale.read_text()
    tables.main([str(stale)])
    assert stale.read_text() == TEXT


def test_it_names_every_boundary_and_is_short() -> None:
    """Whoever adds a boundary says here what it is; a page that nobody reads to the end explains nothing."""
    assert all(f'| `"{boundary}"`' in TEXT for boundary in BOUNDARIES)
    assert RULES["patched-kernargs"] in TEXT
    assert len(TEXT.splitlines()) <= 180
