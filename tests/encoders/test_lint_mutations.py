# SPDX-License-Identifier: Apache-2.0
"""What the linter notices when a stream of ours is damaged: bit by bit, count by count, dword by dword."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redline.encoders import FAMILIES, Pm4Stream
from redline.encoders.decode import Command, read
from redline.encoders.lint import lint
from redline.encoders.table import FamilyTable
from tests.encoders import golden

pytestmark = pytest.mark.nopython
every_family = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)
VA = 0x7F00DEAD0008

Words = list[int]
Place = tuple[str, str]  # packet of the stream, and its field

# Single-bit changes that are another right stream, and why. The number of bits is compared as well.
ANY_INTERVAL = "any interval will do: it is how long the packet processor waits between two looks"
NO_METADATA = "GLM holds image metadata, and no buffer: Mesa sets the bit beside GL2 operations by convention"
MORE_REFRESHED = "refreshes more than a release must: costs time, loses nothing"
SCHEDULING = "the order in which workgroups start is nobody's promise: tinygrad leaves ORDER_MODE out"
NEEDS_DRIVER = "RADV sets TUNNEL_ENABLE; it does nothing unless the driver has made a high-priority tunnel"
LETS_OTHERS_RUN = "PAL sets OFFLOAD_ENABLE on compute queues: other queues may run during the wait"

ACCEPTED: dict[Place, tuple[int, str]] = {
    ("entry acquire", "POLL_INTERVAL"): (16, ANY_INTERVAL),
    ("release acquire", "POLL_INTERVAL"): (16, ANY_INTERVAL),
    ("launch", "ORDER_MODE"): (1, SCHEDULING),
    ("launch", "TUNNEL_ENABLE"): (1, NEEDS_DRIVER),
    ("drain", "OFFLOAD_ENABLE"): (1, LETS_OTHERS_RUN),
    ("release acquire", "GLI_INV"): (1, MORE_REFRESHED),
    ("release acquire", "GL2_INV"): (1, MORE_REFRESHED),
}
# With GL1 in front of K and V, refreshing either alone would read old lines: noticed. GL1 alone is not.
BEFORE_GFX12: dict[Place, tuple[int, str]] = {
    ("entry acquire", "GLM_WB"): (1, NO_METADATA),
    ("release acquire", "GLM_WB"): (1, NO_METADATA),
    ("release acquire", "GL1_INV"): (1, MORE_REFRESHED),
}
GFX12: dict[Place, tuple[int, str]] = {
    ("release acquire", "GLK_INV"): (1, MORE_REFRESHED),
    ("release acquire", "GLV_INV"): (1, MORE_REFRESHED),
}


def accepted(table: FamilyTable) -> dict[Place, tuple[int, str]]:
    return ACCEPTED | (GFX12 if table.name == "gfx12.0" else BEFORE_GFX12)


def one_launch(table: FamilyTable) -> Words:
    s = Pm4Stream(table)
    s.acquire_system()
    s.dispatch(golden.kernel(golden.EXAMPLES[table.name]), global_size=1024, block=256)
    s.release_system()
    return [int(word) for word in s.words]


@every_family
def test_single_bits_of_a_launch_are_noticed_but_for_the_accepted_variants(table: FamilyTable) -> None:
    """Every bit of every dword, with descriptor, entry, kernarg address and launch size given: at least 95 %."""
    words = one_launch(table)
    places = dict(field_of_bit(table, words))
    kernel = golden.kernel(golden.EXAMPLES[table.name])
    assert lint(words, table, kernel, global_size=1024, block=256) == []
    missed: Counter[Place] = Counter()
    for at in range(len(words)):
        for bit in range(32):
            other = [*words[:at], words[at] ^ 1 << bit, *words[at + 1 :]]
            if not lint(other, table, kernel, global_size=1024, block=256):
                missed[places[at, bit]] += 1
    assert missed == {place: bits for place, (bits, _) in accepted(table).items()}
    assert missed.total() <= 0.05 * 32 * len(words)


def field_of_bit(table: FamilyTable, words: Words) -> Iterator[tuple[tuple[int, int], Place]]:
    """The packet and field of each bit; the two acquires by where they stand."""
    names = {"EVENT_WRITE": "drain", "DISPATCH_DIRECT": "launch", "SET_SH_REG": "registers"}
    for command in read(words, table):
        name = names.get(command.name, "release acquire" if command.dword else "entry acquire")
        for i in range(len(command.words)):
            parts = table.packet[command.name].words
            for bit in range(32):
                fields = parts[i - 1].fields if 0 < i <= len(parts) else ()
                field = next((item.name for item in fields if item.mask >> bit & 1), "")
                yield (command.dword + i, bit), (name, field)


def released(s: Pm4Stream) -> None:
    s.release_fence(VA, 5)
    s.wait_memory64(VA, 5)


# Calls that may stand between the entry and the release of a stream that the linter has nothing to say about.
CALLS: list[Callable[[Pm4Stream, str], None]] = [
    lambda s, t: s.dispatch(golden.kernel(t, "a"), global_size=1024, block=256),
    lambda s, t: s.dispatch(golden.kernel(t, "b"), global_size=1000, block=(64, 2)),
    lambda s, t: s.dispatch(golden.kernel(t, "b", wave=64), global_size=(8, 8, 8), block=(8, 8, 1)),
    lambda s, t: s.dispatch_indirect(golden.kernel(t, "a"), args_va=VA + 8, block=256),
    lambda s, _t: s.barrier(),
    lambda s, _t: s.barrier(vmem_only=True),
    lambda s, _t: s.wait_idle(),
    lambda s, _t: s.timestamp_top(VA),
    lambda s, _t: s.timestamp_bottom(VA),
    lambda s, _t: s.write_data(VA, [1, 2, 3]),
    lambda s, _t: s.copy_data(VA, VA + 8, bits=64),
    lambda s, _t: s.wait_memory(VA + 16, 3, "!="),
    lambda s, _t: released(s),
]
STREAMS = st.tuples(st.booleans(), st.lists(st.sampled_from(CALLS), max_size=5))
few = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(table: FamilyTable, elide: bool, calls: list[Callable[[Pm4Stream, str], None]]) -> Words:
    target = golden.EXAMPLES[table.name]
    s = Pm4Stream(table, elide=elide)
    s.acquire_system()
    CALLS[0](s, target)
    for call in calls:
        call(s, target)
    s.release_system()
    return [int(word) for word in s.words]


def reserved(table: FamilyTable, command: Command) -> list[int]:
    """The reserved bits of each dword of a packet."""
    packet = table.packet[command.name]
    registers = [table.register_at[offset].reserved for offset in command.registers]
    return [0xFD, *(word.reserved for word in packet.words), *registers]


@every_family
@few
@given(stream=STREAMS)
def test_streams_of_the_builder_are_clean_and_any_reserved_bit_is_found_at_its_dword(
    table: FamilyTable, stream: tuple[bool, list[Callable[[Pm4Stream, str], None]]]
) -> None:
    """Launches, fences, timestamps, copies and waits, elided or not."""
    words = built(table, *stream)
    assert lint(words, table) == []
    for command in read(words, table):
        for at, bits in enumerate(reserved(table, command), command.dword):
            for bit in range(32):
                if bits >> bit & 1:
                    found = lint([*words[:at], words[at] ^ 1 << bit, *words[at + 1 :]], table)
                    assert (at, "reserved") in {(item.dword, item.rule) for item in found}, f"dword {at}, bit {bit}"


@every_family
@few
@given(stream=STREAMS, counts=st.lists(st.integers(0, 0x3FFF), min_size=4, max_size=4))
def test_any_other_count_is_found(
    table: FamilyTable, stream: tuple[bool, list[Callable[[Pm4Stream, str], None]]], counts: list[int]
) -> None:
    """Counts that swallow whole packets among them; nothing before the packet is blamed but what it no longer uses."""
    words = built(table, *stream)
    for command in read(words, table):
        at = command.dword
        for count in {*range(60), 0x3FFE, 0x3FFF, *counts} - {words[at] >> 16 & 0x3FFF}:
            other = [*words[:at], words[at] & 0xC000FFFF | count << 16, *words[at + 1 :]]
            found = lint(other, table)
            assert found, f"count {count} at dword {at}"
            assert any(item.dword >= at or item.rule in ("unused", "final-drain") for item in found)


@every_family
@few
@given(stream=STREAMS)
def test_any_dropped_dword_is_found(
    table: FamilyTable, stream: tuple[bool, list[Callable[[Pm4Stream, str], None]]]
) -> None:
    """Headers, fields and data."""
    words = built(table, *stream)
    for command in read(words, table):
        for at in range(command.dword, command.dword + len(command.words)):
            found = lint([*words[:at], *words[at + 1 :]], table)
            assert any(item.dword >= command.dword for item in found), f"without dword {at}"


@every_family
@few
@given(stream=STREAMS, dwords=st.lists(st.integers(0, 0xFFFFFFFF), min_size=3, max_size=3))
def test_any_added_dword_is_found_unless_it_is_padding_between_packets(
    table: FamilyTable, stream: tuple[bool, list[Callable[[Pm4Stream, str], None]]], dwords: list[int]
) -> None:
    """Numbers, headers of every packet, NOPs of every size: a NOP of one dword between packets alone is nothing."""
    words = built(table, *stream)
    pad = table.packet["NOP"].pad()
    headers = [0xC0000000 | packet.opcode << 8 | packet.shader_type << 1 for packet in table.packets]
    nops = [0xC0001000 | count << 16 for count in range(0, 40, 3)]
    starts = {command.dword for command in read(words, table)} | {len(words)}
    for at in range(len(words) + 1):
        for dword in (0, 0xFFFFFFFF, pad, *headers, *(h | 3 << 16 for h in headers), *nops, *dwords):
            other = [*words[:at], dword, *words[at:]]
            if dword == pad and at in starts:
                assert lint(other, table) == []
            elif other != words:
                assert lint(other, table), f"{dword:#010x} before dword {at}"
