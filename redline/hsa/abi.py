# SPDX-License-Identifier: Apache-2.0
"""Handles, enumerations and structures of the public HSA headers, as ctypes.

Names are the headers' own. No calls: `lib.py` has the prototypes. Handles (`hsa_agent_t` and its like) are
structures of one `uint64_t`; the System V and AArch64 ABIs pass those exactly as a `uint64_t`, so that is
what they are here. The sizes and offsets are held by `tests/hsa/test_abi.py`.

Sources: hsa.h, hsa_ext_amd.h, amd_hsa_signal.h, amd_hsa_queue.h of ROCR-Runtime (Debian 5.2.3 and ROCm's
rocm-systems 1b1610fc agree on everything here); the vendor packet from aqlprofile's amd_aql_pm4_ib_packet.h.
"""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    Structure,
    c_bool,
    c_int64,
    c_size_t,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from enum import IntEnum, IntFlag

hsa_status_t = c_uint32
hsa_agent_t = c_uint64
hsa_signal_t = c_uint64
hsa_executable_t = c_uint64
hsa_executable_symbol_t = c_uint64
hsa_code_object_reader_t = c_uint64
hsa_amd_memory_pool_t = c_uint64


class Status(IntEnum):
    """hsa_status_t (hsa.h) and its AMD additions (hsa_ext_amd.h)."""

    HSA_STATUS_SUCCESS = 0x0
    HSA_STATUS_INFO_BREAK = 0x1
    HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 40
    HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 41
    HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 42
    HSA_STATUS_ERROR_MEMORY_FAULT = 43
    HSA_STATUS_CU_MASK_REDUCED = 44
    HSA_STATUS_ERROR_OUT_OF_REGISTERS = 45
    HSA_STATUS_ERROR_RESOURCE_BUSY = 46
    HSA_STATUS_ERROR_NOT_SUPPORTED = 47
    HSA_STATUS_ERROR = 0x1000
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001
    HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003
    HSA_STATUS_ERROR_INVALID_AGENT = 0x1004
    HSA_STATUS_ERROR_INVALID_REGION = 0x1005
    HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006
    HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008
    HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009
    HSA_STATUS_ERROR_RESOURCE_FREE = 0x100A
    HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B
    HSA_STATUS_ERROR_REFCOUNT_OVERFLOW = 0x100C
    HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D
    HSA_STATUS_ERROR_INVALID_INDEX = 0x100E
    HSA_STATUS_ERROR_INVALID_ISA = 0x100F
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010
    HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011
    HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012
    HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013
    HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED = 0x1014
    HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015
    HSA_STATUS_ERROR_EXCEPTION = 0x1016
    HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017
    HSA_STATUS_ERROR_INVALID_CODE_SYMBOL = 0x1018
    HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019
    HSA_STATUS_ERROR_INVALID_FILE = 0x1020
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021
    HSA_STATUS_ERROR_INVALID_CACHE = 0x1022
    HSA_STATUS_ERROR_INVALID_WAVEFRONT = 0x1023
    HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP = 0x1024
    HSA_STATUS_ERROR_INVALID_RUNTIME_STATE = 0x1025
    HSA_STATUS_ERROR_FATAL = 0x1026


def status_text(status: int) -> str:
    """Name and number, for messages.

    >>> status_text(0x1008)
    'HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)'
    >>> status_text(0x77)
    'unknown status (0x77)'
    """
    known = {member.value: member.name for member in Status}
    return f"{known.get(status, 'unknown status')} ({status:#x})"


class SystemInfo(IntEnum):
    """hsa_system_info_t."""

    HSA_SYSTEM_INFO_VERSION_MAJOR = 0
    HSA_SYSTEM_INFO_VERSION_MINOR = 1
    HSA_SYSTEM_INFO_TIMESTAMP = 2
    HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3


class AgentInfo(IntEnum):
    """hsa_agent_info_t and hsa_amd_agent_info_t."""

    HSA_AGENT_INFO_NAME = 0
    HSA_AGENT_INFO_VENDOR_NAME = 1
    HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8
    HSA_AGENT_INFO_GRID_MAX_DIM = 9
    HSA_AGENT_INFO_GRID_MAX_SIZE = 10
    HSA_AGENT_INFO_QUEUES_MAX = 12
    HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13
    HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14
    HSA_AGENT_INFO_NODE = 16
    HSA_AGENT_INFO_DEVICE = 17
    HSA_AMD_AGENT_INFO_CHIP_ID = 0xA000
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xA002
    HSA_AMD_AGENT_INFO_BDFID = 0xA006
    HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xA009
    HSA_AMD_AGENT_INFO_DOMAIN = 0xA00F
    HSA_AMD_AGENT_INFO_UUID = 0xA011
    HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xA016


class DeviceType(IntEnum):
    """hsa_device_type_t. An NPU reports a fourth value (3), which is none of ours."""

    HSA_DEVICE_TYPE_CPU = 0
    HSA_DEVICE_TYPE_GPU = 1
    HSA_DEVICE_TYPE_DSP = 2


class PoolInfo(IntEnum):
    """hsa_amd_memory_pool_info_t."""

    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1
    HSA_AMD_MEMORY_POOL_INFO_SIZE = 2
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7


class PoolFlags(IntFlag):
    """hsa_amd_memory_pool_global_flag_t."""

    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8


class AllocationFlags(IntFlag):
    """hsa_amd_memory_pool_flag_t. ROCr honours UNCACHED on gfx12.0 and ignores or refuses it elsewhere."""

    HSA_AMD_MEMORY_POOL_STANDARD_FLAG = 0
    HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG = 4
    HSA_AMD_MEMORY_POOL_UNCACHED_FLAG = 8


class PointerType(IntEnum):
    """hsa_amd_pointer_type_t."""

    HSA_EXT_POINTER_TYPE_UNKNOWN = 0
    HSA_EXT_POINTER_TYPE_HSA = 1
    HSA_EXT_POINTER_TYPE_LOCKED = 2
    HSA_EXT_POINTER_TYPE_GRAPHICS = 3
    HSA_EXT_POINTER_TYPE_IPC = 4


class SignalCondition(IntEnum):
    """hsa_signal_condition_t."""

    HSA_SIGNAL_CONDITION_EQ = 0
    HSA_SIGNAL_CONDITION_NE = 1
    HSA_SIGNAL_CONDITION_LT = 2
    HSA_SIGNAL_CONDITION_GTE = 3


class QueuePriority(IntEnum):
    """hsa_amd_queue_priority_t."""

    HSA_AMD_QUEUE_PRIORITY_LOW = 0
    HSA_AMD_QUEUE_PRIORITY_NORMAL = 1
    HSA_AMD_QUEUE_PRIORITY_HIGH = 2


class SymbolInfo(IntEnum):
    """hsa_executable_symbol_info_t, as far as it is asked for: what a kernel needs is read from its ELF file."""

    HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22


HSA_AMD_SEGMENT_GLOBAL = 0
HSA_QUEUE_TYPE_MULTI = 0
HSA_PROFILE_FULL = 1
HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0
HSA_WAIT_STATE_BLOCKED = 0
HSA_WAIT_STATE_ACTIVE = 1
HSA_SYMBOL_KIND_VARIABLE = 0
HSA_SYMBOL_KIND_KERNEL = 1
HSA_AMD_GPU_MEMORY_FAULT_EVENT = 0

AMD_SIGNAL_KIND_USER = 1
AMD_SIGNAL_KIND_DOORBELL = -1


class hsa_dim3_t(Structure):
    """Work-items or workgroups per dimension."""

    _fields_ = [("x", c_uint32), ("y", c_uint32), ("z", c_uint32)]


class hsa_queue_t(Structure):
    """The public part of a user mode queue (large model)."""

    _fields_ = [
        ("type", c_uint32),
        ("features", c_uint32),
        ("base_address", c_uint64),
        ("doorbell_signal", hsa_signal_t),
        ("size", c_uint32),
        ("reserved1", c_uint32),
        ("id", c_uint64),
    ]


class amd_signal_t(Structure):
    """What a signal handle of ROCr points to. `hsa/` never looks inside; the software device lives by it."""

    _fields_ = [
        ("kind", c_int64),
        ("value", c_int64),  # or the address of a hardware doorbell
        ("event_mailbox_ptr", c_uint64),
        ("event_id", c_uint32),
        ("reserved1", c_uint32),
        ("start_ts", c_uint64),
        ("end_ts", c_uint64),
        ("queue_ptr", c_uint64),
        ("reserved3", c_uint32 * 2),
    ]


class hsa_kernel_dispatch_packet_t(Structure):
    """Launch one kernel; grid sizes count work-items."""

    _fields_ = [
        ("header", c_uint16),
        ("setup", c_uint16),
        ("workgroup_size_x", c_uint16),
        ("workgroup_size_y", c_uint16),
        ("workgroup_size_z", c_uint16),
        ("reserved0", c_uint16),
        ("grid_size_x", c_uint32),
        ("grid_size_y", c_uint32),
        ("grid_size_z", c_uint32),
        ("private_segment_size", c_uint32),
        ("group_segment_size", c_uint32),
        ("kernel_object", c_uint64),
        ("kernarg_address", c_uint64),
        ("reserved2", c_uint64),
        ("completion_signal", hsa_signal_t),
    ]


class hsa_barrier_and_packet_t(Structure):
    """Waits until up to five signals are 0; a null handle counts as satisfied."""

    _fields_ = [
        ("header", c_uint16),
        ("reserved0", c_uint16),
        ("reserved1", c_uint32),
        ("dep_signal", hsa_signal_t * 5),
        ("reserved2", c_uint64),
        ("completion_signal", hsa_signal_t),
    ]


class amd_aql_pm4_ib_packet_t(Structure):
    """The vendor packet (format 1) that runs one PM4 indirect buffer."""

    _fields_ = [
        ("header", c_uint16),
        ("ven_hdr", c_uint16),
        ("ib_jump_cmd", c_uint32 * 4),
        ("dw_cnt_remain", c_uint32),
        ("reserved", c_uint32 * 8),
        ("completion_signal", hsa_signal_t),
    ]


class hsa_amd_pointer_info_t(Structure):
    """What the runtime knows about an address. `size` says how much of it both sides know."""

    _fields_ = [
        ("size", c_uint32),
        ("type", c_uint32),
        ("agentBaseAddress", c_uint64),
        ("hostBaseAddress", c_uint64),
        ("sizeInBytes", c_size_t),
        ("userData", c_uint64),
        ("agentOwner", hsa_agent_t),
        ("global_flags", c_uint32),
        ("registered", c_bool),
    ]


class hsa_amd_profiling_dispatch_time_t(Structure):
    """When a dispatch began and ended, in ticks of the system's timestamp."""

    _fields_ = [("start", c_uint64), ("end", c_uint64)]


class hsa_amd_gpu_memory_fault_info_t(Structure):
    """Which agent faulted, where, and why (a bit mask)."""

    _fields_ = [("agent", hsa_agent_t), ("virtual_address", c_uint64), ("fault_reason_mask", c_uint32)]


class hsa_amd_event_t(Structure):
    """A system event; the memory fault is the one member of the union we read."""

    _fields_ = [("event_type", c_uint32), ("memory_fault", hsa_amd_gpu_memory_fault_info_t)]


# Callbacks that we hand to the runtime.
AGENT_CALLBACK = CFUNCTYPE(hsa_status_t, hsa_agent_t, c_void_p)
POOL_CALLBACK = CFUNCTYPE(hsa_status_t, hsa_amd_memory_pool_t, c_void_p)
QUEUE_ERROR_CALLBACK = CFUNCTYPE(None, hsa_status_t, c_void_p, c_void_p)
SYSTEM_EVENT_CALLBACK = CFUNCTYPE(hsa_status_t, c_void_p, c_void_p)
