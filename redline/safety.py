# SPDX-License-Identifier: Apache-2.0
"""Check fences against the definition of safe. Shares no code with `derive` but the data types.

Fences and launches are written down as one row of steps: launches, drains, acquires, and the host at both ends, with
a second replay for each way in which one may follow another. Then, for a before b: if they conflict, or b is
recorded after a, a drain lies between them; and for each class through which b reads a byte that a wrote, an acquire of
that class lies behind the first drain after a and before b. The host writes every in and inout buffer before the entry
and reads every out and inout buffer behind the exit; patched arguments are written before the warm entry.

Of all a that b conflicts with, the latest decides: a drain or acquire behind the latest lies behind the others too. So
each byte segment remembers the latest step that touched it, and a launch asks for the maximum over what it touches.
"""

from __future__ import annotations

import reprlib
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from .errors import HazardError
from .fitting import require
from .launch import INDIRECT

if TYPE_CHECKING:
    from .fences import Fences
    from .launch import Launch, Touch
    from .plan import Plan

#: Findings that `verify` collects before it stops looking.
MOST_FINDINGS: Final = 1000

Kind = Literal["wrong order", "not ordered", "ordered but not visible", "may lose bytes", "not this plan"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the fences do not protect.

    `first` and `second` are recorded indices; "host" stands for whoever touches memory between replays. The range is in
    bytes of `buffer`; `cache` is the class that `second` reads through, "" where the order is at fault. `carried`: the
    two are in successive replays.
    """

    kind: Kind
    first: int | str
    second: int | str
    what: str
    buffer: str = ""
    start: int = 0
    stop: int = 0
    cache: str = ""
    carried: bool = False

    def __str__(self) -> str:
        first, second = (name if isinstance(name, str) else f"#{name}" for name in (self.first, self.second))
        again = " of the next replay" if self.carried else ""
        return f"{self.kind}: {first} -> {second}{again}: {self.what}"

    @property
    def counterexample(self) -> tuple[str, ...]:
        """The shortest run that goes wrong, step by step."""
        first, second = (name if isinstance(name, str) else f"#{name}" for name in (self.first, self.second))
        bytes_ = f"{self.buffer}[{self.start}:{self.stop}]" if self.buffer else "its arguments"
        if self.kind == "ordered but not visible":
            held = f"{self.cache} holds {bytes_} from before {first}"
            return (held, f"{first} writes them and drains", f"{second} reads them through {self.cache}: the old bytes")
        if self.kind == "not ordered":
            return (f"{first} starts on {bytes_}", f"{second} starts too and is faster", f"{first} ends: {self.what}")
        return (self.what,)

    def as_json(self) -> dict[str, Any]:
        """The fields and the counterexample, ready for `json.dumps`."""
        return {**asdict(self), "counterexample": list(self.counterexample)}


class _Place(TypedDict):
    buffer: str
    start: int
    stop: int
    carried: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a submission. `at`: a launch's position in the order. `caches`: what an acquire or release
    reaches.
    """

    does: Literal["launch", "drain", "acquire", "host writes", "host reads", "patch", "next replay", "others write"]
    at: int = -1
    caches: tuple[str, ...] = ()


#: What an acquire or release may reach: two caches in front of GL2, and GL2's own invalidation and write-back.
#: P, what the command processor reads past GL2, is reached by the write-back.
_CACHES: Final = ("I", "K", "V", "P", "GL2_INV", "GL2_WB")

#: Kinds of memory that GL2 may hold on some family.
_IN_L2: Final = ("device", "host", "fine")


def verify(plan: Plan, fences: Fences) -> tuple[Finding, ...]:
    """Everything that is not safe, at most 1,000 findings; empty when order and fences are sufficient.

    Raises RecordError for what is no plan, HazardError for what are no fences, or stand where the plan has no position.
    """
    require(plan, "Plan", "verify")
    _check_fences(plan, fences)
    return check_steps(plan, list(_steps(plan, fences)))


def _check_fences(plan: Plan, fences: Fences) -> None:
    """A fence that stands nowhere would be ignored, here and by whoever believes the answer."""
    places = [fence.at for fence in getattr(fences, "inner", ())]
    first, last = int(plan.boundary == "host"), len(plan.order) - 1
    if not hasattr(fences, "inner") or (places and not first <= min(places) <= max(places) <= last):
        raise HazardError(
            "RL0205",
            where="verify",
            seen=f"fences before positions {places}" if hasattr(fences, "inner") else reprlib.repr(fences),
            allowed=f"Fences with positions in {first}..{last}",
            do="derive them from this plan, or make Fences([Fence(...), ...])",
        )


def _steps(plan: Plan, fences: Fences) -> Iterator[Step]:
    """Replays with these fences, one behind the other."""
    before = {fence.at: fence for fence in fences.inner}
    cold = [Step("drain"), Step("acquire", caches=_CACHES)] if fences.entry_rule == "cold-entry" else []
    yield Step("host writes")
    for replay, warm in enumerate(starts(plan)):
        if replay:
            yield from () if warm else _release(fences)
            yield from between_replays(plan, warm=warm)
        yield from () if warm else cold
        for at in range(len(plan.order)):
            fence = before.get(at)
            if fence is not None and (at or warm):
                if fence.drain:
                    yield Step("drain")
                if fence.acquire:
                    # What the command processor is shown past GL2 has been written back, for the host too.
                    back = ("GL2_WB",) if "P" in fence.acquire else ()
                    yield Step("acquire", caches=(*fence.acquire, *back))
            yield Step("launch", at)
    yield from _release(fences)
    yield Step("host reads")


def _release(fences: Fences) -> list[Step]:
    """What was written back the command processor sees too."""
    return [Step("drain"), Step("acquire", caches=("P", "GL2_WB"))] if fences.exit_rule == "host-exit" else []


def starts(plan: Plan) -> tuple[bool, ...]:
    """Which replays start warm. Two are enough for each way from one to the next: what one wrote is there in the next,
    internal memory also where the host touches the rest and the next starts cold.
    """
    return (False, False) if plan.boundary == "host" else (False, True, False)


def between_replays(plan: Plan, *, warm: bool) -> list[Step]:
    """What happens behind one replay and before the next; a cold start is for what the host may have done."""
    steps = [Step("next replay"), Step("patch")]
    steps += [Step("others write")] if plan.boundary == "other-queue" else []
    return steps if warm else [Step("host reads"), *steps, Step("host writes")]


def check_steps(plan: Plan, steps: Sequence[Step], l2_kinds: Container[str] = _IN_L2) -> tuple[Finding, ...]:
    """Everything that is not safe in this row of steps, which launches every position of the plan's order in turn.

    `l2_kinds`: the kinds of memory that the family's GL2 may hold; by default those that any family's may.
    """
    walk = _Walk(plan, steps, l2_kinds)
    found: dict[Finding, None] = {}
    for time, step in enumerate(steps):
        found.update(dict.fromkeys(walk.take(time, step)))
        if len(found) >= MOST_FINDINGS:
            break
    return tuple(found)[:MOST_FINDINGS]


class _Walk:
    """The state behind one step: which step touched each byte segment last, and where drains and acquires lie."""

    def __init__(self, plan: Plan, steps: Sequence[Step], l2_kinds: Container[str]) -> None:
        self.plan, self.steps = plan, steps
        self.drains = [time for time, step in enumerate(steps) if step.does == "drain"]
        self.acquires = {
            name: [time for time, step in enumerate(steps) if step.does == "acquire" and name in step.caches]
            for name in _CACHES
        }
        self.memories = _memories(plan, l2_kinds)
        self.launched = np.full(len(plan.launches), -1, np.int64)
        self.host = self.patched = self.between = -1

    def take(self, time: int, step: Step) -> Iterator[Finding]:
        """What this step does to an unprotected byte."""
        if step.does == "launch":
            launch = self.plan.launches[self.plan.order[step.at]]
            yield from self._launch(time, launch)
        elif step.does in ("host writes", "others write"):
            for memory in self._outside("in", "inout", *(["out"] if step.does == "others write" else [])):
                memory.touch(slice(None), time, -1, writes=True)
            self.host = time if step.does == "host writes" else self.host
        elif step.does == "host reads":
            yield from self._host_reads(time)
        elif step.does == "patch":
            self.patched = time
        elif step.does == "next replay":
            self.between = time
            for memory in self.memories.values():
                memory.next_replay()

    def _launch(self, time: int, launch: Launch) -> Iterator[Finding]:
        for index in launch.after:
            late = self.launched[index] <= self.between
            if late or not self._drained(int(self.launched[index]), time):
                yield Finding("wrong order" if late else "not ordered", index, launch.index, "after=")
        yield from self._arguments(time, launch)
        spans = [(touch, *self._span(touch)) for touch in launch.touches]
        for touch, memory, span in spans:
            later = memory.latest_recorded(span, writes=touch.writes)
            if later > launch.index:
                yield Finding("wrong order", launch.index, later, f"both touch {self.plan.buffers[memory.root].name}")
            if not touch.writes:
                yield from self._from_host(time, launch, memory)
            for last, kind in memory.before(span, writes=touch.writes):
                yield from self._pair(last, time, launch, touch, memory, span, kind)
        for touch, memory, span in spans:
            memory.touch(span, time, launch.index, writes=touch.writes)
        self.launched[launch.index] = time

    def _pair(
        self, last: int, time: int, launch: Launch, touch: Touch, memory: _Memory, span: slice, kind: str
    ) -> Iterator[Finding]:
        who = {"host writes": "host", "others write": "other queues"}.get(self.steps[last].does)
        unordered = who != "host" and not self._drained(last, time)
        reads = read_through(launch, touch) if kind == "RAW" and not unordered else ()
        hidden = [cache for cache in reads if not self._visible(last, time, cache)]
        if not unordered and not hidden:
            return
        first = who or self.plan.order[self.steps[last].at]
        start, stop = memory.place(span, last, kind)
        name = self.plan.buffers[memory.root].name
        place: _Place = {"buffer": name, "start": start, "stop": stop, "carried": not who and last < self.between}
        what = f"{name} is touched by the {who}" if who else f"{kind} on {name}[{start}:{stop}]"
        if unordered:
            yield Finding("not ordered", first, launch.index, what, **place)
        for cache in hidden:
            text = what if who == "host" else f"{what} through {cache}"
            yield Finding("ordered but not visible", first, launch.index, text, cache=cache, **place)

    def _from_host(self, time: int, launch: Launch, memory: _Memory) -> Iterator[Finding]:
        """Launches may write a range in part, so that any byte may still be the host's: only GL2 is not implied by
        them.
        """
        buffer = self.plan.buffers[memory.root]
        if buffer.role in ("in", "inout") and memory.in_l2 and not self._visible(self.host, time, "GL2_INV"):
            what = f"{buffer.name} is touched by the host"
            place: _Place = {"buffer": buffer.name, "start": 0, "stop": buffer.nbytes, "carried": False}
            yield Finding("ordered but not visible", "host", launch.index, what, cache="GL2_INV", **place)

    def _arguments(self, time: int, launch: Launch) -> Iterator[Finding]:
        """Code and arguments are the host's: all of them before the first replay, patched arguments before each.

        Arguments lie in the kernarg pool, which is never in L2, so patched ones need K and V and no drain.
        """
        certified = launch.kernel.certificate
        narrow = certified is not None and not certified.kernarg_vector_loads
        caches = ("K",) if narrow else ("K", "V")
        if self.between < 0:
            arguments = [(cache, "its arguments") for cache in caches if launch.kernarg]
            for cache, what in (("I", "its code"), *arguments):
                if not self._visible(self.host, time, cache):
                    text = f"{what} through {cache}"
                    yield Finding("ordered but not visible", "host", launch.index, text, cache=cache)
        elif launch.slots:
            for cache in caches:
                acquires = self.acquires[cache]
                if bisect_left(acquires, time) <= bisect_right(acquires, self.patched):
                    what = f"patched arguments through {cache}"
                    yield Finding("ordered but not visible", "host", launch.index, what, cache=cache)

    def _host_reads(self, time: int) -> Iterator[Finding]:
        """Whoever observes the end may free or rewrite anything: every launch has ended by then, and what the host
        reads has been written back.
        """
        for index in np.flatnonzero(self.launched >= 0).tolist():
            if not self._drained(int(self.launched[index]), time):
                yield Finding("not ordered", index, "host", "the submission ends before the launch does")
        for memory in self._outside("out", "inout"):
            for last in np.unique(memory.written[memory.written >= 0]).tolist():
                step = self.steps[last]
                shown = not memory.in_l2 or self._visible(last, time, "GL2_WB")
                if step.at < 0 or shown or not self._drained(last, time):
                    continue
                start, stop = memory.place(slice(None), last, "RAW")
                name, who = self.plan.buffers[memory.root].name, self.plan.order[step.at]
                place: _Place = {"buffer": name, "start": start, "stop": stop, "carried": False}
                what = f"host reads {name}[{start}:{stop}], which may be in L2 only"
                yield Finding("ordered but not visible", who, "host", what, cache="GL2_WB", **place)

    def _drained(self, first: int, second: int) -> bool:
        return bisect_left(self.drains, second) > bisect_right(self.drains, first)

    def _visible(self, first: int, second: int, cache: str) -> bool:
        """An acquire of the cache lies behind the first drain after `first` and before `second`."""
        at = bisect_right(self.drains, first)
        if at == len(self.drains):
            return False
        acquires = self.acquires[cache]
        return bisect_left(acquires, second) > bisect_right(acquires, self.drains[at])

    def _outside(self, *roles: str) -> Iterable[_Memory]:
        return (memory for memory in self.memories.values() if self.plan.buffers[memory.root].role in roles)

    def _span(self, touch: Touch) -> tuple[_Memory, slice]:
        buffer = self.plan.buffers[touch.buffer]
        memory = self.memories[buffer.root]
        return memory, memory.span(buffer.root_offset + touch.start, buffer.root_offset + touch.stop)


class _Memory:
    """The byte segments of one memory: for each the latest step that wrote and that touched it, and the latest recorded
    launch of this replay that did.
    """

    def __init__(self, root: int, cuts: Iterable[int], *, in_l2: bool) -> None:
        self.root, self.in_l2 = root, in_l2
        self.cuts = sorted(cuts)
        self.written: NDArray[np.int64] = np.full(max(len(self.cuts) - 1, 0), -1, np.int64)
        self.touched = self.written.copy()
        self.recorded_write, self.recorded_touch = self.written.copy(), self.written.copy()

    def span(self, start: int, stop: int) -> slice:
        return slice(bisect_left(self.cuts, start), bisect_left(self.cuts, stop))

    def touch(self, span: slice, time: int, index: int, *, writes: bool) -> None:
        self.touched[span] = time
        np.maximum(self.recorded_touch[span], index, out=self.recorded_touch[span])
        if writes:
            self.written[span] = time
            np.maximum(self.recorded_write[span], index, out=self.recorded_write[span])

    def next_replay(self) -> None:
        self.recorded_write[:] = self.recorded_touch[:] = -1

    def latest_recorded(self, span: slice, *, writes: bool) -> int:
        return int((self.recorded_touch if writes else self.recorded_write)[span].max())

    def before(self, span: slice, *, writes: bool) -> Iterator[tuple[int, str]]:
        """The latest steps that an access conflicts with, and how."""
        wrote = int(self.written[span].max())
        if wrote >= 0:
            yield wrote, "WAW" if writes else "RAW"
        if writes and (touched := int(self.touched[span].max())) > wrote:
            yield touched, "WAR"

    def place(self, span: slice, time: int, kind: str) -> tuple[int, int]:
        """The first bytes in a row that this step touched last."""
        table = self.touched if kind == "WAR" else self.written
        offset = span.start or 0
        found = np.flatnonzero(table[span] == time) + offset
        run = 1
        while run < len(found) and found[run] == found[0] + run:
            run += 1
        return self.cuts[int(found[0])], self.cuts[int(found[0]) + run]


def _memories(plan: Plan, l2_kinds: Container[str]) -> dict[int, _Memory]:
    cuts: dict[int, set[int]] = {buffer.root: set() for buffer in plan.buffers}
    for launch in plan.launches:
        for touch in launch.touches:
            buffer = plan.buffers[touch.buffer]
            cuts[buffer.root].update((buffer.root_offset + touch.start, buffer.root_offset + touch.stop))
    return {root: _Memory(root, found, in_l2=plan.buffers[root].kind in l2_kinds) for root, found in cuts.items()}


def read_through(launch: Launch, touch: Touch) -> tuple[str, ...]:
    """K and V, unless the kernel's certificate says that it reads this argument more narrowly."""
    if launch.indirect is not None and touch.argument == INDIRECT:
        return ("P",) if launch.indirect.past_l2 else ()
    certified = launch.kernel.certificate
    if certified is not None and touch.argument is not None:
        if touch.argument in certified.l2_args:
            return ()
        if certified.reads == "vmem_only":
            return ("V",)
        if certified.reads == "scalar_args" and touch.argument not in certified.scalar_args:
            return ("V",)
    return ("K", "V")
