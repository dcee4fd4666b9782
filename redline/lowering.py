# SPDX-License-Identifier: Apache-2.0
"""Fences and launches as operations, and operations as the words of indirect buffers.

One `Stream` is what one queue reads: entries, launches with their fences, tail; a long one is cut into several buffers
that stand behind one another. Kernels, kernarg slots and fence words are numbered over all streams of a program. Which
stream a launch belongs to and what packets run them is `forms.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from .accesses import CLASSES
from .encoders import family_for
from .encoders.dispatch import operation
from .encoders.emit import (
    ACQUIRE,
    BUFFER,
    DISPATCH,
    DRAIN,
    FENCE_DRAIN,
    FENCE_ZERO,
    OPERATION,
    OWNED,
    RELOC,
    SETUP,
    WORDS,
    WORDS_HERE,
    each_max_dwords,
    emit_program,
    max_dwords,
    max_relocs,
)
from .errors import EncodeError
from .kernarg import TYPES, slot_bytes
from .kernel import KERNARG_SLOT_BYTES, Kernel

if TYPE_CHECKING:
    from .fences import Fence, Fences
    from .launch import Launch
    from .plan import Plan

#: IB_SIZE of INDIRECT_BUFFER has 20 bits.
MAX_IB_DWORDS: Final = 0xFFFFF

#: One row per indirect buffer, in dwords of `words`: where a cold and a warm replay start (equal where they need not
#: differ), where it ends without and with what stands at the end of a submission (equal but for a stream's last).
IB_ROW: Final = np.dtype([("cold", "<u4"), ("warm", "<u4"), ("end", "<u4"), ("end_release", "<u4")])


#: (dword, kind, half, index, addend): a relocation inside words that Python has packed.
Place = tuple[int, int, int, int, int]

#: First dwords of the addresses in DISPATCH_INDIRECT, COPY_DATA (destination) and RELEASE_MEM.
_COUNTS_AT, _COPY_TO, _RELEASE_TO = 1, 4, 3


class Numbers:
    """Kernels and kernarg slots of a program, numbered in the order in which streams emit launches."""

    def __init__(self, plan: Plan, order: Sequence[int]) -> None:
        self.kernels: list[Kernel] = []
        self.kernel_of: dict[int, int] = {}  # by recorded index
        self.slot_of = {launch: at for at, launch in enumerate(order)}
        by_id: dict[int, int] = {}  # the plan keeps its kernels alive, so an id names one
        by_value: dict[tuple[Kernel, str], int] = {}
        for launch in order:
            kernel = plan.launches[launch].kernel
            if id(kernel) not in by_id:
                value = kernel, kernel.module.sha256 if kernel.module else ""
                if value not in by_value:
                    by_value[value] = len(self.kernels)
                    self.kernels.append(kernel)
                by_id[id(kernel)] = by_value[value]
            self.kernel_of[launch] = by_id[id(kernel)]


class KernargImage:
    """All kernarg segments behind one another, in emitted order, each at a multiple of KERNARG_SLOT_BYTES."""

    def __init__(self, plan: Plan, order: Sequence[int]) -> None:
        self.offsets: list[int] = []
        self.relocs: list[tuple[int, int, int]] = []
        self.patches: list[tuple[int, int, int, int]] = []
        self._image = bytearray()
        self._slots = {slot.name: index for index, slot in enumerate(plan.slots)}
        for index in order:
            self._add(plan.launches[index], plan)

    def _add(self, launch: Launch, plan: Plan) -> None:
        start = len(self._image)
        self.offsets.append(start)
        # Padding is zeros, so that equal plans have equal images; a segment without arguments still has its slot.
        padded = max(-(-len(launch.kernarg) // KERNARG_SLOT_BYTES), 1) * KERNARG_SLOT_BYTES
        self._image += launch.kernarg.ljust(padded, b"\0")
        self.relocs += [(start + p.offset, p.buffer, p.addend) for p in launch.pointers]
        kinds = list(TYPES)
        for use in launch.slots:
            at = self._slots[use.slot]
            kind = plan.slots[at].type
            self.patches.append((at, start + use.offset, slot_bytes(kind), kinds.index(kind)))

    def bytes(self) -> NDArray[np.uint8]:
        return np.frombuffer(bytes(self._image), np.uint8).copy()


class Stream:
    """The operations that one queue reads in one piece. `fence_word`, and `stamps` where begin and end are noted: the
    indices of its own words among the replay's.
    """

    def __init__(
        self, plan: Plan, numbers: Numbers, gfx10_wait: str, fence_word: int, stamps: tuple[int, int] | None = None
    ) -> None:
        self.plan, self.numbers, self.fence_word, self.stamps = plan, numbers, fence_word, stamps
        self.family = family_for(plan.target)
        self.by_fence_word = drains_by_fence_word(plan, gfx10_wait)
        self.rows: list[np.void] = []
        self.marks: list[int] = []  # operations before the warm entry, the launches, the tail
        self.drains = 0
        self.words: dict[int, tuple[list[int], list[Place]]] = {}  # of the WORDS rows, and what is relocated in them
        self._packed: dict[tuple[object, ...], np.void] = {}

    # What stands in it, in this order

    def entries(self, fences: Fences, *, loops: bool) -> None:
        """The cold entry; and the warm one behind it, in a NOP that a cold start passes over, where replays loop."""
        self.begin()
        if fences.entry_rule:
            self.drain()
            self.acquire_system()
        self.marks.append(len(self.rows))
        if loops:
            self._warm(next((fence for fence in fences.inner if fence.at == 0), None))
        self.marks.append(len(self.rows))

    def launches(self, order: Sequence[int], fences: Fences) -> None:
        """Launches by recorded index, with the fences before each position but the first."""
        before = {fence.at: fence for fence in fences.inner}
        for at, index in enumerate(order):
            if at in before and at:
                self.fence(before[at])
            self.launch(index)

    def exit(self, fences: Fences) -> None:
        """The drain and the system release."""
        self.marks.append(len(self.rows))
        if fences.exit_rule:
            self.drain()
            self.release_system()
        self.end()

    # Operations

    def _add(self, code: int, **values: int) -> None:
        self.rows.append(operation(code, **values))

    def begin(self) -> None:
        # The fence word is zeroed by the stream itself: a value left by the last replay would satisfy the first wait.
        self.drains = 0
        if self.stamps is not None:
            self.stamp_top(self.stamps[0])
        if self.by_fence_word:
            self._add(FENCE_ZERO, fence_reloc=self.fence_word)

    def drain(self) -> None:
        """Drain; each waits for a larger value than the one before it."""
        if not self.by_fence_word:
            self._add(DRAIN)
            return
        self.drains += 1
        self._add(FENCE_DRAIN, value=self.drains, fence_reloc=self.fence_word)

    def end(self) -> None:
        """Behind the tail."""
        if self.stamps is not None:
            self.stamp_bottom(self.stamps[1])

    def acquire(self, classes: Sequence[str]) -> None:
        self._add(ACQUIRE, gcr=self.family.acquire_gcr(*(name in classes for name in CLASSES)))

    def acquire_system(self) -> None:
        self._add(ACQUIRE, gcr=self.family.entry_gcr)

    def release_system(self) -> None:
        self._add(ACQUIRE, gcr=self.family.release_gcr)

    def fence(self, fence: Fence) -> None:
        if fence.drain:
            self.drain()
        if fence.acquire:
            self.acquire(fence.acquire)

    def _warm(self, fence: Fence | None) -> None:
        counted = self.drains
        self._words([0])
        inside = len(self.rows)
        self.begin()
        if fence is not None:
            self.fence(fence)
        self.drains = max(counted, self.drains)  # whichever entry was taken, the next value is larger
        if len(self.rows) == inside:
            del self.words[len(self.rows) - 1]  # nothing to skip
            self.rows.pop()
        else:
            nop = self.family.packet["NOP"]
            self.words[inside - 1] = [nop.header(max_dwords(np.array(self.rows[inside:], OPERATION)))], []

    def launch(self, index: int) -> None:
        """One launch, by recorded index."""
        launch = self.plan.launches[index]
        # Equal launches are packed and checked once.
        key = (id(launch.kernel), launch.encoded_size, launch.block, launch.dynamic_lds)
        if key not in self._packed:
            words = launch.kernel.words(str(launch), launch.dynamic_lds)
            self._packed[key] = self.family.dispatch_operation(words, launch.encoded_size, launch.block)
        row = self._packed[key].copy()
        row["entry_reloc"], row["kernarg_reloc"] = self.numbers.kernel_of[index], self.numbers.slot_of[index]
        self.rows.append(row)
        if launch.indirect is not None:
            row["code"] = SETUP
            initiator = self.family.initiator.unpack(int(row["initiator"]))
            counts = _halves(_COUNTS_AT, BUFFER, launch.indirect.buffer, launch.indirect.addend)
            self._words(self.family.form("dispatch_indirect", (), **initiator), counts)

    def stamp_top(self, owned: int) -> None:
        """The GPU clock, when the packet is read, into a 64-bit word of the replay's."""
        self._words(self.family.form("timestamp_top"), _halves(_COPY_TO, OWNED, owned, 0))

    def stamp_bottom(self, owned: int) -> None:
        """The GPU clock, once every launch before has ended."""
        self._words(self.family.form("timestamp_bottom"), _halves(_RELEASE_TO, OWNED, owned, 0))

    def _words(self, words: list[int], places: list[Place] | None = None) -> None:
        """Words that Python has packed, and what is relocated in them."""
        self.words[len(self.rows)] = words, places or []
        self._add(WORDS, value=len(words))


class Words:
    """The words of all streams, behind one another, with their relocations and a row for each indirect buffer."""

    def __init__(self, *, elide: bool) -> None:
        self._elide = elide
        self._dwords = 0
        self._words: list[NDArray[np.uint32]] = []
        self._relocs: list[NDArray[np.void]] = []
        self.ibs: list[tuple[int, int, int, int]] = []
        self.launches: list[int] = []  # of each indirect buffer

    def columns(self) -> tuple[NDArray[np.uint32], NDArray[np.void], NDArray[np.void]]:
        """(words, relocs, ibs)."""
        words = np.concatenate([np.zeros(0, np.uint32), *self._words])
        return words, np.concatenate([np.zeros(0, RELOC), *self._relocs]), np.array(self.ibs, IB_ROW)

    def add(self, stream: Stream, *, loops: bool) -> range:
        """Emit a stream; the indices of its indirect buffers."""
        rows = np.array(stream.rows, OPERATION)
        cold, body, tail = stream.marks
        first = len(self.ibs)
        for begin, end in _cuts(rows, body, tail):
            start = self._dwords
            self._emit(stream, rows[begin:end], begin)
            # No launch stands in the entries or in the tail, so their sizes are exact.
            entered, skipped = (max_dwords(rows[:at]) if begin == 0 else 0 for at in (cold, body))
            warm = entered + 1 if skipped > entered else entered if loops else 0
            left = max_dwords(rows[tail:]) if end == len(rows) else 0
            self.ibs.append((start, start + warm, self._dwords - left, self._dwords))
            self.launches.append(int(np.isin(rows[begin:end]["code"], (DISPATCH, SETUP)).sum()))
        return range(first, len(self.ibs))

    def _emit(self, stream: Stream, rows: NDArray[np.void], begin: int) -> None:
        words = np.zeros(max_dwords(rows), np.uint32)
        relocs = np.zeros(max_relocs(rows), RELOC)
        used, relocated = emit_program(rows, words, relocs, stream.family.family(), self._elide)
        relocs = relocs[:relocated]
        more: list[Place] = []
        for row in relocs[relocs["kind"] == WORDS_HERE]:
            packed, places = stream.words[begin + int(row["index"])]
            at = int(row["dword"])
            words[at : at + len(packed)] = packed
            more += [(at + dword, *rest) for dword, *rest in places]  # type: ignore[misc]
        kept = np.concatenate([relocs[relocs["kind"] != WORDS_HERE], np.array(more, RELOC)])
        kept = kept[np.argsort(kept["dword"], kind="stable")]
        kept["dword"] += np.uint32(self._dwords)
        self._words.append(words[:used].copy())
        self._relocs.append(kept)
        self._dwords += int(used)


def drains_by_fence_word(plan: Plan, gfx10_wait: str) -> bool:
    """Whether drains wait for a word in memory."""
    return not family_for(plan.target).partial_flush_is_trusted and gfx10_wait == "fence"


def _halves(dword: int, kind: int, index: int, addend: int) -> list[Place]:
    """An address in two dwords."""
    return [(dword + half, kind, half, index, addend) for half in range(2)]


def _cuts(rows: NDArray[np.void], body: int, tail: int) -> list[tuple[int, int]]:
    """Runs of operations that fit an indirect buffer each. Entries stay in the first, the tail in the last; a launch's
    registers stay with its packet.
    """
    sizes = each_max_dwords(rows)
    whole = int(sizes.sum())
    if whole <= MAX_IB_DWORDS:
        return [(0, len(rows))]
    # An operation of WORDS belongs to the SETUP before it; the tail is one piece with the last operation before it.
    joined = np.zeros(len(rows), np.bool_)
    joined[:body] = joined[tail:] = True
    joined |= rows["code"] == WORDS
    starts = [0, *np.flatnonzero(~joined).tolist(), len(rows)]
    total = np.concatenate([[0], np.cumsum(sizes)])
    cuts = [0]
    for begin, end in pairwise(starts):
        if total[end] - total[begin] > MAX_IB_DWORDS:
            raise EncodeError(
                "RL0520",
                where="lower",
                seen=f"{total[end] - total[begin]} dwords that belong together",
                allowed=f"at most {MAX_IB_DWORDS} in one indirect buffer",
                do="report this with the plan",
            )
        if total[end] - total[cuts[-1]] > MAX_IB_DWORDS:
            cuts.append(begin)
    return list(zip(cuts, [*cuts[1:], len(rows)], strict=True))
