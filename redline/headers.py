# SPDX-License-Identifier: Apache-2.0
"""The AQL header of each launch of a plan on one queue: the plan's drains and acquires as barrier bits and scopes.

Header values only: packets, signals, lanes and the ring are the submission's. The same decisions as `program.py` lowers
to PM4, in the words that AQL has: a barrier bit for a drain, agent scope for an acquire whatever its classes (rule
`aql-classes`: I, K, V and L1 together), agent release on a launch whose bytes another one reads (rule `aql-release`: L2
is shared, the HSA memory model asks for it), system scopes at entry and for the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from .encoders.aql import header
from .errors import RecordError
from .sweep import WRITES

if TYPE_CHECKING:
    from .fences import Fences
    from .plan import Plan

_SCOPES: Final = ("NONE", "AGENT", "SYSTEM")


def aql_headers(plan: Plan, fences: Fences) -> tuple[int, ...]:
    """The 16-bit header of each launch, in emitted order, for a replay from a cold start on one queue.

    Raises RecordError for a plan with workgroup counts in memory: an AQL packet holds its grid.

    hsa.h: the barrier bit waits for every earlier packet of the queue; scopes are applied before and after the
    dispatch.
    """
    for launch in plan.launches:
        if launch.indirect is not None:
            raise RecordError(
                "RL0144",
                where=f"aql_headers, {launch} ({launch.site})",
                seen="workgroup counts in memory",
                allowed="grids that are known when the plan is made: an AQL packet holds its grid",
                do="lower the plan to PM4",
            )
    before = {fence.at: fence for fence in fences.inner if fence.at}
    releases = _releases(plan)
    headers = []
    for at, index in enumerate(plan.order):
        fence = before.get(at)
        acquire = "SYSTEM" if at == 0 else "AGENT" if fence is not None and fence.acquire else "NONE"
        barrier = at == 0 or fence is not None
        headers.append(header("KERNEL_DISPATCH", barrier=barrier, acquire=acquire, release=_SCOPES[releases[index]]))
    return tuple(headers)


def _releases(plan: Plan) -> list[int]:
    """Release scope of each launch: system for the last writer of a byte that the host reads, agent for one that
    another launch reads.
    """
    found = [0] * len(plan.launches)
    for hazard in plan.hazards:
        if hazard.kind == "RAW":
            found[hazard.first] = 1
    a = plan.accesses
    outside = [buffer.index for buffer in plan.buffers if buffer.role in ("out", "inout")]
    last = np.full(len(a.cuts), -1, np.int64)
    for index in plan.order:
        for row in range(a.starts[index], a.starts[index + 1]):
            if a.does[row] & WRITES:
                last[a.low[row] : a.high[row]] = index
    memory = np.searchsorted(a.bases, a.cuts, side="right") - 1
    for index in np.unique(last[np.isin(memory, outside) & (last >= 0)]).tolist():
        found[index] = 2
    return found
