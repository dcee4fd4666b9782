# SPDX-License-Identifier: Apache-2.0
"""Waits of the packet processor: comparisons, what satisfies them, and what does not in time."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from redline.errors import QueueFailed
from tests.sim.memory_packets import halves, memory, release, wait64
from tests.sim.streams import Remembering, device, ib_packet, launch, run_stream

# Waits


@pytest.mark.parametrize(
    ("function", "reference", "holds"),
    [
        *[(0, 9, True), (1, 5, False), (1, 6, True), (2, 5, True), (2, 4, False), (3, 5, True), (3, 4, False)],
        *[(4, 5, False), (4, 4, True), (5, 5, True), (5, 6, False), (6, 5, False), (6, 4, True)],
    ],
)
def test_64_bit_waits_compare_both_halves(function: int, reference: int, holds: bool) -> None:
    """All seven functions; the word holds 5 in its high half under the mask, and noise elsewhere."""
    with memory(patience_s=0.02) as (_, agent, buffer):
        buffer.write(np.array([0xFFFFFFFF, 0x77000005], np.uint32))
        words = wait64(function, buffer.address, reference << 32, 0xFF_00000000)
        if holds:
            run_stream(agent, words)
        else:
            with pytest.raises(QueueFailed, match="WAIT_REG_MEM64: waited 0.02 s .*last saw 0x77000005ffffffff"):
                run_stream(agent, words)


def test_comparisons_are_unsigned() -> None:
    """-1 is the largest number, in 32 and in 64 bits."""
    with memory(patience_s=0.02) as (_, agent, buffer):
        buffer.write(b"\xff" * 8)
        at = buffer.address
        run_stream(agent, wait64(6, at, 1, (1 << 64) - 1))
        run_stream(agent, [0xC0053C00, 0x16, *halves(at), 1, 0xFFFFFFFF, 4])
        with pytest.raises(QueueFailed, match="< 0x1"):
            run_stream(agent, wait64(1, at, 1, (1 << 64) - 1))


def test_one_queue_waits_for_what_another_releases() -> None:
    """A fence between queues: the waiting stream dispatches only after the other one's end of pipe."""
    order: list[int] = []
    backend = Remembering(lambda dispatch, *_: order.append(dispatch.dims[0]))
    with memory(backend=backend) as (_, agent, buffer), agent.queue() as waiting, agent.queue() as releasing:
        buffer.write(bytes(64))
        waits = [*wait64(5, buffer.address, 7, (1 << 64) - 1), *launch(groups=2)]
        releases = [*launch(groups=1), *release(0x00600514, 0x43000000, buffer.address, 7)]
        with agent.allocate(4096, "kernarg", executable=True) as ib, agent.signal(2) as signal:
            ib.write(np.array(waits + releases, np.uint32))
            waiting.submit(ib_packet(ib.address, len(waits), signal.handle))
            time.sleep(0.02)
            releasing.submit(ib_packet(ib.address + 4 * len(waits), len(releases), signal.handle))
            signal.wait_below(1, 10, poll=waiting.check)
    assert order == [1, 2]


def test_a_wait_ends_when_its_queue_is_destroyed() -> None:
    """Patience of an hour, and the queue closes at once."""
    with memory(patience_s=3600) as (_, agent, buffer), agent.allocate(4096, "kernarg", executable=True) as ib:
        buffer.write(bytes(8))
        ib.write(np.array(wait64(3, buffer.address, 7, (1 << 64) - 1), np.uint32))
        queue = agent.queue()
        queue.submit(ib_packet(ib.address, 9))
        time.sleep(0.02)
        started = time.monotonic()
        queue.close()
        assert time.monotonic() - started < 5
        assert not [t for t in threading.enumerate() if t.name == f"redline-sim-queue-{queue.id}"]


def test_gfx10_three_packet_drain() -> None:
    """Zero with confirm, write at end of pipe, wait for it: words of the gfx10 fence, k = 1 and 2."""
    with device("gfx1010") as (sim, agent), agent.allocate(64, "kernarg") as fence:
        lo, hi = fence.address & 0xFFFFFFFF, fence.address >> 32
        words = [0xC0033700, 0x00100200, lo, hi, 0]
        for k in (1, 2):
            words += [0xC0064900, 0x00000528, 0x23010000, lo, hi, k, 0, 0]
            words += [0xC0053C00, 0x00000015, lo, hi, k, 0xFFFFFFFF, 4]
        run_stream(agent, words)
        assert fence.read("<u4", 0, 2).tolist() == [2, 0x7FFADEAD]
        assert [packet.name for packet in sim.trace] == ["WRITE_DATA", *["RELEASE_MEM", "WAIT_REG_MEM"] * 2]


def test_an_unconfirmed_zero_comes_too_late_for_its_wait() -> None:
    """Without WR_CONFIRM the zero lands at the end, over the fence value: why the confirm bit matters."""
    with device("gfx1010", patience_s=0.05) as (_, agent), agent.allocate(64, "kernarg") as fence:
        lo, hi = fence.address & 0xFFFFFFFF, fence.address >> 32
        words = [0xC0033700, 0x00000200, lo, hi, 0, 0xC0053C00, 0x00000013, lo, hi, 0, 0xFFFFFFFF, 4]
        with pytest.raises(QueueFailed, match=rf"WAIT_REG_MEM: waited 0.05 s for \[{fence.address:#x}\].* == 0x0"):
            run_stream(agent, words)
        run_stream(agent, words[:5])
        assert fence.read("<u4", 0, 1)[0] == 0


@pytest.mark.parametrize(
    ("function", "reference", "holds"),
    [
        *[(0, 9, True), (1, 5, False), (1, 6, True), (2, 5, True), (2, 4, False), (3, 5, True), (3, 4, False)],
        *[(4, 5, False), (4, 4, True), (5, 5, True), (5, 6, False), (6, 5, False), (6, 4, True)],
    ],
)
def test_wait_functions(function: int, reference: int, holds: bool) -> None:
    """All seven comparisons of a word that holds 5 under the mask."""
    with device(patience_s=0.02) as (_, agent), agent.allocate(64, "kernarg") as word:
        word.write(np.array([0xFF05], np.uint32))
        lo, hi = word.address & 0xFFFFFFFF, word.address >> 32
        words = [0xC0053C00, 0x00000010 | function, lo, hi, reference, 0xFF, 4]
        if holds:
            run_stream(agent, words)
        else:
            with pytest.raises(QueueFailed, match="last saw 0xff05"):
                run_stream(agent, words)


def test_a_wait_sees_what_the_host_stores_later() -> None:
    """The wait polls memory, so the host can satisfy it."""
    with device() as (_, agent), agent.allocate(64, "fine") as word:
        word.view("<u4")[0] = 0
        lo, hi = word.address & 0xFFFFFFFF, word.address >> 32
        timer = threading.Timer(0.05, lambda: word.view("<u4").__setitem__(0, 7))
        timer.start()
        run_stream(agent, [0xC0053C00, 0x00000013, lo, hi, 7, 0xFFFFFFFF, 4])
        timer.join()
