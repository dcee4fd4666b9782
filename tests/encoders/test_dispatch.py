# SPDX-License-Identifier: Apache-2.0
"""A launch that the raw encoder cannot supply, or that no device allows, is refused with both numbers."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.encoders import FAMILIES, DispatchWords, family_for
from redline.encoders.dispatch import PROPERTIES, dispatch_operation
from redline.encoders.emit import NO_KERNARG
from redline.encoders.table import FamilyTable
from redline.errors import EncodeError, RedlineError, UnsupportedKernel
from tests.encoders import golden

every_family = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)

# What is wrong, the error, its code, and a number or name that its message must have.
REFUSED: list[tuple[str, dict[str, Any], type[RedlineError], str, str]] = [
    ("dispatch pointer", {"properties": 0x40A}, UnsupportedKernel, "RL0401", "DISPATCH_PTR"),
    ("queue pointer", {"properties": 0x40C}, UnsupportedKernel, "RL0401", "QUEUE_PTR"),
    ("dispatch id", {"properties": 0x418}, UnsupportedKernel, "RL0401", "DISPATCH_ID"),
    ("flat scratch init", {"properties": 0x428}, UnsupportedKernel, "RL0401", "FLAT_SCRATCH_INIT"),
    ("private segment size", {"properties": 0x448}, UnsupportedKernel, "RL0401", "PRIVATE_SEGMENT_SIZE"),
    ("private bytes", {"private_bytes": 260}, UnsupportedKernel, "RL0402", "260"),
    ("SCRATCH_EN", {"rsrc2": 0x85}, UnsupportedKernel, "RL0402", "SCRATCH_EN 1"),
    ("dynamic stack", {"properties": 0xC08}, UnsupportedKernel, "RL0403", "dynamic stack"),
    ("preload", {"preload": 2}, UnsupportedKernel, "RL0404", "0x2"),
    ("USER_SGPR 17", {"rsrc2": 17 << 1}, UnsupportedKernel, "RL0405", "17"),
    ("USER_SGPR 31", {"rsrc2": 31 << 1}, UnsupportedKernel, "RL0405", "31"),
    ("USER_SGPR 1", {"rsrc2": 1 << 1}, UnsupportedKernel, "RL0405", "USER_SGPR 1"),
    ("USER_SGPR 0", {"rsrc2": 0}, UnsupportedKernel, "RL0405", "USER_SGPR 0"),
    ("no kernarg pointer", {"properties": 0x400}, UnsupportedKernel, "RL0405", "USER_SGPR 2"),
    ("unknown property", {"properties": 0x1408}, EncodeError, "RL0508", "0x1000"),
    ("property 7", {"properties": 0x488}, EncodeError, "RL0508", "0x80"),
    ("LDS", {"group_bytes": 65537}, EncodeError, "RL0506", "65537"),
    ("LDS, dynamic", {"dynamic_group_bytes": 64513}, EncodeError, "RL0506", "1024 static + 64513 dynamic = 65537"),
    ("negative LDS", {"group_bytes": -1}, EncodeError, "RL0506", "-1"),
    ("LDS_SIZE of another size", {"rsrc2": 0x84 | 3 << 15}, EncodeError, "RL0506", "LDS_SIZE 3"),
    ("entry alignment", {"entry": 0x7F0012345680}, EncodeError, "RL0505", "0x7f0012345680"),
    ("entry too high", {"entry": 1 << 48}, EncodeError, "RL0505", "0x1000000000000"),
    ("entry negative", {"entry": -256}, EncodeError, "RL0505", "-0x100"),
    ("kernarg alignment", {"kernarg": 0x7F00ABCD0048}, EncodeError, "RL0505", "0x7f00abcd0048"),
    ("kernarg too high", {"kernarg": 1 << 48}, EncodeError, "RL0505", "0x1000000000000"),
    ("RSRC1 bit 22", {"rsrc1": 0xE04F0000}, EncodeError, "RL0508", "0x400000"),
    ("RSRC1 too large", {"rsrc1": 1 << 32}, EncodeError, "RL0508", "0x100000000"),
    ("RSRC3 bit 12", {"rsrc3": 0x1000}, EncodeError, "RL0508", "0x1000"),
]


def plain(table: FamilyTable) -> DispatchWords:
    """A launch that every family takes: kernarg pointer only."""
    words = golden.kernel(golden.EXAMPLES[table.name])
    return replace(words, properties=0x408, rsrc2=0x84, rsrc3=0, name="saxpy")


def launch(table: FamilyTable, size: Any = (1024,), block: Any = (256,), **changes: Any) -> Any:
    return dispatch_operation(table, replace(plain(table), **changes), size, block)


@every_family
@pytest.mark.parametrize(("what", "change", "kind", "code", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_the_raw_encoder_does_not_supply_is_refused(
    table: FamilyTable, what: str, change: dict[str, Any], kind: type[RedlineError], code: str, text: str
) -> None:
    """Case 55 among them: scratch fails closed, with the kernel's name."""
    launch(table)
    with pytest.raises(kind) as caught:
        launch(table, **change)
    assert caught.value.code == code
    assert text in caught.value.seen
    assert "saxpy" in caught.value.where


def test_the_private_segment_buffer_is_taken_on_gfx10_and_refused_where_kernels_never_ask_for_it() -> None:
    """gfx10 kernels ask for it even without scratch; four zero words come before the kernarg pointer."""
    for table in FAMILIES:
        change = {"properties": 0x409, "rsrc2": 0x8C}
        if table.name.startswith("gfx10"):
            row = launch(table, **change)
            assert (row["user_count"], row["kernarg_at"]) == (6, 4)
        else:
            with pytest.raises(UnsupportedKernel, match="PRIVATE_SEGMENT_BUFFER"):
                launch(table, **change)


def test_user_sgprs_fewer_than_the_private_segment_buffer_and_kernarg_need_are_refused() -> None:
    """Five would cut the kernarg pointer in half."""
    with pytest.raises(UnsupportedKernel, match=r"USER_SGPR 5.*6\.\.16"):
        launch(family_for("gfx1030"), properties=0x409, rsrc2=5 << 1)


def test_padded_user_sgprs_are_taken() -> None:
    """LLVM pads them to 15 on gfx1100 and gfx1102 in wave32, and 16 is the most there is."""
    for count in (15, 16):
        row = launch(family_for("gfx1100"), rsrc2=count << 1)
        assert (row["user_count"], row["kernarg_at"]) == (count, 0)


@every_family
def test_a_kernel_without_arguments_takes_no_user_data(table: FamilyTable) -> None:
    """No KERNARG_SEGMENT_PTR and no user SGPRs agree."""
    row = launch(table, properties=0x400, rsrc2=0x80, kernarg=0)
    assert (row["user_count"], row["kernarg_at"]) == (0, NO_KERNARG)


@every_family
@pytest.mark.parametrize(
    ("group_bytes", "dynamic", "units"),
    [(0, 0, 0), (1, 0, 1), (512, 0, 1), (513, 0, 2), (0, 1024, 2), (500, 13, 2), (65536, 0, 128), (1, 65535, 128)],
)
def test_lds_is_counted_in_512_bytes_rounded_up(table: FamilyTable, group_bytes: int, dynamic: int, units: int) -> None:
    """Static and dynamic together; the descriptor's other bits stay."""
    row = launch(table, group_bytes=group_bytes, dynamic_group_bytes=dynamic)
    assert row["rsrc2"] == 0x84 | units << 15


@every_family
def test_lds_of_65536_bytes_is_the_most_static_and_dynamic_together(table: FamilyTable) -> None:
    """Case 54: 16 KiB + 48 KiB are 128 units; one byte more, or 70,000 that the field could hold, are refused."""
    assert launch(table, group_bytes=16384, dynamic_group_bytes=49152)["rsrc2"] == 0x84 | 128 << 15
    for static, dynamic in ((16384, 49153), (70000, 0), (0, 70000)):
        with pytest.raises(EncodeError, match=f"{static} static.*{dynamic} dynamic.*65536") as caught:
            launch(table, group_bytes=static, dynamic_group_bytes=dynamic)
        assert caught.value.code == "RL0506"


@every_family
def test_a_small_launch_does_not_lower_the_lds_of_a_large_one(table: FamilyTable) -> None:
    """Case 54: sizes belong to a launch, not to a kernel."""
    small, large = (launch(table, dynamic_group_bytes=n)["rsrc2"] >> 15 for n in (0, 60000))
    assert (small, large, launch(table)["rsrc2"] >> 15) == (2, 120, 2)


@every_family
@pytest.mark.parametrize("word", ["rsrc1", "rsrc2", "rsrc3", "properties"])
def test_every_reserved_bit_of_a_descriptor_is_refused_by_number(table: FamilyTable, word: str) -> None:
    """Also bits beyond the word: nothing is masked away."""
    register = PROPERTIES if word == "properties" else table.register[f"COMPUTE_PGM_{word.upper()}"]
    bits = [bit for bit in range(33) if bit == 32 or register.reserved >> bit & 1]
    for bit in bits:
        with pytest.raises(EncodeError, match="saxpy." + word) as caught:
            launch(table, **{word: getattr(plain(table), word) | 1 << bit})
        assert caught.value.code == "RL0508"
        assert f"{1 << bit:#x}" in caught.value.seen if bit < 32 else "0x1" in caught.value.seen


@every_family
def test_an_lds_size_that_is_already_right_is_taken(table: FamilyTable) -> None:
    """A caller may pass the register word as the hardware would hold it."""
    assert launch(table, rsrc2=0x84 | 2 << 15)["rsrc2"] == 0x84 | 2 << 15


SIZES = [
    ((0,), (64,), "RL0503", "(0,)"),
    ((64, 0, 1), (64,), "RL0503", "(64, 0, 1)"),
    ((-1,), (64,), "RL0503", "(-1,)"),
    ((), (64,), "RL0503", "()"),
    ((1, 1, 1, 1), (64,), "RL0503", "(1, 1, 1, 1)"),
    ((64.0,), (64,), "RL0503", "(64.0,)"),
    (None, (64,), "RL0503", "None"),
    ((1 << 32,), (64,), "RL0503", "4294967296"),
    ((65536, 65536), (64,), "RL0503", "4294967296"),
    ((8388608 * 512,), (512,), "RL0503", "4294967296"),
    ((20000 * 128, 2047), (128,), "RL0503", "5240320000"),
    ((1625, 1626, 1626), (1,), "RL0503", "4296298500"),
    ((64,), (0,), "RL0503", "(0,)"),
    ((64,), (1025,), "RL0504", "1025"),
    ((64,), (32, 33), "RL0504", "1056"),
    ((64,), (11, 11, 11), "RL0504", "1331"),
]


@every_family
@pytest.mark.parametrize(("size", "block", "code", "text"), SIZES)
def test_sizes_outside_the_limits_are_refused(table: FamilyTable, size: Any, block: Any, code: str, text: str) -> None:
    """Case 53: grid of at least 1 and at most 2**32 - 1 work-items, workgroup of at most 1,024."""
    with pytest.raises(EncodeError) as caught:
        launch(table, size, block)
    assert caught.value.code == code
    assert text in caught.value.seen


@every_family
def test_the_largest_sizes_are_taken(table: FamilyTable) -> None:
    """At the limits, not one below them. Case 53: 8,388,607 groups of 512."""
    assert launch(table, (8388607 * 512,), (512,))["dims"].tolist() == [8388607, 1, 1]
    assert launch(table, (0xFFFFFFFF,), (1,))["dims"].tolist() == [0xFFFFFFFF, 1, 1]
    assert launch(table, (1024,), (1024,))["threads"].tolist() == [1024, 1, 1]
    assert launch(table, (1, 1, 64), (1, 1, 64))["threads"].tolist() == [1, 1, 64]


@every_family
@given(data=st.data())
def test_the_unit_of_the_dimensions_covers_exactly_the_work_items(table: FamilyTable, data: st.DataObject) -> None:
    """Even division: workgroups. Anything else: work-items, in all three dimensions.

    Case 56: CS_W32_EN, bit 15, for wave32 alone.
    """
    size = data.draw(st.tuples(st.integers(1, 600), st.integers(1, 40), st.integers(1, 20)))
    block = data.draw(st.tuples(st.sampled_from([1, 8, 32]), st.sampled_from([1, 4, 7]), st.sampled_from([1, 2])))
    wave = data.draw(st.sampled_from([32, 64]))
    row = launch(table, size, block, properties=0x408 if wave == 32 else 0x8)
    partial = any(n % m for n, m in zip(size, block, strict=True))
    scale = (1, 1, 1) if partial else block
    assert [n * m for n, m in zip(row["dims"].tolist(), scale, strict=True)] == list(size)
    assert prod(row["threads"].tolist()) == prod(block)
    expected = {(32, False): 0x8045, (64, False): 0x0045, (32, True): 0x8025, (64, True): 0x0025}
    assert row["initiator"] == expected[wave, partial]


def test_wave_size_is_property_bit_10() -> None:
    """And nothing else says it."""
    words = plain(FAMILIES[0])
    assert [replace(words, properties=bits).wave for bits in (0x408, 0x008)] == [32, 64]
    assert [replace(words, properties=bits).takes_kernarg for bits in (0x408, 0x400)] == [True, False]


def test_property_bits_equal_the_descriptor_of_the_abi() -> None:
    """Typed from the ABI's own table."""
    assert golden.bits_of(PROPERTIES) == golden.properties()


@every_family
def test_the_table_offers_the_same_checked_function(table: FamilyTable) -> None:
    """The planner calls it on the table."""
    assert table.dispatch_operation(plain(table), (1024,), (256,)) == launch(table)


def test_sizes_may_be_single_numbers() -> None:
    """One dimension needs no tuple, and numpy's integers count."""
    table = FAMILIES[3]
    assert launch(table, 1000, 256) == launch(table, (1000, 1, 1), (256, 1, 1))
    assert launch(table, np.int64(1000), (np.uint8(64), 4)) == launch(table, (1000,), (64, 4))


@every_family
def test_rows_are_the_callers_own(table: FamilyTable) -> None:
    """Writing into one changes no other, though launches of one shape are checked once."""
    first = launch(table)
    first["rsrc1"] = first["entry_reloc"] = 7
    assert launch(table)["rsrc1"] == plain(table).rsrc1
    assert launch(table)["entry_reloc"] == -1


@every_family
def test_relocated_rows_leave_addresses_zero(table: FamilyTable) -> None:
    """A caller with relocations passes no addresses."""
    row = launch(table, entry=0, kernarg=0)
    assert (row["entry_reloc"], row["kernarg_reloc"], row["fence_reloc"]) == (-1, -1, -1)
