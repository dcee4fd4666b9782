# SPDX-License-Identifier: Apache-2.0
"""A program with addresses: the memory that a replay owns, its code, signals and packets.

Everything that a submit needs is made here, at instantiate; a re-bind writes addresses again. Submits nothing and knows
no state of a replay (`replay.py`, `flight.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import hsa
from .encoders.emit import apply_kernarg_relocs, apply_relocs
from .errors import BindingError, KernargPoolExhausted
from .packets import BARRIER_AND, FINAL, Batches, place

if TYPE_CHECKING:
    from .device import Device, DeviceBuffer
    from .hsa.handle import Handle
    from .launch import Launch
    from .plan import Plan
    from .program import Program

_Handle = TypeVar("_Handle", bound="Handle")

_WINDOW: Final = 1 << 32
#: Each word that the packet processor writes has a line of its own.
_OWNED_BYTES: Final = 64


class Placed:
    """Memory, code and signals of one replay on one device. Freed by the `stack` that it is made with.

    `addresses` (uint64) are those of the plan's buffers by index, `entries` those of the program's kernels. `words` and
    `kernarg` are the indirect buffers and the kernarg arena as the device sees them, uint32 and uint8 views; `stamps`
    (uint64, one item each) hold the GPU clock at the begin and the end of each stream of a profiled program. `parts`
    are the handles of all that, with names for messages.
    """

    def __init__(self, device: Device, plan: Plan, bound: Mapping[int, DeviceBuffer], stack: ExitStack) -> None:
        self.device, self.plan, self.program = device, plan, plan.program
        self.parts: list[tuple[str, Handle]] = []
        agent, program = device.agent, self.program
        self.addresses = np.zeros(len(plan.buffers), np.uint64)
        for buffer in plan.buffers:
            if buffer.index not in bound and buffer.root == buffer.index:
                memory = self._kept(
                    stack, agent.allocate(buffer.nbytes, buffer.kind), f"internal buffer {buffer.name!r}"
                )
                self.addresses[buffer.index] = memory.address
        arena = self._arena(stack, max(len(program.kernarg), 64))
        self.kernarg = arena.view(np.uint8)[: len(program.kernarg)]
        self.kernarg[:] = program.kernarg
        self._slots = program.slot_offsets + np.uint64(arena.address)
        owned = [
            self._kept(stack, agent.allocate(_OWNED_BYTES, "kernarg"), "fence words and times")
            for _ in range(program.fence_words + program.stamps)
        ]
        self._owned = np.array([word.address for word in owned] or [0], np.uint64)
        self.stamps = [word.view(np.uint64)[:1] for word in owned[program.fence_words :]]
        self._ib = 0
        self.words = np.zeros(0, np.uint32)
        if len(program.words):
            ib = self._kept(stack, agent.allocate(4 * len(program.words), "kernarg", executable=True), "the words")
            self._ib, self.words = ib.address, ib.view(np.uint32)[: len(program.words)]
            self.words[:] = program.words
        self._objects, self.entries = self._load(stack)
        self.signals = [self._kept(stack, agent.signal(0), f"signal {at}") for at in range(program.signals)]
        self.bind(bound)

    @property
    def final(self) -> hsa.Signal:
        """The signal that ends a replay."""
        return self.signals[FINAL]

    def bind(self, bound: Mapping[int, DeviceBuffer]) -> None:
        """Write the addresses of these memories, by index of their buffer, wherever they belong."""
        for index, memory in bound.items():
            self.addresses[index] = memory.address
        for buffer in self.plan.buffers:
            if buffer.root != buffer.index:
                self.addresses[buffer.index] = self.addresses[buffer.root] + np.uint64(buffer.root_offset)
        apply_kernarg_relocs(self.kernarg, self.program.kernarg_relocs, self.addresses)
        apply_relocs(self.words, self.program.relocs, self.entries, self._slots, self.addresses, self._owned)

    def batches(self, *, warm: bool, release: bool) -> Batches:
        """The packets of each lane for one replay, from a warm or cold start to the end with or without the release."""
        signals = np.array([signal.handle for signal in self.signals], np.uint64)
        return place(self.program, self._ib, (self._objects, self._slots, signals), warm=warm, release=release)

    # Making it

    def _kept(self, stack: ExitStack, handle: _Handle, name: str) -> _Handle:
        self.parts.append((name, handle))
        stack.enter_context(handle)
        return handle

    def _load(self, stack: ExitStack) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Of each kernel the descriptor's address ("kernel object"), and that of its first instruction."""
        loaded: dict[str, hsa.LoadedCode] = {}
        objects = []
        for kernel in self.program.kernels:
            module = kernel.module
            if module is None:
                raise BindingError(
                    "RL0703",
                    where=f"kernel {kernel.name!r}",
                    seen="a synthetic kernel without code",
                    allowed="kernels of a loaded code object",
                    do="record kernels from rl.load(...) to run them",
                )
            if module.sha256 not in loaded:
                loaded[module.sha256] = self._kept(
                    stack, self.device.agent.load(module.data), f"the code of kernel {kernel.name!r}"
                )
            objects.append(loaded[module.sha256].kernel_object(kernel.symbol))
        offsets = [kernel.entry_offset for kernel in self.program.kernels]
        entries = [at + offset for at, offset in zip(objects, offsets, strict=True)]
        return np.array(objects, np.uint64), np.array(entries, np.uint64)

    def _arena(self, stack: ExitStack, nbytes: int) -> hsa.Buffer:
        """Kernarg memory inside one 4 GiB window: all slots share the high half of their address."""
        agent = self.device.agent
        for _ in range(2):  # a second block cannot straddle the same boundary as the first, which is kept meanwhile
            arena = self._kept(stack, agent.allocate(nbytes, "kernarg"), "the kernel arguments")
            if arena.address // _WINDOW == (arena.address + nbytes - 1) // _WINDOW:
                return arena
        raise KernargPoolExhausted(
            "RL1301",
            where="Device.instantiate",
            seen=f"{nbytes} bytes at 0x{arena.address:x} cross a 4 GiB boundary",
            allowed="one 4 GiB window",
            do="free other kernarg memory, or split the graph",
        )


def describe(name: str, program: Program, launches: Sequence[Launch], lane: int, times: int, at: int) -> str:
    """What packet `at` of a lane's batch of `times` replays of the plan called `name` runs, for messages."""
    rows = np.flatnonzero(program.packets["lane"] == lane)
    running = rows[(program.packets["words"][rows, 0] & 0xFF) != BARRIER_AND]
    silent = len(running) * (times - 1)
    packet = int(running[at % len(running)] if at < silent else rows[min(at - silent, len(rows) - 1)])
    names = [str(launches[launch]) for launch in program.launches_of(packet)]
    more = "" if len(names) <= 4 else f" and {len(names) - 4} more"
    return f"{name}: {', '.join(names[:4]) + more or 'waits for other packets'}"
