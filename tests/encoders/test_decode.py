# SPDX-License-Identifier: Apache-2.0
"""The decoder explains every word that we emit and every word read elsewhere, and accepts nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.encoders import FAMILIES, family_for
from redline.encoders.decode import Command, decode, read, text
from redline.encoders.table import FamilyTable
from redline.errors import EncodeError
from tests.encoders import golden

every_family = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)


def first_problem(words: list[int], table: FamilyTable) -> Command:
    return next(command for command in read(words, table) if command.problem)


def problems(words: list[int], table: FamilyTable) -> list[Command]:
    return [command for command in read(words, table) if command.problem]


@every_family
def test_every_answer_decodes_and_packs_again_to_the_same_words(table: FamilyTable) -> None:
    """Streams, fences, indirect buffers and pads, from the answer files."""
    for name, words in golden.answers(table.name).items():
        if name == "gcr":
            continue
        found = decode(words, table)
        again = [
            word
            for command in found
            for word in (
                [table.packet["NOP"].pad()]
                if len(command.words) == 1
                else table.packet[command.name].pack(command.tail, **command.fields)
            )
        ]
        assert again == words


@every_family
def test_a_stream_decodes_to_its_packets_in_order(table: FamilyTable) -> None:
    """Names, places and registers."""
    found = decode(golden.answers(table.name)["stream"], table)
    launch = ["SET_SH_REG"] * 6 + ["DISPATCH_DIRECT"]
    fence = ["EVENT_WRITE", "ACQUIRE_MEM"]
    assert [command.name for command in found] == ["ACQUIRE_MEM", *launch, *fence, *launch, *fence]
    assert [command.dword for command in found[:3]] == [0, 8, 13]
    assert found[1].registers == {0x207: 256, 0x208: 1, 0x209: 1}
    assert found[7].registers == {}
    assert found[7].fields["DIM_X"] == 4


@every_family
@pytest.mark.parametrize(
    "row", golden.load("seen")["packets"], ids=lambda row: f"{row['packet']} {row['families'][:7]}"
)
def test_packets_of_other_stacks_decode_to_their_meaning(table: FamilyTable, row: dict[str, Any]) -> None:
    """Read in drivers' sources; only the fields that are not 0 are listed."""
    words = golden.hexes(row["words"])
    if table.name not in row["families"].split():
        return
    [command] = decode(words, table)
    assert command.name == row["packet"]
    assert {name: value for name, value in command.fields.items() if value} == row["fields"]


@every_family
def test_flipping_any_reserved_bit_is_a_problem_at_that_dword(table: FamilyTable) -> None:
    """Every reserved bit of every dword of a whole stream, headers and register values included."""
    words = golden.answers(table.name)["stream"]
    count = 0
    for command in decode(words, table):
        for at, reserved in enumerate(reserved_bits(table, command), command.dword):
            for bit in range(32):
                if reserved >> bit & 1:
                    count += 1
                    other = [*words[:at], words[at] ^ 1 << bit, *words[at + 1 :]]
                    found = first_problem(other, table)
                    assert found.dword == command.dword
                    assert found.problems[0].dword == at, f"dword {at}, bit {bit}"
    assert count > 500


def reserved_bits(table: FamilyTable, command: Command) -> list[int]:
    packet = table.packet[command.name]
    registers = [table.register_at[offset].reserved for offset in command.registers]
    return [0xFD, *(word.reserved for word in packet.words), *registers]


@every_family
def test_changing_any_header_bit_is_a_problem(table: FamilyTable) -> None:
    """Type, count, opcode, shader type and the bits between."""
    words = golden.answers(table.name)["stream"]
    for command in decode(words, table):
        for bit in range(32):
            other = list(words)
            other[command.dword] ^= 1 << bit
            assert first_problem(other, table).problem, f"dword {command.dword}, bit {bit}"


@every_family
def test_dropping_any_dword_is_a_problem(table: FamilyTable) -> None:
    """Every packet behind it then starts in the wrong place."""
    words = golden.answers(table.name)["stream"]
    for at in range(len(words)):
        assert problems([*words[:at], *words[at + 1 :]], table), f"without dword {at}"


@every_family
def test_adding_a_zero_dword_anywhere_is_a_problem(table: FamilyTable) -> None:
    """Zero is no header."""
    words = golden.answers(table.name)["stream"]
    for at in range(len(words) + 1):
        assert problems([*words[:at], 0, *words[at:]], table), f"before dword {at}"


@every_family
def test_registers_of_the_queue_and_unknown_registers_are_problems_by_name(table: FamilyTable) -> None:
    """Cases 7 and 8b: CU masks, relaunch and restore state."""
    for offset, name in table.queue_owned_at.items():
        [found] = problems([0xC0017600, offset, 0], table)
        assert name in found.problem
    [found] = problems([0xC0017600, 0x218, 0], table)
    assert "0x218" in found.problem
    assert problems([0xC0027600, 0x215, 0, 0], table), "a known register and its unknown neighbour"


def test_decode_raises_at_the_first_problem_with_its_dword() -> None:
    """`read` goes on, `decode` does not."""
    words = [0xC0004600, 0x407, 0xC0017600, 0x223, 0, 0xC0004600, 0x407]
    with pytest.raises(EncodeError, match="dword 4.*COMPUTE_STATIC_THREAD_MGMT_SE8") as caught:
        decode(words, "gfx1201")
    assert caught.value.code == "RL0508"
    assert [bool(command.problem) for command in read(words, "gfx1201")] == [False, True, False]


def test_removed_cache_bits_are_reserved_on_gfx12_only() -> None:
    """0xC3B1 is right before gfx12 and sets three bits that gfx12 does not have."""
    words = golden.hexes(golden.load("launches")["entry"] + " C3B1")
    decode(words, "gfx1100")
    with pytest.raises(EncodeError, match="0x230"):
        decode(words, "gfx1201")


def test_nops_of_any_size_are_skipped_by_their_count() -> None:
    """A body is not read: it may hold packets that are jumped over."""
    words = [0xFFFF1000, 0xC0021000, 0xC0004600, 0x407, 0xFFFFFFFF, 0xC0004600, 0x407]
    assert [(command.name, len(command.words)) for command in decode(words, "gfx1030")] == [
        ("NOP", 1), ("NOP", 4), ("EVENT_WRITE", 2)
    ]  # fmt: skip


def test_only_a_nop_may_be_a_header_alone() -> None:
    """The pad's count on another opcode is no packet."""
    for opcode in (0x76, 0x58, 0x15, 0x46):
        assert problems([0xFFFF0000 | opcode << 8], family_for("gfx1201"))


@every_family
@given(words=st.lists(st.one_of(st.integers(0, 0xFFFFFFFF), st.integers(0xC0000000, 0xC00FFFFF)), max_size=30))
def test_any_words_are_read_to_the_end_without_an_exception(table: FamilyTable, words: list[int]) -> None:
    """Hostile input: every dword belongs to exactly one command, and text exists for it."""
    commands = list(read(words, table))
    assert [word for command in commands for word in command.words] == words
    lines = [line for command in commands for line in text(command, table)]
    assert len(lines) == len(words) + sum(len(command.problems) for command in commands)


def test_a_value_that_is_no_dword_is_a_problem() -> None:
    """Negative and too large numbers are not wrapped."""
    for word in (-1, 1 << 32, 0xC0004600 | 1 << 40):
        assert problems([word], family_for("gfx1201"))
    assert problems([0xC0004600, 1 << 32], family_for("gfx1201"))
    assert problems([0xC0017600, 0x240, 1 << 32], family_for("gfx1201"))
    assert problems([0xC0001000, -1], family_for("gfx1201"))


def test_text_explains_each_dword() -> None:
    """A launch and a fence as a reader sees them."""
    words = golden.answers("gfx12.0")["1000 work-items, wave32"] + golden.answers("gfx12.0")["vmem-only barrier"]
    lines = [line for command in decode(words, "gfx1201") for line in text(command, "gfx1201")]
    assert lines == golden.load("decoded")["lines"]


@pytest.mark.parametrize("dwords", [3, 16384])
def test_nops_inside_nops_are_explained_one_level_deep(dwords: int) -> None:
    """Found by fuzzing: each NOP holds the next one, and opening all of them has no bound."""
    words = [0xC0001000 | dwords - 2 - i << 16 for i in range(dwords - 1)] + [0xFFFF1000]
    lines = text(decode(words, "gfx1201")[0], "gfx1201")
    assert lines[1] == f"     1  {words[1]:08X}    skipped: NOP, {dwords - 1} dwords"
    assert len(lines) == dwords
    assert not any("skipped: skipped" in line for line in lines)
