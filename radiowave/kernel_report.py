# SPDX-License-Identifier: Apache-2.0
"""What the code and the descriptor tell about each kernel beyond its metadata, and what stays unknown.

Puts together what other files find: occupancy, instruction counts, certificate, refused instructions. A question that
cannot be answered is answered with None and named in `unknown`, never with a zero. Shows nothing; `inspection.py` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from radiowave.certificate import KernelCertificate, Site
from radiowave.certifier import Proof, Prover
from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler
from radiowave.errors import ToolchainError
from radiowave.occupancy import Occupancy, occupancy_of
from radiowave.refused import InstructionCheck, RefusedInstruction
from radiowave.statistics import Statistics

_DYNAMIC_LDS = frozenset(("dynamic_shared_pointer", "hidden_dynamic_lds_size"))


@dataclass(frozen=True)
class ArgumentAccess:
    """What a kernel's code does with the memory behind one pointer argument, at its kernarg `offset` in bytes.

    `reads` lists the paths in order: "vector", "scalar", "l2" (atomics and device-scope loads); empty when it never
    reads. An address that may come from several arguments counts for each.
    """

    offset: int
    reads: tuple[str, ...]
    writes: bool


@dataclass(frozen=True)
class KernelReport:
    """One kernel. `statistics` (over the instructions that it can reach), `certificate`, `accesses` (of every pointer
    argument) and `refused` are None where they cannot be told; `unknown` says in words what is not known, and why.
    """

    kernel: KernelFacts
    occupancy: Occupancy
    statistics: Statistics | None
    certificate: KernelCertificate | None
    accesses: tuple[ArgumentAccess, ...] | None
    refused: tuple[RefusedInstruction, ...] | None
    unknown: tuple[str, ...]


def reports(code_object: CodeObject, disassembler: Disassembler | None = None) -> dict[str, KernelReport]:
    """A report for each kernel, by name. Starts a disassembler of its own when none is given.

    Raises CodeObjectError where segments do not hold what they claim; a missing disassembler is no error.
    """
    if disassembler is None:
        with Disassembler() as mine:
            return reports(code_object, mine)
    check, prover = InstructionCheck(code_object), Prover(code_object, disassembler)
    rows = code_object.kernels.values()
    return {kernel.name: _report(kernel, code_object.target, check, prover, disassembler) for kernel in rows}


def _report(
    kernel: KernelFacts, target: str, check: InstructionCheck, prover: Prover, disassembler: Disassembler
) -> KernelReport:
    refused, proof, unknown = None, None, list[str]()
    try:
        refused = check.refused(kernel.symbol, disassembler)
    except ToolchainError as error:
        unknown.append(f"refused instructions: {error}")
    try:
        proof = prover.proof(kernel)
    except ToolchainError as error:
        unknown.append(f"instructions, certificate and accesses: {error}")
    statistics = None if proof is None else _statistics(proof)
    accesses = None if proof is None else _accesses(kernel, proof)
    unknown += _unknown(kernel, proof, statistics)
    certificate = None if proof is None else proof.certificate
    shown = occupancy_of(target, kernel)
    return KernelReport(kernel, shown, statistics, certificate, accesses, refused, tuple(unknown))


def _statistics(proof: Proof) -> Statistics:
    reaches = {site.address: site.reach for site in proof.certificate.sites if site.path == "scalar"}
    return Statistics.of(proof.reached, reaches if proof.is_complete else None)


def _accesses(kernel: KernelFacts, proof: Proof) -> tuple[ArgumentAccess, ...] | None:
    if not proof.is_complete:
        return None
    pointers = [a.offset for a in kernel.arguments if a.kind == "global_buffer"]
    return tuple(_access(offset, proof.certificate.sites) for offset in pointers)


def _access(offset: int, sites: tuple[Site, ...]) -> ArgumentAccess:
    mine = [site for site in sites if offset in site.arguments]
    paths = {"l2" if site.at_l2 else site.path for site in mine if site.reads}
    return ArgumentAccess(offset, tuple(sorted(paths)), any(site.writes for site in mine))


def _unknown(kernel: KernelFacts, proof: Proof | None, statistics: Statistics | None) -> Iterator[str]:
    if proof is not None and not proof.is_complete:
        stop = proof.certificate.sites[0]
        yield f"what the code reaches behind {stop.address:#x} {stop.text}: {stop.why}"
    if statistics is not None and statistics.unknown:
        named = ", ".join(f"{name} ({count})" for name, count in statistics.unknown.items())
        yield f"what these instructions do: {named}"
    if proof is not None and proof.is_complete and proof.certificate.undeclared:
        yield "which memory it touches past its pointer arguments: see `radiowave certify --explain`"
    if any(a.kind in _DYNAMIC_LDS for a in kernel.arguments):
        yield "LDS that the launch adds, and occupancy with it"
    if kernel.uses_dynamic_stack:
        yield "scratch: the stack grows by an amount that is not known before the launch"
