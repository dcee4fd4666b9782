# SPDX-License-Identifier: Apache-2.0
"""Whether everything that a replay has addresses of is still there: the memory bound to it, its own, code and signals.

`DeviceBuffer.close` refuses what an open replay uses. The handles of `redline.hsa` below it do not know replays, so
what they close may be given to somebody else while packets still hold its address. Each such close changes the
runtime's generation, and a replay that has seen another one looks again. Knows no flights and frees nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .errors import StalePlan

if TYPE_CHECKING:
    from .device import DeviceBuffer
    from .placed import Placed


def check_fresh(what: str, placed: Placed, bound: Mapping[int, DeviceBuffer]) -> None:
    """Raise StalePlan that names what was closed beneath the replay: of its own, or of the memory bound to it."""
    own = [name for name, handle in placed.parts if handle.closed]
    if own:
        raise _stale("RL0801", what, own, "close the replay and instantiate the plan again")
    gone = [f"the memory of buffer {placed.plan.buffers[at].name!r}" for at in sorted(bound) if bound[at].closed]
    if gone:
        raise _stale("RL0802", what, gone, "bind other memory with replay.bind(...), or instantiate the plan again")


def _stale(code: str, what: str, gone: list[str], do: str) -> StalePlan:
    more = "" if len(gone) <= 4 else f" and {len(gone) - 4} more"
    return StalePlan(
        code,
        where=f"Replay.{what}",
        seen=f"closed since the plan was given its addresses: {', '.join(gone[:4])}{more}",
        allowed="memory, code and signals that stay open for as long as the replay is",
        do=do,
    )
