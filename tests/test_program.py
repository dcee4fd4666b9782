# SPDX-License-Identifier: Apache-2.0
"""Programs: words against outside answers, relocations, patch points, digests, limits, comparison by value."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import redline as rl
from redline.encoders.emit import apply_relocs
from redline.kernarg import TYPES
from redline.lowering import MAX_IB_DWORDS
from tests.graphs import Node, build, nodes

ANSWERS = Path(__file__).parent / "answers" / "pm4"
FLUSH = [0xC0004600, 0x00000407]
FIVE = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")


def _answer(target: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ANSWERS / f"{target}.json").read_text())
    return loaded


def _kernel(answer: dict[str, Any], name: str) -> rl.Kernel:
    """A kernel with the descriptor that LLVM built for the answer's example."""
    d = answer["descriptor"]
    return replace(
        rl.Kernel.synthetic(name, target=answer["target"]),
        rsrc1=int(d["rsrc1"], 16),
        rsrc2=int(d["rsrc2"], 16),
        rsrc3=int(d["rsrc3"], 16),
        properties=int(d["kernel_code_properties"], 16),
        group_bytes=d["group_segment_fixed_size"],
    )


def _relocated(program: rl.Program, answer: dict[str, Any]) -> list[int]:
    """The program's words with the answer's addresses in place."""
    example = answer["example"]
    words = program.words.copy()
    entries = np.array([int(example["entry_a"], 16), int(example["entry_b"], 16)], np.uint64)
    slots = np.array([int(example["kernarg_a"], 16), int(example["kernarg_b"], 16)], np.uint64)
    none = np.zeros(1, np.uint64)
    apply_relocs(words, program.relocs, entries, slots, none, none)
    return [int(word) for word in words]


@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1201"])
def test_a_plan_of_two_launches_has_the_words_of_the_answer(target: str) -> None:
    """The whole stream typed from public headers, behind the drain that planner streams start with."""
    answer = _answer(target)
    graph = rl.Graph()
    x = graph.buffer("x", 4096, role="inout")
    for name in ("a", "b"):
        graph.launch(_kernel(answer, name), global_size=1024, block=256, args=[rl.update(x)])
    program = graph.compile(gfx10_wait="partial_flush", elide=False).program
    assert _relocated(program, answer) == FLUSH + [int(word, 16) for word in answer["stream"]]


def test_gfx10_drains_by_a_fence_word() -> None:
    """The three packets of PAL's wait-idle: zero F, then for the k-th drain store k and wait for at least k."""
    graph = build([Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),))])
    graph10 = rl.Graph()
    x = graph10.buffer("x", 4)
    for _ in range(2):
        graph10.launch(rl.Kernel.synthetic("k", target="gfx1030"), grid=1, block=1, args=[rl.update(x)])
    plan = graph10.compile()
    words, fence = plan.program.words.copy(), 0x7F00_1234_5678
    none = np.zeros(2, np.uint64)
    apply_relocs(words, plan.program.relocs, none, none, none, np.array([fence], np.uint64))
    low, high = fence & 0xFFFFFFFF, fence >> 32
    text = " ".join(f"{int(word):08X}" for word in words)
    assert text.startswith(f"C0033700 00100200 {low:08X} {high:08X} 00000000")
    for k in (1, 2, 3):
        drain = f"C0064900 00000528 23010000 {low:08X} {high:08X} {k:08X} 00000000 00000000"
        wait = f"C0053C00 00000015 {low:08X} {high:08X} {k:08X} FFFFFFFF 00000004"
        assert text.count(f"{drain} {wait}") == 1
    assert "C0004600" not in text
    assert plan.program.fence_words == 1
    assert graph.compile().program.fence_words == 0


@given(items=nodes())
def test_relocated_dwords_are_zero_and_everything_else_is_final(items: list[Node]) -> None:
    """A program holds no address; applying relocations writes the listed dwords and no other."""
    program = build(items).compile().program
    at = program.relocs["dword"]
    assert len(set(at.tolist())) == len(at)
    assert not program.words[at].any()
    words = program.words.copy()
    ones = np.full(max(len(items), 3), 0xFFFF_FFFF_FFFF_FFFF, np.uint64)
    apply_relocs(words, program.relocs, ones, ones, ones, ones)
    changed = np.flatnonzero(words != program.words)
    assert set(changed.tolist()) == set(at.tolist())


@pytest.mark.parametrize("target", FIVE)
def test_elision_leaves_out_words_and_changes_no_dispatch(target: str) -> None:
    """The registers that each dispatch sees are the same with and without elision."""
    graph = rl.Graph()
    x = graph.buffer("x", 64)
    for i in range(6):
        kernel = rl.Kernel.synthetic(f"k{i % 2}", target=target)
        graph.launch(kernel, grid=1 + i // 3, block=1, args=[rl.update(x[i : i + 1])])
    whole, less = graph.compile(elide=False).program, graph.compile().program
    assert len(less.words) < len(whole.words)
    assert _dispatches(less) == _dispatches(whole)


def _dispatches(program: rl.Program) -> list[dict[int, int]]:
    """The register file at each DISPATCH_DIRECT, with relocated values replaced by what they name."""
    named = {int(r["dword"]): 1 << 40 | hash((int(r["kind"]), int(r["half"]), int(r["index"]))) for r in program.relocs}
    for r in program.relocs:
        if (int(r["kind"]), int(r["half"])) == (1, 1):  # the arena's high half is one value
            named[int(r["dword"])] = -1
    registers: dict[int, int] = {}
    found, at, words = [], 0, program.words
    while at < len(words):
        header = int(words[at])
        opcode, count = header >> 8 & 0xFF, (header >> 16 & 0x3FFF) + 2
        if opcode == 0x76:
            for i in range(count - 2):
                registers[int(words[at + 1]) + i] = named.get(at + 2 + i, int(words[at + 2 + i]))
        if opcode == 0x15:
            found.append(dict(registers))
        at += count
    return found


def test_patch_points_name_slot_offset_size_and_kind() -> None:
    """One slot at several points; kernarg slots are 64 bytes apart; offsets count in the whole image."""
    graph = rl.Graph()
    x = graph.buffer("x", 64)
    kernel = rl.Kernel.synthetic("k", pointers=1, scalars=(4, 4))
    for i in range(2):
        args = [rl.update(x[i : i + 1]), rl.slot("b", "f4"), rl.slot("a", "u4", default=7)]
        graph.launch(kernel, grid=1, block=1, args=args)
    program = graph.compile().program
    kinds = list(TYPES)
    assert [slot.name for slot in program.slots] == ["a", "b"]
    assert sorted(tuple(int(v) for v in row) for row in program.patches.tolist()) == [
        (0, 12, 4, kinds.index("u4")),
        (0, 76, 4, kinds.index("u4")),
        (1, 8, 4, kinds.index("f4")),
        (1, 72, 4, kinds.index("f4")),
    ]
    assert program.kernarg[12:16].tobytes() == program.kernarg[76:80].tobytes() == bytes([7, 0, 0, 0])
    assert [int(v) for v in program.slot_offsets] == [0, 64]
    assert [tuple(int(v) for v in row) for row in program.kernarg_relocs.tolist()] == [(0, 0, 0), (64, 0, 1)]


def test_the_ib_row_says_where_the_tail_starts() -> None:
    """Without the final drain and release the stream ends before them: 10 dwords of flush and acquire."""
    program = build([Node()]).compile().program
    (row,) = program.ibs
    assert (int(row["cold"]), int(row["warm"])) == (0, 0)
    assert int(row["end_release"]) == len(program.words)
    tail = [int(word) for word in program.words[int(row["end"]) :]]
    assert tail[:3] == [*FLUSH, 0xC0065800]
    assert len(tail) == 10


def test_equal_plans_have_equal_programs_and_digests_see_every_column() -> None:
    """Value comparison by digest; another option or argument is another program."""
    items = [Node(writes=((0, 0, 1),)), Node(reads=((0, 0, 1),))]
    one, two = build(items).compile().program, build(items).compile().program
    assert one == two
    assert one.digest == two.digest
    assert one != build(items).compile(elide=False).program
    for column in ("words", "kernarg", "relocs", "kernarg_relocs", "ibs", "slot_offsets"):
        changed = getattr(one, column).copy().view(np.uint8)
        changed[0] ^= 1
        assert replace(one, **{column: changed}) != one, column


def test_a_digest_sees_what_relocations_and_patch_points_name() -> None:
    """Other code under the same name, another default, another type of a slot: another program."""
    graph = rl.Graph()
    x = graph.buffer("x", 4)
    args: list[Any] = [rl.update(x), rl.slot("s", "i4", default=1)]
    graph.launch(rl.Kernel.synthetic("k", scalars=(4,)), grid=1, block=1, args=args)
    program = graph.compile().program
    (kernel,), (slot,) = program.kernels, program.slots
    for changes in (
        {"kernels": (replace(kernel, code_sha256="00" * 32),)},
        {"kernels": (replace(kernel, entry_offset=512),)},
        {"slots": (replace(slot, default=None),)},
        {"slots": (replace(slot, default=bytes(4)),)},
        {"slots": (replace(slot, type="u4"),)},
        {"patches": program.patches[:0]},
        {"fence_words": 1},
    ):
        assert replace(program, **changes) != program, changes


def test_a_long_program_is_cut_where_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """IB_SIZE has 20 bits: several buffers behind one another, entries in the first, the tail in the last. A part that
    cannot be cut and does not fit is refused with both numbers.
    """
    assert MAX_IB_DWORDS == 0xFFFFF
    plan = build([Node(writes=((0, 0, 4),)) for _ in range(5)]).compile(boundary="queue")
    whole = plan.program
    monkeypatch.setattr("redline.lowering.MAX_IB_DWORDS", 90)
    cut = rl.lower(plan, plan.fences)
    ends = cut.ibs["end_release"].tolist()
    assert len(ends) > 1
    assert cut.ibs["cold"].tolist() == [0, *ends[:-1]]
    assert all(end - start <= 90 for start, end in zip(cut.ibs["cold"].tolist(), ends, strict=True))
    assert cut.ibs[0]["warm"] == whole.ibs[0]["warm"]
    assert cut.ibs["end"].tolist()[:-1] == ends[:-1]
    assert ends[-1] - cut.ibs[-1]["end"] == whole.ibs[0]["end_release"] - whole.ibs[0]["end"]
    assert sum(cut.ib_launches) == len(plan.launches)
    assert not rl.verify_words(plan, cut.words, plan.target, ib=(0, cut.ibs[0]["warm"], cut.ibs[-1]["end"], ends[-1]))
    monkeypatch.setattr("redline.lowering.MAX_IB_DWORDS", 10)
    with pytest.raises(rl.EncodeError, match=r"\d+ dwords.*at most 10"):
        rl.lower(plan, plan.fences)
