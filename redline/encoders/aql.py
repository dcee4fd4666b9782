# SPDX-License-Identifier: Apache-2.0
"""AQL packets: 16 dwords, as the packet processor reads them from the ring.

Builds whole packets, header included. Does not reserve ring slots, order the header's store or ring
doorbells: `redline.hsa.queue` does, and stores dword 0 last.

Sources: R = ROCr inc/hsa.h:2814-2962, 3129, inc/hsa_ext_amd.h:109 and
core/runtime/amd_aql_queue.cpp:1517-1546; A = aqlprofile src/core/amd_aql_pm4_ib_packet.h:30-44.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from redline.encoders import pm4
from redline.encoders.limits import KERNARG_ALIGN, check_address, geometry
from redline.encoders.table import Field, Layout, Value, Word, dword, flag
from redline.errors import EncodeError

SCOPES = {"NONE": 0, "AGENT": 1, "SYSTEM": 2}
HEADER_FIELDS = (
    Field("TYPE", 7, 0, {"VENDOR": 0, "KERNEL_DISPATCH": 2, "BARRIER_AND": 3, "BARRIER_OR": 5}),
    flag("BARRIER", 8),
    Field("ACQUIRE", 10, 9, SCOPES),
    Field("RELEASE", 12, 11, SCOPES),
)
HEADER = Word("HEADER", HEADER_FIELDS)
# The first dependencies of a barrier packet that are not null are what it waits for.
BARRIER_DEPENDENCIES = 5


def _address(name: str) -> tuple[Word, Word]:
    return dword(f"{name}_LO"), dword(f"{name}_HI")


# hsa.h:2959. Sizes of the grid are work-items.
KERNEL_DISPATCH = Layout(
    "KERNEL_DISPATCH",
    (
        Word("HEADER", (*HEADER_FIELDS, Field("DIMENSIONS", 17, 16))),
        Word("WORKGROUP", (Field("WORKGROUP_SIZE_X", 15, 0), Field("WORKGROUP_SIZE_Y", 31, 16))),
        Word("WORKGROUP_Z", (Field("WORKGROUP_SIZE_Z", 15, 0),)),
        dword("GRID_SIZE_X"),
        dword("GRID_SIZE_Y"),
        dword("GRID_SIZE_Z"),
        dword("PRIVATE_SEGMENT_SIZE"),
        dword("GROUP_SEGMENT_SIZE"),
        *_address("KERNEL_OBJECT"),
        *_address("KERNARG"),
        Word("RESERVED_12", ()),
        Word("RESERVED_13", ()),
        *_address("COMPLETION_SIGNAL"),
    ),
)

_BARRIER = (
    HEADER,
    Word("RESERVED_1", ()),
    *(word for i in range(BARRIER_DEPENDENCIES) for word in _address(f"DEPENDENCY_{i}")),
    Word("RESERVED_12", ()),
    Word("RESERVED_13", ()),
    *_address("COMPLETION_SIGNAL"),
)
# hsa.h:3129 and 3169: one layout, two types.
BARRIER_AND = Layout("BARRIER_AND", _BARRIER)
BARRIER_OR = Layout("BARRIER_OR", _BARRIER)

# amd_aql_queue.cpp:1517-1546: format 1, a whole INDIRECT_BUFFER packet, and how many dwords follow it.
PM4_IB = Layout(
    "PM4_IB",
    (
        Word("HEADER", (*HEADER_FIELDS, Field("FORMAT", 31, 16, {"PM4_IB": 1}))),
        dword("IB_HEADER"),
        dword("IB_BASE_LO"),
        dword("IB_BASE_HI"),
        dword("IB_CONTROL"),
        dword("REMAINING"),
        *(Word(f"RESERVED_{i}", ()) for i in range(6, 14)),
        *_address("COMPLETION_SIGNAL"),
    ),
)
PM4_IB_REMAINING = 0xA

# The indirect buffer packet is the same on every family while its policy is 0.
_INDIRECT_BUFFER = pm4.indirect_buffer(pm4.CACHE_POLICY)


def header(kind: str, *, barrier: bool = True, acquire: str = "SYSTEM", release: str = "SYSTEM") -> int:
    """The 16-bit header of a packet.

    >>> hex(header("KERNEL_DISPATCH"))
    '0x1502'
    >>> hex(header("BARRIER_AND", acquire="AGENT", release="AGENT"))
    '0xb03'
    """
    return HEADER.pack(TYPE=kind, BARRIER=int(barrier), ACQUIRE=acquire, RELEASE=release)


def _halves(name: str, value: int) -> dict[str, Value]:
    return {f"{name}_LO": value & 0xFFFFFFFF, f"{name}_HI": value >> 32}


def _packet(layout: Layout, word: int, kind: str, values: Mapping[str, Value]) -> NDArray[np.uint32]:
    fields = HEADER.unpack(word, f"{layout.name}.header")
    if fields["TYPE"] != HEADER.by_name["TYPE"].names[kind]:
        raise EncodeError(
            "RL0501", where=f"{layout.name}.header", seen=f"{word:#06x}", allowed=f"type {kind}", do="see aql.header"
        )
    return np.array(layout.body({**fields, **values}), np.uint32)


def kernel_dispatch_packet(
    kernel_object: int,
    kernarg: int,
    *,
    global_size: int | Sequence[int],
    block: int | Sequence[int],
    group_bytes: int = 0,
    private_bytes: int = 0,
    completion_signal: int = 0,
    header: int = 0x1502,
) -> NDArray[np.uint32]:
    """Launch `global_size` work-items in workgroups of `block`. `kernel_object` is the descriptor's GPU
    address.
    """
    size, group = geometry("KERNEL_DISPATCH", global_size, block)
    check_address("KERNEL_DISPATCH.kernel_object", kernel_object, 64)
    check_address("KERNEL_DISPATCH.kernarg", kernarg, KERNARG_ALIGN)
    # hsa.h: sizes beyond the dimensions in use must be 1, the workgroup's as well as the grid's.
    dimensions = max(i for i in range(1, 4) if i == 1 or max(size[i - 1], group[i - 1]) > 1)
    values: dict[str, Value] = {
        "DIMENSIONS": dimensions,
        **{f"WORKGROUP_SIZE_{axis}": n for axis, n in zip("XYZ", group, strict=True)},
        **{f"GRID_SIZE_{axis}": n for axis, n in zip("XYZ", size, strict=True)},
        "PRIVATE_SEGMENT_SIZE": private_bytes,
        "GROUP_SEGMENT_SIZE": group_bytes,
        **_halves("KERNEL_OBJECT", kernel_object),
        **_halves("KERNARG", kernarg),
        **_halves("COMPLETION_SIGNAL", completion_signal),
    }
    return _packet(KERNEL_DISPATCH, header, "KERNEL_DISPATCH", values)


def barrier_and_packet(
    dependencies: Sequence[int], completion_signal: int = 0, *, header: int = 0x1503
) -> NDArray[np.uint32]:
    """Wait until every dependency signal is 0. Null handles are left out; at most five remain."""
    return _barrier(BARRIER_AND, dependencies, completion_signal, header)


def barrier_or_packet(
    dependencies: Sequence[int], completion_signal: int = 0, *, header: int = 0x1505
) -> NDArray[np.uint32]:
    """Wait until any dependency signal is 0. Null handles are left out; one to five remain."""
    if not any(dependencies):
        raise EncodeError(
            "RL0509", where="BARRIER_OR", seen="no dependency", allowed="1..5", do="name what may end the wait"
        )
    return _barrier(BARRIER_OR, dependencies, completion_signal, header)


def _barrier(layout: Layout, dependencies: Sequence[int], completion_signal: int, header: int) -> NDArray[np.uint32]:
    signals = [signal for signal in dependencies if signal]
    if len(signals) > BARRIER_DEPENDENCIES:
        raise EncodeError(
            "RL0509",
            where=layout.name,
            seen=f"{len(signals)} dependencies",
            allowed=f"at most {BARRIER_DEPENDENCIES}",
            do="chain two packets",
        )
    values = _halves("COMPLETION_SIGNAL", completion_signal)
    for i, signal in enumerate(signals):
        values |= _halves(f"DEPENDENCY_{i}", signal)
    return _packet(layout, header, layout.name, values)


def pm4_ib_packet(ib_va: int, dwords: int, completion_signal: int = 0, *, header: int = 0x1500) -> NDArray[np.uint32]:
    """Execute the indirect buffer of `dwords` dwords at `ib_va`. 0x1500: barrier bit, system scopes."""
    check_address("PM4_IB.ib_va", ib_va, 4)
    if dwords < 1:
        raise EncodeError("RL0509", where="PM4_IB", seen=f"{dwords} dwords", allowed="1..0xfffff", do="fill it")
    form = pm4.FORMS["indirect_buffer"]
    ib = _INDIRECT_BUFFER.pack(
        (), **form.values, IB_BASE_LO=(ib_va & 0xFFFFFFFF) >> 2, IB_BASE_HI=ib_va >> 32, IB_SIZE=dwords
    )
    names = ("IB_HEADER", "IB_BASE_LO", "IB_BASE_HI", "IB_CONTROL")
    values: dict[str, Value] = {
        "FORMAT": "PM4_IB",
        **dict(zip(names, ib, strict=True)),
        "REMAINING": PM4_IB_REMAINING,
        **_halves("COMPLETION_SIGNAL", completion_signal),
    }
    return _packet(PM4_IB, header, "VENDOR", values)
