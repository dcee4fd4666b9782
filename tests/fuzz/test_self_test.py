# SPDX-License-Identifier: Apache-2.0
"""Planted faults: the hook plants what it says, a slice of the table is found, and sound Redline is not accused."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from redline_fuzz import self_test
from redline_fuzz.faults import FAULTS
from redline_fuzz.operator_mutants import EQUIVALENT, mutants
from redline_fuzz.planting import Fault, faulty, plant

ROOT = Path(__file__).parent.parent.parent

#: One or two of each kind; `make prove` plants all.
SLICE = (
    "WAR wait skipped",
    "scalar read as vector",
    "ranges end a byte early",
    "an acquire clears undrained writes",
    "loop-carried edges forgotten",
    "fewest packets of each class alone",
    "every drain twice",
    "wrong slot patched",
    "elision of a changed register",
    "GL1 dropped from K",
    "verify: no visibility",
    "host access keeps a replay warm",
    "a mutant of _line_drains",
)


def test_a_slice_of_the_table_is_found() -> None:
    """Each within 300 examples, by an oracle or by a crash of what is faulty."""
    generic = next(fault.name for fault in mutants(ROOT) if fault.name.startswith("_line_drains"))
    record = self_test.run(1, 300, [*SLICE[:-1], generic], workers=2)
    assert record["schema"] == 1
    assert (record["killed"], record["total"]) == (len(SLICE), len(SLICE)), record["faults"]
    assert record["planted"] == len(SLICE) - 1
    assert record["survivors"] == {}
    assert record["accused"] == ""


def test_every_fault_stands_where_the_table_says() -> None:
    """At least 40, all different, each text exactly once in its file, each still a module."""
    assert len(FAULTS) >= 40
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        source = (ROOT / fault.file).read_text()
        compile(faulty(source, fault), fault.file, "exec")


def test_every_generic_mutant_is_another_module() -> None:
    """All parse, all differ; a mutant that is called equivalent exists, with its reason."""
    made = list(mutants(ROOT))
    sources = [fault.new for fault in made]
    assert len(made) > 50
    assert len(set(sources)) == len(made)
    for source in sources:
        compile(source, "fences.py", "exec")
    assert EQUIVALENT.keys() <= {fault.name for fault in made}
    assert all(EQUIVALENT.values())


def test_a_text_that_is_not_there_once_is_refused() -> None:
    """A table that has gone stale must not plant nothing and call it found."""
    for source in ("a = 1\n", "a == b\na == b\n"):
        with pytest.raises(ValueError, match="allowed: once"):
            faulty(source, Fault("f", "redline/x.py", "a == b", "a != b"))


def test_a_module_that_was_imported_is_refused() -> None:
    """The right one would go on being used."""
    import_module("redline.fences")
    with pytest.raises(RuntimeError, match="imported already"):
        plant(Fault("f", "redline/fences.py", "a", "b"))


def test_sound_redline_is_not_accused() -> None:
    """In a process like those of the faults, with nothing planted."""
    code = "from redline_fuzz.planting import search; print(search(None, 1, 60).oracle or 'clean')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "clean"


def test_a_name_that_is_no_fault_is_a_key_error() -> None:
    """Nothing was planted then."""
    with pytest.raises(KeyError, match="no such fault"):
        self_test.run(1, 1, ["no such fault"])
