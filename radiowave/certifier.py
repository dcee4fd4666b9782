# SPDX-License-Identifier: Apache-2.0
"""Certify kernels: prove by data flow how each reads memory, or say which instruction stopped the proof.

Follows every path from the descriptor's entry, callees included, and fails closed: with anything unknown on the way
(a jump, an opcode, bytes that do not decode) a kernel gets the widest certificate. What the words mean is in
`certificate.py`; what a verdict rests on beyond the code is in `docs/certificates.md`. Source of where a kernel begins
and with which registers: LLVM AMDGPUUsage, "Kernel Descriptor" and "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass

from radiowave import elf as e
from radiowave.certificate import KernelCertificate, Reach, Site, Verdict
from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler, Instruction
from radiowave.entry_state import entry_state
from radiowave.flow import MOST_STEPS, Walk, walk
from radiowave.image import LoadImage
from radiowave.listing import Listing
from radiowave.memory_flow import Surroundings
from radiowave.object_memory import ObjectMemory
from radiowave.refused import ENCODINGS, MOST

#: Revision of the rules; a change that lets any kernel have a narrower certificate raises it.
RULES = 1

# An instruction is looked at two or three times, once more for each call that leads to it.
_STEPS_PER_DWORD = 32

#: What a scalar load may reach without any bearing on the verdict: no kernel of a plan writes these bytes.
_FIXED: frozenset[Reach] = frozenset({"kernarg", "kernarg_indexed", "constant"})
#: Memory that no pointer argument carries.
_UNDECLARED: frozenset[Reach] = frozenset({"variable", "loaded", "abi", "unknown"})


def certify(code_object: CodeObject, disassembler: Disassembler | None = None) -> dict[str, KernelCertificate]:
    """The certificate of every kernel, by name.

    Starts a disassembler of its own when none is given. Raises ToolchainError when no disassembler works,
    UnsupportedTarget for a target that it does not take, CodeObjectError where the object is not whole.
    """
    with nullcontext(disassembler) if disassembler else Disassembler() as disassembler:
        prover = Prover(code_object, disassembler)
        return {kernel.name: prover.proof(kernel).certificate for kernel in code_object.kernels.values()}


@dataclass(frozen=True)
class Proof:
    """A certificate, and the instructions that the kernel can reach, callees included, in order of address.

    Where the proof ended early, `reached` are those up to there.
    """

    certificate: KernelCertificate
    reached: tuple[Instruction, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every path was followed."""
        return all(site.path != "none" for site in self.certificate.sites)


class Prover:
    """Certifies the kernels of one object, one by one; decodes code once. Its disassembler stays the caller's.

    Kernels share a budget of steps, which grows with the object: hostile ones may all name the same code.
    """

    def __init__(self, code_object: CodeObject, disassembler: Disassembler) -> None:
        elf = e.Elf(code_object.data)
        self._target, self._disassembler = code_object.target, disassembler
        self._image, self._memory = LoadImage(elf), ObjectMemory(elf)
        self._listings: dict[int, Listing] = {}
        self._steps_left = MOST_STEPS + _STEPS_PER_DWORD * len(code_object.data) // 4

    def _listing(self, wave: int) -> Listing:
        """One listing for all kernels of a wave size."""
        if wave not in self._listings:
            self._listings[wave] = Listing(self._image, self._target, wave, self._disassembler)
        return self._listings[wave]

    def _walk(self, kernel: KernelFacts) -> Walk:
        start = entry_state(kernel, self._target)
        if start is None:
            why = "the descriptor asks for registers that this target does not have"
            return Walk(stops=(Site(kernel.entry_va, "", "none", "unknown", reads=False, why=why),))
        where = Surroundings(kernel, self._target, self._memory)
        most = min(MOST_STEPS, self._steps_left)
        found = walk(kernel.entry_va, kernel.code_bytes, start, self._listing(kernel.wave), where, most)
        self._steps_left -= found.steps
        return found

    def proof(self, kernel: KernelFacts) -> Proof:
        """What can be shown about one kernel. Raises what `certify` raises."""
        found = self._walk(kernel)
        refused = self._refused(found.reached, self._listing(kernel.wave))
        return Proof(self._certificate(kernel, found, refused), found.reached)

    def _certificate(self, kernel: KernelFacts, found: Walk, refused: tuple[str, ...]) -> KernelCertificate:
        if found.stops:
            return KernelCertificate(
                kernel.name,
                kernel.symbol,
                "scalar_or_unknown",
                undeclared=True,
                refused=refused,
                deciding=found.stops[0],
                sites=found.stops,
            )
        return _concluded(kernel, found.sites, refused)

    def _refused(self, reached: Iterable[Instruction], listing: Listing) -> tuple[str, ...]:
        rows, found = ENCODINGS[self._target], []
        for instruction in reached:
            word = listing.word(instruction)
            if any(word & row.mask == row.pattern for row in rows):
                found.append(f"{' '.join(instruction.text.split())} at {instruction.pc:#x}")
        return tuple(found[:MOST])


def _concluded(kernel: KernelFacts, sites: tuple[Site, ...], refused: tuple[str, ...]) -> KernelCertificate:
    """A certificate from all accesses of a kernel whose paths are all known."""
    verdict, deciding = _verdict(sites)
    return KernelCertificate(
        kernel.name,
        kernel.symbol,
        verdict,
        scalar_args=_arguments(s for s in sites if s.path == "scalar") if verdict == "scalar_args" else frozenset(),
        l2_args=_l2_arguments(sites),
        kernarg_vector_loads=any(s.path == "vector" and s.reads and _may_be_kernarg(s) for s in sites),
        undeclared=any(s.reach in _UNDECLARED for s in sites),
        variables=tuple(sorted({v for s in sites for v in s.variables})),
        refused=refused,
        deciding=deciding,
        sites=sites,
    )


def _verdict(sites: tuple[Site, ...]) -> tuple[Verdict, Site | None]:
    """The narrowest verdict that covers every scalar load, and the first one that needs it."""
    scalar = [s for s in sites if s.path == "scalar" and s.reach not in _FIXED]
    for site in scalar:
        if site.reach != "argument":
            return "scalar_or_unknown", site
    return ("scalar_args", scalar[0]) if scalar else ("vmem_only", None)


def _arguments(sites: Iterable[Site]) -> frozenset[int]:
    return frozenset(offset for site in sites for offset in site.arguments)


def _l2_arguments(sites: tuple[Site, ...]) -> frozenset[int]:
    """Arguments that are read by atomics and device-scope loads alone; none where a read may go through any."""
    reads = [s for s in sites if s.reads]
    if any(s.reach in ("loaded", "unknown") for s in reads):
        return frozenset()
    at_l2 = _arguments(s for s in reads if s.at_l2)
    return at_l2 - _arguments(s for s in reads if not s.at_l2)


def _may_be_kernarg(site: Site) -> bool:
    return site.reach in ("kernarg", "kernarg_indexed", "unknown") or site.beside_kernarg
