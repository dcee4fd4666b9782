# SPDX-License-Identifier: Apache-2.0
"""Structures against sizes and offsets compiled from hsa.h, hsa_ext_amd.h and amd_hsa_signal.h, typed in here."""

from __future__ import annotations

from ctypes import sizeof
from typing import Any

import pytest

from redline.hsa import abi
from redline.hsa.prototypes import PROTOTYPES

LAYOUTS: list[tuple[Any, int, dict[str, int]]] = [
    (abi.hsa_dim3_t, 12, {"x": 0, "y": 4, "z": 8}),
    (
        abi.hsa_queue_t,
        40,
        {"type": 0, "features": 4, "base_address": 8, "doorbell_signal": 16, "size": 24, "reserved1": 28, "id": 32},
    ),
    (
        abi.amd_signal_t,
        64,
        {"kind": 0, "value": 8, "event_mailbox_ptr": 16, "event_id": 24, "start_ts": 32, "end_ts": 40, "queue_ptr": 48},
    ),
    (
        abi.hsa_kernel_dispatch_packet_t,
        64,
        {
            "header": 0,
            "setup": 2,
            "workgroup_size_x": 4,
            "workgroup_size_y": 6,
            "workgroup_size_z": 8,
            "reserved0": 10,
            "grid_size_x": 12,
            "grid_size_y": 16,
            "grid_size_z": 20,
            "private_segment_size": 24,
            "group_segment_size": 28,
            "kernel_object": 32,
            "kernarg_address": 40,
            "reserved2": 48,
            "completion_signal": 56,
        },
    ),
    (
        abi.hsa_barrier_and_packet_t,
        64,
        {"header": 0, "reserved0": 2, "reserved1": 4, "dep_signal": 8, "reserved2": 48, "completion_signal": 56},
    ),
    (
        abi.amd_aql_pm4_ib_packet_t,
        64,
        {"header": 0, "ven_hdr": 2, "ib_jump_cmd": 4, "dw_cnt_remain": 20, "reserved": 24, "completion_signal": 56},
    ),
    (
        abi.hsa_amd_pointer_info_t,
        56,
        {
            "size": 0,
            "type": 4,
            "agentBaseAddress": 8,
            "hostBaseAddress": 16,
            "sizeInBytes": 24,
            "userData": 32,
            "agentOwner": 40,
            "global_flags": 48,
            "registered": 52,
        },
    ),
    (abi.hsa_amd_event_t, 32, {"event_type": 0, "memory_fault": 8}),
    (
        abi.hsa_amd_gpu_memory_fault_info_t,
        24,
        {"agent": 0, "virtual_address": 8, "fault_reason_mask": 16},
    ),
]


@pytest.mark.parametrize(("structure", "size", "offsets"), LAYOUTS, ids=[row[0].__name__ for row in LAYOUTS])
def test_sizes_and_offsets(structure: Any, size: int, offsets: dict[str, int]) -> None:
    """Each member where a C compiler puts it."""
    assert sizeof(structure) == size
    assert {name: getattr(structure, name).offset for name in offsets} == offsets


NUMBERS: list[tuple[int, int]] = [
    (abi.Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES, 0x1008),
    (abi.Status.HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, 0x1009),
    (abi.Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT, 0x1010),
    (abi.Status.HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION, 41),
    (abi.Status.HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION, 42),
    (abi.AgentInfo.HSA_AGENT_INFO_DEVICE, 17),
    (abi.AgentInfo.HSA_AMD_AGENT_INFO_PRODUCT_NAME, 0xA009),
    (abi.SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, 3),
    (abi.AllocationFlags.HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG, 4),
    (abi.AllocationFlags.HSA_AMD_MEMORY_POOL_UNCACHED_FLAG, 8),
    (abi.SymbolInfo.HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, 22),
    (abi.SignalCondition.HSA_SIGNAL_CONDITION_LT, 2),
]


def test_numbers_of_the_headers() -> None:
    """The enumerators that Redline's calls and decisions rest on."""
    assert [int(member) for member, _ in NUMBERS] == [number for _, number in NUMBERS]
    assert [int(flag) for flag in abi.PoolFlags] == [1, 2, 4, 8]


def test_every_prototype_has_the_headers_number_of_arguments() -> None:
    """Counted in hsa.h and hsa_ext_amd.h."""
    counts = {
        "hsa_init": 0,
        "hsa_shut_down": 0,
        "hsa_system_get_info": 2,
        "hsa_iterate_agents": 2,
        "hsa_agent_get_info": 3,
        "hsa_amd_register_system_event_handler": 2,
        "hsa_amd_agent_iterate_memory_pools": 3,
        "hsa_amd_memory_pool_get_info": 3,
        "hsa_amd_memory_pool_allocate": 4,
        "hsa_amd_memory_pool_free": 1,
        "hsa_amd_agents_allow_access": 4,
        "hsa_amd_pointer_info": 5,
        "hsa_memory_copy": 3,
        "hsa_signal_create": 4,
        "hsa_signal_destroy": 1,
        "hsa_signal_load_scacquire": 1,
        "hsa_signal_store_screlease": 2,
        "hsa_signal_wait_scacquire": 5,
        "hsa_queue_create": 8,
        "hsa_queue_destroy": 1,
        "hsa_queue_load_read_index_scacquire": 1,
        "hsa_queue_load_write_index_relaxed": 1,
        "hsa_queue_add_write_index_scacq_screl": 2,
        "hsa_amd_queue_cu_set_mask": 3,
        "hsa_amd_queue_set_priority": 2,
        "hsa_amd_profiling_set_profiler_enabled": 2,
        "hsa_amd_profiling_get_dispatch_time": 3,
        "hsa_code_object_reader_create_from_memory": 3,
        "hsa_code_object_reader_destroy": 1,
        "hsa_executable_create_alt": 4,
        "hsa_executable_destroy": 1,
        "hsa_executable_freeze": 2,
        "hsa_executable_load_agent_code_object": 5,
        "hsa_executable_get_symbol_by_name": 4,
        "hsa_executable_symbol_get_info": 3,
    }
    assert {name: len(row.arguments) for name, row in PROTOTYPES.items()} == counts
