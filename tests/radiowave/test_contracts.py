# SPDX-License-Identifier: Apache-2.0
"""Resource contracts: a kind of rejection for each thing that a candidate may lose, none for one that keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from radiowave import TARGETS, CodeObject, Contract, RecipeError, UnsupportedTarget, assess, compile_ir, contracts
from radiowave.cli import main
from radiowave.contracts import KINDS
from radiowave.kernel_report import KernelReport, reports
from tests.radiowave import sources


@cache
def built(target: str = "gfx1151", wave: int = 32) -> CodeObject:
    """saxpy with 1 KiB of LDS."""
    return CodeObject.parse(compile_ir(sources.SAXPY, target=target, wave=wave))


@cache
def report() -> KernelReport:
    """What is known about it."""
    return reports(built())["saxpy"]


def kinds(monkeypatch: pytest.MonkeyPatch, changed: KernelReport, contract: Contract) -> list[str]:
    """The rejections of a kernel of which other things are known."""
    monkeypatch.setattr(contracts, "reports", lambda *_: {"saxpy": changed})
    return [rejection.kind for rejection in assess(built(), contract).rejections]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_kernel_that_keeps_everything_is_accepted(target: str) -> None:
    """On every target: its own registers as the incumbent's."""
    found = built(target)
    contract = Contract("saxpy", target, 32, found.kernels["saxpy"].vgpr_count, 32, "vmem_only")
    assert assess(found, contract).rejections == ()


def facts(**changes: Any) -> KernelReport:
    """Other facts of the kernel."""
    return replace(report(), kernel=replace(report().kernel, **changes))


def counted(**changes: Any) -> KernelReport:
    """Other counts of instructions."""
    statistics = report().statistics
    assert statistics is not None
    return replace(report(), statistics=replace(statistics, counts={**statistics.counts, **changes}))


def certified(verdict: Any) -> KernelReport:
    """Another certificate."""
    certificate = report().certificate
    assert certificate is not None
    return replace(report(), certificate=replace(certificate, verdict=verdict))


def test_every_kind_of_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by the one change that it is for."""
    plain, descriptor = Contract("saxpy"), report().kernel.descriptor
    cases = {
        "vgpr_spills": (facts(vgpr_spill_count=1), plain),
        "sgpr_spills": (facts(sgpr_spill_count=1), plain),
        "scratch": (facts(descriptor=replace(descriptor, private_bytes=4)), plain),
        "dynamic_stack": (facts(uses_dynamic_stack=True), plain),
        "wave_mismatch": (report(), Contract("saxpy", wave=64)),
        "workgroup_does_not_fit": (replace(report(), occupancy=replace(report().occupancy, workgroups=0)), plain),
        "occupancy_fall": (
            replace(report(), occupancy=replace(report().occupancy, waves=4)),
            Contract("saxpy", incumbent_vgprs=24),
        ),
        "too_many_clauses": (counted(clauses=33), plain),
        "refused_instructions": (replace(report(), refused=("image_load",)), plain),  # type: ignore[arg-type]
        "wider_certificate": (certified("scalar_args"), Contract("saxpy", verdict="vmem_only")),
        "not_known": (replace(report(), statistics=None, unknown=("no disassembler",)), plain),
        "wrong_target": (report(), Contract("saxpy", target="gfx1100")),
    }
    assert {kind: kinds(monkeypatch, *case) for kind, case in cases.items()} == {kind: [kind] for kind in cases}
    assert set(cases) | {"missing_kernel"} == set(KINDS)


def test_limits_are_where_they_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """One less is accepted."""
    assert kinds(monkeypatch, counted(clauses=32), Contract("saxpy")) == []
    assert kinds(monkeypatch, certified("scalar_args"), Contract("saxpy", verdict="scalar_args")) == []


def test_a_kernel_that_is_not_there() -> None:
    """Named, with those that are."""
    (rejection,) = assess(built(), Contract("axpy")).rejections
    assert (rejection.kind, rejection.seen, rejection.allowed) == ("missing_kernel", "saxpy", "axpy")


def test_lanes_are_compared_not_waves() -> None:
    """48 registers: 16 waves of 64 on gfx1151; one more: 12, which are 768 lanes, more than 16 waves of 32."""
    fits = Contract("saxpy", incumbent_vgprs=1, incumbent_wave=32)
    assert assess(built(wave=64), fits).is_accepted
    falls = Contract("saxpy", incumbent_vgprs=1, incumbent_wave=64)
    assert [r.kind for r in assess(built(), falls).rejections] == ["occupancy_fall"]


def test_no_such_wave_or_target() -> None:
    """Said when the contract is made, or held against."""
    with pytest.raises(UnsupportedTarget):
        Contract("saxpy", wave=48)


@pytest.mark.parametrize("vgprs", [-1, 257])
def test_impossible_incumbents(vgprs: int) -> None:
    """A wave addresses up to 256 registers; a wrong number must not pass for an incumbent of low occupancy."""
    with pytest.raises(RecipeError, match=f"RW0504 contract: an incumbent with {vgprs} VGPRs; allowed: 0 to 256"):
        Contract("saxpy", incumbent_vgprs=vgprs)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes, text and JSON."""
    path = tmp_path / "saxpy.co"
    path.write_bytes(built().data)
    assert main(["assess", str(path), "--kernel", "saxpy", "--incumbent-vgprs", "24"]) == 0
    assert capsys.readouterr().out == "saxpy: accepted\n"
    assert main(["assess", str(path), "--kernel", "saxpy", "--wave", "64", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["accepted"]) == (2, False)
    assert document["rejections"] == [{"kind": "wave_mismatch", "seen": "wave32", "allowed": "wave64"}]
