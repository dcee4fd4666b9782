# SPDX-License-Identifier: Apache-2.0
"""AQL packets equal the C structs: against answers compiled from `hsa.h`, and against `struct` for every field."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from redline.encoders import aql
from redline.encoders.table import Layout
from redline.errors import EncodeError, RedlineError
from tests.encoders import golden
from tests.encoders.test_mutations import Refused, changed_dataclass

EXAMPLE = golden.load("aql")["example"]
SIGNAL = int(EXAMPLE["completion_signal"], 16)
ADDRESS = st.integers(1, (1 << 42) - 1).map(lambda n: n * 64)


LAYOUTS = ("KERNEL_DISPATCH", "BARRIER_AND", "BARRIER_OR", "PM4_IB")
ANSWERS = {
    "KERNEL_DISPATCH": golden.listed(golden.load("aql")["aql"]["kernel_dispatch_system"]["hex"]),
    "BARRIER_AND": golden.listed(golden.load("aql")["aql"]["barrier_and_system"]["hex"]),
    "BARRIER_OR": golden.listed(golden.load("aql")["aql"]["barrier_or_system"]["hex"]),
    "PM4_IB": golden.listed(golden.load("gfx1030")["variants"]["aql_pm4_ib_packet"]["hex"]),
}


def words(packet: NDArray[np.uint32]) -> list[int]:
    assert packet.dtype == np.uint32
    return [int(word) for word in packet]


def example_dispatch() -> list[int]:
    return words(
        aql.kernel_dispatch_packet(
            int(EXAMPLE["kernel_object"], 16),
            int(EXAMPLE["kernarg_a"], 16),
            global_size=EXAMPLE["grid_workitems"],
            block=EXAMPLE["workgroup"],
            group_bytes=EXAMPLE["group_segment_bytes"],
            completion_signal=SIGNAL,
        )
    )


def test_packets_equal_the_answers() -> None:
    """Structs compiled from hsa.h."""
    assert example_dispatch() == ANSWERS["KERNEL_DISPATCH"]
    barrier = aql.barrier_and_packet([0x7F00BEEF0080, 0x7F00BEEF00C0], SIGNAL)
    assert words(barrier) == ANSWERS["BARRIER_AND"]
    barrier = aql.barrier_or_packet([0x7F00BEEF0080, 0x7F00BEEF00C0], SIGNAL)
    assert words(barrier) == ANSWERS["BARRIER_OR"]


@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1201"])
def test_the_packet_of_an_indirect_buffer_equals_the_answer(target: str) -> None:
    """Format 1, system scopes and the barrier bit."""
    answer = golden.load(target)
    packet = aql.pm4_ib_packet(int(answer["example"]["ib_address"], 16), answer["stream_dwords"], SIGNAL)
    assert words(packet) == golden.listed(answer["variants"]["aql_pm4_ib_packet"]["hex"])


HEADERS: list[tuple[int, str, dict[str, Any]]] = [
    (0x1502, "KERNEL_DISPATCH", {}),
    (0x1503, "BARRIER_AND", {}),
    (0x1505, "BARRIER_OR", {}),
    (0x1500, "VENDOR", {}),
    (0x0B02, "KERNEL_DISPATCH", {"acquire": "AGENT", "release": "AGENT"}),
    (0x0102, "KERNEL_DISPATCH", {"acquire": "NONE", "release": "NONE"}),
    (0x0002, "KERNEL_DISPATCH", {"barrier": False, "acquire": "NONE", "release": "NONE"}),
    (0x0300, "VENDOR", {"acquire": "AGENT", "release": "NONE"}),
    (0x0900, "VENDOR", {"acquire": "NONE", "release": "AGENT"}),
]


@pytest.mark.parametrize(("word", "kind", "options"), HEADERS)
def test_headers_equal_the_values_in_use(word: int, kind: str, options: dict[str, Any]) -> None:
    """Type 7:0, barrier 8, acquire 10:9, release 12:11."""
    assert aql.header(kind, **options) == word


@given(
    kernel_object=ADDRESS,
    kernarg=ADDRESS,
    signal=ADDRESS,
    size=st.tuples(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 1000)),
    block=st.sampled_from([(1024, 1, 1), (1, 2, 3), (4, 16, 8), (3, 1, 7)]),
    group=st.integers(0, 0xFFFFFFFF),
    private=st.integers(0, 0xFFFFFFFF),
    header=st.sampled_from([0x1502, 0x0B02, 0x0102]),
)
def test_a_kernel_dispatch_has_every_field_where_the_struct_has_it(
    kernel_object: int,
    kernarg: int,
    signal: int,
    size: tuple[int, int, int],
    block: tuple[int, int, int],
    group: int,
    private: int,
    header: int,
) -> None:
    """hsa_kernel_dispatch_packet_t, 64 bytes."""
    packet = aql.kernel_dispatch_packet(
        kernel_object,
        kernarg,
        global_size=size,
        block=block,
        group_bytes=group,
        private_bytes=private,
        completion_signal=signal,
        header=header,
    )
    dimensions = 3 if max(size[2], block[2]) > 1 else 2 if max(size[1], block[1]) > 1 else 1
    assert packet.tobytes() == struct.pack(
        "<HHHHHHIIIIIQQQQ", header, dimensions, *block, 0, *size, private, group, kernel_object, kernarg, 0, signal
    )


@given(signals=st.lists(st.one_of(st.just(0), ADDRESS), max_size=5), signal=ADDRESS)
def test_a_barrier_and_has_its_dependencies_first_and_no_nulls_between(signals: list[int], signal: int) -> None:
    """hsa_barrier_and_packet_t; a null handle is left out."""
    live = [handle for handle in signals if handle]
    expected = struct.pack("<HHI5QQQ", 0x1503, 0, 0, *live, *[0] * (5 - len(live)), 0, signal)
    assert aql.barrier_and_packet(signals, signal).tobytes() == expected


@given(signals=st.lists(ADDRESS, min_size=1, max_size=5), signal=ADDRESS)
def test_a_barrier_or_is_laid_out_as_a_barrier_and(signals: list[int], signal: int) -> None:
    """hsa_barrier_or_packet_t: the type alone differs."""
    expected = struct.pack("<HHI5QQQ", 0x1505, 0, 0, *signals, *[0] * (5 - len(signals)), 0, signal)
    assert aql.barrier_or_packet([0, *signals], signal).tobytes() == expected


def test_six_dependencies_are_refused_and_six_with_a_null_are_not() -> None:
    """A dependency list of more than five needs two packets."""
    with pytest.raises(EncodeError, match="6 dependencies"):
        aql.barrier_and_packet([64] * 6)
    aql.barrier_and_packet([64] * 5 + [0])


@given(va=st.integers(1, (1 << 46) - 1), dwords=st.integers(1, 0xFFFFF), signal=st.one_of(st.just(0), ADDRESS))
def test_an_ib_packet_has_every_field_where_the_struct_has_it(va: int, dwords: int, signal: int) -> None:
    """Format, INDIRECT_BUFFER packet, 0xA, eight reserved dwords, signal."""
    expected = struct.pack("<HHIQI8IIQ", 0x1500, 1, 0xC0023F00, va * 4, 1 << 23 | dwords, 10, *[0] * 7, 0, signal)
    assert aql.pm4_ib_packet(va * 4, dwords, signal).tobytes() == expected


REFUSED: dict[str, tuple[Any, str]] = {
    "nothing to wait for": (lambda: aql.barrier_or_packet([0, 0]), "no dependency"),
    "an OR of six": (lambda: aql.barrier_or_packet([64] * 6), "6 dependencies"),
    "an OR with the header of an AND": (lambda: aql.barrier_or_packet([64], header=0x1503), "0x1503"),
    "IB too large": (lambda: aql.pm4_ib_packet(64, 0x100000), "IB_SIZE"),
    "IB empty": (lambda: aql.pm4_ib_packet(64, 0), "0 dwords"),
    "IB unaligned": (lambda: aql.pm4_ib_packet(66, 1), "0x42"),
    "IB too high": (lambda: aql.pm4_ib_packet(1 << 48, 1), "0x1000000000000"),
    "another type": (lambda: aql.pm4_ib_packet(64, 1, header=0x1502), "0x1502"),
    "reserved header bits": (lambda: aql.pm4_ib_packet(64, 1, header=0x3500), "0x2000"),
    "kernel object unaligned": (lambda: aql.kernel_dispatch_packet(32, 64, global_size=(1,), block=(1,)), "0x20"),
    "kernarg unaligned": (lambda: aql.kernel_dispatch_packet(64, 8, global_size=(1,), block=(1,)), "0x8"),
    "grid": (lambda: aql.kernel_dispatch_packet(64, 64, global_size=(0,), block=(1,)), r"\(0,\)"),
    "block": (lambda: aql.kernel_dispatch_packet(64, 64, global_size=(1,), block=(2048,)), "2048"),
    "group bytes": (
        lambda: aql.kernel_dispatch_packet(64, 64, global_size=(1,), block=(1,), group_bytes=1 << 32),
        "0x100000000",
    ),
    "signal": (lambda: aql.barrier_and_packet([], 1 << 64), "COMPLETION_SIGNAL_HI"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_packet_cannot_hold_is_refused(what: str) -> None:
    """With the number seen."""
    call, message = REFUSED[what]
    with pytest.raises(EncodeError, match=message):
        call()


def layout(name: str) -> list[golden.Bits]:
    found: Layout = getattr(aql, name)
    return [golden.bits_of(word) for word in found.words]


def named_values(name: str) -> dict[str, dict[str, int]]:
    found: Layout = getattr(aql, name)
    return {f"AQL.{item.name}": dict(item.names) for word in found.words for item in word.fields if item.names}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_has_the_bits_of_the_struct(name: str) -> None:
    """Typed from hsa.h and hsa_ext_amd.h, dword by dword; all else is reserved."""
    assert layout(name) == golden.aql_layout(name)
    assert len(layout(name)) == 16
    values = named_values(name)
    assert values == {key: golden.named_values(key) for key in values}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_changed_number_of_a_layout_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the family tables: change each bit and named value, and a known answer fails."""
    original: Layout = getattr(aql, name)
    missed = []
    for place, other in changed_dataclass(original, {"name"}):
        monkeypatch.setattr(aql, name, original if other is Refused else other)
        if other is not Refused and "renamed" not in place and not noticed(name):
            missed.append(place)
    assert missed == []


def noticed(name: str) -> bool:
    values = named_values(name)
    if layout(name) != golden.aql_layout(name) or values != {key: golden.named_values(key) for key in values}:
        return True
    try:
        packets = {
            "KERNEL_DISPATCH": lambda: example_dispatch(),
            "BARRIER_AND": lambda: words(aql.barrier_and_packet([0x7F00BEEF0080, 0x7F00BEEF00C0], SIGNAL)),
            "BARRIER_OR": lambda: words(aql.barrier_or_packet([0x7F00BEEF0080, 0x7F00BEEF00C0], SIGNAL)),
            "PM4_IB": lambda: words(aql.pm4_ib_packet(0x7F00CAFE1000, 92, SIGNAL)),
        }
        return packets[name]() != ANSWERS[name]
    except (RedlineError, KeyError):
        return True
