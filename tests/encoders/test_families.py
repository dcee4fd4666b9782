# SPDX-License-Identifier: Apache-2.0
"""Family tables say what the public headers say, and only listed targets have a table."""

from __future__ import annotations

import pytest

from redline.encoders import FAMILIES, TARGETS, family_for
from redline.encoders.table import FamilyTable
from redline.errors import UnsupportedTarget
from tests.encoders import golden

every_family = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)


@every_family
def test_bits_offsets_and_opcodes_equal_the_headers(table: FamilyTable) -> None:
    """Both ways: nothing differs, nothing is missing, nothing is extra. Case 7: from an independent table."""
    assert golden.declared(table) == golden.facts(table.name)


@every_family
def test_named_values_equal_the_headers(table: FamilyTable) -> None:
    """Values that have a name in the manuals."""
    values = golden.declared_values(table)
    assert values == {name: golden.named_values(name) for name in values}


@every_family
def test_a_launch_writes_no_register_of_the_queue(table: FamilyTable) -> None:
    """Cases 7 and 8b: CU masks, relaunch and restore state are never written, on any family."""
    assert not set(table.register_at) & set(table.queue_owned_at)
    must_not = {int(word, 16) for word in ("216", "217", "219", "21a")}
    assert must_not <= set(table.queue_owned_at)


def test_the_register_that_a_known_defect_took_for_rsrc3_is_a_cu_mask_on_gfx12() -> None:
    """The reference wrote 0x216, 0x223 and 0x230 on gfx12; they are CU masks and relaunch state."""
    table = family_for("gfx1201")
    assert [table.queue_owned_at[offset] for offset in (0x216, 0x223, 0x230)] == [
        "COMPUTE_STATIC_THREAD_MGMT_SE0",
        "COMPUTE_STATIC_THREAD_MGMT_SE8",
        "COMPUTE_RELAUNCH",
    ]
    assert table.register["COMPUTE_PGM_RSRC3"].offset == 0x228


def test_every_listed_target_has_the_family_that_lists_it() -> None:
    """The list is explicit, and each name is on it once."""
    assert {name: family_for(name).name for name in TARGETS} == {
        name: family for family, row in golden.load("fields")["families"].items() for name in row["targets"]
    }
    assert len(set(TARGETS)) == len(TARGETS) == 21


@pytest.mark.parametrize(
    "name", ["gfx1250", "gfx1251", "gfx12-generic", "gfx1299", "gfx1104", "gfx906", "gfx12", "GFX1201", "", "gfx1201 "]
)
def test_a_name_off_the_list_is_refused_and_never_guessed(name: str) -> None:
    """Case 8a."""
    with pytest.raises(UnsupportedTarget, match="gfx1201") as caught:
        family_for(name)
    assert caught.value.code == "RL0301"


@pytest.mark.parametrize("row", golden.load("seen")["gcr"], ids=lambda row: f"{row['word']} {row['families'][:7]}")
def test_cache_words_of_other_stacks_unpack_to_their_meaning(row: dict[str, object]) -> None:
    """Words read in drivers' sources; on gfx12 those that set removed bits are refused with the bits named."""
    word = int(str(row["word"]), 16)
    for family in str(row["families"]).split():
        table = next(table for table in FAMILIES if table.name == family)
        if "reserved" in row:
            assert word & table.gcr.reserved == int(str(row["reserved"]), 16)
        else:
            found = table.gcr.unpack(word)
            assert {name: value for name, value in found.items() if value} == row["fields"]


@every_family
@pytest.mark.parametrize("row", golden.load("seen")["initiator"], ids=lambda row: row["word"])
def test_dispatch_initiators_of_other_stacks_unpack_to_their_meaning(
    table: FamilyTable, row: dict[str, object]
) -> None:
    """Bit 3 is ORDERED_APPEND_ENBL and bit 6 ORDER_MODE, which one stack mixed up."""
    found = table.initiator.unpack(int(str(row["word"]), 16))
    assert {name: value for name, value in found.items() if value} == row["fields"]
