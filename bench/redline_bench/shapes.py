# SPDX-License-Identifier: Apache-2.0
"""Graphs of any number of launches that the planner's cost is measured on. Synthetic kernels, no values, no device.

The shapes stay as they are: figures in records of different commits are comparable only as long as they do. Measures
nothing; `plan.py` does.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import redline as rl
from redline.ranges import Buffer, View

#: The eight activation buffers of a decoder layer, each `_BYTES` long.
_ACTIVATIONS: Final = ("x", "h", "q", "k", "v", "att", "gate", "up")
_BYTES: Final = 4096

#: The twelve kernels of a decoder layer: name, what it reads, writes and updates, and which earlier kernels of the
#: layer hold the conflicts that no other of them implies; -1 is the last one of the layer before. "w" is a slice of the
#: weights that nobody else reads, "kv" the layer's slice of the KV cache.
_LAYER: Final = (
    ("norm_attention", "x w", "h", "", (-1,)),
    ("project_q", "h w", "q", "", (0,)),
    ("project_k", "h w", "k", "", (0,)),
    ("project_v", "h w", "v", "", (0,)),
    ("rotate", "", "", "q k", (1, 2)),
    ("append", "k v", "kv", "", (3, 4)),
    ("attend", "q kv", "att", "", (5,)),
    ("project_out", "att w", "", "x", (6,)),
    ("norm_mlp", "x w", "h", "", (7,)),
    ("project_gate", "h w", "gate", "", (8,)),
    ("project_up", "h w", "up", "", (8,)),
    ("project_down", "gate up w", "", "x", (9, 10)),
)


def llm(launches: int, order: str = "record") -> rl.Graph:
    """A transformer decode: twelve kernels a layer, each layer with weights and a KV slice of its own.

    `order="explicit"` records the same with exactly the `after=` edges that its conflicts need.
    """
    made = rl.Graph(order=order)  # type: ignore[arg-type]
    layers = -(-launches // len(_LAYER))
    acts = {name: made.buffer(name, _BYTES, role="inout" if name == "x" else "internal") for name in _ACTIVATIONS}
    weights = made.buffer("weights", _BYTES * launches, role="in")
    kv = made.buffer("kv", _BYTES * layers, role="inout")
    kernels = {
        name: rl.Kernel.synthetic(name, pointers=len(f"{reads} {writes} {updates}".split()))
        for name, reads, writes, updates, _ in _LAYER
    }
    done: list[rl.Launch] = []
    for i in range(launches):
        layer, step = divmod(i, len(_LAYER))
        name, reads, writes, updates, needs = _LAYER[step]
        places: dict[str, Buffer | View] = {**acts, "w": weights[_BYTES * i : _BYTES * (i + 1)]}
        places["kv"] = kv[_BYTES * layer : _BYTES * (layer + 1)]
        args = [rl.read(places[place]) for place in reads.split()]
        args += [rl.write(places[place]) for place in writes.split()]
        args += [rl.update(places[place]) for place in updates.split()]
        before = [i - step + need for need in needs if i - step + need >= 0] if order == "explicit" else []
        done.append(made.launch(kernels[name], grid=16, block=256, args=args, after=[done[at] for at in before]))
    return made


def wide(launches: int) -> rl.Graph:
    """Disjoint slices of one buffer, no conflict at all: each launch reads one half of its slice, writes the other."""
    made = rl.Graph()
    memory, kernel = made.buffer("memory", 512 * launches, role="inout"), rl.Kernel.synthetic("map", pointers=2)
    for at in range(0, 512 * launches, 512):
        halves = [rl.read(memory[at : at + 256]), rl.write(memory[at + 256 : at + 512])]
        made.launch(kernel, grid=1, block=64, args=halves)
    return made


def rnd(launches: int) -> rl.Graph:
    """Four accesses each to random ranges of 64 buffers: one writes, the others read. The same graph every time."""
    made, draw = rl.Graph(), random.Random(4)
    memories = [made.buffer(f"m{index}", _BYTES, role="inout") for index in range(64)]
    kernel = rl.Kernel.synthetic("mix", pointers=4)
    for _ in range(launches):
        views = []
        for _ in range(4):
            start = draw.randrange(0, _BYTES, 64)
            views.append(memories[draw.randrange(64)][start : draw.randrange(start + 64, _BYTES + 64, 64)])
        args = [rl.write(views[0]), *map(rl.read, views[1:])]
        made.launch(kernel, grid=1, block=64, args=args)
    return made


def unrolled_kv(launches: int) -> rl.Graph:
    """Each slice of a buffer is written and then the whole buffer read, again and again: n * n / 8 conflicts."""
    made = rl.Graph()
    rounds = -(-launches // 2)
    cache, out = made.buffer("cache", 256 * rounds, role="inout"), made.buffer("out", 256, role="out")
    append, attend = rl.Kernel.synthetic("append"), rl.Kernel.synthetic("attend", pointers=2)
    for i in range(launches):
        at = 256 * (i // 2)
        if i % 2:
            made.launch(attend, grid=1, block=64, args=[rl.read(cache), rl.write(out)])
        else:
            made.launch(append, grid=1, block=64, args=[rl.write(cache[at : at + 256])])
    return made


def chain(launches: int) -> rl.Graph:
    """Case 1: every launch updates the same bytes."""
    made, update = rl.Graph(), rl.Kernel.synthetic("update")
    shared = made.buffer("shared", 4, role="inout")
    for _ in range(launches):
        made.launch(update, grid=1, block=64, args=[rl.update(shared)])
    return made


def fan_out(launches: int) -> rl.Graph:
    """Case 1: the first launch writes what all the others read; each writes bytes of its own."""
    made, fan = rl.Graph(), rl.Kernel.synthetic("fan", pointers=2)
    shared, own = made.buffer("shared", 4), made.buffer("own", 4 * launches, role="out")
    for i in range(launches):
        first = rl.read(shared) if i else rl.write(shared)
        made.launch(fan, grid=1, block=64, args=[first, rl.write(own[4 * i : 4 * i + 4])])
    return made


SHAPES: Final[dict[str, Callable[[int], rl.Graph]]] = {
    "llm": llm,
    "wide": wide,
    "rnd": rnd,
    "unrolled-kv": unrolled_kv,
    "chain": chain,
    "fan-out": fan_out,
}
