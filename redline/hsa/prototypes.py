# SPDX-License-Identifier: Apache-2.0
"""Every HSA call that Redline makes: its result and argument types as the headers declare them, and which header.

Types are the headers' own words, so that a C compiler can compare them (tests/hsa/test_real_library.py); what ctypes
makes of each word is `CTYPES`. To add a call, add its row here and its meaning to the software device's table.

Sources: hsa.h and hsa_ext_amd.h of ROCR-Runtime (Debian 5.2.3 and ROCm's rocm-systems 1b1610fc agree on every row).
"""

from __future__ import annotations

from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Final, NamedTuple

CORE, AMD = "hsa.h", "hsa_ext_amd.h"


class Prototype(NamedTuple):
    """One call: C types of its result and its arguments, and the header that declares it."""

    result: str
    arguments: tuple[str, ...]
    header: str

    @property
    def ctypes(self) -> tuple[Any, ...]:
        """The same for ctypes: result, then arguments."""
        return tuple(_ctype(name) for name in (self.result, *self.arguments))


# Handles are structures of one uint64_t, which the System V and AArch64 ABIs pass as that; enumerations are 32 bits.
CTYPES: Final[dict[str, Any]] = {
    "void": None,
    "int": c_int,
    "uint32_t": c_uint32,
    "uint64_t": c_uint64,
    "size_t": c_size_t,
    "hsa_signal_value_t": c_int64,
    "const char*": c_char_p,
    **dict.fromkeys(
        (
            *("hsa_status_t", "hsa_system_info_t", "hsa_agent_info_t", "hsa_amd_memory_pool_info_t"),
            *("hsa_signal_condition_t", "hsa_wait_state_t", "hsa_queue_type32_t", "hsa_profile_t"),
            *("hsa_default_float_rounding_mode_t", "hsa_executable_symbol_info_t", "hsa_amd_queue_priority_t"),
        ),
        c_uint32,
    ),
    **dict.fromkeys(
        (
            *("hsa_agent_t", "hsa_signal_t", "hsa_amd_memory_pool_t", "hsa_code_object_reader_t"),
            *("hsa_executable_t", "hsa_executable_symbol_t"),
        ),
        c_uint64,
    ),
}


def _ctype(name: str) -> Any:
    """Pointers are addresses: callers pass byref, callbacks or numbers."""
    return CTYPES[name] if name in CTYPES else c_void_p if "*" in name or name.endswith("callback_t") else CTYPES[name]


_STATUS = "hsa_status_t"
_AGENT, _SIGNAL, _QUEUE, _CONST_QUEUE = "hsa_agent_t", "hsa_signal_t", "hsa_queue_t*", "const hsa_queue_t*"
_POOL, _READER, _EXECUTABLE = "hsa_amd_memory_pool_t", "hsa_code_object_reader_t", "hsa_executable_t"
_VALUE = "hsa_signal_value_t"

PROTOTYPES: Final[dict[str, Prototype]] = {
    "hsa_init": Prototype(_STATUS, (), CORE),
    "hsa_shut_down": Prototype(_STATUS, (), CORE),
    "hsa_system_get_info": Prototype(_STATUS, ("hsa_system_info_t", "void*"), CORE),
    "hsa_iterate_agents": Prototype(_STATUS, ("hsa_status_t (*)(hsa_agent_t, void*)", "void*"), CORE),
    "hsa_agent_get_info": Prototype(_STATUS, (_AGENT, "hsa_agent_info_t", "void*"), CORE),
    "hsa_amd_register_system_event_handler": Prototype(_STATUS, ("hsa_amd_system_event_callback_t", "void*"), AMD),
    "hsa_amd_agent_iterate_memory_pools": Prototype(
        _STATUS, (_AGENT, "hsa_status_t (*)(hsa_amd_memory_pool_t, void*)", "void*"), AMD
    ),
    "hsa_amd_memory_pool_get_info": Prototype(_STATUS, (_POOL, "hsa_amd_memory_pool_info_t", "void*"), AMD),
    "hsa_amd_memory_pool_allocate": Prototype(_STATUS, (_POOL, "size_t", "uint32_t", "void**"), AMD),
    "hsa_amd_memory_pool_free": Prototype(_STATUS, ("void*",), AMD),
    "hsa_amd_agents_allow_access": Prototype(
        _STATUS, ("uint32_t", "const hsa_agent_t*", "const uint32_t*", "const void*"), AMD
    ),
    "hsa_amd_pointer_info": Prototype(
        _STATUS,
        ("const void*", "hsa_amd_pointer_info_t*", "void* (*)(size_t)", "uint32_t*", "hsa_agent_t**"),
        AMD,
    ),
    "hsa_memory_copy": Prototype(_STATUS, ("void*", "const void*", "size_t"), CORE),
    "hsa_signal_create": Prototype(_STATUS, (_VALUE, "uint32_t", "const hsa_agent_t*", "hsa_signal_t*"), CORE),
    "hsa_signal_destroy": Prototype(_STATUS, (_SIGNAL,), CORE),
    "hsa_signal_load_scacquire": Prototype(_VALUE, (_SIGNAL,), CORE),
    "hsa_signal_store_screlease": Prototype("void", (_SIGNAL, _VALUE), CORE),
    "hsa_signal_wait_scacquire": Prototype(
        _VALUE, (_SIGNAL, "hsa_signal_condition_t", _VALUE, "uint64_t", "hsa_wait_state_t"), CORE
    ),
    "hsa_queue_create": Prototype(
        _STATUS,
        (
            *(_AGENT, "uint32_t", "hsa_queue_type32_t", "void (*)(hsa_status_t, hsa_queue_t*, void*)", "void*"),
            *("uint32_t", "uint32_t", "hsa_queue_t**"),
        ),
        CORE,
    ),
    "hsa_queue_destroy": Prototype(_STATUS, (_QUEUE,), CORE),
    "hsa_queue_load_read_index_scacquire": Prototype("uint64_t", (_CONST_QUEUE,), CORE),
    "hsa_queue_load_write_index_relaxed": Prototype("uint64_t", (_CONST_QUEUE,), CORE),
    "hsa_queue_add_write_index_scacq_screl": Prototype("uint64_t", (_CONST_QUEUE, "uint64_t"), CORE),
    "hsa_amd_queue_cu_set_mask": Prototype(_STATUS, (_CONST_QUEUE, "uint32_t", "const uint32_t*"), AMD),
    "hsa_amd_queue_set_priority": Prototype(_STATUS, (_QUEUE, "hsa_amd_queue_priority_t"), AMD),
    "hsa_amd_profiling_set_profiler_enabled": Prototype(_STATUS, (_QUEUE, "int"), AMD),
    "hsa_amd_profiling_get_dispatch_time": Prototype(
        _STATUS, (_AGENT, _SIGNAL, "hsa_amd_profiling_dispatch_time_t*"), AMD
    ),
    "hsa_code_object_reader_create_from_memory": Prototype(
        _STATUS, ("const void*", "size_t", "hsa_code_object_reader_t*"), CORE
    ),
    "hsa_code_object_reader_destroy": Prototype(_STATUS, (_READER,), CORE),
    "hsa_executable_create_alt": Prototype(
        _STATUS, ("hsa_profile_t", "hsa_default_float_rounding_mode_t", "const char*", "hsa_executable_t*"), CORE
    ),
    "hsa_executable_destroy": Prototype(_STATUS, (_EXECUTABLE,), CORE),
    "hsa_executable_load_agent_code_object": Prototype(
        _STATUS, (_EXECUTABLE, _AGENT, _READER, "const char*", "hsa_loaded_code_object_t*"), CORE
    ),
    "hsa_executable_freeze": Prototype(_STATUS, (_EXECUTABLE, "const char*"), CORE),
    "hsa_executable_get_symbol_by_name": Prototype(
        _STATUS, (_EXECUTABLE, "const char*", "const hsa_agent_t*", "hsa_executable_symbol_t*"), CORE
    ),
    "hsa_executable_symbol_get_info": Prototype(
        _STATUS, ("hsa_executable_symbol_t", "hsa_executable_symbol_info_t", "void*"), CORE
    ),
}
