# SPDX-License-Identifier: Apache-2.0
"""How many waves of a kernel one SIMD can hold at a time, and what keeps it from holding more.

Arithmetic over a table. Says nothing about speed: more waves hide more latency and are no goal by themselves. LDS that
the launch adds (dynamic LDS) is the caller's to add; scratch and SGPRs limit nothing here on gfx10 to gfx12.

Sources: LLVM 22 `AMDGPUBaseInfo.cpp` (getTotalNumVGPRs, getVGPRAllocGranule, getMaxWavesPerEU, getEUsPerCU,
getMaxWorkGroupsPerCU), checked against the "; Occupancy:" comment of clang 22 for every target (docs/verification.md);
LDS allocation granule: Mesa 25 `ac_gpu_info.c`; fields of COMPUTE_PGM_RSRC1: LLVM AMDGPUUsage.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from radiowave.code_object import KernelFacts
from radiowave.targets import TARGETS, check_target, check_wave

Limiter = Literal["wave slots", "VGPRs", "LDS", "workgroup size"]

# A workgroup's LDS lies in one CU's half, also where the workgroup runs on both CUs of a WGP.
LDS_OF_A_CU = 64 << 10
MOST_LDS_OF_A_WORKGROUP = 64 << 10
SIMDS_OF_A_CU = 2
# That one wave can address, of either size.
MOST_VGPRS = 256
# Workgroups of more than one wave that can have a barrier at a time, by CU.
BARRIERS_OF_A_CU = 16
_WGP_MODE = 1 << 29  # COMPUTE_PGM_RSRC1
_VGPR_BLOCKS = 0x3F  # COMPUTE_PGM_RSRC1.GRANULATED_WORKITEM_VGPR_COUNT
# VGPRs in one block of that field, by wave size.
_ENCODE_GRANULE = {32: 8, 64: 4}


@dataclass(frozen=True)
class RegisterFile:
    """What one SIMD has. `vgprs` and `granule` are registers of a wave32; a wave64 register takes the room of two."""

    vgprs: int
    granule: int
    wave_slots: int
    lds_granule_bytes: int


_GFX101X = RegisterFile(1024, 8, 20, 512)
_GFX1024 = RegisterFile(1024, 16, 16, 1024)
_GFX1536 = RegisterFile(1536, 24, 16, 1024)

#: Target -> its register file.
REGISTER_FILES: dict[str, RegisterFile] = {
    **dict.fromkeys(("gfx1010", "gfx1011", "gfx1012", "gfx1013"), _GFX101X),
    **dict.fromkeys(("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), _GFX1024),
    **dict.fromkeys(("gfx1102", "gfx1103", "gfx1150", "gfx1152", "gfx1153"), _GFX1024),
    **dict.fromkeys(("gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"), _GFX1536),
}
assert REGISTER_FILES.keys() == TARGETS.keys()


@dataclass(frozen=True)
class Occupancy:
    """Waves that one SIMD holds at a time (the fullest of them), and the limit that each resource sets alone.

    `limiter` is the resource with the lowest limit. `limits` has waves for each: "wave slots" what the hardware has,
    "VGPRs" what the register file has room for, "LDS" what fits into local memory (left out for a kernel without LDS),
    "workgroup size" what is left when whole workgroups must fit. `workgroups` counts those that a CU, in WGP mode a
    WGP, holds at a time; 0 means that not even one fits. `workgroup` is in work-items, `vgprs` what a wave is given,
    `lds_bytes` the bytes of LDS of a workgroup.
    """

    waves: int
    limiter: Limiter
    limits: dict[Limiter, int]
    workgroups: int
    workgroup: int
    vgprs: int
    lds_bytes: int
    is_wgp_mode: bool

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {
            "waves_per_simd": self.waves,
            "limiter": self.limiter,
            "limits": dict(self.limits),
            "workgroups": self.workgroups,
            "workgroup": self.workgroup,
            "vgprs": self.vgprs,
            "lds_bytes": self.lds_bytes,
            "wgp_mode": self.is_wgp_mode,
        }


def allocated_vgprs(target: str, wave: int, vgprs: int) -> int:
    """Registers that a wave of 32 or 64 lanes is given when it uses `vgprs`: a multiple of the granule, at least one.

    Raises UnsupportedTarget for a target or wave size that is not on the lists.

    >>> allocated_vgprs("gfx1151", 32, 49), allocated_vgprs("gfx1151", 64, 49)
    (72, 60)
    """
    granule = _file(target, wave).granule * 32 // wave
    return max(1, -(-vgprs // granule)) * granule


def waves_by_vgprs(target: str, wave: int, vgprs: int) -> int:
    """Waves of 32 or 64 lanes that the registers of one SIMD have room for, up to its wave slots.

    Raises UnsupportedTarget for a target or wave size that is not on the lists.

    >>> [waves_by_vgprs("gfx1151", 64, count) for count in (48, 49)]
    [16, 12]
    """
    file = _file(target, wave)
    return min(file.vgprs * 32 // wave // allocated_vgprs(target, wave, vgprs), file.wave_slots)


def occupancy(
    target: str, wave: int, vgprs: int, *, workgroup: int, lds_bytes: int = 0, is_wgp_mode: bool = True
) -> Occupancy:
    """What one SIMD holds of a kernel that uses `vgprs` registers and `lds_bytes` bytes of LDS a workgroup.

    `wave` is 32 or 64 lanes, `workgroup` counts work-items. Raises UnsupportedTarget for a target or wave size that is
    not on the lists.
    """
    file = _file(target, wave)
    cus = 2 if is_wgp_mode else 1
    simds, waves = cus * SIMDS_OF_A_CU, -(-max(1, workgroup) // wave)
    by_vgprs = waves_by_vgprs(target, wave, vgprs)
    groups = by_vgprs * simds // waves
    if waves > 1:
        groups = min(groups, cus * BARRIERS_OF_A_CU)
    limits: dict[Limiter, int] = {"wave slots": file.wave_slots, "VGPRs": by_vgprs}
    if lds_bytes:
        fitting = _groups_by_lds(file, lds_bytes, cus)
        limits["LDS"] = min(-(-fitting * waves // simds), file.wave_slots)
        limits["workgroup size"] = -(-groups * waves // simds)
        groups = min(groups, fitting)
    else:
        limits["workgroup size"] = -(-groups * waves // simds)
    limiter = min(limits, key=limits.__getitem__)  # of equal ones the first: what is behind it limits no further
    given = allocated_vgprs(target, wave, vgprs)
    return Occupancy(limits[limiter], limiter, limits, groups, max(1, workgroup), given, lds_bytes, is_wgp_mode)


def occupancy_of(target: str, kernel: KernelFacts) -> Occupancy:
    """The same for a kernel as its descriptor says: registers, static LDS, CU or WGP mode.

    For workgroups of the size that it requires, else of the largest that it allows; smaller ones may fit better.
    Raises UnsupportedTarget for a target that is not on the list.
    """
    descriptor = kernel.descriptor
    return occupancy(
        target,
        kernel.wave,
        descriptor_vgprs(kernel),
        workgroup=prod(kernel.required_workgroup) if kernel.required_workgroup else kernel.max_workgroup,
        lds_bytes=descriptor.group_bytes,
        is_wgp_mode=bool(descriptor.rsrc1 & _WGP_MODE),
    )


def descriptor_vgprs(kernel: KernelFacts) -> int:
    """Registers that the descriptor asks for, rounded up by the compiler: the hardware gives these, not the metadata's.

    A kernel may ask for more than it uses, to keep its occupancy low (`amdgpu-waves-per-eu`).
    """
    return ((kernel.descriptor.rsrc1 & _VGPR_BLOCKS) + 1) * _ENCODE_GRANULE[kernel.wave]


def _file(target: str, wave: int) -> RegisterFile:
    check_target(target, where="occupancy")
    check_wave(wave, where="occupancy")
    return REGISTER_FILES[target]


def _groups_by_lds(file: RegisterFile, lds_bytes: int, cus: int) -> int:
    if lds_bytes > MOST_LDS_OF_A_WORKGROUP:
        return 0
    allocated = -(-lds_bytes // file.lds_granule_bytes) * file.lds_granule_bytes
    return cus * LDS_OF_A_CU // allocated
