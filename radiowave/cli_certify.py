# SPDX-License-Identifier: Apache-2.0
"""The commands `radiowave certify`, `manifest` and `verify`. What they print is decided here, what is true is not."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from radiowave.certificate import KernelCertificate, Site
from radiowave.certifier import certify
from radiowave.code_object import CodeObject
from radiowave.manifest import Manifest, make_manifest
from radiowave.verification import Verification, verify

CERTIFY_SCHEMA = 1
OK, FINDINGS = 0, 1


def run_certify(arguments: argparse.Namespace) -> int:
    """Print the certificate of each kernel, or every access of one."""
    found = CodeObject.read(arguments.file.read_bytes(), arguments.target)
    explained = found.kernel(arguments.explain).name if arguments.explain else None
    certificates = certify(found)
    chosen = [certificates[explained]] if explained else list(certificates.values())
    if arguments.json:
        _print_json({"schema": CERTIFY_SCHEMA, "kernels": [certificate.as_json() for certificate in chosen]})
    else:
        print("\n".join(line for c in chosen for line in _lines(c, found, is_explained=explained is not None)))
    return OK


def run_manifest(arguments: argparse.Namespace) -> int:
    """Write a manifest beside a code object."""
    output: Path = arguments.output or arguments.file.with_suffix(".radiowave.json")
    path = PurePath(os.path.relpath(arguments.file, output.parent)).as_posix()
    manifest = make_manifest(arguments.file.read_bytes(), arguments.target, path=path)
    output.write_bytes(manifest.to_bytes())
    if arguments.json:
        _print_json(manifest.as_json())
    else:
        print(f"{output}  {manifest.target_id}  {len(manifest.kernels)} kernels  sha256 {manifest.file.sha256}")
    return OK


def run_verify(arguments: argparse.Namespace) -> int:
    """Hold a manifest against its file; 1 when they differ in anything but a verdict's evidence."""
    manifest = Manifest.parse(arguments.manifest.read_bytes(), str(arguments.manifest))
    file = arguments.file or arguments.manifest.parent / manifest.file.path
    result = verify(manifest, file.read_bytes())
    if arguments.json:
        _print_json(_verification_json(result))
    else:
        print("\n".join(_verification_lines(result, file)))
    return FINDINGS if result.notes else OK


def _print_json(document: object) -> None:
    print(json.dumps(document, indent=2))


def _lines(certificate: KernelCertificate, found: CodeObject, *, is_explained: bool) -> Iterator[str]:
    names = {argument.offset: argument.name for argument in found.kernels[certificate.name].arguments}
    yield f"{certificate.name}: {certificate.verdict}{_arguments(certificate.scalar_args, names)}"
    if certificate.deciding is not None:
        yield f"  because of {_site(certificate.deciding)}"
    if certificate.l2_args:
        yield f"  at L2 only:{_arguments(certificate.l2_args, names)}"
    if certificate.kernarg_vector_loads:
        yield "  may read its own arguments by vector loads"
    if certificate.undeclared:
        variables = f": {', '.join(certificate.variables)}" if certificate.variables else ""
        yield f"  may reach memory that no pointer argument carries{variables}"
    yield from (f"  refused: {text}" for text in certificate.refused)
    if is_explained:
        yield from (f"  {_site(site)}" for site in certificate.sites)


def _arguments(offsets: frozenset[int], names: dict[int, str]) -> str:
    return "".join(f" {names.get(offset) or 'argument'}@{offset}" for offset in sorted(offsets))


def _site(site: Site) -> str:
    through = f" {', '.join(str(offset) for offset in site.arguments)}" if site.arguments else ""
    return f"{site.address:#x} {site.text}: {site.path} {site.reach}{through}; {site.why}"


def _verification_json(result: Verification) -> dict[str, object]:
    return {
        "schema": CERTIFY_SCHEMA,
        "sha256": result.code_object.sha256,
        "recertified": result.is_recertified,
        "notes": list(result.notes),
        "kernels": [certificate.as_json() for certificate in result.certificates.values()],
    }


def _verification_lines(result: Verification, file: Path) -> Iterator[str]:
    how = "certified again" if result.is_recertified else "no disassembler, so the manifest's word stands"
    yield f"{file}  sha256 {result.code_object.sha256}  {how}"
    yield from (f"{name}: {certificate.verdict}" for name, certificate in result.certificates.items())
    yield from (f"note: {note}" for note in result.notes)
