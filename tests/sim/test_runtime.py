# SPDX-License-Identifier: Apache-2.0
"""The software device's HSA table: misuse gets the status that the specification names, and life ends cleanly."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from ctypes import byref, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest

import radiowave
from redline.errors import QueueFailed, UnsupportedTarget
from redline.hsa import Runtime
from redline.hsa.abi import AGENT_CALLBACK, Status, SystemInfo, hsa_amd_pointer_info_t
from redline.hsa.lib import Hsa
from redline.hsa.prototypes import PROTOTYPES
from redline.sim.agents import CPU_AGENT, GPU_AGENT
from redline.sim.dispatch import Dispatch
from redline.sim.memory import Memory
from redline.sim.runtime import SimRuntime, open_sim
from tests.sim.streams import Remembering, allocate_raw, device, ib_packet, launch, run_stream

HOST_FINE, LOCAL, GROUP = 0xA0_0000_0001, 0xA0_0000_0004, 0xA0_0000_0005

_NOT_INITIALIZED = Status.HSA_STATUS_ERROR_NOT_INITIALIZED
_ARGUMENT = Status.HSA_STATUS_ERROR_INVALID_ARGUMENT
_AGENT = Status.HSA_STATUS_ERROR_INVALID_AGENT
_ALLOCATION = Status.HSA_STATUS_ERROR_INVALID_ALLOCATION
_POOL = Status.HSA_STATUS_ERROR_INVALID_MEMORY_POOL
_READER = Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER
_EXECUTABLE = Status.HSA_STATUS_ERROR_INVALID_EXECUTABLE
_SYMBOL = Status.HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL
_FROZEN = Status.HSA_STATUS_ERROR_FROZEN_EXECUTABLE


def test_the_table_answers_every_call_that_redline_makes() -> None:
    """One prototype table, and no call without an address."""
    assert set(open_sim("gfx1201", Remembering()).addresses) == set(PROTOTYPES)


def test_an_unknown_target_is_refused() -> None:
    """Prefixes are not guessed from; generic names are none of ours."""
    for name in ("gfx1250", "gfx12-generic", "gfx90a", "sim"):
        with pytest.raises(UnsupportedTarget, match=f"RL0301 .*{name}.*gfx1200, gfx1201"):
            open_sim(name)


def test_a_missing_disassembler_shows_when_the_device_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the first kernel: `ToolchainError` says where it was looked for. And with it, the device opens."""
    with monkeypatch.context() as patch:
        patch.setenv("RADIOWAVE_LIBLLVM", "/nowhere/libLLVM.so")
        with pytest.raises(radiowave.ToolchainError, match=r"RW0102 .*/nowhere/libLLVM.so"):
            Runtime.sim("gfx1201")
    with Runtime.sim("gfx1201") as runtime:
        assert [agent.target for agent in runtime.agents()] == ["gfx1201"]


def test_calls_before_init_and_after_the_last_shut_down_are_refused() -> None:
    """References are counted."""
    sim = SimRuntime("gfx1201", Remembering())
    hsa = Hsa(sim.table)
    assert [hsa.call("hsa_init") for _ in range(2)] == [0, 0]
    assert hsa.call("hsa_shut_down") == 0
    assert _iterate(hsa) == 0
    assert hsa.call("hsa_shut_down") == 0
    for name in ("hsa_shut_down", "hsa_signal_destroy", "hsa_queue_destroy"):
        assert hsa.call(name, *[1][: len(PROTOTYPES[name].arguments)]) == _NOT_INITIALIZED
    assert _iterate(hsa) == _NOT_INITIALIZED
    assert sim.errors == []


def _iterate(hsa: Any) -> int:
    return int(hsa.call("hsa_iterate_agents", AGENT_CALLBACK(lambda _agent, _data: 0), None))


def test_misuse_returns_the_status_of_the_specification() -> None:
    """Null pointers, unknown handles, wrong sizes: a status each, an account each, and no exception."""
    out, handle = c_uint64(), c_uint64(GPU_AGENT)
    here = ctypes.create_string_buffer(64)
    with device("gfx1030") as (sim, agent), agent.allocate(64, "fine") as buffer:
        cases: list[tuple[str, tuple[Any, ...], Status]] = [
            ("hsa_iterate_agents", (None, None), _ARGUMENT),
            ("hsa_system_get_info", (999, here), _ARGUMENT),
            ("hsa_system_get_info", (2, None), _ARGUMENT),
            ("hsa_agent_get_info", (5, 0, here), _AGENT),
            ("hsa_agent_get_info", (GPU_AGENT, 999, here), _ARGUMENT),
            ("hsa_amd_agent_iterate_memory_pools", (5, None, None), _AGENT),
            ("hsa_amd_memory_pool_get_info", (5, 0, here), _POOL),
            ("hsa_amd_memory_pool_get_info", (LOCAL, 99, here), _ARGUMENT),
            ("hsa_amd_memory_pool_allocate", (5, 64, 0, byref(out)), _POOL),
            ("hsa_amd_memory_pool_allocate", (LOCAL, 0, 0, byref(out)), _ARGUMENT),
            ("hsa_amd_memory_pool_allocate", (LOCAL, 64, 0, None), _ARGUMENT),
            ("hsa_amd_memory_pool_allocate", (LOCAL, 64, 8, byref(out)), _ARGUMENT),
            ("hsa_amd_memory_pool_allocate", (GROUP, 64, 0, byref(out)), _ALLOCATION),
            ("hsa_amd_memory_pool_free", (0x1234,), _ALLOCATION),
            ("hsa_amd_memory_pool_free", (buffer.address + 1,), _ALLOCATION),
            ("hsa_amd_agents_allow_access", (0, byref(handle), None, buffer.address), _ARGUMENT),
            (
                "hsa_amd_agents_allow_access",
                (1, byref(out), None, buffer.address),
                _AGENT,
            ),
            ("hsa_amd_agents_allow_access", (1, byref(handle), None, 64), _ALLOCATION),
            ("hsa_amd_pointer_info", (buffer.address, None, None, None, None), _ARGUMENT),
            ("hsa_memory_copy", (None, here, 4), _ARGUMENT),
            ("hsa_memory_copy", (buffer.address + 61, here, 4), _ALLOCATION),
            ("hsa_memory_copy", (here, buffer.address - 1, 4), _ALLOCATION),
            ("hsa_signal_create", (1, 0, None, None), _ARGUMENT),
            ("hsa_signal_destroy", (64,), Status.HSA_STATUS_ERROR_INVALID_SIGNAL),
            (
                "hsa_queue_create",
                (CPU_AGENT, 64, 0, None, None, 0, 0, byref(out)),
                _AGENT,
            ),
            ("hsa_queue_create", (GPU_AGENT, 63, 0, None, None, 0, 0, byref(out)), _ARGUMENT),
            ("hsa_queue_create", (GPU_AGENT, 32, 0, None, None, 0, 0, byref(out)), _ARGUMENT),
            ("hsa_queue_create", (GPU_AGENT, 64, 0, None, None, 0, 0, None), _ARGUMENT),
            ("hsa_queue_destroy", (64,), Status.HSA_STATUS_ERROR_INVALID_QUEUE),
            ("hsa_code_object_reader_create_from_memory", (None, 4, byref(out)), _ARGUMENT),
            ("hsa_code_object_reader_destroy", (99,), _READER),
            ("hsa_executable_create_alt", (1, 0, None, None), _ARGUMENT),
            ("hsa_executable_destroy", (99,), _EXECUTABLE),
            ("hsa_executable_freeze", (99, None), _EXECUTABLE),
            ("hsa_executable_symbol_get_info", (99, 22, byref(out)), _SYMBOL),
        ]
        for name, arguments, status in cases:
            assert agent.runtime.hsa.call(name, *arguments) == status, (name, arguments)
            assert agent.runtime.fault_text().startswith(f"{name}: ")
        assert agent.runtime.hsa.call("hsa_signal_load_scacquire", 64) == 2**63 - 1
        assert sim.errors == []


def test_a_doorbell_ends_with_its_queue_and_not_before() -> None:
    """Found by fuzzing: a host that destroyed it got a queue and a device that could not be ended any more."""
    with device() as (sim, agent):
        hsa = agent.runtime.hsa
        with agent.queue() as queue:
            assert hsa.call("hsa_signal_destroy", queue.doorbell) == Status.HSA_STATUS_ERROR_INVALID_SIGNAL
            assert "is the doorbell of a queue" in sim.table.fault_text()
            run_stream(agent, launch())
        assert hsa.call("hsa_signal_destroy", queue.doorbell) == Status.HSA_STATUS_ERROR_INVALID_SIGNAL
        assert "is not alive" in sim.table.fault_text()


def test_executables_refuse_loads_in_the_wrong_order() -> None:
    """Unknown reader, frozen executable, frozen twice, the host as an agent."""
    reader, executable = c_uint64(), c_uint64()
    code = ctypes.create_string_buffer(b"no code", 7)
    with device() as (_, agent):
        hsa = agent.runtime.hsa
        load = "hsa_executable_load_agent_code_object"
        assert hsa.call("hsa_code_object_reader_create_from_memory", code, 7, byref(reader)) == 0
        assert hsa.call("hsa_executable_create_alt", 1, 0, None, byref(executable)) == 0
        for arguments, status in (
            ((executable, CPU_AGENT, reader, None, None), _AGENT),
            ((executable, GPU_AGENT, 99, None, None), _READER),
            ((99, GPU_AGENT, reader, None, None), _EXECUTABLE),
            ((executable, GPU_AGENT, reader, None, None), Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT),
        ):
            assert hsa.call(load, *arguments) == status
        assert hsa.call("hsa_executable_freeze", executable, None) == 0
        assert hsa.call("hsa_executable_freeze", executable, None) == _FROZEN
        assert hsa.call(load, executable, GPU_AGENT, reader, None, None) == _FROZEN


def test_uncached_allocations_exist_on_gfx12_alone() -> None:
    """Flag 8, as in ROCr."""
    for target, status in (("gfx1201", 0), ("gfx1100", _ARGUMENT)):
        with device(target) as (_, agent):
            assert allocate_raw(agent.runtime, HOST_FINE, 64, 8)[0] == status


def test_pointer_info_fills_no_more_than_the_caller_knows() -> None:
    """An older caller passes a smaller structure: what lies behind it stays as it was."""
    with device() as (_, agent), agent.allocate(100, "device") as buffer:
        raw = (c_uint8 * 64)(*[0xEE] * 64)
        ctypes.memmove(raw, bytes(c_uint32(32)), 4)
        assert agent.runtime.hsa.call("hsa_amd_pointer_info", buffer.address, raw, None, None, None) == 0
        info = hsa_amd_pointer_info_t.from_buffer_copy(bytes(raw))
        assert (info.size, info.agentBaseAddress, info.sizeInBytes) == (32, buffer.address, 100)
        assert bytes(raw[32:]) == b"\xee" * 32


def test_the_clock_moves_at_its_own_frequency() -> None:
    """Timestamps count 100 million a second."""
    before, after, frequency = c_uint64(), c_uint64(), c_uint64()
    with device() as (_, agent):
        hsa = agent.runtime.hsa
        hsa.check("hsa_system_get_info", SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP, byref(before))
        threading.Event().wait(0.02)
        hsa.check("hsa_system_get_info", SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP, byref(after))
        hsa.check("hsa_system_get_info", SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, byref(frequency))
    assert frequency.value == 100_000_000
    assert 0.019 < (after.value - before.value) / frequency.value < 60


AQL_REFUSED = {
    "agent dispatch": ([0x1504], "HSA_PACKET_TYPE_AGENT_DISPATCH"),
    "type 9": ([0x1509], "type 9"),
    "scope 3": ([0x00011F00], "header: 0x00011f00"),
    "reserved header bits": ([0x00013500], "header: 0x00013500"),
    "vendor format 2": ([0x00021500], "vendor format"),
    "no format": ([0x00001500], "vendor format"),
    "jump command": ([0x00011500, 0xC0023F02], "INDIRECT_BUFFER header"),
    "misaligned": ([0x00011500, 0xC0023F00, 0x1001], "IB_BASE_LO"),
    "beyond 48 bits": ([0x00011500, 0xC0023F00, 0x1000, 0x10000], "IB_BASE_HI"),
    "not valid": ([0x00011500, 0xC0023F00, 0x1000, 0, 0x10, 0xA], r"VALID \(bit 23\)"),
    "cache policy": ([0x00011500, 0xC0023F00, 0x1000, 0, 0x30800010, 0xA], "IB control"),
    "dw_cnt_remain": ([0x00011500, 0xC0023F00, 0x1000, 0, 0x800010, 0xB], "dw_cnt_remain: 0x0000000b"),
    "reserved": ([0x00011500, 0xC0023F00, 0x1000, 0, 0x800010, 0xA, 0, 1], "dword 7: reserved"),
    "no such buffer": ([0x00011500, 0xC0023F00, 0x1000, 0, 0x800010, 0xA], "indirect buffer at 0x1000"),
    "dead signal": ([0x00001503, *[0] * 13, 0x40, 0], "completion signal 0x40"),
    "dead dependency": ([0x00001503, 0, 0x40], "dep_signal 0x40"),
    "barrier reserved": ([0x00001503, 7], "dword 1: reserved: 0x00000007"),
    "barrier with a format": ([0x00011503], "bits 31:16"),
}


@pytest.mark.parametrize("name", AQL_REFUSED)
def test_aql_packets_that_are_refused(name: str) -> None:
    """Each names the packet's index, the dword and what is allowed."""
    words, message = AQL_REFUSED[name]
    packet = np.array([*words, *[0] * (16 - len(words))], np.uint32)
    with device() as (_, agent), agent.queue() as queue, agent.signal(1) as signal:
        queue.submit(packet)
        with pytest.raises(QueueFailed, match=rf"INVALID_PACKET_FORMAT \(0x1009\): .*({message})"):
            signal.wait_below(1, 20, poll=queue.check)


def test_a_barrier_waits_for_all_its_signals() -> None:
    """Five dependencies, null ones satisfied; the next packet runs only after it."""
    with (
        device() as (_, agent),
        agent.queue() as queue,
        agent.signal(1) as first,
        agent.signal(1) as second,
        agent.signal(1) as done,
    ):
        words = [0x1503, 0, first.handle & 0xFFFFFFFF, first.handle >> 32, 0, 0]
        words += [second.handle & 0xFFFFFFFF, second.handle >> 32, *[0] * 6]
        words += [done.handle & 0xFFFFFFFF, done.handle >> 32]
        queue.submit(np.array(words, np.uint32))
        for signal in (first, second):
            assert done.load() == 1
            signal.store(0)
        done.wait_below(1, 20, poll=queue.check)


def test_a_barrier_that_nothing_satisfies_ends_with_the_devices_patience() -> None:
    """With the signals it waited for and what it saw; a destroyed queue ends it at once."""
    with device(patience_s=0.05) as (_, agent), agent.signal(3) as never, agent.queue() as queue:
        words = np.array([0x1503, 0, never.handle & 0xFFFFFFFF, never.handle >> 32, *[0] * 12], np.uint32)
        queue.submit(words)
        with pytest.raises(QueueFailed, match=rf"barrier-AND: waited 0.05 s .*{never.handle:#x} = 3"):
            never.wait_below(1, 20, poll=queue.check)
    with device(patience_s=3600) as (_, agent), agent.signal(3) as never, agent.queue() as queue:
        queue.submit(np.array([0x1503, 0, never.handle & 0xFFFFFFFF, never.handle >> 32, *[0] * 12], np.uint32))


def test_a_device_survives_every_kind_of_failure() -> None:
    """Refused packet, fault and hang, each on its own queue; the next stream on the same device is whole."""

    def act(dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        if dispatch.dims[0] == 2:
            memory.u32_at(0x10)
        if dispatch.dims[0] == 3:
            cancelled.wait(20)

    backend = Remembering(act)
    with device(backend=backend) as (sim, agent):
        for groups, error in ((2, "read of 4 bytes at 0x10"), (3, "value 1 after 0.05 s"), (0, "at least 1")):
            with pytest.raises(Exception, match=error):
                run_stream(agent, launch(groups=groups), timeout_s=5 if groups != 3 else 0.05)
            run_stream(agent, launch(groups=1))
        assert sim.queues == {}
        assert [seen.dims[0] for seen in backend.seen] == [2, 1, 3, 1, 1]


def test_shutting_down_stops_hung_queues_and_frees_everything() -> None:
    """The runtime closed over open queues, buffers and signals: threads end, the back end is closed."""
    closed: list[str] = []

    class Closing(Remembering):
        def close(self) -> None:
            closed.append("backend")

    started = threading.Event()

    def hang(_d: Dispatch, _m: Memory, cancelled: threading.Event) -> None:
        started.set()
        cancelled.wait(20)

    sim = SimRuntime("gfx1201", Closing(hang))
    runtime = Runtime.of_table(sim.table)
    agent = runtime.agents()[0]
    ib, queue, signal = agent.allocate(4096, "kernarg", executable=True), agent.queue(), agent.signal(1)
    ib.write(np.array(launch(), np.uint32))
    queue.submit(ib_packet(ib.address, len(launch()), signal.handle))
    assert started.wait(20)
    runtime.close()
    assert closed == ["backend"]
    assert sim.memory.allocations == ()
    assert not [t for t in threading.enumerate() if t.name.startswith("redline-sim-queue")]
    for handle in (signal, queue, ib):
        handle.close()


def test_devices_do_not_outlive_their_runtime() -> None:
    """Opening and closing many devices leaks neither threads nor the device object."""
    before = threading.active_count()
    counts = []
    for _ in range(3):
        for _ in range(5):
            with device() as (_, agent):
                run_stream(agent, launch())
        gc.collect()
        counts.append(sum(type(thing) is SimRuntime for thing in gc.get_objects()))
    assert threading.active_count() == before
    assert counts[2] <= counts[0]


def test_a_queue_wakes_by_its_doorbell_alone() -> None:
    """No polling: an idle queue's thread runs no Python at all."""
    with device() as (_, agent), agent.queue() as queue:
        thread = next(t for t in threading.enumerate() if t.name == f"redline-sim-queue-{queue.id}")
        assert thread.daemon
        assert thread.ident is not None
        frames = set()
        for _ in range(20):
            threading.Event().wait(0.002)
            frame = sys._current_frames()[thread.ident]
            frames.add((id(frame), frame.f_lasti))
        assert len(frames) == 1


def test_addresses_are_real() -> None:
    """The device's addresses are this process's: a copy through ctypes sees the same bytes."""
    with device() as (sim, agent), agent.allocate(16, "fine") as buffer:
        sim.memory.store(buffer.address, b"sixteen bytes...")
        assert ctypes.string_at(buffer.address, 16) == b"sixteen bytes..."
        assert c_void_p(buffer.address).value == buffer.address
