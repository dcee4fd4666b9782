# SPDX-License-Identifier: Apache-2.0
"""The bytes of a linked object at the addresses where its PT_LOAD segments put them.

As a loader sees them: sections do not matter here. Applies no relocations and loads nothing.
"""

from __future__ import annotations

from radiowave import elf as e
from radiowave.errors import CodeObjectError

# ROCr makes one allocation over all segments; above this an address is damage.
MAX_IMAGE_BYTES = 1 << 32
# Kernels may share code, but an object that names the same bytes over and over costs time without end.
MAX_CODE_READS = 16


class LoadImage:
    """Checked access to the loaded segments of a linked object."""

    def __init__(self, elf: e.Elf) -> None:
        self.elf = elf
        self.segments = [segment for segment in elf.segments if segment.type == e.PT_LOAD]
        self._code_budget = MAX_CODE_READS * len(elf.data)
        end = 0
        for segment in self.segments:
            if segment.address < end or segment.file_bytes > segment.memory_bytes:
                allowed = f"at or above {end:#x}, no more bytes in the file than in memory"
                raise self._misplaced(segment, allowed)
            elf.check_range(segment.offset, segment.file_bytes, f"segment at {segment.address:#x}")
            end = segment.address + segment.memory_bytes
            if end > MAX_IMAGE_BYTES:
                raise self._misplaced(segment, f"below {MAX_IMAGE_BYTES:#x}")

    def bytes_at(self, address: int, nbytes: int, where: str) -> bytes:
        """File bytes at an address; all of them inside one segment."""
        segment = self._segment(address, nbytes)
        if segment is None:
            seen = f"{address:#x}..{address + nbytes:#x}"
            raise self.elf.error("RW0307", where, seen, "inside the file bytes of one loaded segment")
        start = segment.offset + address - segment.address
        return self.elf.data[start : start + nbytes]

    def executable_bytes(self, address: int, nbytes: int, where: str) -> bytes:
        """The same, in a segment that may run and not be written."""
        segment = self._segment(address, nbytes)
        if segment is None or not segment.flags & e.PF_X or segment.flags & e.PF_W:
            seen = f"code at {address:#x}..{address + nbytes:#x}"
            raise self.elf.error("RW0311", where, seen, "inside one executable segment that is not writable")
        self._code_budget -= nbytes
        if self._code_budget < 0:
            allowed = f"{MAX_CODE_READS} times the file's {len(self.elf.data):,} bytes"
            raise self.elf.error("RW0313", where, "kernels that share too much code", allowed)
        return self.bytes_at(address, nbytes, where)

    def _segment(self, address: int, nbytes: int) -> e.Segment | None:
        for segment in self.segments:
            if segment.address <= address and address + nbytes <= segment.address + segment.file_bytes:
                return segment
        return None

    def _misplaced(self, segment: e.Segment, allowed: str) -> CodeObjectError:
        seen = f"{segment.file_bytes:#x} bytes in the file, {segment.memory_bytes:#x} in memory"
        return self.elf.error("RW0307", f"segment at {segment.address:#x}", seen, allowed)
