# SPDX-License-Identifier: Apache-2.0
"""The package: cheap to import, its public names all there, its error tree consistent."""

from __future__ import annotations

import pickle
import re
import subprocess
from pathlib import Path

import pytest

import radiowave
from radiowave import errors
from radiowave.child import command, environment, how_it_ended

PACKAGE = Path(radiowave.__file__).parent


def test_import_is_light() -> None:
    """Importing the package, and catching its errors, loads neither llvmlite nor numpy nor ctypes."""
    program = (
        "import sys, radiowave; radiowave.CodeObjectError;"
        "print([m for m in ('llvmlite', 'numpy', 'ctypes', 'msgpack') if m in sys.modules])"
    )
    python = command("x")[0]
    done = subprocess.run([python, "-c", program], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_resolve() -> None:
    """Every public name is there, `dir` lists them, and another name is an AttributeError.

    No submodule has the name of a public function: importing it would put the module in the function's place.
    """
    assert not set(radiowave.__all__) & {path.stem for path in PACKAGE.glob("*.py")}
    assert all(getattr(radiowave, name) is not None for name in radiowave.__all__)
    assert dir(radiowave) == radiowave.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        radiowave.nothing  # noqa: B018


def test_imports_nothing_of_redline() -> None:
    """Radiowave stands below Redline."""
    for source in PACKAGE.glob("*.py"):
        assert not re.search(r"^\s*(from|import) redline\b", source.read_text(), re.MULTILINE), source


def test_every_code_is_raised_somewhere() -> None:
    """A code that nothing raises is not a promise that anybody keeps; one that is raised must be listed."""
    text = "".join(p.read_text() for p in PACKAGE.glob("*.py") if p.name != "errors.py")
    assert set(re.findall(r'"(RW\d{4})"', text)) == set(errors.CODES)
    assert list(errors.CODES) == sorted(errors.CODES)


def test_errors_carry_four_facts_and_survive_pickling() -> None:
    """An error crosses a process boundary whole."""
    error = errors.LinkError("RW0401", where="w", seen="s", allowed="a", do="d")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "RW0401 w: s; allowed: a; do: d"
    assert (again.code, again.where, again.seen, again.allowed, again.do) == ("RW0401", "w", "s", "a", "d")


def test_a_class_takes_its_own_codes_alone() -> None:
    """A code of another class is a mistake in the program."""
    with pytest.raises(KeyError):
        errors.LinkError("RW0301", where="", seen="", allowed="", do="")


def test_unknown_signal_has_a_name_all_the_same() -> None:
    """A message about a dead child must not itself fail."""
    assert how_it_ended(-99) == "signal 99"
