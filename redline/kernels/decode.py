# SPDX-License-Identifier: Apache-2.0
"""A two-layer decoder, one token at a time, as a list of launches of the example kernels.

`LAUNCHES` says which kernel runs on which bytes with which arguments; `initial` gives every buffer's first
content and `step` computes one token with the oracles. Whoever wants to run it on a device records the same
list. This file knows no graph, device or address.

The model is small and whole: hashed int8 embedding, learned positions, and in each layer RMS norm, one
fused and interleaved QKV projection, a KV cache written in place, grouped attention over the cache, and a
gated feed-forward with an f16 gain that an adapter nudges; then logits and the next token by argmax, fed
back as the next key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from redline.kernels.oracles import ORACLES, PARAMS, Geometry
from redline.kernels.specs import SPECS, Dims

HIDDEN, FEED, VOCABULARY, CONTEXT, LAYERS, TOKENS = 64, 128, 128, 32, 2, 8
KV_HEADS, GROUP, DEPTH = 2, 2, 16  # query heads of one KV head; width of a head
WIDTH = KV_HEADS * DEPTH  # of a cache row
QKV = KV_HEADS * (GROUP + 2) * DEPTH  # for each KV head: its queries, its key, its value
EPSILON = 1e-5
SEED = 0x5EED
FIRST_TOKEN = 17

Role = Literal["in", "out", "inout", "internal"]
State = dict[str, NDArray[np.uint8]]


@dataclass(frozen=True)
class Buffer:
    """A buffer by name, its bytes, and who else touches it: roles as in `Graph.buffer`."""

    name: str
    nbytes: int
    role: Role


@dataclass(frozen=True)
class Slot:
    """A scalar that changes with each token. `type` is numpy's name."""

    name: str
    type: str


@dataclass(frozen=True)
class Range:
    """Bytes [start, stop) of a buffer; the kernel gets the address of the first."""

    buffer: str
    start: int
    stop: int


@dataclass(frozen=True)
class Launch:
    """One kernel on its arguments in the kernel's own order. `SPECS[kernel]` says what each pointer does."""

    label: str
    kernel: str
    arguments: tuple[Range | Slot | int | float | bytes, ...]
    global_size: Dims
    block: Dims


POSITION = Slot("position", "u4")
LENGTH = Slot("length", "u4")
OFFSET = Slot("offset", "u4")
STRENGTH = Slot("strength", "f2")


def slot_values(token: int) -> dict[str, int | float]:
    """What the slots hold for the token at this position."""
    return {
        "position": token,
        "length": token + 1,
        "offset": token * HIDDEN,
        "strength": 0.0625 * (token % 4),
    }


def _buffer_list() -> tuple[Buffer, ...]:
    f4 = 4
    shared: list[tuple[str, int, Role]] = [
        ("key", 8, "inout"),
        ("embedding", HIDDEN * HIDDEN, "in"),
        ("embedding_scale", HIDDEN * f4, "in"),
        ("positions", CONTEXT * HIDDEN * f4, "in"),
        ("final_norm", HIDDEN * f4, "in"),
        ("output", HIDDEN * VOCABULARY * f4, "in"),
        ("logits", VOCABULARY * f4, "out"),
        ("token", 4, "out"),
        ("best", f4, "out"),
        ("code", HIDDEN, "internal"),
        ("place", HIDDEN * f4, "internal"),
        ("x", HIDDEN * f4, "internal"),
        ("normal", HIDDEN * f4, "internal"),
        ("qkv", QKV * f4, "internal"),
        ("query", KV_HEADS * GROUP * DEPTH * f4, "internal"),
        ("kv", 2 * WIDTH * f4, "internal"),
        ("keys", CONTEXT * WIDTH * f4, "internal"),
        ("scores", KV_HEADS * GROUP * CONTEXT * f4, "internal"),
        ("weights", KV_HEADS * GROUP * CONTEXT * f4, "internal"),
        ("mixed", KV_HEADS * GROUP * DEPTH * f4, "internal"),
        ("delta", HIDDEN * f4, "internal"),
        ("up", FEED * f4, "internal"),
        ("gated", FEED * f4, "internal"),
    ]
    for layer in range(LAYERS):
        shared += [
            (f"norm_a{layer}", HIDDEN * f4, "in"),
            (f"qkv_weight{layer}", HIDDEN * QKV * f4, "in"),
            (f"out_weight{layer}", HIDDEN * HIDDEN * f4, "in"),
            (f"norm_b{layer}", HIDDEN * f4, "in"),
            (f"up_weight{layer}", HIDDEN * FEED * f4, "in"),
            (f"down_weight{layer}", FEED * HIDDEN * f4, "in"),
            (f"adapter{layer}", FEED * 2, "in"),
            (f"gain{layer}", FEED * 2, "inout"),
            (f"k_cache{layer}", CONTEXT * WIDTH * f4, "inout"),
            (f"v_cache{layer}", CONTEXT * WIDTH * f4, "inout"),
            (f"geometry{layer}", 64, "out"),
        ]
    return tuple(Buffer(*row) for row in shared)


BUFFERS: dict[str, Buffer] = {buffer.name: buffer for buffer in _buffer_list()}


def _all(name: str) -> Range:
    return Range(name, 0, BUFFERS[name].nbytes)


def _launch(label: str, kernel: str, *arguments: Range | Slot | int | float | bytes, free: Dims = (1, 1, 1)) -> Launch:
    """A launch of whole workgroups that cover the kernel's scalars."""
    spec = SPECS[kernel]
    assert spec.block is not None
    scalars = {a.name: v for a, v in zip(spec.arguments, arguments, strict=True) if isinstance(v, int)}
    groups, block = spec.groups(scalars, free), spec.block
    size = (groups[0] * block[0], groups[1] * block[1], groups[2] * block[2])
    return Launch(label, kernel, arguments, size, block)


def _vector_matrix(label: str, out: str, vector: str, matrix: str, n: int, k: int) -> Launch:
    """out[n] = vector[k] x matrix[k, n]."""
    operands = _all(out), _all(vector), _all(matrix)
    return _launch(label, "matmul", *operands, 1, n, k, k, n, n, 0, 0, 0)


def _embed() -> list[Launch]:
    row = Range("place", 0, HIDDEN * 4)
    return [
        _launch("hash token", "hash", _all("code"), _all("key"), SEED, HIDDEN // 8, 3),
        _launch(
            "embed",
            "q8dot",
            _all("x"),
            _all("embedding"),
            _all("code"),
            _all("embedding_scale"),
            1.0 / 128,
            HIDDEN,
            HIDDEN // 4,
        ),
        _launch("take position", "index3d", row, _all("positions"), HIDDEN, 1, 1, 1, 0, 0, OFFSET),
        _launch("add position", "saxpy", _all("x"), row, 1.0, HIDDEN),
    ]


def _attend(layer: int) -> list[Launch]:
    head, heads = (GROUP + 2) * DEPTH, KV_HEADS * GROUP
    k_cache, v_cache = _all(f"k_cache{layer}"), _all(f"v_cache{layer}")
    k_row, v_row = Range("kv", 0, WIDTH * 4), Range("kv", WIDTH * 4, 2 * WIDTH * 4)
    qkv, query, kv = _all("qkv"), _all("query"), _all("kv")
    weights, scores, keys = _all("weights"), _all("scores"), _all("keys")
    return [
        _launch("norm a", "rmsnorm", _all("normal"), _all("x"), _all(f"norm_a{layer}"), EPSILON, HIDDEN, HIDDEN),
        _vector_matrix("project qkv", "qkv", "normal", f"qkv_weight{layer}", QKV, HIDDEN),
        _launch("split query", "index3d", query, qkv, DEPTH, GROUP, KV_HEADS, 1, DEPTH, head, 0),
        _launch("split kv", "index3d", kv, qkv, DEPTH, KV_HEADS, 2, 1, head, DEPTH, GROUP * DEPTH),
        _launch("write kv", "kv_write", k_cache, v_cache, k_row, v_row, POSITION, WIDTH, CONTEXT),
        _launch("transpose keys", "transpose", keys, k_cache, CONTEXT, WIDTH, WIDTH, CONTEXT),
        _launch(
            *("query x keys", "matmul", scores, query, keys),
            *(GROUP, CONTEXT, DEPTH, DEPTH, CONTEXT, CONTEXT),
            *(GROUP * DEPTH, DEPTH * CONTEXT, GROUP * CONTEXT),
            free=(1, 1, KV_HEADS),
        ),
        # The grid is the box: 32 x 4 x 1 work-items, workgroups of 16 x 4 x 2, all of them partial.
        Launch(
            "clear weights",
            "fill",
            (weights, 0.0, 0.0, 0.0, CONTEXT, CONTEXT, heads * CONTEXT),
            (CONTEXT, heads, 1),
            (16, 4, 2),
        ),
        _launch("softmax", "softmax", weights, scores, DEPTH**-0.5, LENGTH, CONTEXT, free=(heads, 1, 1)),
        _launch(
            *("weights x values", "matmul", _all("mixed"), weights, v_cache),
            *(GROUP, DEPTH, CONTEXT, CONTEXT, WIDTH, DEPTH),
            *(GROUP * CONTEXT, DEPTH, GROUP * DEPTH),
            free=(1, 1, KV_HEADS),
        ),
        _vector_matrix("project out", "delta", "mixed", f"out_weight{layer}", HIDDEN, HIDDEN),
        _launch("add attention", "saxpy", _all("x"), _all("delta"), 1.0, HIDDEN),
    ]


def _feed(layer: int) -> list[Launch]:
    gain = _all(f"gain{layer}")
    gate = (_all("gated"), _all("up"), gain, _all(f"geometry{layer}"), _gate_params(layer))
    return [
        _launch("norm b", "rmsnorm", _all("normal"), _all("x"), _all(f"norm_b{layer}"), EPSILON, HIDDEN, HIDDEN),
        _vector_matrix("project up", "up", "normal", f"up_weight{layer}", FEED, HIDDEN),
        _launch("nudge gain", "axpy_f16", gain, _all(f"adapter{layer}"), STRENGTH, FEED),
        # 96 work-items in workgroups of 64: one whole, one partial, and the kernel strides over the rest.
        Launch("gate", "activate", gate, (96, 1, 1), (64, 1, 1)),
        _vector_matrix("project down", "delta", "gated", f"down_weight{layer}", HIDDEN, FEED),
        _launch("add feed", "saxpy", _all("x"), _all("delta"), 1.0, HIDDEN),
    ]


def _gate_params(layer: int) -> bytes:
    """Hard swish: the gate is x / 6 + 1 / 2, held between 0 and 1."""
    params = np.zeros((), PARAMS)
    params["slope"], params["shift"], params["low"], params["high"] = 1 / 6, 0.5, 0.0, 1.0
    params["stamp"], params["n"], params["tag"] = 0x0123456789ABCDEF, FEED, layer
    return params.tobytes()


def _choose() -> list[Launch]:
    return [
        _launch("final norm", "rmsnorm", _all("normal"), _all("x"), _all("final_norm"), EPSILON, HIDDEN, HIDDEN),
        _vector_matrix("logits", "logits", "normal", "output", VOCABULARY, HIDDEN),
        _launch("argmax", "argmax", _all("token"), _all("best"), _all("logits"), VOCABULARY, VOCABULARY),
        _launch("feed back", "copy", Range("key", 0, 4), _all("token"), 1),
    ]


def _layer(layer: int) -> list[Launch]:
    launches = _attend(layer) + _feed(layer)
    return [Launch(f"{one.label} {layer}", *_rest(one)) for one in launches]


def _rest(one: Launch) -> tuple[Any, ...]:
    return one.kernel, one.arguments, one.global_size, one.block


LAUNCHES: tuple[Launch, ...] = (
    *_embed(),
    *(launch for layer in range(LAYERS) for launch in _layer(layer)),
    *_choose(),
)


def initial() -> State:
    """Every buffer's content before the first token: seeded weights, empty caches, the first key."""
    random = np.random.default_rng(SEED)
    state = {name: np.zeros(buffer.nbytes, np.uint8) for name, buffer in BUFFERS.items()}

    def put(name: str, values: NDArray[Any], kind: str) -> None:
        state[name][:] = values.astype(kind).view(np.uint8).ravel()

    put("key", np.array([FIRST_TOKEN]), "<u8")
    put("embedding", random.integers(-127, 128, HIDDEN * HIDDEN), "i1")
    put("embedding_scale", random.uniform(0.5, 1.5, HIDDEN) / 512, "<f4")
    put("positions", random.normal(0, 0.5, CONTEXT * HIDDEN), "<f4")
    put("final_norm", random.uniform(0.5, 1.5, HIDDEN), "<f4")
    put("output", random.normal(0, HIDDEN**-0.5, HIDDEN * VOCABULARY), "<f4")
    for layer in range(LAYERS):
        for norm in ("norm_a", "norm_b"):
            put(f"{norm}{layer}", random.uniform(0.5, 1.5, HIDDEN), "<f4")
        for name, rows, columns in (
            ("qkv_weight", HIDDEN, QKV),
            ("out_weight", HIDDEN, HIDDEN),
            ("up_weight", HIDDEN, FEED),
            ("down_weight", FEED, HIDDEN),
        ):
            put(f"{name}{layer}", random.normal(0, 1.5 * rows**-0.5, rows * columns), "<f4")
        put(f"adapter{layer}", random.normal(0, 0.5, FEED), "<f2")
        put(f"gain{layer}", random.uniform(0.5, 1.5, FEED), "<f2")
    return state


def arguments(launch: Launch, state: State, values: Mapping[str, int | float]) -> list[Any]:
    """The launch's arguments in the types of `SPECS`: views into `state` for pointers, numpy scalars for the rest."""
    typed: list[Any] = []
    for argument, given in zip(SPECS[launch.kernel].arguments, launch.arguments, strict=True):
        value = values[given.name] if isinstance(given, Slot) else given
        if isinstance(value, Range):
            typed.append(state[value.buffer][value.start : value.stop].view(argument.type))
        elif isinstance(value, bytes):
            typed.append(np.frombuffer(value, PARAMS)[0])
        else:
            typed.append(np.dtype(argument.type).type(value))
    return typed


def step(state: State, values: Mapping[str, int | float]) -> int:
    """Run every launch once with the oracles, in place on `state`; the next token."""
    for launch in LAUNCHES:
        given = [a.item() if isinstance(a, np.integer) else a for a in arguments(launch, state, values)]
        ORACLES[launch.kernel](*given, geometry=Geometry(launch.global_size, launch.block))
    return int(state["token"].view(np.int32)[0])
