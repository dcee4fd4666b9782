# SPDX-License-Identifier: Apache-2.0
"""Buffers: the right pool and flags for each kind, runtime copies, and ranges that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from redline.errors import HsaError
from redline.hsa import Runtime, pointer_info
from redline.hsa.abi import PointerType
from redline.sim.agents import CPU_AGENT, GPU_AGENT, POOLS
from redline.sim.errors import MemoryFault
from redline.sim.runtime import SimRuntime
from tests.hsa.fakes import recording, table_with
from tests.sim.streams import Remembering, device

FINE, KERNARG, COARSE = 2, 3, 4


@pytest.mark.parametrize(
    ("kind", "owner", "pool_flags"),
    [
        ("device", GPU_AGENT, COARSE),
        ("host", CPU_AGENT, COARSE),
        ("fine", CPU_AGENT, FINE),
        ("uncached", CPU_AGENT, FINE),
        ("kernarg", CPU_AGENT, KERNARG),
    ],
)
@pytest.mark.parametrize("executable", [False, True])
@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1200", "gfx1201"])
def test_each_kind_has_its_pool_and_flags(
    kind: str, owner: int, pool_flags: int, executable: bool, target: str
) -> None:
    """Executable is flag 4; uncached is flag 8 where L2 may hold fine-grained host memory, on gfx12.0 alone."""
    with _Recorded(target) as (calls, _, runtime):
        with runtime.agents()[0].allocate(100, kind, executable=executable) as buffer:
            pool, nbytes, flags, _ = next(args for name, args in calls if name == "hsa_amd_memory_pool_allocate")
            info = pointer_info(runtime, buffer.address + 99)
        uncached = 8 if kind == "uncached" and target in ("gfx1200", "gfx1201") else 0
        assert (POOLS[pool].agent, int(POOLS[pool].flags), nbytes) == (owner, pool_flags, 100)
        assert flags == (4 if executable else 0) | uncached
        assert (info.type, info.base, info.nbytes) == (PointerType.HSA_EXT_POINTER_TYPE_HSA, buffer.address, 100)
        assert (info.owner, int(info.flags)) == (owner, pool_flags)
        assert pointer_info(runtime, buffer.address).type == PointerType.HSA_EXT_POINTER_TYPE_UNKNOWN
        assert [name for name, _ in calls] == [
            "hsa_amd_memory_pool_allocate",
            "hsa_amd_agents_allow_access",
            "hsa_amd_memory_pool_free",
        ]


def test_writes_and_reads_are_runtime_copies() -> None:
    """Never a store by the host: the runtime knows how device memory is reached."""
    with _Recorded("gfx1201") as (calls, _, runtime):
        with runtime.agents()[0].allocate(64, "device") as buffer:
            buffer.write(np.arange(8, dtype=np.float32)[::2], offset=8)
            buffer.write(b"\1\2\3")
            assert buffer.read("<f4", 8, 4).tolist() == [0, 2, 4, 6]
            assert buffer.read(count=3).tolist() == [1, 2, 3]
            assert buffer.read("<u8").shape == (8,)
            buffer.write(b"")
        assert [args[2] for name, args in calls if name == "hsa_memory_copy"] == [16, 3, 16, 3, 64]


@pytest.mark.parametrize("kind", ["host", "fine", "uncached", "kernarg"])
def test_host_kinds_have_a_view_in_place(kind: str) -> None:
    """The same bytes that the device sees; device memory has none."""
    with device() as (sim, agent), agent.allocate(20, kind) as buffer, agent.allocate(20, "device") as local:
        view = buffer.view("<u2")
        view[:] = 0x1234
        assert len(view) == 10
        assert buffer.view("<u8").nbytes == 16
        assert sim.memory.bytes_at(buffer.address, 20) == b"\x34\x12" * 10
        with pytest.raises(HsaError, match=r"RL0905 view of a device buffer.*write\(\) and read\(\)"):
            local.view()


@pytest.mark.parametrize(
    ("act", "seen"),
    [
        (lambda b: b.write(bytes(65)), "bytes 0 to 65"),
        (lambda b: b.write(b"x", 64), "bytes 64 to 65"),
        (lambda b: b.write(b"x", -1), "bytes -1 to 0"),
        (lambda b: b.read("<u4", 0, 17), "bytes 0 to 68"),
        (lambda b: b.read("<u4", 64, 1), "bytes 64 to 68"),
    ],
)
def test_ranges_are_checked(act: Any, seen: str) -> None:
    """Half-open, inside the buffer, in bytes."""
    message = f"RL0906 .*{seen}; allowed: bytes 0 to 64 of an open buffer"
    with (
        device() as (_, agent),
        agent.allocate(64, "fine") as buffer,
        pytest.raises(HsaError, match=message),
    ):
        act(buffer)


def test_wrong_kinds_and_sizes_are_refused() -> None:
    """By name, with what exists."""
    with device() as (_, agent):
        for nbytes, kind in ((64, "vram"), (0, "device"), (-1, "host")):
            with pytest.raises(HsaError, match="RL0906 allocation: .*device, host, fine, uncached, kernarg"):
                agent.allocate(nbytes, kind)
        with pytest.raises(HsaError, match="hsa_amd_memory_pool_allocate: HSA_STATUS_ERROR_INVALID_ALLOCATION"):
            agent.allocate(1 << 40, "device")


def test_a_buffer_whose_access_is_refused_is_freed() -> None:
    """A constructor that fails gives back what it took, and the first error is the one raised."""
    sim = SimRuntime("gfx1201", Remembering())
    table = table_with(sim.table, {"hsa_amd_agents_allow_access": lambda *_: 0x1008})
    with Runtime.of_table(table) as runtime:
        before = sim.memory.allocations
        with pytest.raises(HsaError, match="hsa_amd_agents_allow_access"):
            runtime.agents()[0].allocate(64, "fine")
        assert sim.memory.allocations == before


def test_host_memory_is_closed_to_the_device_until_access_is_allowed() -> None:
    """What `Buffer` does in its second call is not decoration."""
    sim = SimRuntime("gfx1201", Remembering())
    table = table_with(sim.table, {"hsa_amd_agents_allow_access": lambda *_: 0})
    with (
        Runtime.of_table(table) as runtime,
        runtime.agents()[0].allocate(64, "fine") as buffer,
        pytest.raises(MemoryFault, match="no access"),
    ):
        sim.memory.u32_at(buffer.address)


def test_a_closed_buffer_is_closed() -> None:
    """Twice closed is once freed; use after close and after the runtime's end is refused."""
    with device() as (sim, agent):
        buffer = agent.allocate(64, "fine")
        survivor = agent.allocate(64, "fine")
        buffer.close()
        buffer.close()
        assert sim.memory.find(buffer.address) is None
        with pytest.raises(HsaError, match="a closed buffer"):
            buffer.write(b"x")
    with pytest.raises(HsaError, match="RL0908 sim runtime: closed"):
        survivor.read()
    survivor.close()
    with pytest.raises(HsaError, match="RL0908"):
        agent.allocate(64)


class _Recorded:
    """A runtime whose memory calls are noted: (calls, sim, runtime)."""

    def __init__(self, target: str) -> None:
        self.sim = SimRuntime(target, Remembering())
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        names = ["hsa_amd_memory_pool_allocate", "hsa_amd_memory_pool_free", "hsa_amd_agents_allow_access"]
        functions = recording(self.calls, [*names, "hsa_memory_copy"], self.sim)
        self.runtime = Runtime.of_table(table_with(self.sim.table, functions))

    def __enter__(self) -> tuple[list[tuple[str, tuple[Any, ...]]], SimRuntime, Runtime]:
        return self.calls, self.sim, self.runtime

    def __exit__(self, *_: object) -> None:
        self.runtime.close()
