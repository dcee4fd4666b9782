# SPDX-License-Identifier: Apache-2.0
"""The software device without queue and packets: memory, an executor, and dispatch registers made from a descriptor.

Loads a code object, packs kernel arguments by the metadata's offsets and runs one kernel at a time in the
calling thread. It shares no code with what Redline records and encodes, so that a mistake there does not
hide here. It compares nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from radiowave import CodeObject, Disassembler, KernelFacts
from radiowave.elf import PT_LOAD, SHT_RELA, Elf
from redline.sim.dispatch import Dispatch
from redline.sim.executor import Executor
from redline.sim.memory import Memory
from redline.sim.scheduler import Policy

Dims = tuple[int, int, int]

USE_THREAD_DIMENSIONS = {32: 0x8025, 64: 0x0025}  # COMPUTE_DISPATCH_INITIATOR
LDS_SHIFT, LDS_GRANULE = 15, 512  # COMPUTE_PGM_RSRC2.LDS_SIZE

# AMDHSA kernel_code_properties: what the first user SGPRs hold.
PRIVATE_SEGMENT_BUFFER, KERNARG_SEGMENT_PTR, WAVEFRONT_SIZE32 = 1 << 0, 1 << 3, 1 << 10
SUPPLIED = PRIVATE_SEGMENT_BUFFER | KERNARG_SEGMENT_PTR | WAVEFRONT_SIZE32


@dataclass(frozen=True)
class Loaded:
    """A code object in the device's memory."""

    base: int
    kernels: Mapping[str, KernelFacts]


class BareDevice:
    """One target's executor with its own memory; use it in a `with` block."""

    def __init__(self, target: str, *, disassembler: Disassembler | None = None) -> None:
        self.memory = Memory()
        self._executor = Executor(target, disassembler=disassembler)

    @property
    def wave_instructions(self) -> int:
        """Executed so far, one for each wave that took a step."""
        return self._executor.wave_instructions

    def load(self, code: bytes) -> Loaded:
        """Segments at their addresses from one base. Relocations are refused: kernels without globals have none."""
        elf = Elf(code)
        if any(section.type == SHT_RELA and section.nbytes for section in elf.sections):
            raise ValueError("the code object has relocations, which this loader does not apply")
        segments = [segment for segment in elf.segments if segment.type == PT_LOAD]
        end = max(segment.address + segment.memory_bytes for segment in segments)
        base = self.memory.allocate(end, align=4096, label="code object", executable=True)
        self.memory.store(base, bytes(end))
        for segment in segments:
            data = code[segment.offset : segment.offset + segment.file_bytes]
            self.memory.store(base + segment.address, data)
        return Loaded(base, CodeObject.parse(code).kernels)

    def unload(self, loaded: Loaded) -> None:
        self.memory.free(loaded.base)

    def run(
        self,
        loaded: Loaded,
        kernel: str,
        arguments: tuple[Any, ...],
        size: Dims,
        block: Dims,
        policy: Policy | None = None,
    ) -> None:
        """Run one kernel. Arrays are copied to the device and back; scalars are numpy values of the right size."""
        self._executor.policy = policy or Policy()
        facts = loaded.kernels[kernel]
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        with self._buffers(arrays) as addresses:
            places = iter(addresses)
            values = [
                next(places).to_bytes(8, "little") if isinstance(argument, np.ndarray) else argument.tobytes()
                for argument in arguments
            ]
            kernarg = self.memory.allocate(facts.kernarg_bytes, align=64, label="kernarg")
            try:
                self.memory.store(kernarg, kernarg_bytes(facts, values, size, block))
                dispatch = registers(facts, loaded.base, kernarg, size, block)
                self._executor.dispatch(dispatch, self.memory, threading.Event())
            finally:
                self.memory.free(kernarg)
            for array, address in zip(arrays, addresses, strict=True):
                data = self.memory.bytes_at(address, array.nbytes)
                array[:] = np.frombuffer(data, array.dtype)

    @contextmanager
    def _buffers(self, arrays: list[Any]) -> Iterator[list[int]]:
        addresses: list[int] = []
        try:
            for array in arrays:
                addresses.append(self.memory.allocate(max(array.nbytes, 1), label="buffer"))
                self.memory.store(addresses[-1], array.tobytes())
            yield addresses
        finally:
            for address in addresses:
                self.memory.free(address)

    def close(self) -> None:
        self._executor.close()
        self.memory.close()

    def __enter__(self) -> BareDevice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def kernarg_bytes(facts: KernelFacts, values: list[bytes], size: Dims, block: Dims) -> bytes:
    """Explicit arguments at their offsets, hidden ones from the geometry, 0xA5 where nobody should look."""
    image = bytearray(b"\xa5" * facts.kernarg_bytes)
    explicit = iter(values)
    for argument in facts.arguments:
        if argument.kind.startswith("hidden_"):
            value = _hidden(argument.kind, size, block).to_bytes(argument.size, "little")
        else:
            value = next(explicit)
        if len(value) != argument.size:
            raise ValueError(f"{facts.name}: {argument.name} takes {argument.size} bytes, not {len(value)}")
        image[argument.offset : argument.offset + argument.size] = value
    if next(explicit, None) is not None:
        raise ValueError(f"{facts.name} takes fewer arguments than {len(values)}")
    return bytes(image)


def _hidden(kind: str, size: Dims, block: Dims) -> int:
    """LLVM AMDGPUUsage, hidden arguments of code object version 5: block counts are those of whole workgroups."""
    if kind == "hidden_grid_dims":
        return max(axis + 1 for axis in range(3) if axis == 0 or size[axis] > 1)
    name, _, axis = kind.rpartition("_")
    at = "xyz".index(axis)
    values = {
        "hidden_block_count": size[at] // block[at],
        "hidden_group_size": block[at],
        "hidden_remainder": size[at] % block[at],
        "hidden_global_offset": 0,
    }
    return values[name]


def registers(facts: KernelFacts, base: int, kernarg: int, size: Dims, block: Dims) -> Dispatch:
    """What a packet would have put into the dispatch registers."""
    descriptor = facts.descriptor
    if descriptor.properties & ~SUPPLIED or descriptor.private_bytes:
        raise ValueError(f"{facts.name} needs more than a kernarg pointer: {descriptor}")
    user = [0] * (4 if descriptor.properties & PRIVATE_SEGMENT_BUFFER else 0)
    user += [kernarg & 0xFFFFFFFF, kernarg >> 32]
    blocks = -(-descriptor.group_bytes // LDS_GRANULE)
    return Dispatch(
        entry=base + facts.entry_va,
        rsrc1=descriptor.rsrc1,
        rsrc2=descriptor.rsrc2 | blocks << LDS_SHIFT,
        rsrc3=descriptor.rsrc3,
        initiator=USE_THREAD_DIMENSIONS[facts.wave],
        user_data=tuple(user + [0] * (16 - len(user))),
        dims=size,
        num_thread=block,
    )
