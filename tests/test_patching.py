# SPDX-License-Identifier: Apache-2.0
"""Patches as bytes of kernarg memory, against one `encode` and one copy for each value.

When a patch may happen is `test_replay.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redline as rl
from redline.kernarg import TYPES, encode, slot_bytes
from redline.patching import Patches
from redline.program import PATCH_POINT

pytestmark = pytest.mark.nopython

#: Two uses of each type's slot, eight bytes apart; every other slot has a default.
SLOTS = [rl.slot(name, name, default=[None, 0][at % 2]) for at, name in enumerate(TYPES)]
USES = [(at, 16 * at + 8 * use, slot_bytes(slot.type), at) for at, slot in enumerate(SLOTS) for use in (0, 1)]
PROGRAM: Any = SimpleNamespace(slots=tuple(SLOTS), patches=np.array(USES, PATCH_POINT))

EDGES = [2**bits + more for bits in (7, 8, 15, 16, 31, 32, 63, 64) for more in (-1, 0)]
NUMBERS = st.sampled_from([*EDGES, *(-edge for edge in EDGES), 10**400, 65504.0, 65520.0, 1e39]) | st.integers()
VALUES = (
    NUMBERS
    | st.floats()
    | st.sampled_from([True, None, "1", np.int8(-3), np.float32(0.5), np.uint64(2**64 - 1), np.zeros(2), np.ones(1)])
)


def slowly(image: bytearray, values: dict[str, Any]) -> None:
    """Encode each value, then copy each use."""
    encoded = {name: encode(name, value, f"slot {name!r}") for name, value in values.items()}
    for number, offset, size, _ in USES:
        if SLOTS[number].name in encoded:
            image[offset : offset + size] = encoded[SLOTS[number].name]


def refusal(call: Callable[[], None]) -> str:
    """Call it; what the refusal said, "" for none."""
    try:
        call()
    except rl.RedlineError as error:
        return f"{type(error).__name__} {error}"
    return ""


@given(steps=st.lists(st.dictionaries(st.sampled_from(list(TYPES)), NUMBERS | st.floats() | VALUES), max_size=4))
def test_a_patch_is_one_encode_and_one_copy_for_each_value(steps: list[dict[str, Any]]) -> None:
    """The same bytes, the same refusals, nothing changed by a refused one, whatever was patched before."""
    image = np.full(16 * len(SLOTS), 0xA5, np.uint8)
    expected, patches = bytearray(image.tobytes()), Patches(PROGRAM, image)
    missing = {slot.name for slot in SLOTS if slot.default is None}
    for values in [*steps, *steps]:
        said = refusal(lambda values=values: slowly(expected, values))  # type: ignore[misc]
        assert refusal(lambda values=values: patches.apply(patches.stage(values))) == said  # type: ignore[misc]
        missing -= set() if said else set(values)
        assert image.tobytes() == bytes(expected)
        assert patches.missing == missing


@pytest.mark.parametrize("name", list(TYPES))
@given(value=VALUES)
def test_one_value_of_each_type(name: str, value: Any) -> None:
    """The edges of its range, infinities and NaNs, bool, and what is no number."""
    image = np.zeros(16 * len(SLOTS), np.uint8)
    expected, patches = bytearray(image.tobytes()), Patches(PROGRAM, image)
    said = refusal(lambda: slowly(expected, {name: value}))
    assert refusal(lambda: patches.apply(patches.stage({name: value}))) == said
    assert image.tobytes() == bytes(expected)


def test_a_choice_that_was_staged_is_what_is_applied() -> None:
    """A signal handler may patch other slots in between, or fail to patch the same ones: neither is mixed in."""
    image = np.zeros(16 * len(SLOTS), np.uint8)
    patches = Patches(PROGRAM, image)
    staged = patches.stage({"u1": 7, "u2": 8})
    with pytest.raises(rl.RecordError):
        patches.stage({"u1": 9, "u2": -1})
    patches.apply(patches.stage({"i1": 5}))
    patches.apply(staged)
    names = list(TYPES)
    assert [int(image[16 * names.index(name)]) for name in ("u1", "u2", "i1")] == [7, 8, 5]
