# SPDX-License-Identifier: Apache-2.0
"""A kernel descriptor as the packet processor finds it: 64 bytes at a kernel object, read from device memory.

The device's own reader: `radiowave` reads the same bytes from ELF files for other purposes. What the device cannot
give a kernel (scratch, a dispatch or queue pointer, preloaded arguments, ...) is refused by the name of its field.
Says nothing about grids; `kernel_dispatch.py` makes a dispatch of a descriptor and a packet.

Layout: LLVM 22, AMDGPUUsage.rst, "Kernel Descriptor" (amdhsa); the register words have the bits of
gc_*_sh_mask.h (`families.py`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from redline.sim.dispatch_registers import MAX_USER_SGPRS, RSRC1, RSRC2, RSRC3
from redline.sim.errors import LaunchFault
from redline.sim.families import Family
from redline.sim.memory import Memory

DESCRIPTOR_BYTES = 64
ENTRY_ALIGN = 256

# group, private and kernarg bytes, 4 reserved, entry offset, 20 reserved, rsrc3, rsrc1, rsrc2, properties, preload, 4
_LAYOUT = struct.Struct("<III4sq20sIIIHH4s")

# Bits of `properties`; user SGPRs of those that the device serves, in the order in which they stand.
_PRIVATE_SEGMENT_BUFFER, _KERNARG_PTR, _WAVEFRONT_SIZE32 = 1 << 0, 1 << 3, 1 << 10
PRIVATE_SEGMENT_BUFFER_SGPRS, KERNARG_PTR_SGPRS = 4, 2
_REFUSED_PROPERTIES = {
    1: "ENABLE_SGPR_DISPATCH_PTR",
    2: "ENABLE_SGPR_QUEUE_PTR",
    4: "ENABLE_SGPR_DISPATCH_ID",
    5: "ENABLE_SGPR_FLAT_SCRATCH_INIT",
    6: "ENABLE_SGPR_PRIVATE_SEGMENT_SIZE",
    11: "USES_DYNAMIC_STACK",
}
_KNOWN_PROPERTIES = _PRIVATE_SEGMENT_BUFFER | _KERNARG_PTR | _WAVEFRONT_SIZE32


@dataclass(frozen=True)
class Descriptor:
    """One sound descriptor of a kernel that this device can start."""

    group_bytes: int
    kernarg_bytes: int
    entry: int  # absolute address
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int

    @property
    def wave(self) -> int:
        return 32 if self.properties & _WAVEFRONT_SIZE32 else 64

    @property
    def user_sgprs(self) -> int:
        """RSRC2.USER_SGPR: more than the properties ask for where LLVM pads (gfx1100, gfx1102)."""
        return self.rsrc2 >> 1 & 0x1F

    def user_data(self, kernarg: int) -> list[int]:
        """The first `user_sgprs` words. The private segment buffer of a kernel without scratch is zeros, and so is
        the padding."""
        words: list[int] = []
        if self.properties & _PRIVATE_SEGMENT_BUFFER:
            words += [0] * PRIVATE_SEGMENT_BUFFER_SGPRS
        if self.properties & _KERNARG_PTR:
            words += [kernarg & 0xFFFFFFFF, kernarg >> 32]
        return words + [0] * (self.user_sgprs - len(words))


def read_descriptor(address: int, memory: Memory, family: Family, where: str) -> Descriptor:
    """The descriptor at `address`. Raises `LaunchFault` naming `where` and the field, or `MemoryFault`."""
    group, private, kernarg, gap0, offset, gap1, rsrc3, rsrc1, rsrc2, properties, preload, gap2 = _LAYOUT.unpack(
        memory.bytes_at(address, DESCRIPTOR_BYTES)
    )
    where = f"{where}, kernel descriptor at {address:#x}"
    for name, seen, allowed in (
        ("reserved bytes", (gap0 + gap1 + gap2).hex(), (b"\0" * 28).hex()),
        ("PRIVATE_SEGMENT_FIXED_SIZE", private, 0),
        ("KERNARG_PRELOAD", preload, 0),
    ):
        if seen != allowed:
            raise LaunchFault(f"{where}, {name}", f"{seen}", f"{allowed}")
    _check_properties(properties, where)
    _check_words(rsrc1, rsrc2, rsrc3, family, where)
    found = Descriptor(group, kernarg, address + offset, rsrc1, rsrc2, rsrc3, properties)
    _check_entry(found, where)
    _check_user_sgprs(found, where)
    return found


def _check_properties(properties: int, where: str) -> None:
    for bit, name in _REFUSED_PROPERTIES.items():
        if properties >> bit & 1:
            raise LaunchFault(f"{where}, {name}", "1", "0: this device does not supply it")
    if properties & ~_KNOWN_PROPERTIES:
        raise LaunchFault(f"{where}, properties", f"{properties:#06x}", f"bits within {_KNOWN_PROPERTIES:#06x}")


def _check_words(rsrc1: int, rsrc2: int, rsrc3: int, family: Family, where: str) -> None:
    for offset, value in ((RSRC1, rsrc1), (RSRC2, rsrc2), (RSRC3, rsrc3)):
        register = family.settable[offset]
        if value & ~register.mask:
            raise LaunchFault(f"{where}, {register.name}", f"{value:#010x}", f"bits within {register.mask:#010x}")
    if rsrc2 & 1:
        raise LaunchFault(f"{where}, RSRC2.SCRATCH_EN", "1", "0: this device has no scratch memory")
    if rsrc2 >> 15 & 0x1FF:
        raise LaunchFault(f"{where}, RSRC2.LDS_SIZE", f"{rsrc2 >> 15 & 0x1FF}", "0: the packet says how much")


def _check_entry(found: Descriptor, where: str) -> None:
    if found.entry % ENTRY_ALIGN or not 0 < found.entry < 1 << 48:
        allowed = f"a multiple of {ENTRY_ALIGN} below 2^48"
        raise LaunchFault(f"{where}, KERNEL_CODE_ENTRY_BYTE_OFFSET", f"entry {found.entry:#x}", allowed)


def _check_user_sgprs(found: Descriptor, where: str) -> None:
    needed = PRIVATE_SEGMENT_BUFFER_SGPRS * bool(found.properties & _PRIVATE_SEGMENT_BUFFER)
    needed += KERNARG_PTR_SGPRS * bool(found.properties & _KERNARG_PTR)
    if not needed <= found.user_sgprs <= MAX_USER_SGPRS:
        allowed = f"{needed} (what the properties ask for) to {MAX_USER_SGPRS}"
        raise LaunchFault(f"{where}, RSRC2.USER_SGPR", f"{found.user_sgprs}", allowed)
