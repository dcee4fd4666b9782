# SPDX-License-Identifier: Apache-2.0
"""Damaged PM4 streams: whoever reads them answers or refuses, in bounded time and without another exception.

The decoder, the linter and `verify_words` read the words; the software device's packet reader runs them over a memory
of their own, with a back end that runs no kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

import redline as rl
from redline.encoders.decode import decode
from redline.encoders.emit import apply_relocs
from redline.encoders.lint import lint
from redline.sim.errors import DeviceFault
from redline.sim.families import TARGETS
from redline.sim.memory import Memory
from redline.sim.packets import Pm4Reader
from redline_fuzz import bounded
from redline_fuzz.cases import Case, Node, Touch, record
from redline_fuzz.cases import Memory as Bytes
from redline_fuzz.no_kernels import NoKernels
from redline_fuzz.oracles import FIVE

_PATIENCE_S = 0.002
_SPOTS = 8  # addresses that a stream may name: data, code, arguments, itself
_SPOT_BYTES = 4096
_WORDS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xC0003F00, 0xC0023F00, 0xFFFF1000, 0x407, 0x00F00000)


@cache
def _plans() -> tuple[tuple[rl.Plan, str], ...]:
    """Plans with every packet that ours have, and how gfx10 waits in each."""
    memories = (Bytes(4, role="inout"), Bytes(12, role="inout"))
    nodes = (
        Node((Touch(0, 0, 4, "update"),), slot="s"),
        Node((Touch(0, 0, 4, "update"),), counts=1),
        Node((Touch(1, 0, 12, "write"),)),
    )
    made = []
    for target in FIVE:
        for boundary in ("host", "queue"):
            graph = record(Case(memories, nodes, target=target))
            made += [(rl.Plan.of(graph, boundary=boundary), wait) for wait in ("fence", "partial_flush")]
    return tuple(made)


def judge(seed: int, index: int) -> tuple[str, str]:
    """One damaged stream, read by everybody."""
    random = Random(f"{seed} streams {index}")
    plan, wait = random.choice(_plans())
    memory = Memory()
    try:
        spots = [memory.allocate(_SPOT_BYTES, executable=True) for _ in range(_SPOTS)]
        words = _damaged(random, _relocated(plan, wait, spots), spots)
        answers = [_answered(lambda: decode(words, plan.target)), _answered(lambda: lint(words, plan.target))]
        answers.append(_answered(lambda: rl.verify_words(plan, words, plan.target, gfx10_wait=wait)))
        answers.append(_run(memory, plan.target, spots[-1], words))
        # A stream may overwrite any spot, itself too; what lies between spots it must not reach.
        return " ".join(answers), ""
    finally:
        memory.close()


def _relocated(plan: rl.Plan, wait: str, spots: list[int]) -> list[int]:
    """The plan's words with addresses of the spots."""
    program = rl.lower(plan, plan.fences, gfx10_wait=wait)
    words = program.words.copy()
    table = np.array(spots * 4, np.uint64)
    apply_relocs(words, program.relocs, table, table[1:], table[2:], table[3:])
    listed: list[int] = words.tolist()
    return listed


def _damaged(random: Random, words: list[int], spots: list[int]) -> list[int]:
    """One to three mutations."""
    for _ in range(random.randrange(1, 4)):
        words = random.choice(_MUTATIONS)(random, words, spots)
    return words[: _SPOT_BYTES // 4] or [0]


def _flip(random: Random, words: list[int], spots: list[int]) -> list[int]:
    at = random.randrange(len(words))
    return [*words[:at], words[at] ^ 1 << random.randrange(32), *words[at + 1 :]]


def _replace(random: Random, words: list[int], spots: list[int]) -> list[int]:
    at = random.randrange(len(words))
    value = random.choice((*_WORDS, random.getrandbits(32), random.choice(spots) & 0xFFFFFFFF))
    return [*words[:at], value, *words[at + 1 :]]


def _cut(random: Random, words: list[int], spots: list[int]) -> list[int]:
    first, last = sorted(random.randrange(len(words) + 1) for _ in range(2))
    return words[:first] + words[last:] or [0]


def _truncate(random: Random, words: list[int], spots: list[int]) -> list[int]:
    return words[: random.randrange(1, len(words) + 1)]


def _double(random: Random, words: list[int], spots: list[int]) -> list[int]:
    first, last = sorted(random.randrange(len(words) + 1) for _ in range(2))
    return words[:last] + words[first:last] + words[last:]


def _swap(random: Random, words: list[int], spots: list[int]) -> list[int]:
    a, b, c = sorted(random.randrange(len(words) + 1) for _ in range(3))
    return words[:a] + words[b:c] + words[a:b] + words[c:]


def _chain(random: Random, words: list[int], spots: list[int]) -> list[int]:
    """An INDIRECT_BUFFER at the end: to itself, to another spot, or to nowhere."""
    target = random.choice((spots[-1], random.choice(spots), random.getrandbits(48) & ~3))
    size = random.choice((len(words), len(words) + 4, 1, 0xFFFFF))
    return [*words, 0xC0023F00, target & 0xFFFFFFFF, target >> 32, 0x00900000 | size]


def _wait(random: Random, words: list[int], spots: list[int]) -> list[int]:
    """A wait that nothing ends, perhaps."""
    spot = random.choice(spots)
    packet = [0xC0053C00, 0x10 | random.randrange(8), spot & 0xFFFFFFFF, spot >> 32, random.getrandbits(32), 0xFF, 4]
    at = random.randrange(len(words) + 1)
    return words[:at] + packet + words[at:]


def _noise(random: Random, words: list[int], spots: list[int]) -> list[int]:
    return [random.getrandbits(32) for _ in range(random.randrange(1, 64))]


_MUTATIONS: tuple[Callable[[Random, list[int], list[int]], list[int]], ...] = (
    *(_flip, _flip, _flip, _replace, _replace, _cut, _truncate, _double, _swap, _chain, _wait, _noise),
)


def _answered(read: Callable[[], object]) -> str:
    """Read, or refused with an error of ours."""
    try:
        read()
    except rl.RedlineError as error:
        return error.code
    return "read"


def _run(memory: Memory, target: str, place: int, words: list[int]) -> str:
    memory.store(place, np.array(words, "<u4").tobytes())
    reader = Pm4Reader(TARGETS[target].family, memory, NoKernels(), lambda _executed: None, _PATIENCE_S)
    try:
        reader.run(place, len(words), threading.Event())
    except DeviceFault as fault:
        return type(fault).__name__
    return "ran"


def run(count: int, seed: int = 1) -> dict[str, Any]:
    """`count` damaged streams."""
    return bounded.run(judge, count, seed)
