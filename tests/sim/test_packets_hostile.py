# SPDX-License-Identifier: Apache-2.0
"""Hostile words: every bit of every control word, and streams that nobody wrote.

The tables say which bits may change, typed from `nvd.h`, PAL's MEC structures, hsa.h and LLVM's AMDGPUUsage; all others
must be refused. Whatever the words are, the reader ends with one of the device's own faults, soon, and never with an
error of Python.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from redline.sim.aql import AqlProcessor
from redline.sim.aql_packet import AqlPacket
from redline.sim.dispatch import Dispatch
from redline.sim.errors import DeviceFault, LaunchFault, PacketFault
from redline.sim.families import TARGETS
from redline.sim.memory import Memory
from redline.sim.packet import Executed
from redline.sim.packets import Pm4Reader
from redline.sim.signals import Signals
from tests.sim.aql_kernels import descriptor
from tests.sim.streams import Remembering, launch

STREAM_BYTES = 1 << 16


@dataclass
class Bench:
    """A reader and a processor without queue or thread, over one arena: a word of data, a descriptor, a stream."""

    memory: Memory
    reader: Pm4Reader
    processor: AqlProcessor
    signals: Signals
    backend: Remembering
    executed: list[Executed]
    data: int
    kernel: int
    stream: int
    never: threading.Event

    def run(self, words: list[int]) -> None:
        self.memory.store(self.stream, np.array(words, "<u4").tobytes())
        self.reader.run(self.stream, len(words), self.never)

    def run_packet(self, words: list[int]) -> None:
        self.processor.run(AqlPacket(0, tuple(words)), self.never)


@contextmanager
def bench(target: str = "gfx1201", *, patience_s: float = 0.001) -> Iterator[Bench]:
    """Everything is freed at the end."""
    memory, backend, executed = Memory(), Remembering(), list[Executed]()
    signals, family = Signals(memory), TARGETS[target].family
    reader = Pm4Reader(family, memory, backend, executed.append, patience_s)
    data = memory.allocate(4096, align=4096, label="data")
    kernel = memory.allocate(4096, align=4096, label="kernel", executable=True)
    stream = memory.allocate(STREAM_BYTES, label="stream", executable=True)
    memory.store(data, b"\x05\0\0\0" * 1024)
    memory.store(kernel, descriptor(target))
    processor = AqlProcessor(reader, signals, patience_s)
    yield Bench(memory, reader, processor, signals, backend, executed, data, kernel, stream, threading.Event())
    memory.close()


def base_packets(data: int, gcr: int, release: int, copy: int) -> dict[str, list[int]]:
    """One of each packet with a control word."""
    at = [data & 0xFFFFFFFF, data >> 32]
    return {
        "ACQUIRE_MEM": [0xC0065800, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0xA, gcr],
        "EVENT_WRITE": [0xC0004600, 0x407],
        "RELEASE_MEM": [0xC0064900, release, 0x43000000, *at, 5, 0, 0],
        "COPY_DATA": [0xC0044000, copy, 0, 0, *at],
        "WRITE_DATA": [0xC0033700, 0x00100500, *at, 5],
        "WAIT_REG_MEM": [0xC0053C00, 0x15, *at, 4, 0xFF, 4],
        "WAIT_REG_MEM64": [0xC0079300, 0x15, *at, 4, 0, 0xFF, 0, 4],
        "DISPATCH_DIRECT": [0xC0031502, 4, 1, 1, 0x8045],
        "DISPATCH_INDIRECT": [0xC0021602, *at, 0x8045],
    }


def bits(*positions: int | range) -> int:
    """A mask of bit positions and ranges of them."""
    mask = 0
    for position in positions:
        for bit in [position] if isinstance(position, int) else position:
            mask |= 1 << bit
    return mask


# Bits of a control word that may be flipped on their own, by family: (packet, dword) -> mask. From the base words above
# a flip may change an enumeration (an event, a selector, a data form) only to another value that is covered: the
# release words have SEQ 1 (bit 22), so that bit 23 would make it 3.
COMMON = {
    ("ACQUIRE_MEM", 1): 0,
    ("ACQUIRE_MEM", 3): bits(range(25)),
    ("ACQUIRE_MEM", 5): bits(range(25)),
    ("ACQUIRE_MEM", 6): bits(range(16)),
    ("EVENT_WRITE", 1): 0,
    ("RELEASE_MEM", 2): bits(16, 29, 30),  # TC_L2; GPU clock; no data
    ("RELEASE_MEM", 7): 0,
    ("COPY_DATA", 1): bits(13, 14, 20, 25, 26),  # policies and WR_CONFIRM
    ("COPY_DATA", 2): 0,
    ("COPY_DATA", 3): 0,
    ("WRITE_DATA", 1): bits(16, 20, 25, 26),
    ("WAIT_REG_MEM", 1): bits(0, 2),  # >= becomes != or <
    ("WAIT_REG_MEM", 6): bits(range(16), 31),
    ("WAIT_REG_MEM64", 1): bits(0, 2),
    ("WAIT_REG_MEM64", 8): bits(range(16), 31),
    ("DISPATCH_DIRECT", 4): bits(1, 2, 5, 6, 15),
    ("DISPATCH_INDIRECT", 3): bits(1, 2, 5, 6, 15),
}
GFX12 = COMMON | {
    ("ACQUIRE_MEM", 7): bits(0, 1, 3, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18),
    ("RELEASE_MEM", 1): bits(14, 16, 17, 18, 20, 21, 22, 24, 25, 26, 30),
}
GFX11 = COMMON | {
    # Without bit 5, GLM_INV, the base word would be GLM_WB alone.
    ("ACQUIRE_MEM", 7): bits(0, 1, 3, 4, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18),
    ("RELEASE_MEM", 1): bits(12, 14, 15, 16, 17, 18, 20, 21, 22, 24, 25, 26, 30),
}
GFX10 = GFX11 | {("RELEASE_MEM", 1): bits(12, 14, 15, 16, 17, 18, 20, 21, 22, 25, 26)}

FAMILIES = {
    "gfx1010": (GFX10, 0xC3B1, 0x00603514, 0x00010209),
    "gfx1030": (GFX10, 0xC3B1, 0x00603514, 0x00010209),
    "gfx1100": (GFX11, 0xC3B1, 0x00603514, 0x00010209),
    "gfx1151": (GFX11, 0xC3B1, 0x00603514, 0x00010209),
    "gfx1201": (GFX12, 0xC181, 0x00600514, 0x06016209),
}


def refuses(b: Bench, words: list[int]) -> bool:
    """Whether the stream is refused for its words: a wait that expires had a sound form."""
    try:
        b.run(words)
    except (PacketFault, LaunchFault):
        return True
    except DeviceFault:
        return False
    return False


@pytest.mark.parametrize("target", FAMILIES)
def test_every_bit_of_every_control_word(target: str) -> None:
    """Flipped alone: those of the table run, all others are refused."""
    allowed, gcr, release, copy = FAMILIES[target]
    prefix = launch(rsrc1=0xE00F0000 if target == "gfx1201" else 0xE0AF0000)
    with bench(target) as b:
        packets = base_packets(b.data, gcr, release, copy)
        for (name, dword), mask in allowed.items():
            assert not refuses(b, prefix + packets[name]), name
            for bit in range(32):
                words = list(packets[name])
                words[dword] ^= 1 << bit
                assert refuses(b, prefix + words) == (not mask >> bit & 1), f"{name} dword {dword} bit {bit}"


def test_every_bit_of_every_header() -> None:
    """Type, count, opcode, and bits 7:0, of which only the shader type of dispatches is free."""
    prefix = launch()
    with bench() as b:
        for name, words in base_packets(b.data, 0xC181, 0x00600514, 0x06016209).items():
            for bit in range(32):
                changed = [words[0] ^ 1 << bit, *words[1:]]
                free = bit == 1 and name.startswith("DISPATCH")
                assert refuses(b, prefix + changed) == (not free), f"{name} bit {bit}"


def test_every_packet_may_be_cut_nowhere() -> None:
    """A stream that ends inside a packet is refused at that packet, whatever the words are."""
    with bench() as b:
        for words in base_packets(b.data, 0xC181, 0x00600514, 0x06016209).values():
            for length in range(1, len(words)):
                with pytest.raises(PacketFault, match="dword 0: header .* of .* dwords|at most the"):
                    b.run(words[:length])


def test_a_stream_that_fails_takes_its_unconfirmed_writes_along() -> None:
    """They belong to that stream: the next one of the same reader does not find them."""
    with bench() as b:
        with pytest.raises(PacketFault):
            b.run([0xC0033700, 0x00000200, b.data & 0xFFFFFFFF, b.data >> 32, 9, 0])
        b.run([0xFFFF1000])
        assert b.memory.u32_at(b.data) == 5
        b.run([0xC0033700, 0x00000200, b.data & 0xFFFFFFFF, b.data >> 32, 9])
        assert b.memory.u32_at(b.data) == 9


@pytest.mark.parametrize("seed", range(12))
def test_streams_of_noise_end_in_the_devices_own_faults(seed: int) -> None:
    """Random words; valid packets in random order with a few words changed; their lengths and addresses included."""
    draw = random.Random(seed)
    started = time.monotonic()
    with bench(draw.choice(list(FAMILIES))) as b:
        pool = [
            *base_packets(b.data, 0x380, 0x00600514, 0x00010209).values(),
            launch(),
            [0xFFFF1000],
            [0xC0011000, 1, 2],
        ]
        ends: set[str] = set()
        for _ in range(250):
            words = [word for packet in draw.choices(pool, k=draw.randint(1, 6)) for word in packet]
            for _ in range(draw.randint(0, 4)):
                at = draw.randrange(len(words))
                words[at] = draw.choice((words[at] ^ 1 << draw.randrange(32), draw.getrandbits(32), 0, 0xFFFFFFFF))
            try:
                b.run(words if draw.random() < 0.9 else [draw.getrandbits(32) for _ in range(64)])
                ends.add("ran")
            except DeviceFault as fault:
                ends.add(type(fault).__name__)
        assert ends >= {"ran", "PacketFault", "MemoryFault"}
    assert time.monotonic() - started < 30


# AQL packets and descriptors


def kernel_packet(b: Bench, signal: int) -> list[int]:
    """A kernel dispatch of 4 groups of 256 work-items with 1 KiB of LDS."""
    words = [0x00011502, 0x00010100, 1, 1024, 1, 1, 0, 1024]
    for address in (b.kernel, b.data, 0, signal):
        words += [address & 0xFFFFFFFF, address >> 32]
    return words


def outcome(b: Bench, words: list[int]) -> Dispatch | None:
    """The dispatch that a packet starts, its ordinal aside; None when it is refused."""
    b.backend.seen.clear()
    b.reader.registers.dispatches = 0
    try:
        b.run_packet(words)
    except DeviceFault:
        return None
    return b.backend.seen[0] if b.backend.seen else None


# Flips that change nothing a kernel could see, by dword: the barrier bit and scopes 2 -> 0 (packets run in order and no
# cache is modelled), and three dimensions instead of one, where the other two are 1.
UNSEEN_IN_PACKET = {0: bits(8, 10, 12, 17)}
# Group bytes that fall below the packet's, and argument bytes that still lie inside memory (4096 bytes of it).
UNSEEN_IN_DESCRIPTOR = {0: bits(10), 2: bits(range(12))}


def test_every_bit_of_a_kernel_dispatch_packet_counts() -> None:
    """Each flip is refused or starts another dispatch; those that change nothing are listed."""
    with bench() as b:
        signal = b.signals.create(1 << 40)
        words = kernel_packet(b, signal)
        base = outcome(b, words)
        assert base is not None
        for dword in range(16):
            for bit in range(32):
                changed = list(words)
                changed[dword] ^= 1 << bit
                same = outcome(b, changed) == base
                assert same == bool(UNSEEN_IN_PACKET.get(dword, 0) >> bit & 1), f"dword {dword} bit {bit}"


def test_every_bit_of_a_descriptor_counts() -> None:
    """Each flip is refused or starts another dispatch; those that change nothing are listed."""
    with bench() as b:
        words, raw = kernel_packet(b, 0), descriptor()
        base = outcome(b, words)
        assert base is not None
        for bit in range(512):
            changed = bytearray(raw)
            changed[bit // 8] ^= 1 << bit % 8
            b.memory.store(b.kernel, changed)
            same = outcome(b, words) == base
            assert same == bool(UNSEEN_IN_DESCRIPTOR.get(bit // 32, 0) >> bit % 32 & 1), (
                f"dword {bit // 32} bit {bit % 32}"
            )


@pytest.mark.parametrize("seed", range(6))
def test_packets_of_noise_end_in_the_devices_own_faults(seed: int) -> None:
    """Every type, sound and changed; the queue's thread would stop with a traceback for anything else."""
    draw = random.Random(seed)
    with bench() as b:
        signal = b.signals.create(1 << 40)
        low, high = signal & 0xFFFFFFFF, signal >> 32
        barriers = [[kind | 0x1500, 0, low, high, *[0] * 10, low, high] for kind in (3, 5)]
        b.memory.store(b.stream, np.array([0xFFFF1000], "<u4").tobytes())
        vendor = [0x00011500, 0xC0023F00, b.stream & 0xFFFFFFFF, b.stream >> 32, 0x00800001, 0xA, *[0] * 8, low, high]
        pool = [kernel_packet(b, signal), vendor, *barriers, [draw.getrandbits(32) for _ in range(16)]]
        ends: set[str] = set()
        for _ in range(300):
            words = list(draw.choice(pool))
            for _ in range(draw.randint(0, 3)):
                words[draw.randrange(16)] = draw.choice((draw.getrandbits(32), 0, low, 0xFFFFFFFF))
            try:
                b.run_packet(words)
                ends.add("ran")
            except DeviceFault as fault:
                ends.add(type(fault).__name__)
        assert ends >= {"ran", "PacketFault", "WaitExpired"}
