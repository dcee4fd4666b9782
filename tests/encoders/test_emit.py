# SPDX-License-Identifier: Apache-2.0
"""Compiled emission equals its plain twin, and relocations and patches put exactly their bytes in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from redline.encoders import FAMILIES, emit
from redline.encoders.dispatch import operation
from redline.encoders.table import FamilyTable
from tests.encoders import oracle

pytestmark = pytest.mark.nopython

WORD = st.integers(0, 0xFFFFFFFF)
# Small pools, so that neighbouring launches often agree.
POOL = st.sampled_from([0, 1, 256, 0xE0AF0000, 0xFFFFFFFF])
RELOC_INDEX = st.sampled_from([-1, -1, 0, 1, 2, 0x7FFFFFFF])
every_family = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)


@st.composite
def launches(draw: st.DrawFn) -> np.void:
    count = draw(st.integers(0, 16))
    kernarg_at = draw(st.sampled_from([emit.NO_KERNARG, *range(count - 1)])) if count > 1 else emit.NO_KERNARG
    return operation(
        draw(st.sampled_from([emit.DISPATCH, emit.DISPATCH, emit.SETUP])),
        threads=draw(st.tuples(POOL, POOL, POOL)),
        dims=draw(st.tuples(WORD, WORD, WORD)),
        initiator=draw(st.sampled_from([0x8045, 0x0045, 0x8025, 0x0025])),
        rsrc1=draw(POOL),
        rsrc2=draw(POOL),
        rsrc3=draw(POOL),
        user_count=count,
        kernarg_at=kernarg_at,
        entry=draw(st.sampled_from([0x7F0012345600, 0x7F0012349A00, 0x123456789A00, 0xFFFFFFFFFF00])),
        kernarg=draw(st.sampled_from([0x7F00ABCD0040, 0x7F00ABCD0140, 0x7F01ABCD0040, 0xFFFFFFFFFFF0])),
        entry_reloc=draw(RELOC_INDEX),
        kernarg_reloc=draw(RELOC_INDEX),
    )


FENCES = st.one_of(
    st.builds(lambda gcr: operation(emit.ACQUIRE, gcr=gcr), WORD),
    st.builds(lambda: operation(emit.DRAIN)),
    st.builds(lambda count: operation(emit.WORDS, value=count), st.integers(0, 20)),
    st.builds(
        lambda code, value, fence, index: operation(code, value=value, fence=fence, fence_reloc=index),
        st.sampled_from([emit.FENCE_ZERO, emit.FENCE_DRAIN]),
        WORD,
        st.integers(0, (1 << 48) - 1),
        RELOC_INDEX,
    ),
)
PROGRAMS = st.lists(st.one_of(launches(), launches(), FENCES), max_size=12)


def emitted(table: FamilyTable, ops: NDArray[np.void], *, elide: bool) -> tuple[list[int], list[tuple[int, ...]]]:
    """Words and relocations, and proof that nothing was written behind them."""
    words = np.full(emit.max_dwords(ops) + 8, oracle.ROOM, np.uint32)
    relocs = np.full(emit.max_relocs(ops) + 2, -1, np.int32).astype(emit.RELOC)
    tail = relocs.copy()
    n_words, n_relocs = (int(n) for n in emit.emit_program(ops, words, relocs, table.family(), elide))
    assert n_words <= emit.max_dwords(ops)
    assert n_relocs <= emit.max_relocs(ops)
    assert (words[n_words:] == oracle.ROOM).all()
    assert (relocs[n_relocs:] == tail[n_relocs:]).all()
    return [int(word) for word in words[:n_words]], [tuple(int(x) for x in row) for row in relocs[:n_relocs].tolist()]


@every_family
@pytest.mark.parametrize("elide", [False, True])
@given(rows=PROGRAMS)
def test_random_programs_equal_the_plain_twin(table: FamilyTable, elide: bool, rows: list[np.void]) -> None:
    """Any mix of launches, fences, real and relocated addresses, with and without elision."""
    ops = np.array(rows, emit.OPERATION)
    words, relocs = oracle.program(table, list(ops), elide=elide)
    assert emitted(table, ops, elide=elide) == (words, relocs)


@every_family
@given(rows=st.lists(launches(), max_size=10))
def test_an_elided_stream_leaves_every_launch_with_the_same_registers(table: FamilyTable, rows: list[np.void]) -> None:
    """Played through a register file, both streams launch with the same registers: elision is invisible."""
    for row in rows:
        row["code"], row["entry_reloc"], row["kernarg_reloc"] = emit.DISPATCH, -1, -1
    ops = np.array(rows, emit.OPERATION)
    seen = [played(emitted(table, ops, elide=elide)[0], table, ops) for elide in (False, True)]
    assert seen[0] == seen[1]


def played(words: list[int], table: FamilyTable, ops: NDArray[np.void]) -> list[tuple[dict[int, int], list[int]]]:
    """The registers that each launch asked for, as they stand at its packet, and the packet."""
    file: dict[int, int] = {}
    launched: list[tuple[dict[int, int], list[int]]] = []
    at = 0
    while at < len(words):
        size = (words[at] >> 16 & 0x3FFF) + 2
        if words[at] >> 8 & 0xFF == 0x76:
            file |= {words[at + 1] + i: value for i, value in enumerate(words[at + 2 : at + size])}
        else:
            users = {0x240 + i for i in range(int(ops[len(launched)]["user_count"]))}
            wanted = {offset: value for offset, value in file.items() if offset < 0x240 or offset in users}
            launched.append((wanted, words[at : at + size]))
        at += size
    return launched


def test_elision_writes_no_register_twice_with_the_same_value() -> None:
    """What is already there is left out, register by register."""
    table = FAMILIES[0]
    first = operation(emit.DISPATCH, threads=(256, 1, 1), user_count=6, kernarg_at=4, entry=0x7F0012345600)
    second = first.copy()
    second["threads"] = (256, 1, 2)
    both = emitted(table, np.array([first, second], emit.OPERATION), elide=True)[0]
    alone = emitted(table, np.array([first], emit.OPERATION), elide=True)[0]
    assert both[len(alone) :] == [0xC0017600, 0x209, 2, 0xC0031502, 0, 0, 0, 0]


def test_a_relocated_register_is_never_equal_to_a_value_or_to_another_source() -> None:
    """Kernel 0's entry is not kernel 1's, and address 0 is not a relocation that was written as 0."""
    table = FAMILIES[4]
    rows = [operation(emit.DISPATCH, user_count=2, kernarg_at=0, entry_reloc=e, kernarg_reloc=k) for e, k in
            ((0, 5), (1, 6), (1, 6), (-1, -1))]  # fmt: skip
    relocs = emitted(table, np.array(rows, emit.OPERATION), elide=True)[1]
    assert [reloc[1:4] for reloc in relocs] == [
        (emit.KERNEL_ENTRY, 0, 0), (emit.KERNEL_ENTRY, 1, 0), (emit.KERNARG, 0, 5), (emit.KERNARG, 1, 5),
        (emit.KERNEL_ENTRY, 0, 1), (emit.KERNEL_ENTRY, 1, 1), (emit.KERNARG, 0, 6),
    ]  # fmt: skip
    words = emitted(table, np.array(rows, emit.OPERATION), elide=True)[0]
    assert words[-13:-5] == [0xC0027600, 0x20C, 0, 0, 0xC0027600, 0x240, 0, 0]


def test_nothing_is_assumed_at_the_start_of_a_call() -> None:
    """Two calls give the same words: the shadow lives inside one call."""
    ops = np.array([operation(emit.DISPATCH, user_count=2, kernarg_at=0)], emit.OPERATION)
    first, second = (emitted(FAMILIES[2], ops, elide=True) for _ in range(2))
    assert first == second


@given(rows=PROGRAMS)
def test_the_bound_is_exact_without_elision_but_for_three_dwords_a_launch(rows: list[np.void]) -> None:
    """Memory is reserved by this bound."""
    ops = np.array(rows, emit.OPERATION)
    words, _ = emitted(FAMILIES[3], ops, elide=False)
    slack = sum(3 + int(row["user_count"]) for row in rows if row["code"] in (emit.DISPATCH, emit.SETUP))
    assert len(words) <= emit.max_dwords(ops) <= len(words) + slack


def test_an_unknown_operation_code_is_refused_before_memory_is_sized() -> None:
    """The compiled side trusts codes, so the size does not."""
    ops = np.array([operation(9)], emit.OPERATION)
    with pytest.raises(IndexError):
        emit.max_dwords(ops)
    with pytest.raises(IndexError):
        emit.max_relocs(ops)


ADDRESSES = st.lists(st.integers(0x1000, (1 << 47) - 1), min_size=1, max_size=4)


@st.composite
def relocations(draw: st.DrawFn) -> tuple[list[list[int]], list[tuple[int, ...]]]:
    """Four tables of addresses, and relocations that point into them, one for each dword."""
    tables = [draw(ADDRESSES) for _ in range(4)]
    rows: list[tuple[int, ...]] = []
    for dword in draw(st.lists(st.integers(0, 19), unique=True, max_size=12)):
        kind = draw(st.integers(0, 3))
        index = draw(st.integers(0, len(tables[kind]) - 1))
        rows.append((dword, kind, draw(st.integers(0, 1)), index, draw(st.integers(-0x1000, 1 << 40))))
    return tables, rows


@given(drawn=relocations())
def test_relocations_put_their_half_of_the_address_in_place(
    drawn: tuple[list[list[int]], list[tuple[int, ...]]],
) -> None:
    """Kernel entries in units of 256 bytes, all others in bytes; every other dword keeps what it had."""
    tables, rows = drawn
    words = np.arange(20, dtype=np.uint32)
    expected = words.tolist()
    for dword, kind, half, index, addend in rows:
        address = tables[kind][index] + addend
        expected[dword] = (address >> (8 if kind == emit.KERNEL_ENTRY else 0)) >> 32 * half & 0xFFFFFFFF
    arrays = [np.array(table, np.uint64) for table in tables]
    emit.apply_relocs(words, np.array(rows, emit.RELOC), *arrays)
    assert words.tolist() == expected


@every_family
def test_a_relocated_program_becomes_the_program_with_real_addresses(table: FamilyTable) -> None:
    """Relocations applied afterwards and addresses known before give one stream."""
    entries, slots, owned = [0x7F0012345600, 0xFEDCBA987600], [0x7F00ABCD0040, 0x7F00ABCD0140], [0x7F00DEAD0008]
    common: dict[str, Any] = {
        "threads": (64, 1, 1),
        "dims": (4, 1, 1),
        "initiator": 0x8045,
        "user_count": 6,
        "kernarg_at": 4,
    }
    real = [operation(emit.FENCE_ZERO, fence=owned[0])]
    moved = [operation(emit.FENCE_ZERO, fence_reloc=0)]
    for i in range(2):
        real += [operation(emit.DISPATCH, **common, entry=entries[i], kernarg=slots[i])]
        real += [operation(emit.FENCE_DRAIN, value=i + 1, fence=owned[0])]
        moved += [operation(emit.DISPATCH, **common, entry_reloc=i, kernarg_reloc=i)]
        moved += [operation(emit.FENCE_DRAIN, value=i + 1, fence_reloc=0)]
    words, rows = emitted(table, np.array(moved, emit.OPERATION), elide=False)
    expected, none = emitted(table, np.array(real, emit.OPERATION), elide=False)
    assert none == []
    patched = np.array(words, np.uint32)
    tables = [np.array(table, np.uint64) for table in (entries, slots, [], owned)]
    emit.apply_relocs(patched, np.array(rows, emit.RELOC), *tables)
    assert patched.tolist() == expected


@given(
    buffers=ADDRESSES,
    places=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3), st.integers(-0x1000, 1 << 40)), max_size=6),
)
def test_kernarg_relocations_store_whole_addresses_little_endian(
    buffers: list[int], places: list[tuple[int, int, int]]
) -> None:
    """At any byte offset; later rows win; the bytes around keep what they had."""
    image = np.arange(80, dtype=np.uint8)
    expected = bytearray(image.tobytes())
    rows = [(slot * 9, buffer % len(buffers), addend) for slot, buffer, addend in places]
    for offset, buffer, addend in rows:
        expected[offset : offset + 8] = (buffers[buffer] + addend).to_bytes(8, "little")
    emit.apply_kernarg_relocs(image, np.array(rows, emit.KERNARG_RELOC), np.array(buffers, np.uint64))
    assert image.tobytes() == bytes(expected)


@given(values=st.binary(min_size=16, max_size=16), rows=st.lists(st.tuples(*[st.integers(0, 8)] * 3), max_size=6))
def test_patches_copy_exactly_their_bytes(values: bytes, rows: list[tuple[int, int, int]]) -> None:
    """Zero bytes included; the bytes around keep what they had."""
    image = np.full(16, 0xA5, np.uint8)
    expected = bytearray(image.tobytes())
    for offset, source, size in rows:
        expected[offset : offset + size] = values[source : source + size]
    emit.apply_patches(image, np.array(rows, np.uint64).reshape(-1, 3), np.frombuffer(values, np.uint8))
    assert image.tobytes() == bytes(expected)


@settings(max_examples=20)
@given(rows=PROGRAMS)
def test_arrays_may_be_views_at_any_offset(rows: list[np.void]) -> None:
    """An indirect buffer is a window of a larger allocation."""
    ops = np.array(rows, emit.OPERATION)
    expected = emitted(FAMILIES[1], ops, elide=True)
    room: NDArray[Any] = np.full(emit.max_dwords(ops) + 3, oracle.ROOM, np.uint32)
    relocs = np.zeros(emit.max_relocs(ops), emit.RELOC)
    n_words, _ = emit.emit_program(ops, room[3:], relocs, FAMILIES[1].family(), True)
    assert room[3 : 3 + int(n_words)].tolist() == expected[0]
    assert room[:3].tolist() == [oracle.ROOM] * 3
