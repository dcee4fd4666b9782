# SPDX-License-Identifier: Apache-2.0
"""The AQL packets of a program: templates without addresses, and how a replay fills them in.

A program's packets stand lane by lane, each lane in the order of its queue. Every signal has one producer: signal 0 is
what the host waits for, the others carry waits between lanes. Builds no words of an indirect buffer (`lowering.py`) and
touches no ring (`hsa/queue.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from .encoders.aql import (
    BARRIER_DEPENDENCIES,
    barrier_and_packet,
    header,
    kernel_dispatch_packet,
    pm4_ib_packet,
)

if TYPE_CHECKING:
    from .aql_lanes import AqlLanes, AqlLaunch
    from .launch import Launch
    from .plan import Plan
    from .program import Program

#: One row per packet: its lane and its 16 dwords, 0 where an address, a handle or a size belongs.
PACKET: Final = np.dtype([("lane", "<u4"), ("words", "<u4", (16,))])

#: What belongs into words `word` and `word + 1` of a packet. An indirect buffer's size goes into the word behind.
PACKET_RELOC: Final = np.dtype([("packet", "<u4"), ("word", "<u4"), ("kind", "<u4"), ("index", "<u4")])
IB, KERNEL_OBJECT, SLOT, SIGNAL = 0, 1, 2, 3

#: For each lane the packets of one submission, uint32 of shape (packets, 16).
Batches = list[NDArray[np.uint32]]

#: The signal that ends a replay.
FINAL: Final = 0

#: Packet type of a barrier-AND packet (hsa.h), and the first word of a packet's completion signal.
BARRIER_AND: Final = 3
COMPLETION: Final = 14

_IB_ADDRESS, _OBJECT, _KERNARG, _DEPENDENCY = 2, 8, 10, 2
_SCOPES: Final = ("NONE", "AGENT", "SYSTEM")


class Packets:
    """Collects packets and what they refer to."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, NDArray[np.uint32]]] = []
        self._relocs: list[tuple[int, int, int, int]] = []
        self._dispatches: dict[tuple[object, ...], NDArray[np.uint32]] = {}  # equal launches are packed once
        self.signals = 1

    def signal(self) -> int:
        """A signal more; its number."""
        self.signals += 1
        return self.signals - 1

    def ib(self, lane: int, ib: int, completes: int | None) -> None:
        """Run an indirect buffer. Whether the header's scopes reach into it is documented nowhere: rule `ib-scope`."""
        words = pm4_ib_packet(0, 1)
        words[_IB_ADDRESS + 2] &= ~np.uint32(0xFFFFF)
        self._add(lane, words, [(_IB_ADDRESS, IB, ib)], completes)

    def dispatch(
        self, lane: int, launch: Launch, row: AqlLaunch, kernel: int, slot: int, completes: int | None
    ) -> None:
        """Launch a kernel."""
        lds = launch.kernel.group_bytes + launch.dynamic_lds
        key = launch.global_size, launch.block, lds, row.barrier, row.acquire, row.release
        if key not in self._dispatches:
            scopes = {"acquire": _SCOPES[row.acquire], "release": _SCOPES[row.release]}
            word = header("KERNEL_DISPATCH", barrier=row.barrier, **scopes)
            self._dispatches[key] = kernel_dispatch_packet(
                0, 0, global_size=launch.global_size, block=launch.block, group_bytes=lds, header=word
            )
        words = self._dispatches[key]
        self._add(lane, words, [(_OBJECT, KERNEL_OBJECT, kernel), (_KERNARG, SLOT, slot)], completes)

    def wait(self, lane: int, signals: Sequence[int]) -> None:
        """Hold back what comes behind on the lane until all signals are 0: packets of five each."""
        for at in range(0, len(signals), BARRIER_DEPENDENCIES):
            self._barrier(lane, signals[at : at + BARRIER_DEPENDENCIES], None, barrier=False, release="NONE")

    def end(self, lane: int, signals: Sequence[int], completes: int, *, release: str) -> None:
        """Wait for all earlier packets of the lane and for signals of others, then complete one more."""
        last = max(len(signals) - 1, 0) // BARRIER_DEPENDENCIES * BARRIER_DEPENDENCIES
        self.wait(lane, signals[:last])
        self._barrier(lane, signals[last:], completes, barrier=True, release=release)

    def _barrier(
        self, lane: int, signals: Sequence[int], completes: int | None, *, barrier: bool, release: str
    ) -> None:
        words = barrier_and_packet((), header=header("BARRIER_AND", barrier=barrier, acquire="NONE", release=release))
        self._add(lane, words, [(_DEPENDENCY + 2 * at, SIGNAL, one) for at, one in enumerate(signals)], completes)

    def _add(
        self, lane: int, words: NDArray[np.uint32], refers: list[tuple[int, int, int]], completes: int | None
    ) -> None:
        refers += [] if completes is None else [(COMPLETION, SIGNAL, completes)]
        self._relocs += [(len(self._rows), *reference) for reference in refers]
        self._rows.append((lane, words))

    def columns(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """(packets, relocations), by lane."""
        order = np.argsort([lane for lane, _ in self._rows], kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        packets, relocs = np.zeros(len(order), PACKET), np.array(self._relocs, PACKET_RELOC)
        packets["lane"][rank] = [lane for lane, _ in self._rows]
        packets["words"][rank] = [words for _, words in self._rows]
        relocs["packet"] = rank[relocs["packet"]]
        return packets, relocs[np.argsort(relocs["packet"], kind="stable")]


def aql_packets(
    plan: Plan, lanes: AqlLanes, kernels: dict[int, int], slots: dict[int, int], *, profile: bool = False
) -> Packets:
    """The packets of each launch with its waits, one packet at the end of each lane, the terminal fan-in on the first.

    `kernels` and `slots` number the kernel and the kernarg slot of each launch, by recorded index. `profile`: every
    launch completes a signal, for its times.
    """
    made = Packets()
    signal_of = {row.launch: made.signal() for lane in lanes for row in lane if row.signals or profile}
    for lane, rows in enumerate(lanes):
        for row in rows:
            made.wait(lane, [signal_of[first] for first in row.waits])
            launch, completes = plan.launches[row.launch], signal_of.get(row.launch)
            made.dispatch(lane, launch, row, kernels[row.launch], slots[row.launch], completes)
    join(made, range(1, len(lanes)), release="SYSTEM")
    return made


def join(packets: Packets, others: Sequence[int], *, release: str) -> None:
    """End a replay: the other lanes first, then the first lane, whose last packet waits for all and tells the host."""
    ends = [packets.signal() for _ in others]
    for lane, signal in zip(others, ends, strict=True):
        packets.end(lane, (), signal, release="NONE")
    packets.end(0, ends, FINAL, release=release)


def place(
    program: Program, ib: int, tables: Sequence[NDArray[np.uint64]], *, warm: bool, release: bool
) -> list[NDArray[np.uint32]]:
    """For each lane the words of its packets, of shape (packets, 16), for one replay.

    It runs from a warm or a cold start to the end with or without the release. `ib` is the address of the program's
    words; `tables` holds uint64 values by relocation kind from KERNEL_OBJECT on: kernel objects, kernarg slots, signal
    handles.
    """
    first = program.ibs["warm" if warm else "cold"].astype(np.int64)
    sizes = (program.ibs["end_release" if release else "end"] - first).astype(np.uint32)
    starts = (ib + 4 * first).astype(np.uint64)
    words: NDArray[np.uint32] = program.packets["words"].copy()
    for kind, table in enumerate((starts, *tables)):
        rows = program.packet_relocs[program.packet_relocs["kind"] == kind]
        values = table[rows["index"]]
        words[rows["packet"], rows["word"]] |= (values & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        words[rows["packet"], rows["word"] + 1] |= (values >> np.uint64(32)).astype(np.uint32)
        if kind == IB:
            words[rows["packet"], rows["word"] + 2] |= sizes[rows["index"]]
    return [words[program.packets["lane"] == lane] for lane in range(program.lanes)]


def repeated(first: Batches, middle: Batches, last: Batches, times: int) -> Batches:
    """Replays behind one another in one submission: only the last one completes signals and joins lanes."""
    if times == 1:
        return last
    made = []
    for one, again, end in zip(first, middle, last, strict=True):
        made.append(np.concatenate([silent(one), *[silent(again)] * (times - 2), end]))
    return made


def silent(packets: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Without what ends a replay: no completion, and no packet that only waits."""
    kept: NDArray[np.uint32] = packets[(packets[:, 0] & 0xFF) != BARRIER_AND].copy()
    kept[:, COMPLETION:] = 0
    return kept
