# SPDX-License-Identifier: Apache-2.0
"""What the software device's packet processor knows of each GPU family: its own table, with sources.

Deliberately a second table. `redline/encoders` has the first; a wrong number there must not be wrong here
too.

Sources: Linux 6.12,
drivers/gpu/drm/amd/include/asic_reg/gc/gc_{10_1_0,10_3_0,11_0_0,11_5_0,12_0_0}_{offset, sh_mask}.h
(register offsets and fields), drivers/gpu/drm/amd/amdgpu/nvd.h (GCR_CNTL, RELEASE_MEM), and GPUOpen PAL,
gfx12CmdUtil.cpp (GCR bits 4, 5 and 9 are reserved on gfx12). ELF machine numbers: LLVM, AMDGPUUsage.rst,
EF_AMDGPU_MACH.
"""

from __future__ import annotations

from dataclasses import dataclass

SH_REGISTER_BASE = 0x2C00  # dword offset that SET_SH_REG counts from


@dataclass(frozen=True)
class Register:
    """One SH register that a dispatch may set. Bits outside `mask` are reserved."""

    name: str
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Family:
    """`settable`: registers a stream may write. `owned`: registers that belong to the queue, by name."""

    name: str
    settable: dict[int, Register]
    owned: dict[int, str]
    gcr_mask: int  # ACQUIRE_MEM dword 7
    release_mask: int  # RELEASE_MEM dword 1
    wave_initiator_mask: int  # DISPATCH_INITIATOR bits that exist; the reader allows fewer
    has_uncached_flag: bool = False  # HSA_AMD_MEMORY_POOL_UNCACHED_FLAG is honoured (rocm-systems pull request 11343)


_COMMON: dict[int, Register] = {
    0x204: Register("COMPUTE_START_X"),
    0x205: Register("COMPUTE_START_Y"),
    0x206: Register("COMPUTE_START_Z"),
    0x207: Register("COMPUTE_NUM_THREAD_X"),
    0x208: Register("COMPUTE_NUM_THREAD_Y"),
    0x209: Register("COMPUTE_NUM_THREAD_Z"),
    0x20C: Register("COMPUTE_PGM_LO"),
    0x20D: Register("COMPUTE_PGM_HI", 0xFF),
    0x210: Register("COMPUTE_DISPATCH_SCRATCH_BASE_LO"),
    0x211: Register("COMPUTE_DISPATCH_SCRATCH_BASE_HI", 0xFF),
    0x212: Register("COMPUTE_PGM_RSRC1", 0xE5BFFFFF),
    0x213: Register("COMPUTE_PGM_RSRC2", 0x7FFFFFFF),
    0x215: Register("COMPUTE_RESOURCE_LIMITS", 0x07FFF3FF),
    0x218: Register("COMPUTE_TMPRING_SIZE", 0x01FFFFFF),
    0x21B: Register("COMPUTE_RESTART_X"),
    0x21C: Register("COMPUTE_RESTART_Y"),
    0x21D: Register("COMPUTE_RESTART_Z"),
    0x228: Register("COMPUTE_PGM_RSRC3", 0xF),
    **{0x240 + i: Register(f"COMPUTE_USER_DATA_{i}") for i in range(16)},
}

_GFX11 = _COMMON | {
    0x218: Register("COMPUTE_TMPRING_SIZE", 0x07FFFFFF),
    0x228: Register("COMPUTE_PGM_RSRC3", 0x80000FFF),
}

_GFX12 = _COMMON | {
    # FULL[12:0], INTERLEAVE_BITS[15:13] (refused unless 0), PARTIAL[31:16]; Z keeps 16 and 16.
    0x207: Register("COMPUTE_NUM_THREAD_X", 0xFFFF1FFF),
    0x208: Register("COMPUTE_NUM_THREAD_Y", 0xFFFF1FFF),
    0x213: Register("COMPUTE_PGM_RSRC2"),
    0x218: Register("COMPUTE_TMPRING_SIZE", 0x3FFFFFFF),
    0x228: Register("COMPUTE_PGM_RSRC3", 0x80002FF0),  # 3:0 have a name in the kernel and are reserved in LLVM
}

_OWNED_COMMON: dict[int, str] = {
    0x200: "COMPUTE_DISPATCH_INITIATOR",  # set by the dispatch packet, as DIM_X, Y and Z are
    0x201: "COMPUTE_DIM_X",
    0x202: "COMPUTE_DIM_Y",
    0x203: "COMPUTE_DIM_Z",
    0x20A: "COMPUTE_PIPELINESTAT_ENABLE",
    0x20B: "COMPUTE_PERFCOUNT_ENABLE",
    0x20E: "COMPUTE_DISPATCH_PKT_ADDR_LO",
    0x20F: "COMPUTE_DISPATCH_PKT_ADDR_HI",
    0x214: "COMPUTE_VMID",
    0x216: "COMPUTE_STATIC_THREAD_MGMT_SE0",
    0x217: "COMPUTE_STATIC_THREAD_MGMT_SE1",
    0x219: "COMPUTE_STATIC_THREAD_MGMT_SE2",
    0x21A: "COMPUTE_STATIC_THREAD_MGMT_SE3",
    0x21E: "COMPUTE_THREAD_TRACE_ENABLE",
    0x21F: "COMPUTE_MISC_RESERVED",
    0x220: "COMPUTE_DISPATCH_ID",
    0x221: "COMPUTE_THREADGROUP_ID",
    0x222: "COMPUTE_REQ_CTRL",
    0x224: "COMPUTE_USER_ACCUM_0",
    0x225: "COMPUTE_USER_ACCUM_1",
    0x226: "COMPUTE_USER_ACCUM_2",
    0x227: "COMPUTE_USER_ACCUM_3",
    0x229: "COMPUTE_DDID_INDEX",
    0x22A: "COMPUTE_SHADER_CHKSUM",
    0x27D: "COMPUTE_DISPATCH_TUNNEL",
    0x27E: "COMPUTE_DISPATCH_END",
    0x27F: "COMPUTE_NOWHERE",
}

_OWNED_GFX10 = _OWNED_COMMON | {
    0x22B: "COMPUTE_RELAUNCH",
    0x22C: "COMPUTE_WAVE_RESTORE_ADDR_LO",
    0x22D: "COMPUTE_WAVE_RESTORE_ADDR_HI",
    0x22E: "COMPUTE_RELAUNCH2",
}

_OWNED_GFX11 = _OWNED_COMMON | {
    0x22B: "COMPUTE_STATIC_THREAD_MGMT_SE4",
    0x22C: "COMPUTE_STATIC_THREAD_MGMT_SE5",
    0x22D: "COMPUTE_STATIC_THREAD_MGMT_SE6",
    0x22E: "COMPUTE_STATIC_THREAD_MGMT_SE7",
    0x22F: "COMPUTE_DISPATCH_INTERLEAVE",
    0x230: "COMPUTE_RELAUNCH",
    0x231: "COMPUTE_WAVE_RESTORE_ADDR_LO",
    0x232: "COMPUTE_WAVE_RESTORE_ADDR_HI",
    0x233: "COMPUTE_RELAUNCH2",
}

_OWNED_GFX12 = _OWNED_GFX11 | {
    0x223: "COMPUTE_STATIC_THREAD_MGMT_SE8",
    0x235: "COMPUTE_PRESCALED_DIM_X",
    0x236: "COMPUTE_PRESCALED_DIM_Y",
    0x237: "COMPUTE_PRESCALED_DIM_Z",
}

# DISPATCH_INITIATOR: bits 0 to 6 and 10 to 15 everywhere; 16 and 17 from gfx11; 18 and 31:29 on gfx12.
_INITIATOR = {"gfx10": 0x0000FC7F, "gfx11": 0x0003FC7F, "gfx12": 0xE007FC7F}

# RELEASE_MEM dword 1: event 5:0, wait_sync 7, index 11:8, GCR 23:12 (24:12 from gfx11), policy 26:25,
# execute 28, GLK_INV 30 (from gfx11). GCR's GLM and GL1 bits (12, 13, 15) do not exist on gfx12.
_RELEASE = {"gfx10": 0x16FFFFBF, "gfx11": 0x57FFFFBF, "gfx12": 0x57FF4FBF}

_ALL_GCR = 0x7FFFF
_GFX12_GCR = _ALL_GCR & ~0x30  # GLM_WB and GLM_INV; bit 9 is reserved too, but RADV and the kernel set it

_GFX10_1 = Family("gfx10.1", _COMMON, _OWNED_GFX10, _ALL_GCR, _RELEASE["gfx10"], _INITIATOR["gfx10"])
_GFX10_3 = Family("gfx10.3", _COMMON, _OWNED_GFX10, _ALL_GCR, _RELEASE["gfx10"], _INITIATOR["gfx10"])
_GFX11_0 = Family("gfx11.0", _GFX11, _OWNED_GFX11, _ALL_GCR, _RELEASE["gfx11"], _INITIATOR["gfx11"])
_GFX11_5 = Family("gfx11.5", _GFX11, _OWNED_GFX11, _ALL_GCR, _RELEASE["gfx11"], _INITIATOR["gfx11"])
_GFX12_0 = Family("gfx12.0", _GFX12, _OWNED_GFX12, _GFX12_GCR, _RELEASE["gfx12"], _INITIATOR["gfx12"], True)


@dataclass(frozen=True)
class Target:
    """One GPU: its family, and EF_AMDGPU_MACH in the ELF flags of its code."""

    name: str
    family: Family
    elf_machine: int


TARGETS: dict[str, Target] = {
    name: Target(name, family, machine)
    for name, family, machine in (
        ("gfx1010", _GFX10_1, 0x33),
        ("gfx1011", _GFX10_1, 0x34),
        ("gfx1012", _GFX10_1, 0x35),
        ("gfx1013", _GFX10_1, 0x42),
        ("gfx1030", _GFX10_3, 0x36),
        ("gfx1031", _GFX10_3, 0x37),
        ("gfx1032", _GFX10_3, 0x38),
        ("gfx1033", _GFX10_3, 0x39),
        ("gfx1034", _GFX10_3, 0x3E),
        ("gfx1035", _GFX10_3, 0x3D),
        ("gfx1036", _GFX10_3, 0x45),
        ("gfx1100", _GFX11_0, 0x41),
        ("gfx1101", _GFX11_0, 0x46),
        ("gfx1102", _GFX11_0, 0x47),
        ("gfx1103", _GFX11_0, 0x44),
        ("gfx1150", _GFX11_5, 0x43),
        ("gfx1151", _GFX11_5, 0x4A),
        ("gfx1152", _GFX11_5, 0x55),
        ("gfx1153", _GFX11_5, 0x58),
        ("gfx1200", _GFX12_0, 0x48),
        ("gfx1201", _GFX12_0, 0x4E),
    )
}
