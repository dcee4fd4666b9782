# SPDX-License-Identifier: Apache-2.0
"""What the packets of a program do, read back from their words: rows of steps by lane, for `lane_safety.py`.

Reads header bits from the packets and PM4 from the indirect buffers (`foreign.py`), and trusts relocations for what an
address will be: buffers, slots, kernels and signals. Judges no order; says only what belongs to no such plan.
Sources: hsa.h (packet headers), `encoders/aql.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .encoders.aql import HEADER
from .encoders.emit import OWNED
from .foreign import WordReader
from .packets import BARRIER_AND, COMPLETION, IB, KERNEL_OBJECT, SIGNAL, SLOT
from .safety import Finding

if TYPE_CHECKING:
    from .launch import Launch
    from .plan import Plan
    from .program import Program

DISPATCH, VENDOR = 2, 0

#: What fence scopes of a header reach (HSA: none, agent, system).
ACQUIRES = ((), ("I", "K", "V"), ("I", "K", "V", "P", "GL2_INV", "GL2_WB"))
RELEASES = ((), (), ("GL2_WB",))


@dataclass(frozen=True, slots=True)
class LaneStep:
    """One thing that a lane does when it gets there.

    `does`: "launch" (recorded index in `launch`), "drain" (waits for all launches before it on its lane), "acquire"
    (of `caches`), "wait" (for `signals`), or "complete" (of one signal). `ends`: a completion by a launch's own end.
    `release`: the scope at which a launch of an AQL packet releases; -1 in an indirect buffer, where none is asked for.
    """

    does: str
    launch: int = -1
    caches: tuple[str, ...] = ()
    signals: tuple[int, ...] = ()
    ends: bool = False
    release: int = -1


class LaneReader:
    """Steps of all lanes of a program, for replays that end with or without the release."""

    def __init__(self, plan: Plan, program: Program, *, release: bool) -> None:
        self.plan, self.program, self.findings = plan, program, list[Finding]()
        self._end = "end_release" if release else "end"
        self._ibs: list[int] = []  # of the stream whose last buffer is still to come
        self._owner: dict[int, int] = {}  # fence word -> lane
        self._refers: dict[int, dict[tuple[int, int], int]] = {}
        for packet, word, kind, index in program.packet_relocs.tolist():
            self._refers.setdefault(packet, {})[word, kind] = index
        self.lanes = [list(self._lane(lane)) for lane in range(program.lanes)]

    def _lane(self, lane: int) -> Iterator[LaneStep]:
        for at in np.flatnonzero(self.program.packets["lane"] == lane).tolist():
            words = self.program.packets["words"][at].tolist()
            fields, kind = HEADER.unpack(words[0] & 0xFFFF), words[0] & 0xFF
            read = {VENDOR: self._ib, DISPATCH: self._dispatch, BARRIER_AND: self._barrier}.get(kind)
            if read is None:
                self.strange(f"packet {at} of type {kind}")
            else:
                yield from read(at, lane, words, fields)

    def _barrier(self, at: int, _lane: int, _words: list[int], fields: dict[str, int]) -> Iterator[LaneStep]:
        waits = [
            index for (word, kind), index in self._refers.get(at, {}).items() if kind == SIGNAL and word < COMPLETION
        ]
        yield LaneStep("wait", signals=tuple(waits))
        if fields["BARRIER"]:
            yield LaneStep("drain")
        yield LaneStep("acquire", caches=ACQUIRES[fields["ACQUIRE"]])
        yield LaneStep("acquire", caches=RELEASES[fields["RELEASE"]])
        yield from self._completes(at)

    def _dispatch(self, at: int, _lane: int, words: list[int], fields: dict[str, int]) -> Iterator[LaneStep]:
        launch = self._launch_of(at, words)
        if fields["BARRIER"]:
            yield LaneStep("drain")
        yield LaneStep("acquire", caches=ACQUIRES[fields["ACQUIRE"]])
        if launch is not None:
            yield LaneStep("launch", launch.index, release=fields["RELEASE"])
            yield from (replace(step, ends=True, launch=launch.index) for step in self._completes(at))

    def _launch_of(self, at: int, words: list[int]) -> Launch | None:
        refers, found = self._refers.get(at, {}), self.program.launches_of(at)
        kernel = refers.get((8, KERNEL_OBJECT))
        if len(found) != 1 or (10, SLOT) not in refers or kernel is None:
            self.strange(f"packet {at} is no launch of the plan")
            return None
        launch = self.plan.launches[found[0]]
        x, y, z = launch.block
        wanted = [x | y << 16, z, *launch.global_size, 0, launch.kernel.group_bytes + launch.dynamic_lds]
        if words[1:8] != wanted or self.program.kernels[kernel] != launch.kernel:
            self.strange(f"packet {at} is not {launch}: {words[1:8]}, not {wanted}")
        return launch

    def _ib(self, at: int, lane: int, _words: list[int], _fields: dict[str, int]) -> Iterator[LaneStep]:
        """A cut stream is read in one piece, when its last buffer is there."""
        self._ibs += [index for (_, kind), index in self._refers.get(at, {}).items() if kind == IB]
        completes = list(self._completes(at))
        last = not self._followed(at, lane)
        if completes or last:
            yield from self._stream(lane)
            self._ibs = []
        yield from completes

    def _followed(self, at: int, lane: int) -> bool:
        """Whether the next packet is one more buffer of the same lane."""
        packets = self.program.packets
        return (
            at + 1 < len(packets) and packets["lane"][at + 1] == lane and packets["words"][at + 1, 0] & 0xFF == VENDOR
        )

    def _stream(self, lane: int) -> Iterator[LaneStep]:
        rows = self.program.ibs[self._ibs]
        begin, end = int(rows["cold"][0]), int(rows[self._end][-1])
        if (rows["end"][:-1] != rows["cold"][1:]).any():
            self.strange(f"buffers {self._ibs} do not follow one another")
        self._check_fence_words(lane, begin, end)
        order = [launch for ib in self._ibs for launch in self._launches(ib)]
        reader = WordReader(replace(self.plan, order=tuple(order)), self.program.options.gfx10_wait)
        for step in reader.replay(self.program.words[begin:end].tolist()):
            yield LaneStep(step.does, order[step.at] if step.at >= 0 else -1, step.caches)
        self.findings += reader.findings

    def _launches(self, ib: int) -> tuple[int, ...]:
        first = sum(self.program.ib_launches[:ib])
        return self.program.order[first : first + self.program.ib_launches[ib]]

    def _check_fence_words(self, lane: int, begin: int, end: int) -> None:
        relocs = self.program.relocs
        here = relocs[(relocs["kind"] == OWNED) & (relocs["dword"] >= begin) & (relocs["dword"] < end)]
        for word in {int(index) for index in here["index"]}:
            if self._owner.setdefault(word, lane) != lane:
                self.strange(f"lanes {self._owner[word]} and {lane} drain by the same word")

    def _completes(self, at: int) -> Iterator[LaneStep]:
        if (index := self._refers.get(at, {}).get((COMPLETION, SIGNAL))) is not None:
            yield LaneStep("complete", signals=(index,))

    def strange(self, what: str) -> None:
        """Note what belongs to no such plan."""
        self.findings.append(Finding("not this plan", "host", "host", what))
