# SPDX-License-Identifier: Apache-2.0
"""Change each constant of each family table in turn: some known answer must notice.

The walk knows nothing of the tables but their types, so a constant added tomorrow is changed too. A constant that
nothing notices is either not needed or not tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from redline.encoders import FAMILIES
from redline.encoders.decode import decode
from redline.encoders.table import FamilyTable
from redline.errors import RedlineError
from tests.encoders import golden

# Prose, not constants: which table it is, and where its facts come from.
PROSE = {"name", "source"}


class Refused:
    """Stands for a change that a declaration refuses: noticed."""


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """Every value that differs from `value` in one place, with the place."""
    if isinstance(value, bool):
        yield "not", not value
    elif isinstance(value, int):
        yield "+1", value + 1
        if value:
            yield "-1", value - 1
    elif isinstance(value, str):
        yield "renamed", f"{value}_"
    elif isinstance(value, Mapping):
        yield from changed_mapping(value)
    elif isinstance(value, tuple):
        yield from changed_tuple(value)
    else:
        yield from changed_dataclass(value, set())


def changed_mapping(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        yield f"without {key}", {k: v for k, v in value.items() if k != key}
        for place, other in changed(item):
            yield f"{key} {place}", other if other is Refused else {**value, key: other}


def changed_tuple(value: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for i, item in enumerate(value):
        yield f"without {i}", value[:i] + value[i + 1 :]
        for place, other in changed(item):
            yield f"{i} {place}", other if other is Refused else (*value[:i], other, *value[i + 1 :])


def changed_dataclass(value: Any, skip: set[str]) -> Iterator[tuple[str, Any]]:
    assert is_dataclass(value), f"the walk does not know {type(value)}"
    for item in fields(value):
        if item.name in skip:
            continue
        for place, other in changed(getattr(value, item.name)):
            where = f"{getattr(value, 'name', '')}.{item.name} {place}"
            try:
                yield where, other if other is Refused else replace(value, **{item.name: other})  # type: ignore[type-var]
            except RedlineError:
                yield where, Refused


def noticed(table: FamilyTable, family: str) -> bool:
    """Whether a known answer fails for this table."""
    try:
        if golden.declared(table) != golden.facts(family):
            return True
        values = golden.declared_values(table)
        if values != {name: golden.named_values(name) for name in values}:
            return True
        if golden.emitted(table, family) != golden.answers(family):
            return True
        decode(golden.answers(family)["stream"], table)
    except (RedlineError, KeyError):
        return True
    return False


@pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)
def test_every_changed_constant_is_noticed(table: FamilyTable) -> None:
    """The unchanged table passes, and hundreds of changed ones do not."""
    assert not noticed(table, table.name)
    count, missed = 0, []
    for place, other in changed_dataclass(table, PROSE):
        count += 1
        if other is not Refused and not noticed(other, table.name):
            missed.append(place)
    assert missed == []
    assert count > 1000
