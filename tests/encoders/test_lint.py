# SPDX-License-Identifier: Apache-2.0
"""Each rule of the linter: the smallest stream that breaks it, and what a clean stream looks like."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.encoders import FAMILIES, Pm4Stream
from redline.encoders.decode import read, text
from redline.encoders.lint import lint
from redline.encoders.table import FamilyTable
from redline.errors import UnsupportedTarget
from tests.encoders import golden

pytestmark = pytest.mark.nopython
every_family = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)

Words = list[int]
ENTRY = golden.hexes("C0065800 0 FFFFFFFF FFFFFF 0 0 A C181")
LAUNCH = golden.answers("gfx12.0")["1024 work-items, wave32"]
DRAIN = [0xC0004600, 0x407]
RELEASE = [*DRAIN, *ENTRY[:-1], 0x8000]
WHOLE = [*ENTRY, *LAUNCH, *RELEASE]
AFTER = len(ENTRY) + len(LAUNCH)  # where what follows the launch stands
DISPATCH = AFTER - 5


def rules(words: Words, target: str = "gfx1201", **options: Any) -> set[tuple[int, str, str]]:
    return {(item.dword, item.rule, item.level) for item in lint(words, target, **options)}


def changed(at: int, word: int) -> Words:
    """The clean stream with one other dword."""
    return [*WHOLE[:at], word, *WHOLE[at + 1 :]]


def behind(text: str) -> Words:
    """The clean stream with further words between its launch and its release."""
    return [*ENTRY, *LAUNCH, *golden.hexes(text), *RELEASE]


def acquire(gcr: int) -> Words:
    """The clean stream with a drained acquire of its own behind the launch."""
    return [*ENTRY, *LAUNCH, *DRAIN, *ENTRY[:-1], gcr, *RELEASE]


GCR = AFTER + 9  # the cache word of that acquire
F = "DEAD0008 7F00"

# What is wrong, the stream, and the findings: dword, rule, level.
BROKEN: dict[str, tuple[Words, set[tuple[int, str, str]]]] = {
    "no entry acquire": ([*LAUNCH, *RELEASE], {(DISPATCH - 8, "entry", "error")}),
    "an entry without K": (changed(7, 0xC101), {(DISPATCH, "entry", "warning")}),
    "no drain at the end": ([*ENTRY, *LAUNCH], {(DISPATCH, "final-drain", "error")}),
    "no release at the end": ([*ENTRY, *LAUNCH, *DRAIN], {(DISPATCH, "final-release", "error")}),
    "an acquire of launches that run": (
        [*ENTRY, *LAUNCH, *ENTRY[:-1], 0x180, *RELEASE],
        {(AFTER, "undrained", "warning")},
    ),
    "GL2_INV without GL2_WB": (acquire(0x4000), {(GCR, "gl2-inv", "error")}),
    "GL2_DISCARD": (acquire(0xA000), {(GCR, "gl2-discard", "error")}),
    "a cache bit that the target lacks": (acquire(0x200), {(GCR, "reserved", "error")}),
    "a range of GL2": (acquire(0x1000), {(GCR, "gcr-range", "warning")}),
    "a sequence that nothing needs": (acquire(0x18000), {(GCR, "gcr-extra", "warning")}),
    "half of memory": (changed(2, 0x7FFFFFFF), {(2, "range", "error")}),
    "a base": (changed(4, 0x100), {(4, "range", "error")}),
    "a CU mask": (behind("C0017600 216 0"), {(AFTER + 2, "queue-owned", "error")}),
    "TMPRING_SIZE": (behind("C0017600 218 0"), {(AFTER + 2, "tmpring", "warning")}),
    "a restart": (behind("C0017600 21B 1"), {(AFTER + 2, "register", "warning")}),
    "no register": (behind("C0017600 220 0"), {(AFTER + 2, "register", "error")}),
    "a register for nobody": (behind("C0017600 240 0"), {(AFTER + 2, "unused", "error")}),
    "a register twice": (
        [*ENTRY, *golden.hexes("C0017600 228 20"), *LAUNCH, *RELEASE],
        {(29, "rewritten", "warning")},
    ),
    "a launch before its program": (
        [*ENTRY, *LAUNCH[:5], *LAUNCH[9:], *RELEASE],
        {(DISPATCH - 4, "unset", "error")},
    ),
    "a launch without its user data": (
        [*ENTRY, *LAUNCH[:-9], *LAUNCH[-5:], *RELEASE],
        {(DISPATCH - 4, "unset", "error")},
    ),
    "no limits": ([*ENTRY, *LAUNCH[:13], *LAUNCH[16:], *RELEASE], {(DISPATCH - 3, "limits", "warning")}),
    "a limit": (changed(23, 0x3FF), {(23, "limits", "warning")}),
    "user data beyond USER_SGPR": (
        [*ENTRY, *LAUNCH[:-9], *golden.hexes("C0037600 240 ABCD0040 7F00 1"), *LAUNCH[-5:], *RELEASE],
        {(31, "user-data", "warning")},
    ),
    "17 user SGPRs": (changed(20, 0x100A2), {(DISPATCH, "unset", "error"), (20, "user-data", "error")}),
    "scratch": (changed(20, 0x10085), {(20, "scratch", "error")}),
    "66,048 bytes of LDS": (changed(20, 0x84 | 129 << 15), {(20, "lds", "error")}),
    "no threads": (changed(10, 0), {(10, "threads", "error")}),
    "1,025 threads": (changed(10, 1025), {(10, "threads", "error")}),
    "a partial workgroup": (changed(10, 100 << 16 | 256), {(10, "threads", "error")}),
    "interleaved threads": (changed(10, 1 << 13 | 256), {(10, "threads", "warning")}),
    "PARTIAL_TG_EN alone": (changed(DISPATCH + 4, 0x8047), {(DISPATCH + 4, "initiator", "error")}),
    "ORDERED_APPEND_ENBL": (changed(DISPATCH + 4, 0x800D), {(DISPATCH + 4, "initiator", "error")}),
    "nothing starts": (changed(DISPATCH + 4, 0x8044), {(DISPATCH + 4, "initiator", "error")}),
    "a start that nobody set": (changed(DISPATCH + 4, 0x8041), {(DISPATCH + 4, "initiator", "error")}),
    "no workgroups": (changed(DISPATCH + 2, 0), {(DISPATCH + 2, "dims", "error")}),
    "2**32 work-items": (changed(DISPATCH + 1, 1 << 24), {(DISPATCH + 1, "dims", "error")}),
    "another event": (
        [*ENTRY, *LAUNCH, 0xC0004600, 0x40F, *RELEASE],
        {(AFTER + 1, "event", "error"), (AFTER + 1, "value", "error")},
    ),
    "the flush with another index": (behind("C0004600 507"), {(AFTER + 1, "event", "error")}),
    "an end-of-pipe event as an EVENT_WRITE": (behind("C0004600 528"), {(AFTER + 1, "event", "error")}),
    "a release at no end of pipe": (
        behind(f"C0064900 507 43000000 {F} 1 0 0"),
        {(AFTER + 1, "event", "error")},
    ),
    "a release with GL2_INV alone": (
        behind(f"C0064900 100528 43000000 {F} 1 0 0"),
        {(AFTER + 1, "gl2-inv", "error")},
    ),
    "an interrupt": (behind(f"C0064900 528 41000000 {F} 1 0 0"), {(AFTER + 2, "interrupt", "warning")}),
    "data of no kind": (behind(f"C0064900 528 83000000 {F} 1 0 0"), {(AFTER + 2, "value", "error")}),
    "a fence at 4 mod 8": (behind("C0064900 528 43000000 DEAD000C 7F00 1 0 0"), {(AFTER + 3, "address", "error")}),
    "a fence beyond 48 bits": (behind("C0064900 528 43000000 8 10000 1 0 0"), {(AFTER + 4, "address", "error")}),
    "a wait for more than was released": (
        behind(f"C0064900 528 23000000 {F} 1 0 0 C0053C00 15 {F} 2 FFFFFFFF 4"),
        {(AFTER + 8, "wait", "error")},
    ),
    "a wait that its mask hides": (behind(f"C0053C00 15 {F} 100 FF 4"), {(AFTER + 5, "wait", "error")}),
    "a wait for a register": (behind("C0053C00 5 8 0 1 FFFFFFFF 4"), {(AFTER + 1, "wait", "error")}),
    "a comparison of no kind": (behind(f"C0053C00 17 {F} 1 FFFFFFFF 4"), {(AFTER + 1, "value", "error")}),
    "a write to a register": (behind("C0033700 100000 2C00 0 0"), {(AFTER + 1, "register-write", "error")}),
    "a write without confirmation": (behind(f"C0033700 200 {F} 0"), {(AFTER + 1, "unconfirmed", "warning")}),
    "a write to one address": (behind(f"C0033700 110200 {F} 0"), {(AFTER + 1, "one-address", "warning")}),
    "a copy into a register": (behind(f"C0044000 100002 {F} 2C00 0"), {(AFTER + 1, "register-write", "error")}),
    "an old copy": (behind(f"C0044000 110509 0 0 {F}"), {(AFTER + 1, "obsolete", "warning")}),
    "half of a clock": (behind(f"C0044000 100209 0 0 {F}"), {(AFTER + 1, "clock", "warning")}),
    "packets in a NOP": (behind("C0021000 C0004600 407 0"), {(AFTER + 1, "hidden", "warning")}),
    "a drain in a NOP behind a launch": (behind("C0011000 C0004600 407"), {(AFTER + 1, "hidden", "warning")}),
    "a launch in a NOP": (
        [*ENTRY, 0xC0001000 | len(LAUNCH) - 1 << 16, *LAUNCH, *LAUNCH, *RELEASE],
        {(len(ENTRY) + 1, "hidden", "warning")},
    ),
    "packets in data": (behind(f"C0053700 100200 {F} 0 C0004600 407"), {(AFTER + 5, "hidden", "warning")}),
    "an indirect buffer that comes back": (
        [*WHOLE, *golden.hexes("C0023F00 CAFE1000 7F00 80005C")],
        {(len(WHOLE) + 3, "chain", "error")},
    ),
    "a chain into nothing": (
        [*WHOLE, *golden.hexes("C0023F00 CAFE1000 7F00 900000")],
        {(len(WHOLE) + 3, "chain", "error")},
    ),
    "a chain for another VMID": (
        [*WHOLE, *golden.hexes("C0023F00 CAFE1000 7F00 190005C")],
        {(len(WHOLE) + 3, "chain", "error")},
    ),
    "a packet behind a chain": (
        [*WHOLE, *golden.hexes("C0023F00 CAFE1000 7F00 90005C"), *DRAIN],
        {(len(WHOLE) + 4, "behind-chain", "error")},
    ),
    "indirect counts at address 0": (
        [*ENTRY, *LAUNCH[:-5], *golden.hexes("C0021602 0 0 8045"), *RELEASE],
        {(DISPATCH + 1, "address", "error")},
    ),
    # The size is wrong, and nobody knows where the next packet starts.
    "a wrong count": (changed(0, 0xC0055800), {(0, "count", "error")}),
    "a cut-off packet": (WHOLE[:-1], {(len(WHOLE) - 8, "count", "error")}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_each_rule_is_found_where_it_is_broken(what: str) -> None:
    """Cases 7 and 8b (registers of the queue, TMPRING), 66 (cache words) and the rest; nothing else is found."""
    words, expected = BROKEN[what]
    assert rules(words) == expected


def test_a_warm_entry_is_passed_over() -> None:
    """A NOP before the first launch whose body is a drain and an acquire: where a warm start begins."""
    warm = [*DRAIN, *ENTRY[:-1], 0x180]
    assert rules([*ENTRY, 0xC0001000 | len(warm) - 1 << 16, *warm, *LAUNCH, *RELEASE]) == set()
    (_, nop, *_) = read([*ENTRY, 0xC0001000 | len(warm) - 1 << 16, *warm], "gfx1201")
    lines = text(nop, "gfx1201")
    assert "skipped: EVENT_WRITE, 2 dwords" in lines[1]
    assert lines[-1].endswith("skipped: GCR_CNTL GLK_INV GLV_INV")


@every_family
def test_whole_streams_are_clean(table: FamilyTable) -> None:
    """The answers: two launches, elided or not."""
    assert lint(golden.answers(table.name)["stream"], table) == []
    assert lint(golden.answers(table.name)["elided stream"], table) == []
    assert lint([], table) == []


@pytest.mark.parametrize(
    ("gcr", "rule"),
    [
        (0x8010, "glm"),
        (0xC010, "glm"),
        (0x80, "gl1"),
        (0x100, "gl1"),
        (0x280, ""),
        (0x300, ""),
        (0x380, ""),
        (0x30, ""),
    ],
)
def test_cache_words_before_gfx12_keep_the_rules_of_the_hardware(gcr: int, rule: str) -> None:
    """Case 66: GLM writes back only when it invalidates, and K and V are refreshed through GL1."""
    head, launch = (
        golden.hexes("C0065800 0 FFFFFFFF FFFFFF 0 0 A"),
        golden.answers("gfx11.5")["1024 work-items, wave32"],
    )
    words = [*head, 0xC3B1, *launch, *DRAIN, *head, gcr, *DRAIN, *head, 0x8030]
    assert rules(words, "gfx1151") == ({(8 + len(launch) + 9, rule, "error")} if rule else set())


def test_a_cache_word_of_another_family_is_found() -> None:
    """The kernel's own word for gfx12 sets three bits that gfx12 does not have."""
    [found] = lint(changed(7, 0xC3B1), "gfx1201")
    assert (found.dword, found.rule) == (7, "reserved")
    assert "0x230" in found.text


def test_the_streams_of_the_reference_for_gfx12_are_refused_by_name() -> None:
    """Section 0 of the cases, and case 8b: two CU masks and the restore state, taken for other registers."""
    words = behind("C0017600 216 0 C0017600 223 0 C0047600 230 FFFFFFFF FFFFFFFF FFFFFFFF FFFFFFFF")
    found = lint(words, "gfx1201")
    assert {item.rule for item in found} == {"queue-owned"}
    text = " ".join(item.text for item in found)
    for name in ("STATIC_THREAD_MGMT_SE0", "STATIC_THREAD_MGMT_SE8", "RELAUNCH", "WAVE_RESTORE_ADDR_HI", "RELAUNCH2"):
        assert f"COMPUTE_{name}" in text
    assert lint(words, "gfx1201", allow_queue_owned=True) == []


@every_family
def test_every_register_of_the_queue_is_found(table: FamilyTable) -> None:
    """Case 8b: the whole list of the family."""
    for offset, name in table.queue_owned_at.items():
        [found, *_] = lint([0xC0017600, offset, 0], table)
        assert (found.dword, found.rule, found.level) == (2, "queue-owned", "error")
        assert name in found.text


def test_zeros_that_other_stacks_write_are_clean_but_for_tmpring() -> None:
    """Case 8b: IREE and tinygrad zero START and RESTART; TMPRING_SIZE is a policy with a name of its own."""
    tmpring = behind("C0017600 218 0")
    assert rules(tmpring, allow_queue_owned=True) == {(AFTER + 2, "tmpring", "warning")}, "not the same permission"
    assert rules(tmpring, allow_tmpring=True) == set()
    assert rules(behind("C0017600 216 0"), allow_tmpring=True) == {(AFTER + 2, "queue-owned", "error")}
    assert rules(behind("C0037600 204 0 0 0 C0037600 21B 0 0 0 C0027600 210 0 0")) == set()
    start = [*ENTRY, *golden.hexes("C0037600 204 0 0 0"), *LAUNCH[:-1], 0x8021, *RELEASE]
    assert rules(start) == set(), "a start that is set may be used"


def test_partial_workgroups_of_other_stacks_are_clean() -> None:
    """RADV: PARTIAL_TG_EN and the rest of the last group in NUM_THREAD, dimensions in workgroups."""
    words = changed(10, 232 << 16 | 256)
    words[11], words[12], words[DISPATCH + 4] = 1 << 16 | 1, 1 << 16 | 1, 0x8047
    assert rules(words) == set()
    kernel = golden.kernel("gfx1201")
    assert rules(words, descriptor=kernel, global_size=1000, block=256) == set()
    assert rules(words, descriptor=kernel, global_size=1001, block=256) == {(DISPATCH + 1, "dims", "error")}


def test_a_chained_stream_need_not_end_here() -> None:
    """The buffer that goes on ends as this one would have to."""
    assert rules([*ENTRY, *LAUNCH, *golden.hexes("C0023F00 CAFE1000 7F00 90005C")]) == set()


@every_family
def test_a_fence_that_is_waited_for_drains(table: FamilyTable) -> None:
    """As planner streams drain on gfx10; the fence alone drains nothing."""
    release, wait = (
        golden.hexes(f"C0064900 528 23010000 {F} 2 0 0"),
        golden.hexes(f"C0053C00 15 {F} 2 FFFFFFFF 4"),
    )
    entry, launch = Pm4Stream(table), golden.answers(table.name)["1024 work-items, wave32"]
    entry.acquire_system()
    tail = [*golden.hexes("C0065800 0 FFFFFFFF FFFFFF 0 0 A"), table.release_gcr]
    head = [*(int(word) for word in entry.words), *launch]
    assert lint([*head, *release, *wait, *tail], table) == []
    assert {item.rule for item in lint([*head, *release, *tail], table)} == {"undrained", "final-release"}
    assert {item.rule for item in lint([*head, *wait, *tail], table)} == {"undrained", "final-drain"}


@every_family
def test_a_stream_may_end_with_a_fence_that_writes_back(table: FamilyTable) -> None:
    """Whoever waits for its value finds everything written."""
    s = Pm4Stream(table)
    s.acquire_system()
    s.dispatch(golden.kernel(golden.EXAMPLES[table.name]), global_size=1024, block=256)
    s.release_fence(0x7F00DEAD0008, 1)
    assert lint(s.words, table) == []
    s.dispatch(golden.kernel(golden.EXAMPLES[table.name]), global_size=1024, block=256)
    assert [item.rule for item in lint(s.words, table)] == ["final-drain"]


# Against the descriptor: what is another, and the findings.
DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, Any], set[tuple[int, str, str]]]] = {
    "the same": ({}, {}, set()),
    "RSRC1": ({"rsrc1": 0xE00F0001}, {}, {(19, "descriptor", "error")}),
    "RSRC2": ({"rsrc2": 0x184}, {}, {(20, "descriptor", "error")}),
    "RSRC3": ({"rsrc3": 0x30}, {}, {(26, "descriptor", "error")}),
    "LDS": ({"group_bytes": 2048}, {}, {(20, "lds", "error")}),
    "dynamic LDS": ({"dynamic_group_bytes": 1}, {}, {(20, "lds", "error")}),
    "wave size": ({"properties": 0x8}, {}, {(DISPATCH + 4, "wave", "error")}),
    "entry": ({"entry": 0x7F0012345700}, {}, {(15, "entry", "error")}),
    "entry, given": ({}, {"entry": 0x10012345600}, {(16, "entry", "error")}),
    "entry, not known": ({"entry": 0}, {}, set()),
    "kernarg": ({}, {"kernarg": 0x7F00ABCD0080}, {(29, "kernarg", "error")}),
    "kernarg, not known": ({"kernarg": 0}, {}, set()),
    "block": ({}, {"block": (256, 2)}, {(11, "threads", "error"), (DISPATCH + 2, "dims", "error")}),
    "size": ({}, {"global_size": 1025}, {(DISPATCH + 1, "dims", "error")}),
    "a kernel that cannot be launched": ({"private_bytes": 4}, {}, {(0, "descriptor", "error")}),
    "more user SGPRs": (
        {"rsrc2": 0x9E},
        {},
        {(20, "descriptor", "error")},
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_launch_is_compared_with_its_descriptor(what: str) -> None:
    """Cases 54 (LDS, static and dynamic) and 56 (wave size) among them: every word that the descriptor decides."""
    change, given_options, expected = DIFFERENT[what]
    options: dict[str, Any] = {"global_size": 1024, "block": 256, **given_options}
    assert rules(WHOLE, descriptor=replace(golden.kernel("gfx1201"), **change), **options) == expected


def test_words_that_pad_the_user_data_and_the_private_segment_buffer_are_zeros() -> None:
    """13 words on gfx1100; four words before the kernarg pointer on gfx10."""
    for target, at in (("gfx1100", 12), ("gfx1030", 2)):
        words = golden.example_stream(target)
        first = words.index(0x240) + 1
        assert lint(words, target, golden.kernel(target)) == []
        words[first + at] = 1
        assert rules(words, target, descriptor=golden.kernel(target)) == {(first + at, "user-data", "error")}


def test_a_kernel_without_arguments_has_no_user_data() -> None:
    """Nothing to compare, and nothing to miss."""
    kernel = replace(golden.kernel("gfx1201"), properties=0x400, rsrc2=0x80, kernarg=0)
    s = Pm4Stream("gfx1201")
    s.acquire_system()
    s.dispatch(kernel, global_size=64, block=64)
    s.release_system()
    assert lint(s.words, "gfx1201", kernel, global_size=64, block=64) == []


def test_of_several_kernels_the_one_at_the_entry_is_compared() -> None:
    """Kernel B has other arguments; a stream without the kernel is a finding."""
    words, kernel = golden.example_stream("gfx1201"), golden.kernel("gfx1201", "b")
    assert lint(words, "gfx1201", kernel, global_size=1024, block=256) == []
    wrong = replace(kernel, kernarg=0x7F00ABCD0080)
    assert {item.rule for item in lint(words, "gfx1201", wrong)} == {"kernarg"}
    assert [item.rule for item in lint(words, "gfx1201", replace(kernel, entry=0x100))] == ["entry"]


@every_family
@given(words=st.lists(st.one_of(st.integers(0, 0xFFFFFFFF), st.integers(0xC0000000, 0xC00FFFFF)), max_size=30))
def test_any_words_are_read_to_the_end_without_an_exception(table: FamilyTable, words: Words) -> None:
    """Hostile input; findings are in order, and say where."""
    found = lint(words, table, golden.kernel(golden.EXAMPLES[table.name]))
    assert found == sorted(found)
    assert all(0 <= item.dword < max(len(words), 1) for item in found)


def test_a_long_packet_of_headers_takes_no_quadratic_time() -> None:
    """Every dword of a NOP may look like a header."""
    started = time.process_time()
    for word in (0xFFFE1500, 0xDFFF4600, 0xC0004500):
        lint([0xFFFE1000, *[word] * 0x3FFF], "gfx1201")
    assert time.process_time() - started < 2


def test_an_unknown_target_is_refused() -> None:
    """Case 8a: no prefix is a family."""
    with pytest.raises(UnsupportedTarget):
        lint([], "gfx1250")


def test_a_stream_is_linted_without_a_compiler() -> None:
    """Only a descriptor needs the launch checks, and they the emitter's constants."""
    code = (
        "import sys, redline.encoders.lint as m; m.lint([0xC0004600, 7], 'gfx1201'); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
