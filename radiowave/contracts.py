# SPDX-License-Identifier: Apache-2.0
"""Resource contracts: may this kernel take the place of another? Rejected with reasons, before anything is timed.

Static checks only: a kernel that passes may be slower all the same. Occupancy comes from `occupancy.py`; the incumbent
is described by its registers and wave size, which is all that a record of it needs to keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from radiowave.certificate import VERDICTS, Verdict
from radiowave.code_object import CodeObject
from radiowave.disassemble import Disassembler
from radiowave.errors import RecipeError
from radiowave.kernel_report import KernelReport, reports
from radiowave.occupancy import MOST_VGPRS, occupancy
from radiowave.targets import check_wave

SCHEMA: Final = 2
#: s_clause instructions in the code; the limit that the Rust project's contract for gfx1151 has, here for all.
MOST_CLAUSES: Final = 32

Kind = Literal[
    "wrong_target",
    "missing_kernel",
    "wave_mismatch",
    "vgpr_spills",
    "sgpr_spills",
    "scratch",
    "dynamic_stack",
    "occupancy_fall",
    "workgroup_does_not_fit",
    "too_many_clauses",
    "refused_instructions",
    "wider_certificate",
    "not_known",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True)
class Contract:
    """What a candidate must keep. `kernel` by name; `wave` (32 or 64 lanes), `target` and `verdict` (the widest that is
    allowed) are not asked for where they are None, the incumbent's registers neither.

    Raises UnsupportedTarget for another wave size, RecipeError for registers that no wave can address.
    """

    kernel: str
    target: str | None = None
    wave: int | None = None
    incumbent_vgprs: int | None = None
    incumbent_wave: int | None = None
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        for wave in (self.wave, self.incumbent_wave):
            if wave is not None:
                check_wave(wave, where="contract")
        vgprs = self.incumbent_vgprs
        if vgprs is not None and not 0 <= vgprs <= MOST_VGPRS:
            raise RecipeError(
                "RW0504",
                where="contract",
                seen=f"an incumbent with {vgprs} VGPRs",
                allowed=f"0 to {MOST_VGPRS}",
                do="give the VGPRs that `radiowave inspect` shows for the incumbent",
            )


@dataclass(frozen=True)
class Rejection:
    """One reason: a kind that stays the same, and what was seen and allowed in words."""

    kind: Kind
    seen: str
    allowed: str


@dataclass(frozen=True)
class Assessment:
    """A candidate held against its contract; accepted where nothing speaks against it."""

    kernel: str
    sha256: str
    rejections: tuple[Rejection, ...]

    @property
    def is_accepted(self) -> bool:
        """Whether there is no rejection."""
        return not self.rejections

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "sha256": self.sha256,
            "accepted": self.is_accepted,
            "rejections": [vars(rejection) for rejection in self.rejections],
        }


def assess(candidate: CodeObject, contract: Contract, disassembler: Disassembler | None = None) -> Assessment:
    """Hold a code object against a contract. Starts a disassembler of its own when none is given.

    What cannot be told because no disassembler works is a rejection too. Raises CodeObjectError where segments do not
    hold what they claim, ToolchainError and UnsupportedTarget as `Disassembler` does.
    """
    found = tuple(_rejections(candidate, contract, disassembler))
    return Assessment(contract.kernel, candidate.sha256, found)


def _rejections(candidate: CodeObject, contract: Contract, disassembler: Disassembler | None) -> Iterator[Rejection]:
    if contract.target is not None and contract.target != candidate.target:
        yield Rejection("wrong_target", candidate.target, contract.target)
    report = reports(candidate, disassembler).get(contract.kernel.removesuffix(".kd"))
    if report is None:
        yield Rejection("missing_kernel", ", ".join(candidate.kernels) or "no kernels", contract.kernel)
        return
    yield from _of_resources(report)
    yield from _of_occupancy(report, contract, candidate.target)
    yield from _of_code(report, contract)


def _of_resources(report: KernelReport) -> Iterator[Rejection]:
    kernel = report.kernel
    if kernel.vgpr_spill_count:
        yield Rejection("vgpr_spills", f"{kernel.vgpr_spill_count} VGPRs spilled", "none")
    if kernel.sgpr_spill_count:
        yield Rejection("sgpr_spills", f"{kernel.sgpr_spill_count} SGPRs spilled", "none")
    if kernel.descriptor.private_bytes:
        yield Rejection("scratch", f"{kernel.descriptor.private_bytes} bytes of scratch a lane", "none")
    if kernel.uses_dynamic_stack:
        yield Rejection("dynamic_stack", "a stack that grows at run time", "none")


def _of_occupancy(report: KernelReport, contract: Contract, target: str) -> Iterator[Rejection]:
    kernel, now = report.kernel, report.occupancy
    if contract.wave is not None and kernel.wave != contract.wave:
        yield Rejection("wave_mismatch", f"wave{kernel.wave}", f"wave{contract.wave}")
    if not now.workgroups:
        seen = f"a workgroup of {now.workgroup} work-items with {now.lds_bytes} bytes of LDS"
        yield Rejection("workgroup_does_not_fit", seen, "one that a CU or WGP has room for")
    if contract.incumbent_vgprs is not None:
        wave = contract.incumbent_wave or kernel.wave
        before = occupancy(
            target,
            wave,
            contract.incumbent_vgprs,
            workgroup=now.workgroup,
            lds_bytes=now.lds_bytes,
            is_wgp_mode=now.is_wgp_mode,
        )
        # Lanes, so that a change of wave size is compared fairly.
        if now.waves * kernel.wave < before.waves * wave:
            seen = f"{now.waves} waves of {kernel.wave} lanes a SIMD with {now.vgprs} VGPRs, limited by {now.limiter}"
            yield Rejection("occupancy_fall", seen, f"the incumbent's {before.waves} waves of {wave} lanes")


def _of_code(report: KernelReport, contract: Contract) -> Iterator[Rejection]:
    if report.statistics is None or report.refused is None or report.certificate is None:
        yield Rejection("not_known", "; ".join(report.unknown), "a disassembler that reads the code")
        return
    clauses = report.statistics.counts["clauses"]
    if clauses > MOST_CLAUSES:
        yield Rejection("too_many_clauses", f"{clauses} memory clauses", f"up to {MOST_CLAUSES}")
    if report.refused:
        yield Rejection("refused_instructions", "; ".join(map(str, report.refused)), "instructions that fences order")
    widest = contract.verdict
    if widest is not None and VERDICTS.index(report.certificate.verdict) > VERDICTS.index(widest):
        yield Rejection("wider_certificate", report.certificate.verdict, f"{widest} or narrower")
