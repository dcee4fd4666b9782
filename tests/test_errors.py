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


def _makers(trees: list[ast.Module]) -> dict[str, str]:
    """Callable name -> error class: the classes themselves, and functions whose return annotation is one of them."""
    makers = {name: name for name in CLASSES}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id in CLASSES:
                makers[node.name] = node.returns.id
    return makers


def _uses() -> set[tuple[str, str]]:
    """(code, class) for every call in the sources that makes an error."""
    trees = [ast.parse(file.read_text()) for file in ROOT.rglob("*.py")]
    everywhere, found = _makers(trees), set()
    for tree in trees:
        makers = everywhere | _makers([tree])  # a file's own helper goes before another file's of that name
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                codes = [a.value for a in node.args if isinstance(a, ast.Constant) and str(a.value) in CODES]
                found |= {(str(code), makers[name]) for code in codes if name in makers}
    return found


def test_every_code_is_raised_by_its_own_class_and_listed_in_order() -> None:
    """A code that nothing raises is a lie in the documentation; so is one that another class raises."""
    uses = _uses()
    assert {code for code, _ in uses} == set(CODES)
    for code, name in uses:
        assert code.startswith(CLASSES[name].prefix), (code, name)
    assert list(CODES) == sorted(CODES)


def test_every_class_is_raised() -> None:
    """One that nothing raises would be a promise that nobody keeps."""
    assert {name for _, name in _uses()} == set(CLASSES)
