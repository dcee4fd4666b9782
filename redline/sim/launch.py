# SPDX-License-Identifier: Apache-2.0
"""From dispatch registers to waves: workgroups, lanes, and what the registers hold at the first instruction.

Nothing is assumed that the registers do not say; a MODE, a register count or a flag that the executor does not
implement is refused here, before anything runs. Does not run waves (`scheduler.py`) or read code (`code.py`).

Sources: LLVM's AMDGPUUsage, "Initial Kernel Execution State"; gc_*_sh_mask.h for the bit fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .dispatch import Dispatch
from .errors import LaunchFault
from .generation import FP16_OVERFLOW, Generation
from .op import U32, Mask
from .operands import EXEC, TTMP
from .state import Waves

FLOAT_MODE = 0xF0  # round to nearest even, all denormals kept; the only mode whose arithmetic is implemented
MAX_GROUP = 1024  # work-items
VGPR_GRANULE = {32: 8, 64: 4}  # RSRC1.VGPRS counts these, less one
RESIDENT_BYTES = 1 << 24  # vector registers of the waves that run at one time

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Geometry:
    """Workgroup counts, the shape of a whole workgroup, and the shape of the last one in each dimension."""

    groups: Extent
    whole: Extent
    last: Extent


def geometry(dispatch: Dispatch) -> Geometry:
    """The grid that the registers describe. Empty when a dimension is 0."""
    whole = dispatch.num_thread
    if min(whole) < 1 or whole[0] * whole[1] * whole[2] > MAX_GROUP:
        raise LaunchFault("COMPUTE_NUM_THREAD", f"{whole}", f"1 to {MAX_GROUP} work-items")
    if dispatch.uses_thread_dimensions:
        counts = [-(-dims // size) for dims, size in zip(dispatch.dims, whole, strict=True)]
        rest = [dims % size or size for dims, size in zip(dispatch.dims, whole, strict=True)]
    else:
        counts, rest = list(dispatch.dims), list(whole)
        if dispatch.has_partial_groups:
            rest = [part or size for part, size in zip(dispatch.partial, whole, strict=True)]
            if any(part > size for part, size in zip(rest, whole, strict=True)):
                raise LaunchFault("COMPUTE_NUM_THREAD.PARTIAL", f"{dispatch.partial}", f"at most {whole}")
    return Geometry((counts[0], counts[1], counts[2]), whole, (rest[0], rest[1], rest[2]))


def check_registers(dispatch: Dispatch, gen: Generation) -> int:
    """Refuse what is not implemented; return how many vector registers a wave has."""
    if dispatch.float_mode != FLOAT_MODE:
        raise LaunchFault("COMPUTE_PGM_RSRC1.FLOAT_MODE", f"{dispatch.float_mode:#x}", f"{FLOAT_MODE:#x}")
    if dispatch.rsrc1 & gen.ieee_bits != gen.ieee_bits:
        raise LaunchFault("COMPUTE_PGM_RSRC1", f"{dispatch.rsrc1:#x}", "IEEE and DX10_CLAMP both set")
    if dispatch.rsrc1 & FP16_OVERFLOW:
        raise LaunchFault("COMPUTE_PGM_RSRC1.FP16_OVFL", "1", "0")
    if dispatch.rsrc2 & 1:
        raise LaunchFault("COMPUTE_PGM_RSRC2.SCRATCH_EN", "1", "0: there is no scratch memory")
    if dispatch.rsrc2 >> 10 & 1:
        raise LaunchFault("COMPUTE_PGM_RSRC2.TG_SIZE_EN", "1", "0")
    if dispatch.user_sgprs > len(dispatch.user_data):
        raise LaunchFault("COMPUTE_PGM_RSRC2.USER_SGPR", f"{dispatch.user_sgprs}", f"0 to {len(dispatch.user_data)}")
    vgprs = ((dispatch.rsrc1 & 0x3F) + 1) * VGPR_GRANULE[dispatch.wave]
    if vgprs > 256:
        raise LaunchFault("COMPUTE_PGM_RSRC1.VGPRS", f"{vgprs} registers", "at most 256")
    return vgprs


def resident_batches(dispatch: Dispatch, gen: Generation) -> Iterator[Waves]:
    """All waves of the dispatch, some workgroups at a time, ready to run, in order of their workgroup ids."""
    vgprs, grid = check_registers(dispatch, gen), geometry(dispatch)
    items = grid.whole[0] * grid.whole[1] * grid.whole[2]
    group_bytes = -(-items // dispatch.wave) * dispatch.wave * 4 * vgprs
    step = max(1, RESIDENT_BYTES // group_bytes)
    total = grid.groups[0] * grid.groups[1] * grid.groups[2]
    for start in range(0, total, step):
        yield _start(dispatch, gen, grid, np.arange(start, min(start + step, total)), vgprs)


def _start(dispatch: Dispatch, gen: Generation, grid: Geometry, linear: NDArray[np.int64], vgprs: int) -> Waves:
    """Waves of the workgroups with these linear numbers (x fastest)."""
    x_count, y_count, _ = grid.groups
    ids = np.stack([linear % x_count, linear // x_count % y_count, linear // x_count // y_count], axis=1)
    ends = np.array(grid.groups) - 1
    shapes = np.where(ids == ends, np.array(grid.last), np.array(grid.whole))
    lanes = [_lanes((int(a), int(b), int(c)), dispatch.wave) for a, b, c in shapes]
    per_group = np.array([len(active) for active, _ in lanes])
    waves = Waves(np.repeat(np.arange(len(linear)), per_group), dispatch.wave, vgprs, dispatch.lds_bytes)
    active = np.concatenate([active for active, _ in lanes])
    packed = np.packbits(active, axis=1, bitorder="little")
    waves.scalar.view(np.uint8)[:, EXEC * 4 : EXEC * 4 + dispatch.wave // 8] = packed
    _write_workitem_ids(waves, dispatch, gen, np.concatenate([place for _, place in lanes], axis=1))
    _write_scalars(waves, dispatch, gen, np.repeat(ids, per_group, axis=0).astype(np.uint32))
    return waves


@lru_cache(maxsize=64)
def _lanes(shape: Extent, wave: int) -> tuple[Mask, U32]:
    """For a workgroup of this shape: which lanes of its waves are on, and the work-item ids [3, wave, lane].

    Work-items fill the waves densely over the shortened extents; whether hardware keeps the whole block's lane
    numbering in a partial workgroup is not verified, and shows only in code that talks across lanes.
    """
    x_size, y_size, z_size = shape
    count = -(-x_size * y_size * z_size // wave)
    flat = np.arange(count * wave, dtype=np.uint32)
    place = np.stack([flat % x_size, flat // x_size % y_size, flat // (x_size * y_size)])
    active = (flat < x_size * y_size * z_size).reshape(count, wave)
    return active, place.reshape(3, count, wave)


def _write_workitem_ids(waves: Waves, dispatch: Dispatch, gen: Generation, place: U32) -> None:
    """Only the components that RSRC2.TIDIG_COMP_CNT names: an x-only kernel uses v0 without a mask."""
    components = (dispatch.rsrc2 >> 11 & 3) + 1
    if components > 3:
        raise LaunchFault("COMPUTE_PGM_RSRC2.TIDIG_COMP_CNT", "3", "0 to 2")
    if not gen.packed_ids:
        waves.vector[:components] = place[:components]
        return
    packed = place[0].copy()
    for component in range(1, components):
        packed |= place[component] << np.uint32(10 * component)
    waves.vector[0] = packed


def _write_scalars(waves: Waves, dispatch: Dispatch, gen: Generation, ids: U32) -> None:
    """User SGPRs and workgroup ids, for `ids` [wave, 3]."""
    count = dispatch.user_sgprs
    waves.scalar[:, :count] = np.array(dispatch.user_data[:count], np.uint32)
    if gen.ids_in_ttmp:
        waves.scalar[:, TTMP + 9] = ids[:, 0]
        waves.scalar[:, TTMP + 7] = ids[:, 1] | ids[:, 2] << np.uint32(16)
    else:
        for dimension in range(3):
            if dispatch.rsrc2 >> 7 + dimension & 1:
                waves.scalar[:, count] = ids[:, dimension]
                count += 1
