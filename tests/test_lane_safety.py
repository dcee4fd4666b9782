# SPDX-License-Identifier: Apache-2.0
"""`verify_program` believes every form of random plans, and nothing of them from which something was taken away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import decode
from redline.lane_safety import verify_program
from redline.packets import COMPLETION, SIGNAL
from tests.graphs import Node, build, nodes
from tests.test_replay_forms import FORMS, mixed

NOP, BARRIER, ACQUIRE, RELEASE = 0xC0001000, 1 << 8, 3 << 9, 3 << 11

#: Three writers, two readers of all of them, one reader of both: each wait has a reason.
DENSE = [
    *(Node(writes=((0, at, at + 1),)) for at in range(3)),
    *(Node(reads=((0, 0, 3),), writes=((1, at, at + 1),)) for at in range(2)),
    Node(reads=((1, 0, 2),), writes=((2, 0, 1),)),
]


@settings(max_examples=150)
@given(items=nodes(), boundary=st.sampled_from(["host", "queue"]), form=st.sampled_from(sorted(FORMS)))
def test_every_form_of_a_plan_is_safe(items: list[Node], boundary: str, form: str) -> None:
    """The derivations and this check share nothing but the plan."""
    plan = build(items).compile(boundary=boundary, **FORMS[form])
    assert verify_program(plan, plan.program) == ()


@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1151", "gfx1201"])
@pytest.mark.parametrize("form", FORMS)
def test_every_family_is_read(form: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also streams that are cut into several buffers."""
    for most in (0xFFFFF, 90):
        monkeypatch.setattr("redline.lowering.MAX_IB_DWORDS", most)
        for boundary in ("host", "queue", "other-queue"):
            plan = mixed(target).compile(boundary=boundary, **FORMS[form])
            assert verify_program(plan, plan.program) == ()


def _without_bits(program: rl.Program, at: int, bits: int) -> rl.Program:
    packets = program.packets.copy()
    packets["words"][at, 0] &= ~np.uint32(bits)
    return replace(program, packets=packets)


def _weaker_packets(program: rl.Program) -> Iterator[tuple[rl.Program, str]]:
    """One bit, scope, dependency or completion less."""
    for at, header in enumerate(program.packets["words"][:, 0].tolist()):
        for bits, name in ((BARRIER, "barrier bit"), (ACQUIRE, "acquire"), (RELEASE, "release")):
            if header & 0xFF and header & bits:
                yield _without_bits(program, at, bits), f"{name} of packet {at}"
    relocs = program.packet_relocs
    for row in np.flatnonzero(relocs["kind"] == SIGNAL):
        what = "completion" if relocs["word"][row] == COMPLETION else "dependency"
        yield replace(program, packet_relocs=np.delete(relocs, row)), f"{what} of packet {relocs['packet'][row]}"


def _weaker_words(program: rl.Program) -> Iterator[tuple[rl.Program, str]]:
    """One drain or one cache of one acquire less."""
    family = family_for(program.target)
    for command in decode(program.words.tolist(), family):
        words = program.words.copy()
        if command.name == "EVENT_WRITE":
            words[command.dword : command.dword + 2] = NOP, 0
            yield replace(program, words=words), f"drain at dword {command.dword}"
        for name in ("GLK_INV", "GLV_INV", "GL2_INV", "GL2_WB") if command.name == "ACQUIRE_MEM" else ():
            if command.fields[name]:
                less = words.copy()
                less[command.dword + 7] &= ~np.uint32(family.gcr.pack(**{name: 1}))
                yield replace(program, words=less), f"{name} at dword {command.dword}"


def _needless(program: rl.Program, what: str) -> bool:
    """Kept by the rule `host-exit`, or for nobody: a lane's last packet waits although its launches are waited for by
    others too, in an indirect buffer there is nothing left to wait for, and each phase of a lane has a signal.
    """
    name, at = what.rsplit(" ", 1)
    relocs = program.packet_relocs[program.packet_relocs["kind"] == SIGNAL]
    if name == "barrier bit of packet":
        return program.lanes > 1 and not program.launches_of(int(at))
    ends = relocs["index"][(relocs["packet"] == int(at)) & (relocs["word"] == COMPLETION)]
    return (
        name == "completion of packet" and not np.isin(ends, [0, *relocs["index"][relocs["word"] < COMPLETION]]).all()
    )


@pytest.mark.parametrize("queues", [1, 2, [0, 1, 2, 0, 1, 2], [3, 3, 1, 0, 1, 2]])
def test_nothing_of_an_aql_program_can_go(queues: int | list[int]) -> None:
    """The fewest waits, bits and scopes, and the named rules, are all asked for."""
    plan = build(DENSE).compile(form="aql", queues=queues)
    assert verify_program(plan, plan.program) == ()
    for less, what in _weaker_packets(plan.program):
        if "release" in what and plan.program.launches_of(int(what.split()[-1])) == (5,):
            continue  # nobody reads #5 but the host, for whom the exit releases
        assert verify_program(plan, less) or _needless(plan.program, what), what


@pytest.mark.parametrize("boundary", ["host", "queue"])
def test_nothing_of_a_dense_phased_program_can_go(boundary: str) -> None:
    """Waits between phases, drains at their ends, acquires, the exit; without the release too."""
    plan = build(DENSE).compile(boundary=boundary, queues=3, phased=True)
    for less, what in (*_weaker_packets(plan.program), *_weaker_words(plan.program)):
        assert verify_program(plan, less) or _needless(plan.program, what), what
    ibs = plan.program.ibs.copy()
    ibs["end"] -= 2  # what stood there before: a phase whose drain goes with the release
    assert bool(verify_program(plan, replace(plan.program, ibs=ibs))) is (boundary == "queue")


def test_nothing_of_independent_lanes_can_go() -> None:
    """Neither of a stream nor of the join; and what conflicts is not on two lanes."""
    chain = [Node(writes=((0, 0, 4),)), Node(reads=((0, 0, 4),), writes=((0, 0, 4),))]
    other = [Node(writes=((1, 0, 4),)), Node(reads=((1, 0, 4),), writes=((1, 0, 4),))]
    plan = build([*chain, *other], role="inout").compile(queues=2)
    assert plan.program.lanes == 2
    for less, what in (*_weaker_packets(plan.program), *_weaker_words(plan.program)):
        assert verify_program(plan, less) or _needless(plan.program, what), what
    joined = build([chain[0], other[0], other[1], Node(reads=((0, 0, 4), (1, 0, 4)))]).compile()
    found = verify_program(joined, plan.program)
    assert any(finding.kind == "not ordered" and finding.what == "lanes 0 and 1" for finding in found)


def _changed(program: rl.Program, word: int, value: int) -> rl.Program:
    packets = program.packets.copy()
    packets["words"][0, word] = value
    return replace(program, packets=packets)


@pytest.mark.parametrize(
    "edit",
    [
        lambda p: _changed(p, 3, 77),  # another grid
        lambda p: _changed(p, 1, 2 | 1 << 16),  # another block
        lambda p: _changed(p, 7, 64),  # group memory that nobody asked for
        lambda p: _changed(p, 0, 5),  # barrier-OR
        lambda p: replace(p, packet_relocs=p.packet_relocs[1:]),  # no kernel
        lambda p: replace(p, packets=p.packets[:-1]),  # no end
    ],
)
def test_other_packets_are_not_this_plan(edit: Any) -> None:
    """What a packet launches is compared with what was recorded."""
    plan = build(DENSE).compile(form="aql")
    assert verify_program(plan, edit(plan.program))


def test_lanes_do_not_share_a_fence_word() -> None:
    """gfx10 drains wait for a word of their own; another lane's store would end the wait."""
    plan = mixed("gfx1010").compile(queues=2)
    relocs = plan.program.relocs.copy()
    relocs["index"][(relocs["kind"] == 3)] = 0
    found = verify_program(plan, replace(plan.program, relocs=relocs))
    assert [finding.what for finding in found] == ["lanes 0 and 1 drain by the same word"]


@pytest.mark.parametrize("form", FORMS)
def test_programs_of_other_plans_are_told(form: str) -> None:
    """With more launches or fewer they are not this plan's; those for another target are refused."""
    short, long = (build([Node(writes=((0, 0, 4),))] * count).compile(**FORMS[form]) for count in (1, 3))
    for plan, other, seen in ((short, long, r"\[1, 2\], which the plan does not have"), (long, short, "not each once")):
        found = verify_program(plan, other.program)
        assert {finding.kind for finding in found} >= {"not this plan"}
        assert any(re.search(seen, finding.what) for finding in found)
    here, there = (mixed(target).compile(**FORMS[form]) for target in ("gfx1010", "gfx1201"))
    with pytest.raises(rl.UnsupportedTarget, match="RL0301 verify_program: words for gfx1201; allowed: gfx1010"):
        verify_program(here, there.program)
