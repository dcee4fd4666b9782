# SPDX-License-Identifier: Apache-2.0
"""Program: a plan and its fences lowered to words, relocations, a kernarg image and patch points.

A Program holds no address: relocated dwords are 0 and `relocs` says what belongs there. Equal on every machine, hashed
by `digest`. Emission itself is one nopython call (`encoders/emit.py`); memory, queues and submission are `replay.py`'s.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from .accesses import CLASSES
from .encoders import family_for
from .encoders.dispatch import operation
from .encoders.emit import (
    ACQUIRE,
    BUFFER,
    DRAIN,
    FENCE_DRAIN,
    FENCE_ZERO,
    KERNARG_RELOC,
    OPERATION,
    RELOC,
    SETUP,
    WORDS,
    WORDS_HERE,
    emit_program,
    max_dwords,
    max_relocs,
)
from .errors import EncodeError, RecordError
from .kernarg import TYPES, Slot, slot_bytes
from .kernel import KERNARG_SLOT_BYTES, Kernel

if TYPE_CHECKING:
    from .encoders.table import FamilyTable
    from .fences import Fence, Fences
    from .launch import Indirect, Launch
    from .plan import Plan

#: IB_SIZE of INDIRECT_BUFFER has 20 bits.
MAX_IB_DWORDS: Final = 0xFFFFF

GFX10_WAITS: Final = ("fence", "partial_flush")

#: One row per indirect buffer, in dwords of `words`: where a cold and a warm replay start (both 0 with
#: boundary="host"), where the stream ends without and with the final drain and release.
IB = np.dtype([("cold", "<u4"), ("warm", "<u4"), ("end", "<u4"), ("end_release", "<u4")])

#: One row per use of a slot: `kind` indexes `kernarg.TYPES`.
PATCH_POINT = np.dtype([("slot", "<u4"), ("offset", "<u4"), ("size", "<u4"), ("kind", "<u4")])

#: Index of the replay-owned fence word in the OWNED relocation table (gfx10 drains).
FENCE_WORD: Final = 0


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """Words without addresses. Compared by value through `digest`.

    `words`: uint32 of shape (dwords,), 0 at relocated dwords. Rows, one dimension each: `relocs` (RELOC), `ibs` (IB,
    shape (1,)), `patches` (PATCH_POINT). `kernarg`: uint8 image of all slots, shape (bytes,). `kernarg_relocs`: 64-bit
    pointers in the image, shape (pointers,). `kernels` and `slot_offsets` (bytes, shape (launches,)) are what
    relocations of kind KERNEL_ENTRY and KERNARG index. `gfx10_wait` and `elide` are the options of `lower`.
    """

    target: str
    words: NDArray[np.uint32]
    relocs: NDArray[np.void]
    ibs: NDArray[np.void]
    kernarg: NDArray[np.uint8]
    kernarg_relocs: NDArray[np.void]
    patches: NDArray[np.void]
    slots: tuple[Slot, ...]
    kernels: tuple[Kernel, ...]
    slot_offsets: NDArray[np.uint64]
    needs_fence_word: bool
    gfx10_wait: str
    elide: bool

    def __post_init__(self) -> None:
        for column in (self.words, self.relocs, self.ibs, self.kernarg, self.kernarg_relocs, self.patches):
            column.setflags(write=False)

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) over every column, and what relocations and patch points name: kernels, slots, fence word."""
        total = hashlib.sha256(f"redline program 1 {self.target} {self.needs_fence_word}".encode())
        columns = (self.words, self.relocs, self.ibs, self.kernarg, self.kernarg_relocs, self.patches)
        for column in (*columns, self.slot_offsets):
            total.update(len(column).to_bytes(8, "little"))
            total.update(column.tobytes())
        for slot in self.slots:
            total.update(f"slot {slot.name} {slot.type} {slot.default!r}\n".encode())
        for kernel in self.kernels:
            module = kernel.module.sha256 if kernel.module else "none"
            total.update(f"kernel {kernel.name} {kernel.code_sha256} {kernel.entry_offset} {module}\n".encode())
        return total.hexdigest()

    def __repr__(self) -> str:
        return f"<Program {self.digest[:16]} {self.target} dwords={len(self.words)} kernels={len(self.kernels)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def lower(plan: Plan, fences: Fences, *, gfx10_wait: str = "fence", elide: bool = True) -> Program:
    """Lower a plan with these fences to one indirect buffer.

    With replays back to back the cold entry is followed by the warm one, inside a NOP packet that skips it; a warm
    start begins in the packet's body.

    gfx10_wait: how gfx10 drains. "fence" is RELEASE_MEM and WAIT_REG_MEM on a word that the replay owns;
    "partial_flush" is CS_PARTIAL_FLUSH, which old gfx10 microcode may not wait for.
    elide: leave out SET_SH_REG of what already stands.
    Raises RecordError for an unknown option, EncodeError for fences of another plan and when a limit is exceeded,
    UnsupportedKernel and UnsupportedTarget for what recording would have refused.
    """
    _check_fences(plan, fences)
    if gfx10_wait not in GFX10_WAITS:
        raise RecordError(
            "RL0132",
            where="gfx10_wait=",
            seen=repr(gfx10_wait),
            allowed=str(GFX10_WAITS),
            do="choose one of them",
        )
    stream = _Stream(family_for(plan.target), gfx10_wait)
    kernels = _Kernels(plan)
    before = {fence.at: fence for fence in fences.inner}
    stream.cold(fences)
    cold = len(stream.rows)
    if plan.boundary != "host":
        stream.warm(before.get(0))
    warm = len(stream.rows)
    for at, index in enumerate(plan.order):
        if at in before and at:
            stream.fence(before[at])
        launch = plan.launches[index]
        stream.launch(launch, kernels[launch.kernel], at)
    body = len(stream.rows)
    stream.exit(fences)
    return _finish(plan, stream, kernels, (cold, warm, body), elide)


def _check_fences(plan: Plan, fences: Fences) -> None:
    """What does not fit the plan would be dropped, or lowered as something else."""
    first, last = int(plan.boundary == "host"), len(plan.order) - 1
    places = [fence.at for fence in fences.inner]
    if places and not first <= places[0] <= places[-1] <= last:
        raise EncodeError(
            "RL0521",
            where="lower",
            seen=f"fences before positions {places[0]} to {places[-1]}",
            allowed=f"positions {first}..{last}",
            do="derive the fences from this plan",
        )


class _Stream:
    """Collects the OPERATION rows of one indirect buffer."""

    def __init__(self, family: FamilyTable, gfx10_wait: str) -> None:
        self.family, self.gfx10_wait = family, gfx10_wait
        self.by_fence_word = not family.partial_flush_is_trusted and gfx10_wait == "fence"
        self.rows: list[np.void] = []
        self.drains = 0
        self.words: dict[int, tuple[list[int], Indirect | None]] = {}  # of the WORDS rows
        self._packed: dict[tuple[object, ...], np.void] = {}

    def _add(self, code: int, **values: int) -> None:
        self.rows.append(operation(code, **values))

    def cold(self, fences: Fences) -> None:
        """Where a replay starts when anything may have touched memory: drain, then a system acquire."""
        self._zero()
        if fences.entry_rule:
            self._drain()
            self._add(ACQUIRE, gcr=self.family.entry_gcr)

    def warm(self, fence: Fence | None) -> None:
        """Where a replay starts behind another of the same plan: inside a NOP, which a cold start passes over."""
        self._words([0])
        inside = len(self.rows)
        self._zero()
        if fence is not None:
            self.fence(fence, first=True)
        if len(self.rows) == inside:
            del self.words[len(self.rows) - 1]  # nothing to skip
            self.rows.pop()
        else:
            nop = self.family.packet["NOP"]
            self.words[inside - 1] = [nop.header(max_dwords(np.array(self.rows[inside:], OPERATION)))], None

    def fence(self, fence: Fence, *, first: bool = False) -> None:
        if fence.drain:
            self._drain(first=first)
        if fence.acquire:
            self._add(ACQUIRE, gcr=self.family.acquire_gcr(*(name in fence.acquire for name in CLASSES)))

    def exit(self, fences: Fences) -> None:
        if fences.exit_rule:
            self._drain()
            self._add(ACQUIRE, gcr=self.family.release_gcr)

    def _zero(self) -> None:
        # The fence word is zeroed by the stream itself: a value left by the last replay would satisfy the first wait.
        if self.by_fence_word:
            self._add(FENCE_ZERO, fence_reloc=FENCE_WORD)

    def _drain(self, *, first: bool = False) -> None:
        """Drain; each waits for a larger value than the one before it. `first`: behind a zeroed word of its own."""
        if not self.by_fence_word:
            self._add(DRAIN)
            return
        self.drains = 1 if first else self.drains + 1
        self._add(FENCE_DRAIN, value=self.drains, fence_reloc=FENCE_WORD)

    def launch(self, launch: Launch, kernel: int, slot: int) -> None:
        # The plan keeps its kernels alive, so an id names one; equal launches are packed and checked once.
        key = (id(launch.kernel), launch.encoded_size, launch.block, launch.dynamic_lds)
        if key not in self._packed:
            words = launch.kernel.words(str(launch), launch.dynamic_lds)
            self._packed[key] = self.family.dispatch_operation(words, launch.encoded_size, launch.block)
        row = self._packed[key].copy()
        row["entry_reloc"], row["kernarg_reloc"] = kernel, slot
        self.rows.append(row)
        if launch.indirect is not None:
            row["code"] = SETUP
            initiator = self.family.initiator.unpack(int(row["initiator"]))
            self._words(self.family.form("dispatch_indirect", (), **initiator), launch.indirect)

    def _words(self, words: list[int], counts: Indirect | None = None) -> None:
        """Words that Python has packed; those of an indirect launch are relocated to its counts."""
        self.words[len(self.rows)] = words, counts
        self._add(WORDS, value=len(words))


class _Kernels:
    """Each kernel of each module once, numbered in emitted order."""

    def __init__(self, plan: Plan) -> None:
        self.table: list[Kernel] = []
        self._by_id: dict[int, int] = {}
        self._by_value: dict[tuple[Kernel, str], int] = {}
        for index in plan.order:
            self._number(plan.launches[index].kernel)

    def _number(self, kernel: Kernel) -> None:
        if id(kernel) in self._by_id:
            return
        value = kernel, kernel.module.sha256 if kernel.module else ""
        if value not in self._by_value:
            self._by_value[value] = len(self.table)
            self.table.append(kernel)
        self._by_id[id(kernel)] = self._by_value[value]

    def __getitem__(self, kernel: Kernel) -> int:
        return self._by_id[id(kernel)]


def _finish(plan: Plan, stream: _Stream, kernels: _Kernels, rows: tuple[int, int, int], elide: bool) -> Program:
    """`rows`: where the warm entry, the launches and the tail begin."""
    operations = np.array(stream.rows, OPERATION)
    words, relocs = _emit(stream, operations, elide)
    # No launch stands in the entries or in the tail, so their sizes are exact.
    cold, entries, tail = (
        max_dwords(operations[part]) for part in (slice(rows[0]), slice(rows[1]), slice(rows[2], None))
    )
    if len(words) > MAX_IB_DWORDS:
        raise EncodeError(
            "RL0520",
            where=f"plan of {len(plan.launches)} launches",
            seen=f"{len(words)} dwords in one indirect buffer",
            allowed=f"at most {MAX_IB_DWORDS}",
            do="record fewer launches per graph and submit several",
        )
    image = _KernargImage(plan)
    warm = cold + 1 if entries > cold else cold if plan.boundary != "host" else 0
    return Program(
        target=plan.target,
        words=words,
        relocs=relocs,
        ibs=np.array([(0, warm, len(words) - tail, len(words))], IB),
        kernarg=image.bytes(),
        kernarg_relocs=np.array(image.relocs, KERNARG_RELOC),
        patches=np.array(image.patches, PATCH_POINT),
        slots=plan.slots,
        kernels=tuple(kernels.table),
        slot_offsets=np.array(image.offsets, np.uint64),
        needs_fence_word=stream.by_fence_word,
        gfx10_wait=stream.gfx10_wait,
        elide=elide,
    )


def _emit(stream: _Stream, rows: NDArray[np.void], elide: bool) -> tuple[NDArray[np.uint32], NDArray[np.void]]:
    words = np.zeros(max_dwords(rows), np.uint32)
    relocs = np.zeros(max_relocs(rows), RELOC)
    used, relocated = emit_program(rows, words, relocs, stream.family.family(), elide)
    relocs = relocs[:relocated]
    more: list[tuple[int, int, int, int, int]] = []
    for place in relocs[relocs["kind"] == WORDS_HERE]:
        packed, counts = stream.words[int(place["index"])]
        at = int(place["dword"])
        words[at : at + len(packed)] = packed
        if counts is not None:  # the address is in the two dwords behind the header
            more += [(at + 1 + half, BUFFER, half, counts.buffer, counts.addend) for half in range(2)]
    kept = np.concatenate([relocs[relocs["kind"] != WORDS_HERE], np.array(more, RELOC)])
    return words[:used].copy(), kept[np.argsort(kept["dword"], kind="stable")]


class _KernargImage:
    """All kernarg segments behind one another, in emitted order, each at a multiple of KERNARG_SLOT_BYTES."""

    def __init__(self, plan: Plan) -> None:
        self.offsets: list[int] = []
        self.relocs: list[tuple[int, int, int]] = []
        self.patches: list[tuple[int, int, int, int]] = []
        self._image = bytearray()
        self._slots = {slot.name: index for index, slot in enumerate(plan.slots)}
        for index in plan.order:
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
