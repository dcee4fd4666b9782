# SPDX-License-Identifier: Apache-2.0
"""gfx10.1 and gfx10.3: registers, cache control and dispatch initiator, as data.

Every register that a launch writes has one offset on all families of this package; `launch_registers` is
shared by the later files. A register that is neither written nor owned by the queue is not listed.

Sources: K = Linux 6.12 include/asic_reg/gc/gc_{10_1_0,10_3_0}_{offset,sh_mask}.h; M = Mesa 25.0
registers/gfx10.json and gfx103.json; P = PAL gfx9_plus_merged_*.h; L = LLVM 22 AMDGPUUsage.rst. Line numbers
are K's, gc_10_1_0.
"""

from __future__ import annotations

from dataclasses import replace

from redline.encoders import pm4
from redline.encoders.table import FamilyTable, Field, Register, Value, Word, flag


def launch_registers(
    num_thread: tuple[Field, ...],
    rsrc1: tuple[Field, ...],
    rsrc2: tuple[Field, ...],
    rsrc3: tuple[Field, ...],
) -> tuple[Register, ...]:
    """The SH registers that a launch writes. K offset 4549-4673; M by name; P 206-251."""
    return (
        Register("COMPUTE_NUM_THREAD_X", offset=0x207, fields=num_thread),
        Register("COMPUTE_NUM_THREAD_Y", offset=0x208, fields=num_thread),
        Register("COMPUTE_NUM_THREAD_Z", offset=0x209, fields=NUM_THREAD),
        Register("COMPUTE_PGM_LO", offset=0x20C, fields=(Field("DATA", 31, 0),)),
        Register("COMPUTE_PGM_HI", offset=0x20D, fields=(Field("DATA", 7, 0),)),
        Register("COMPUTE_PGM_RSRC1", offset=0x212, fields=rsrc1),
        Register("COMPUTE_PGM_RSRC2", offset=0x213, fields=rsrc2),
        Register("COMPUTE_RESOURCE_LIMITS", offset=0x215, fields=RESOURCE_LIMITS),
        Register("COMPUTE_PGM_RSRC3", offset=0x228, fields=rsrc3),
        *(Register(f"COMPUTE_USER_DATA_{i}", offset=0x240 + i, fields=(Field("DATA", 31, 0),)) for i in range(16)),
    )


# K sh_mask 17105; Z keeps this form on every family.
NUM_THREAD = (Field("NUM_THREAD_FULL", 15, 0), Field("NUM_THREAD_PARTIAL", 31, 16))

# K sh_mask 17199.
RESOURCE_LIMITS = (
    Field("WAVES_PER_SH", 9, 0),
    Field("TG_PER_CU", 15, 12),
    Field("LOCK_THRESHOLD", 21, 16),
    flag("SIMD_DEST_CNTL", 22),
    flag("FORCE_SIMD_DIST", 23),
    Field("CU_GROUP_COUNT", 26, 24),
)

# K sh_mask 17154; L 5461 ff.
RSRC1 = (
    Field("VGPRS", 5, 0),
    Field("SGPRS", 9, 6),
    Field("PRIORITY", 11, 10),
    Field("FLOAT_MODE", 19, 12),
    flag("PRIV", 20),
    flag("DX10_CLAMP", 21),
    flag("IEEE_MODE", 23),
    flag("BULKY", 24),
    flag("FP16_OVFL", 26),
    flag("WGP_MODE", 29),
    flag("MEM_ORDERED", 30),
    flag("FWD_PROGRESS", 31),
)

# K sh_mask 17178. LDS_SIZE counts 512 bytes: L 5888-5915.
RSRC2 = (
    flag("SCRATCH_EN", 0),
    Field("USER_SGPR", 5, 1),
    flag("TRAP_PRESENT", 6),
    flag("TGID_X_EN", 7),
    flag("TGID_Y_EN", 8),
    flag("TGID_Z_EN", 9),
    flag("TG_SIZE_EN", 10),
    Field("TIDIG_COMP_CNT", 12, 11),
    Field("EXCP_EN_MSB", 14, 13),
    Field("LDS_SIZE", 23, 15),
    Field("EXCP_EN", 30, 24),
)

# K sh_mask 17356.
RSRC3 = (Field("SHARED_VGPR_CNT", 3, 0),)

# K sh_mask 17071-17083. Bit 3 is ORDERED_APPEND_ENBL, not ORDER_MODE.
INITIATOR = (
    flag("COMPUTE_SHADER_EN", 0),
    flag("PARTIAL_TG_EN", 1),
    flag("FORCE_START_AT_000", 2),
    flag("ORDERED_APPEND_ENBL", 3),
    flag("ORDERED_APPEND_MODE", 4),
    flag("USE_THREAD_DIMENSIONS", 5),
    flag("ORDER_MODE", 6),
    flag("SCALAR_L1_INV_VOL", 10),
    flag("VECTOR_L1_INV_VOL", 11),
    flag("TUNNEL_ENABLE", 13),
    flag("RESTORE", 14),
    flag("CS_W32_EN", 15),
)
WORKGROUPS = {"COMPUTE_SHADER_EN": 1, "FORCE_START_AT_000": 1, "ORDER_MODE": 1}
WORK_ITEMS = {"COMPUTE_SHADER_EN": 1, "FORCE_START_AT_000": 1, "USE_THREAD_DIMENSIONS": 1}

# What belongs to the queue, the debugger or the context save, and is never written by a launch. K offset
# 4555-4679. A write to STATIC_THREAD_MGMT would defeat the queue's CU mask.
QUEUE_OWNED_EVERYWHERE = {
    "COMPUTE_PIPELINESTAT_ENABLE": 0x20A,
    "COMPUTE_PERFCOUNT_ENABLE": 0x20B,
    "COMPUTE_DISPATCH_PKT_ADDR_LO": 0x20E,
    "COMPUTE_DISPATCH_PKT_ADDR_HI": 0x20F,
    "COMPUTE_VMID": 0x214,
    "COMPUTE_STATIC_THREAD_MGMT_SE0": 0x216,
    "COMPUTE_STATIC_THREAD_MGMT_SE1": 0x217,
    "COMPUTE_STATIC_THREAD_MGMT_SE2": 0x219,
    "COMPUTE_STATIC_THREAD_MGMT_SE3": 0x21A,
    "COMPUTE_THREAD_TRACE_ENABLE": 0x21E,
    "COMPUTE_REQ_CTRL": 0x222,
    "COMPUTE_USER_ACCUM_0": 0x224,
    "COMPUTE_USER_ACCUM_1": 0x225,
    "COMPUTE_USER_ACCUM_2": 0x226,
    "COMPUTE_USER_ACCUM_3": 0x227,
    "COMPUTE_DISPATCH_TUNNEL": 0x27D,
}
QUEUE_OWNED = {
    **QUEUE_OWNED_EVERYWHERE,
    "COMPUTE_RELAUNCH": 0x22B,
    "COMPUTE_WAVE_RESTORE_ADDR_LO": 0x22C,
    "COMPUTE_WAVE_RESTORE_ADDR_HI": 0x22D,
    "COMPUTE_RELAUNCH2": 0x22E,
}

# What other stacks set to 0 and a launch of ours never reads: FORCE_START_AT_000 stands for START, there is no
# scratch, and nothing restarts. K offset 4543-4609.
NOT_NEEDED = {
    "COMPUTE_START_X": 0x204,
    "COMPUTE_START_Y": 0x205,
    "COMPUTE_START_Z": 0x206,
    "COMPUTE_DISPATCH_SCRATCH_BASE_LO": 0x210,
    "COMPUTE_DISPATCH_SCRATCH_BASE_HI": 0x211,
    "COMPUTE_TMPRING_SIZE": 0x218,
    "COMPUTE_RESTART_X": 0x21B,
    "COMPUTE_RESTART_Y": 0x21C,
    "COMPUTE_RESTART_Z": 0x21D,
}

# K nvd.h:269-306; M pkt3.json GCR_CNTL; P gfx9CmdUtil.cpp:229-272.
GLI_INV = Field("GLI_INV", 1, 0, {"NONE": 0, "ALL": 1, "RANGE": 2, "FIRST_LAST": 3})
GL1_RANGE = Field("GL1_RANGE", 3, 2, {"ALL": 0, "RANGE": 2, "FIRST_LAST": 3})
GL2_RANGES = {"ALL": 0, "VOL": 1, "RANGE": 2, "FIRST_LAST": 3}
SEQUENCES = {"PARALLEL": 0, "FORWARD": 1, "REVERSE": 2}
GL2_BITS = (
    flag("GL2_US", 10),
    Field("GL2_RANGE", 12, 11, GL2_RANGES),
    flag("GL2_DISCARD", 13),
    flag("GL2_INV", 14),
    flag("GL2_WB", 15),
    Field("SEQ", 17, 16, SEQUENCES),
    flag("RANGE_IS_PA", 18),
)
GCR = Word(
    "GCR_CNTL",
    (
        GLI_INV,
        GL1_RANGE,
        flag("GLM_WB", 4),
        flag("GLM_INV", 5),
        flag("GLK_WB", 6),
        flag("GLK_INV", 7),
        flag("GLV_INV", 8),
        flag("GL1_INV", 9),
        *GL2_BITS,
    ),
)

# The same bits in RELEASE_MEM. K nvd.h:165-203; M pkt3.json RELEASE_MEM_OP.
RELEASE_GCR = (
    flag("GLM_WB", 12),
    flag("GLM_INV", 13),
    flag("GLV_INV", 14),
    flag("GL1_INV", 15),
    flag("GL2_US", 16),
    Field("GL2_RANGE", 18, 17, GL2_RANGES),
    flag("GL2_DISCARD", 19),
    flag("GL2_INV", 20),
    flag("GL2_WB", 21),
    Field("SEQ", 23, 22, SEQUENCES),
)

# K gfx_v10_0.c:9388-9406. GLM holds no buffer data; drivers set it with GL2 operations, and write-back needs
# invalidation: M radv_cs.c:169-172.
ENTRY: dict[str, Value] = {
    "GLI_INV": "ALL",
    "GLM_WB": 1,
    "GLM_INV": 1,
    "GLK_INV": 1,
    "GLV_INV": 1,
    "GL1_INV": 1,
    "GL2_INV": 1,
    "GL2_WB": 1,
}
RELEASE = {"GLM_WB": 1, "GLM_INV": 1, "GL2_WB": 1}
# GL1 lies in front of K and V both, so each refresh carries it: L memory model gfx10-gfx11.
SCALAR = {"GLK_INV": 1, "GL1_INV": 1}
VECTOR = {"GLV_INV": 1, "GL1_INV": 1}

GFX10_1 = FamilyTable(
    name="gfx10.1",
    targets=("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    source="Linux 6.12 gc_10_1_0_offset.h, gc_10_1_0_sh_mask.h, nvd.h; "
    "Mesa 25.0 gfx10.json, pkt3.json; PAL gfx9_plus_merged",
    packets=pm4.packets(GCR, RELEASE_GCR, Word("COMPUTE_DISPATCH_INITIATOR", INITIATOR), pm4.CACHE_POLICY),
    registers=launch_registers(NUM_THREAD, RSRC1, RSRC2, RSRC3),
    gcr=GCR,
    initiator=Word("COMPUTE_DISPATCH_INITIATOR", INITIATOR),
    entry=ENTRY,
    release=RELEASE,
    scalar=SCALAR,
    vector=VECTOR,
    workgroups=WORKGROUPS,
    work_items=WORK_ITEMS,
    wave32="CS_W32_EN",
    forms=pm4.FORMS,
    # PAL gfx9CmdUtil.cpp:379-442: old CP microcode returns early, and its version cannot be read through HSA.
    partial_flush_is_trusted=False,
    # L 6154 ff.: no architected flat scratch before gfx11, so kernels ask for it even without scratch.
    has_private_segment_buffer=True,
    # P gfx9AcquireReleaseBarrier.cpp:63-65; M si_barrier.c:588-592: the command processor works at L2.
    processor_reads_past_l2=False,
    # Linux gmc_v10_0.c:537-540: fine-grained and uncached pages are MTYPE_UC.
    l2_kinds=("device", "host"),
    queue_owned=QUEUE_OWNED,
    not_needed=NOT_NEEDED,
)

GFX10_3 = replace(
    GFX10_1,
    name="gfx10.3",
    targets=("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    source="Linux 6.12 gc_10_3_0_offset.h, gc_10_3_0_sh_mask.h, nvd.h; "
    "Mesa 25.0 gfx103.json, pkt3.json; PAL gfx9_plus_merged",
)
