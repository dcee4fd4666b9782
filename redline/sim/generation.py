# SPDX-License-Identifier: Apache-2.0
"""What differs between the generations whose waves the device runs: one row each, and which target has which row.

Asked for by capability (`gen.ids_in_ttmp`), never by name. Instruction spellings are not here (`names.py`), nor
are packets and registers of the command processor (`packets.py`, `families.py`).

Sources: LLVM's AMDGPUUsage (initial register state, RSRC words, kernel descriptor), AMD's RDNA1 to RDNA4
instruction set manuals (MODE register, work-item id packing).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Generation:
    """One row. Bits are those of COMPUTE_PGM_RSRC1."""

    name: str
    ids_in_ttmp: bool  # workgroup ids in ttmp9 and ttmp7, not behind the user SGPRs
    packed_ids: bool  # work-item ids in one register: x, y << 10, z << 20
    ieee_bits: int  # DX10_CLAMP and IEEE, which LLVM sets; 0 where the bits mean other things
    bpermute_per_half: bool  # ds_bpermute_b32 of a wave64 stays inside each half


FP16_OVERFLOW = 1 << 26  # RSRC1.FP16_OVFL: f16 results clamp to the largest number; refused

_IEEE_AND_DX10_CLAMP = 1 << 23 | 1 << 21

GFX10 = Generation("gfx10", False, False, _IEEE_AND_DX10_CLAMP, True)
GFX11 = Generation("gfx11", False, True, _IEEE_AND_DX10_CLAMP, True)
GFX12 = Generation("gfx12", True, True, 0, False)

GENERATIONS: dict[str, Generation] = (
    dict.fromkeys(("gfx1010", "gfx1011", "gfx1012", "gfx1013"), GFX10)
    | dict.fromkeys((f"gfx103{step}" for step in range(7)), GFX10)
    | dict.fromkeys(("gfx1100", "gfx1101", "gfx1102", "gfx1103"), GFX11)
    | dict.fromkeys(("gfx1150", "gfx1151", "gfx1152", "gfx1153"), GFX11)
    | dict.fromkeys(("gfx1200", "gfx1201"), GFX12)
)
