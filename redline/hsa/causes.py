# SPDX-License-Identifier: Apache-2.0
"""What usually is behind a status that an HSA call returns, and what to do about it: one line for each status, and for
calls where the same status has another usual cause, one of their own.

Sources: the @retval texts of hsa.h and hsa_ext_amd.h, and where ROCr's runtime returns them.
"""

from __future__ import annotations

from typing import Final

from redline.hsa.abi import Status

_REPORT = "report this with the output of `redline doctor`"
_CLOSED = "a handle that was closed, or of another runtime: keep it open for as long as it is used"

#: By the status' name without HSA_STATUS_.
_TEXTS: Final = {
    "ERROR": f"an error without a name of its own, often in the driver: look into dmesg, then {_REPORT}",
    "ERROR_INVALID_ARGUMENT": f"a value that the call does not take on this agent: {_REPORT}",
    "ERROR_INVALID_QUEUE_CREATION": "this agent takes no such queue: ask for another size",
    "ERROR_INVALID_ALLOCATION": "no such allocation, or no room: ask for less memory, or free some; a copy must "
    "stay inside one buffer",
    "ERROR_INVALID_AGENT": "an agent of another runtime, or one without queues: take one from Runtime.agents()",
    "ERROR_INVALID_REGION": f"a memory region of another runtime: {_REPORT}",
    "ERROR_INVALID_SIGNAL": _CLOSED,
    "ERROR_INVALID_QUEUE": _CLOSED,
    "ERROR_OUT_OF_RESOURCES": "memory, queues or signals used up, by this or another process: close queues, "
    "buffers and signals, or other processes that use the GPU",
    "ERROR_INVALID_PACKET_FORMAT": "a packet or PM4 words that the packet processor does not take: run `redline "
    "lint` on the words",
    "ERROR_RESOURCE_FREE": "the resource is in use or gone: close what uses it first",
    "ERROR_NOT_INITIALIZED": "the runtime was shut down: keep it open for as long as its resources are used",
    "ERROR_REFCOUNT_OVERFLOW": "too many hsa_init calls in this process: open fewer devices",
    "ERROR_INCOMPATIBLE_ARGUMENTS": f"arguments that do not go together: {_REPORT}",
    "ERROR_INVALID_INDEX": f"an index outside the object: {_REPORT}",
    "ERROR_INVALID_ISA": "code for another GPU: compile for this target",
    "ERROR_INVALID_CODE_OBJECT": "a code object for another target, bundled, or stripped: compile for this target "
    "and keep .symtab; see `radiowave inspect`",
    "ERROR_INVALID_EXECUTABLE": _CLOSED,
    "ERROR_FROZEN_EXECUTABLE": f"code loaded into an executable that is complete: {_REPORT}",
    "ERROR_INVALID_SYMBOL_NAME": "no such symbol in the code object: see `radiowave inspect`",
    "ERROR_VARIABLE_ALREADY_DEFINED": "a symbol that two code objects define: load them apart",
    "ERROR_VARIABLE_UNDEFINED": "a symbol that no code object defines: link what defines it",
    "ERROR_EXCEPTION": "a kernel raised a hardware exception: run it on the software device",
    "ERROR_INVALID_ISA_NAME": "a target that this runtime does not know: update ROCm",
    "ERROR_INVALID_CODE_SYMBOL": f"a symbol of another code object: {_REPORT}",
    "ERROR_INVALID_EXECUTABLE_SYMBOL": _CLOSED,
    "ERROR_INVALID_FILE": f"a file that the runtime cannot read: {_REPORT}",
    "ERROR_INVALID_CODE_OBJECT_READER": _CLOSED,
    "ERROR_INVALID_CACHE": f"a cache of another runtime: {_REPORT}",
    "ERROR_INVALID_WAVEFRONT": f"a wavefront of another agent: {_REPORT}",
    "ERROR_INVALID_SIGNAL_GROUP": f"a signal group of another runtime: {_REPORT}",
    "ERROR_INVALID_RUNTIME_STATE": "the runtime cannot do this now: open the device before a fork, not behind it",
    "ERROR_FATAL": "the runtime gave up: look into dmesg, restart the process",
    "ERROR_INVALID_MEMORY_POOL": "a pool of another runtime, or of an agent that is gone: open the device again",
    "ERROR_MEMORY_APERTURE_VIOLATION": "an address outside the aperture of its kind: look for a wild pointer in the "
    "kernel's arguments",
    "ERROR_ILLEGAL_INSTRUCTION": "code for another GPU, or overwritten: compile for this target",
    "ERROR_MEMORY_FAULT": "a kernel touched memory that is not there or not its own: check pointers, "
    "ranges and grids; run it on the software device, which names the instruction",
    "CU_MASK_REDUCED": "the system masks compute units too: ask only for units that are left",
    "ERROR_OUT_OF_REGISTERS": "more registers than a workgroup may have: use a smaller workgroup",
    "ERROR_RESOURCE_BUSY": "another process or a debugger holds it: close that",
    "ERROR_NOT_SUPPORTED": "this GPU or driver does not have it: leave the option out, or update ROCm",
}

#: By status; every status that is an error has a line.
CAUSES: Final[dict[int, str]] = {Status[f"HSA_STATUS_{name}"]: text for name, text in _TEXTS.items()}


_OF_CALLS: Final = {
    ("hsa_init", "ERROR"): "/dev/kfd cannot be opened: load the amdgpu driver, be in the groups video and render",
    ("hsa_queue_create", "ERROR_OUT_OF_RESOURCES"): "hardware queues used up, by this or another process: close "
    "replays and queues, or other processes that use the GPU",
    ("hsa_queue_create", "ERROR_INVALID_ARGUMENT"): "a ring size that is no power of two or larger than the agent's "
    "limit: ask for fewer packets",
    ("hsa_signal_create", "ERROR_OUT_OF_RESOURCES"): "signals used up: the driver has some thousand interrupt events "
    "for a process; close replays that are done",
    ("hsa_amd_memory_pool_allocate", "ERROR_OUT_OF_RESOURCES"): "no such room in the pool: free buffers, or see with "
    "amd-smi which process holds the memory",
    ("hsa_amd_memory_pool_allocate", "ERROR_INVALID_ARGUMENT"): "a size or flag that this pool does not take: ask for "
    "fewer bytes, or for another kind of memory",
    ("hsa_amd_agents_allow_access", "ERROR_OUT_OF_RESOURCES"): "no room in the GPU's page tables: free buffers",
    ("hsa_executable_load_agent_code_object", "ERROR_OUT_OF_RESOURCES"): "no room for the code on the GPU: close "
    "replays, or other processes that use the GPU",
    ("hsa_executable_load_agent_code_object", "ERROR_INVALID_CODE_OBJECT"): "code for another target or target "
    "feature (xnack, sramecc), or newer than this ROCm: compile for this agent; see `radiowave inspect`",
    ("hsa_amd_queue_cu_set_mask", "ERROR_INVALID_ARGUMENT"): "a mask that names no unit of this agent: "
    "see agent.compute_units",
}

#: By call and status.
CAUSES_OF_CALLS: Final[dict[tuple[str, int], str]] = {
    (call, Status[f"HSA_STATUS_{name}"]): text for (call, name), text in _OF_CALLS.items()
}


def cause(call: str, status: int) -> str:
    """What usually is behind a status of a call, and what to do; for one that no header names, where to look."""
    general = CAUSES.get(status, f"a status that hsa.h does not name: {_REPORT}")
    return CAUSES_OF_CALLS.get((call, status), general)
