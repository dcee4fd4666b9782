# SPDX-License-Identifier: Apache-2.0
"""Loading code objects: symbols by name, and bytes that are none (the software device's loader answers)."""

from __future__ import annotations

import pytest

import radiowave
from redline import kernels
from redline.errors import CodeObjectError, HsaError
from redline.hsa import Agent
from redline.hsa.abi import Status
from tests.hsa.fakes import fake_agent
from tests.sim.streams import device

TARGET = "gfx1201"


@pytest.fixture(name="code", scope="module")
def _code() -> bytes:
    return kernels.build("saxpy", TARGET, 32)


def test_a_kernel_object_is_the_descriptor_in_device_memory(code: bytes) -> None:
    """Its 64 bytes are those of the file, and the entry lies behind it where the file says, 256-aligned."""
    facts = radiowave.CodeObject.parse(code).kernels["saxpy"]
    with device(TARGET) as (sim, agent), agent.load(code) as loaded:
        address = loaded.kernel_object("saxpy")
        assert loaded.kernel_object("saxpy.kd") == address
        assert address % 64 == 0
        descriptor = sim.memory.bytes_at(address, 64)
        assert int.from_bytes(descriptor[48:52], "little") == facts.descriptor.rsrc1
        entry = address + int.from_bytes(descriptor[16:24], "little", signed=True)
        assert entry == address + facts.descriptor.entry_offset
        assert entry % 256 == 0
        allocation = sim.memory.find(entry, 4)
        assert allocation is not None
        assert allocation.executable
    assert sim.memory.allocations == ()


def test_two_loads_are_two_places(code: bytes) -> None:
    """Each has its own memory and its own life."""
    with device(TARGET) as (sim, agent), agent.load(code) as first:
        with agent.load(code) as second:
            assert first.kernel_object("saxpy") != second.kernel_object("saxpy")
        assert sim.memory.find(first.kernel_object("saxpy")) is not None


def test_an_unknown_symbol_is_named(code: bytes) -> None:
    """What was asked for, and where to look."""
    with device(TARGET) as (_, agent), agent.load(code) as loaded:
        with pytest.raises(HsaError, match=r"RL0909 symbol 'saxpi.kd' on gfx1201: .*INVALID_SYMBOL_NAME"):
            loaded.kernel_object("saxpi")
        with pytest.raises(HsaError, match="RL0902 hsa_executable_symbol_get_info"):
            loaded.variable_address("saxpy.kd")


def test_code_for_another_target_is_refused(code: bytes) -> None:
    """With both machine numbers, before anything is allocated."""
    with device("gfx1100") as (sim, agent):
        before = sim.memory.allocations
        with pytest.raises(CodeObjectError, match=r"RL0610 .*EF_AMDGPU_MACH 0x4e; allowed: 0x41 \(gfx1100\)"):
            agent.load(code)
        assert sim.memory.allocations == before


@pytest.mark.parametrize("length", [1, 16, 63, 64, 300, -1])
def test_truncated_code_is_refused(code: bytes, length: int) -> None:
    """At any length, with nothing left behind, and the device still loads the whole file."""
    with device(TARGET) as (sim, agent):
        before = sim.memory.allocations
        with pytest.raises(CodeObjectError, match="RL0610"):
            agent.load(code[:length])
        assert sim.memory.allocations == before
        agent.load(code).close()


def test_a_failed_load_gives_back_reader_and_executable(code: bytes) -> None:
    """What was made before the failing call is destroyed, in the other order; the first error is raised."""
    destroyed: list[str] = []

    def gone(name: str) -> int:
        destroyed.append(name)
        return 0

    replaced = {
        "hsa_executable_freeze": lambda *_: int(Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES),
        "hsa_executable_destroy": lambda _: gone("executable"),
        "hsa_code_object_reader_destroy": lambda _: gone("reader"),
    }
    with fake_agent(replaced, TARGET) as agent:
        with pytest.raises(HsaError, match="RL0902 hsa_executable_freeze"):
            agent.load(code)
        assert destroyed == ["executable", "reader"]


def test_an_agent_says_what_it_is() -> None:
    """Target name and limits of the software device, as a discrete card reports them."""
    with device("gfx1151") as (_, agent):
        assert isinstance(agent, Agent)
        assert (agent.target, agent.name) == ("gfx1151", "software device gfx1151")
        assert agent.max_grid == (2147483647, 65535, 65535)
        assert (agent.queue_min_size, agent.queue_max_size) == (64, 131072)
        assert "gfx1151" in repr(agent)
