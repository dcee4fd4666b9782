# SPDX-License-Identifier: Apache-2.0
"""Show a code object: as a dictionary for `--json`, as lines for people. Reads and checks nothing itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from radiowave.code_object import CodeObject, KernelFacts
from radiowave.metadata import Argument

SCHEMA = 1


def as_json(code_object: CodeObject) -> dict[str, Any]:
    """The facts of an object, ready for `json.dumps`; the object's own bytes are left out."""
    return {
        "schema": SCHEMA,
        "target": code_object.target,
        "code_object_version": code_object.code_object_version,
        "metadata_version": list(code_object.metadata_version),
        "xnack": code_object.xnack,
        "sramecc": code_object.sramecc,
        "sha256": code_object.sha256,
        "kernels": [_kernel(kernel) for kernel in code_object.kernels.values()],
    }


def _kernel(kernel: KernelFacts) -> dict[str, Any]:
    facts = asdict(kernel)
    facts["arguments"] = [{**asdict(a), "hidden": a.is_hidden, "known": a.is_known} for a in kernel.arguments]
    required = kernel.required_workgroup
    facts["required_workgroup"] = list(required) if required else None
    return facts


def as_lines(code_object: CodeObject) -> Iterator[str]:
    """The same for people."""
    yield (
        f"{code_object.target}  code object v{code_object.code_object_version}"
        f"  xnack {code_object.xnack}  sramecc {code_object.sramecc}"
    )
    yield f"sha256 {code_object.sha256}"
    for kernel in code_object.kernels.values():
        yield from _kernel_lines(kernel)
    if not code_object.kernels:
        yield "no kernels"


def _kernel_lines(kernel: KernelFacts) -> Iterator[str]:
    d = kernel.descriptor
    yield ""
    yield f"kernel {kernel.name} ({kernel.symbol})  wave{kernel.wave}  {kernel.code_bytes} bytes of code"
    yield f"  kernarg {kernel.kernarg_bytes} bytes, aligned to {kernel.kernarg_align}"
    yield f"  group {d.group_bytes} bytes  private {d.private_bytes} bytes{_stack(kernel)}"
    yield f"  VGPRs {kernel.vgpr_count}  SGPRs {kernel.sgpr_count}  {_workgroup(kernel)}"
    yield f"  rsrc1 {d.rsrc1:#010x}  rsrc2 {d.rsrc2:#010x}  rsrc3 {d.rsrc3:#010x}"
    yield f"  properties {d.properties:#06x}  preload {d.preload:#06x}"
    yield f"  descriptor at {kernel.descriptor_va:#x}, entry at {kernel.entry_va:#x}"
    for argument in kernel.arguments:
        yield f"  {argument.offset:5} {argument.size:4}  {_words(argument)}"


def _stack(kernel: KernelFacts) -> str:
    return "  dynamic stack" if kernel.uses_dynamic_stack else ""


def _workgroup(kernel: KernelFacts) -> str:
    required = kernel.required_workgroup
    if required:
        return f"workgroup exactly {'x'.join(str(extent) for extent in required)}"
    return f"workgroup up to {kernel.max_workgroup}"


def _words(argument: Argument) -> str:
    words = [argument.kind, argument.name, argument.address_space or "", argument.access or ""]
    if not argument.is_known:
        words.append("(unsupported kind)")
    return " ".join(word for word in words if word)
