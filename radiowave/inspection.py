# SPDX-License-Identifier: Apache-2.0
"""Show what a file holds: as a dictionary for `--json`, as lines for people.

A file is one code object or a container of several; an object that cannot be read is shown with its fault beside those
that can. The reading itself is `bundle.py` and `code_object.py`; what the code tells, `kernel_report.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from radiowave.bundle import BundleEntry, container_of, select, unbundle
from radiowave.certificate import KernelCertificate
from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler
from radiowave.errors import CodeObjectError
from radiowave.kernel_report import ArgumentAccess, KernelReport, reports
from radiowave.metadata import Argument
from radiowave.occupancy import Occupancy
from radiowave.statistics import Statistics

#: Version of the JSON of `radiowave inspect`, `disassemble`, `tools` and `compile`.
SCHEMA = 3

_PATHS = {"vector": "vector loads", "scalar": "scalar loads", "l2": "atomics or device-scope loads"}

#: Faults that say "not for us" and not "broken": an old code object version, a GPU that is not on the list.
_FOREIGN = ("RW0304", "RW0305")


@dataclass(frozen=True)
class Content:
    """One code object of a file: what was read of it, or why not. `entry` is None for a file that is one object."""

    entry: BundleEntry | None
    code_object: CodeObject | None
    fault: CodeObjectError | None
    reports: dict[str, KernelReport]

    @property
    def is_broken(self) -> bool:
        """Whether it is damaged, and not merely for another GPU."""
        is_foreign = self.fault is None or self.fault.code in _FOREIGN
        return not is_foreign and (self.entry is None or self.entry.target is not None)


@dataclass(frozen=True)
class Inspection:
    """A whole file. `container` is None for a file that is one code object."""

    container: str | None
    nbytes: int
    sha256: str
    contents: tuple[Content, ...]

    @property
    def has_findings(self) -> bool:
        """Whether something in it is broken or cannot be told, or nothing in it can be used."""
        untold = any(report.refused is None for c in self.contents for report in c.reports.values())
        return untold or any(c.is_broken for c in self.contents) or not any(c.code_object for c in self.contents)


def inspect(data: bytes, target: str | None = None, disassembler: Disassembler | None = None) -> Inspection:
    """What is in a file; with a target, the object for it alone. Raises `CodeObjectError` if nothing can be listed.

    Starts a disassembler of its own when none is given.
    """
    if disassembler is None:
        with Disassembler() as mine:
            return inspect(data, target, mine)
    container = container_of(data)
    if container is None or target is not None:
        found = CodeObject.read(data, target)
        entry = select(unbundle(data), target) if container else None
        contents: tuple[Content, ...] = (Content(entry, found, None, reports(found, disassembler)),)
    else:
        contents = tuple(_content(entry, disassembler) for entry in unbundle(data))
    return Inspection(container, len(data), hashlib.sha256(data).hexdigest(), contents)


def _content(entry: BundleEntry, disassembler: Disassembler) -> Content:
    try:
        found = CodeObject.parse(entry.data)
        found.check_entry(entry)
    except CodeObjectError as fault:
        return Content(entry, None, fault, {})
    return Content(entry, found, None, reports(found, disassembler))


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Everything that was found, ready for `json.dumps`."""
    return {
        "schema": SCHEMA,
        "file": {"container": found.container, "bytes": found.nbytes, "sha256": found.sha256},
        "objects": [_content_json(content) for content in found.contents],
    }


def _content_json(content: Content) -> dict[str, Any]:
    entry, fault = content.entry, content.fault
    row: dict[str, Any] = {"entry": None, "bundle": None, "fault": None}
    if entry is not None:
        row |= {"entry": entry.id, "bundle": entry.bundle, "bytes": len(entry.data)}
        row |= {"sha256": hashlib.sha256(entry.data).hexdigest()}
    if fault is not None:
        row["fault"] = {key: getattr(fault, key) for key in ("code", "where", "seen", "allowed", "do")}
    return row if content.code_object is None else row | object_json(content.code_object, content.reports)


def as_json(code_object: CodeObject) -> dict[str, Any]:
    """The facts of one object, ready for `json.dumps`; the object's own bytes are left out."""
    return {"schema": SCHEMA, **object_json(code_object, reports(code_object))}


def object_json(code_object: CodeObject, found: dict[str, KernelReport]) -> dict[str, Any]:
    """The same without a schema, from reports that are there already."""
    return {
        "target": code_object.target,
        "target_id": code_object.target_id,
        "code_object_version": code_object.code_object_version,
        "metadata_version": list(code_object.metadata_version),
        "xnack": code_object.xnack,
        "sramecc": code_object.sramecc,
        "bytes": len(code_object.data),
        "sha256": code_object.sha256,
        "kernels": [_kernel_json(report) for report in found.values()],
    }


def _kernel_json(report: KernelReport) -> dict[str, Any]:
    """`refused_instructions` and `statistics` are null where they cannot be told."""
    kernel, facts = report.kernel, asdict(report.kernel)
    facts["refused_instructions"] = None if report.refused is None else [asdict(row) for row in report.refused]
    facts["occupancy"] = report.occupancy.as_json()
    facts["statistics"] = None if report.statistics is None else report.statistics.as_json()
    facts["certificate"] = None if report.certificate is None else _certificate_json(report.certificate)
    facts["accesses"] = None if report.accesses is None else [asdict(access) for access in report.accesses]
    facts["unknown"] = list(report.unknown)
    facts["arguments"] = [{**asdict(a), "hidden": a.is_hidden, "known": a.is_known} for a in kernel.arguments]
    for key in ("required_workgroup", "workgroup_hint"):
        facts[key] = list(facts[key]) if facts[key] else None
    return facts


def _certificate_json(certificate: KernelCertificate) -> dict[str, Any]:
    """Without the sites, which `radiowave certify` lists."""
    return {key: value for key, value in certificate.as_json().items() if key not in ("name", "symbol", "sites")}


def inspection_lines(found: Inspection) -> Iterator[str]:
    """The same for people."""
    if found.container is not None:
        count = len(found.contents)
        yield f"{found.container}  {count} code object{'' if count == 1 else 's'}  {found.nbytes} bytes"
        yield f"sha256 {found.sha256}"
    for content in found.contents:
        if content.entry is not None:
            yield ""
            yield f"entry {content.entry.id}  bundle {content.entry.bundle}  {len(content.entry.data)} bytes"
        if content.fault is not None:
            yield f"not read: {content.fault}"
        if content.code_object is not None:
            yield from _object_lines(content.code_object, content.reports)


def _object_lines(code_object: CodeObject, found: dict[str, KernelReport]) -> Iterator[str]:
    """One object for people."""
    major, minor = code_object.metadata_version
    yield (
        f"{code_object.target}  code object v{code_object.code_object_version}  metadata {major}.{minor}"
        f"  xnack {code_object.xnack}  sramecc {code_object.sramecc}"
    )
    yield f"sha256 {code_object.sha256}"
    for report in found.values():
        yield from _kernel_lines(report.kernel)
        yield from _report_lines(report)
    if not code_object.kernels:
        yield "no kernels"


def _kernel_lines(kernel: KernelFacts) -> Iterator[str]:
    d = kernel.descriptor
    yield ""
    yield f"kernel {kernel.name} ({kernel.symbol})  wave{kernel.wave}  {kernel.code_bytes} bytes of code{_kind(kernel)}"
    yield f"  kernarg {kernel.kernarg_bytes} bytes, aligned to {kernel.kernarg_align}"
    yield f"  group {d.group_bytes} bytes  private {d.private_bytes} bytes{_stack(kernel)}"
    yield f"  VGPRs {kernel.vgpr_count}  SGPRs {kernel.sgpr_count}{_spills(kernel)}  {_workgroup(kernel)}"
    yield f"  rsrc1 {d.rsrc1:#010x}  rsrc2 {d.rsrc2:#010x}  rsrc3 {d.rsrc3:#010x}"
    yield f"  properties {d.properties:#06x}  preload {d.preload:#06x}"
    yield f"  descriptor at {kernel.descriptor_va:#x}, entry at {kernel.entry_va:#x}"
    if kernel.arguments:
        yield " offset size  argument"
    for argument in kernel.arguments:
        yield f"  {argument.offset:5} {argument.size:4}  {_words(argument)}"


def _report_lines(report: KernelReport) -> Iterator[str]:
    yield f"  {_occupancy(report.occupancy)}"
    if report.statistics is not None:
        yield f"  {_counts(report.statistics)}"
    if report.certificate is not None:
        yield f"  certificate {report.certificate.verdict}"
    yield from (f"  {_access(access, report.kernel)}" for access in report.accesses or ())
    yield from (f"  refused: {instruction}: {instruction.why}" for instruction in report.refused or ())
    yield from (f"  not known: {what}" for what in report.unknown)


def _access(access: ArgumentAccess, kernel: KernelFacts) -> str:
    name = next((a.name for a in kernel.arguments if a.offset == access.offset and a.name), "argument")
    reads = f"read by {' and '.join(_PATHS[path] for path in access.reads)}" if access.reads else ""
    return f"{name}@{access.offset}: {', '.join(filter(None, (reads, 'written' * access.writes))) or 'never touched'}"


def _occupancy(found: Occupancy) -> str:
    mode = "WGP mode" if found.is_wgp_mode else "CU mode"
    limits = ", ".join(f"{name} {waves}" for name, waves in found.limits.items())
    return (
        f"occupancy {found.waves} waves a SIMD, limited by {found.limiter} ({limits}; "
        f"workgroups of {found.workgroup}, {mode})"
    )


def _counts(found: Statistics) -> str:
    counts = [f"{name.replace('_', ' ')} {count}" for name, count in found.counts.items() if count]
    if found.longest_vmem_run > 1:
        counts.append(f"longest VMEM run {found.longest_vmem_run}")
    return f"{found.instructions} instructions: {', '.join(counts)}"


def _kind(kernel: KernelFacts) -> str:
    words = [kernel.language, "" if kernel.kind == "normal" else f"runs at {kernel.kind}"]
    return "".join(f"  {word}" for word in words if word)


def _stack(kernel: KernelFacts) -> str:
    return "  dynamic stack" if kernel.uses_dynamic_stack else ""


def _spills(kernel: KernelFacts) -> str:
    if not kernel.vgpr_spill_count and not kernel.sgpr_spill_count:
        return ""
    return f"  spilled {kernel.vgpr_spill_count} VGPRs {kernel.sgpr_spill_count} SGPRs"


def _workgroup(kernel: KernelFacts) -> str:
    required = kernel.required_workgroup
    uniform = ", whole ones only" if kernel.has_uniform_workgroups else ""
    if required:
        return f"workgroup exactly {'x'.join(str(extent) for extent in required)}{uniform}"
    return f"workgroup up to {kernel.max_workgroup}{uniform}"


def _words(argument: Argument) -> str:
    flags = [name for name in ("const", "restrict", "volatile", "pipe") if getattr(argument, f"is_{name}")]
    access = argument.access or argument.declared_access or ""
    words = [argument.kind, argument.name, argument.type_name, argument.address_space or "", access, *flags]
    if argument.pointee_align:
        words.append(f"aligned to {argument.pointee_align}")
    if not argument.is_known:
        words.append("(unsupported kind)")
    return " ".join(word for word in words if word)
