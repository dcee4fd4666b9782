# SPDX-License-Identifier: Apache-2.0
"""The 64-byte kernel descriptor: what the command processor reads before it starts a kernel.

Unpacks the words and names the bits that Redline and Radiowave ask for. Policy (which bits a dispatcher can
serve) is not here. Layout: LLVM AMDGPUUsage, "Kernel Descriptor"; LLVM `AMDHSAKernelDescriptor.h`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

DESCRIPTOR_BYTES = 64
DESCRIPTOR_ALIGN = 64
ENTRY_ALIGN = 256

_LAYOUT = struct.Struct("<III4xq20xIIIHH4x")
# Bytes that LLVM's layout reserves: they must be zero.
_RESERVED = (slice(12, 16), slice(24, 44), slice(60, 64))

ENABLE_WAVEFRONT_SIZE32 = 1 << 10
USES_DYNAMIC_STACK = 1 << 11
# Bits 0..6 ask for user SGPRs, 10 and 11 are named above; the rest is reserved.
_KNOWN_PROPERTIES = 0x7F | ENABLE_WAVEFRONT_SIZE32 | USES_DYNAMIC_STACK


@dataclass(frozen=True)
class Descriptor:
    """A kernel descriptor's fields. In memory rsrc3 comes before rsrc1 and rsrc2.

    `group_bytes` (static LDS), `private_bytes` (scratch of one lane) and `kernarg_bytes` are bytes; `entry_offset` is
    the byte distance from the descriptor to the first instruction. `kernarg_bytes` is 0 where an assembler or an old
    compiler did not state it; the metadata does.
    """

    group_bytes: int
    private_bytes: int
    kernarg_bytes: int
    entry_offset: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int

    @classmethod
    def unpack(cls, raw: bytes) -> Descriptor:
        """The fields of 64 bytes."""
        group, private, kernarg, entry, rsrc3, rsrc1, rsrc2, properties, preload = _LAYOUT.unpack(raw)
        return cls(group, private, kernarg, entry, rsrc1, rsrc2, rsrc3, properties, preload)

    @property
    def wave(self) -> int:
        """Lanes of a wave: 32 or 64."""
        return 32 if self.properties & ENABLE_WAVEFRONT_SIZE32 else 64

    @property
    def uses_dynamic_stack(self) -> bool:
        """Whether the stack grows by an amount unknown at compile time."""
        return bool(self.properties & USES_DYNAMIC_STACK)


def reserved_bits(raw: bytes) -> str:
    """Which reserved bits of a descriptor are set, in words; empty when none is."""
    found = [f"bytes {place.start}..{place.stop - 1}" for place in _RESERVED if any(raw[place])]
    properties = Descriptor.unpack(raw).properties & ~_KNOWN_PROPERTIES
    if properties:
        found.append(f"kernel code properties {properties:#x}")
    return ", ".join(found)
