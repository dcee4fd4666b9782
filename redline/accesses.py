# SPDX-License-Identifier: Apache-2.0
"""Every access of a graph as numpy columns, and the byte segments that their end points cut memory into.

A graph appends one row per access while it records; a plan freezes the rows and numbers the segments. Two accesses
overlap when their half-open segment ranges do, so nobody behind this file compares bytes again. Decides no order and no
fence.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .kernel import Kernel
from .launch import INDIRECT, Launch, Touch
from .ranges import Buffer
from .sweep import READS, READS_K, READS_P, READS_V, WRITES, number_points, plant

#: What a launch reads memory through that a drain alone does not refresh: the caches of scalar loads (K) and of vector
#: loads (V), and the command processor (P) where it reads past GL2.
CLASSES: Final = ("K", "V", "P")
KERNEL_CLASSES: Final = CLASSES[:2]
_BITS: Final = {"K": READS_K, "V": READS_V, "P": READS_P}


def read_classes(kernel: Kernel, argument: int | None) -> tuple[str, ...]:
    """The caches that `kernel` reads through behind the pointer at kernarg offset `argument` in bytes (None: no
    pointer).

    Atomics and device-scope loads read at L2: no cache at all, where a certificate says so.
    """
    certificate = kernel.certificate
    if certificate is None or argument is None:
        return KERNEL_CLASSES
    if argument in certificate.l2_args:
        return ()
    if certificate.reads == "vmem_only":
        return ("V",)
    # Any other word, and any argument that is listed, gets the wider class.
    return ("V",) if certificate.reads == "scalar_args" and argument not in certificate.scalar_args else KERNEL_CLASSES


def kernarg_classes(kernel: Kernel) -> tuple[str, ...]:
    """The caches that a kernel reads its own arguments through: by-value arguments indexed per lane are vector
    loads.
    """
    certificate = kernel.certificate
    return KERNEL_CLASSES if certificate is None or certificate.kernarg_vector_loads else ("K",)


@dataclass(slots=True)
class AccessRows:
    """What a graph appends to: one row per access, one per explicit predecessor, and where each launch's rows end."""

    memory: array[int] = field(default_factory=lambda: array("q"))
    start: array[int] = field(default_factory=lambda: array("q"))
    stop: array[int] = field(default_factory=lambda: array("q"))
    does: array[int] = field(default_factory=lambda: array("B"))
    ends: array[int] = field(default_factory=lambda: array("q", [0]))
    after: array[int] = field(default_factory=lambda: array("q"))
    after_ends: array[int] = field(default_factory=lambda: array("q", [0]))

    def add(self, launch: Launch, buffers: Sequence[Buffer]) -> None:
        """Append a launch's accesses, in bytes of the memory that each buffer is part of."""
        for touch in launch.touches:
            buffer = buffers[touch.buffer]
            self.memory.append(buffer.root)
            self.start.append(buffer.root_offset + touch.start)
            self.stop.append(buffer.root_offset + touch.stop)
            self.does.append(WRITES if touch.writes else READS | _read_bits(launch, touch))
        self.ends.append(len(self.does))
        self.after.extend(launch.after)
        self.after_ends.append(len(self.after))


def _read_bits(launch: Launch, touch: Touch) -> int:
    if launch.indirect is not None and touch.argument == INDIRECT:
        return READS_P if launch.indirect.past_l2 else 0
    return sum(_BITS[name] for name in read_classes(launch.kernel, touch.argument))


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Frozen columns. Access k of launch i lies in starts[i] <= k < starts[i + 1] and covers segments [low[k],
    high[k]).

    `does` holds the bits of `sweep.py`. Segment s is the bytes from cuts[s] to cuts[s + 1] of all memories laid end to
    end, memory m from `bases[m]` on. `after` is delimited by `after_starts` like the accesses. `spans` and `nodes` are
    the same accesses as places in the sweeps' trees.
    """

    starts: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    does: NDArray[np.uint8]
    after_starts: NDArray[np.int64]
    after: NDArray[np.int64]
    cuts: NDArray[np.int64]
    bases: NDArray[np.int64]
    spans: NDArray[np.int32]
    nodes: int

    @staticmethod
    def of(rows: AccessRows, buffers: Sequence[Buffer]) -> Accesses:
        """Freeze what was recorded so far."""
        sizes = [buffer.nbytes if buffer.root == buffer.index else 0 for buffer in buffers]
        bases = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        memory, start, stop = (np.asarray(column) for column in (rows.memory, rows.start, rows.stop))
        points, ends = number_points(memory, start, stop, bases)
        order = np.argsort(points)
        rank = np.empty(len(points), np.int32)
        rank[order] = np.arange(len(points), dtype=np.int32)
        low, high = rank[ends]
        spans, nodes = plant(low, high, max(len(points) - 1, 0))
        return Accesses(
            starts=np.array(rows.ends),
            low=low,
            high=high,
            does=np.array(rows.does),
            after_starts=np.array(rows.after_ends),
            after=np.array(rows.after),
            cuts=points[order],
            bases=bases,
            spans=spans,
            nodes=nodes,
        )

    def place(self, segment: int) -> tuple[int, int, int]:
        """(memory, start, stop) of a segment, in bytes of the memory."""
        memory = int(np.searchsorted(self.bases, self.cuts[segment], side="right")) - 1
        base = int(self.bases[memory])
        return memory, int(self.cuts[segment]) - base, int(self.cuts[segment + 1]) - base
