# SPDX-License-Identifier: Apache-2.0
"""Program: a plan and its fences lowered to words, packets, relocations, a kernarg image and patch points.

A Program holds no address: relocated dwords are 0 and the relocations say what belongs there. Equal on every machine,
hashed by `digest`. What makes one is `forms.py`; memory, queues and submission are `replay.py`'s.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .kernarg import Slot
from .kernel import Kernel
from .packets import IB, SLOT

if TYPE_CHECKING:
    pass

#: One row per use of a slot: `kind` indexes `kernarg.TYPES`.
PATCH_POINT: Final = np.dtype([("slot", "<u4"), ("offset", "<u4"), ("size", "<u4"), ("kind", "<u4")])


@dataclass(frozen=True, slots=True)
class Options:
    """How a plan was lowered: the options of `lower`, "auto" as the number that it stood for."""

    gfx10_wait: str = "fence"
    elide: bool = True
    queues: int | tuple[int, ...] = 1
    phased: bool = False
    form: str = "pm4"
    profile: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """Words and packets without addresses. Compared by value through `digest`.

    `words`: uint32 of shape (dwords,), 0 at relocated dwords. Rows, one dimension each: `relocs` (RELOC), `ibs`
    (IB_ROW, one for each indirect buffer), `packets` (PACKET, lane by lane), `packet_relocs` (PACKET_RELOC), `patches`
    (PATCH_POINT). `signals`: how many a replay needs; the host waits for signal 0, the others are waits between lanes.
    `fence_words`: how many dwords the replay owns for drains (gfx10). `streams`: the lane of
    each stream of words, in order. `kernarg`: uint8 image of all slots, shape
    (bytes,). `kernarg_relocs`: 64-bit pointers in the image, shape (pointers,). `kernels` and `slot_offsets` (bytes,
    shape (launches,)) are what relocations of kind KERNEL_ENTRY and KERNARG index. `order`: recorded indices by slot,
    as lanes emit them; `ib_launches`: how many of them each indirect buffer has. `options` are those of `lower`, and
    `reason` says why the form is not what they ask for, "" where it is.
    """

    target: str
    words: NDArray[np.uint32]
    relocs: NDArray[np.void]
    ibs: NDArray[np.void]
    packets: NDArray[np.void]
    packet_relocs: NDArray[np.void]
    signals: int
    kernarg: NDArray[np.uint8]
    kernarg_relocs: NDArray[np.void]
    patches: NDArray[np.void]
    slots: tuple[Slot, ...]
    kernels: tuple[Kernel, ...]
    slot_offsets: NDArray[np.uint64]
    fence_words: int
    streams: tuple[int, ...]
    order: tuple[int, ...]
    ib_launches: tuple[int, ...]
    options: Options
    reason: str = ""

    def __post_init__(self) -> None:
        for column in self._columns():
            column.setflags(write=False)

    def _columns(self) -> tuple[NDArray[Any], ...]:
        streams = (self.words, self.relocs, self.ibs, self.packets, self.packet_relocs)
        return (*streams, self.kernarg, self.kernarg_relocs, self.patches, self.slot_offsets)

    @property
    def lanes(self) -> int:
        """How many queues a replay takes."""
        return int(self.packets["lane"].max()) + 1

    @property
    def stamps(self) -> int:
        """How many 64-bit words the replay owns for the GPU clock: two for each stream that is profiled."""
        return 2 * len(self.streams) * self.options.profile

    @property
    def form(self) -> str:
        """What is submitted: "pm4", "pm4 lanes", "pm4 phases" or "aql"."""
        if self.options.form == "aql":
            return "aql"
        if len(self.streams) > self.lanes:
            return "pm4 phases"
        return "pm4 lanes" if self.lanes > 1 else "pm4"

    def launches_of(self, packet: int) -> tuple[int, ...]:
        """Recorded indices of what a packet runs."""
        rows = self.packet_relocs[self.packet_relocs["packet"] == packet]
        for row in rows:
            if row["kind"] == SLOT:
                return (self.order[int(row["index"])],)
            if row["kind"] == IB:
                first = sum(self.ib_launches[: int(row["index"])])
                return self.order[first : first + self.ib_launches[int(row["index"])]]
        return ()

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) over every column, and what relocations and patch points name: kernels, slots, owned words."""
        head = f"redline program 2 {self.target} {self.signals} {self.fence_words} {self.stamps}"
        total = hashlib.sha256(head.encode())
        for column in self._columns():
            total.update(len(column).to_bytes(8, "little"))
            total.update(column.tobytes())
        for slot in self.slots:
            total.update(f"slot {slot.name} {slot.type} {slot.default!r}\n".encode())
        for kernel in self.kernels:
            module = kernel.module.sha256 if kernel.module else "none"
            total.update(f"kernel {kernel.name} {kernel.code_sha256} {kernel.entry_offset} {module}\n".encode())
        return total.hexdigest()

    def __repr__(self) -> str:
        what = f"dwords={len(self.words)} kernels={len(self.kernels)}"
        return f"<Program {self.digest[:16]} {self.target} {self.form} queues={self.lanes} {what}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)
