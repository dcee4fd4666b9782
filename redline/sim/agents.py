# SPDX-License-Identifier: Apache-2.0
"""The software device's agents and pools, and what they answer when asked about themselves.

One CPU and one GPU, with the limits that ROCr reports for a discrete card. Data and lookups only: allocation is
`pools.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from redline.hsa.abi import HSA_AMD_SEGMENT_GLOBAL, AgentInfo, DeviceType, PoolFlags, PoolInfo, Status
from redline.sim.clock import DEVICE_TICKS_PER_SECOND
from redline.sim.errors import Refusal

CPU_AGENT = 0xC0_0000_0001
GPU_AGENT = 0xC0_0000_0002

NAME_BYTES = 64
ALLOCATION_GRANULE = 4096
HSA_AMD_SEGMENT_GROUP = 3

# ROCr's amd_gpu_agent.cpp: INT32_MAX, UINT16_MAX, UINT16_MAX work-items a dimension, UINT32_MAX in all.
GRID_MAX_DIM = (2147483647, 65535, 65535)
GRID_MAX_SIZE = 4294967295
WORKGROUP_MAX_SIZE = 1024
QUEUES_MAX, QUEUE_MIN_SIZE, QUEUE_MAX_SIZE = 128, 64, 131072

# One pair of units, the least that a mask may enable; bus 3, device 0, function 0.
COMPUTE_UNITS, BDFID = 2, 3 << 8

_KERNARG = PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT
_FINE = PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
_COARSE = PoolFlags.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED


@dataclass(frozen=True)
class SimPool:
    """A memory pool. Only global segments may be allocated from."""

    handle: int
    agent: int
    flags: PoolFlags
    nbytes: int
    segment: int = HSA_AMD_SEGMENT_GLOBAL

    @property
    def is_local(self) -> bool:
        return self.agent == GPU_AGENT

    @property
    def allocatable(self) -> bool:
        return self.segment == HSA_AMD_SEGMENT_GLOBAL


POOLS: dict[int, SimPool] = {
    pool.handle: pool
    for pool in (
        SimPool(0xA0_0000_0001, CPU_AGENT, _FINE, 16 << 30),
        SimPool(0xA0_0000_0002, CPU_AGENT, _FINE | _KERNARG, 16 << 30),
        SimPool(0xA0_0000_0003, CPU_AGENT, _COARSE, 16 << 30),
        SimPool(0xA0_0000_0004, GPU_AGENT, _COARSE, 16 << 30),
        SimPool(0xA0_0000_0005, GPU_AGENT, PoolFlags(0), 64 << 10, HSA_AMD_SEGMENT_GROUP),
    )
}


def agent_info(agent: int, key: int, target: str) -> bytes:
    """The bytes that hsa_agent_get_info stores."""
    if agent not in (CPU_AGENT, GPU_AGENT):
        raise Refusal(Status.HSA_STATUS_ERROR_INVALID_AGENT, f"agent {agent:#x} is none of this runtime's")
    answers = _cpu_answers() if agent == CPU_AGENT else _gpu_answers(target)
    if key not in answers:
        raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, f"agent attribute {key:#x} is not covered")
    return answers[key]


def pool_info(handle: int, key: int) -> bytes:
    """The bytes that hsa_amd_memory_pool_get_info stores."""
    pool = pool_of(handle)
    answers = {
        PoolInfo.HSA_AMD_MEMORY_POOL_INFO_SEGMENT: struct.pack("<I", pool.segment),
        PoolInfo.HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: struct.pack("<I", pool.flags),
        PoolInfo.HSA_AMD_MEMORY_POOL_INFO_SIZE: struct.pack("<Q", pool.nbytes),
        PoolInfo.HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: struct.pack("<?", pool.allocatable),
        PoolInfo.HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE: struct.pack("<Q", ALLOCATION_GRANULE),
        PoolInfo.HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT: struct.pack("<Q", ALLOCATION_GRANULE),
    }
    if key not in answers:
        raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, f"pool attribute {key} is not covered")
    return answers[PoolInfo(key)]


def pool_of(handle: int) -> SimPool:
    if handle not in POOLS:
        raise Refusal(Status.HSA_STATUS_ERROR_INVALID_MEMORY_POOL, f"pool {handle:#x} is none of this runtime's")
    return POOLS[handle]


def _cpu_answers() -> dict[int, bytes]:
    return {
        AgentInfo.HSA_AGENT_INFO_NAME: _text("host"),
        AgentInfo.HSA_AGENT_INFO_VENDOR_NAME: _text("CPU"),
        AgentInfo.HSA_AGENT_INFO_DEVICE: struct.pack("<I", DeviceType.HSA_DEVICE_TYPE_CPU),
        AgentInfo.HSA_AGENT_INFO_NODE: struct.pack("<I", 0),
        AgentInfo.HSA_AGENT_INFO_QUEUES_MAX: struct.pack("<I", 0),
        AgentInfo.HSA_AMD_AGENT_INFO_PRODUCT_NAME: _text("host of a software device"),
    }


def _gpu_answers(target: str) -> dict[int, bytes]:
    return {
        AgentInfo.HSA_AGENT_INFO_NAME: _text(target),
        AgentInfo.HSA_AGENT_INFO_VENDOR_NAME: _text("AMD"),
        AgentInfo.HSA_AGENT_INFO_DEVICE: struct.pack("<I", DeviceType.HSA_DEVICE_TYPE_GPU),
        AgentInfo.HSA_AGENT_INFO_NODE: struct.pack("<I", 1),
        AgentInfo.HSA_AGENT_INFO_WORKGROUP_MAX_SIZE: struct.pack("<I", WORKGROUP_MAX_SIZE),
        AgentInfo.HSA_AGENT_INFO_GRID_MAX_DIM: struct.pack("<3I", *GRID_MAX_DIM),
        AgentInfo.HSA_AGENT_INFO_GRID_MAX_SIZE: struct.pack("<I", GRID_MAX_SIZE),
        AgentInfo.HSA_AGENT_INFO_QUEUES_MAX: struct.pack("<I", QUEUES_MAX),
        AgentInfo.HSA_AGENT_INFO_QUEUE_MIN_SIZE: struct.pack("<I", QUEUE_MIN_SIZE),
        AgentInfo.HSA_AGENT_INFO_QUEUE_MAX_SIZE: struct.pack("<I", QUEUE_MAX_SIZE),
        AgentInfo.HSA_AMD_AGENT_INFO_PRODUCT_NAME: _text(f"software device {target}"),
        AgentInfo.HSA_AMD_AGENT_INFO_CHIP_ID: struct.pack("<I", 0),
        AgentInfo.HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: struct.pack("<I", COMPUTE_UNITS),
        AgentInfo.HSA_AMD_AGENT_INFO_BDFID: struct.pack("<I", BDFID),
        AgentInfo.HSA_AMD_AGENT_INFO_DOMAIN: struct.pack("<I", 0),
        AgentInfo.HSA_AMD_AGENT_INFO_UUID: b"GPU-XX\0",
        AgentInfo.HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY: struct.pack("<Q", DEVICE_TICKS_PER_SECOND),
    }


def _text(text: str) -> bytes:
    return text.encode("ascii").ljust(NAME_BYTES, b"\0")
