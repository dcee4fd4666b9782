# SPDX-License-Identifier: Apache-2.0
"""A manifest: what one code object is, how it was built, and what was certified about its kernels. Schema 4.

Written as canonical JSON (keys sorted, no spaces, ASCII) and one newline, with the hash of everything else in
`manifest_sha256`: the same inputs give the same bytes. Holds no wall clock and no absolute path. A hash says that
nothing was changed by accident; it is no signature. Reads schema 3 of the Rust project too, whose verdicts come from a
scan that misses branches and vector writes, so they count as "scalar_or_unknown".
`verification.py` holds a manifest against bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from radiowave.certificate import KernelCertificate
from radiowave.certifier import RULES, certify
from radiowave.code_object import CodeObject, KernelFacts
from radiowave.disassemble import Disassembler
from radiowave.documents import canonical, read_object
from radiowave.errors import ManifestError

SCHEMA: Final = 4
_OLD_SCHEMA: Final = 3
_HASH: Final = "manifest_sha256"


@dataclass(frozen=True)
class FileId:
    """A file by its relative path ("" where it has none), hash (hex) and size in bytes."""

    path: str
    sha256: str
    nbytes: int


@dataclass(frozen=True)
class Certifier:
    """What made the certificates: the revision of Radiowave's rules, and the disassembler that it read with."""

    rules: int
    disassembler: str


@dataclass(frozen=True)
class ManifestKernel:
    """One kernel: its facts as `radiowave inspect` states them, and its certificate."""

    name: str
    code_sha256: str
    facts: dict[str, Any]
    certificate: KernelCertificate


@dataclass(frozen=True)
class Manifest:
    """A manifest. `file` is what was given, perhaps a bundle; `code_object` the object in it that this is about.

    `source` and `build` (the record of a compilation) are None for an object that was found, not built.
    """

    target_id: str
    file: FileId
    code_object: FileId
    certifier: Certifier | None
    kernels: tuple[ManifestKernel, ...]
    source: FileId | None = None
    build: dict[str, Any] | None = None
    schema: int = field(default=SCHEMA)

    @property
    def certificates(self) -> dict[str, KernelCertificate]:
        """The certificate of each kernel, by name."""
        return {kernel.name: kernel.certificate for kernel in self.kernels}

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`, with its own hash."""
        document = asdict(self) | {"kernels": [asdict(kernel) for kernel in self.kernels]}
        for row, kernel in zip(document["kernels"], self.kernels, strict=True):
            row["certificate"] = kernel.certificate.as_json()
        document[_HASH] = own_hash(document)
        return document

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        return canonical(self.as_json()) + b"\n"

    @classmethod
    def parse(cls, data: bytes, label: str = "manifest") -> Manifest:
        """Read a manifest of schema 3 or 4. Raises ManifestError; `label` names the file in it."""
        document = _document(data, label)
        schema = document.get("schema", document.get("schema_version"))
        if schema == _OLD_SCHEMA:
            return _of_schema_3(document, label)
        if schema != SCHEMA:
            raise ManifestError(
                "RW0602", where=label, seen=f"schema {schema!r}", allowed="3 or 4", do="make the manifest again"
            )
        _check_hash(document, label)
        return _converted(document, cls, label)


def make_manifest(
    data: bytes,
    target: str | None = None,
    *,
    path: str = "",
    source: FileId | None = None,
    build: dict[str, Any] | None = None,
    disassembler: Disassembler | None = None,
) -> Manifest:
    """Inspect and certify a code object, or the one for `target` in a container, and write down what was found.

    `path` is how the manifest calls the file, relative to itself. Raises CodeObjectError, UnsupportedTarget, and
    ToolchainError where no disassembler works; ManifestError for a path that is not relative.
    """
    check_relative(path)
    if disassembler is None:
        with Disassembler() as mine:
            return make_manifest(data, target, path=path, source=source, build=build, disassembler=mine)
    found = CodeObject.read(data, target)
    certificates = certify(found, disassembler)
    return Manifest(
        target_id=found.target_id,
        file=FileId(path, hashlib.sha256(data).hexdigest(), len(data)),
        code_object=FileId("", found.sha256, len(found.data)),
        certifier=Certifier(RULES, f"LLVM {disassembler.library()['version']}"),
        kernels=tuple(
            ManifestKernel(kernel.name, kernel.code_sha256, kernel_facts(kernel), certificates[kernel.name])
            for kernel in found.kernels.values()
        ),
        source=source,
        build=build,
    )


def kernel_facts(kernel: KernelFacts) -> dict[str, Any]:
    """What a code object says about a kernel, as JSON holds it."""
    facts: dict[str, Any] = json.loads(json.dumps(asdict(kernel)))
    return facts


def check_relative(path: str) -> None:
    """Refuse a path that names places on one machine. Raises ManifestError."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or "\\" in path:
        raise ManifestError(
            "RW0601",
            where="manifest",
            seen=f"path {path!r}",
            allowed="a relative path with forward slashes",
            do="name the file relative to its manifest",
        )


def own_hash(document: dict[str, Any]) -> str:
    """What `manifest_sha256` of a document must be."""
    return hashlib.sha256(canonical({k: v for k, v in document.items() if k != _HASH})).hexdigest()


def _document(data: bytes, label: str) -> dict[str, Any]:
    try:
        return read_object(data)
    except ValueError as error:
        raise _damaged(label, str(error), "a JSON object in UTF-8, each key once") from error


def _check_hash(document: dict[str, Any], label: str) -> None:
    stated, seen = document.get(_HASH), own_hash(document)
    if stated != seen:
        raise ManifestError(
            "RW0603",
            where=label,
            seen=f"{_HASH} {str(stated)[:80]}, but the document hashes to {seen}",
            allowed="the hash of the canonical document without that key",
            do="the manifest was edited or damaged: make it again with `radiowave manifest`",
        )


def _converted(document: dict[str, Any], kind: type[Manifest], label: str) -> Manifest:
    try:
        manifest = msgspec.convert({k: v for k, v in document.items() if k != _HASH}, kind)
    except msgspec.ValidationError as error:
        raise _damaged(label, str(error), "the fields of schema 4, as docs/manifest.md lists them") from error
    names = [kernel.name for kernel in manifest.kernels]
    if len(set(names)) != len(names):
        raise _damaged(label, "two kernels of one name", "names that differ")
    if any(kernel.certificate.name != kernel.name for kernel in manifest.kernels):
        raise _damaged(label, "a certificate for another kernel than its row", "one name in both")
    # What nobody knows may not be lost without a word either.
    if canonical(manifest.as_json()) != canonical(document):
        raise _damaged(label, "fields that schema 4 does not have, or lists out of order", "what Radiowave writes")
    return manifest


def _of_schema_3(document: dict[str, Any], label: str) -> Manifest:
    """Only the hash is taken over, and the kernels' names: no verdict of that scan can be trusted."""
    inspection = document.get("inspection")
    rows = inspection.get("kernels") if isinstance(inspection, dict) else None
    sha256, target = document.get("output_sha256"), document.get("arch")
    named = isinstance(rows, list) and all(isinstance(r, dict) and isinstance(r.get("name"), str) for r in rows)
    if (
        document.get("compiler") != "radiowave"
        or not named
        or not isinstance(sha256, str)
        or not isinstance(target, str)
    ):
        raise _damaged(
            label, "schema 3 without what it needs", "compiler, arch, output_sha256, inspection.kernels[].name"
        )
    assert isinstance(rows, list)
    names = [row["name"].removesuffix(".kd") for row in rows]
    kernels = tuple(
        ManifestKernel(name, "", {}, KernelCertificate(name, f"{name}.kd", "scalar_or_unknown", undeclared=True))
        for name in names
    )
    file = FileId(PurePosixPath(str(document.get("output", ""))).name, sha256.lower(), 0)
    return Manifest(target, file, FileId("", "", 0), None, kernels, schema=_OLD_SCHEMA)


def _damaged(label: str, seen: str, allowed: str) -> ManifestError:
    return ManifestError("RW0601", where=label, seen=seen, allowed=allowed, do="make the manifest again")
