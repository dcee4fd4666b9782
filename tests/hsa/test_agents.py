# SPDX-License-Identifier: Apache-2.0
"""What agents say of themselves, which one a name means, and queues with a mask or a priority."""

from __future__ import annotations

import ctypes
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_uint32
from pathlib import Path
from typing import Any

import pytest

import redline as rl
from redline.doctor import rocm_version
from redline.errors import HsaError, QueueFailed
from redline.hsa import OldRuntimeWarning, Runtime
from redline.hsa.abi import AGENT_CALLBACK, AgentInfo, Status
from redline.hsa.causes import CAUSES, CAUSES_OF_CALLS
from redline.hsa.lib import Hsa
from redline.hsa.prototypes import PROTOTYPES
from redline.sim.agents import CPU_AGENT, GPU_AGENT
from redline.sim.runtime import SimRuntime
from tests.hsa.fakes import fake_agent, table_with
from tests.sim.aql_kernels import kernel
from tests.sim.streams import Remembering, bare_signal, destroy_signal, device, launch, run_stream

SECOND = 0xC0_0000_0003


@contextmanager
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A runtime with two GPUs of one kind, at 0000:03:00.0 and 0001:c1:02.3; the second is called "second"."""
    sim = SimRuntime("gfx1201", Remembering())
    hsa = Hsa(sim.table)

    def iterate(callback: int, data: int | None) -> int:
        for agent in (CPU_AGENT, GPU_AGENT, SECOND):
            AGENT_CALLBACK(callback)(agent, data)
        return Status.HSA_STATUS_SUCCESS

    def info(agent: int, key: int, out: int) -> int:
        status = int(hsa.call("hsa_agent_get_info", GPU_AGENT if agent == SECOND else agent, key, out))
        if agent == SECOND and key == AgentInfo.HSA_AMD_AGENT_INFO_PRODUCT_NAME:
            ctypes.memmove(out, b"second\0", 7)
        if agent == SECOND and key == AgentInfo.HSA_AMD_AGENT_INFO_BDFID:
            c_uint32.from_address(out).value = 0xC1 << 8 | 2 << 3 | 3
        if agent == SECOND and key == AgentInfo.HSA_AMD_AGENT_INFO_DOMAIN:
            c_uint32.from_address(out).value = 1
        return status

    errors: list[BaseException] = []
    table = table_with(sim.table, {"hsa_iterate_agents": iterate, "hsa_agent_get_info": info}, errors)
    monkeypatch.setattr(Runtime, "real", lambda: Runtime.of_table(table))
    yield
    assert errors == []


@pytest.mark.parametrize(
    ("name", "pci"),
    [
        ("hsa:0", "0000:03:00.0"),
        ("hsa:1", "0001:c1:02.3"),
        ("hsa:0001:C1:02.3", "0001:c1:02.3"),
        ("hsa:Second", "0001:c1:02.3"),
    ],
)
def test_a_gpu_by_number_place_or_name(name: str, pci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ROCr numbers them, as lspci prints them, or as the vendor calls them."""
    with two_gpus(monkeypatch), rl.open(name) as opened:
        assert opened.agent.pci_id == pci


@pytest.mark.parametrize(("name", "count"), [("hsa:2", 0), ("hsa:0000:04:00.0", 0), ("hsa:gfx1201", 2)])
def test_none_or_two_that_fit_are_listed(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what there is, and what the environment hides."""
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "0,1")
    listed = "0 0000:03:00.0 gfx1201 software device gfx1201; 1 0001:c1:02.3 gfx1201 second"
    text = rf"RL0903 .*{count} that fit among: {listed} \(ROCR_VISIBLE_DEVICES=0,1\)"
    with two_gpus(monkeypatch), pytest.raises(HsaError, match=text):
        rl.open(name)


def test_an_agent_says_what_it_is() -> None:
    """Limits and place, each asked once."""
    with device() as (_, agent):
        assert (agent.target, agent.pci_id, agent.uuid) == ("gfx1201", "0000:03:00.0", "GPU-XX")
        assert (agent.compute_units, agent.max_workgroup, agent.max_queues) == (2, 1024, 128)
        assert agent.max_grid == (2147483647, 65535, 65535)
        assert agent.clock_hz == agent.runtime.ticks_per_second()
        assert agent.chip_id == 0


def test_a_queue_has_its_mask_and_priority_before_anything_runs() -> None:
    """40 units are two words; the calls come behind hsa_queue_create, and only where they are asked for."""
    calls: list[tuple[str, Any]] = []

    def mask(_queue: int, bits: int, words: int) -> int:
        calls.append(("mask", list((c_uint32 * (bits // 32)).from_address(words))))
        return Status.HSA_STATUS_SUCCESS

    def priority(_queue: int, value: int) -> int:
        calls.append(("priority", value))
        return Status.HSA_STATUS_SUCCESS

    with fake_agent({"hsa_amd_queue_cu_set_mask": mask, "hsa_amd_queue_set_priority": priority}) as agent:
        agent.__dict__["compute_units"] = 40
        with agent.queue(cu_mask=[at % 4 < 2 for at in range(40)], priority="high"):
            assert calls == [("mask", [0x33333333, 0x33]), ("priority", 2)]
        with agent.queue():
            assert len(calls) == 2
        for options in (
            {"cu_mask": [True] * 32},
            {"cu_mask": [False] * 40},
            {"cu_mask": [True] + [False] * 39},
            {"priority": "urgent"},
        ):
            with pytest.raises(HsaError, match=r"RL0910 (cu_mask|priority)= of a queue on gfx1201"):
                agent.queue(**options)


def test_a_queue_whose_mask_is_refused_is_given_back() -> None:
    """Nothing half-made stays."""
    refused = {"hsa_amd_queue_cu_set_mask": lambda *_: Status.HSA_STATUS_CU_MASK_REDUCED}
    with fake_agent(refused) as agent:
        before = len(agent.runtime.resources)
        with pytest.raises(HsaError, match=r"HSA_STATUS_CU_MASK_REDUCED.*only for units that are left"):
            agent.queue(cu_mask=[True, True])
        assert len(agent.runtime.resources) == before


def test_dispatches_are_timed_where_the_queue_is_profiled() -> None:
    """AQL dispatches with a completion signal; indirect buffers are not."""
    from redline.encoders.aql import barrier_and_packet

    with device() as (sim, agent), agent.queue() as queue, agent.signal(1) as signal:
        queue.profile()
        sim.signals.note_times(signal.handle, 500, 1500)
        began, ended = signal.dispatch_time(agent)
        assert ended - began == pytest.approx(1000 / agent.runtime.ticks_per_second())
        queue.submit(barrier_and_packet((), signal.handle))
        signal.wait_below(1, 5.0, poll=queue.check)
        assert signal.dispatch_time(agent) == (began, ended), "a barrier packet is no dispatch"
        run_stream(agent, launch())


def test_a_profiled_dispatch_leaves_its_times_in_its_completion_signal() -> None:
    """From the packet to the seconds, and only while profiling is on."""
    with kernel(backend=Remembering(lambda *_: time.sleep(0.02))) as k, k.agent.queue() as queue:
        for on in (False, True):
            queue.profile(on=on)
            with k.agent.signal(1) as signal:
                queue.submit(k.packet(signal=signal.handle))
                signal.wait_below(1, 5.0, poll=queue.check)
                began, ended = signal.dispatch_time(k.agent)
                assert (ended - began > 0.01) is on


def test_a_profiled_dispatch_whose_signal_is_gone_writes_nowhere() -> None:
    """The memory may be somebody else's by then: the queue stops as it does without profiling."""

    def destroy(*_: object) -> None:
        destroy_signal(k.agent, victims.pop())

    with kernel(backend=Remembering(destroy)) as k, k.agent.queue() as queue:
        victims = [bare_signal(k.agent)]
        queue.profile()
        queue.submit(k.packet(signal=victims[0]))
        with (
            k.agent.signal(1) as never,
            pytest.raises(QueueFailed, match="dword 14: completion signal .*gone meanwhile"),
        ):
            never.wait_below(1, 10, poll=queue.check)


@pytest.mark.parametrize("mask", [0, 1, 2, 0xFFFFFFFC])
def test_the_software_device_takes_whole_pairs_of_units(mask: int) -> None:
    """As the driver does for every GPU from gfx10 on."""
    with device() as (sim, agent), agent.queue() as queue:
        words = (c_uint32 * 1)(mask)
        assert agent.runtime.hsa.call("hsa_amd_queue_cu_set_mask", queue.address, 32, words) == Status.HSA_STATUS_ERROR
        with agent.queue(cu_mask=[True, True]) as masked:
            assert sim.queues[masked.address].cu_mask == (3,)


def test_an_empty_list_of_visible_devices_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """ROCr shows no GPU at all then (RvdFilter::SelectZeroDevices)."""
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "")
    with two_gpus(monkeypatch), pytest.raises(HsaError, match="ROCR_VISIBLE_DEVICES=empty, which hides all"):
        rl.open("hsa:2")


def test_every_status_has_its_usual_causes() -> None:
    """Each error of hsa.h and hsa_ext_amd.h; the message has call, name, number and what to do."""
    fine = (Status.HSA_STATUS_SUCCESS, Status.HSA_STATUS_INFO_BREAK)
    assert set(CAUSES) == set(Status) - set(fine)
    assert all(text[0].islower() or text[0] == "P" for text in CAUSES.values())
    with device() as (_, agent):
        error = agent.runtime.hsa.refused("hsa_queue_create", Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES)
    text = r"RL0902 hsa_queue_create: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)"
    assert str(error).startswith(text)
    assert "hardware queues used up" in error.do


def test_causes_of_single_calls() -> None:
    """Calls that we make, statuses that are errors, and another cause than the status alone has."""
    for (call, status), text in CAUSES_OF_CALLS.items():
        assert call in PROTOTYPES
        assert text != CAUSES[status]
        with device() as (_, agent):
            assert agent.runtime.hsa.refused(call, status).do == text


def test_the_rocm_version_stands_beside_the_library(tmp_path: Path) -> None:
    """Stated as it is; one older than the SDK that Redline follows is said to be untried."""
    library = tmp_path / "lib" / "libhsa-runtime64.so.1"
    library.parent.mkdir()
    library.touch()
    assert rocm_version(str(library)).startswith("unknown")
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info" / "version").write_text("7.14.1-123\n")
    assert rocm_version(str(library)) == "7.14.1-123"
    (tmp_path / ".info" / "version").write_text("6.4.3\n")
    assert "older than 7.14" in rocm_version(str(library))
    (tmp_path / ".info" / "version").write_text("develop\n")
    assert rocm_version(str(library)) == "develop"
    assert rocm_version("").startswith("unknown"), "no file, no folder to look in"


@pytest.mark.parametrize(("version", "warns"), [("6.4.3", True), ("7.13.0", True), ("7.14.0", False), ("", False)])
def test_an_old_rocm_is_warned_about(version: str, warns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a GPU is opened, with the place of the caller; the device is usable all the same."""
    monkeypatch.setattr("redline.hsa.rocm_version.installed_version", lambda _library: version)
    monkeypatch.setattr("redline.hsa.rocm_version.file_of", lambda _library: "")
    monkeypatch.setattr("redline.hsa.rocm_version.search_library", lambda: (object(), []))
    with two_gpus(monkeypatch), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with rl.open("hsa:0") as opened:
            assert opened.target == "gfx1201"
    assert [(w.category, w.filename) for w in caught] == ([(OldRuntimeWarning, __file__)] if warns else [])
    assert all(f"ROCm {version} is older than 7.14" in str(w.message) for w in caught)


def test_software_devices_are_of_no_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked for."""
    monkeypatch.setattr("redline.hsa.rocm_version.search_library", lambda: pytest.fail("looked for ROCm"))
    for name in ("sim:gfx1201", "null:gfx1201"):
        rl.open(name).close()
