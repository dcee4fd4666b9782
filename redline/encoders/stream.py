# SPDX-License-Identifier: Apache-2.0
"""The low-level PM4 builder: for users who own their addresses and their dependencies.

Collects operations and encodes them on demand. Derives no fence, relocates nothing and submits nothing;
drains by EVENT_WRITE CS_PARTIAL_FLUSH on every family (a gfx10 with old microcode may return early from it:
see `FamilyTable.partial_flush_is_trusted`). `lint.py` reads what was built.

What the packet processor reads and writes by itself (indirect arguments, fences, timestamps) goes past GL2 on
gfx12: what a shader wrote there needs a `release_system` first, and a shader that reads it an
`acquire_system`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redline.encoders.dispatch import DispatchWords, dispatch_operation, operation
from redline.encoders.emit import (
    ACQUIRE,
    DRAIN,
    OPERATION,
    RELOC,
    SETUP,
    WORDS,
    WORDS_HERE,
    emit_program,
    max_dwords,
    max_relocs,
)
from redline.encoders.families import family_for
from redline.encoders.limits import check_address
from redline.encoders.table import FamilyTable
from redline.errors import EncodeError

__all__ = ["DispatchWords", "Pm4Stream"]

Size = int | Sequence[int]


class Pm4Stream:
    """A PM4 stream for one target, with real addresses.

    Addresses (`_va`) are in bytes as the GPU sees them: below 2**48, aligned as each call says. Sizes of launches are
    work-items, of words and buffers dwords of 4 bytes. Every call checks before it adds: what raises leaves the stream
    as it was. Raises UnsupportedTarget for a target that is not on the list. Source of the words: the family's table,
    `redline tables TARGET`.

    >>> s = Pm4Stream("gfx1201")
    >>> s.wait_idle()
    >>> [f"{word:08X}" for word in s.words]
    ['C0004600', '00000407']
    """

    def __init__(self, target: str | FamilyTable, *, elide: bool = False) -> None:
        self.table = family_for(target) if isinstance(target, str) else target
        self.elide = elide
        self._operations: list[np.void] = []
        self._packed: dict[int, list[int]] = {}  # words of the WORDS operations, by place in `_operations`
        self._chained = False

    def acquire_system(self) -> None:
        """Make what the host and other agents wrote visible; waits for nothing. Raises EncodeError behind `chain`."""
        self._acquire(self.table.entry_gcr)

    def dispatch(self, words: DispatchWords, *, global_size: Size, block: Size) -> None:
        """Launch `global_size` work-items in workgroups of `block`; waits for nothing.

        Raises EncodeError for an address or a size beyond its limit and behind `chain`, UnsupportedKernel for a kernel
        that a raw dispatch cannot launch.
        """
        self._add(self._launch(words, global_size, block))

    def dispatch_indirect(self, words: DispatchWords, *, args_va: int, block: Size) -> None:
        """Launch as many workgroups of `block` as three dwords at `args_va` say when the packet is read.

        `args_va` is 4-byte aligned. Waits for nothing: a kernel that writes the counts must have ended, and on
        gfx12 be written back. Raises EncodeError and UnsupportedKernel as `dispatch` does.
        """
        lo, hi = _halves("args_va", args_va, 4)
        row = self._launch(words, block, block)
        initiator = self.table.initiator.unpack(int(row["initiator"]))
        row["code"] = SETUP
        packet = self.table.form("dispatch_indirect", (), ADDR_LO=lo >> 2, ADDR_HI=hi, **initiator)
        self._add(row)
        self._emit(packet)

    def wait_idle(self) -> None:
        """Wait until every dispatch before has ended; refreshes no cache. Raises EncodeError behind `chain`."""
        self._add(operation(DRAIN))

    def barrier(self, *, vmem_only: bool = False) -> None:
        """Drain, then a same-agent acquire: what dispatches before wrote, dispatches behind read.

        `vmem_only` leaves the scalar cache alone: only for readers whose loads of that data are all vector
        loads. Raises EncodeError behind `chain`.
        """
        self.wait_idle()
        self._acquire(self.table.acquire_gcr(k=not vmem_only, v=True))

    def release_system(self) -> None:
        """Drain, then write back, so that the host and other agents can read. Raises EncodeError behind `chain`."""
        self.wait_idle()
        self._acquire(self.table.release_gcr)

    def release_fence(self, va: int, value: int) -> None:
        """Store 64 bits of `value` at `va`, 8-byte aligned, once every dispatch before has ended and been written back.

        The stream goes on at once; `wait_memory64`, another queue or the host may wait for the value. Raises
        EncodeError for an address or a value that does not fit, and behind `chain`.
        """
        lo, hi = _halves("va", va, 8)
        self._emit(self.table.form("release_fence", (), ADDR_LO=lo, ADDR_HI=hi, **_data("DATA", value)))

    def wait_memory(self, va: int, value: int, function: str = ">=") -> None:
        """Stop reading the stream until the dword at `va`, 4-byte aligned, compares so with `value`.

        `function`: "ALWAYS", "<", "<=", "==", "!=", ">=" or ">", unsigned. Raises EncodeError for another one, for an
        address or a value that does not fit, and behind `chain`.
        """
        lo, hi = _halves("va", va, 4)
        self._emit(self.table.form("wait_memory", ADDR_LO=lo, ADDR_HI=hi, REFERENCE=value, FUNCTION=function))

    def wait_memory64(self, va: int, value: int, function: str = ">=") -> None:
        """As `wait_memory`, for 64 bits at `va`, 8-byte aligned. Raises EncodeError as it does."""
        lo, hi = _halves("va", va, 8)
        reference = _data("REFERENCE", value)
        self._emit(self.table.form("wait_memory64", (), ADDR_LO=lo, ADDR_HI=hi, FUNCTION=function, **reference))

    def timestamp_top(self, va: int) -> None:
        """Store the GPU clock, 64 bits, at `va`, 8-byte aligned, when the packet is read; waits for nothing.

        Raises EncodeError for an address that does not fit, and behind `chain`.
        """
        lo, hi = _halves("va", va, 8)
        self._emit(self.table.form("timestamp_top", DST_LO=lo, DST_HI=hi))

    def timestamp_bottom(self, va: int) -> None:
        """Store the GPU clock, 64 bits, at `va`, 8-byte aligned, once every dispatch before has ended.

        Raises EncodeError for an address that does not fit, and behind `chain`.
        """
        lo, hi = _halves("va", va, 8)
        self._emit(self.table.form("timestamp_bottom", ADDR_LO=lo, ADDR_HI=hi))

    def write_data(self, va: int, words: Sequence[int]) -> None:
        """Store dwords at `va`, 4-byte aligned, and wait for the confirmation; does not wait for dispatches.

        Raises EncodeError for an address or a word that does not fit, for no words or too many, and behind `chain`.
        """
        lo, hi = _halves("va", va, 4)
        self._emit(self.table.form("write_data", words, ADDR_LO=lo, ADDR_HI=hi))

    def copy_data(self, source_va: int, destination_va: int, *, bits: int = 32) -> None:
        """Copy 32 or 64 bits, as much aligned, and wait for the confirmation; does not wait for dispatches.

        Raises EncodeError for another number of bits, for an address that does not fit, and behind `chain`.
        """
        if bits not in (32, 64):
            raise EncodeError("RL0501", where="COPY_DATA.bits", seen=str(bits), allowed="32 or 64", do="copy in parts")
        lo, hi = _halves("source_va", source_va, bits // 8)
        to_lo, to_hi = _halves("destination_va", destination_va, bits // 8)
        self._emit(
            self.table.form("copy_data", COUNT_SEL=f"{bits}_BIT", SRC_LO=lo, SRC_HI=hi, DST_LO=to_lo, DST_HI=to_hi)
        )

    def nop(self, dwords: int) -> None:
        """Padding of exactly `dwords` dwords, 1 to 16,384.

        Raises EncodeError for another number, and behind `chain`.
        """
        packet = self.table.packet["NOP"]
        if dwords < 1:
            raise EncodeError("RL0509", where="NOP", seen=f"{dwords} dwords", allowed="1..16384", do="leave it out")
        self._emit([packet.pad()] if dwords == 1 else packet.pack([0] * (dwords - 1)))

    def chain(self, ib_va: int, dwords: int) -> None:
        """Go on with the indirect buffer of `dwords` dwords at `ib_va`, 4-byte aligned, and never come back.

        The last call: what would follow is refused. The other stream ends as this one would have to. Raises EncodeError
        for an address or a length that does not fit, and behind another `chain`.
        """
        lo, hi = _halves("ib_va", ib_va, 4)
        if dwords < 1:
            raise EncodeError("RL0509", where="chain", seen=f"{dwords} dwords", allowed="1..0xfffff", do="fill it")
        self._emit(self.table.form("chain", IB_BASE_LO=lo >> 2, IB_BASE_HI=hi, IB_SIZE=dwords))
        self._chained = True

    @property
    def words(self) -> NDArray[np.uint32]:
        """The stream as encoded dwords: a copy of shape (dwords,), the caller's own."""
        ops = np.array(self._operations, OPERATION)
        words = np.zeros(max_dwords(ops), np.uint32)
        relocs = np.zeros(max_relocs(ops), RELOC)
        count, places = emit_program(ops, words, relocs, self.table.family(), self.elide)
        for row in relocs[: int(places)]:
            assert row["kind"] == WORDS_HERE  # every address is real
            packed = self._packed[int(row["index"])]
            words[row["dword"] : row["dword"] + len(packed)] = packed
        return words[: int(count)].copy()

    def _launch(self, words: DispatchWords, global_size: Size, block: Size) -> np.void:
        for name, address in (("entry", words.entry), ("kernarg", words.kernarg)):
            if address == 0 and (name == "entry" or words.takes_kernarg):
                raise EncodeError(
                    "RL0505",
                    where=f"{words.name}.{name}",
                    seen="0x0",
                    allowed="a real address",
                    do="give one",
                )
        return dispatch_operation(self.table, words, global_size, block)

    def _acquire(self, gcr: int) -> None:
        self._add(operation(ACQUIRE, gcr=gcr))

    def _emit(self, words: list[int]) -> None:
        self._add(operation(WORDS, value=len(words)))
        self._packed[len(self._operations) - 1] = words

    def _add(self, row: np.void) -> None:
        if self._chained:
            raise EncodeError(
                "RL0511",
                where="Pm4Stream",
                seen="a packet behind chain()",
                allowed="nothing: the chained buffer does not come back",
                do="put it into the chained buffer",
            )
        self._operations.append(row)


def _halves(name: str, address: int, align: int) -> tuple[int, int]:
    check_address(name, address, align)
    if address == 0:
        raise EncodeError("RL0505", where=name, seen="0x0", allowed="a real address", do="give one")
    return address & 0xFFFFFFFF, address >> 32


def _data(name: str, value: int) -> dict[str, int]:
    """64 bits as two fields; a negative or longer value fits neither."""
    return {f"{name}_LO": value & 0xFFFFFFFF, f"{name}_HI": value >> 32}
