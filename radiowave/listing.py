# SPDX-License-Identifier: Apache-2.0
"""Machine code of one object by address, disassembled when asked for.

Decodes in spans and keeps what it decoded. Two instructions may overlap: a jump into the middle of one is another
instruction, and is listed as such. Knows no control flow.
"""

from __future__ import annotations

from radiowave import elf as e
from radiowave.disassemble import Disassembler, Instruction
from radiowave.errors import CodeObjectError
from radiowave.image import LoadImage

_SPAN_BYTES = 4096


class Listing:
    """The instructions of an object's executable segments for waves of one size.

    Requests raise ToolchainError where the disassembler fails.
    """

    def __init__(self, image: LoadImage, target: str, wave: int, disassembler: Disassembler) -> None:
        self._image, self._target, self._wave, self._disassembler = image, target, wave, disassembler
        self._found: dict[int, Instruction | None] = {}

    def at(self, address: int, nbytes: int = _SPAN_BYTES) -> Instruction | None:
        """The instruction at an address; None outside of code and where nothing decodes. `nbytes` to decode at once."""
        if address not in self._found:
            for instruction in reversed(self._decode(address, nbytes)):
                self._found.setdefault(instruction.pc, instruction if instruction.text else None)
            self._found.setdefault(address, None)
        return self._found[address]

    def word(self, instruction: Instruction) -> int:
        """The first dword of an instruction: it says encoding and opcode."""
        return int.from_bytes(self._image.bytes_at(instruction.pc, 4, "code"), "little")

    def _decode(self, address: int, nbytes: int) -> list[Instruction]:
        for segment in self._image.segments:
            end = segment.address + segment.file_bytes
            if segment.flags & e.PF_X and segment.address <= address < end and address % 4 == 0:
                last = min(end, address + nbytes)
                try:
                    code = self._image.bytes_at(address, last - address, "code")
                except CodeObjectError:
                    return []
                found = self._disassembler.decode(code, address, self._target, self._wave)
                # What the end of the span cut through is decoded again from its own address.
                return found if last == end else _whole(found, last)
        return []


def _whole(found: list[Instruction], end: int) -> list[Instruction]:
    return [i for i in found if i.text or end - i.pc >= LONGEST_BYTES]


# Longer than any instruction: an image instruction with all its address dwords has five dwords.
LONGEST_BYTES = 32
