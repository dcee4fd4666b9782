# SPDX-License-Identifier: Apache-2.0
"""Fields, words, registers and packets: what packs comes back, what does not fit is refused with its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.encoders import FAMILIES
from redline.encoders.table import HEADER, FamilyTable, Field, Layout, Packet, Register, Word, dword, flag
from redline.errors import EncodeError

WORDS = [
    pytest.param(word, id=f"{table.name} {where}.{word.name}")
    for table in FAMILIES
    for where, word in [
        *(("register", word) for word in table.registers),
        *((packet.name, word) for packet in table.packets for word in packet.words),
    ]
]
PACKETS = [pytest.param(packet, id=f"{t.name} {packet.name}") for t in FAMILIES for packet in t.packets]


@pytest.mark.parametrize("word", WORDS)
def test_each_field_alone_sets_its_own_bits_and_comes_back(word: Word) -> None:
    """One field at a time, at its largest value: no neighbour changes."""
    for item in word.fields:
        packed = word.pack(**{item.name: item.limit})
        assert packed == item.mask
        found = word.unpack(packed)
        assert found.pop(item.name) == item.limit
        assert set(found.values()) <= {0}


@pytest.mark.parametrize("word", WORDS)
def test_one_more_than_the_limit_is_refused_with_word_field_value_and_bits(word: Word) -> None:
    """The message has the four parts that a reader needs."""
    for item in word.fields:
        with pytest.raises(EncodeError) as caught:
            word.pack(**{item.name: item.limit + 1})
        assert caught.value.code == "RL0501"
        assert caught.value.where == f"{word.name}.{item.name}"
        assert caught.value.seen == f"{item.limit + 1:#x}"
        assert item.bits in caught.value.allowed
        with pytest.raises(EncodeError):
            word.pack(**{item.name: -1})


@pytest.mark.parametrize("word", WORDS)
def test_each_reserved_bit_is_refused(word: Word) -> None:
    """Bit by bit; and every bit is either a field's or reserved."""
    assert word.reserved | sum(item.mask for item in word.fields) == 0xFFFFFFFF
    for bit in range(32):
        if word.reserved >> bit & 1:
            with pytest.raises(EncodeError, match=f"{1 << bit:#x}"):
                word.unpack(1 << bit)
        else:
            word.unpack(1 << bit)


@pytest.mark.parametrize("packet", PACKETS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_packet_unpacks_packs_and_counts_itself(packet: Packet, data: st.DataObject) -> None:
    """Random words without reserved bits become fields, and the fields become the same words under a right header."""
    size, tail_size = len(packet.words), data.draw(st.integers(1, 20)) if packet.tail else 0
    drawn = data.draw(st.lists(st.integers(0, 0xFFFFFFFF), min_size=size + tail_size, max_size=size + tail_size))
    body = [value & ~word.reserved for word, value in zip(packet.words, drawn, strict=False)]
    words = packet.pack(drawn[size:], **packet.fields(body))
    assert HEADER.unpack(words[0]) == {
        "TYPE": 3,
        "COUNT": size + tail_size - 1,
        "OPCODE": packet.opcode,
        "SHADER_TYPE": packet.shader_type,
    }
    assert words[1:] == [*body, *drawn[size:]]


def test_a_named_value_packs_like_its_number_and_an_unknown_name_is_refused() -> None:
    """Names are the manual's; the message lists them."""
    word = Word("W", (Field("SEL", 5, 4, {"MEMORY": 1, "L2": 2}),))
    assert word.pack(SEL="L2") == word.pack(SEL=2) == 0x20
    assert word.by_name["SEL"].text(2) == "L2"
    assert word.by_name["SEL"].text(3) == "0x3"
    with pytest.raises(EncodeError, match="MEMORY, L2"):
        word.pack(SEL="GRBM")


def test_a_field_the_word_or_packet_does_not_have_is_refused() -> None:
    """A typing slip never becomes a zero."""
    word, packet = Word("W", (flag("A", 0),)), Packet("P", (Word("W", (flag("A", 0),)),), 0x10)
    for pack in (word.pack, packet.pack):
        with pytest.raises(EncodeError) as caught:
            pack(B=1)
        assert (caught.value.code, caught.value.allowed) == ("RL0502", "A")


def test_true_is_not_a_field_value() -> None:
    """A bool in place of a number is more often a mistake than a 1."""
    with pytest.raises(EncodeError):
        Word("W", (flag("A", 0),)).pack(A=True)


def test_a_tail_is_asked_for_where_the_packet_has_one_and_refused_elsewhere() -> None:
    """SET_SH_REG without values would set a register that nobody named."""
    with pytest.raises(EncodeError, match="at least one dword of VALUE"):
        FAMILIES[0].packet["SET_SH_REG"].pack(REG_OFFSET=0x207)
    with pytest.raises(EncodeError, match="none"):
        FAMILIES[0].packet["EVENT_WRITE"].pack([1])


def test_a_packet_longer_than_its_count_field_is_refused() -> None:
    """The count has 14 bits, and all ones is the count of a pad, which has no body."""
    nop = FAMILIES[0].packet["NOP"]
    assert len(nop.pack([0] * 0x3FFF)) == 0x4000
    with pytest.raises(EncodeError, match="16385 dwords.*16384"):
        nop.pack([0] * 0x4000)


CONTRADICTIONS: dict[str, Any] = {
    "bits outside the word": lambda: Field("A", 32, 0),
    "high below low": lambda: Field("A", 3, 4),
    "a negative bit": lambda: flag("A", -1),
    "a named value that does not fit": lambda: Field("A", 1, 0, {"X": 4}),
    "two names for one value": lambda: Field("A", 1, 0, {"X": 1, "Y": 1}),
    "overlapping fields": lambda: Word("W", (Field("A", 3, 0), Field("B", 7, 3))),
    "a field twice": lambda: Word("W", (flag("A", 0), flag("A", 1))),
    "a field in two words": lambda: Layout("L", (dword("A"), dword("A"))),
    "an opcode too large": lambda: Packet("P", (), 0x100),
    "a shader type that is no bit": lambda: Packet("P", (), 0x10, shader_type=2),
    "a register outside the space": lambda: Register("R", (), 0x400),
    "a packet twice": lambda: with_twice("packets"),
    "an opcode twice": lambda: with_opcode_twice(),
    "a register twice": lambda: with_twice("registers"),
    "two registers at one offset": lambda: with_offset_twice(),
    "a register written and owned by the queue": lambda: replace(FAMILIES[0], queue_owned={"X": 0x207}),
}


def with_twice(what: str) -> FamilyTable:
    table = FAMILIES[0]
    if what == "packets":
        return replace(table, packets=(*table.packets, table.packets[0]))
    return replace(table, registers=(*table.registers, table.registers[0]))


def with_opcode_twice() -> FamilyTable:
    first, *rest = FAMILIES[0].packets
    return replace(FAMILIES[0], packets=(replace(first, opcode=rest[0].opcode), *rest))


def with_offset_twice() -> FamilyTable:
    first, *rest = FAMILIES[0].registers
    return replace(FAMILIES[0], registers=(replace(first, offset=rest[0].offset), *rest))


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_a_table_that_contradicts_itself_is_refused_when_it_is_declared(contradiction: str) -> None:
    """The tables check themselves at import."""
    with pytest.raises(EncodeError) as caught:
        CONTRADICTIONS[contradiction]()
    assert caught.value.code == "RL0510"


@pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)
def test_an_acquire_of_no_cache_is_refused(table: FamilyTable) -> None:
    """It would be a packet that costs time and does nothing."""
    with pytest.raises(EncodeError, match="K, V or both"):
        table.acquire_gcr(k=False, v=False)
