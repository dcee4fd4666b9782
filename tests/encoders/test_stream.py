# SPDX-License-Identifier: Apache-2.0
"""The low-level builder: its calls, its copies, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import redline.encoders
from redline.encoders import DispatchWords, Pm4Stream
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
