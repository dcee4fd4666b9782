# SPDX-License-Identifier: Apache-2.0
"""Write PM4 words, and fill in addresses: all nopython code of the encoders, and the arrays that it takes.

One call writes a whole program. Family numbers come in as a `Family` tuple and every value is a whole dword
that Python has packed and checked before (`table.py`, `dispatch.py`): nothing here checks a range.

Does not know a target, check a value, choose a fence or size a buffer; it allocates nothing but its register
shadow. Imports nothing of ours: numba caches by this file's content alone and would not notice an edit
elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Operation codes.
ACQUIRE, DRAIN, FENCE_ZERO, FENCE_DRAIN, DISPATCH = 0, 1, 2, 3, 4
# SETUP sets a launch's registers and leaves its packet to the WORDS behind it. WORDS leaves room for words that
# Python has packed, and a WORDS_HERE row to find it by.
SETUP, WORDS = 5, 6

# Relocation kinds: which table of addresses a relocated dword takes its value from.
KERNEL_ENTRY, KERNARG, BUFFER, OWNED = 0, 1, 2, 3
# Not a relocation: where the words of a WORDS operation belong. Its index is the operation's.
WORDS_HERE = 4

NO_KERNARG = 0xFFFFFFFF
USER_DATA_LIMIT = 16

OPERATION = np.dtype(
    [
        ("code", "<u4"),
        ("gcr", "<u4"),  # ACQUIRE: GCR_CNTL
        ("value", "<u4"),  # FENCE_DRAIN: k, the value that the k-th drain stores and waits for. WORDS: how many
        ("threads", "<u4", (3,)),  # COMPUTE_NUM_THREAD_X, _Y, _Z
        ("dims", "<u4", (3,)),  # DISPATCH_DIRECT: workgroups or work-items, as the initiator says
        ("initiator", "<u4"),
        ("rsrc1", "<u4"),
        ("rsrc2", "<u4"),
        ("rsrc3", "<u4"),
        ("user_count", "<u4"),  # USER_DATA words written, = RSRC2.USER_SGPR
        (
            "kernarg_at",
            "<u4",
        ),  # which USER_DATA word holds the low half of the kernarg address; or NO_KERNARG
        ("entry", "<u8"),  # real addresses; not read where the relocation index below is >= 0
        ("kernarg", "<u8"),
        ("fence", "<u8"),
        ("entry_reloc", "<i4"),  # index into that kind's table of addresses; -1: the address above is real
        ("kernarg_reloc", "<i4"),
        ("fence_reloc", "<i4"),
    ]
)

# half: 0 low, 1 high. A kernel entry is split as PGM_LO = address >> 8 and PGM_HI = address >> 40.
RELOC = np.dtype([("dword", "<u4"), ("kind", "<u4"), ("half", "<u4"), ("index", "<u4"), ("addend", "<i8")])
KERNARG_RELOC = np.dtype([("offset", "<u4"), ("buffer", "<u4"), ("addend", "<i8")])


class Family(NamedTuple):
    """What the emitters need of a family; `FamilyTable.family()` packs it from the tables.

    numba caches compiled readers by position: fields are added at the end or the cache is cleared by this
    very edit.
    """

    set_sh_reg: int  # header of a SET_SH_REG without values: add n << 16 for n registers
    num_thread_x: int
    pgm_lo: int
    pgm_rsrc1: int
    resource_limits: int
    pgm_rsrc3: int
    user_data_0: int
    dispatch_direct: int
    event_write: int
    cs_partial_flush: int
    acquire_mem: int
    coher_size: int
    coher_size_hi: int
    poll_interval: int
    write_data: int
    write_data_control: int
    release_mem: int
    release_event: int
    release_select: int
    wait_reg_mem: int
    wait_control: int
    wait_mask: int
    wait_poll_interval: int


# Dwords of an operation, by code; a launch also has its SET_SH_REG packets.
_DWORDS = np.array([8, 2, 5, 15, 5, 0, 0], np.int64)
_RELOCS = np.array([0, 0, 2, 4, 4, 4, 1], np.int64)
# Registers in each SET_SH_REG packet of a launch: threads, program, resources, limits, rsrc3. User data varies.
_RUNS = (3, 2, 2, 1, 1)


def max_dwords(ops: NDArray[np.void]) -> int:
    """How many dwords `emit_program` may write for `ops`: a few a launch more than it needs without elision."""
    return int(each_max_dwords(ops).sum())


def each_max_dwords(ops: NDArray[np.void]) -> NDArray[np.int64]:
    """The same for each operation, of the shape of `ops`.

    Elision splits n registers into at most (n + 1) // 2 packets, which is n + (n + 1) // 2 + 1 dwords at worst.
    """
    users = ops["user_count"].astype(np.int64)
    runs = sum(n + (n + 1) // 2 + 1 for n in _RUNS)
    launch = runs + users + (users + 1) // 2 + (users > 0)
    codes = ops["code"]
    more = np.where((codes == DISPATCH) | (codes == SETUP), launch, np.where(codes == WORDS, ops["value"], 0))
    dwords: NDArray[np.int64] = _DWORDS[codes] + more
    return dwords


def max_relocs(ops: NDArray[np.void]) -> int:
    """How many relocations `emit_program` may write for `ops`."""
    return int(_RELOCS[ops["code"]].sum())


# Helpers are inlined before compilation: one function to compile and cache, and no array is passed on.
_inlined = njit(inline="always", error_model="numpy")
_compiled = njit(cache=True, error_model="numpy")

# uint64 indices need no test for negative ones. A uint64 plus an int64 is a float64 to numba, hence typed
# constants.
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_FIVE = np.uint64(5)
_SEVEN = np.uint64(7)
_EIGHT = np.uint64(8)
_SIXTEEN = np.uint64(16)
_THIRTY_TWO = np.uint64(32)
_FORTY = np.uint64(40)
_LOW = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)

# What a register holds, as far as this stream knows: a value below 2**32; a relocation, named by these bits
# and an index; or nothing known. Relocated registers are equal only when they name the same source, never by
# value.
_RELOCATED = np.uint64(1 << 63)
_KIND_BIT = np.uint64(33)
_ENTRY_LOW = np.uint64(1 << 63 | KERNEL_ENTRY << 33)
_ENTRY_HIGH = np.uint64(1 << 63 | KERNEL_ENTRY << 33 | 1 << 32)
_KERNARG_LOW = np.uint64(1 << 63 | KERNARG << 33)
_KERNARG_HIGH = np.uint64(1 << 63 | KERNARG << 33 | 1 << 32)
_UNKNOWN = np.uint64(0xFFFFFFFFFFFFFFFF)

# Places of the registers that a launch writes, in stream order. User data comes last, because its length
# varies.
_THREADS, _PROGRAM, _RESOURCES, _LIMITS, _RSRC3, _USER = 0, 3, 5, 7, 8, 9
_PLACES = _USER + USER_DATA_LIMIT


@_inlined
def _places(family):  # type: ignore[no-untyped-def]
    """The register of each place."""
    registers = np.empty(_PLACES, np.uint32)
    for i in range(3):
        registers[_THREADS + i] = family.num_thread_x + i
    for i in range(2):
        registers[_PROGRAM + i] = family.pgm_lo + i
        registers[_RESOURCES + i] = family.pgm_rsrc1 + i
    registers[_LIMITS] = family.resource_limits
    registers[_RSRC3] = family.pgm_rsrc3
    for i in range(USER_DATA_LIMIT):
        registers[_USER + i] = family.user_data_0 + i
    return registers


@_inlined
def _want_program(op, wanted):  # type: ignore[no-untyped-def]
    if op["entry_reloc"] < 0:
        wanted[_PROGRAM] = (op["entry"] >> _EIGHT) & _LOW
        wanted[_PROGRAM + 1] = op["entry"] >> _FORTY
    else:
        wanted[_PROGRAM] = _ENTRY_LOW | np.uint64(op["entry_reloc"])
        wanted[_PROGRAM + 1] = _ENTRY_HIGH | np.uint64(op["entry_reloc"])


@_inlined
def _want_user_data(op, wanted):  # type: ignore[no-untyped-def]
    """RSRC2.USER_SGPR words: the kernarg address where the kernel expects it, zeros elsewhere."""
    for i in range(op["user_count"]):
        wanted[_USER + i] = 0
    if op["kernarg_at"] == NO_KERNARG:
        return
    at = _USER + np.int64(op["kernarg_at"])
    if op["kernarg_reloc"] < 0:
        wanted[at] = op["kernarg"] & _LOW
        wanted[at + 1] = op["kernarg"] >> _THIRTY_TWO
    else:
        wanted[at] = _KERNARG_LOW | np.uint64(op["kernarg_reloc"])
        # The arena lies in one 4 GiB window, so every slot has the same high half: no index.
        wanted[at + 1] = _KERNARG_HIGH


@_inlined
def _want(op, wanted):  # type: ignore[no-untyped-def]
    """What the registers must hold for this launch; returns how many places it uses."""
    threads = op["threads"]
    for i in range(3):
        wanted[_THREADS + i] = threads[i]
    _want_program(op, wanted)
    wanted[_RESOURCES] = op["rsrc1"]
    wanted[_RESOURCES + 1] = op["rsrc2"]
    # 0 is no limit. Written, because an earlier user of the queue may have left another value.
    wanted[_LIMITS] = 0
    wanted[_RSRC3] = op["rsrc3"]
    _want_user_data(op, wanted)
    return _USER + np.int64(op["user_count"])


@_inlined
def _relocate(relocs, n, dword, kind, half, index):  # type: ignore[no-untyped-def]
    row = relocs[n]
    row["dword"] = dword
    row["kind"] = kind
    row["half"] = half
    row["index"] = index
    row["addend"] = 0
    return n + _ONE


@_inlined
def _relocate_register(relocs, n, dword, value, op):  # type: ignore[no-untyped-def]
    kind = (value >> _KIND_BIT) & _ONE
    index = op["entry_reloc"] if kind == KERNEL_ENTRY else op["kernarg_reloc"]
    return _relocate(relocs, n, dword, kind, (value >> _THIRTY_TWO) & _ONE, index)


@_inlined
def _emit_registers(words, at, relocs, n, op, registers, wanted, shadow, elide, header_base):  # type: ignore[no-untyped-def]
    """SET_SH_REG packets for what is wanted and not there yet. Consecutive registers share a packet."""
    header, following = at, np.uint32(0)
    for place in range(_want(op, wanted)):
        value = wanted[place]
        if elide and shadow[place] == value:
            continue
        shadow[place] = value
        register = registers[place]
        if register != following:
            header = at
            words[at + _ONE] = register
            at += _TWO
        if value < _RELOCATED:
            words[at] = value
        else:
            words[at] = 0
            n = _relocate_register(relocs, n, at, value, op)
        at += _ONE
        words[header] = header_base + ((at - header - _TWO) << _SIXTEEN)
        following = np.uint32(register + 1)
    return at, n


@_inlined
def _emit_dispatch(words, at, op, family):  # type: ignore[no-untyped-def]
    out, dims = words[at : at + _FIVE], op["dims"]
    out[0] = family.dispatch_direct
    out[1], out[2], out[3] = dims[0], dims[1], dims[2]
    out[4] = op["initiator"]
    return at + _FIVE


@_inlined
def _emit_acquire(words, at, op, family):  # type: ignore[no-untyped-def]
    """ACQUIRE_MEM over all of memory."""
    out = words[at : at + _EIGHT]
    out[0], out[1] = family.acquire_mem, 0
    out[2], out[3] = family.coher_size, family.coher_size_hi
    out[4], out[5] = 0, 0
    out[6], out[7] = family.poll_interval, op["gcr"]
    return at + _EIGHT


@_inlined
def _emit_drain(words, at, family):  # type: ignore[no-untyped-def]
    words[at], words[at + _ONE] = family.event_write, family.cs_partial_flush
    return at + _TWO


@_inlined
def _emit_fence_address(words, at, relocs, n, op):  # type: ignore[no-untyped-def]
    out = words[at : at + _TWO]
    if op["fence_reloc"] < 0:
        out[0], out[1] = op["fence"] & _LOW, op["fence"] >> _THIRTY_TWO
        return n
    out[0], out[1] = 0, 0
    n = _relocate(relocs, n, at, OWNED, 0, op["fence_reloc"])
    return _relocate(relocs, n, at + _ONE, OWNED, 1, op["fence_reloc"])


@_inlined
def _emit_fence_zero(words, at, relocs, n, op, family):  # type: ignore[no-untyped-def]
    """WRITE_DATA of 0 with confirm: a late zero would hang the wait, and an early poll see the last replay's
    value.
    """
    out = words[at : at + _FIVE]
    out[0], out[1] = family.write_data, family.write_data_control
    out[4] = 0
    return at + _FIVE, _emit_fence_address(words, at + _TWO, relocs, n, op)


@_inlined
def _emit_fence_drain(words, at, relocs, n, op, family):  # type: ignore[no-untyped-def]
    """RELEASE_MEM stores k when every earlier dispatch has ended; WAIT_REG_MEM waits until k is there."""
    out = words[at : at + _EIGHT]
    out[0], out[1], out[2] = family.release_mem, family.release_event, family.release_select
    out[5], out[6], out[7] = op["value"], 0, 0
    n = _emit_fence_address(words, at + _THREE, relocs, n, op)
    at += _EIGHT
    out = words[at : at + _SEVEN]
    out[0], out[1] = family.wait_reg_mem, family.wait_control
    out[4], out[5], out[6] = op["value"], family.wait_mask, family.wait_poll_interval
    return at + _SEVEN, _emit_fence_address(words, at + _TWO, relocs, n, op)


@_compiled
def emit_program(ops, words, relocs, family, elide):  # type: ignore[no-untyped-def]
    """Write `ops` (OPERATION rows) into `words` and `relocs`; return how many of each were written.

    The caller sizes both with `max_dwords` and `max_relocs`. Relocated dwords are written as 0. With `elide`,
    an SH register that this call has already set to the same value, or to the same relocation, is not written
    again; nothing is assumed about registers before the first operation.
    """
    at, n = np.uint64(0), np.uint64(0)
    registers, wanted = _places(family), np.empty(_PLACES, np.uint64)
    shadow, header_base = np.full(_PLACES, _UNKNOWN, np.uint64), np.uint64(family.set_sh_reg)
    for i in range(len(ops)):
        op = ops[i]
        code = op["code"]
        if DISPATCH <= code <= SETUP:
            at, n = _emit_registers(words, at, relocs, n, op, registers, wanted, shadow, elide, header_base)
            if code == DISPATCH:
                at = _emit_dispatch(words, at, op, family)
        elif code == ACQUIRE:
            at = _emit_acquire(words, at, op, family)
        elif code == DRAIN:
            at = _emit_drain(words, at, family)
        elif code == WORDS:
            n = _relocate(relocs, n, at, WORDS_HERE, 0, np.uint32(i))
            at += np.uint64(op["value"])
        elif code == FENCE_ZERO:
            at, n = _emit_fence_zero(words, at, relocs, n, op, family)
        else:
            at, n = _emit_fence_drain(words, at, relocs, n, op, family)
    return at, n


@_compiled
def apply_relocs(words, relocs, entries, slots, buffers, owned):  # type: ignore[no-untyped-def]
    """Assign every relocated dword its half of `address + addend`; the four tables hold uint64 addresses, one
    per kind.
    """
    for i in range(len(relocs)):
        row = relocs[i]
        kind, index = row["kind"], row["index"]
        if kind == KERNEL_ENTRY:
            address = entries[index]
        elif kind == KERNARG:
            address = slots[index]
        elif kind == BUFFER:
            address = buffers[index]
        else:
            address = owned[index]
        # Signed: an addend may be negative, and addresses are below 2**48.
        address = np.uint64(np.int64(address) + row["addend"])
        if kind == KERNEL_ENTRY:
            address = address >> _EIGHT
        words[row["dword"]] = (address >> (np.uint64(row["half"]) * _THIRTY_TWO)) & _LOW


@_compiled
def apply_kernarg_relocs(image, relocs, buffers):  # type: ignore[no-untyped-def]
    """Store each buffer's `address + addend` into the kernarg bytes, 64 bits little-endian."""
    for i in range(len(relocs)):
        row = relocs[i]
        address = np.uint64(np.int64(buffers[row["buffer"]]) + row["addend"])
        offset = np.uint64(row["offset"])
        for j in range(8):
            image[offset + np.uint64(j)] = (address >> np.uint64(8 * j)) & _BYTE


@_compiled
def apply_patches(image, rows, values):  # type: ignore[no-untyped-def]
    """Copy bytes of `values` to the kernarg bytes; each row of three uint64 is offset there, source, and how many.

    (Not records: their types alone take numba as long as the copy.)
    """
    for i in range(rows.shape[0]):
        offset, source = rows[i, 0], rows[i, 1]
        for j in range(rows[i, 2]):
            image[offset + j] = values[source + j]
