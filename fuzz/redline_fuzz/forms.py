# SPDX-License-Identifier: Apache-2.0
"""The oracle of the forms of submission: lanes, phases and AQL packets are safe, and nothing of them can be taken away.

One form of each case runs on the hostile machine, whose queues know barrier bits, scopes and signals. Then one barrier
bit, one wait, one acquire or one class is left out, and some schedule must differ. What a named rule keeps (the cold
entry of a lane, releases, the wait of a phase for all of the one before, the ends) is excused, and so is an acquire
that another lane's happens to make up for (rule `own-acquires`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

import redline as rl
from redline.aql_lanes import NONE, AqlLanes, AqlLaunch, derive_aql
from redline.encoders import family_for
from redline.encoders.decode import decode
from redline.lanes import chains, phases
from redline.packets import aql_packets
from redline_fuzz.cases import Between, Case, working
from redline_fuzz.judging import Judged
from redline_fuzz.lane_judge import unsafe

#: Weaker programs that are tried of each form; the others are other examples'.
_TRIED = 4

_GLK_INV, _GLV_INV, _GL2 = 1 << 7, 1 << 8, 0x3 << 14


def forms(judged: Judged) -> str:
    """One form of the case, which its seed chooses: safe under every schedule, and some weaker ones are not."""
    random = Random(judged.case.seed)
    options = random.choice(_options(judged.case))
    program = rl.lower(judged.plan, judged.fences, gfx10_wait=judged.case.gfx10_wait, **options)
    text = judged.difference_of(program)
    if text:
        return f"{_named(options)}: {text}"
    weaker = list(_weaker(judged.plan, program))
    for less, what in random.sample(weaker, min(len(weaker), _TRIED)):
        judged.tally.tried["forms"] += 1
        if not _shows(judged, less):
            return f"{_named(options)}: {what} can be taken away: no schedule differs"
        judged.tally.killed["forms"] += 1
    return ""


def _named(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _options(case: Case) -> list[dict[str, Any]]:
    """A form has as many lanes as there is work for; explicit lanes put launches where no rule of ours would."""
    lanes = [Random(f"{case.seed} {at}").randrange(3) for at in range(len(case.nodes))]
    found: list[dict[str, Any]] = [
        {"queues": 4},
        {"queues": 2, "profile": True},
        {"queues": 3, "phased": True},
        {"queues": lanes, "phased": True},
    ]
    if all(node.counts is None for node in case.nodes):
        found += [{"form": "aql", "queues": queues} for queues in (1, 3, lanes)]
    return found


def _shows(judged: Judged, program: rl.Program) -> bool:
    """With other data and other replays before it says no."""
    for extra in (0, 1009, 2003):
        case = replace(working(judged.case), seed=judged.case.seed + extra)
        looped = () if case.boundary == "host" else (Between(), Between())
        for between in (looped, (Between(host=True),)):
            if judged.with_between(replace(case, between=between)).difference_of(program):
                return True
    return False


def _weaker(plan: rl.Plan, program: rl.Program) -> Iterator[tuple[rl.Program, str]]:
    if plan.fence_mode == "full":
        return
    if program.form != "aql":
        yield from _weaker_words(plan, program)
        return
    kernel_of = {launch: program.kernels.index(plan.launches[launch].kernel) for launch in program.order}
    slot_of = {launch: slot for slot, launch in enumerate(program.order)}
    for lanes, what in weaker_lanes(derive_aql(plan, chains(plan, program.options.queues))):
        if what.startswith("acquire") and not unsafe(plan, lanes, own=False):
            continue  # rule own-acquires
        made = aql_packets(plan, lanes, kernel_of, slot_of)
        packets, relocs = made.columns()
        yield replace(program, packets=packets, packet_relocs=relocs, signals=made.signals), what


def weaker_lanes(lanes: AqlLanes) -> Iterator[tuple[AqlLanes, str]]:
    """The same without one barrier bit, one wait or one acquire; what the cold entry of a lane keeps stays."""
    for number, lane in enumerate(lanes):
        for at, row in enumerate(lane):
            for less, what in _less(row, first=at == 0):
                changed = (*lane[:at], less, *lane[at + 1 :])
                yield (*lanes[:number], changed, *lanes[number + 1 :]), f"{what} of #{row.launch}"


def _less(row: AqlLaunch, *, first: bool) -> Iterator[tuple[AqlLaunch, str]]:
    if row.barrier and not first:
        yield replace(row, barrier=False), "barrier bit"
    if row.acquire and not first:
        yield replace(row, acquire=NONE), "acquire"
    for other in row.waits:
        yield replace(row, waits=tuple(w for w in row.waits if w != other)), f"wait for #{other}"


def _weaker_words(plan: rl.Plan, program: rl.Program) -> Iterator[tuple[rl.Program, str]]:
    """One class of one acquire between launches left out. Entries and releases reach GL2; they are rules."""
    found = []  # (phase, lane, dword, GCR_CNTL)
    places = _places(plan, program)
    for command in decode(program.words.tolist(), family_for(program.target)):
        gcr = int(program.words[command.dword + 7]) if command.name == "ACQUIRE_MEM" else _GL2
        if not gcr & _GL2 and not _is_warm_entry(program, command.dword):
            ib = int(np.searchsorted(program.ibs["cold"], command.dword, side="right")) - 1
            found.append((*places[ib], command.dword, gcr))
    for phase, lane, dword, gcr in found:
        for bit, name in ((_GLK_INV, "K"), (_GLV_INV, "V")):
            others = [row for row in found if row[0] < phase and row[1] != lane and row[3] & bit]  # rule own-acquires
            if gcr & bit and not (program.options.phased and others):
                words = program.words.copy()
                words[dword + 7] = gcr & ~bit
                yield replace(program, words=words), f"{name} of the acquire at dword {dword}"


def _places(plan: rl.Plan, program: rl.Program) -> list[tuple[int, int]]:
    """(phase, lane) of each indirect buffer; lanes without phases have one each."""
    if not program.options.phased:
        return [(0, lane) for lane in range(program.lanes)]
    dealt = phases(plan, program.options.queues)
    return [(at, lane) for at, phase in enumerate(dealt) for lane, launches in enumerate(phase) if launches]


def _is_warm_entry(program: rl.Program, dword: int) -> bool:
    """It may keep classes by a rule: patched arguments, other queues."""
    return any(row["warm"] <= dword < row["warm"] + 32 for row in program.ibs if row["warm"] > row["cold"])
