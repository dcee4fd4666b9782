# SPDX-License-Identifier: Apache-2.0
"""When launches ran: one span for each launch of a profiled AQL replay, or for each stream of words, in order.

Times are of the last replay that ended, in seconds of a clock of the device: differences mean something, the numbers do
not. Profiling adds timestamps and signals to what is submitted; it submits nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import NotRecorded
from .packets import COMPLETION, SIGNAL

if TYPE_CHECKING:
    from .placed import Placed

_SCOPES = ("none", "agent", "system")


@dataclass(frozen=True, slots=True)
class Span:
    """One launch, or one stream of several (`index` -1). `grid` and `block` are work-items; `wait`: it waited for all
    earlier packets of its lane; `acquire`: the scope of its acquire; `t0` and `t1` are seconds.
    """

    index: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lane: int
    wait: bool
    acquire: str
    t0: float
    t1: float

    def as_json(self) -> dict[str, Any]:
        """The fields, ready for `json.dumps`."""
        return asdict(self)


def spans(placed: Placed) -> tuple[Span, ...]:
    """The spans of the last replay that ended. Raises NotRecorded for a program that is not profiled."""
    if not placed.program.options.profile:
        raise NotRecorded(
            "RL1206",
            where="Replay.spans",
            seen="a program without timestamps",
            allowed="one lowered with profile=True",
            do="compile with profile=True",
        )
    return _of_launches(placed) if placed.program.form == "aql" else _of_streams(placed)


def _of_launches(placed: Placed) -> tuple[Span, ...]:
    program, plan = placed.program, placed.plan
    relocs = program.packet_relocs
    completed = relocs[(relocs["kind"] == SIGNAL) & (relocs["word"] == COMPLETION)]
    signal_of = dict(zip(completed["packet"].tolist(), completed["index"].tolist(), strict=True))
    made = []
    for packet in range(len(program.packets)):
        for index in program.launches_of(packet):
            launch, header = plan.launches[index], int(program.packets["words"][packet, 0])
            times = placed.signals[signal_of[packet]].dispatch_time(placed.device.agent)
            made.append(
                Span(
                    index=index,
                    kernel=launch.kernel.name,
                    grid=launch.global_size,
                    block=launch.block,
                    lane=int(program.packets["lane"][packet]),
                    wait=bool(header & 0x100),
                    acquire=_SCOPES[header >> 9 & 3],
                    t0=times[0],
                    t1=times[1],
                )
            )
    return tuple(made)


def _of_streams(placed: Placed) -> tuple[Span, ...]:
    hz = placed.device.agent.clock_hz
    stamps = [int(word[0]) / hz for word in placed.stamps]
    return tuple(
        Span(-1, "stream", (0, 0, 0), (0, 0, 0), lane, True, "system", stamps[2 * at], stamps[2 * at + 1])
        for at, lane in enumerate(placed.program.streams)
    )


def gaps(found: Sequence[Span]) -> dict[str, float]:
    """The pauses between spans of one lane, in order: median, 90th percentile and longest (seconds), and the share of
    the whole time in which nothing ran. A mean hides what a few long pauses cost.

    Raises NotRecorded for fewer than two spans.
    """
    if len(found) < 2:
        raise NotRecorded(
            "RL1206", where="gaps", seen=f"{len(found)} spans", allowed="two or more of one lane", do="profile more"
        )
    ordered = sorted(found, key=lambda span: span.t0)
    pauses = np.array([max(b.t0 - a.t1, 0.0) for a, b in pairwise(ordered)])
    whole = max(span.t1 for span in ordered) - ordered[0].t0
    middle, late = np.percentile(pauses, [50, 90], method="inverted_cdf").tolist()
    return {"p50": middle, "p90": late, "max": float(pauses.max()), "idle": float(pauses.sum()) / whole}
