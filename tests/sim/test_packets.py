# SPDX-License-Identifier: Apache-2.0
"""The software device's packet processor: what it runs, and every kind of word it refuses.

Streams are typed by hand (`streams.py`). Each refused word is one change to a stream that runs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from redline.errors import QueueFailed, ReplayTimeout
from redline.hsa import Agent
from redline.sim.dispatch import Dispatch
from redline.sim.dispatch_registers import UNSET_WORD
from redline.sim.errors import LaunchFault, MemoryFault, UnsupportedInstruction
from redline.sim.families import TARGETS
from redline.sim.memory import Memory
from tests.sim.streams import (
    ACQUIRE,
    ENTRY,
    FLUSH,
    KERNARG,
    PAD,
    RSRC1,
    Remembering,
    device,
    dispatch,
    ib_packet,
    launch,
    run_stream,
    set_sh,
)

ANSWERS = Path(__file__).parent.parent / "answers" / "pm4"
DEMO_TARGETS = ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"]


def test_a_dispatch_arrives_with_the_registers_as_written() -> None:
    """All fields of `Dispatch`, and words of user data that nobody wrote are poison."""
    backend = Remembering()
    with device(backend=backend) as (_, agent):
        run_stream(agent, [*ACQUIRE, *launch(), *FLUSH, *PAD])
    assert backend.seen == [
        Dispatch(
            entry=ENTRY,
            rsrc1=0xE00F0000,
            rsrc2=0x00010084,
            rsrc3=0,
            initiator=0x8045,
            user_data=(KERNARG & 0xFFFFFFFF, KERNARG >> 32, *[UNSET_WORD] * 14),
            dims=(4, 1, 1),
            num_thread=(256, 1, 1),
        )
    ]
    seen = backend.seen[0]
    assert (seen.wave, seen.lds_bytes, seen.user_sgprs, seen.float_mode) == (32, 1024, 2, 0xF0)
    assert not seen.uses_thread_dimensions


def test_initiator_bits_reach_the_dispatch() -> None:
    """Wave size, thread dimensions and partial groups, each from its own bit and register half."""
    backend = Remembering()
    with device("gfx1030", backend) as (_, agent):
        threads = (64 | 36 << 16, 4 | 1 << 16, 1 | 1 << 16)
        words = [*launch(rsrc1=0xE0AF0000, initiator=0x0047, threads=threads), *dispatch(1000, initiator=0x8025)]
        run_stream(agent, words)
    wave64, wave32 = backend.seen
    assert (wave64.wave, wave64.has_partial_groups, wave64.num_thread) == (64, True, (64, 4, 1))
    assert wave64.partial == (36, 1, 1)
    assert (wave32.wave, wave32.uses_thread_dimensions, wave32.dims) == (32, True, (1000, 1, 1))
    assert (wave64.ordinal, wave32.ordinal) == (0, 1)


@pytest.mark.parametrize("name", ["gfx1030", "gfx1100", "gfx1201"])
def test_golden_streams_of_other_authors_run(name: str) -> None:
    """The answer files, typed from public headers: two dispatches each, entry and user data as their notes say."""
    answer = json.loads((ANSWERS / f"{name}.json").read_text())
    words = [int(word, 16) for stage in answer["stages"].values() for word in stage["hex"]]
    backend = Remembering()
    with device(name, backend) as (sim, agent):
        run_stream(agent, words)
        trace = [packet.name for packet in sim.trace]
    entries = [int(answer["example"][key], 16) for key in ("entry_a", "entry_b")]
    assert [seen.entry for seen in backend.seen] == entries
    assert {seen.dims for seen in backend.seen} == {(4, 1, 1)}
    assert trace[0] == "ACQUIRE_MEM"
    assert trace.count("EVENT_WRITE") == 2


def test_registers_stay_between_indirect_buffers_of_one_queue_and_not_between_queues() -> None:
    """As on hardware: a second buffer may dispatch on the first one's registers; a new queue starts unset."""
    backend = Remembering()
    with device(backend=backend) as (_, agent), agent.queue() as queue, agent.signal(2) as signal:
        with agent.allocate(4096, "kernarg", executable=True) as ib:
            first, second = launch(), dispatch(7)
            ib.write(np.array(first + second, np.uint32))
            queue.submit(ib_packet(ib.address, len(first), signal.handle))
            queue.submit(ib_packet(ib.address + 4 * len(first), len(second), signal.handle))
            signal.wait_below(1, 5, poll=queue.check)
        assert [seen.dims[0] for seen in backend.seen] == [4, 7]
        with pytest.raises(QueueFailed, match="COMPUTE_PGM_RSRC2: never written on this queue"):
            run_stream(agent, dispatch())


def test_forgetful_queues_catch_a_stream_that_assumes_what_the_last_one_wrote() -> None:
    """The hostile form: every buffer starts with unset registers, and only whole streams run."""
    backend = Remembering()
    with device(backend=backend) as (sim, agent):
        sim.forgetful_queues = True
        with agent.queue() as queue, agent.allocate(4096, "kernarg", executable=True) as ib:
            words = launch()
            ib.write(np.array(words, np.uint32))
            for start in (0, 0, len(words) - 5):
                queue.submit(ib_packet(ib.address + 4 * start, len(words) - start))
            _wait_for_failure(queue.check, "packet 2.*never written on this queue")
    assert len(backend.seen) == 2


REQUIRED = {
    "COMPUTE_NUM_THREAD_X": (0x207, 64),
    "COMPUTE_NUM_THREAD_Y": (0x208, 1),
    "COMPUTE_NUM_THREAD_Z": (0x209, 1),
    "COMPUTE_PGM_LO": (0x20C, 0x00123456),
    "COMPUTE_PGM_HI": (0x20D, 0x7F),
    "COMPUTE_PGM_RSRC1": (0x212, 0xE00F0000),
    "COMPUTE_PGM_RSRC2": (0x213, 0x84),
    "COMPUTE_PGM_RSRC3": (0x228, 0),
    "COMPUTE_USER_DATA_0": (0x240, 0),
    "COMPUTE_USER_DATA_1": (0x241, 0),
}


@pytest.mark.parametrize("missing", REQUIRED)
def test_a_dispatch_without_a_register_it_needs_faults(missing: str) -> None:
    """Hardware would use whatever is there. Each register is written on its own, but one."""
    words = [w for name, register in REQUIRED.items() if name != missing for w in set_sh(*register)]
    backend = Remembering()
    with device(backend=backend) as (_, agent):
        with pytest.raises(QueueFailed, match=f"{missing}: never written on this queue"):
            run_stream(agent, [*words, *dispatch()])
        run_stream(agent, [*words, *set_sh(*REQUIRED[missing]), *dispatch()])
    assert len(backend.seen) == 1


@pytest.mark.parametrize("target", DEMO_TARGETS)
def test_registers_of_the_queue_are_refused(target: str) -> None:
    """CU masks, relaunch and wave-restore state: nobody's dispatch may touch them, on any family."""
    owned = TARGETS[target].family.owned
    named = {name for name in owned.values() if "STATIC_THREAD_MGMT" in name or "RE" in name.split("_")[1][:2]}
    assert {"COMPUTE_RELAUNCH", "COMPUTE_STATIC_THREAD_MGMT_SE0"} <= named
    with device(target) as (_, agent):
        for offset, name in owned.items():
            with pytest.raises(QueueFailed, match=f"register {offset:#x} .{name}, which belongs to the queue"):
                run_stream(agent, set_sh(offset, 0))
        for unknown in (0x200 - 1, 0x23F, 0x250):
            with pytest.raises(QueueFailed, match="no register of this family"):
                run_stream(agent, set_sh(unknown, 0))


def test_relaunch_moves_with_the_family() -> None:
    """0x22b is RELAUNCH on gfx10 and a CU mask from gfx11 on; 0x223 is a register on gfx12 alone."""
    for target, offset, name in (
        ("gfx1030", 0x22B, "COMPUTE_RELAUNCH"),
        ("gfx1100", 0x22B, "COMPUTE_STATIC_THREAD_MGMT_SE4"),
        ("gfx1151", 0x230, "COMPUTE_RELAUNCH"),
        ("gfx1201", 0x223, "COMPUTE_STATIC_THREAD_MGMT_SE8"),
    ):
        assert TARGETS[target].family.owned[offset] == name
    assert 0x223 not in TARGETS["gfx1151"].family.owned
    assert 0x230 not in TARGETS["gfx1010"].family.owned


REFUSED = {
    "unknown opcode": ([0xC0001E00, 0], "dword 0: header opcode 0x1e: 0xc0001e00"),
    "type 2": ([0x80000000], "header type: 0x80000000; allowed: 3"),
    "predicate": ([0xC0004601, 0x407], "EVENT_WRITE bits 7:0: 0xc0004601"),
    "shader type on a flush": ([0xC0004602, 0x407], "EVENT_WRITE bits 7:0"),
    "truncated packet": ([0xC0065800, 0, 0], "ACQUIRE_MEM of 8 dwords"),
    "wrong count": ([0xC0055800, *[0] * 6], "header ACQUIRE_MEM: 0xc0055800; allowed: a count of 6"),
    "gfx9's acquire, by its dword 1": ([*ACQUIRE[:1], 1, *ACQUIRE[2:]], "ACQUIRE_MEM dword 1: 0x00000001"),
    "coherency size": ([*ACQUIRE[:3], 0x02000000, *ACQUIRE[4:]], "COHER_SIZE_HI"),
    "poll interval": ([*ACQUIRE[:6], 0x10000, ACQUIRE[7]], "POLL_INTERVAL"),
    "GLM on gfx12": ([*ACQUIRE[:7], 0x8030], "GCR_CNTL .*: 0x00008030"),
    "GL2_DISCARD": ([*ACQUIRE[:7], 0x2000], "GL2_DISCARD drops dirty lines.*: 0x00002000"),
    "GCR beyond the field": ([*ACQUIRE[:7], 0x80180], "GCR_CNTL"),
    "another event": ([0xC0004600, 0x0000040F], "EVENT_WRITE event: 0x0000040f"),
    "flush with offload": ([0xC0004600, 0x80000407], "EVENT_WRITE event"),
    "register index bits": ([0xC0017600, 0x10000215, 0], "REG_OFFSET: 0x10000215"),
    "no register value": ([0xC0007600, 0x215], "at least one register value"),
    "PGM_HI beyond 48 bits": (set_sh(0x20D, 0x100), "COMPUTE_PGM_HI: 0x00000100"),
    "NUM_THREAD with INTERLEAVE": (set_sh(0x207, 0x2040), "COMPUTE_NUM_THREAD_X: 0x00002040"),
    "RSRC1 reserved": (set_sh(0x212, 0x08000000), "COMPUTE_PGM_RSRC1"),
    "RSRC3 reserved": (set_sh(0x228, 0x00001000), "COMPUTE_PGM_RSRC3"),
    "ordered append": (launch(initiator=0x800D), "DISPATCH_INITIATOR: 0x0000800d"),
    "shader not enabled": (launch(initiator=0x8044), "COMPUTE_SHADER_EN"),
    "no groups": (launch(groups=0), "DIM: 0x00000000; allowed: at least 1"),
    "scratch": (launch(rsrc2=0x00010085), "RSRC2.SCRATCH_EN: 1"),
    "user SGPRs": (launch(rsrc2=0x000100A2), "RSRC2.USER_SGPR: 17"),
    "LDS": (launch(rsrc2=0x00410084), "RSRC2.LDS_SIZE: 130"),
    "workgroup of 0": (launch(threads=(0, 1, 1)), r"NUM_THREAD: \(0, 1, 1\)"),
    "workgroup of 2048": (launch(threads=(64, 32, 1)), r"NUM_THREAD: \(64, 32, 1\)"),
    "start": ([*set_sh(0x204, 1), *launch(initiator=0x8041)], r"START: \[1, 0, 0\]"),
    "release event": ([0xC0064900, 0x0000052F, 0, 0, 0, 0, 0, 0], "RELEASE_MEM event: 0x0000052f"),
    "release index": ([0xC0064900, 0x00000628, 0, 0, 0, 0, 0, 0], "RELEASE_MEM event"),
    "release GL1 on gfx12": ([0xC0064900, 0x00008528, 0, 0, 0, 0, 0, 0], "event and GCR"),
    "release selectors": ([0xC0064900, 0x00000528, 0x00020000, 0, 0, 0, 0, 0], "RELEASE_MEM selectors"),
    "release data select": ([0xC0064900, 0x528, 0x83000000, 0, 0, 0, 0, 0], "DATA_SEL"),
    "release context": ([0xC0064900, 0x528, 0, 0, 0, 0, 0, 1], "INT_CTXID"),
    "release misaligned": ([0xC0064900, 0x528, 0x43000000, 4, 0, 0, 0, 0], "RELEASE_MEM address"),
    "write to a register": ([0xC0033700, 0x00100000, 0x1000, 0, 0], "WRITE_DATA DST_SEL"),
    "write, two engines": ([0xC0033700, 0x40100200, 0x1000, 0, 0], "WRITE_DATA control"),
    "write without data": ([0xC0023700, 0x00100200, 0x1000, 0], "at least one word of data"),
    "write misaligned": ([0xC0033700, 0x00100200, 0x1002, 0, 0], "WRITE_DATA address: .*multiple of 4"),
    "address beyond 48 bits": ([0xC0033700, 0x00100200, 0x1000, 0x10000, 0], "address high half"),
    "wait on a register": ([0xC0053C00, 0x00000005, 0x1000, 0, 0, 0, 4], "MEM_SPACE"),
    "wait with function 7": ([0xC0053C00, 0x00000017, 0x1000, 0, 0, 0, 4], "FUNCTION"),
    "wait write-back": ([0xC0053C00, 0x00000055, 0x1000, 0, 0, 0, 4], "WAIT_REG_MEM control"),
    "call instead of chain": ([0xC0023F00, 0x1000, 0, 0x00800010], "INDIRECT_BUFFER control"),
    "chain not last": ([0xC0023F00, 0x1000, 0, 0x00900010, *PAD], "nothing behind the packet"),
    "chain to nowhere": ([0xC0023F00, 0x1000, 0, 0x00900010], "indirect buffer at 0x1000"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_words(name: str) -> None:
    """Each names its packet, field, value and what is allowed, and stops the queue as a bad packet."""
    words, message = REFUSED[name]
    backend = Remembering()
    with (
        device(backend=backend) as (_, agent),
        pytest.raises(QueueFailed, match=rf"HSA_STATUS_ERROR_INVALID_PACKET_FORMAT \(0x1009\): .*{message}"),
    ):
        run_stream(agent, words)
    assert backend.seen == []


def test_the_place_of_a_refused_word_is_exact() -> None:
    """Address of the buffer, dword within it, and the value."""
    with device() as (_, agent), agent.allocate(4096, "kernarg", executable=True) as ib, agent.queue() as queue:
        words = [*ACQUIRE, *FLUSH, *set_sh(0x215, 0x400)]
        ib.write(np.array(words, np.uint32))
        queue.submit(ib_packet(ib.address, len(words)))
        _wait_for_failure(
            queue.check, rf"PM4 stream at {ib.address:#x}, dword 12: SET_SH_REG COMPUTE_RESOURCE_LIMITS: 0x00000400"
        )


def test_release_mem_writes_data_and_the_clock() -> None:
    """32 and 64 bits of immediate data, nothing, and a clock that moves on."""
    with device() as (_, agent), agent.allocate(64, "kernarg") as out:
        out.write(bytes(64))
        words: list[int] = []
        for place, dw2, lo, hi in (
            (0, 0x23010000, 0x11, 0x22),
            (8, 0x43000000, 0x33, 0x44),
            (16, 0x03000000, 0x55, 0x66),
            (24, 0x63000000, 0, 0),
            (32, 0x63000000, 0, 0),
        ):
            address = out.address + place
            words += [0xC0064900, 0x00600514, dw2, address & 0xFFFFFFFF, address >> 32, lo, hi, 0]
        run_stream(agent, words)
        values = out.read("<u8")
        assert values[:3].tolist() == [0x11, 0x44_0000_0033, 0]
        assert 0 < values[3] <= values[4]


def test_chained_buffers_run_in_order_and_an_endless_chain_is_stopped() -> None:
    """The chain continues in the next buffer; a buffer that chains to itself ends as a fault."""
    backend = Remembering()
    with device(backend=backend) as (_, agent), agent.allocate(4096, "kernarg", executable=True) as second:
        lo, hi = second.address & 0xFFFFFFFF, second.address >> 32
        second.write(np.array(dispatch(9), np.uint32))
        run_stream(agent, [*launch(), 0xC0023F00, lo, hi, 0x00900005])
        assert [seen.dims[0] for seen in backend.seen] == [4, 9]
        second.write(np.array([0xC0023F00, lo, hi, 0x00900004], np.uint32))
        with pytest.raises(QueueFailed, match="more than 4096 chained buffers"):
            run_stream(agent, [0xC0023F00, lo, hi, 0x00900004])


def test_an_indirect_buffer_must_be_executable_and_whole() -> None:
    """Memory without the flag, memory without access, half outside, misaligned: refused before any word."""
    with device() as (_, agent), agent.queue() as queue, agent.allocate(4096, "kernarg") as plain:
        plain.write(np.array(PAD, np.uint32))
        queue.submit(ib_packet(plain.address, 1))
        _wait_for_failure(queue.check, "1 dwords in memory without the executable flag")
    with device() as (_, agent), agent.allocate(64, "kernarg", executable=True) as ib, agent.queue() as queue:
        ib.write(np.array(PAD * 16, np.uint32))
        queue.submit(ib_packet(ib.address + 4, 16))
        _wait_for_failure(queue.check, "16 dwords; allowed: a dword-aligned range inside one allocation")


def test_faults_of_the_back_end_carry_place_and_status() -> None:
    """A memory fault, an instruction fault and a bad launch each stop the queue with their own status."""
    for fault, status in (
        (MemoryFault(0x10, 4, "read"), "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"),
        (UnsupportedInstruction(0x77, "s_icbm"), "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"),
        (LaunchFault("RSRC1", "x", "y"), "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT"),
        (RuntimeError("a bug"), "HSA_STATUS_ERROR "),
    ):

        def fail(_d: Dispatch, _m: Memory, _c: threading.Event, fault: Exception = fault) -> None:
            raise fault

        with device(backend=Remembering(fail)) as (_, agent):
            expected = f"{status}.*{fault}" if isinstance(fault, RuntimeError) else f"{status}.*: {fault}.*"
            with pytest.raises(QueueFailed, match="(?s)" + expected.replace("(", ".").replace(")", ".")) as caught:
                run_stream(agent, launch())
            if not isinstance(fault, RuntimeError):
                assert f"in dispatch 0 of this queue, entry {ENTRY:#x}" in str(caught.value)


def test_a_hung_kernel_is_cancelled_when_its_queue_goes() -> None:
    """The wait times out, closing the queue ends the kernel, and the same device runs the next stream."""
    ended = threading.Event()

    def hang(dispatch: Dispatch, _memory: Memory, cancelled: threading.Event) -> None:
        if dispatch.dims[0] == 13:
            assert cancelled.wait(20)
            ended.set()

    with device(backend=Remembering(hang)) as (_, agent):
        started = time.monotonic()
        with pytest.raises(ReplayTimeout, match="value 1 after 0.05 s; allowed: a value below 1"):
            run_stream(agent, launch(groups=13), timeout_s=0.05)
        assert ended.wait(1)
        assert time.monotonic() - started < 15
        run_stream(agent, launch())


@pytest.mark.parametrize("target", DEMO_TARGETS)
def test_one_stream_of_each_family_runs(target: str) -> None:
    """The acquire words of each family are accepted; gfx12's are the narrow ones."""
    gcr = [0xC181, 0x180, 0x380, 0x8000] if target == "gfx1201" else [0xC3B1, 0x380, 0x300, 0x280, 0x8030]
    backend = Remembering()
    with device(target, backend) as (_, agent):
        words = [word for value in gcr for word in [*ACQUIRE[:7], value]]
        run_stream(agent, [*words, *launch(rsrc1=RSRC1[target])])
    assert len(backend.seen) == 1


def _wait_for_failure(check: Callable[[], None], message: str) -> None:
    """Poll `check` until it raises `QueueFailed` with `message`."""

    def keep_checking() -> None:
        for _ in range(500):
            check()
            time.sleep(0.01)

    with pytest.raises(QueueFailed, match=message):
        keep_checking()


def test_agent_type_is_what_the_helpers_promise() -> None:
    """`device` yields the GPU agent of the target asked for."""
    with device("gfx1030") as (sim, agent):
        assert isinstance(agent, Agent)
        assert agent.target == sim.target.name == "gfx1030"
