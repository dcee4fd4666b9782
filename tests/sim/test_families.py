# SPDX-License-Identifier: Apache-2.0
"""The software device's tables against the answer files: offsets, owners and reserved bits of every register.

The files were typed from the kernel's headers by other hands, and `redline/encoders` is held to them too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from redline.sim.families import TARGETS

ANSWERS = Path(__file__).parent.parent / "answers" / "pm4"
FIELDS: dict[str, Any] = json.loads((ANSWERS / "fields.json").read_text())
REGISTERS: dict[str, Any] = json.loads((ANSWERS / "registers.json").read_text())

# Bits that a register has and this device refuses: INTERLEAVE_BITS would change which work-items a workgroup has.
REFUSED = {("gfx12.0", "COMPUTE_NUM_THREAD_X"): 0xE000, ("gfx12.0", "COMPUTE_NUM_THREAD_Y"): 0xE000}


def mask_of(text: str) -> int:
    """`"NAME 15:0, OTHER 31"` -> the bits that are named."""
    mask = 0
    for field in text.split(", "):
        high, _, low = field.rsplit(" ", 1)[1].partition(":")
        mask |= (1 << int(high) + 1) - (1 << int(low or high))
    return mask


def families_of(table: dict[str, str], name: str) -> str:
    """The entry of a family in a table whose keys list families."""
    return next(text for families, text in table.items() if name in families.split())


@pytest.mark.parametrize("target", TARGETS)
def test_reserved_bits_are_those_of_the_headers(target: str) -> None:
    """Every register that a dispatch writes, and the initiator: no bit more than the headers name, and none less."""
    family = TARGETS[target].family
    masks = {register.name: register.mask for register in family.settable.values()}
    words = FIELDS["words"]
    for name, table in words.items():
        if name in masks:
            named = mask_of(families_of(table, family.name))
            assert masks[name] == named & ~REFUSED.get((family.name, name), 0), f"{name}: {masks[name]:#x}, {named:#x}"
    assert {name for name in words if name in masks} >= {f"COMPUTE_PGM_RSRC{i}" for i in (1, 2, 3)}


@pytest.mark.parametrize("target", TARGETS)
def test_registers_stand_where_the_headers_put_them(target: str) -> None:
    """Each offset is settable or the queue's, under the header's name; what a launch must not write is the queue's."""
    family = TARGETS[target].family
    named = {row[family.name]: name for name, row in REGISTERS["registers"].items() if row.get(family.name)}
    ours = {offset: register.name for offset, register in family.settable.items()} | family.owned
    for offset, name in named.items():
        assert ours[int(offset, 16)] == f"COMPUTE_{name}"
    settable = {register.name for register in family.settable.values()}
    assert settable >= {f"COMPUTE_{name}" for name in REGISTERS["launch_writes"] + REGISTERS["launch_may_zero"]}
    assert not settable & {f"COMPUTE_{name}" for name in REGISTERS["launch_must_not_write"]}
    assert not set(family.settable) & set(family.owned)


@pytest.mark.parametrize("target", TARGETS)
def test_cache_bits_are_those_of_the_headers(target: str) -> None:
    """GCR_CNTL by family. Bit 9 of gfx12 is reserved by PAL and set by the kernel and RADV: accepted."""
    family = TARGETS[target].family
    named = mask_of(families_of(FIELDS["words"]["GCR_CNTL"], family.name))
    assert family.gcr_mask == named | (1 << 9 if family.name == "gfx12.0" else 0)
