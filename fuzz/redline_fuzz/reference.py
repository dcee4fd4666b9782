# SPDX-License-Identifier: Apache-2.0
"""The sequential meaning of a case: launches one after another on plain bytes, the shortest definition we have.

Between replays the host patches, binds, reads and writes, and other queues write, as the case says. What they write is
made from the case's seed, here and for the machine alike.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from redline_fuzz.cases import COUNT_BYTES, Between, Case, Node, Touch, number
from redline_fuzz.machine import Seen
from redline_fuzz.patterns import mix, mixed_byte

#: Bytes by memory, aliases excluded.
Bytes = dict[int, bytearray]

#: Of a memory: (memory, which of the two that are bound in turn).
Place = tuple[int, int]

OTHER_QUEUES_WRITE = ("in", "out", "inout")
HOST_WRITES = ("in", "inout")
HOST_READS = ("out", "inout")


@dataclass
class Outcome:
    """What can be observed of a run.

    `seen`: what each dispatch was given and read, by place in the submission. `host`: what the host read, in turn.
    `memory`: bytes at the end. `stores`: who stored to each byte, in order; dead writes count too. `ran`:
    dispatches in the order in which they ended. `faults`: whatever no legal program does.
    """

    seen: dict[int, Seen] = field(default_factory=dict)
    host: list[dict[int, bytes]] = field(default_factory=list)
    memory: dict[Place, bytes] = field(default_factory=dict)
    stores: dict[tuple[Place, int], list[int]] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    widest: int = 0  # the most dispatches that were undrained at a time


def expect(case: Case, order: Sequence[int]) -> Outcome:
    """The outcome of all replays. `order` lists recorded indices as they are emitted; it names dispatches, no more."""
    outcome = Outcome()
    bound = 0
    banks = [_initial(case, bank) for bank in range(2)]
    internal = banks[0]
    values = {name: bytes(4) for name in case.slots}
    for replay in range(len(case.between) + 1):
        between = case.between[replay - 1] if replay else Between(host=True)
        if replay and between.host:
            outcome.host.append(_read(case, banks[bound]))
        bound ^= between.bind
        for memory, written in writes(case, replay, between).items():
            banks[bound][memory][:] = written
        values.update(patches(case, replay, between))
        memory_now = {m: (internal if case.memories[m].role == "internal" else banks[bound])[m] for m in internal}
        at = {index: place for place, index in enumerate(order)}
        for index, node in enumerate(case.nodes):
            ordinal = replay * len(order) + at[index]
            outcome.seen[ordinal] = run_launch(case, node, ordinal, memory_now, values)
            _note_stores(case, node, outcome, ordinal, bound, memory_now)
    outcome.host.append(_read(case, banks[bound]))
    outcome.memory = _final(case, banks)
    return outcome


def _note_stores(case: Case, node: Node, outcome: Outcome, ordinal: int, bound: int, memory: Bytes) -> None:
    if 0 in outcome.seen[ordinal].dims:
        return
    for touch in (*node.touches, *node.extra):
        for at in range(touch.start, touch.stop) if touch.writes else ():
            root, offset = place_of(case, touch.memory, at)
            bank = 0 if case.memories[root].role == "internal" else bound
            stored = outcome.stores.setdefault(((root, bank), offset), [])
            if not stored or stored[-1] != ordinal:
                stored.append(ordinal)


def _initial(case: Case, bank: int) -> Bytes:
    roots = {m: memory for m, memory in enumerate(case.memories) if memory.alias is None}
    return {m: bytearray(data(case, "initial", bank, m, memory.nbytes)) for m, memory in roots.items()}


def initial(case: Case, memory: int, bank: int) -> bytes:
    """What stands in a memory before anybody wrote it."""
    return data(case, "initial", bank, memory, case.memories[memory].nbytes)


def writes(case: Case, replay: int, between: Between) -> dict[int, bytes]:
    """What the host or other queues write into which memories before a replay."""
    roles: tuple[str, ...] = HOST_WRITES if between.host else ()
    if replay and case.boundary == "other-queue":
        roles = OTHER_QUEUES_WRITE
    chosen = [m for m, memory in enumerate(case.memories) if memory.alias is None and memory.role in roles]
    return {m: data(case, "written", replay, m, case.memories[m].nbytes) for m in chosen}


def patches(case: Case, replay: int, between: Between) -> dict[str, bytes]:
    """The slots' values that are patched before a replay: all of them."""
    if not between.patch:
        return {}
    return {name: data(case, "patched", replay, at, 4) for at, name in enumerate(case.slots)}


def data(case: Case, what: str, first: int, second: int, nbytes: int) -> bytes:
    """Bytes that only the case's seed and these decide."""
    if what != "patched" and case.memories[second].zeros:
        return bytes(nbytes)
    return Random(f"{case.seed} {what} {first} {second}").randbytes(nbytes)


def _read(case: Case, bank: Bytes) -> dict[int, bytes]:
    return {m: bytes(held) for m, held in bank.items() if case.memories[m].role in HOST_READS}


def _final(case: Case, banks: Sequence[Bytes]) -> dict[Place, bytes]:
    two = any(between.bind for between in case.between)
    found: dict[Place, bytes] = {}
    for bank, held in enumerate(banks[: 1 + two]):
        for m, content in held.items():
            if not (bank and case.memories[m].role == "internal"):
                found[m, bank] = bytes(content)
    return found


def run_launch(case: Case, node: Node, ordinal: int, memory: Bytes, values: Mapping[str, bytes]) -> Seen:
    """One launch on `memory`, in place, and what it was given and read. `ordinal`: its place in the submission."""
    dims = (1, 1, 1)
    if node.counts is not None:
        dims = struct.unpack("<3I", _bytes(case, memory, Touch(node.counts, 0, COUNT_BYTES, "read")))
    value = values[node.slot] if node.slot else b""
    if 0 in dims:
        return Seen(number(node), dims, value, b"")
    touches = (*node.touches, *node.extra)
    read = b"".join(_bytes(case, memory, touch) for touch in touches if touch.reads)
    state = mix(number(node), ordinal, dims, value, read)
    place = 0
    for touch in touches:
        for at in range(touch.start, touch.stop) if touch.writes else ():
            root, offset = place_of(case, touch.memory, at)
            memory[root][offset] = mixed_byte(state, place)
            place += 1
    return Seen(number(node), dims, value, read)


def place_of(case: Case, memory: int, at: int) -> tuple[int, int]:
    """Byte `at` of a memory as a byte of the memory that it is a view of."""
    alias = case.memories[memory].alias
    return (memory, at) if alias is None else place_of(case, alias[0], alias[1] + at)


def _bytes(case: Case, memory: Bytes, touch: Touch) -> bytes:
    places = (place_of(case, touch.memory, at) for at in range(touch.start, touch.stop))
    return bytes(memory[root][offset] for root, offset in places)
