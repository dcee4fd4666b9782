# SPDX-License-Identifier: Apache-2.0
"""Streams of the planner, damaged dword by dword: the linter finds it, in the NOP around a warm entry too."""

from __future__ import annotations

import numpy as np
import pytest

import redline as rl
from redline.encoders.decode import read
from redline.encoders.emit import apply_relocs
from redline.encoders.lint import lint

Words = list[int]


def _plan(target: str, boundary: str, *, carried: bool, slot: bool) -> rl.Plan:
    """Two launches. `carried`: the first reads what the second wrote, so that the warm entry drains and acquires."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 64), graph.buffer("y", 64)
    kernel = rl.Kernel.synthetic("k", pointers=2, scalars=(4,), target=target)
    last = rl.slot("s", "u4", default=1) if slot else 1
    graph.launch(kernel, grid=4, block=64, args=[rl.read(x), rl.write(y), 1])
    out = x if carried else graph.buffer("z", 64)
    graph.launch(kernel, grid=4, block=64, args=[rl.read(y), rl.write(out), last])
    return graph.compile(boundary=boundary)


def _words(plan: rl.Plan) -> Words:
    """The program's words with addresses that a replay could have."""
    program = plan.program
    words = program.words.copy()
    entries = np.full(len(program.kernels), 0x7F00_0000_1000, np.uint64)
    slots, none = program.slot_offsets + np.uint64(0x7F00_0010_0000), np.zeros(0, np.uint64)
    apply_relocs(words, program.relocs, entries, slots, none, np.array([0x7F00_0020_0000], np.uint64))
    return [int(word) for word in words]


@pytest.fixture(
    params=[
        ("host", True, False),
        ("queue", True, False),
        ("queue", False, False),
        ("queue", False, True),
        ("other-queue", True, True),
    ],
    ids=lambda row: f"{row[0]}{'-carried' * row[1]}{'-slot' * row[2]}",
)
def streams(request: pytest.FixtureRequest) -> list[tuple[str, Words]]:
    """(target, words) of one plan on a target of each family, which is what the linter's tables know."""
    boundary, carried, slot = request.param
    return [(t, _words(_plan(t, boundary, carried=carried, slot=slot))) for t in ("gfx1010", "gfx1100", "gfx1201")]


def test_whole_streams_are_clean(streams: list[tuple[str, Words]]) -> None:
    """Nothing to say about what the planner emits."""
    assert [lint(words, target) for target, words in streams] == [[]] * len(streams)


def test_any_dropped_or_added_dword_is_found(streams: list[tuple[str, Words]]) -> None:
    """Zeros, copies of the dword, packet headers; in a warm entry too, and its NOP's own header."""
    for target, words in streams:
        for at, word in enumerate(words):
            assert lint([*words[:at], *words[at + 1 :]], target), f"{target} without dword {at}"
            for added in (0, word, 0xC0004600, 0xFFFFFFFF):
                assert lint([*words[:at], added, *words[at:]], target), f"{target}: {added:#x} before dword {at}"


def test_any_other_count_is_found(streams: list[tuple[str, Words]]) -> None:
    """A NOP that passes over more or less than the warm entry among them."""
    for target, words in streams:
        for command in read(words, target):
            at = command.dword
            for count in {*range(40), 0x3FFE, 0x3FFF} - {words[at] >> 16 & 0x3FFF}:
                other = [*words[:at], words[at] & 0xC000FFFF | count << 16, *words[at + 1 :]]
                assert lint(other, target), f"{target}: count {count} at dword {at}"
