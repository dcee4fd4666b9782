# SPDX-License-Identifier: Apache-2.0
"""gfx11.0 and gfx11.5: what differs from gfx10, as data.

Sources: K = Linux 6.12 include/asic_reg/gc/gc_{11_0_0,11_0_3,11_5_0}_{offset,sh_mask}.h; M = Mesa 25.0
registers/gfx11.json and gfx115.json; P = PAL gfx9_plus_merged_*.h; L = LLVM 22 AMDGPUUsage.rst. Line numbers
are K's, gc_11_0_0.
"""

from __future__ import annotations

from dataclasses import replace

from redline.encoders import gfx10, pm4
from redline.encoders.table import FamilyTable, Field, Word, flag

# K sh_mask 14822. Instruction prefetch counts 128 bytes.
RSRC3 = (
    Field("SHARED_VGPR_CNT", 3, 0),
    Field("INST_PREF_SIZE", 9, 4),
    flag("TRAP_ON_START", 10),
    flag("TRAP_ON_END", 11),
    flag("IMAGE_OP", 31),
)

# K sh_mask 14585-14599.
INITIATOR = (*gfx10.INITIATOR, flag("AMP_SHADER_EN", 16), flag("DISABLE_DISP_PREMPT_EN", 17))

# K nvd.h:165-203; M pkt3.json RELEASE_MEM_OP_gfx11: the scalar cache joins.
RELEASE_GCR = (*gfx10.RELEASE_GCR, flag("GLK_WB", 24), flag("GLK_INV", 30))

# K offset 4020-4038: four more shader engines, and what gfx10 had there moves up.
QUEUE_OWNED = {
    **gfx10.QUEUE_OWNED_EVERYWHERE,
    "COMPUTE_STATIC_THREAD_MGMT_SE4": 0x22B,
    "COMPUTE_STATIC_THREAD_MGMT_SE5": 0x22C,
    "COMPUTE_STATIC_THREAD_MGMT_SE6": 0x22D,
    "COMPUTE_STATIC_THREAD_MGMT_SE7": 0x22E,
    "COMPUTE_DISPATCH_INTERLEAVE": 0x22F,
    "COMPUTE_RELAUNCH": 0x230,
    "COMPUTE_WAVE_RESTORE_ADDR_LO": 0x231,
    "COMPUTE_WAVE_RESTORE_ADDR_HI": 0x232,
    "COMPUTE_RELAUNCH2": 0x233,
}

GFX11_0 = FamilyTable(
    name="gfx11.0",
    targets=("gfx1100", "gfx1101", "gfx1102", "gfx1103"),
    source="Linux 6.12 gc_11_0_0_offset.h, gc_11_0_0_sh_mask.h, nvd.h; "
    "Mesa 25.0 gfx11.json, pkt3.json; PAL gfx9_plus_merged",
    packets=pm4.packets(gfx10.GCR, RELEASE_GCR, Word("COMPUTE_DISPATCH_INITIATOR", INITIATOR), pm4.CACHE_POLICY),
    registers=gfx10.launch_registers(gfx10.NUM_THREAD, gfx10.RSRC1, gfx10.RSRC2, RSRC3),
    gcr=gfx10.GCR,
    initiator=Word("COMPUTE_DISPATCH_INITIATOR", INITIATOR),
    # K gfx_v11_0.c:6565-6583: the same word as on gfx10.
    entry=gfx10.ENTRY,
    release=gfx10.RELEASE,
    scalar=gfx10.SCALAR,
    vector=gfx10.VECTOR,
    workgroups=gfx10.WORKGROUPS,
    work_items=gfx10.WORK_ITEMS,
    wave32="CS_W32_EN",
    forms=pm4.FORMS,
    partial_flush_is_trusted=True,
    has_private_segment_buffer=False,
    # As gfx10.
    processor_reads_past_l2=False,
    # Linux gmc_v11_0.c:528-531: as gfx10.
    l2_kinds=("device", "host"),
    queue_owned=QUEUE_OWNED,
    not_needed=gfx10.NOT_NEEDED,
)

GFX11_5 = replace(
    GFX11_0,
    name="gfx11.5",
    targets=("gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    source="Linux 6.12 gc_11_5_0_offset.h, gc_11_5_0_sh_mask.h, nvd.h; "
    "Mesa 25.0 gfx115.json, pkt3.json; PAL gfx9_plus_merged",
)
