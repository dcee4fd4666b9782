# SPDX-License-Identifier: Apache-2.0
"""Type-3 packets as the compute micro engine reads them: what all families share, as data.

Says nothing about when a packet is used and which family has which GCR bits; the family files do, and the
forms here are the fixed values of the packets that Redline emits.

Sources: K = Linux 6.12 amdgpu/nvd.h; P9, P12 = PAL
gfx9_plus_merged_f32_mec_pm4_packets.h and gfx12_merged_f32_mec_pm4_packets.h; M = Mesa 25.0 common/sid.h and
registers/pkt3.json; R = ROCr amd_gpu_pm4.h.
"""

from __future__ import annotations

from redline.encoders.table import Field, Form, Packet, Word, dword, flag

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

# K nvd.h:330-331; P12 mec:2291; M sid.h:247. Index and VMID shift above the offset stay 0.
SET_SH_REG = Packet("SET_SH_REG", (Word("REG_OFFSET", (Field("REG_OFFSET", 15, 0),)),), 0x76, tail="VALUE")

# K nvd.h:138; R amd_gpu_pm4.h:48-58. A body is skipped unread; a pad of one dword has no body
# (`Packet.pad`).
NOP = Packet("NOP", (), 0x10, tail="BODY")

# K nvd.h (PACKET3_EVENT_WRITE); P12 mec:1345.
EVENT_WRITE = Packet("EVENT_WRITE", (Word("EVENT_CNTL", (EVENT_TYPE, EVENT_INDEX, flag("OFFLOAD_ENABLE", 31))),), 0x46)

# K nvd.h:116-137; P12 mec:2648; R amd_gpu_pm4.h:115-124.
WAIT_REG_MEM = Packet(
    "WAIT_REG_MEM",
    (
        Word(
            "CONTROL",
            (
                Field("FUNCTION", 2, 0, {"ALWAYS": 0, "<": 1, "<=": 2, "==": 3, "!=": 4, ">=": 5, ">": 6}),
                Field("MEM_SPACE", 5, 4, {"REGISTER": 0, "MEMORY": 1}),
                Field("OPERATION", 7, 6),
            ),
        ),
        dword("ADDR_LO"),
        dword("ADDR_HI"),
        dword("REFERENCE"),
        dword("MASK"),
        Word("POLL", (Field("POLL_INTERVAL", 15, 0), flag("OPTIMIZE_ACE_OFFLOAD", 31))),
    ),
    0x3C,
)


def dispatch_direct(initiator: Word) -> Packet:
    """K nvd.h:61; P12 mec:847. Drivers set the shader-type bit here and nowhere else."""
    words = (dword("DIM_X"), dword("DIM_Y"), dword("DIM_Z"), initiator)
    return Packet("DISPATCH_DIRECT", words, 0x15, shader_type=1)


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
        write_data(policy),
        WAIT_REG_MEM,
        indirect_buffer(policy),
        EVENT_WRITE,
        release_mem(release_gcr, policy),
        acquire_mem(gcr),
        SET_SH_REG,
    )


FORMS = {
    # M, K and R agree on the full range; K, M and P write this size and interval.
    "acquire": Form("ACQUIRE_MEM", {"COHER_SIZE": 0xFFFFFFFF, "COHER_SIZE_HI": 0x00FFFFFF, "POLL_INTERVAL": 0xA}),
    "drain": Form("EVENT_WRITE", {"EVENT_TYPE": "CS_PARTIAL_FLUSH", "EVENT_INDEX": 4}),
    "dispatch": Form("DISPATCH_DIRECT", {}),
    # The drain of gfx10 by a fence word. PAL gfx9CmdUtil.cpp BuildWaitCsIdle: same packets and selectors.
    "fence_zero": Form("WRITE_DATA", {"DST_SEL": "TC_L2", "WR_CONFIRM": 1}),
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
    "fence_wait": Form(
        "WAIT_REG_MEM", {"FUNCTION": ">=", "MEM_SPACE": "MEMORY", "MASK": 0xFFFFFFFF, "POLL_INTERVAL": 4}
    ),
    # K, R and IREE write no VMID, no policy and no privilege.
    "indirect_buffer": Form("INDIRECT_BUFFER", {"VALID": 1}),
}
