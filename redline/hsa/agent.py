# SPDX-License-Identifier: Apache-2.0
"""A GPU agent: its target name, its limits, its memory pools, and what is made on it.

Owns no resource: agents live as long as their runtime. Which pool serves which kind of buffer is decided
here; allocation itself is `memory.py`. Source of the keys and flags: ROCR-Runtime's hsa.h and hsa_ext_amd.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_uint32, c_uint64
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from redline.errors import HsaError
from redline.hsa.abi import (
    HSA_AMD_SEGMENT_GLOBAL,
    POOL_CALLBACK,
    AgentInfo,
    PoolFlags,
    PoolInfo,
    hsa_dim3_t,
)
from redline.hsa.lib import Hsa

if TYPE_CHECKING:
    from redline.hsa.code_object import LoadedCode
    from redline.hsa.memory import Buffer
    from redline.hsa.queue import Queue
    from redline.hsa.runtime import Runtime
    from redline.hsa.signal import Signal

NAME_BYTES = 64


@dataclass(frozen=True)
class Pool:
    """A memory pool of the GPU ("local") or of a CPU ("host")."""

    handle: int
    owner: str  # "local" or "host"
    flags: PoolFlags


class Agent:
    """One GPU. `target` is its ISA name (gfx1201), `name` what the vendor calls the board.

    Its text, like each fact that is asked for the first time, raises HsaError when its runtime is closed or refuses.
    """

    def __init__(self, runtime: Runtime, handle: int, cpus: list[int]) -> None:
        self.runtime, self.handle, self._cpus = runtime, handle, cpus

    def __repr__(self) -> str:
        return f"<Agent {self.target} ({self.name}) of the {self.runtime.hsa.table.kind} runtime>"

    @cached_property
    def target(self) -> str:
        """ISA name, such as gfx1201. Raises HsaError when the runtime refuses the first query."""
        return self._text(AgentInfo.HSA_AGENT_INFO_NAME)

    @cached_property
    def name(self) -> str:
        """What the vendor calls the board. Raises HsaError when the runtime refuses the first query."""
        return self._text(AgentInfo.HSA_AMD_AGENT_INFO_PRODUCT_NAME)

    @cached_property
    def max_grid(self) -> tuple[int, int, int]:
        """Most work-items in each dimension of a grid. Raises HsaError when the runtime refuses the first query."""
        dims = hsa_dim3_t()
        self._info(AgentInfo.HSA_AGENT_INFO_GRID_MAX_DIM, dims)
        return dims.x, dims.y, dims.z

    @cached_property
    def pci_id(self) -> str:
        """Where the board is: domain:bus:device.function in hexadecimal, as lspci prints it.

        Raises HsaError when the runtime refuses the first query.
        """
        place = self._u32(AgentInfo.HSA_AMD_AGENT_INFO_BDFID)
        domain = self._u32(AgentInfo.HSA_AMD_AGENT_INFO_DOMAIN)
        return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"

    @cached_property
    def uuid(self) -> str:
        """ "GPU-" and 16 hexadecimal digits; "GPU-XX" where there is none. Raises HsaError as `target` does."""
        return self._text(AgentInfo.HSA_AMD_AGENT_INFO_UUID)

    @cached_property
    def chip_id(self) -> int:
        """PCI device id of the chip. Raises HsaError when the runtime refuses the first query."""
        return self._u32(AgentInfo.HSA_AMD_AGENT_INFO_CHIP_ID)

    @cached_property
    def compute_units(self) -> int:
        """How many compute units it has. Raises HsaError when the runtime refuses the first query."""
        return self._u32(AgentInfo.HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)

    @cached_property
    def max_workgroup(self) -> int:
        """Most work-items of a workgroup. Raises HsaError when the runtime refuses the first query."""
        return self._u32(AgentInfo.HSA_AGENT_INFO_WORKGROUP_MAX_SIZE)

    @cached_property
    def max_queues(self) -> int:
        """Most queues at a time. Raises HsaError when the runtime refuses the first query."""
        return self._u32(AgentInfo.HSA_AGENT_INFO_QUEUES_MAX)

    @cached_property
    def clock_hz(self) -> int:
        """Frequency of the GPU's own clock, which PM4 timestamps count in. Raises HsaError as `target` does."""
        value = c_uint64()
        self._info(AgentInfo.HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, value)
        return value.value

    @cached_property
    def queue_max_size(self) -> int:
        """Most packets that a queue's ring may hold. Raises HsaError when the runtime refuses the first query."""
        return self._u32(AgentInfo.HSA_AGENT_INFO_QUEUE_MAX_SIZE)

    @cached_property
    def queue_min_size(self) -> int:
        """Fewest packets that a queue's ring may hold. Raises HsaError when the runtime refuses the first query."""
        return self._u32(AgentInfo.HSA_AGENT_INFO_QUEUE_MIN_SIZE)

    @cached_property
    def pools(self) -> list[Pool]:
        """Global pools that may be allocated from: the GPU's own, then the host's. Raises HsaError as `target` does."""
        host = [pool for cpu in self._cpus for pool in _pools(self.runtime.hsa, cpu, "host")]
        return _pools(self.runtime.hsa, self.handle, "local") + host

    def pool(self, owner: str, wanted: PoolFlags, unwanted: PoolFlags) -> Pool:
        """The first pool of `owner` that has all the wanted flags and none of the unwanted.

        Raises HsaError for none.
        """
        for pool in self.pools:
            if pool.owner == owner and pool.flags & wanted == wanted and not pool.flags & unwanted:
                return pool
        seen = ", ".join(f"{pool.owner}: {pool.flags!r}" for pool in self.pools)
        raise HsaError(
            "RL0907",
            where=f"memory pools of {self.target}",
            seen=seen or "none that may be allocated from",
            allowed=f"one of {owner} with {wanted!r}",
            do="report this with the output of `redline doctor`",
        )

    # What is made here. Imported late: a program that only lists agents needs neither numpy nor numba.

    def allocate(self, nbytes: int, kind: str = "device", *, executable: bool = False) -> Buffer:
        """`nbytes` bytes of a kind (`memory.KINDS`), visible to this agent.

        Raises HsaError for an unknown kind, no byte at all, no such pool, or no room.
        """
        from redline.hsa.memory import Buffer

        return Buffer(self, nbytes, kind, executable=executable)

    def queue(self, packets: int = 64, *, cu_mask: Sequence[bool] | None = None, priority: str = "normal") -> Queue:
        """A queue with a ring of `packets` slots. Options and errors as of `Queue`.

        Raises HsaError for a number that is no power of two in the limits.
        """
        from redline.hsa.queue import Queue

        return Queue(self, packets, cu_mask=cu_mask, priority=priority)

    def signal(self, initial: int = 1) -> Signal:
        """A signal that starts with this value. Raises HsaError when the runtime makes none."""
        from redline.hsa.signal import Signal

        return Signal(self, initial)

    def load(self, code: bytes) -> LoadedCode:
        """Load a code object.

        Raises CodeObjectError for one that this agent cannot take, HsaError for another failure.
        """
        from redline.hsa.code_object import LoadedCode

        return LoadedCode(self, code)

    def _info(self, key: AgentInfo, out: Any) -> None:
        self.runtime.require_open()
        self.runtime.hsa.check("hsa_agent_get_info", self.handle, key, byref(out))

    def _u32(self, key: AgentInfo) -> int:
        value = c_uint32()
        self._info(key, value)
        return value.value

    def _text(self, key: AgentInfo) -> str:
        text = ctypes.create_string_buffer(NAME_BYTES)
        self._info(key, text)
        return text.value.decode("ascii", "replace")


def device_type(hsa: Hsa, agent: int) -> int:
    """hsa_device_type_t of any agent."""
    kind = c_uint32()
    hsa.check("hsa_agent_get_info", agent, AgentInfo.HSA_AGENT_INFO_DEVICE, byref(kind))
    return kind.value


def _pools(hsa: Hsa, agent: int, owner: str) -> list[Pool]:
    handles = hsa.visited("hsa_amd_agent_iterate_memory_pools", POOL_CALLBACK, agent)
    return [pool for pool in (_pool(hsa, handle, owner) for handle in handles) if pool is not None]


def _pool(hsa: Hsa, handle: int, owner: str) -> Pool | None:
    """None for group and private segments and for pools closed to allocation."""
    if _pool_u32(hsa, handle, PoolInfo.HSA_AMD_MEMORY_POOL_INFO_SEGMENT) != HSA_AMD_SEGMENT_GLOBAL:
        return None
    allowed = ctypes.c_bool()
    key = PoolInfo.HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED
    hsa.check("hsa_amd_memory_pool_get_info", handle, key, byref(allowed))
    if not allowed.value:
        return None
    flags = _pool_u32(hsa, handle, PoolInfo.HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS)
    return Pool(handle, owner, PoolFlags(flags))


def _pool_u32(hsa: Hsa, handle: int, key: PoolInfo) -> int:
    value = c_uint32()
    hsa.check("hsa_amd_memory_pool_get_info", handle, key, byref(value))
    return value.value
