# SPDX-License-Identifier: Apache-2.0
"""What the packet processor writes, copies, waits for and reads from memory, word by word from the public headers.

Headers are count << 16 | opcode << 8 of `nvd.h`; bit positions are those of PAL's MEC structures. Nothing here uses the
encoder: a wrong number in it must not be wrong here too.
"""

from __future__ import annotations

import struct
import threading
import time
import tracemalloc
from ctypes import byref, c_uint64

import numpy as np
import pytest

from redline.errors import QueueFailed
from redline.hsa.abi import AgentInfo, SystemInfo
from redline.sim.errors import Cancelled
from redline.sim.executor import Executor
from redline.sim.packets import Pm4Reader
from tests.sim.memory_packets import copy_data, dispatch_indirect, halves, memory, release, wait64, write_data
from tests.sim.streams import PAD, Remembering, device, ib_packet, launch, run_stream, set_sh

POISON = 0x7FFADEAD
EVERY_FAMILY = ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"]

# Top-of-pipe timestamps in the MEC-clean form: gfx10 and gfx11, then gfx12 with its temporal fields (LU).
CLOCK = {"gfx1010": 0x00010209, "gfx1030": 0x00010209, "gfx1100": 0x00010209, "gfx1151": 0x00010209}
CLOCK["gfx1201"] = 0x06016209


# Copies


def test_copies_move_32_or_64_bits_and_not_one_more() -> None:
    """Memory to memory and immediate data, COUNT_SEL 0 and 1, confirmed; what lies behind stays poison."""
    with memory() as (sim, agent, buffer):
        at = buffer.address
        buffer.write(np.array([0x11111111, 0x22222222], np.uint32))
        words = [
            *copy_data(0x00100202, at, at + 16),
            *copy_data(0x00110202, at, at + 32),
            *copy_data(0x00100205, 0x33333333, at + 48),
            *copy_data(0x00110205, 0x5555555544444444, at + 64),
        ]
        run_stream(agent, words)
        seen = buffer.read("<u4", 16, 14).tolist()
        assert seen[0:2] == [0x11111111, POISON]
        assert seen[4:7] == [0x11111111, 0x22222222, POISON]
        assert seen[8:10] == [0x33333333, POISON]
        assert seen[12:14] == [0x44444444, 0x55555555]
        assert [packet.name for packet in sim.trace] == ["COPY_DATA"] * 4


@pytest.mark.parametrize("target", EVERY_FAMILY)
def test_timestamps_count_in_the_clock_of_the_runtime(target: str) -> None:
    """Top and bottom of pipe around a kernel that takes 20 ms, between two reads of the runtime's clock: monotonic, and
    by its frequency as long as the kernel took at least."""

    def work(*_: object) -> None:
        time.sleep(0.02)

    with memory(target, Remembering(work)) as (_, agent, buffer):
        hsa, before, after, frequency = agent.runtime.hsa, c_uint64(), c_uint64(), c_uint64()
        hsa.check("hsa_system_get_info", SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP, byref(before))
        rsrc1 = 0xE00F0000 if target == "gfx1201" else 0xE0AF0000
        words = [
            *copy_data(CLOCK[target], 0, buffer.address),
            *launch(rsrc1=rsrc1),
            *release(0x00000528, 0x63000000, buffer.address + 8),
            *copy_data(CLOCK[target], 0, buffer.address + 16),
        ]
        run_stream(agent, words)
        hsa.check("hsa_system_get_info", SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP, byref(after))
        hsa.check(
            "hsa_agent_get_info", agent.handle, AgentInfo.HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, byref(frequency)
        )
        start, end, last = buffer.read("<u8", 0, 3).tolist()
        assert before.value <= start <= end <= last <= after.value
        assert frequency.value == agent.runtime.ticks_per_second() == 100_000_000
        assert 0.02 <= (end - start) / frequency.value < 20


def test_a_timestamp_is_of_the_moment_its_packet_runs_however_late_it_lands() -> None:
    """The MEC-clean form has no WR_CONFIRM: a wait on the word in the same stream never sees it, the host does."""
    with memory(patience_s=0.05) as (_, agent, buffer):
        words = copy_data(0x06016209, 0, buffer.address)
        with pytest.raises(QueueFailed, match=r"WAIT_REG_MEM64: waited 0.05 s"):
            run_stream(agent, [*words, *wait64(4, buffer.address, POISON << 32 | POISON, (1 << 64) - 1)])
        run_stream(agent, [*words, *release(0x00000528, 0x63000000, buffer.address + 8)])
        early, end = buffer.read("<u8", 0, 2).tolist()
        assert 0 < early <= end < POISON << 32


# Writes


def test_writes_go_on_from_dword_to_dword_or_stay_at_one_address() -> None:
    """ADDR_INCR (bit 16) set means: do not increment. Destination 2 and 5 are both memory."""
    with memory() as (_, agent, buffer):
        at = buffer.address
        run_stream(agent, [*write_data(0x00100200, at, 1, 2, 3), *write_data(0x00110500, at + 32, 4, 5, 6)])
        assert buffer.read("<u4", 0, 4).tolist() == [1, 2, 3, POISON]
        assert buffer.read("<u4", 32, 2).tolist() == [6, POISON]


def test_unconfirmed_writes_land_in_order_before_the_completion_signal() -> None:
    """Late, but neither lost nor turned round; a copy in the same stream still reads the old value."""
    with memory() as (_, agent, buffer):
        at = buffer.address
        words = [
            *write_data(0x00000200, at, 1),
            *copy_data(0x00100202, at, at + 4),
            *write_data(0x00000200, at, 2),
        ]
        run_stream(agent, words)
        assert buffer.read("<u4", 0, 2).tolist() == [2, POISON]


@pytest.mark.parametrize("target", EVERY_FAMILY)
@pytest.mark.parametrize("event", [0x14, 0x28])
def test_release_fences_of_each_family(target: str, event: int) -> None:
    """Cache flush or bottom of pipe, with the cache bits of the final fence: GLM and GL2 write-back on gfx10 and gfx11,
    GL2 write-back alone on gfx12; 32 and 64 bits, memory and L2."""
    gcr = 0x00600000 if target == "gfx1201" else 0x00603000
    with memory(target) as (_, agent, buffer):
        at, control = buffer.address, gcr | 0x500 | event
        words = [
            *release(control, 0x43000000, at, 0x1122334455667788),
            *release(control, 0x23010000, at + 16, 0xAABBCCDD99999999),
            *release(control, 0x03000000, at + 32, 7),
        ]
        run_stream(agent, words)
        assert buffer.read("<u8", 0, 1)[0] == 0x1122334455667788
        assert buffer.read("<u4", 16, 2).tolist() == [0x99999999, POISON]
        assert buffer.read("<u4", 32, 1)[0] == POISON


def test_cache_bits_that_a_family_does_not_have_are_refused_in_releases() -> None:
    """GLM bits 12 and 13 and GL1 bit 15 are reserved on gfx12; GLK write-back (24) and GLK (30) came with gfx11."""
    reserved = [("gfx1201", 12), ("gfx1201", 13), ("gfx1201", 15)]
    reserved += [(target, bit) for target in ("gfx1030", "gfx1010") for bit in (24, 30)]
    real = [("gfx1100", 13), ("gfx1100", 15), ("gfx1030", 13), ("gfx1030", 15)]
    real += [(target, bit) for target in ("gfx1100", "gfx1201") for bit in (24, 30)]
    for target, bit in reserved:
        with memory(target) as (_, agent, _buffer), pytest.raises(QueueFailed, match="RELEASE_MEM event and GCR"):
            run_stream(agent, release(0x528 | 1 << bit, 0, 0))
    for target, bit in real:
        with memory(target) as (_, agent, _buffer):
            run_stream(agent, release(0x528 | 1 << bit, 0, 0))


# Indirect dispatches


def test_dispatch_arguments_are_read_when_the_packet_runs() -> None:
    """Three dwords of memory, written by the same stream just before; the rest is the queue's registers."""
    backend = Remembering()
    with memory(backend=backend) as (_, agent, buffer):
        words = [
            *launch(groups=4),
            *write_data(0x00100200, buffer.address + 4, 5, 6, 7),
            *dispatch_indirect(buffer.address + 4),
            *dispatch_indirect(buffer.address + 4, 0x8025),
        ]
        run_stream(agent, words)
    direct, indirect, items = backend.seen
    assert (indirect.dims, indirect.entry, indirect.ordinal) == ((5, 6, 7), direct.entry, 1)
    assert (items.dims, items.uses_thread_dimensions) == ((5, 6, 7), True)


@pytest.mark.parametrize("dims", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_a_zero_in_the_arguments_launches_nothing(dims: tuple[int, int, int]) -> None:
    """A shader that found no work writes a zero; the stream goes on, and code that is not there is not asked for."""
    executor = Executor("gfx1201")
    with executor, memory(backend=executor) as (sim, agent, buffer):
        buffer.write(struct.pack("<3I", *dims))
        run_stream(agent, [*launch(groups=4)[:-5], *dispatch_indirect(buffer.address), *PAD])
        assert [packet.name for packet in sim.trace][-2:] == ["DISPATCH_INDIRECT", "NOP"]
    assert executor.wave_instructions == 0


def test_unconfirmed_arguments_come_too_late() -> None:
    """The packet reads what memory holds, and that is poison: a large grid, not the one that was meant."""
    backend = Remembering()
    with memory(backend=backend) as (_, agent, buffer):
        words = [*launch(), *write_data(0x00000200, buffer.address, 1, 1, 1), *dispatch_indirect(buffer.address)]
        run_stream(agent, words)
    assert backend.seen[1].dims == (POISON, POISON, POISON)


# NOPs and chains


def test_a_chain_that_repeats_unconfirmed_writes_keeps_few_of_them() -> None:
    """Found by fuzzing: each round of a circle kept its writes until the end, gigabytes of them."""
    body, packets = 0x3000, 600
    tracemalloc.start()
    try:
        with memory() as (sim, agent, buffer), agent.allocate(1 << 17, "kernarg", executable=True) as ib:
            words = [*write_data(0x00010200, buffer.address, *[0x12345] * body), 0xC0023F00, *halves(ib.address), 0]
            words[-1] = 0x00900000 | len(words)
            ib.write(np.array(words, np.uint32))
            reader = Pm4Reader(sim.target.family, sim.memory, sim.backend, _Stop(packets), 1.0)
            with pytest.raises(Cancelled):
                reader.run(ib.address, len(words), threading.Event())
            assert buffer.read("<u4", 0, 1)[0] == 0x12345, "the first of them have landed"
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


class _Stop:
    """Ends a stream behind a number of packets."""

    def __init__(self, packets: int) -> None:
        self._left = packets

    def __call__(self, _executed: object) -> None:
        self._left -= 1
        if not self._left:
            raise Cancelled


def test_the_trace_keeps_the_beginning_of_a_long_packet() -> None:
    """Found by fuzzing: 4,096 packets of 64 KiB each are gigabytes of Python's numbers."""
    with memory() as (sim, agent, _):
        run_stream(agent, [0xC0001000 | 0x3FFE << 16, *range(0x3FFF)])
        assert sim.trace[0].words == (0xFFFE1000, *range(63))


@pytest.mark.parametrize("body", [1, 2, 100, 0x3FFF])
def test_nops_of_any_length_skip_their_body(body: int) -> None:
    """Count 0 is two dwords, 0x3FFE the longest body, and the words inside may be anything, a bad header included."""
    backend = Remembering()
    with memory(backend=backend) as (sim, agent, _):
        run_stream(agent, [0xC0001000 | body - 1 << 16, *[0xDEADBEEF] * body, *PAD, *launch(groups=3), *PAD])
        assert [packet.name for packet in sim.trace if packet.name == "NOP"] == ["NOP"] * 3
    assert [seen.dims[0] for seen in backend.seen] == [3]


def test_a_chain_of_three_buffers_is_one_stream() -> None:
    """Registers, unconfirmed writes and order go on across the jumps, whatever the buffers' order in memory."""
    backend = Remembering()
    with memory(backend=backend) as (_, agent, buffer), agent.allocate(4096, "kernarg", executable=True) as ib:
        second, third = ib.address + 2048, ib.address
        tail = [*write_data(0x00100200, buffer.address, 2), *launch(groups=3)]
        middle = [*launch(groups=2), 0xC0023F00, *halves(third), 0x00900000 | len(tail)]
        ib.write(np.array(tail, np.uint32))
        ib.write(np.array(middle, np.uint32), 2048)
        head = [*launch(groups=1), *write_data(0x00000200, buffer.address, 1)]
        run_stream(agent, [*head, 0xC0023F00, *halves(second), 0x00900000 | len(middle)])
        assert buffer.read("<u4", 0, 1)[0] == 1  # unconfirmed, so it lands behind the confirmed one
    assert [seen.dims[0] for seen in backend.seen] == [1, 2, 3]


def test_an_endless_chain_ends_with_its_queue() -> None:
    """Ten thousand words a turn: destroying the queue stops it long before the limit of turns."""
    with memory() as (_, agent, _buffer), agent.allocate(65536, "kernarg", executable=True) as ib:
        words = [*PAD * 10000, 0xC0023F00, *halves(ib.address), 0x00900000 | 10004]
        ib.write(np.array(words, np.uint32))
        queue = agent.queue()
        queue.submit(ib_packet(ib.address, len(words)))
        time.sleep(0.05)
        started = time.monotonic()
        queue.close()
        assert time.monotonic() - started < 5


REFUSED = {
    "copy from a register": (copy_data(0x00100200, 0x1000, 0x1000), "COPY_DATA SRC_SEL: .*; allowed: 2 .TC_L2.*5.*9"),
    "copy from the obsolete L2": (copy_data(0x00100201, 0x1000, 0x1000), "COPY_DATA SRC_SEL"),
    "copy from a counter": (copy_data(0x00100204, 0x1000, 0x1000), "COPY_DATA SRC_SEL"),
    "copy from the system clock": (copy_data(0x0011020A, 0, 0x1000), "COPY_DATA SRC_SEL"),
    "copy to a register": (copy_data(0x00100002, 0x1000, 0x1000), "COPY_DATA DST_SEL"),
    "copy to the obsolete L2": (copy_data(0x00110509, 0, 0x1000), "COPY_DATA DST_SEL: 0x00110509; allowed: 2"),
    "copy with phase update": (copy_data(0x20110209, 0, 0x1000), "COPY_DATA control: 0x20110209"),
    "copy, bit 15": (copy_data(0x00118209, 0, 0x1000), "COPY_DATA control"),
    "clock of 32 bits": (copy_data(0x00100209, 0, 0x1000), "COUNT_SEL: .*allowed: 1"),
    "clock with a source": (copy_data(0x00110209, 4, 0x1000), "source of a clock: 0x00000004"),
    "immediate too wide": (copy_data(0x00100205, 1 << 32, 0x1000), "immediate data: 0x00000001"),
    "copy misaligned": (
        copy_data(0x00110202, 0x1004, 0x1008),
        "COPY_DATA address: 0x00001004; allowed: a multiple of 8",
    ),
    "copy misaligned at its target": (copy_data(0x00100202, 0x1004, 0x1002), "address: 0x00001002; .*multiple of 4"),
    "copy beyond 48 bits": (copy_data(0x00100202, 1 << 48, 0x1000), "address high half: 0x00010000"),
    "copy of 5 dwords": ([0xC0034000, 0, 0, 0, 0], "header COPY_DATA: 0xc0034000; allowed: a count of 4"),
    "copy for compute": ([0xC0044002, 0, 0, 0, 0, 0], "COPY_DATA bits 7:0"),
    "write without data": ([0xC0023700, 0x00100200, 0x1000, 0], "at least one word of data"),
    "wait 64 misaligned": (wait64(3, 0x1004, 0, 0), "WAIT_REG_MEM64 address: 0x00001004; allowed: a multiple of 8"),
    "wait 64 on a register": ([0xC0079300, 3, *[0x1000, 0] * 3, 4], "WAIT_REG_MEM64 MEM_SPACE"),
    "wait 64, function 7": (wait64(7, 0x1000, 0, 0), "WAIT_REG_MEM64 FUNCTION"),
    "wait 64, interval": ([*wait64(3, 0x1000, 0, 0)[:8], 0x10000], "WAIT_REG_MEM64 POLL_INTERVAL"),
    "wait 64 with count of 32": ([0xC0059300, *[0] * 6], "WAIT_REG_MEM64: 0xc0059300; allowed: a count of 7"),
    "indirect, graphics form": ([0xC0011602, 0, 0x8045], "DISPATCH_INDIRECT: 0xc0011602; allowed: a count of 2"),
    "indirect misaligned": (dispatch_indirect(0x1002), "DISPATCH_INDIRECT address: 0x00001002"),
    "indirect beyond 48 bits": (dispatch_indirect(1 << 48), "DISPATCH_INDIRECT address high half"),
    "indirect, no shader": (dispatch_indirect(0x1000, 0x8044), "DISPATCH_INDIRECT DISPATCH_INITIATOR: 0x00008044"),
    "indirect, ordered append": (dispatch_indirect(0x1000, 0x800D), "DISPATCH_INITIATOR: 0x0000800d"),
    "release waits": (release(0x000005A8, 0, 0), "RELEASE_MEM event and GCR"),
    "release executes": (release(0x10000528, 0, 0), "RELEASE_MEM event and GCR"),
    "release SEQ 3": (release(0x00C00528, 0, 0), "RELEASE_MEM GCR SEQ"),
    "release with interrupt": (release(0x528, 0x22000000, 0x1000), "RELEASE_MEM selectors"),
    "release discards": (release(0x00080528, 0, 0), "never GL2_DISCARD"),
    "acquire GL1_RANGE 1": ([0xC0065800, 0, 0, 0, 0, 0, 0xA, 0x104], "ACQUIRE_MEM GL1_RANGE"),
    "acquire SEQ 3": ([0xC0065800, 0, 0, 0, 0, 0, 0xA, 0x30100], "ACQUIRE_MEM SEQ"),
    "NOP longer than the buffer": ([0xC0021000, 0, 0], "NOP of 4 dwords"),
    "empty chain": ([0xC0023F00, 0x1000, 0, 0x00900000], "VALID and CHAIN, a size"),
    "chain beyond 48 bits": ([0xC0023F00, 0x1000, 0x10000, 0x00900010], "INDIRECT_BUFFER address high half"),
    "chain misaligned": ([0xC0023F00, 0x1002, 0, 0x00900010], "INDIRECT_BUFFER address: 0x00001002"),
    "chain with another VMID": ([0xC0023F00, 0x1000, 0, 0x01900010], "INDIRECT_BUFFER control"),
    "chain with a policy": ([0xC0023F00, 0x1000, 0, 0x10900010], "INDIRECT_BUFFER control"),
    "chain that is not valid": ([0xC0023F00, 0x1000, 0, 0x00100010], "INDIRECT_BUFFER control"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_words(name: str) -> None:
    """Each names its packet, field, value and what is allowed, and stops the queue as a bad packet."""
    words, message = REFUSED[name]
    backend = Remembering()
    failed = rf"HSA_STATUS_ERROR_INVALID_PACKET_FORMAT \(0x1009\): .*{message}"
    with device(backend=backend) as (_, agent), pytest.raises(QueueFailed, match=failed):
        run_stream(agent, words)
    assert backend.seen == []


def test_gcr_words_of_gfx10_and_gfx11_hold_their_own_rules() -> None:
    """GLM write-back needs GLM invalidation; the two together are in every system acquire."""
    for target in ("gfx1010", "gfx1030", "gfx1100", "gfx1151"):
        with device(target) as (_, agent):
            run_stream(agent, [0xC0065800, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0xA, 0xC3B1])
            with pytest.raises(QueueFailed, match="ACQUIRE_MEM GCR_CNTL: .*GLM_WB together with GLM_INV"):
                run_stream(agent, [0xC0065800, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0xA, 0xC391])


@pytest.mark.parametrize(
    ("words", "nbytes", "access"),
    [
        (copy_data(0x00110202, 0x1000, 0x2000), 8, "read"),
        (copy_data(0x00100205, 1, 0x1000), 4, "write"),
        (copy_data(0x00000205, 1, 0x1000), 4, "write"),
        (write_data(0x00100200, 0x1000, 1, 2), 8, "write"),
        (write_data(0x00000200, 0x1000, 1, 2), 8, "write"),
        (release(0x528, 0x63000000, 0x1000), 8, "write"),
        (wait64(3, 0x1000, 0, 0), 8, "read"),
        (dispatch_indirect(0x1000), 12, "read"),
    ],
)
def test_memory_that_is_not_there_is_a_memory_fault_that_names_the_packet(
    words: list[int], nbytes: int, access: str
) -> None:
    """Bytes, direction, address, packet and dword; the status is a memory fault's."""
    with device() as (_, agent), pytest.raises(QueueFailed) as caught:
        run_stream(agent, [*set_sh(0x215, 0), *words])
    assert caught.value.seen.startswith("HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION (0x29)")
    assert f"{access} of {nbytes} bytes at 0x1000" in caught.value.seen
    assert "; by " in caught.value.seen
    assert ", dword 3" in caught.value.seen
