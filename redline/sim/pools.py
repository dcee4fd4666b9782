# SPDX-License-Identifier: Apache-2.0
"""Allocation, access, copies and pointer queries: the memory calls of the software device's table.

Host memory becomes visible to the GPU with hsa_amd_agents_allow_access, as on hardware; a kernel that touches it
before that faults. Copies are checked on the side that lies in the arena; the other side is the host's own memory
and the caller's word for it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from ctypes import c_uint64, sizeof
from dataclasses import dataclass
from typing import Any

from redline.hsa.abi import AllocationFlags, PointerType, Status, hsa_amd_pointer_info_t
from redline.sim.agents import ALLOCATION_GRANULE, CPU_AGENT, GPU_AGENT, SimPool, pool_of
from redline.sim.errors import Refusal
from redline.sim.families import Target
from redline.sim.memory import Memory

_EXECUTABLE = AllocationFlags.HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG
_UNCACHED = AllocationFlags.HSA_AMD_MEMORY_POOL_UNCACHED_FLAG


@dataclass(frozen=True)
class _Allocation:
    pool: SimPool
    nbytes: int


class Pools:
    """The table's memory calls, by name in `calls`."""

    def __init__(self, memory: Memory, target: Target) -> None:
        self._memory, self._target = memory, target
        self._lock = threading.RLock()  # the collector may free from inside, as in `memory.py`
        self._allocations: dict[int, _Allocation] = {}

    def calls(self) -> dict[str, Callable[..., Any]]:
        return {
            "hsa_amd_memory_pool_allocate": self._allocate,
            "hsa_amd_memory_pool_free": self._free,
            "hsa_amd_agents_allow_access": self._allow_access,
            "hsa_amd_pointer_info": self._pointer_info,
            "hsa_memory_copy": self._copy,
        }

    def _allocate(self, pool_handle: int, nbytes: int, flags: int, out: int | None) -> None:
        pool = pool_of(pool_handle)
        if not out or not nbytes:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer or a size of 0")
        allowed = _EXECUTABLE | (_UNCACHED if self._target.family.has_uncached_flag else 0)
        if flags & ~allowed:
            text = f"allocation flags {flags:#x}; allowed on {self._target.name}: {int(allowed):#x}"
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, text)
        if not pool.allocatable or nbytes > pool.nbytes:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ALLOCATION, f"{nbytes} bytes from pool {pool_handle:#x}")
        address = self._reserve(pool, nbytes, bool(flags & _EXECUTABLE))
        c_uint64.from_address(out).value = address

    def _reserve(self, pool: SimPool, nbytes: int, executable: bool) -> int:
        label = "device buffer" if pool.is_local else "host buffer"
        try:
            address = self._memory.allocate(
                nbytes, align=ALLOCATION_GRANULE, label=label, executable=executable, mapped=pool.is_local
            )
        except MemoryError as error:
            raise Refusal(Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES, str(error)) from error
        with self._lock:
            self._allocations[address] = _Allocation(pool, nbytes)
        return address

    def _free(self, address: int | None) -> None:
        with self._lock:
            if self._allocations.pop(address or 0, None) is None:
                text = f"{address or 0:#x} is no allocation of a pool"
                raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ALLOCATION, text)
        self._memory.free(address or 0)

    def _allow_access(self, count: int, agents: int | None, flags: int | None, address: int | None) -> None:
        if not count or not agents or flags or not address:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "no agents, no address, or flags not null")
        named = list((c_uint64 * count).from_address(agents))
        unknown = [agent for agent in named if agent not in (CPU_AGENT, GPU_AGENT)]
        if unknown:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_AGENT, f"agent {unknown[0]:#x}")
        if address not in self._allocations:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ALLOCATION, f"{address:#x} is no allocation of a pool")
        if GPU_AGENT in named:
            self._memory.map_for_device(address)

    def _pointer_info(
        self, address: int | None, out: int | None, allocate: int | None, count: int | None, agents: int | None
    ) -> None:
        if not address or not out or allocate or count or agents:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer, or the list of agents asked for")
        known = min(ctypes.c_uint32.from_address(out).value, sizeof(hsa_amd_pointer_info_t))
        info = hsa_amd_pointer_info_t(size=known, type=PointerType.HSA_EXT_POINTER_TYPE_UNKNOWN)
        found = self._memory.find(address)
        allocation = self._allocations.get(found.address) if found else None
        if found and allocation:
            info.type = PointerType.HSA_EXT_POINTER_TYPE_HSA
            info.agentBaseAddress = info.hostBaseAddress = found.address
            info.sizeInBytes = allocation.nbytes
            info.agentOwner = allocation.pool.agent
            info.global_flags = allocation.pool.flags
        ctypes.memmove(out, bytes(info), known)

    def _copy(self, target: int | None, source: int | None, nbytes: int) -> None:
        if not target or not source:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer")
        for name, address in (("destination", target), ("source", source)):
            if self._memory.touches(address, nbytes) and self._memory.find(address, nbytes) is None:
                text = f"copy of {nbytes} bytes: {name} {address:#x} is not inside one allocation"
                raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ALLOCATION, text)
        ctypes.memmove(target, source, nbytes)
