# SPDX-License-Identifier: Apache-2.0
"""Buffers: memory of one kind on one agent, and what the runtime says about an address.

`write` and `read` are runtime copies: the host never stores through a PCIe BAR, where a store needs flushes
that only the driver knows. `view` is memory in place, so it exists only for the kinds that live in host
memory. Knows nothing of the caches in front of a kind; `redline/fences.py` does. Source of pools, flags and pointer
types: ROCR-Runtime's hsa_ext_amd.h.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p, sizeof
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from redline.errors import HsaError
from redline.hsa.abi import AllocationFlags, PointerType, PoolFlags, hsa_agent_t, hsa_amd_pointer_info_t
from redline.hsa.handle import Handle, Rank

if TYPE_CHECKING:
    from redline.hsa.agent import Agent
    from redline.hsa.runtime import Runtime

_NONE = PoolFlags(0)
_FINE = PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
_COARSE = PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED
_KERNARG = PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT


# Targets whose L2 may keep lines of fine-grained host memory, and for which ROCr therefore has an UNCACHED flag: those
# of gfx12.0. On gfx10 and gfx11 such memory is never in L2, and the flag is refused. Sources: Linux 6.12, gmc_v12_0.c
# and kfd_svm.c (only UNCACHED is UC, fine-grained is NC); rocm-systems pull request 11343 (the flag).
FINE_GRAINED_IS_CACHED_ON = frozenset({"gfx1200", "gfx1201"})


@dataclass(frozen=True)
class Kind:
    """Which pool serves a kind of buffer, and whether the host may touch it in place."""

    owner: str
    wanted: PoolFlags
    unwanted: PoolFlags
    host_visible: bool
    must_not_cache: bool = False


KINDS: dict[str, Kind] = {
    "device": Kind("local", _COARSE, _NONE, host_visible=False),
    "host": Kind("host", _COARSE, _NONE, host_visible=True),
    "fine": Kind("host", _FINE, _KERNARG, host_visible=True),
    "uncached": Kind("host", _FINE, _KERNARG, host_visible=True, must_not_cache=True),
    "kernarg": Kind("host", _FINE | _KERNARG, _NONE, host_visible=True),
}


class Buffer(Handle):
    """`nbytes` bytes of memory that the agent may read and write, from the byte address `address` on.

    Raises HsaError when it is made of an unknown kind, of no bytes, without such a pool or without room.
    """

    def __init__(self, agent: Agent, nbytes: int, kind: str, *, executable: bool = False) -> None:
        super().__init__(agent.runtime)
        self.agent, self.nbytes, self.kind = agent, nbytes, kind
        self._kind = _kind(kind, nbytes)
        pool = agent.pool(self._kind.owner, self._kind.wanted, self._kind.unwanted)
        flags = AllocationFlags.HSA_AMD_MEMORY_POOL_STANDARD_FLAG
        if executable:
            flags |= AllocationFlags.HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG
        if self._kind.must_not_cache and agent.target in FINE_GRAINED_IS_CACHED_ON:
            flags |= AllocationFlags.HSA_AMD_MEMORY_POOL_UNCACHED_FLAG
        pointer = c_void_p()
        self.runtime.hsa.check("hsa_amd_memory_pool_allocate", pool.handle, nbytes, int(flags), byref(pointer))
        self.address = int(pointer.value or 0)
        self._own(Rank.MEMORY, "hsa_amd_memory_pool_free", self.address)
        try:
            allowed = hsa_agent_t(agent.handle)
            self.runtime.hsa.check("hsa_amd_agents_allow_access", 1, byref(allowed), None, self.address)
        except BaseException:
            self.abandon()
            raise

    def __repr__(self) -> str:
        return f"<Buffer {self.kind}, {self.nbytes} bytes at {self.address:#x} on {self.agent.target}>"

    def write(self, data: Any, offset: int = 0) -> None:
        """Copy `data` (bytes or an array) to byte `offset`, through the runtime.

        Raises HsaError outside the buffer, when it is closed, and when the runtime's copy fails.
        """
        source = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else _flat_bytes(data)
        self._check_range("write", offset, source.nbytes)
        if source.nbytes:
            self.runtime.hsa.check("hsa_memory_copy", self.address + offset, source.ctypes.data, source.nbytes)

    def read(self, dtype: DTypeLike = np.uint8, offset: int = 0, count: int | None = None) -> NDArray[Any]:
        """A flat copy of `count` items from byte `offset` on (default: all that fit), through the runtime.

        Raises HsaError outside the buffer, when it is closed, and when the runtime's copy fails.
        """
        item = np.dtype(dtype)
        if count is None:
            count = max(0, self.nbytes - offset) // item.itemsize
        result = np.empty(count, item)
        self._check_range("read", offset, result.nbytes)
        if result.nbytes:
            self.runtime.hsa.check("hsa_memory_copy", result.ctypes.data, self.address + offset, result.nbytes)
        return result

    def view(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """The memory itself as a flat array; it must not outlive the buffer.

        Raises HsaError for a kind that the host must not touch in place, and for a closed buffer.
        """
        if not self._kind.host_visible:
            raise HsaError(
                "RL0905",
                where=f"view of a {self.kind} buffer",
                seen="memory behind the PCIe BAR, or shared with the GPU's caches",
                allowed="kinds " + ", ".join(name for name, kind in KINDS.items() if kind.host_visible),
                do="use write() and read()",
            )
        self._check_range("view", 0, self.nbytes)
        raw = np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(self.address))
        return raw[: self.nbytes // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize].view(dtype)

    def _check_range(self, act: str, offset: int, nbytes: int) -> None:
        self.runtime.require_open()
        if self.closed or offset < 0 or offset + nbytes > self.nbytes:
            raise HsaError(
                "RL0906",
                where=f"{act} of {self!r}",
                seen="a closed buffer" if self.closed else f"bytes {offset} to {offset + nbytes}",
                allowed=f"bytes 0 to {self.nbytes} of an open buffer",
                do="stay inside the buffer",
            )


def _kind(kind: str, nbytes: int) -> Kind:
    if kind not in KINDS or nbytes < 1:
        raise HsaError(
            "RL0906",
            where="allocation",
            seen=f"{nbytes} bytes of kind {kind!r}",
            allowed="at least 1 byte of " + ", ".join(KINDS),
            do="name one of the kinds",
        )
    return KINDS[kind]


def _flat_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(frozen=True)
class PointerInfo:
    """What the runtime knows about an address: the allocation's kind, first byte, size in bytes, agent, pool flags."""

    type: PointerType
    base: int  # where agents see the allocation
    nbytes: int
    owner: int  # handle of the agent that owns the pool
    flags: PoolFlags


def pointer_info(runtime: Runtime, address: int) -> PointerInfo:
    """Ask the runtime which allocation holds the byte at `address`; type UNKNOWN for none, or one of a newer kind.

    Raises HsaError when the runtime is closed or refuses the query.
    """
    info = hsa_amd_pointer_info_t(size=sizeof(hsa_amd_pointer_info_t))
    runtime.require_open()
    runtime.hsa.check("hsa_amd_pointer_info", address, byref(info), None, None, None)
    known = info.type in PointerType.__members__.values()
    return PointerInfo(
        PointerType(info.type) if known else PointerType.HSA_EXT_POINTER_TYPE_UNKNOWN,
        info.agentBaseAddress,
        info.sizeInBytes,
        info.agentOwner,
        PoolFlags(info.global_flags),
    )
