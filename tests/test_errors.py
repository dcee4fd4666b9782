# SPDX-License-Identifier: Apache-2.0
"""The error tree: four facts in each message, stable codes, and no code that is unused or used by the wrong class."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import redline
from redline import errors
from redline.errors import CODES, RedlineError

ROOT = Path(redline.__file__).parent
CLASSES = {cls.__name__: cls for cls in RedlineError.__subclasses__()}


def test_a_message_has_a_code_and_four_facts() -> None:
    """Where, what was seen, what is allowed, what to do; all readable one by one."""
    error = errors.EncodeError("RL0501", where="X.Y", seen="0x7", allowed="0..3", do="give less")
    assert str(error) == "RL0501 X.Y: 0x7; allowed: 0..3; do: give less"
    assert (error.code, error.where, error.seen, error.allowed, error.do) == (
        "RL0501",
        "X.Y",
        "0x7",
        "0..3",
        "give less",
    )


def test_errors_survive_pickling() -> None:
    """Worker processes hand them back whole."""
    error = errors.RecordError("RL0101", where="a", seen="b", allowed="c", do="d")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.do) == (errors.RecordError, str(error), "d")


def test_a_code_belongs_to_its_class() -> None:
    """Codes start with the class's prefix; prefixes are unique; every class is drawn in the module's tree."""
    with pytest.raises(KeyError, match="RL0501 is not a code of RecordError"):
        errors.RecordError("RL0501", where="", seen="", allowed="", do="")
    prefixes = [cls.prefix for cls in CLASSES.values()]
    assert len(set(prefixes)) == len(prefixes)
    for name, cls in CLASSES.items():
        assert f"{name} " in (errors.__doc__ or "")
        assert cls.prefix in (errors.__doc__ or "")
        assert getattr(redline, name) is cls


def _codes_in_source() -> dict[str, set[str]]:
    """Code -> classes that the sources raise it with: string constants next to a call of an error class."""
    found: dict[str, set[str]] = {}
    for file in ROOT.rglob("*.py"):
        if file.name == "errors.py" and file.parent == ROOT:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CODES:
                found.setdefault(node.value, set())
    return found


def test_every_code_is_used_and_every_used_code_is_listed() -> None:
    """A code that nothing raises is a lie in the documentation."""
    assert set(_codes_in_source()) == set(CODES)
    assert list(CODES) == sorted(CODES)
