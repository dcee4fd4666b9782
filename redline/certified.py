# SPDX-License-Identifier: Apache-2.0
"""From a manifest to the certificates of a module's kernels. Radiowave reads, verifies and certifies; this translates.

A certificate counts for exactly the bytes that are loaded.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CodeObjectError
from .kernel import Certificate

if TYPE_CHECKING:
    from radiowave import KernelCertificate, Manifest, RadiowaveError


def certificates(
    manifest: str | PathLike[str] | bytes | Manifest, data: bytes, label: str, target: str | None
) -> tuple[dict[str, Certificate], str]:
    """The certificates by kernel, and the target id that the manifest is for. Raises CodeObjectError."""
    import radiowave

    name = str(manifest) if isinstance(manifest, str | PathLike) else "the manifest"
    where = f"code object {label}, {name}"
    try:
        if not isinstance(manifest, radiowave.Manifest):
            manifest = radiowave.Manifest.parse(
                manifest if isinstance(manifest, bytes) else Path(manifest).read_bytes()
            )
        found = radiowave.verify(manifest, data)
        if target is not None:
            found.code_object.check_target(target, where)
    except radiowave.RadiowaveError as error:
        raise _translated(error, where) from error
    return {name: _certificate(c) for name, c in found.certificates.items()}, manifest.target_id


def _certificate(stated: KernelCertificate) -> Certificate:
    return Certificate(
        stated.verdict, stated.scalar_args, stated.l2_args, stated.kernarg_vector_loads, undeclared=stated.undeclared
    )


def _translated(error: RadiowaveError, where: str) -> CodeObjectError:
    seen, allowed, do = f"{error.code} {error.seen}", error.allowed, error.do
    if error.code == "RW0604":
        return CodeObjectError("RL0606", where=where, seen=seen, allowed=allowed, do=do)
    if error.code == "RW0317":
        return CodeObjectError("RL0603", where=where, seen=seen, allowed=allowed, do=do)
    return CodeObjectError("RL0605", where=where, seen=seen, allowed=allowed, do=do)
