# SPDX-License-Identifier: Apache-2.0
"""Check a program of several lanes against the definition of safe: pair by pair, on its decoded packets and words.

Shares nothing with what made the program (`lanes.py`, `phases.py`, `aql_lanes.py`, `forms.py`) but the plan. Writes
down for every moment of a replay (a step of a lane, the end of a launch) which moments have certainly passed by then.
For a recorded before b: if they conflict, or b is after a, the end of a has passed when b starts; and for each class
through which b reads a byte that a wrote, an acquire of that class lies on b's lane before b and behind the end of a.
Lanes whose streams loop (independent components) must have nothing to do with one another, and each is checked by
`verify_words`. Squares with the launches: for tests and for doubts, not for every plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .encoders import family_for
from .fitting import require
from .foreign import require_target, verify_words
from .lane_steps import LaneReader, LaneStep
from .packets import FINAL, IB
from .safety import Finding, read_through

if TYPE_CHECKING:
    from .launch import Launch
    from .plan import Plan
    from .program import Program


def verify_program(plan: Plan, program: Program) -> tuple[Finding, ...]:
    """Everything that is not safe when this program of the plan is submitted; empty when packets and words suffice.

    `verify` and `verify_words` judge one stream; this judges every form. Raises RecordError for what is no plan or no
    program, EncodeError for words that are no packets of the target, UnsupportedTarget for a program of another one,
    UnsupportedKernel for a plan that recording would have refused.
    """
    require(plan, "Plan", "verify_program")
    require(program, "Program", "verify_program")
    require_target(plan, program.target, "verify_program")
    if strange := sorted(set(program.order) - set(range(len(plan.launches)))):
        return (Finding("not this plan", "host", "host", f"launches {strange}, which the plan does not have"),)
    releases = (True, False) if plan.boundary == "queue" else (True,)
    found: dict[Finding, None] = {}
    for release in releases:
        reader = LaneReader(plan, program, release=release)
        moments = _Moments(reader.lanes)
        found.update(dict.fromkeys((*reader.findings, *_counted(plan, moments))))
        if program.form in ("pm4", "pm4 lanes"):
            found.update(dict.fromkeys(_apart(plan, moments)))
            found.update(dict.fromkeys(_joined(moments, looping=True)))
        else:
            found.update(dict.fromkeys(_pairs(plan, moments)))
            found.update(dict.fromkeys(_with_host(plan, moments, release=release)))
    if program.form in ("pm4", "pm4 lanes"):
        found.update(dict.fromkeys(_each_stream(plan, program, moments)))
    return tuple(found)


class _Moments:
    """What has passed at each moment, as bits of an int: step k of all lanes in a row is bit k, and the end of its
    launch the bit as many places higher as there are steps.
    """

    def __init__(self, lanes: list[list[LaneStep]]) -> None:
        self.steps = [step for lane in lanes for step in lane]
        self.lane_of = [number for number, lane in enumerate(lanes) for _ in lane]
        self.starts = {step.launch: at for at, step in enumerate(self.steps) if step.does == "launch"}
        self.completions: dict[int, list[int]] = {}  # signal -> steps that complete it
        for at, step in enumerate(self.steps):
            if step.does == "complete":
                self.completions.setdefault(step.signals[0], []).append(at)
        self.passed = [0] * len(self.steps)
        while self._again():
            pass

    def ended(self, launch: int) -> int:
        """The bit of a launch's end."""
        return 1 << self.starts[launch] + len(self.steps)

    def before(self, at: int) -> Iterator[int]:
        """Earlier steps of the same lane."""
        return iter(range(self.lane_of.index(self.lane_of[at]), at))

    def _again(self) -> bool:
        """One round over all steps; whether anything was learned."""
        changed = False
        for at, step in enumerate(self.steps):
            known = self.passed[at] | 1 << at | self._behind(at, step)
            changed |= known != self.passed[at]
            self.passed[at] = known
        return changed

    def _behind(self, at: int, step: LaneStep) -> int:
        known = 0
        if at and self.lane_of[at - 1] == self.lane_of[at]:
            # Completing by a launch's own end holds nobody back, so what is behind it does not know of that.
            previous = max((b for b in self.before(at) if not self.steps[b].ends), default=-1)
            known |= self.passed[previous] if previous >= 0 else 0
        if step.does == "drain":
            for b in self.before(at):
                known |= self._end(self.steps[b].launch) if self.steps[b].does == "launch" else 0
        if step.ends:
            known |= self._end(step.launch)
        for signal in step.signals if step.does == "wait" else ():
            done = self.completions.get(signal, [])
            known |= self.passed[done[0]] if len(done) == 1 else 0  # who waits for one of several knows of none
        return known

    def _end(self, launch: int) -> int:
        return self.ended(launch) | self.passed[self.starts[launch]]


def _counted(plan: Plan, moments: _Moments) -> Iterator[Finding]:
    """Every launch once, every signal by one producer, and no wait for what never comes."""
    launched = sorted(step.launch for step in moments.steps if step.does == "launch")
    if launched != list(range(len(plan.launches))):
        yield Finding("not this plan", "host", "host", f"launches {launched}, not each once")
    waited = {signal for step in moments.steps if step.does == "wait" for signal in step.signals}
    for signal in sorted(waited | {FINAL}):
        producers = moments.completions.get(signal, [])
        if len(producers) != 1:
            yield Finding("not this plan", "host", "host", f"signal {signal} has {len(producers)} producers")
        elif any(signal in moments.steps[at].signals for at in moments.before(producers[0])):
            yield Finding("not this plan", "host", "host", f"signal {signal} is waited for before its producer's turn")


def _conflicts(plan: Plan, first: Launch, second: Launch) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(kind, classes, buffer) of each pair of accesses that conflicts."""
    for one in first.touches:
        for other in second.touches:
            a, b = plan.buffers[one.buffer], plan.buffers[other.buffer]
            low = max(one.start + a.root_offset, other.start + b.root_offset)
            high = min(one.stop + a.root_offset, other.stop + b.root_offset)
            if a.root == b.root and low < high and (one.writes or other.writes):
                kind = ("WAW" if other.writes else "RAW") if one.writes else "WAR"
                classes = read_through(second, other) if kind == "RAW" else ()
                yield kind, classes, f"{plan.buffers[a.root].name}[{low}:{high}]"


def _launch_pairs(plan: Plan, moments: _Moments) -> Iterator[tuple[Launch, Launch]]:
    known = [launch for launch in plan.launches if launch.index in moments.starts]
    return ((first, second) for second in known for first in known if first.index < second.index)


def _pairs(plan: Plan, moments: _Moments) -> Iterator[Finding]:
    """Order and visibility of every conflict inside one replay."""
    for first, second in _launch_pairs(plan, moments):
        start = moments.starts[second.index]
        conflicts = list(_conflicts(plan, first, second))
        if not moments.passed[start] & moments.ended(first.index):
            if conflicts or first.index in second.after:
                what = f"{conflicts[0][0]} on {conflicts[0][2]}" if conflicts else "after="
                yield Finding("not ordered", first.index, second.index, what)
            continue
        for kind, classes, where in conflicts:
            for cache in classes:
                if not _acquired(moments, start, cache, moments.ended(first.index)):
                    what = f"{kind} on {where} through {cache}"
                    yield Finding("ordered but not visible", first.index, second.index, what, cache=cache)
            if kind == "RAW" and not _released(moments, first.index, start):
                what = f"{kind} on {where} without a release"
                yield Finding("ordered but not visible", first.index, second.index, what, cache="release")


def _released(moments: _Moments, writer: int, start: int) -> bool:
    """Whether an AQL launch that has ended by then released what the writer stored: itself, or one behind its end."""
    if moments.steps[moments.starts[writer]].release < 0:
        return True  # in an indirect buffer nobody asks for one
    ended = [launch for launch in moments.starts if moments.passed[start] & moments.ended(launch)]
    behind = [launch for launch in ended if moments.passed[moments.starts[launch]] & moments.ended(writer)]
    return any(moments.steps[moments.starts[launch]].release > 0 for launch in (writer, *behind))


def _acquired(moments: _Moments, start: int, cache: str, behind: int) -> bool:
    """Whether an acquire of the cache lies on the lane before this step and behind that moment (0: any)."""
    found = (at for at in moments.before(start) if cache in moments.steps[at].caches)
    return any(moments.passed[at] & behind == behind for at in found)


def _with_host(plan: Plan, moments: _Moments, *, release: bool) -> Iterator[Finding]:
    """Lanes start cold, behind all that ran on their queue before; the end is behind everything."""
    for launch, start in moments.starts.items():
        if not any(moments.steps[at].does == "drain" for at in moments.before(start)):
            yield Finding("not ordered", "host", launch, "no drain at the lane's start")
        for cache in ("I", "K", "V", "GL2_INV"):
            if not _acquired(moments, start, cache, 0):
                what = f"what the host wrote through {cache}"
                yield Finding("ordered but not visible", "host", launch, what, cache=cache)
    yield from _joined(moments, looping=False)
    if release:
        yield from _shown(plan, moments)


def _joined(moments: _Moments, *, looping: bool) -> Iterator[Finding]:
    """The host is told behind every lane's last step; and every launch's end, unless the next replay drains that."""
    done = moments.completions.get(FINAL, [])
    known = moments.passed[done[0]] if done else 0
    for at, step in enumerate(moments.steps):
        last = at + 1 == len(moments.steps) or moments.lane_of[at + 1] != moments.lane_of[at]
        if last and not known >> at & 1:
            yield Finding("not ordered", "host", "host", f"the replay ends before lane {moments.lane_of[at]} does")
        if step.does == "launch" and not looping and not known & moments.ended(step.launch):
            yield Finding("not ordered", step.launch, "host", "the submission ends before the launch does")


def _shown(plan: Plan, moments: _Moments) -> Iterator[Finding]:
    """What the host reads is written back behind the end of each writer, and before the host is told."""
    kinds = family_for(plan.target).l2_kinds
    done = moments.completions.get(FINAL, [])
    known = moments.passed[done[0]] if done else 0
    backs = [at for at, step in enumerate(moments.steps) if "GL2_WB" in step.caches and known >> at & 1]
    for launch in plan.launches:
        memories = {plan.buffers[plan.buffers[touch.buffer].root] for touch in launch.touches if touch.writes}
        read = [memory.name for memory in memories if memory.role in ("out", "inout") and memory.kind in kinds]
        ended = moments.ended(launch.index) if launch.index in moments.starts else 0
        if read and not (known & ended and any(moments.passed[at] & ended for at in backs)):
            what = f"host reads {', '.join(sorted(read))}, which may be in L2 only"
            yield Finding("ordered but not visible", launch.index, "host", what, cache="GL2_WB")


def _apart(plan: Plan, moments: _Moments) -> Iterator[Finding]:
    """Streams that loop know nothing of one another: what conflicts is on one lane."""
    for first, second in _launch_pairs(plan, moments):
        lanes = [moments.lane_of[moments.starts[launch.index]] for launch in (first, second)]
        if lanes[0] != lanes[1] and (first.index in second.after or any(_conflicts(plan, first, second))):
            yield Finding("not ordered", first.index, second.index, f"lanes {lanes[0]} and {lanes[1]}")


def _each_stream(plan: Plan, program: Program, moments: _Moments) -> Iterator[Finding]:
    """Each lane as a stream of its own, cold and warm. The buffers of a lane stand behind one another."""
    buffers = _buffers(program)
    for lane, ibs in enumerate(buffers):
        order = tuple(
            step.launch
            for at, step in enumerate(moments.steps)
            if moments.lane_of[at] == lane and step.does == "launch"
        )
        first, last = program.ibs[ibs[0]], program.ibs[ibs[-1]]
        row = [int(at) for at in (first["cold"], first["warm"], last["end"], last["end_release"])]
        words, ib = program.words[: row[-1]].tolist()[row[0] :], [at - row[0] for at in row]
        part = replace(plan, order=order)
        yield from verify_words(part, words, plan.target, ib=ib, gfx10_wait=program.options.gfx10_wait)


def _buffers(program: Program) -> list[list[int]]:
    """Indices of the indirect buffers of each lane, in the order of its packets."""
    made: list[list[int]] = [[] for _ in range(program.lanes)]
    for row in program.packet_relocs[program.packet_relocs["kind"] == IB]:
        made[int(program.packets["lane"][row["packet"]])].append(int(row["index"]))
    return made
