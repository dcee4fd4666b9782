# SPDX-License-Identifier: Apache-2.0
"""Each public name: its docstring gives units, shapes, errors and sources. The rules are `public_names.py`'s."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.public_names import (
    Public,
    entries,
    missing_errors,
    missing_shapes,
    missing_source,
    missing_units,
    public_names,
)

NAMES = public_names()


@pytest.mark.parametrize("public", NAMES, ids=lambda public: public.name)
def test_a_public_name_is_documented_with_units_errors_and_source(public: Public) -> None:
    """What it is, units of what it counts, shapes of arrays, what it raises, and where a fact is from."""
    assert public.doc, "no docstring, or for a constant no line that starts with #:"
    missing = [*missing_units(public), *missing_shapes(public), *missing_errors(public), *missing_source(public)]
    assert missing == []


def test_the_names_are_those_that_users_import() -> None:
    """The list holds functions, classes, their members and constants."""
    names = {public.name for public in NAMES}
    assert names >= {
        "redline.load",
        "redline.Plan.explain",
        "redline.Replay.wait",
        "redline.hsa.Buffer.view",
        "radiowave.TARGETS",
    }
    assert len(names) == len(NAMES) > 200


POOR = '''
"""A module that names no source."""
from numpy.typing import NDArray
from redline.errors import EncodeError, RecordError, RedlineError

def take(nbytes: int, timeout_s: float) -> int:
    """Take some, for so long."""
    return _check(nbytes)

def _check(nbytes: int) -> int:
    if nbytes < 1:
        raise _refused(str(nbytes))
    return nbytes

def _refused(seen: str) -> RecordError:
    return RecordError("RL0113", where="here", seen=seen, allowed="1", do="more")

def direct(bits: int) -> None:
    """So many bits. Raises RedlineError."""
    raise EncodeError("RL0501", where="here", seen=str(bits), allowed="0", do="less")

def caught(nbytes: int) -> int:
    """So many bytes, or none."""
    try:
        return _check(nbytes)
    except RedlineError:
        return 0

class Part:
    """A part."""

    def __init__(self, size: int) -> None:
        self.other = Other()
        self.size = _check(size)

    @property
    def address(self) -> int:
        """Where it is."""
        return self.other.must()

class Other:
    def must(self) -> int:
        return _check(0)

def image() -> "NDArray[np.uint8]":
    """An image of some bytes."""

LIMIT = 4
'''


@pytest.fixture
def poor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the encoders, as far as the rules can tell, whose docstrings lack all that they ask for."""
    file = tmp_path / "poor.py"
    file.write_text(POOR)
    spec = importlib.util.spec_from_file_location("redline.encoders.poor", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "redline.encoders.poor", module)
    spec.loader.exec_module(module)
    return module


def _named(module: ModuleType, name: str) -> Public:
    outer, _, member = name.partition(".")
    found = entries(module.__name__, outer, getattr(module, outer))
    return next(public for public in found if public.name.endswith(f".{name}") and (member or public.owner is None))


def test_the_units_rule_finds_sizes_and_times_without_one(poor: ModuleType) -> None:
    """Parameters of a function, the result of a property, the parameters of a class's constructor."""
    assert [line.split(":")[0] for line in missing_units(_named(poor, "take"))] == ["nbytes", "timeout_s"]
    assert [line.split(":")[0] for line in missing_units(_named(poor, "Part.address"))] == ["address"]
    assert [line.split(":")[0] for line in missing_units(_named(poor, "Part"))] == ["size"]
    assert missing_units(_named(poor, "direct")) == []


def test_the_shapes_rule_finds_arrays_without_one(poor: ModuleType) -> None:
    """A result or a parameter that is an array."""
    assert missing_shapes(_named(poor, "image")) == ["image: its shape"]
    assert missing_shapes(_named(poor, "take")) == []


def test_the_errors_rule_follows_calls_and_asks_for_the_very_class_of_an_own_raise(poor: ModuleType) -> None:
    """Through private functions, made exceptions, constructors and typed members; not through a handler."""
    assert missing_errors(_named(poor, "take")) == ["Raises RecordError"]
    assert missing_errors(_named(poor, "Part")) == ["Raises RecordError"]
    assert missing_errors(_named(poor, "Part.address")) == ["Raises RecordError"]
    assert missing_errors(_named(poor, "direct")) == ["Raises EncodeError"]
    assert missing_errors(_named(poor, "caught")) == []


def test_the_source_rule_finds_facts_from_nowhere(poor: ModuleType) -> None:
    """A name of a module of facts; a source in its own docstring or in the module's is enough."""
    assert missing_source(_named(poor, "take")) == ["a source: redline.encoders.poor names none"]
    poor.__doc__ = "Source: LLVM AMDGPUUsage."
    assert missing_source(_named(poor, "take")) == []


def test_a_constant_is_documented_by_the_lines_over_it(poor: ModuleType) -> None:
    """Without a line that starts with #: it has no docstring."""
    assert _named(poor, "LIMIT").doc == ""
