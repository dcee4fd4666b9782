# SPDX-License-Identifier: Apache-2.0
"""Manifests: canonical bytes with their own hash, nothing believed that was edited, the weaker verdict kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from redline_fuzz.bundles import bundle, device_id

import radiowave
from radiowave import CodeObjectError, Manifest, ManifestError, make_manifest, verify
from radiowave.certificate import KernelCertificate, Site
from radiowave.cli import main
from radiowave.documents import canonical
from radiowave.manifest import own_hash
from tests.radiowave import sources
from tests.radiowave.corpus_ir import source

Document = dict[str, Any]


@cache
def code(target: str = "gfx1201") -> bytes:
    """One kernel."""
    return radiowave.compile_ir(sources.SAXPY, target=target)


@cache
def made() -> Manifest:
    """Its manifest."""
    return make_manifest(code(), path="saxpy.co")


def test_bytes_come_back() -> None:
    """Written, read and written again: the same; the hash is that of the rest, in canonical form."""
    data = made().to_bytes()
    assert Manifest.parse(data) == made()
    assert Manifest.parse(data).to_bytes() == data
    document = json.loads(data)
    assert document["manifest_sha256"] == own_hash({k: v for k, v in document.items() if k != "manifest_sha256"})
    assert data == canonical(document) + b"\n"


def test_same_bytes_in_every_process(tmp_path: Path) -> None:
    """Across hash seeds and folders, and with no place of this machine inside."""
    path = tmp_path / "saxpy.co"
    path.write_bytes(code())
    found = []
    for seed in ("1", "2"):
        command = (sys.executable, "-m", "radiowave", "manifest", str(path), "-o", str(tmp_path / seed))
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PATH": ""}
        subprocess.run(command, check=True, env=environment, capture_output=True)
        found.append((tmp_path / seed).read_bytes())
    assert found[0] == found[1] == made().to_bytes()
    assert str(tmp_path).encode() not in found[0]


def test_verified_as_it_is() -> None:
    """Nothing to note, and the certificates again."""
    result = verify(Manifest.parse(made().to_bytes()), code())
    assert (result.notes, result.is_recertified) == ((), True)
    assert result.certificates == made().certificates


def test_bundle() -> None:
    """About the object for one target, out of a container or by itself."""
    data = bundle([(device_id(target), code(target)) for target in ("gfx1100", "gfx1201")])
    manifest = make_manifest(data, "gfx1201")
    assert manifest.code_object == made().code_object
    assert verify(manifest, data).certificates == verify(manifest, code()).certificates == made().certificates
    with pytest.raises(ManifestError, match="RW0604"):
        verify(manifest, code("gfx1100"))


def _set(*path: Any, value: Any) -> Callable[[Document], None]:
    def edit(document: Document) -> None:
        at: Any = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return edit


def _twice(document: Document) -> None:
    document["kernels"].append(document["kernels"][0])


# What is done to a manifest, whose hash is then made right; the code, and words of the message.
EDITS: dict[str, tuple[Callable[[Document], None], str, str]] = {
    "no such schema": (_set("schema", value=5), "RW0602", "schema 5"),
    "schema of a wrong type": (_set("schema", value="4"), "RW0602", "schema '4'"),
    "a number for a name": (_set("kernels", 0, "name", value=3), "RW0601", r"kernels\[0\]\.name"),
    "no such verdict": (_set("kernels", 0, "certificate", "verdict", value="fine"), "RW0601", "verdict"),
    "an offset as text": (_set("kernels", 0, "certificate", "scalar_args", value=["0"]), "RW0601", "scalar_args"),
    "a fraction": (_set("kernels", 0, "certificate", "scalar_args", value=[0.5]), "RW0601", "scalar_args"),
    "a key too much": (_set("colour", value="red"), "RW0601", "does not have"),
    "a key too much in a site": (_set("kernels", 0, "certificate", "sites", 0, "x", value=1), "RW0601", "not have"),
    "another kernel's certificate": (_set("kernels", 0, "certificate", "name", value="x"), "RW0601", "another kernel"),
    "a kernel twice": (_twice, "RW0601", "two kernels"),
    "no kernels": (_set("kernels", value=None), "RW0601", "kernels"),
}


@pytest.mark.parametrize("name", EDITS)
def test_malformed(name: str) -> None:
    """Each is refused by the field's name, though its hash is right."""
    edit, code_of_error, words = EDITS[name]
    document = made().as_json()
    edit(document)
    document["manifest_sha256"] = own_hash(document)
    with pytest.raises(ManifestError, match=f"{code_of_error}.*{words}"):
        Manifest.parse(canonical(document))


TEXTS = {
    "nothing": b"",
    "no JSON": b"{",
    "not an object": b"[]",
    "not UTF-8": b'{"a":"\xff"}',
    "NaN": b'{"schema":4,"x":NaN}',
    "a key twice": b'{"schema":4,"schema":4}',
    "deep": b"[" * 100_000,
    "a huge number": b'{"schema":' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_manifest(name: str) -> None:
    """Bytes of any kind end in a ManifestError."""
    with pytest.raises(ManifestError):
        Manifest.parse(TEXTS[name])


def test_edited_without_its_hash() -> None:
    """One letter."""
    with pytest.raises(ManifestError, match="RW0603"):
        Manifest.parse(made().to_bytes().replace(b"gfx1201", b"gfx1200"))


def verdicts(certificates: dict[str, KernelCertificate]) -> dict[str, str]:
    """By kernel."""
    return {name: certificate.verdict for name, certificate in certificates.items()}


def test_flattery_is_noted() -> None:
    """A stated verdict that is narrower than the code's: the code's counts, and the difference is told."""
    data = radiowave.compile_ir(source(), target="gfx1201")
    honest = make_manifest(data)
    kernels = tuple(
        replace(k, certificate=KernelCertificate(k.name, k.certificate.symbol, "vmem_only")) for k in honest.kernels
    )
    result = verify(replace(honest, kernels=kernels), data)
    assert {n: c.verdict for n, c in result.certificates.items()} == {
        n: c.verdict for n, c in honest.certificates.items()
    }
    assert any(
        "uniform: the manifest states vmem_only, and its code gives scalar_args" in note for note in result.notes
    )


def test_modesty_is_kept() -> None:
    """A stated verdict that is wider than the code's counts too."""
    wide = KernelCertificate("saxpy", "saxpy.kd", "scalar_or_unknown", undeclared=True)
    manifest = replace(made(), kernels=(replace(made().kernels[0], certificate=wide),))
    found = verify(manifest, code()).certificates["saxpy"]
    assert (found.verdict, found.undeclared) == ("scalar_or_unknown", True)


def test_other_facts_are_noted() -> None:
    """What the manifest says about a kernel and the object does not."""
    kernel = made().kernels[0]
    facts = kernel.facts | {"vgpr_count": 1}
    (note,) = verify(replace(made(), kernels=(replace(kernel, facts=facts),)), code()).notes
    assert "another vgpr_count" in note


SITE = Site(0x100, "s_load", "scalar", "argument", (8,))
NARROW = KernelCertificate("k", "k.kd", "vmem_only", frozenset(), frozenset({0, 8}), kernarg_vector_loads=False)
ONE = KernelCertificate("k", "k.kd", "scalar_args", frozenset({8}), frozenset({8}), undeclared=True, deciding=SITE)
ANY = KernelCertificate("k", "k.kd", "scalar_or_unknown", variables=("v",), refused=("r",))


@pytest.mark.parametrize("pair", [(NARROW, ONE), (ONE, NARROW)])
def test_weaker_of_two(pair: tuple[KernelCertificate, KernelCertificate]) -> None:
    """Answer by answer, whichever comes first."""
    found = pair[0].weaker(pair[1])
    assert (found.verdict, sorted(found.scalar_args), sorted(found.l2_args)) == ("scalar_args", [8], [8])
    assert (found.kernarg_vector_loads, found.undeclared, found.deciding) == (True, True, SITE)


def test_weaker_of_arguments_and_any() -> None:
    """The list of arguments means nothing beside "scalar_or_unknown"."""
    found = ONE.weaker(ANY)
    assert (found.verdict, found.scalar_args, found.l2_args) == ("scalar_or_unknown", frozenset(), frozenset())
    assert (found.variables, found.refused) == (("v",), ("r",))
    assert ONE.weaker(replace(ONE, scalar_args=frozenset({0}))).scalar_args == {0, 8}


def schema_3(**changes: Any) -> bytes:
    """As the Rust project writes it, in what is read of it."""
    kernels = [{"name": "saxpy", "wavefront_size": 32, "mutable_read_cache": "vmem_only"}]
    document = {"schema_version": 3, "compiler": "radiowave", "arch": "gfx1201", "output": "/build/saxpy.hsaco"}
    document |= {"output_sha256": radiowave.CodeObject.parse(code()).sha256, "inspection": {"kernels": kernels}}
    return json.dumps(document | changes).encode()


def test_schema_3_is_read_and_its_verdict_is_not_believed() -> None:
    """The hash binds it to the bytes; its scan is unsound, so every kernel is "scalar_or_unknown"."""
    result = verify(Manifest.parse(schema_3()), code())
    assert result.certificates["saxpy"].verdict == "scalar_or_unknown"
    assert "not trusted" in result.notes[0]
    with pytest.raises(ManifestError, match="RW0604"):
        verify(Manifest.parse(schema_3()), code("gfx1100"))


@pytest.mark.parametrize("change", [{"compiler": "x"}, {"inspection": []}, {"output_sha256": 3}, {"arch": None}])
def test_damaged_schema_3(change: Document) -> None:
    """Without what ties it to bytes and kernels it is no manifest."""
    with pytest.raises(ManifestError, match="RW0601"):
        Manifest.parse(schema_3(**change))


@pytest.mark.parametrize("path", ["/a/b.co", "a\\b.co"])
def test_absolute_paths_are_refused(path: str) -> None:
    """A manifest moves with its file."""
    with pytest.raises(ManifestError, match="relative"):
        make_manifest(code(), path=path)


def test_no_code_object() -> None:
    """The hash is right and the bytes are none."""
    manifest = replace(made(), file=replace(made().file, sha256=sha256(b"x").hexdigest()))
    with pytest.raises(CodeObjectError):
        verify(manifest, b"x")


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Write, verify, certify; then other bytes, and a manifest that notes a difference."""
    path = tmp_path / "saxpy.co"
    path.write_bytes(code())
    written = tmp_path / "saxpy.radiowave.json"
    assert main(["manifest", str(path)]) == 0
    assert written.read_bytes() == made().to_bytes()
    assert main(["verify", str(written)]) == 0
    assert "certified again\nsaxpy: vmem_only" in capsys.readouterr().out
    assert main(["certify", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["kernels"][0]["verdict"]) == (1, "vmem_only")
    assert main(["certify", str(path), "--explain", "saxpy"]) == 0
    assert "vector argument 0; its address is made from" in capsys.readouterr().out
    written.write_bytes(replace(made(), kernels=()).to_bytes())
    assert main(["verify", str(written), "--json"]) == 1
    assert "without a certificate" in json.loads(capsys.readouterr().out)["notes"][0]
    path.write_bytes(code("gfx1100"))
    assert main(["verify", str(written)]) == 1
    assert "RW0604" in capsys.readouterr().err
