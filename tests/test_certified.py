# SPDX-License-Identifier: Apache-2.0
"""Certificates at work: a manifest for exactly these bytes narrows the fences, and the hostile machine stays right."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from redline_fuzz.cases import READERS, Case, Memory, Node, Touch
from redline_fuzz.judging import Judged, Tally
from redline_fuzz.oracles import ORACLES

import radiowave
import redline as rl
from radiowave.documents import canonical
from radiowave.manifest import own_hash
from tests.random_plans import FIVE
from tests.word_edits import GCR, packets, where

# Copies a word, by lane or at a place that is the same for all lanes.
SOURCE = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @by_lane(ptr addrspace(1) noalias readonly %x, ptr addrspace(1) noalias %y) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @uniform(ptr addrspace(1) noalias readonly %x, ptr addrspace(1) noalias %y) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(1) %x
  store i32 %v, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""
NARROW = {"by_lane": "V, args K", "uniform": "KV, args K"}


@cache
def code(target: str = "gfx1201", source: str = SOURCE) -> bytes:
    """The two kernels."""
    return radiowave.compile_ir(source, target=target)


@cache
def manifest(target: str = "gfx1201") -> radiowave.Manifest:
    """What Radiowave says about them."""
    return radiowave.make_manifest(code(target), path="two.co")


def chain(kernel: rl.Kernel) -> rl.Plan:
    """Three launches, each of which reads what the one before wrote."""
    graph = rl.Graph()
    buffers = [graph.buffer(f"b{i}", 128, role="in" if i == 0 else "out") for i in range(4)]
    for source, result in pairwise(buffers):
        graph.launch(kernel, grid=1, block=32, args=[rl.read(source), rl.write(result)])
    return graph.compile()


def inner_words(plan: rl.Plan) -> list[int]:
    """The GCR controls of the fences between launches."""
    stream = packets(plan.program.words.tolist(), plan.target)
    dispatches = where(stream, plan.target, "DISPATCH_DIRECT")
    acquires = where(stream, plan.target, "ACQUIRE_MEM")
    return [stream[at][GCR] for at in acquires if dispatches[0] < at < dispatches[-1]]


@pytest.mark.parametrize("target", FIVE)
def test_a_manifest_narrows_the_words(target: str) -> None:
    """Memory model F1: V alone is 0x300, on gfx12 0x100; without a certificate, and for a uniform read, K comes too."""
    both, vector = (0x380, 0x300) if target != "gfx1201" else (0x180, 0x100)
    module = rl.load(code(target), manifest=manifest(target))
    assert inner_words(chain(rl.load(code(target))["by_lane"])) == [both] * 2
    assert inner_words(chain(module["by_lane"])) == [vector] * 2
    assert inner_words(chain(module["uniform"])) == [both] * 2


def test_certificates_are_those_of_the_code() -> None:
    """By kernel: a uniform read of `noalias readonly` is a scalar load, one by lane is not."""
    module = rl.load(code(), manifest=manifest())
    assert module["by_lane"].certificate == READERS["V, args K"]
    assert module["uniform"].certificate == rl.Certificate("scalar_args", frozenset({0}), kernarg_vector_loads=False)
    assert rl.load(code())["by_lane"].certificate is None


def case(reader: str, target: str) -> Case:
    """The same chain for the hostile machine, of kernels that read as the certificate says."""
    memories = (Memory(role="in"), Memory(), Memory(), Memory())
    nodes = tuple(
        Node((Touch(at, 0, 4, "read"), Touch(at + 1, 0, 4, "write")), reader=reader) for at in range(len(memories) - 1)
    )
    return Case(memories, nodes, target=target)


@pytest.mark.parametrize("target", FIVE)
def test_hostile_machine_stays_right(target: str) -> None:
    """Under every schedule, with the narrower fences; and each of them is needed."""
    judged = Judged(case("V, args K", target), Tally())
    assert [f.acquire for f in judged.fences.inner if f.acquire] == [("V",)] * 2
    assert ORACLES["safe"](judged) == ""
    assert ORACLES["minimal"](judged) == ""


def test_hostile_machine_notices_a_false_certificate() -> None:
    """Fences for vector reads under a kernel that reads through K: the check above can fail."""
    honest = Judged(case("KV, args K", "gfx1201"), Tally())
    narrow = Judged(case("V, args K", "gfx1201"), Tally()).fences
    assert honest.difference(narrow) != ""


def test_other_bytes_are_refused() -> None:
    """Both hashes are named."""
    other = code(source=SOURCE.replace("@uniform", "@another"))
    with pytest.raises(rl.CodeObjectError, match="RL0606") as caught:
        rl.load(other, manifest=manifest())
    assert radiowave.CodeObject.parse(other).sha256 in caught.value.seen
    assert manifest().code_object.sha256 in caught.value.allowed


def test_manifest_of_another_target() -> None:
    """A target that the manifest is not for."""
    with pytest.raises(rl.CodeObjectError, match="RL0603"):
        rl.load(code(), "gfx1100", manifest=manifest())


@pytest.mark.parametrize("form", ["path", "bytes", "object"])
def test_forms_of_a_manifest(form: str, tmp_path: Path) -> None:
    """A path, bytes, or what Radiowave made: the same module."""
    path = tmp_path / "two.radiowave.json"
    path.write_bytes(manifest().to_bytes())
    given: Any = {"path": path, "bytes": manifest().to_bytes(), "object": manifest()}[form]
    assert rl.load(code(), manifest=given).kernels == rl.load(code(), manifest=manifest()).kernels


def test_damaged_manifest_names_the_file(tmp_path: Path) -> None:
    """The file, and Radiowave's own code."""
    path = tmp_path / "two.radiowave.json"
    path.write_bytes(manifest().to_bytes().replace(b"vmem_only", b"scalar_args"))
    with pytest.raises(rl.CodeObjectError, match=r"RL0605.*two\.radiowave\.json.*RW0603"):
        rl.load(code(), manifest=path)


def test_a_flattering_manifest_gets_the_weaker_certificate() -> None:
    """Its hash is right and its verdict is not: certified again, the kernel is what it is."""
    document = manifest().as_json()
    for row in document["kernels"]:
        row["certificate"] |= {"verdict": "vmem_only", "scalar_args": [], "deciding": None}
    document["manifest_sha256"] = own_hash(document)
    loaded = rl.load(code(), manifest=canonical(document))["uniform"].certificate
    assert loaded == rl.load(code(), manifest=manifest())["uniform"].certificate


def test_an_undeclared_kernel_needs_accesses() -> None:
    """Memory model F9: a variable of the module is reached by no argument; the launch must name it."""
    source = SOURCE.replace(
        "define amdgpu_kernel void @uniform", "@state = addrspace(1) global i32 0\ndefine amdgpu_kernel void @uniform"
    ).replace("load i32, ptr addrspace(1) %x\n", "load i32, ptr addrspace(1) @state\n")
    data = code(source=source)
    kernel = rl.load(data, manifest=radiowave.make_manifest(data))["uniform"]
    graph = rl.Graph()
    x, y, state = graph.buffer("x", 128, role="in"), graph.buffer("y", 128, role="out"), graph.buffer("state", 4)
    with pytest.raises(rl.UnsupportedKernel, match="RL0410"):
        graph.launch(kernel, grid=1, block=32, args=[rl.read(x), rl.write(y)])
    graph.launch(kernel, grid=1, block=32, args=[rl.read(x), rl.write(y)], accesses=[rl.read(state)])
