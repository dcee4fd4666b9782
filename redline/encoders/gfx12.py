# SPDX-License-Identifier: Apache-2.0
"""gfx12.0: what differs from gfx11, as data. gfx12.1 (gfx1250, gfx1251) is another machine and is not here.

Sources: K = Linux 6.12 include/asic_reg/gc/gc_12_0_0_{offset,sh_mask}.h; M = Mesa 25.0 registers/gfx12.json;
P12 = PAL gfx12_merged_*.h; L = LLVM 22 AMDGPUUsage.rst. Line numbers are K's, gc_12_0_0.
"""

from __future__ import annotations

from redline.encoders import gfx10, gfx11, pm4
from redline.encoders.table import FamilyTable, Field, Form, Word, flag

# K sh_mask 7407-7409; M radv_cmd_buffer.c:11886-11894. Z keeps 16 bits.
NUM_THREAD = (
    Field("NUM_THREAD_FULL", 12, 0),
    Field("INTERLEAVE_BITS", 15, 13),
    Field("NUM_THREAD_PARTIAL", 31, 16),
)

# K sh_mask 7461, 7488, 7619; L 5461-6045.
RSRC1 = tuple(
    {"DX10_CLAMP": flag("WG_RR_EN", 21), "IEEE_MODE": flag("DISABLE_PERF", 23)}.get(item.name, item)
    for item in gfx10.RSRC1
)
RSRC2 = (
    *(flag("DYNAMIC_VGPR", 6) if item.name == "TRAP_PRESENT" else item for item in gfx10.RSRC2),
    flag("WGP_TAKEOVER", 31),
)
# Bits 3:0 are reserved in L; K keeps an old name for them.
RSRC3 = (Field("INST_PREF_SIZE", 11, 4), flag("GLG_EN", 13), flag("IMAGE_OP", 31))

# K sh_mask 7368-7384.
INITIATOR = (
    *gfx11.INITIATOR,
    flag("PING_PONG_EN", 12),
    flag("INTERLEAVE_2D_EN", 18),
    Field("TTRACE_QUEUE_ID", 31, 29),
)

# P gfx12CmdUtil.cpp:1600-1645: bits 5:4 and 9 are reserved, there is no GLM and no GL1 cache.
REMOVED = ("GLM_WB", "GLM_INV", "GL1_INV")
GCR = Word("GCR_CNTL", tuple(item for item in gfx10.GCR.fields if item.name not in REMOVED))
RELEASE_GCR = tuple(item for item in gfx11.RELEASE_GCR if item.name not in REMOVED)

# I pm4_emitter.h:492-515, P12 mec:677-724: last use, both sides. K gfx_v12_0.c emit_fence without GLM.
FORMS = {
    **pm4.FORMS,
    "timestamp_top": Form(
        "COPY_DATA", {**pm4.FORMS["timestamp_top"].values, "SRC_TEMPORAL": "LU", "DST_TEMPORAL": "LU"}
    ),
    "release_fence": Form("RELEASE_MEM", pm4.RELEASE_FENCE),
}

# K offset 2320.
QUEUE_OWNED = {**gfx11.QUEUE_OWNED, "COMPUTE_STATIC_THREAD_MGMT_SE8": 0x223}

GFX12_0 = FamilyTable(
    name="gfx12.0",
    targets=("gfx1200", "gfx1201"),
    source="Linux 6.12 gc_12_0_0_offset.h, gc_12_0_0_sh_mask.h, nvd.h; "
    "Mesa 25.0 gfx12.json, pkt3.json; PAL gfx12_merged",
    packets=pm4.packets(GCR, RELEASE_GCR, Word("COMPUTE_DISPATCH_INITIATOR", INITIATOR), pm4.TEMPORAL),
    registers=gfx10.launch_registers(NUM_THREAD, RSRC1, RSRC2, RSRC3),
    gcr=GCR,
    initiator=Word("COMPUTE_DISPATCH_INITIATOR", INITIATOR),
    # M radv_cs.c:145-177 without bit 9.
    entry={"GLI_INV": "ALL", "GLK_INV": 1, "GLV_INV": 1, "GL2_INV": 1, "GL2_WB": 1},
    release={"GL2_WB": 1},
    scalar={"GLK_INV": 1},
    vector={"GLV_INV": 1},
    workgroups=gfx10.WORKGROUPS,
    work_items=gfx10.WORK_ITEMS,
    wave32="CS_W32_EN",
    forms=FORMS,
    partial_flush_is_trusted=True,
    has_private_segment_buffer=False,
    # M ac_gpu_info.c:1070-1071; P gfx12Barrier.cpp:59-63: the command processor bypasses GL2.
    processor_reads_past_l2=True,
    # Linux gmc_v12_0.c:544-545: only uncached pages are MTYPE_UC; fine-grained ones are NC.
    l2_kinds=("device", "host", "fine"),
    queue_owned=QUEUE_OWNED,
    not_needed=gfx10.NOT_NEEDED,
)
