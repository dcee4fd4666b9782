# SPDX-License-Identifier: Apache-2.0
"""What differs between two code objects: kernels that came or went, and of each that stayed what its users notice.

Compares reports (`kernel_report.py`); machine code that differs in nothing that is counted shows as another code hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from radiowave.code_object import CodeObject
from radiowave.disassemble import Disassembler
from radiowave.kernel_report import KernelReport, reports

SCHEMA: Final = 1


@dataclass(frozen=True)
class Change:
    """One thing of one kernel, or of the object for `kernel` "". `before` or `after` is None where it is not known."""

    kernel: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """All that differs; `removed` and `added` are names of kernels."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, code included."""
        return not (self.removed or self.added or self.changes)

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {
            "schema": SCHEMA,
            "removed": list(self.removed),
            "added": list(self.added),
            "changes": [vars(change) for change in self.changes],
        }


def compare(before: CodeObject, after: CodeObject, disassembler: Disassembler | None = None) -> Difference:
    """What differs between two objects, kernels compared by name.

    Starts a disassembler of its own when none is given; without one that works, what only the code tells is not
    compared. Raises CodeObjectError where segments do not hold what they claim, ToolchainError and UnsupportedTarget as
    `Disassembler` does.
    """
    if disassembler is None:
        with Disassembler() as mine:
            return compare(before, after, mine)
    old, new = reports(before, disassembler), reports(after, disassembler)
    changes = [Change("", what, a, b) for what, a, b in _pairs(_of_object(before), _of_object(after))]
    for name in sorted(old.keys() & new.keys()):
        changes += [Change(name, what, a, b) for what, a, b in _pairs(_of_kernel(old[name]), _of_kernel(new[name]))]
    return Difference(tuple(sorted(old.keys() - new.keys())), tuple(sorted(new.keys() - old.keys())), tuple(changes))


def _pairs(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What both have, in the order of the first, where it differs."""
    for what in [*before, *(key for key in after if key not in before)]:
        if before.get(what) != after.get(what):
            yield what, before.get(what), after.get(what)


def _of_object(found: CodeObject) -> dict[str, Any]:
    return {"target": found.target_id, "code object version": found.code_object_version}


def _of_kernel(report: KernelReport) -> dict[str, Any]:
    kernel, certificate = report.kernel, report.certificate
    facts = {
        "wave": kernel.wave,
        "arguments": [(a.offset, a.size, a.kind) for a in kernel.arguments],
        "kernarg bytes": kernel.kernarg_bytes,
        "VGPRs": kernel.vgpr_count,
        "SGPRs": kernel.sgpr_count,
        "spilled VGPRs": kernel.vgpr_spill_count,
        "spilled SGPRs": kernel.sgpr_spill_count,
        "LDS bytes": kernel.descriptor.group_bytes,
        "scratch bytes": kernel.descriptor.private_bytes,
        "largest workgroup": kernel.max_workgroup,
        "occupancy": report.occupancy.waves,
        "limited by": report.occupancy.limiter,
    }
    if certificate is not None:
        facts |= {"verdict": certificate.verdict, "scalar arguments": sorted(certificate.scalar_args)}
        facts |= {"undeclared memory": certificate.undeclared}
    if report.statistics is not None:
        counts = {name.replace("_", " "): count for name, count in report.statistics.counts.items()}
        facts |= {"instructions": report.statistics.instructions, **counts}
    return facts | {"code": kernel.code_sha256}


def difference_lines(found: Difference) -> Iterator[str]:
    """The same for people."""
    yield from (f"- kernel {name}" for name in found.removed)
    yield from (f"+ kernel {name}" for name in found.added)
    last = ""
    for change in found.changes:
        if change.kernel != last:
            yield f"kernel {change.kernel}"
            last = change.kernel
        yield f"{'  ' if change.kernel else ''}{change.what}: {_shown(change.before)} -> {_shown(change.after)}"


def _shown(value: Any) -> str:
    if isinstance(value, str) and len(value) == 64:
        return f"sha256 {value[:12]}"
    return "not known" if value is None else str(value)
