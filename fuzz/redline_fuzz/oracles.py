# SPDX-License-Identifier: Apache-2.0
"""The oracles: each takes a judged case and says "", what is wrong with Redline, or None where it cannot judge.

Safe, minimal and verify compare runs of the hostile machine with the sequential reference; bounds counts drains
against a longest path of its own; round trip, lowering and replay ask the encoder, five families and every boundary;
errors asks whether what is refused would really go wrong. To add one, write a function and put it into `ORACLES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

import redline as rl
from redline.encoders import family_for
from redline.encoders.decode import decode
from redline.fences import Fence, Fences
from redline.plan import BOUNDARIES
from redline_fuzz import device_stage, events
from redline_fuzz.cases import Between, Case, working
from redline_fuzz.fewest import fewest
from redline_fuzz.forms import forms
from redline_fuzz.judging import Judged, Tally, longest_chain, on_target
from redline_fuzz.refusals import errors
from redline_fuzz.schedules import Schedule
from redline_fuzz.stage import Stage

FIVE = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")

#: Findings that concern who is no launch: rules keep these fences, and a run need not show them.
_NO_LAUNCH = ("host", "other queues")


@dataclass(frozen=True)
class Failure:
    """What an oracle says of a case."""

    oracle: str
    text: str
    case: Case


def judge(case: Case, names: tuple[str, ...], tally: Tally) -> Failure | None:
    """The first of the named oracles that finds something wrong."""
    judged = Judged(case, tally)
    tally.examples += 1
    for name in names:
        if (case.order == "explicit") == (name == "errors"):
            text = ORACLES[name](judged)
            (tally.passed_over if text is None else tally.judged)[name] += 1
            if text:
                return Failure(name, text, case)
    return None


def safe(judged: Judged) -> str:
    """Every schedule ends in the reference's memory, and every launch reads what it should."""
    return judged.difference(judged.fences)


def minimal(judged: Judged) -> str | None:
    """Without any one drain or class, some schedule differs; fences that a named rule keeps are excused."""
    if judged.case.fences == "full":
        return _wider(judged) or None
    wider = _wider(judged)
    if wider:
        return wider
    batch = judged.with_between(_batch(judged.case))
    for fewer, what in weaker(judged.fences):
        judged.tally.tried["minimal"] += 1
        if not batch.shows(fewer):
            return f"{what} can be taken away: no schedule differs"
        judged.tally.killed["minimal"] += 1
    return ""


def _wider(judged: Judged) -> str:
    """A rule asks for classes that some launch reads through, no others; only the command processor reads through P."""
    case = judged.case
    reads_p = case.target.startswith("gfx12") and any(node.counts is not None for node in case.nodes)
    for fence in judged.fences.inner:
        if fence.rule and "P" in fence.acquire and not reads_p:
            return f"rule {fence.rule} acquires P at position {fence.at}, but nothing is read through it"
    return ""


def _batch(case: Case) -> Case:
    """Three replays with nothing between them where more than one are derived for, and memory that is not zero."""
    return replace(working(case), between=() if case.boundary == "host" else (Between(), Between()))


def weaker(fences: Fences) -> Iterator[tuple[Fences, str]]:
    """The same without one drain or one class, and what was taken; but for what a rule keeps."""
    inner = fences.inner
    for at, fence in enumerate(inner):
        if fence.rule:
            continue
        if fence.drain:
            # At the warm entry the acquire alone may stay; elsewhere it stands behind its drain.
            kept = (replace(fence, drain=False),) if fence.at == 0 and fence.acquire else ()
            yield Fences((*inner[:at], *kept, *inner[at + 1 :])), f"the drain before position {fence.at}"
        for name in fence.acquire:
            left = replace(fence, acquire=tuple(other for other in fence.acquire if other != name))
            rest = (left,) if left.drain or left.acquire else ()
            yield Fences((*inner[:at], *rest, *inner[at + 1 :])), f"{name} at position {fence.at}"


def verify(judged: Judged) -> str:
    """`verify` and the machine agree on fences with something changed."""
    if rl.verify(judged.plan, judged.fences):
        return f"verify refuses derived fences: {rl.verify(judged.plan, judged.fences)[0]}"
    batch = judged.with_between(_batch(judged.case))
    for fences in _mutated(judged):
        findings = rl.verify(judged.plan, fences)
        judged.tally.tried["verify"] += 1
        wrong = batch.shows(fences, 0) or judged.difference(fences, 0)
        judged.tally.killed["verify"] += bool(wrong)
        if wrong and not findings:
            return f"verify believes {fences.inner}: {wrong}"
        shown = [finding for finding in findings if _shows(judged.case, finding)]
        if shown and not wrong:
            return f"verify refuses {fences.inner}, but no schedule differs: {shown[0]}"
    return ""


def _shows(case: Case, finding: rl.Finding) -> bool:
    """Whether a run must show it: not what is no launch's, nor what `other-queue` keeps at its entry by rule."""
    between_launches = finding.first not in _NO_LAUNCH and finding.second not in _NO_LAUNCH
    return between_launches and not (finding.carried and case.boundary == "other-queue")


def _mutated(judged: Judged) -> Iterator[Fences]:
    """Fences with one thing taken away, moved, exchanged, or two at once."""
    taken = [fences for fences, _ in weaker(judged.fences)]
    yield from taken
    random = Random(judged.case.seed)
    first = int(judged.case.boundary == "host")
    for _ in range(3):
        inner = {fence.at: fence for fence in random.choice([*taken, judged.fences]).inner}
        at = random.randrange(first, len(judged.case.nodes)) if len(judged.case.nodes) > first else None
        if at is not None:
            acquire = random.choice(((), ("K",), ("V",), ("K", "V")))
            inner[at] = Fence(at, acquire, drain=random.random() < 0.7 or at > 0 or not acquire)
            yield Fences([inner[place] for place in sorted(inner)])


def words(judged: Judged) -> str:
    """What `verify_words` believes of damaged words, the machine runs without a difference."""
    batch = judged.with_between(_batch(judged.case))
    program = judged.lower(judged.fences)
    damaged = list(_damaged(program))
    for changed, what in Random(judged.case.seed).sample(damaged, min(len(damaged), _DAMAGED)):
        judged.tally.tried["words"] += 1
        findings = rl.verify_words(
            judged.plan, changed, judged.case.target, ib=program.ibs[0], gfx10_wait=judged.case.gfx10_wait
        )
        if findings:
            judged.tally.killed["words"] += 1
            continue
        other = replace(program, words=changed)
        wrong = batch.difference_of(other, 0) or judged.difference_of(other, 0)
        if wrong:
            return f"verify_words believes words with {what}: {wrong}"
    return ""


_DAMAGED = 6
_NOP = 0xC0001000
_GLM = (4, 5)  # buffers do not need them, and one without the other is refused as a packet


def _damaged(program: rl.Program) -> Iterator[tuple[NDArray[np.uint32], str]]:
    """The words with one bit of one GCR_CNTL cleared, or with one drain turned into a NOP."""
    for command in decode(program.words.tolist(), family_for(program.target)):
        at = command.dword
        if command.name == "ACQUIRE_MEM":
            gcr = int(program.words[at + 7])
            for bit in (bit for bit in range(19) if gcr >> bit & 1 and bit not in _GLM):
                changed = program.words.copy()
                changed[at + 7] = gcr & ~(1 << bit)
                yield changed, f"bit {bit} of GCR_CNTL at dword {at} cleared"
        elif command.name in ("EVENT_WRITE", "WAIT_REG_MEM"):
            changed = program.words.copy()
            changed[at] = _NOP | len(command.words) - 2 << 16
            yield changed, f"{command.name} at dword {at} left out"


def bounds(judged: Judged) -> str | None:
    """Drains between launches are the longest chain's edges, which no order beats; entry and exit count apart."""
    case, chain = judged.case, longest_chain(judged.case)
    if case.fences == "full":
        return None
    drains = judged.fences.drains
    least = chain + (case.boundary == "other-queue")  # which drains at entry, whatever launches do
    most = least + (case.boundary == "queue")
    if case.schedule == "levels" and not least <= drains <= most:
        return f"{drains} drains for a longest chain of {chain} edges"
    if drains < least:  # in a recorded order too
        return f"{drains} drains cannot serve a chain of {chain} edges"
    stats = judged.plan.stats()
    if stats["drains"] != drains or stats["acquires"] != judged.fences.acquires:
        return f"stats() counts {stats['drains']} drains and {stats['acquires']} acquires, the fences {judged.fences}"
    return ""


def round_trip(judged: Judged) -> str:
    """The decoder reads the words as what was lowered: launches, drains, acquires, and nothing else."""
    program, family = judged.lower(judged.fences), family_for(judged.case.target)
    commands = decode(program.words.tolist(), family)
    if [word for command in commands for word in command.words] != program.words.tolist():
        return "the decoded packets are not the words"
    for warm in (False, True) if judged.case.boundary != "host" else (False,):
        wanted = events.wanted(judged.plan, judged.fences, warm=warm)
        seen = events.found(program, judged.fences, warm=warm)
        if seen != wanted:
            return f"a {'warm' if warm else 'cold'} start decodes as {seen}, not as {wanted}"
    found = rl.verify_words(
        judged.plan, program.words, judged.case.target, ib=program.ibs[0], gfx10_wait=judged.case.gfx10_wait
    )
    if found:
        return f"verify_words: {found[0]}"
    relocated = program.words[program.relocs["dword"]]
    return "" if not relocated.any() else "a relocated dword is not 0"


def lowering(judged: Judged) -> str:
    """Five families agree on memory and on what every launch reads."""
    for target in FIVE:
        other = Judged(on_target(judged.case, target), judged.tally)
        text = _few(other)
        if text:
            return f"{target}: {text}"
    return ""


def replays(judged: Judged) -> str:
    """Replays back to back with patches between them equal as many sequential runs, under every boundary."""
    between = (Between(patch=bool(judged.case.slots)), Between(), Between(host=True), Between())
    for boundary in BOUNDARIES:
        other = Judged(replace(judged.case, boundary=boundary, between=between), judged.tally)
        text = _few(other)
        if text:
            return f"{boundary}: {text}"
    return ""


_FEW = (
    Schedule("oldest", reverse=True),
    Schedule("newest", reverse=True),
    Schedule("newest", keeps=False),
    Schedule("random", seed=1),
)


def _few(judged: Judged) -> str:
    with Stage(judged.case, judged.plan, judged.lower(judged.fences)) as stage:
        for schedule in _FEW:
            judged.tally.schedules += 1
            text = judged.compare(stage.run(schedule))
            if text:
                return f"{text}; under {schedule}"
    return ""


def device(judged: Judged) -> str | None:
    """The same through `Device` and `Replay`: patch, bind, host access, and their choice of cold and warm."""
    if not device_stage.fits(judged.case):
        return None
    stage = device_stage.DeviceStage(judged.case)
    for schedule in _FEW[:2]:
        judged.tally.schedules += 1
        text = judged.compare(stage.run(schedule))
        if text:
            return f"{text}; under {schedule}"
    return ""


ORACLES: dict[str, Callable[[Judged], str | None]] = {
    "safe": safe,
    "minimal": minimal,
    "verify": verify,
    "words": words,
    "bounds": bounds,
    "fewest": fewest,
    "round-trip": round_trip,
    "lowering": lowering,
    "replay": replays,
    "errors": errors,
    "device": device,
    "forms": forms,
}
