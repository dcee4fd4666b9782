# SPDX-License-Identifier: Apache-2.0
"""Every exception that Radiowave raises, on one screen.

::

    RadiowaveError               code, where, seen, allowed, do
    ├── ToolchainError     RW01   a compiler or disassembler is missing, failed, died or ran out of time
    ├── UnsupportedTarget  RW02   a GPU name or wave size that is not on the list
    ├── CodeObjectError    RW03   bytes that are not a usable, linked AMDGPU code object, nor a bundle of them
    └── LinkError          RW04   a relocatable object that the linker refuses

A message has four parts: where, what was seen, what is allowed, what to do. The code is stable; `CODES` has
one line for each. "Not certified" is a result, not an exception.
"""

from __future__ import annotations

CODES: dict[str, str] = {
    "RW0101": "the compiler process ended with an error or a signal",
    "RW0102": "no LLVM library with the AMDGPU disassembler was found",
    "RW0103": "the disassembler process died",
    "RW0104": "the disassembler process did not answer in time",
    "RW0105": "the compiler process did not finish in time",
    "RW0106": "the source does not fit the requested target, wave size or code object version",
    "RW0107": "the disassembler refused a request",
    "RW0108": "the source has no kernel",
    "RW0109": "no compiler for HIP was found, or not the one that was asked for",
    "RW0110": "the compiler refused the source",
    "RW0111": "the compiler lacks what was asked for",
    "RW0201": "unknown target",
    "RW0202": "unknown wave size",
    "RW0203": "unsupported code object version",
    "RW0301": "not an ELF file",
    "RW0302": "an ELF file of another kind",
    "RW0303": "not an AMDGPU HSA object",
    "RW0304": "unsupported code object version",
    "RW0305": "the ELF header names a GPU that is not supported",
    "RW0306": "not linked",
    "RW0307": "a table or section lies outside the file, or contradicts another",
    "RW0308": "metadata is missing or malformed",
    "RW0309": "a kernel descriptor is missing or malformed",
    "RW0310": "descriptor and metadata contradict each other",
    "RW0311": "an entry point lies outside the code or is misaligned",
    "RW0312": "an offload bundle, not one code object",
    "RW0313": "larger than the limits of the reader",
    "RW0314": "no such kernel",
    "RW0315": "a damaged offload bundle",
    "RW0316": "a compressed offload bundle, and nothing to unpack it with",
    "RW0317": "no code object for the target, or more than one",
    "RW0318": "a target feature that the GPU does not have",
    "RW0401": "a relocation type that the linker does not know",
    "RW0402": "a symbol that nothing defines",
    "RW0403": "a section that the linker does not place",
    "RW0404": "a relocation that does not fit its place",
    "RW0405": "more than one metadata note",
    "RW0406": "not a relocatable object",
    "RW0501": "not a catalogue of recipes, or a damaged one",
    "RW0502": "a row of a ledger that cannot be taken in",
    "RW0503": "recipes that contradict each other",
    "RW0504": "a resource contract that no kernel can have been the incumbent of",
    "RW0601": "not a manifest, or a damaged one",
    "RW0602": "a manifest of a schema that is not known",
    "RW0603": "a manifest whose own hash does not match",
    "RW0604": "a manifest for other bytes",
}

# Of one fact. The longest honest ones are lists of the ids in a bundle.
MOST_CHARACTERS = 2000


class RadiowaveError(Exception):
    """Base of the tree. `code` is one of `CODES` and starts with the class's own `prefix`."""

    prefix = "RW"

    def __init__(self, code: str, *, where: str, seen: str, allowed: str, do: str) -> None:
        if code not in CODES or not code.startswith(self.prefix):
            raise KeyError(f"{code} is not a code of {type(self).__name__}")
        self.code = code
        self.where, self.seen, self.allowed, self.do = map(_clipped, (where, seen, allowed, do))
        super().__init__(f"{code} {self.where}: {self.seen}; allowed: {self.allowed}; do: {self.do}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.where, self.seen, self.allowed, self.do)


def _clipped(fact: str) -> str:
    """A hostile file may hold names of any length; a message must still be one that can be read."""
    return fact if len(fact) <= MOST_CHARACTERS else f"{fact[:MOST_CHARACTERS]}..."


def _rebuild(kind: type[RadiowaveError], code: str, where: str, seen: str, allowed: str, do: str) -> RadiowaveError:
    return kind(code, where=where, seen=seen, allowed=allowed, do=do)


class ToolchainError(RadiowaveError):
    """A compiler or disassembler is missing, refused its input, died, or ran out of time."""

    prefix = "RW01"


class UnsupportedTarget(RadiowaveError):
    """A GPU name, wave size or code object version outside the explicit lists."""

    prefix = "RW02"


class CodeObjectError(RadiowaveError):
    """Bytes that are not a usable, linked AMDGPU code object."""

    prefix = "RW03"


class LinkError(RadiowaveError):
    """A relocatable object that the linker refuses."""

    prefix = "RW04"


class RecipeError(RadiowaveError):
    """A catalogue or ledger that cannot be read, recipes that cannot be applied together, or an impossible contract."""

    prefix = "RW05"


class ManifestError(RadiowaveError):
    """A manifest that is damaged, or that is about other bytes than those at hand."""

    prefix = "RW06"
