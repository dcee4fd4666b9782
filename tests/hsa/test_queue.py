# SPDX-License-Identifier: Apache-2.0
"""Submitting packets: nothing is reserved that cannot be published, and a failed queue says so everywhere."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest

from redline.errors import HsaError, QueueFailed, ReplayTimeout
from redline.hsa.abi import hsa_amd_event_t
from redline.sim.dispatch import Dispatch
from redline.sim.errors import MemoryFault
from redline.sim.memory import Memory
from tests.hsa.fakes import fake_agent
from tests.sim.streams import PAD, Remembering, device, ib_packet, launch


def barriers(count: int, signal: int = 0, dependency: int = 0) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """`count` barrier-AND packets."""
    words = [0x00001503, 0, dependency & 0xFFFFFFFF, dependency >> 32, *[0] * 10, signal & 0xFFFFFFFF, signal >> 32]
    return np.array([words] * count, np.uint32)


def test_packets_run_in_order_round_the_ring() -> None:
    """733 packets in batches of 1 to 64 through a ring of 64; the index is that of the last one."""
    with device() as (_, agent), agent.queue(64) as queue, agent.signal(733) as signal:
        submitted, size = 0, 1
        while submitted < 733:
            batch = barriers(min(size, 733 - submitted), signal.handle)
            submitted += len(batch)
            assert queue.submit(batch) == submitted - 1
            size = size % 64 + 1
        assert signal.wait_below(1, 30, poll=queue.check) == 0
        assert queue.read_index == queue.write_index == 733


def test_a_full_ring_leaves_the_write_index_alone() -> None:
    """Case 37: room for the whole batch is found before anything is reserved; afterwards it is there again."""
    with device() as (_, agent), agent.queue(64) as queue, agent.signal(1) as gate, agent.signal(64) as done:
        queue.submit(barriers(1, done.handle, gate.handle))
        queue.submit(barriers(60, done.handle))
        while queue.read_index == 0:
            time.sleep(0.001)
        with pytest.raises(
            ReplayTimeout, match=r"RL1102 .*4 free slots after 0.05 s; allowed: 5 .*nothing was reserved"
        ):
            queue.submit(barriers(5), timeout_s=0.05)
        assert queue.write_index == 61
        timer = threading.Timer(0.05, gate.store, (0,))
        timer.start()
        queue.submit(barriers(5, done.handle), timeout_s=20)
        queue.submit(barriers(59), timeout_s=20)
        timer.join()
        assert done.wait_below(0, 20, poll=queue.check) == -2


@pytest.mark.parametrize(
    ("batch", "seen"),
    [
        (np.zeros((65, 16), np.uint32), "a batch of 65 packets"),
        (np.zeros((0, 16), np.uint32), "a batch of 0 packets"),
        (np.zeros((1, 16), np.int64), "int64 of shape"),
        (np.zeros((1, 15), np.uint32), r"shape \(1, 15\)"),
        (np.zeros((1, 1, 16), np.uint32), r"shape \(1, 1, 16\)"),
    ],
)
def test_a_batch_that_is_none_is_refused_before_anything_is_reserved(batch: Any, seen: str) -> None:
    """Too many, none, or not rows of 16 dwords."""
    with device() as (_, agent), agent.queue(64) as queue:
        with pytest.raises(HsaError, match=f"RL0910 .*{seen}"):
            queue.submit(batch)
        assert queue.write_index == 0


@pytest.mark.parametrize("packets", [0, 1, 48, 1 << 18])
def test_ring_sizes_are_checked_against_the_agent(packets: int) -> None:
    """A power of two from the agent's least to its most."""
    with device() as (_, agent), pytest.raises(HsaError, match="a power of two from 64 to 131072"):
        agent.queue(packets)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failed_queue_fails_waits_and_submits_with_packet_and_kernel(place: int) -> None:
    """Case 44: status, packet index and the kernel's name, in the wait, in `check` and in the next submit."""

    def fault(_d: Dispatch, _m: Memory, _c: threading.Event) -> None:
        raise MemoryFault(0xBAD0, 4, "write")

    with device(backend=Remembering(fault)) as (_, agent), agent.queue(64) as queue, agent.signal(1) as signal:
        with agent.allocate(4096, "kernarg", executable=True) as ib:
            words = launch()
            ib.write(np.array(words, np.uint32))
            queue.submit(barriers(3), describe=lambda place: f"barrier {place}")
            batch = barriers(3)
            batch[place] = ib_packet(ib.address, len(words), signal.handle)
            queue.submit(batch, describe=lambda at: f"launch {at + 7} 'scale'")
            started = time.monotonic()
            with pytest.raises(QueueFailed) as caught:
                signal.wait_below(1, 60, poll=queue.check)
            assert time.monotonic() - started < 10
            assert caught.value.code == "RL1001"
            assert caught.value.where == f"queue {queue.id} on gfx1201, packet {3 + place} (launch {7 + place} 'scale')"
            assert caught.value.seen.startswith("HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION (0x29): ")
            assert "write of 4 bytes at 0xbad0" in caught.value.seen
            for fails in (queue.check, lambda: queue.submit(barriers(1))):
                with pytest.raises(QueueFailed, match=f"launch {7 + place} 'scale'"):
                    fails()
            assert queue.write_index == 6
            assert "0xbad0" in agent.runtime.fault_text()
        with agent.queue(64) as another, agent.signal(1) as done:
            another.submit(barriers(1, done.handle))
            done.wait_below(1, 20, poll=another.check)


def test_a_memory_fault_event_fails_the_queues_of_its_agent() -> None:
    """ROCr reports shader faults by a system event; without a listener it would end the process."""
    handlers: list[int] = []
    name = "hsa_amd_register_system_event_handler"

    def register(callback: int, _data: object) -> int:
        handlers.append(callback)
        return 0

    with fake_agent({name: register}) as agent, agent.queue(64) as queue, agent.queue(64) as second:
        event = hsa_amd_event_t(event_type=0)
        event.memory_fault.virtual_address = 0x7F00DEAD0000
        call = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)(handlers[0])
        event.memory_fault.agent = agent.handle + 1
        assert call(ctypes.addressof(event), None) == 0
        queue.check()
        event.memory_fault.agent = agent.handle
        assert call(ctypes.addressof(event), None) == 0
        for failed in (queue, second):
            with pytest.raises(QueueFailed, match=r"HSA_STATUS_ERROR_MEMORY_FAULT .*0x7f00dead0000"):
                failed.check()
        event.event_type = 9
        assert call(ctypes.addressof(event), None) == 0x1000


def test_a_closed_queue_refuses_work_and_closes_once() -> None:
    """Use after close is an error with the queue's name."""
    with device() as (_, agent):
        with agent.queue(64) as queue:
            pass
        queue.close()
        with pytest.raises(HsaError, match="RL0910 <Queue 0 of 64 packets on gfx1201>: closed"):
            queue.submit(barriers(1))


def test_many_threads_share_a_queue() -> None:
    """Every packet of every thread runs; none is lost or doubled."""
    with device() as (_, agent), agent.queue(64) as queue, agent.signal(160) as signal:

        def work() -> None:
            for _ in range(20):
                queue.submit(barriers(2, signal.handle), timeout_s=30)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert signal.wait_below(1, 30, poll=queue.check) == 0
        assert queue.write_index == 160


def test_a_packet_that_was_never_published_stops_nothing_but_what_is_behind_it() -> None:
    """The processor waits at an INVALID header for the doorbell, and goes on when the packet is there."""
    with device() as (_, agent), agent.queue(64) as queue, agent.signal(2) as signal:
        hsa = agent.runtime.hsa
        hole = hsa.call("hsa_queue_add_write_index_scacq_screl", queue.address, 1)
        assert queue.submit(barriers(1, signal.handle)) == 1
        with pytest.raises(ReplayTimeout):
            signal.wait_below(2, 0.05, poll=queue.check)
        ring = queue.ring.reshape(64, 16)
        packet = barriers(1, signal.handle)[0]
        ring[hole, 1:] = packet[1:]
        ring[hole, 0] = packet[0]
        hsa.call("hsa_signal_store_screlease", queue.doorbell, hole)
        assert signal.wait_below(1, 20, poll=queue.check) == 0


def test_streams_need_no_signal() -> None:
    """A packet without a completion signal runs like any other."""
    with device() as (sim, agent), agent.queue(64) as queue, agent.signal(1) as signal:
        with agent.allocate(4096, "kernarg", executable=True) as ib:
            ib.write(np.array(PAD, np.uint32))
            queue.submit(np.vstack([ib_packet(ib.address, 1), barriers(1, signal.handle)]))
            signal.wait_below(1, 20, poll=queue.check)
        assert [packet.name for packet in sim.trace] == ["NOP"]
