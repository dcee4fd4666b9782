# SPDX-License-Identifier: Apache-2.0
"""Hold a manifest against bytes: the hashes must match, the facts must follow from the bytes, and of the stated and the
recomputed certificate the weaker one counts.

Where no disassembler exists the manifest's word stands, and the result says so.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from radiowave.certificate import KernelCertificate
from radiowave.certifier import RULES, certify
from radiowave.code_object import CodeObject
from radiowave.disassemble import Disassembler
from radiowave.errors import ManifestError, ToolchainError
from radiowave.manifest import Manifest, kernel_facts

_NO_DISASSEMBLER = "RW0102"


@dataclass(frozen=True)
class Verification:
    """What may be believed of a manifest. `certificates` are by kernel name.

    `is_recertified` is False where no disassembler exists. `notes` are differences between what the manifest states and
    what was found, in words; with none, everything in it was confirmed or could not be checked.
    """

    code_object: CodeObject
    certificates: dict[str, KernelCertificate]
    is_recertified: bool
    notes: tuple[str, ...]


def verify(manifest: Manifest, data: bytes, disassembler: Disassembler | None = None) -> Verification:
    """Check the bytes of a file, or of the code object alone, against their manifest.

    Raises ManifestError (RW0604) for other bytes, naming both hashes; CodeObjectError for bytes that are no code
    object, UnsupportedTarget for a target that is not on the list, ToolchainError where a disassembler exists and
    fails.
    """
    seen = hashlib.sha256(data).hexdigest()
    stated = {sha256 for sha256 in (manifest.file.sha256, manifest.code_object.sha256) if sha256}
    if seen not in stated:
        raise _other_bytes(f"sha256 {seen}", " or ".join(f"sha256 {sha256}" for sha256 in sorted(stated)))
    found = CodeObject.read(data, manifest.target_id)
    if manifest.code_object.sha256 and found.sha256 != manifest.code_object.sha256:
        raise _other_bytes(f"an object with sha256 {found.sha256}", f"sha256 {manifest.code_object.sha256}")
    fresh = _recertified(found, disassembler)
    notes = [*_difference_of_facts(manifest, found), *_difference_of_rules(manifest)]
    certificates = dict(manifest.certificates)
    for name, certificate in (fresh or {}).items():
        stated_one = certificates.get(name)
        if stated_one is not None:
            certificates[name] = stated_one.weaker(certificate)
            notes += _difference(name, stated_one, certificate, manifest)
    known = {name: c for name, c in certificates.items() if name in found.kernels}
    return Verification(found, known, fresh is not None, tuple(notes))


def _recertified(found: CodeObject, disassembler: Disassembler | None) -> dict[str, KernelCertificate] | None:
    try:
        return certify(found, disassembler)
    except ToolchainError as error:
        if error.code != _NO_DISASSEMBLER:
            raise
        return None


def _difference_of_facts(manifest: Manifest, found: CodeObject) -> list[str]:
    if manifest.schema == 3:
        return ["schema 3: only the hash and the names were read; its verdicts are not trusted"]
    stated = {kernel.name: kernel.facts for kernel in manifest.kernels}
    fresh = {name: kernel_facts(kernel) for name, kernel in found.kernels.items()}
    notes = [f"kernel {name}: not in the code object" for name in sorted(stated.keys() - fresh.keys())]
    notes += [f"kernel {name}: not in the manifest, so without a certificate" for name in sorted(fresh.keys() - stated)]
    for name in sorted(stated.keys() & fresh.keys()):
        keys = [key for key in sorted({*stated[name], *fresh[name]}) if stated[name].get(key) != fresh[name].get(key)]
        if keys:
            notes.append(f"kernel {name}: the manifest states another {', '.join(keys)}")
    return notes


def _difference_of_rules(manifest: Manifest) -> list[str]:
    if manifest.certifier is None or manifest.certifier.rules == RULES:
        return []
    return [f"certified by revision {manifest.certifier.rules} of the rules; this is revision {RULES}"]


def _difference(name: str, stated: KernelCertificate, fresh: KernelCertificate, manifest: Manifest) -> list[str]:
    if manifest.schema == 3 or stated.as_json() == fresh.as_json():
        return []
    words = f"states {stated.verdict}, and its code gives {fresh.verdict}"
    return [f"kernel {name}: the manifest {words if stated.verdict != fresh.verdict else 'states other evidence'}"]


def _other_bytes(seen: str, allowed: str) -> ManifestError:
    return ManifestError(
        "RW0604",
        where="manifest",
        seen=seen,
        allowed=f"the bytes that it is about: {allowed}",
        do="take the manifest that was made for these bytes, or make one with `radiowave manifest`",
    )
