# SPDX-License-Identifier: Apache-2.0
"""One V-cycle of geometric multigrid on five grids: 28 launches.

On the way down, on grids 0 (finest) to 3: clear the guess (not on grid 0, whose guess is the caller's), smooth,
residual, restrict: 3 + 4 * 3 = 15 launches. On grid 4 one direct solve. On the way up, on grids 3 to 0: prolongate,
correct, smooth: 12 launches. Reasoning, by hand, with the depth of each launch:

    0            clear 1, 2, 3   write u1, u2, u3; nothing before them in the replay touches these bytes
    3 g          smooth g        reads u, f, writes s     grid 0: nothing to wait for; else RAW on f after restrict g-1,
                                                          and on u after the clear, drained long before
    3 g + 1      residual g      reads s, f, writes d     RAW on s
    3 g + 2      restrict g      reads d, writes f of g+1 RAW on d
    12           solve           reads f4, writes u4      RAW on f4
    13 + 3 (3-g) prolongate g    reads u of g+1, writes e RAW on u after the solve or the smoothing of g+1
    14 + 3 (3-g) correct g       reads e, s, writes s     RAW on e
    15 + 3 (3-g) finish g        reads s, f, writes u     RAW on s (the second smoothing; WAR and WAW on u, drained)

The last launch, finish 0, is at depth 15 + 9 = 24: the longest chain has 24 edges, a V-cycle is one long chain, and
no planner can do with fewer than 24 drains. The clears are recorded between the steps and move to depth 0: no fence
for them. Each edge of the chain is read-after-write one step on: 24 acquires. The direct solve is a library's kernel
without a certificate, so K and V before it, V before all others: K once, V 24 times. A boundary per dependent launch:
all but smooth 0 and the clears, 24. After every launch: 27.

Replays back to back: smooth 0 reads the u0 that finish 0 wrote: the chain closes to a ring of 25 edges, so 25 drains;
the 25th stands at the warm entry with V. The clears of a replay wait for the prolongations of the one before, which
this drain and those before it serve. So 25 drains, 25 acquires, K once, V 25 times. Now the clears depend on
something too: a boundary per dependent launch is one per launch, 28.
"""

from __future__ import annotations

import redline as rl
from tests.realistic.expected import VECTOR, Expected, HandFence, launch

GRIDS, POINTS, F64 = 5, 2048, 8

LAUNCHES = 28
CHAIN = 24
HOST = Expected(drains=24, acquires=24, k=1, v=24, full=27, dependent=24)
QUEUE = Expected(drains=25, acquires=25, k=1, v=25, full=28, dependent=28)

HOST_FENCES: tuple[HandFence, ...] = (
    ("residual 0", "V"),
    ("restrict 0", "V"),
    *((f"{label} {grid}", "V") for grid in (1, 2, 3) for label in ("smooth", "residual", "restrict")),
    ("solve", "KV"),
    *((f"{label} {grid}", "V") for grid in (3, 2, 1, 0) for label in ("prolongate", "correct", "finish")),
)
QUEUE_FENCES: tuple[HandFence, ...] = (("smooth 0", "V"), *HOST_FENCES)

SENTENCES = (
    "  drain + acquire V before #4 smooth 1",
    (
        "    #4 smooth 1 reads f1[0:8388608] written by #2 restrict 0 (RAW); without the acquire it may read the bytes"
        " of the previous replay through V"
    ),
    "  drain + acquire K V before #15 solve",
    (
        "    #17 correct 3 reads e3[0:524288] written by #16 prolongate 3 (RAW); without the acquire it may read the"
        " bytes of the previous replay through V"
    ),
)
QUEUE_SENTENCES = (
    "  warm entry: drain + acquire V before #0 smooth 0",
    (
        "    #0 smooth 0 reads u0[0:33554432] written by #27 finish 0 in the replay before (RAW); without the acquire"
        " it may read the bytes of two replays before through V"
    ),
)


def record() -> rl.Graph:
    """One cycle. The host gives the right-hand side f0 and keeps the solution u0."""
    graph = rl.Graph()
    sizes = [(POINTS >> grid) ** 2 * F64 for grid in range(GRIDS)]
    a = [graph.buffer(f"a{grid}", 5 * size, role="in") for grid, size in enumerate(sizes)]
    u = [graph.buffer(f"u{grid}", size, role="internal" if grid else "inout") for grid, size in enumerate(sizes)]
    f = [graph.buffer(f"f{grid}", size, role="internal" if grid else "in") for grid, size in enumerate(sizes)]
    s, d, e = ([graph.buffer(f"{name}{grid}", size) for grid, size in enumerate(sizes[:-1])] for name in "sde")
    for g in range(GRIDS - 1):
        if g:
            launch(graph, f"clear {g}", [rl.write(u[g])])
        launch(graph, f"smooth {g}", [rl.write(s[g]), rl.read(u[g]), rl.read(f[g]), rl.read(a[g])])
        launch(graph, f"residual {g}", [rl.write(d[g]), rl.read(s[g]), rl.read(f[g]), rl.read(a[g])])
        launch(graph, f"restrict {g}", [rl.write(f[g + 1]), rl.read(d[g])])
    launch(graph, "solve", [rl.write(u[-1]), rl.read(f[-1]), rl.read(a[-1])], None)
    for g in reversed(range(GRIDS - 1)):
        launch(graph, f"prolongate {g}", [rl.write(e[g]), rl.read(u[g + 1])], VECTOR)
        launch(graph, f"correct {g}", [rl.update(s[g]), rl.read(e[g])])
        launch(graph, f"finish {g}", [rl.write(u[g]), rl.read(s[g]), rl.read(f[g]), rl.read(a[g])])
    return graph
