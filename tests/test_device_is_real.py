# SPDX-License-Identifier: Apache-2.0
"""The software device executes what lies in its memory, at the moment of the submit, and nothing else.

Each test changes bytes in device memory behind Redline's back, between instantiate and submit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

import redline as rl
from tests.devices import buffers, device_memory, expect, two_launches

FIVE = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
X = np.arange(256, dtype=np.float32)


@contextmanager
def _ready(target: str) -> Iterator[tuple[rl.Device, rl.Replay, dict[Any, rl.DeviceBuffer]]]:
    graph = two_launches(target)
    with rl.open(f"sim:{target}") as device:
        memory = buffers(device, graph)
        with device.instantiate(graph.compile(), memory) as replay:
            replay.patch(a=2.0)
            yield device, replay, memory


def _code_of_saxpy(device: rl.Device, replay: rl.Replay) -> tuple[int, bytes]:
    """Address and bytes of the first kernel's code, found through the words of the indirect buffer."""
    program, memory = replay.program, device_memory(device)
    entry = [int(r["dword"]) for r in program.relocs if int(r["kind"]) == 0 and int(r["index"]) == 0]
    low, high = (int(replay.placed.words[at]) for at in entry[:2])
    address = (high << 32 | low) << 8
    kernel = program.kernels[0]
    assert kernel.name == "saxpy"
    return address, memory.bytes_at(address, 256)


@cache
def _fma_at(target: str, code: bytes) -> int:
    """Byte offset of the multiply-add of saxpy, by LLVM's text."""
    from radiowave import Disassembler

    with Disassembler() as disassembler:
        for instruction in disassembler.decode(code, 0, target, 32):
            if instruction.text.startswith(("v_fmac_f32", "v_fma_f32")):
                return instruction.pc
    raise AssertionError("saxpy has no multiply-add")


@pytest.mark.parametrize("target", FIVE)
def test_opcode_bits_flipped_in_device_memory_change_the_result(target: str) -> None:
    """Every single-bit flip of the multiply-add's first dword changes the result or is refused; some do each."""
    outcomes = {"changed": 0, "refused": 0, "same": 0}
    graph = two_launches(target)
    plan = graph.compile()
    with rl.open(f"sim:{target}") as device:
        memory = buffers(device, graph)
        for bit in range(32):
            memory["y"].write(X)
            with device.instantiate(plan, memory) as replay:
                replay.patch(a=2.0)
                outcomes[_flip(device, replay, bit)] += 1
    assert outcomes["changed"] >= 4
    assert outcomes["refused"] >= 1
    # A flip may give another encoding of the same operation, never often.
    assert outcomes["same"] <= 4


def _flip(device: rl.Device, replay: rl.Replay, bit: int) -> str:
    """Flip one bit of the multiply-add in device memory, run, and say what came of it."""
    address, code = _code_of_saxpy(device, replay)
    at = _fma_at(device.target, code)
    word = struct.unpack_from("<I", code, at)[0] ^ 1 << bit
    device_memory(device).store(address + at, struct.pack("<I", word))
    try:
        replay.run(timeout=20.0)
    except rl.QueueFailed:
        return "refused"
    y = next(memory for index, memory in replay._bound.items() if replay.plan.buffers[index].name == "y")
    return "same" if np.array_equal(y.read("f4"), expect(2.0, X, X)) else "changed"


@pytest.mark.parametrize("target", FIVE)
def test_a_bit_flipped_in_the_indirect_buffer_is_seen(target: str) -> None:
    """A flipped bit of NUM_THREAD_X changes what is computed; a flipped bit of an opcode is a fault that says so."""
    with _ready(target) as (_, replay, memory):
        words = replay.placed.words
        at = int(np.flatnonzero(words == 0x207)[0]) + 1
        assert int(words[at]) == 128
        words[at] ^= 1 << 7 | 1 << 5  # 32 work-items: three quarters of the elements stay as they were
        replay.run(timeout=20.0)
        y = memory["y"].read("f4")
        assert not np.array_equal(y, expect(2.0, X, X))
        assert (y == X).sum() >= 190
        words[int(np.flatnonzero(words == 0xC0031502)[0])] ^= 1 << 8
        with pytest.raises(rl.QueueFailed, match=r"(?i)packet|opcode|word"):
            replay.run(timeout=20.0)


@pytest.mark.parametrize("target", FIVE)
def test_a_kernarg_byte_patched_behind_redlines_back_is_used(target: str) -> None:
    """The scalar at its metadata offset in the arena: the kernel computes with what lies there."""
    with _ready(target) as (_, replay, memory):
        offset = next(int(p["offset"]) for p in replay.program.patches)
        assert replay.placed.kernarg[offset : offset + 4].tobytes() == np.float32(2.0).tobytes()
        replay.placed.kernarg[offset : offset + 4] = np.frombuffer(np.float32(-1.5).tobytes(), np.uint8)
        replay.run(timeout=20.0)
        assert np.array_equal(memory["y"].read("f4"), expect(-1.5, X, X))


def test_the_descriptor_in_memory_is_not_read_by_pm4_dispatches() -> None:
    """PM4 carries the descriptor's words itself: garbage at the kernel object changes nothing."""
    with _ready("gfx1201") as (device, replay, memory):
        address, _ = _code_of_saxpy(device, replay)
        kernel = replay.program.kernels[0]
        device_memory(device).store(address - kernel.entry_offset, b"\xff" * 64)
        replay.run(timeout=20.0)
        assert np.array_equal(memory["y"].read("f4"), expect(2.0, X, X))
