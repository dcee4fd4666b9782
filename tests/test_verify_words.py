# SPDX-License-Identifier: Apache-2.0
"""`verify_words` reads what `verify` reads, and notices single edits of single packets on every family."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import decode
from tests.judges import judge_words
from tests.random_plans import FIVE
from tests.word_edits import (
    BASE_LO,
    COHER_SIZE,
    DATA,
    GCR,
    REFERENCE,
    Stream,
    changed,
    cleared,
    drains,
    gcr_bits,
    joined,
    packets,
    swapped,
    where,
    without,
)

GFX10 = ("gfx1010", "gfx1030")
HAS_GL1 = ("gfx1010", "gfx1030", "gfx1100", "gfx1151")


def test_words_are_judged_as_the_fences_they_encode() -> None:
    """1,000 random plans and fences on five families, elided or not: the same findings in the same order.

    3345 and 9511: a write-back for workgroup counts, which serves the host too, where the release was left out.
    """
    assert [wrong for wrong in map(judge_words, (*range(1000), 3345, 9511)) if wrong] == []


def _plan(target: str) -> rl.Plan:
    """Two launches that update the same bytes, which the host writes before and reads behind them."""
    graph = rl.Graph()
    x = graph.buffer("x", 4, role="inout")
    for _ in range(2):
        graph.launch(rl.Kernel.synthetic("k", target=target), grid=1, block=1, args=[rl.update(x)])
    return graph.compile()


def _stream(plan: rl.Plan) -> Stream:
    return packets(plan.program.words, plan.target)


def _found(plan: rl.Plan, stream: Stream, **options: Any) -> list[str]:
    return [str(finding) for finding in rl.verify_words(plan, joined(stream), plan.target, **options)]


@pytest.mark.parametrize("target", FIVE)
def test_a_drain_left_out_is_found(target: str) -> None:
    """Of entry, fence and exit, each by what it orders."""
    plan = _plan(target)
    stream = _stream(plan)
    assert _found(plan, stream) == []
    first, inner, last = drains(stream, target)
    entry = _found(plan, without(stream, *first))
    assert "ordered but not visible: host -> #0: its code through I" in entry
    assert "ordered but not visible: host -> #0: its arguments through K" in entry
    assert "ordered but not visible: host -> #0: x is touched by the host" in entry
    assert _found(plan, without(stream, *inner)) == [
        "not ordered: #0 -> #1: RAW on x[0:4]",
        "not ordered: #0 -> #1: WAW on x[0:4]",
    ]
    assert _found(plan, without(stream, *last)) == [
        "not ordered: #1 -> host: the submission ends before the launch does"
    ]


@pytest.mark.parametrize("target", FIVE)
def test_a_cleared_cache_bit_is_found(target: str) -> None:
    """GLK_INV, GLV_INV and, where there is a GL1, GL1_INV of the acquire between the launches."""
    plan = _plan(target)
    stream = _stream(plan)
    _, inner, _ = where(stream, target, "ACQUIRE_MEM")
    through = "ordered but not visible: #0 -> #1: RAW on x[0:4] through "
    assert _found(plan, cleared(stream, inner, target, "GLK_INV")) == [f"{through}K"]
    assert _found(plan, cleared(stream, inner, target, "GLV_INV")) == [f"{through}V"]
    both = [f"{through}K", f"{through}V"]
    assert _found(plan, cleared(stream, inner, target, "GL1_INV")) == (both if target in HAS_GL1 else [])
    assert _found(plan, without(stream, inner)) == both


@pytest.mark.parametrize("target", FIVE)
def test_bits_of_gl2_cleared_at_either_end_are_found(target: str) -> None:
    """Memory model F16: GL2_INV alone may lose bytes; without it, or without the write-back, the host is not served."""
    plan = _plan(target)
    stream = _stream(plan)
    first, _, last = where(stream, target, "ACQUIRE_MEM")
    alone = _found(plan, cleared(stream, first, target, "GL2_WB"))
    assert len(alone) == 1
    assert alone[0].startswith("may lose bytes: host -> host: ACQUIRE_MEM at dword")
    assert alone[0].endswith("GL2_INV without GL2_WB")
    unseen = _found(plan, cleared(stream, first, target, "GL2_INV"))
    assert unseen == [f"ordered but not visible: host -> #{i}: x is touched by the host" for i in (0, 1)]
    kept = _found(plan, cleared(stream, last, target, "GL2_WB"))
    assert kept == ["ordered but not visible: #1 -> host: host reads x[0:4], which may be in L2 only"]


@pytest.mark.parametrize("target", FIVE)
def test_an_acquire_before_its_drain_covers_nothing(target: str) -> None:
    """Memory model F2 in words: what had not drained is not covered."""
    plan = _plan(target)
    stream = _stream(plan)
    _, (drain, _), _ = drains(stream, target)
    _, inner, _ = where(stream, target, "ACQUIRE_MEM")
    assert _found(plan, swapped(stream, inner, drain)) == [
        f"ordered but not visible: #0 -> #1: RAW on x[0:4] through {cache}" for cache in "KV"
    ]


@pytest.mark.parametrize("target", FIVE)
@pytest.mark.parametrize(("word", "value"), [(COHER_SIZE, 0x10), (BASE_LO, 0x1000), (COHER_SIZE, 0xFFFFFFFE)])
def test_an_acquire_of_a_range_covers_nothing(target: str, word: int, value: int) -> None:
    """Addresses are not known here, so only the whole address space counts."""
    plan = _plan(target)
    stream = _stream(plan)
    _, inner, _ = where(stream, target, "ACQUIRE_MEM")
    assert len(_found(plan, changed(stream, inner, word, lambda _: value))) == 2


@pytest.mark.parametrize("target", FIVE)
def test_an_acquire_of_part_of_gl2_or_gl1_covers_nothing(target: str) -> None:
    """GL2_RANGE and GL1_RANGE that are not ALL."""
    plan = _plan(target)
    stream = _stream(plan)
    first, inner, _ = where(stream, target, "ACQUIRE_MEM")
    word = family_for(target).gcr
    part = word.pack(GL2_RANGE="RANGE")
    assert _found(plan, changed(stream, first, GCR, lambda gcr: gcr | part))
    if target in HAS_GL1:
        narrow = word.pack(GL1_RANGE="RANGE")
        assert len(_found(plan, changed(stream, inner, GCR, lambda gcr: gcr | narrow))) == 2


@pytest.mark.parametrize("target", GFX10)
def test_a_wait_that_an_old_value_ends_is_no_drain(target: str) -> None:
    """gfx10: a smaller reference, an unchanged value, no zero at the start, another address, a swapped pair."""
    plan = _plan(target)
    stream = _stream(plan)
    _, (release, _), _ = drains(stream, target)
    wait, (zero, *_) = release + 1, where(stream, target, "WRITE_DATA")
    edits = {
        "waits for a smaller value": changed(stream, wait, REFERENCE, lambda value: value - 1),
        "stores what stood before": changed(
            changed(stream, wait, REFERENCE, lambda value: value - 1), release, DATA, lambda value: value - 1
        ),
        "waits elsewhere": changed(stream, wait, 2, lambda low: low + 64),
        "waits without a store": without(stream, release),
        "stores without a wait": without(stream, wait),
        "waits first": swapped(stream, wait, release),
    }
    for name, edited in edits.items():
        assert any("not ordered: #0 -> #1" in text for text in _found(plan, edited)), name
    # Without the zero no drain of the whole stream is believed: the last replay's values may stand there.
    texts = _found(plan, without(stream, zero))
    assert any("not ordered: #0 -> #1" in text for text in texts)
    assert any("not ordered: #1 -> host" in text for text in texts)


@pytest.mark.parametrize("target", GFX10)
def test_a_partial_flush_is_believed_on_gfx10_only_when_asked(target: str) -> None:
    """Memory model F14: old microcode returns early, and its version is not known."""
    plan = _plan(target)
    flushes = rl.lower(plan, plan.fences, gfx10_wait="partial_flush")
    stream = packets(flushes.words, target)
    assert len(where(stream, target, "EVENT_WRITE")) == 3
    assert any("not ordered: #0 -> #1" in text for text in _found(plan, stream))
    assert _found(plan, stream, gfx10_wait="partial_flush") == []


@pytest.mark.parametrize("target", FIVE)
def test_a_stream_of_other_launches_is_not_this_plan(target: str) -> None:
    """A launch left out, one too many, and another size."""
    plan = _plan(target)
    stream = _stream(plan)
    last = where(stream, target, "DISPATCH_DIRECT")[-1]
    for edited in (
        without(stream, last),
        [*stream[: last + 1], stream[last], *stream[last + 1 :]],
        changed(stream, last, 1, lambda dim: dim + 1),
    ):
        assert any(text.startswith("not this plan") for text in _found(plan, edited))


def test_the_bits_of_the_edits_are_those_of_the_family() -> None:
    """K, V and GL1 in GCR_CNTL: bits 7, 8 and 9; gfx12 has no GL1."""
    assert [gcr_bits(target, "GLK_INV", "GLV_INV", "GL1_INV") for target in FIVE] == [0x380] * 4 + [0x180]


def _fence_words(target: str, form: str, **values: int) -> list[int]:
    return family_for(target).form(form, [0] if form == "write_data" else (), **values)


def _again(target: str, value: int) -> Stream:
    """A drain by a fence word; behind one of a larger value its wait ends before its store."""
    stores = _fence_words(target, "fence_release", DATA_LO=value)
    return [stores, _fence_words(target, "wait_memory", REFERENCE=value)]


@pytest.mark.parametrize("target", GFX10)
def test_a_store_that_nobody_waited_for_ends_later_waits(target: str) -> None:
    """gfx10: a release whose value is larger may land before any later wait, also behind a zero; a copy may store
    anything.
    """
    plan = _plan(target)
    stream = _stream(plan)
    (_, (release, _), _), (zero, *_) = drains(stream, target), where(stream, target, "WRITE_DATA")
    nop = family_for(target).packet["NOP"].pack([0])
    early = [_fence_words(target, "fence_release", DATA_LO=99), nop]
    clock, copy = ([_fence_words(target, form)] for form in ("timestamp_bottom", "copy_data"))
    for name, edited in {
        "behind the zero": [*stream[: zero + 1], *early, *stream[zero + 1 :]],
        "before the zero": [*stream[:zero], *early, *stream[zero:]],
        "a wait that ends at once": [*stream[: zero + 1], *_again(target, 9), *_again(target, 8), *stream[zero:]],
        "a clock": [*stream[:release], *clock, *stream[release:]],
        "a clock before the zero": [*stream[:zero], *clock, *stream[zero:]],
        "a copy": [*stream[:release], *copy, *stream[release:]],
    }.items():
        assert any("not ordered: #0 -> #1" in text for text in _found(plan, edited)), name
    harmless = [*stream[:zero], *copy, *stream[zero:]]
    assert _found(plan, harmless) == []


@pytest.mark.parametrize("target", FIVE)
def test_every_control_field_of_a_drain_counts(target: str) -> None:
    """A drain with any other selector, in any field but address, data, pace and caches, is not believed."""
    plan = _plan(target)
    stream = _stream(plan)
    _, (first, count), _ = drains(stream, target)
    tried = 0
    for at in range(first, first + count):
        name = decode(stream[at], family_for(target))[0].name
        for word, part in enumerate(family_for(target).packet[name].words, 1):
            for field in part.fields:
                if not field.name.startswith(("ADDR", "DATA_LO", "DATA_HI", "REFERENCE", "POLL", "INT_C", "GL")):
                    edited = changed(stream, at, word, lambda value, low=field.low: value ^ 1 << low)  # type: ignore[misc]
                    assert any("not ordered: #0 -> #1" in text for text in _found(plan, edited)), field.name
                    tried += 1
    assert tried >= (3 if target not in GFX10 else 12)


@pytest.mark.parametrize("target", FIVE)
def test_an_acquire_from_the_inside_out_or_of_too_few_addresses_covers_nothing(target: str) -> None:
    """SEQ=FORWARD refreshes K and V from a GL1 and GL2 that are still old; COHER_SIZE_HI is half of the size."""
    plan = _plan(target)
    stream = _stream(plan)
    _, inner, _ = where(stream, target, "ACQUIRE_MEM")
    word = family_for(target).gcr
    for sequence, found in (("FORWARD", 2), ("REVERSE", 0)):
        edited = changed(stream, inner, GCR, lambda gcr, seq=sequence: gcr | word.pack(SEQ=seq))  # type: ignore[misc]
        assert len(_found(plan, edited)) == found
    assert len(_found(plan, changed(stream, inner, COHER_SIZE + 1, lambda _: 0x7F))) == 2
    assert _found(plan, changed(stream, inner, COHER_SIZE + 1, lambda _: 0xFF)) == []


@pytest.mark.parametrize("target", FIVE)
def test_packets_that_may_lose_bytes_are_found(target: str) -> None:
    """Memory model F16: GL2_DISCARD, and GL2_INV alone also over a range and in a RELEASE_MEM."""
    plan = _plan(target)
    stream = _stream(plan)
    first, inner, _ = where(stream, target, "ACQUIRE_MEM")
    word = family_for(target).gcr
    ranged = cleared(stream, first, target, "GL2_WB")
    edits = [
        changed(stream, inner, GCR, lambda gcr: gcr | word.pack(GL2_DISCARD=1)),
        changed(ranged, first, GCR, lambda gcr: gcr | word.pack(GL2_RANGE="RANGE")),
        [*stream, _fence_words(target, "fence_release", GL2_INV=1)],
    ]
    for edited in edits:
        assert any(text.startswith("may lose bytes") for text in _found(plan, edited))


@pytest.mark.parametrize("target", GFX10)
def test_a_store_that_the_last_replay_did_not_wait_for_ends_waits_of_the_next(target: str) -> None:
    """gfx10, replays back to back: the zero at the start does not stop what is still to be stored."""
    graph = rl.Graph()
    x = graph.buffer("x", 4, role="inout")
    for _ in range(2):
        graph.launch(rl.Kernel.synthetic("k", target=target), grid=1, block=1, args=[rl.update(x)])
    plan = graph.compile(boundary="queue")
    cold, warm, end, last = plan.program.ibs[0].tolist()
    words = plan.program.words.tolist()
    late = _fence_words(target, "fence_release", DATA_LO=99)
    edited, row = [*words[:end], *late, *words[end:]], (cold, warm, end + len(late), last + len(late))
    assert rl.verify_words(plan, words, target, ib=(cold, warm, end, last)) == ()
    found = rl.verify_words(plan, edited, target, ib=row)
    assert any(finding.carried for finding in found)


@pytest.mark.parametrize("given", [None, 7, 1.5, [None], ["a"], [0.5], [[]], "C0001000", object()])
def test_what_are_no_words_and_no_entries_is_refused(given: Any) -> None:
    """With a RedlineError that says what is allowed, never with what Python says of it."""
    plan = _plan("gfx1201")
    with pytest.raises(rl.EncodeError, match="ints of 32 bits") as caught:
        rl.verify_words(plan, given, "gfx1201")
    assert caught.value.code == "RL0508"
    if given is not None:
        with pytest.raises(rl.RecordError, match="cold <= warm <= end <= end_release"):
            rl.verify_words(plan, plan.program.words, "gfx1201", ib=given)
    assert rl.verify_words(plan, plan.program.words, "gfx1201", ib=plan.program.ibs[0]) == ()


@pytest.mark.parametrize("target", FIVE)
def test_every_register_that_a_launch_needs_is_set_for_it(target: str) -> None:
    """Without any one SET_SH_REG a launch would run with another block, code, arguments, or with what was left."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 64), graph.buffer("y", 64, role="out")
    first, second = (rl.Kernel.synthetic(name, pointers=2, target=target) for name in ("first", "second"))
    second = replace(second, rsrc1=second.rsrc1 | 1, entry_offset=512)
    graph.launch(first, grid=1, block=64, args=[rl.write(x), rl.read(x)])
    graph.launch(second, grid=2, block=32, args=[rl.write(y), rl.read(x)])
    graph.launch(second, grid=2, block=32, args=[rl.write(y[32:64]), rl.read(x)])
    plan = graph.compile()
    stream = _stream(plan)
    assert _found(plan, stream) == []
    places = where(stream, target, "SET_SH_REG")
    assert len(places) > 8
    for at in places:
        found = _found(plan, without(stream, at))
        assert found
        assert found[0].startswith("not this plan"), (at, stream[at])
