# SPDX-License-Identifier: Apache-2.0
"""One token of a 28-layer transformer, twelve launches a layer: 1 + 28 * 12 + 2 = 339 launches.

Shapes are those of a 3-billion-parameter model: width 3072, 24 query heads and 8 key heads of 128, 8192 in the
feed-forward part, f16, a context of 4096. Reasoning, by hand:

Before the layers `embed` writes x. In each layer, with the depth of a launch counted from the layer's first:

     0  norm a       reads x                      x is the embedding's, or the sum of `down` in the layer before: RAW
     1  qkv          reads h                      RAW on h after norm a
     2  rope         reads qkv[q]                 RAW on qkv; writes q
     2  append       reads qkv[k, v]              RAW on qkv; turns the keys while it copies them, writes the caches.
                                                  Shares no written byte with rope: same depth, no fence between
     3  attention    reads q, k_cache, v_cache    RAW after both; writes the parts of the sum, split over the context
     4  combine      reads parts, sums            RAW
     5  output       reads mixed                  RAW
     6  add          reads o, x, writes x         RAW on o
     7  norm b       reads x                      RAW; writes h again (WAR after qkv, long drained)
     8  gate up      reads h                      RAW
     9  activation   reads gu                     RAW
    10  down         reads act, x, writes x       RAW on act
    (11 is norm a of the next layer: RAW on x)

Eleven depths a layer, and every step from one to the next is read-after-write on what the launch directly before
wrote. After the layers: norm (RAW on x) and logits (RAW on h). Depths: embed 0, layer l from 1 + 11 l, norm
1 + 11 * 28 = 309, logits 310. The longest chain has 310 edges, so 310 drains; only `append` of each layer has none
before it: 339 - 1 - 28 = 310. Every drain separates a write from a read of the same bytes one step later, so each
carries an acquire: 310.

Classes: all readers are vector-only but two. `combine` reads the few sums by scalar loads, and `output` is a library's
kernel without a certificate; both read what was written one step before. So V 310 times and K 2 * 28 = 56 times.

A boundary before each dependent launch: all but embed depend on something, 338. After every launch: 338.

Replays back to back: embed is the only launch of depth 0. It writes x and reads the embedding; logits, alone in the
last depth, reads h and the embedding and writes the logits. They share no written byte, so they share an epoch: still
310 drains (x was last read by `norm`, one drain before logits). Nothing that a replay reads was written by the one
before: x, h and the rest are overwritten first, and `append` is declared to write the whole cache because its row comes
from a slot. Patched arguments add one packet without a drain at the warm entry; the kernels with slots read theirs
through K alone. So 311 acquires, K 57 times, V 310 times. embed must wait for `norm` of the replay before, so a
boundary per dependent launch is one per launch: 339.
"""

from __future__ import annotations

import redline as rl
from tests.realistic.expected import Expected, HandFence, launch, uniform

LAYERS, WIDTH, HEADS, KEY_HEADS, DEPTH, FEED, VOCABULARY = 28, 3072, 24, 8, 128, 8192, 128256
CONTEXT, SPLITS, F16, F32 = 4096, 16, 2, 4

LAUNCHES = 1 + 12 * LAYERS + 2
CHAIN = 310
HOST = Expected(drains=310, acquires=310, k=56, v=310, full=338, dependent=338)
QUEUE = Expected(drains=310, acquires=311, k=57, v=310, full=339, dependent=339)

#: One layer's fences; `append` has none.
LAYER_FENCES: tuple[HandFence, ...] = (
    ("norm a", "V"),
    ("qkv", "V"),
    ("rope", "V"),
    ("attention", "V"),
    ("combine", "KV"),
    ("output", "KV"),
    ("add", "V"),
    ("norm b", "V"),
    ("gate up", "V"),
    ("activation", "V"),
    ("down", "V"),
)
HOST_FENCES: tuple[HandFence, ...] = (
    *((f"{label} {layer}", classes) for layer in range(LAYERS) for label, classes in LAYER_FENCES),
    ("norm", "V"),
    ("logits", "V"),
)
#: At the warm entry an acquire without a drain.
QUEUE_FENCES: tuple[HandFence, ...] = (("embed", "K"), *HOST_FENCES)

SENTENCES = (
    "  drain + acquire V before #5 attention 0",
    (
        "    #5 attention 0 reads k_cache0[0:8388608] written by #4 append 0 (RAW); without the acquire it may read the"
        " bytes of the previous replay through V"
    ),
    (
        "    #5 attention 0 reads v_cache0[0:8388608] written by #4 append 0 (RAW); without the acquire it may read the"
        " bytes of the previous replay through V"
    ),
    (
        "    #13 norm a 1 reads x[0:6144] written by #12 down 0 (RAW); without the acquire it may read the bytes of the"
        " previous replay through V"
    ),
)
QUEUE_SENTENCES = ("  warm entry: acquire K before #0 embed   rule patched-kernargs",)


def record() -> rl.Graph:
    """One token. The host gives token and position as slots, keeps the caches, and reads the logits."""
    graph = rl.Graph()
    for name, nbytes in _work_bytes().items():
        graph.buffer(name, nbytes)
    named = {buffer.name: buffer for buffer in graph.buffers}
    table = graph.buffer("embedding", VOCABULARY * WIDTH * F16, role="in")
    last = graph.buffer("norm_weight", WIDTH * F16, role="in")
    logits = graph.buffer("logits", VOCABULARY * F32, role="out")
    x, h = named["x"], named["h"]
    launch(graph, "embed", [rl.write(x), rl.read(table)], slots=(rl.slot("token", "u4"),))
    for layer in range(LAYERS):
        _attend(graph, layer, named)
        _feed(graph, layer, named)
    launch(graph, "norm", [rl.write(h), rl.read(x), rl.read(last)])
    launch(graph, "logits", [rl.write(logits), rl.read(h), rl.read(table)])
    return graph


def _work_bytes() -> dict[str, int]:
    heads = SPLITS * HEADS
    return {
        "x": WIDTH * F16,
        "h": WIDTH * F16,
        "qkv": (HEADS + 2 * KEY_HEADS) * DEPTH * F16,
        "q": HEADS * DEPTH * F16,
        "parts": heads * DEPTH * F32,
        "sums": heads * 2 * F32,
        "mixed": HEADS * DEPTH * F16,
        "o": WIDTH * F16,
        "gu": 2 * FEED * F16,
        "act": FEED * F16,
    }


def _attend(graph: rl.Graph, layer: int, work: dict[str, rl.Buffer]) -> None:
    position = (rl.slot("position", "u4"),)
    width, row = HEADS * DEPTH * F16, KEY_HEADS * DEPTH * F16
    k_cache = graph.buffer(f"k_cache{layer}", CONTEXT * row, role="inout")
    v_cache = graph.buffer(f"v_cache{layer}", CONTEXT * row, role="inout")
    norm = graph.buffer(f"norm_a_weight{layer}", WIDTH * F16, role="in")
    qkv_weight = graph.buffer(f"qkv_weight{layer}", WIDTH * work["qkv"].nbytes, role="in")
    o_weight = graph.buffer(f"output_weight{layer}", WIDTH * WIDTH * F16, role="in")
    x, h, qkv, q, o = work["x"], work["h"], work["qkv"], work["q"], work["o"]
    parts, sums, mixed = work["parts"], work["sums"], work["mixed"]
    launch(graph, f"norm a {layer}", [rl.write(h), rl.read(x), rl.read(norm)])
    launch(graph, f"qkv {layer}", [rl.write(qkv), rl.read(h), rl.read(qkv_weight)])
    launch(graph, f"rope {layer}", [rl.write(q), rl.read(qkv[:width])], slots=position)
    rows = rl.read(qkv[width : width + row]), rl.read(qkv[width + row :])
    launch(graph, f"append {layer}", [rl.write(k_cache), rl.write(v_cache), *rows], slots=position)
    seen = rl.read(q), rl.read(k_cache), rl.read(v_cache)
    launch(graph, f"attention {layer}", [rl.write(parts), rl.write(sums), *seen], slots=position)
    launch(graph, f"combine {layer}", [rl.write(mixed), rl.read(parts), rl.read(sums)], uniform(2))
    launch(graph, f"output {layer}", [rl.write(o), rl.read(mixed), rl.read(o_weight)], None)
    launch(graph, f"add {layer}", [rl.update(x), rl.read(o)])


def _feed(graph: rl.Graph, layer: int, work: dict[str, rl.Buffer]) -> None:
    norm = graph.buffer(f"norm_b_weight{layer}", WIDTH * F16, role="in")
    up = graph.buffer(f"gate_up_weight{layer}", WIDTH * work["gu"].nbytes, role="in")
    down = graph.buffer(f"down_weight{layer}", FEED * WIDTH * F16, role="in")
    x, h, gu, act = work["x"], work["h"], work["gu"], work["act"]
    launch(graph, f"norm b {layer}", [rl.write(h), rl.read(x), rl.read(norm)])
    launch(graph, f"gate up {layer}", [rl.write(gu), rl.read(h), rl.read(up)])
    launch(graph, f"activation {layer}", [rl.write(act), rl.read(gu)])
    launch(graph, f"down {layer}", [rl.update(x), rl.read(act), rl.read(down)])
