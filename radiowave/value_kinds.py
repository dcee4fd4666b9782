# SPDX-License-Identifier: Apache-2.0
"""Every kind of kernel argument that code object metadata knows, with the size that the ABI gives it.

A table and nothing else: `metadata.py` checks sizes against it, and who launches decides what it can supply.

Source: LLVM AMDGPUUsage, "Code Object V3 Kernel Argument Metadata Map" (`.value_kind`) with its V5 additions, and the
hidden arguments as `AMDGPUHSAMetadataStreamer.cpp` (V4, V5, V6) lays them out.
"""

from __future__ import annotations

from typing import NamedTuple


class ValueKind(NamedTuple):
    """`nbytes` is None where the kernel's own declaration decides."""

    nbytes: int | None
    meaning: str


_EXPLICIT: dict[str, ValueKind] = {
    "by_value": ValueKind(None, "the bytes themselves: a number, a vector or a struct"),
    "global_buffer": ValueKind(None, "a pointer; 8 bytes but in address spaces that no host language has"),
    "dynamic_shared_pointer": ValueKind(4, "an LDS address behind the static LDS, chosen by the dispatcher"),
    "sampler": ValueKind(8, "the address of a sampler descriptor"),
    "image": ValueKind(8, "the address of an image descriptor"),
    "pipe": ValueKind(8, "the address of an OpenCL pipe"),
    "queue": ValueKind(8, "the address of an OpenCL device queue"),
}

_GEOMETRY: dict[str, ValueKind] = {
    f"hidden_{what}_{axis}": ValueKind(nbytes, meaning)
    for what, nbytes, meaning in (
        ("global_offset", 8, "OpenCL's global offset"),
        ("block_count", 4, "full workgroups of the grid"),
        ("group_size", 2, "work-items of a full workgroup"),
        ("remainder", 2, "work-items of the partial workgroup"),
    )
    for axis in "xyz"
}

_SERVICES: dict[str, ValueKind] = {
    "hidden_none": ValueKind(None, "unused space"),
    "hidden_printf_buffer": ValueKind(8, "where OpenCL's printf writes"),
    "hidden_hostcall_buffer": ValueKind(8, "where calls to the host are posted: HIP's printf, device assertions"),
    "hidden_default_queue": ValueKind(8, "OpenCL's default device queue"),
    "hidden_completion_action": ValueKind(8, "OpenCL's device enqueue"),
    "hidden_multigrid_sync_arg": ValueKind(8, "synchronisation of several grids"),
    "hidden_heap_v1": ValueKind(8, "the heap behind malloc on the device"),
    "hidden_grid_dims": ValueKind(2, "dimensions of the grid in use"),
    "hidden_dynamic_lds_size": ValueKind(4, "bytes of LDS given at launch"),
    "hidden_private_base": ValueKind(4, "high half of the private aperture; gfx8 and older"),
    "hidden_shared_base": ValueKind(4, "high half of the shared aperture; gfx8 and older"),
    "hidden_queue_ptr": ValueKind(8, "the HSA queue; for traps and apertures of gfx8 and older"),
}

VALUE_KINDS: dict[str, ValueKind] = {**_EXPLICIT, **_GEOMETRY, **_SERVICES}
