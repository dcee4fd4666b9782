# SPDX-License-Identifier: Apache-2.0
"""From a kernel-dispatch AQL packet to the `Dispatch` that a PM4 stream with the same meaning would start.

Grid sizes count work-items. A grid of whole workgroups becomes workgroup counts; any other becomes thread dimensions,
and the last workgroup of a dimension is partial. LDS is what the packet says (static and dynamic), never less than the
kernel's own. Descriptors are read by `descriptor.py`; header and completion signal are `aql.py`'s.

Layout and rules: hsa.h, hsa_kernel_dispatch_packet_t.
"""

from __future__ import annotations

from redline.sim.agents import GRID_MAX_DIM, GRID_MAX_SIZE
from redline.sim.aql_packet import AqlPacket
from redline.sim.descriptor import Descriptor, read_descriptor
from redline.sim.dispatch import LDS_GRANULE_BYTES, Dispatch
from redline.sim.dispatch_registers import MAX_LDS_UNITS, MAX_WORKGROUP, UNSET_WORD
from redline.sim.families import Family
from redline.sim.memory import Memory

DESCRIPTOR_ALIGN = 64
KERNARG_ALIGN = 16  # the least that hsa_executable_symbol_get_info ever reports

# COMPUTE_SHADER_EN, FORCE_START_AT_000, ORDER_MODE: groups are counted. USE_THREAD_DIMENSIONS instead of ORDER_MODE:
# work-items are. CS_W32_EN for wave32.
COUNTED_GROUPS, COUNTED_ITEMS, CS_W32_EN = 0x45, 0x25, 0x8000

_WORKGROUP, _GRID, _PRIVATE, _GROUP, _KERNEL, _KERNARG, _RESERVED = 1, 3, 6, 7, 8, 10, 12

Extent = tuple[int, int, int]


def kernel_dispatch(packet: AqlPacket, memory: Memory, family: Family, ordinal: int) -> Dispatch:
    """The dispatch that `packet` asks for, or what is wrong with it."""
    _check_reserved(packet)
    block, grid = _block(packet), _grid(packet)
    _check_dimensions(packet, block, grid)
    kernel = _kernel(packet, memory, family)
    lds_units = _lds_units(packet, kernel)
    whole = all(size % step == 0 for size, step in zip(grid, block, strict=True))
    dims = (grid[0] // block[0], grid[1] // block[1], grid[2] // block[2]) if whole else grid
    initiator = (COUNTED_GROUPS if whole else COUNTED_ITEMS) | (CS_W32_EN if kernel.wave == 32 else 0)
    user_data = kernel.user_data(packet.u64(_KERNARG))
    return Dispatch(
        entry=kernel.entry,
        rsrc1=kernel.rsrc1,
        rsrc2=kernel.rsrc2 | lds_units << 15,
        rsrc3=kernel.rsrc3,
        initiator=initiator,
        user_data=(*user_data, *[UNSET_WORD] * (16 - len(user_data))),
        dims=dims,
        num_thread=block,
        ordinal=ordinal,
    )


def _check_reserved(packet: AqlPacket) -> None:
    setup = packet.words[0] >> 16
    if not 1 <= setup <= 3:
        raise packet.fault(0, "setup", "1 to 3 dimensions in bits 17:16, and the others clear")
    packet.require(2, 0xFFFF, "reserved0")
    for word in (_RESERVED, _RESERVED + 1):
        packet.require(word, 0, "reserved2")
    packet.require(_PRIVATE, 0, "private_segment_size (this device has no scratch memory)")


def _block(packet: AqlPacket) -> Extent:
    return packet.words[_WORKGROUP] & 0xFFFF, packet.words[_WORKGROUP] >> 16, packet.words[_WORKGROUP + 1] & 0xFFFF


def _grid(packet: AqlPacket) -> Extent:
    return packet.words[_GRID], packet.words[_GRID + 1], packet.words[_GRID + 2]


def _check_dimensions(packet: AqlPacket, block: Extent, grid: Extent) -> None:
    used = packet.words[0] >> 16
    for axis, name in enumerate("xyz"):
        most = 1 if axis >= used else GRID_MAX_DIM[axis]
        if not 1 <= grid[axis] <= most:
            raise packet.fault(_GRID + axis, f"grid_size_{name}", f"1 to {most} with {used} dimensions")
        if block[axis] < 1 or (axis >= used and block[axis] != 1):
            allowed = "1 in a dimension that is not used" if axis >= used else "at least 1"
            raise packet.fault(_WORKGROUP + axis // 2, f"workgroup_size_{name}", allowed)
    if block[0] * block[1] * block[2] > MAX_WORKGROUP:
        raise packet.fault(_WORKGROUP, f"workgroup of {block}", f"at most {MAX_WORKGROUP} work-items")
    if grid[0] * grid[1] * grid[2] > GRID_MAX_SIZE:
        raise packet.fault(_GRID, f"grid of {grid}", f"at most {GRID_MAX_SIZE} work-items")


def _kernel(packet: AqlPacket, memory: Memory, family: Family) -> Descriptor:
    address = packet.address(_KERNEL, DESCRIPTOR_ALIGN, "kernel_object")
    with packet.noted("kernel_object"):
        kernel = read_descriptor(address, memory, family, f"AQL packet {packet.index}")
    kernarg = packet.address(_KERNARG, KERNARG_ALIGN, "kernarg_address")
    if kernel.kernarg_bytes:
        with packet.noted("kernarg_address"):
            memory.bytes_at(kernarg, kernel.kernarg_bytes)
    return kernel


def _lds_units(packet: AqlPacket, kernel: Descriptor) -> int:
    nbytes, most = packet.words[_GROUP], MAX_LDS_UNITS * LDS_GRANULE_BYTES
    if not kernel.group_bytes <= nbytes <= most:
        allowed = f"{kernel.group_bytes} (what the kernel has) to {most} bytes"
        raise packet.fault(_GROUP, "group_segment_size", allowed)
    return -(-nbytes // LDS_GRANULE_BYTES)
