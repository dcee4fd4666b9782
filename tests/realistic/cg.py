# SPDX-License-Identifier: Apache-2.0
"""One iteration of conjugate gradients: eight launches, two reductions, the scalars kept on the device.

    q = A p;  alpha = rho / (p . q);  x += alpha p;  r -= alpha q;  beta = (r . r) / rho;  rho = r . r;  p = r + beta p

Reasoning, by hand, with the depth of each launch:

    0  spmv      reads p, writes q
    1  dot pq    reads p, q, writes partial             RAW on q
    2  alpha     reads partial, rho, writes step[0:8]   RAW on partial
    3  axpy x    reads step[0:8], p, x, writes x        RAW on alpha
    3  axpy r    reads step[0:8], q, r, writes r        RAW on alpha; shares only reads with axpy x: no fence between
    4  dot rr    reads r, writes partial                RAW on r (and WAR on partial after `alpha`, long drained)
    5  beta      reads partial, rho, writes rho, step   RAW on partial
    6  update p  reads step[8:16], r, p, writes p       RAW on beta (and WAR on p after spmv, dot pq, axpy x)

The longest chain has 6 edges: 6 drains. Each of its edges is read-after-write one step on, so 6 acquires. The scalars
alpha and beta, and rho where `alpha` and `beta` need it, have the same address for every lane and go through scalar
loads: K before axpy x and before update p (rho is written after its readers, so it needs nothing inside a replay). All
else is vector loads: V 6 times, K twice. A boundary per dependent launch: all but spmv, 7. After every launch: 7.

Replays back to back: spmv reads the p that update p wrote last: a true dependence, so the chain closes to a ring of 7
edges and 7 drains are needed; the seventh stands at the warm entry, with V because spmv gathers p by vector loads. rho
goes from `beta` to the next replay's `alpha` through K: the acquire before update p, which is behind the drain after
`beta`, already has K. So 7 drains, 7 acquires, K twice, V 7 times; per dependent launch and after every launch 8.
"""

from __future__ import annotations

import redline as rl
from tests.realistic.expected import VECTOR, Expected, HandFence, launch, uniform

ROWS, NONZEROS, GROUPS, F64, I32 = 1 << 20, 7 << 20, 1024, 8, 4

LAUNCHES = 8
CHAIN = 6
HOST = Expected(drains=6, acquires=6, k=2, v=6, full=7, dependent=7)
QUEUE = Expected(drains=7, acquires=7, k=2, v=7, full=8, dependent=8)

HOST_FENCES: tuple[HandFence, ...] = (
    ("dot pq", "V"),
    ("alpha", "V"),
    ("axpy x", "KV"),
    ("dot rr", "V"),
    ("beta", "V"),
    ("update p", "KV"),
)
QUEUE_FENCES: tuple[HandFence, ...] = (("spmv", "V"), *HOST_FENCES)

SENTENCES = (
    "  drain + acquire K V before #3 axpy x",
    (
        "    #3 axpy x reads step[0:8] written by #2 alpha (RAW); without the acquire it may read the bytes of the"
        " previous replay through K and V"
    ),
    (
        "    #6 beta reads partial[0:8192] written by #5 dot rr (RAW); without the acquire it may read the bytes of the"
        " previous replay through V"
    ),
)
QUEUE_SENTENCES = (
    "  warm entry: drain + acquire V before #0 spmv",
    (
        "    #0 spmv reads p[0:8388608] written by #7 update p in the replay before (RAW); without the acquire it may"
        " read the bytes of two replays before through V"
    ),
)


def record() -> rl.Graph:
    """One iteration. The host keeps the state and looks at rho between iterations, if it wants to."""
    graph = rl.Graph()
    values = graph.buffer("values", NONZEROS * F64, role="in")
    columns = graph.buffer("columns", NONZEROS * I32, role="in")
    starts = graph.buffer("row_starts", (ROWS + 1) * I32, role="in")
    x, r, p = (graph.buffer(name, ROWS * F64, role="inout") for name in ("x", "r", "p"))
    rho = graph.buffer("rho", F64, role="inout")
    q = graph.buffer("q", ROWS * F64)
    partial = graph.buffer("partial", GROUPS * F64)
    step = graph.buffer("step", 2 * F64)
    alpha, beta = step[:F64], step[F64:]
    launch(graph, "spmv", [rl.write(q), rl.read(values), rl.read(columns), rl.read(starts), rl.read(p)], VECTOR)
    launch(graph, "dot pq", [rl.write(partial), rl.read(p), rl.read(q)])
    launch(graph, "alpha", [rl.write(alpha), rl.read(partial), rl.read(rho)], uniform(2))
    launch(graph, "axpy x", [rl.update(x), rl.read(p), rl.read(alpha)], uniform(2))
    launch(graph, "axpy r", [rl.update(r), rl.read(q), rl.read(alpha)], uniform(2))
    launch(graph, "dot rr", [rl.write(partial), rl.read(r)])
    launch(graph, "beta", [rl.write(beta), rl.read(partial), rl.update(rho)], uniform(2))
    launch(graph, "update p", [rl.update(p), rl.read(r), rl.read(beta)], uniform(2))
    return graph
