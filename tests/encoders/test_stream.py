# SPDX-License-Identifier: Apache-2.0
"""The low-level builder: its calls, its copies, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import redline.encoders
from redline.encoders import FAMILIES, DispatchWords, Pm4Stream
from redline.errors import EncodeError, UnsupportedTarget
from tests.encoders import golden

pytestmark = pytest.mark.nopython


def test_the_documented_example_gives_a_stream() -> None:
    """Every call of the builder's documentation, in its order, on gfx1151."""
    s = Pm4Stream("gfx1151", elide=False)
    s.acquire_system()
    s.dispatch(
        DispatchWords(
            entry=0x7F0012345600, rsrc1=0xE0AF0000, rsrc2=0x84, rsrc3=0x20, properties=0x408, group_bytes=1024,
            private_bytes=0, kernarg=0x7F00ABCD0040,
        ),
        global_size=(1024, 1, 1),
        block=(256, 1, 1),
    )  # fmt: skip
    s.barrier(vmem_only=False)
    s.release_system()
    words = s.words
    assert words.dtype == np.uint32
    answer = golden.answers("gfx11.5")["stream"]
    assert words.tolist() == answer[:46] + answer[-10:]


def test_an_empty_stream_has_no_words() -> None:
    """And asking for them is no error."""
    assert Pm4Stream("gfx1030").words.tolist() == []


def test_words_are_a_copy() -> None:
    """Changing them changes no later answer, and later calls change no earlier copy."""
    s = Pm4Stream("gfx1201")
    s.wait_idle()
    first = s.words
    first[:] = 0
    assert s.words.tolist() == [0xC0004600, 0x407]
    s.acquire_system()
    assert len(first) == 2
    assert len(s.words) == 10


def test_elision_forgets_nothing_across_fences_and_keeps_full_launch_packets() -> None:
    """A drain or an acquire does not touch registers; the launch packet itself is never left out."""
    s = Pm4Stream("gfx1201", elide=True)
    for _ in range(3):
        s.dispatch(golden.kernel("gfx1201"), global_size=(1024,), block=(256,))
        s.wait_idle()
    again = [0xC0031502, 4, 1, 1, 0x8045, 0xC0004600, 0x407]
    assert s.words.tolist()[30:] == again * 2


def test_wave_sizes_may_mix_in_one_stream() -> None:
    """The wave size is in the launch packet, not in a register that elision could keep."""
    s = Pm4Stream("gfx1100", elide=True)
    for wave in (32, 64, 32):
        s.dispatch(golden.kernel("gfx1100", wave=wave), global_size=(1024,), block=(256,))
    assert [word for word in s.words.tolist() if word in (0x8045, 0x0045)] == [0x8045, 0x0045, 0x8045]


@pytest.mark.parametrize("name", ["entry", "kernarg"])
def test_a_null_address_is_refused(name: str) -> None:
    """There is nothing to relocate here, so 0 can only be a mistake."""
    s = Pm4Stream("gfx1201")
    with pytest.raises(EncodeError, match=f"kernel.{name}: 0x0") as caught:
        s.dispatch(replace(golden.kernel("gfx1201"), **{name: 0}), global_size=(1,), block=(1,))  # type: ignore[arg-type]
    assert caught.value.code == "RL0505"
    assert s.words.tolist() == []


def test_a_kernel_without_arguments_needs_no_kernarg_address() -> None:
    """It has no kernarg pointer to fill."""
    s = Pm4Stream("gfx1201")
    words = replace(golden.kernel("gfx1201"), properties=0x400, rsrc2=0x80, kernarg=0)
    s.dispatch(words, global_size=(64,), block=(64,))
    assert 0x240 not in s.words.tolist()


def test_a_refused_launch_leaves_the_stream_as_it_was() -> None:
    """Refused before the first effect."""
    s = Pm4Stream("gfx1030")
    s.acquire_system()
    before = s.words.tolist()
    with pytest.raises(EncodeError):
        s.dispatch(golden.kernel("gfx1030"), global_size=(0,), block=(64,))
    assert s.words.tolist() == before


VA = 0x7F00DEAD0008

# What is refused, the call, and a number that its message must have.
REFUSED: list[tuple[str, Callable[[Pm4Stream], None], str]] = [
    ("a timestamp at 4 mod 8", lambda s: s.timestamp_top(VA + 4), "0x7f00dead000c"),
    ("an end timestamp at 4 mod 8", lambda s: s.timestamp_bottom(VA + 4), "0x7f00dead000c"),
    ("a fence at 4 mod 8", lambda s: s.release_fence(VA + 4, 1), "0x7f00dead000c"),
    ("a fence value of 65 bits", lambda s: s.release_fence(VA, 1 << 64), "0x100000000"),
    ("a negative fence value", lambda s: s.release_fence(VA, -1), "DATA_HI"),
    ("a wait at an odd address", lambda s: s.wait_memory(VA + 2, 1), "0x7f00dead000a"),
    ("a wait for 33 bits", lambda s: s.wait_memory(VA, 1 << 32), "0x100000000"),
    ("a wait by an unknown comparison", lambda s: s.wait_memory(VA, 1, "=>"), "=>"),
    ("a long wait at 4 mod 8", lambda s: s.wait_memory64(VA + 4, 1), "0x7f00dead000c"),
    ("a write beyond 48 bits", lambda s: s.write_data(1 << 48, [1]), "0x1000000000000"),
    ("a write to nowhere", lambda s: s.write_data(0, [1]), "0x0"),
    ("a write of nothing", lambda s: s.write_data(VA, []), "0 dwords"),
    ("a write of 33 bits", lambda s: s.write_data(VA, [1 << 32]), "0x100000000"),
    ("a write longer than a packet", lambda s: s.write_data(VA, [0] * 0x3FFD), "16385 dwords"),
    ("a copy of 16 bits", lambda s: s.copy_data(VA, VA + 8, bits=16), "16"),
    ("a copy of 64 bits from 4 mod 8", lambda s: s.copy_data(VA + 4, VA, bits=64), "0x7f00dead000c"),
    ("a copy of 64 bits to 4 mod 8", lambda s: s.copy_data(VA, VA + 4, bits=64), "0x7f00dead000c"),
    ("indirect arguments at an odd address", lambda s: indirect(s, VA + 1, 64), "0x7f00dead0009"),
    ("an indirect block of 1,025", lambda s: indirect(s, VA, 1025), "1025"),
    ("no padding", lambda s: s.nop(0), "0 dwords"),
    ("padding longer than a packet", lambda s: s.nop(0x4001), "16385 dwords"),
    ("a chain to an odd address", lambda s: s.chain(VA + 2, 1), "0x7f00dead000a"),
    ("a chain to nothing", lambda s: s.chain(VA, 0), "0 dwords"),
    ("a chain of 2**20 dwords", lambda s: s.chain(VA, 1 << 20), "0x100000"),
]


def indirect(s: Pm4Stream, args_va: int, block: int) -> None:
    s.dispatch_indirect(golden.kernel("gfx1201"), args_va=args_va, block=block)


@pytest.mark.parametrize(("what", "call", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_a_packet_cannot_hold_is_refused_and_leaves_the_stream_as_it_was(
    what: str, call: Callable[[Pm4Stream], None], text: str
) -> None:
    """Addresses, alignments, values and sizes, each with the number seen."""
    s = Pm4Stream("gfx1201")
    s.wait_idle()
    with pytest.raises(EncodeError) as caught:
        call(s)
    assert text in str(caught.value)
    assert s.words.tolist() == [0xC0004600, 0x407]


def test_the_longest_padding_and_the_longest_write_are_taken() -> None:
    """At the limit, not one below it; the count of all ones stays the pad's own."""
    s = Pm4Stream("gfx1201")
    s.nop(0x4000)
    s.write_data(VA, [7] * 0x3FFC)
    words = s.words.tolist()
    assert (len(words), words[0], words[0x4000]) == (0x8000, 0xFFFE1000, 0xFFFE3700)


def test_nothing_follows_a_chain() -> None:
    """The chained buffer does not come back, so a packet behind it would never be read."""
    s = Pm4Stream("gfx1201")
    s.chain(VA & ~0xFF, 64)
    before = s.words.tolist()
    with pytest.raises(EncodeError) as caught:
        s.wait_idle()
    assert caught.value.code == "RL0511"
    assert s.words.tolist() == before


@pytest.mark.parametrize("elide", [False, True])
def test_packets_packed_in_python_stand_where_they_were_called(elide: bool) -> None:
    """Between launches, with and without elision: the words of each call in the order of the calls."""
    table = FAMILIES[4]

    def calls(s: Pm4Stream) -> list[Callable[[], None]]:
        kernel = golden.kernel("gfx1201")
        return [
            lambda: s.timestamp_top(VA),
            lambda: s.dispatch(kernel, global_size=1024, block=256),
            lambda: s.nop(3),
            lambda: s.dispatch_indirect(kernel, args_va=VA, block=256),
            lambda: s.barrier(),
            lambda: s.write_data(VA, [1, 2, 3]),
            lambda: s.chain(VA & ~0xFF, 64),
        ]

    whole = Pm4Stream(table, elide=elide)
    for call in calls(whole):
        call()
    parts = []
    for i in range(7):
        one = Pm4Stream(table)
        calls(one)[i]()
        parts.append(one.words.tolist())
    if elide:
        parts[3] = parts[3][-4:]  # the registers stand already
    assert whole.words.tolist() == [word for part in parts for word in part]


def test_an_unknown_target_is_refused() -> None:
    """Case 8a: no prefix is a family."""
    with pytest.raises(UnsupportedTarget):
        Pm4Stream("gfx1250")


def test_public_names_are_what_the_package_lists() -> None:
    """Each is there, documented, and loaded at first use."""
    for name in redline.encoders.__all__:
        found = getattr(redline.encoders, name)
        if callable(found):
            assert found.__doc__
    with pytest.raises(AttributeError):
        redline.encoders.nothing  # noqa: B018
