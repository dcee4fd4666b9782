# SPDX-License-Identifier: Apache-2.0
"""Type-3 packets as the compute micro engine reads them: what all families share, as data.

Says nothing about when a packet is used and which family has which GCR bits; the family files do, and the
forms here are the fixed values of the packets that Redline emits.

Sources: K = Linux 6.12 amdgpu/nvd.h; P9, P12 = PAL
gfx9_plus_merged_f32_mec_pm4_packets.h and gfx12_merged_f32_mec_pm4_packets.h; M = Mesa 25.0 common/sid.h and
registers/pkt3.json; R = ROCr amd_gpu_pm4.h; I = IREE util/pm4_emitter.h; T = tinygrad ops_amd.py.
"""

from __future__ import annotations

from redline.encoders.table import Field, Form, Packet, Value, Word, dword, flag

# Event types. K navi10_enum.h, soc21_enum.h and soc24_enum.h.
EVENT_TYPE = Field(
    "EVENT_TYPE",
    5,
    0,
    {"CS_PARTIAL_FLUSH": 0x07, "CACHE_FLUSH_AND_INV_TS": 0x14, "BOTTOM_OF_PIPE_TS": 0x28, "CS_DONE": 0x2F},
)
EVENT_INDEX = Field("EVENT_INDEX", 11, 8)

# What the same two bits mean by family. P9 mec:1581, P12 mec:1598.
CACHE_POLICY = ("CACHE_POLICY", {"LRU": 0, "STREAM": 1, "NOA": 2, "BYPASS": 3})
TEMPORAL = ("TEMPORAL", {"RT": 0, "NT": 1, "HT": 2, "LU": 3})
Policy = tuple[str, dict[str, int]]

COPY_SOURCES = {
    "REGISTER": 0,
    "TC_L2_OBSOLETE": 1,
    "TC_L2": 2,
    "PERFCOUNTER": 4,
    "IMMEDIATE": 5,
    "ATOMIC_RETURN": 6,
    "GPU_CLOCK": 9,
    "SYSTEM_CLOCK": 10,
}
COPY_DESTINATIONS = {"REGISTER": 0, "TC_L2": 2, "PERFCOUNTER": 4, "TC_L2_OBSOLETE": 5, "REGISTER_DC": 6}

# K nvd.h:330-331; P12 mec:2291; M sid.h:247. Index and VMID shift above the offset stay 0.
SET_SH_REG = Packet("SET_SH_REG", (Word("REG_OFFSET", (Field("REG_OFFSET", 15, 0),)),), 0x76, tail="VALUE")

# K nvd.h:138; R amd_gpu_pm4.h:48-58. A body is skipped unread; a pad of one dword has no body
# (`Packet.pad`).
NOP = Packet("NOP", (), 0x10, tail="BODY")

# K nvd.h (PACKET3_EVENT_WRITE); P12 mec:1345.
EVENT_WRITE = Packet("EVENT_WRITE", (Word("EVENT_CNTL", (EVENT_TYPE, EVENT_INDEX, flag("OFFLOAD_ENABLE", 31))),), 0x46)

_WAIT_CONTROL = Word(
    "CONTROL",
    (
        Field("FUNCTION", 2, 0, {"ALWAYS": 0, "<": 1, "<=": 2, "==": 3, "!=": 4, ">=": 5, ">": 6}),
        Field("MEM_SPACE", 5, 4, {"REGISTER": 0, "MEMORY": 1}),
        Field("OPERATION", 7, 6),
    ),
)
_WAIT_POLL = Word("POLL", (Field("POLL_INTERVAL", 15, 0), flag("OPTIMIZE_ACE_OFFLOAD", 31)))
_ADDRESS = (dword("ADDR_LO"), dword("ADDR_HI"))

# K nvd.h:116-137; P12 mec:2648; R amd_gpu_pm4.h:115-124.
WAIT_REG_MEM = Packet("WAIT_REG_MEM", (_WAIT_CONTROL, *_ADDRESS, dword("REFERENCE"), dword("MASK"), _WAIT_POLL), 0x3C)
# K nvd.h:364; P12 mec:2785; T ops_amd.py:85-89: reference and mask of 64 bits.
WAIT_REG_MEM64 = Packet(
    "WAIT_REG_MEM64",
    (
        _WAIT_CONTROL,
        *_ADDRESS,
        dword("REFERENCE_LO"),
        dword("REFERENCE_HI"),
        dword("MASK_LO"),
        dword("MASK_HI"),
        _WAIT_POLL,
    ),
    0x93,
)


def dispatch_direct(initiator: Word) -> Packet:
    """K nvd.h:61; P12 mec:847. Drivers set the shader-type bit here and nowhere else."""
    words = (dword("DIM_X"), dword("DIM_Y"), dword("DIM_Z"), initiator)
    return Packet("DISPATCH_DIRECT", words, 0x15, shader_type=1)


def dispatch_indirect(initiator: Word) -> Packet:
    """The form of a compute queue: dimensions at an address. P12 mec:883; M radv_cmd_buffer.c:11952.

    A graphics ring takes an offset from SET_BASE instead and has one dword less.
    """
    words = (Word("ADDR_LO", (Field("ADDR_LO", 31, 2),)), dword("ADDR_HI"), initiator)
    return Packet("DISPATCH_INDIRECT", words, 0x16, shader_type=1)


def acquire_mem(gcr: Word) -> Packet:
    """The form of gfx10 and later, 8 dwords. K nvd.h:258-268; P9, P12 mec:57-130; R
    amd_gpu_agent.cpp:2305-2340.

    Sizes and bases are in units of 256 bytes. MEC keeps 8 bits of COHER_SIZE_HI; drivers write 24 ones.
    """
    words = (
        Word("ENGINE", ()),
        dword("COHER_SIZE"),
        Word("COHER_SIZE_HI", (Field("COHER_SIZE_HI", 23, 0),)),
        dword("COHER_BASE_LO"),
        Word("COHER_BASE_HI", (Field("COHER_BASE_HI", 23, 0),)),
        Word("POLL", (Field("POLL_INTERVAL", 15, 0),)),
        gcr,
    )
    return Packet("ACQUIRE_MEM", words, 0x58)


def release_mem(gcr: tuple[Field, ...], policy: Policy) -> Packet:
    """K nvd.h:165-203; P9 mec:1954-1990; P12 mec:2045-2090. `gcr` is where this family keeps its GCR bits."""
    event = (EVENT_TYPE, flag("WAIT_SYNC", 7), EVENT_INDEX, *gcr, Field(policy[0], 26, 25, policy[1]))
    select = (
        Field("DST_SEL", 17, 16, {"MC": 0, "TC_L2": 1}),
        Field("INT_SEL", 26, 24, {"NONE": 0, "INTERRUPT": 1, "INTERRUPT_CONFIRM": 2, "DATA_CONFIRM": 3}),
        Field("DATA_SEL", 31, 29, {"NONE": 0, "32_BIT": 1, "64_BIT": 2, "CLOCK": 3}),
    )
    words = (
        Word("EVENT_CNTL", (*event, flag("EXECUTE", 28))),
        Word("DATA_CNTL", select),
        dword("ADDR_LO"),
        dword("ADDR_HI"),
        dword("DATA_LO"),
        dword("DATA_HI"),
        dword("INT_CTXID"),
    )
    return Packet("RELEASE_MEM", words, 0x49)


def write_data(policy: Policy) -> Packet:
    """K nvd.h:88-115; P12 mec:2937; R amd_gpu_pm4.h:138-143."""
    control = (
        Field("DST_SEL", 11, 8, {"REGISTER": 0, "TC_L2": 2, "MEMORY": 5}),
        flag("ADDR_INCR", 16),
        flag("WR_CONFIRM", 20),
        Field(policy[0], 26, 25, policy[1]),
    )
    words = (Word("CONTROL", control), dword("ADDR_LO"), dword("ADDR_HI"))
    return Packet("WRITE_DATA", words, 0x37, tail="DATA")


def copy_data(policy: Policy) -> Packet:
    """P9 mec:730-796; P12 mec:665-734; K nvd.h:148; M sid.h:128-144. What MEC calls obsolete is named so."""
    control = (
        Field("SRC_SEL", 3, 0, COPY_SOURCES),
        Field("DST_SEL", 11, 8, COPY_DESTINATIONS),
        Field(f"SRC_{policy[0]}", 14, 13, policy[1]),
        Field("COUNT_SEL", 16, 16, {"32_BIT": 0, "64_BIT": 1}),
        flag("WR_CONFIRM", 20),
        Field(f"DST_{policy[0]}", 26, 25, policy[1]),
        flag("PQ_EXE_STATUS", 29),
    )
    words = (Word("CONTROL", control), dword("SRC_LO"), dword("SRC_HI"), dword("DST_LO"), dword("DST_HI"))
    return Packet("COPY_DATA", words, 0x40)


def indirect_buffer(policy: Policy) -> Packet:
    """K nvd.h:138-147; P9 mec:1581; P12 mec:1598; R amd_gpu_pm4.h:72-75. The base is in units of 4 bytes."""
    control = (
        Field("IB_SIZE", 19, 0),
        flag("CHAIN", 20),
        flag("OFFLOAD_POLLING", 21),
        flag("VALID", 23),
        Field("VMID", 27, 24),
        Field(policy[0], 29, 28, policy[1]),
        flag("PRIV", 31),
    )
    words = (
        Word("IB_BASE_LO", (Field("IB_BASE_LO", 31, 2),)),
        Word("IB_BASE_HI", (Field("IB_BASE_HI", 15, 0),)),
        Word("IB_CONTROL", control),
    )
    return Packet("INDIRECT_BUFFER", words, 0x3F)


def packets(gcr: Word, release_gcr: tuple[Field, ...], initiator: Word, policy: Policy) -> tuple[Packet, ...]:
    """Every packet of a family, in order of opcode."""
    return (
        NOP,
        dispatch_direct(initiator),
        dispatch_indirect(initiator),
        write_data(policy),
        WAIT_REG_MEM,
        indirect_buffer(policy),
        copy_data(policy),
        EVENT_WRITE,
        release_mem(release_gcr, policy),
        acquire_mem(gcr),
        SET_SH_REG,
        WAIT_REG_MEM64,
    )


# End of pipe with write-back: L2 after the scalar cache, data after the confirmation.
RELEASE_FENCE: dict[str, Value] = {
    "EVENT_TYPE": "CACHE_FLUSH_AND_INV_TS",
    "EVENT_INDEX": 5,
    "GL2_WB": 1,
    "SEQ": "FORWARD",
    "INT_SEL": "DATA_CONFIRM",
    "DATA_SEL": "64_BIT",
}

FORMS = {
    # M, K and R agree on the full range; K, M and P write this size and interval.
    "acquire": Form("ACQUIRE_MEM", {"COHER_SIZE": 0xFFFFFFFF, "COHER_SIZE_HI": 0x00FFFFFF, "POLL_INTERVAL": 0xA}),
    "drain": Form("EVENT_WRITE", {"EVENT_TYPE": "CS_PARTIAL_FLUSH", "EVENT_INDEX": 4}),
    "dispatch": Form("DISPATCH_DIRECT", {}),
    "dispatch_indirect": Form("DISPATCH_INDIRECT", {}),
    # Confirmed, so that what follows sees it. PAL gfx9CmdUtil.cpp BuildWaitCsIdle.
    "write_data": Form("WRITE_DATA", {"DST_SEL": "TC_L2", "WR_CONFIRM": 1}),
    "copy_data": Form("COPY_DATA", {"SRC_SEL": "TC_L2", "DST_SEL": "TC_L2", "WR_CONFIRM": 1}),
    # The drain of gfx10 by a fence word. PAL gfx9CmdUtil.cpp BuildWaitCsIdle: same packets and selectors.
    "fence_release": Form(
        "RELEASE_MEM",
        {
            "EVENT_TYPE": "BOTTOM_OF_PIPE_TS",
            "EVENT_INDEX": 5,
            "DST_SEL": "TC_L2",
            "INT_SEL": "DATA_CONFIRM",
            "DATA_SEL": "32_BIT",
        },
    ),
    "wait_memory": Form(
        "WAIT_REG_MEM", {"FUNCTION": ">=", "MEM_SPACE": "MEMORY", "MASK": 0xFFFFFFFF, "POLL_INTERVAL": 4}
    ),
    "wait_memory64": Form(
        "WAIT_REG_MEM64",
        {"MEM_SPACE": "MEMORY", "MASK_LO": 0xFFFFFFFF, "MASK_HI": 0xFFFFFFFF, "POLL_INTERVAL": 4},
    ),
    # I pm4_emitter.h:492-515, P9 mec:730-750: the form that MEC does not call obsolete.
    "timestamp_top": Form("COPY_DATA", {"SRC_SEL": "GPU_CLOCK", "DST_SEL": "TC_L2", "COUNT_SEL": "64_BIT"}),
    # M si_cs_emit_write_event_eop: the clock when every earlier dispatch has ended.
    "timestamp_bottom": Form(
        "RELEASE_MEM",
        {"EVENT_TYPE": "BOTTOM_OF_PIPE_TS", "EVENT_INDEX": 5, "INT_SEL": "DATA_CONFIRM", "DATA_SEL": "CLOCK"},
    ),
    # K gfx_v10_0.c and gfx_v11_0.c emit_fence, without its cache policy.
    "release_fence": Form(
        "RELEASE_MEM",
        {**RELEASE_FENCE, "GLM_WB": 1, "GLM_INV": 1},
    ),
    # K, R and IREE write no VMID, no policy and no privilege.
    "indirect_buffer": Form("INDIRECT_BUFFER", {"VALID": 1}),
    "chain": Form("INDIRECT_BUFFER", {"VALID": 1, "CHAIN": 1}),
}
