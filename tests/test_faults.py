# SPDX-License-Identifier: Apache-2.0
"""Faults: each raises its own class with four facts in the message, and the device then runs a graph bit-exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import radiowave
import redline as rl
from redline import demo, kernels
from tests.devices import buffers, device_memory, module, spin, two_launches

TARGET = "gfx1201"


@pytest.fixture(scope="module")
def device() -> Iterator[rl.Device]:
    """One device for all faults; it must survive each."""
    with rl.open(f"sim:{TARGET}") as opened:
        yield opened


def _four_facts(error: Any) -> None:
    assert all(isinstance(fact, str) and fact for fact in (error.where, error.seen, error.allowed, error.do))
    for fact in (error.code, error.where, error.seen, error.allowed, error.do):
        assert fact in str(error)


def _truncated(device: rl.Device) -> None:
    rl.load(kernels.build("saxpy", TARGET)[:-100])


def _other_machine(device: rl.Device) -> None:
    data = bytearray(kernels.build("saxpy", TARGET))
    data[18] ^= 1  # e_machine
    rl.load(bytes(data))


def _other_hash(device: rl.Device) -> None:
    data = kernels.build("saxpy", TARGET)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 4
    rl.load(bytes(flipped), sha256=rl.load(data).sha256)


def _outside(device: rl.Device) -> None:
    """The kernel is told that its buffer is longer than it is."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024, role="in"), graph.buffer("y", 1024, role="out")
    graph.launch(module("copy")["copy"], grid=4096, block=256, args=[rl.write(y), rl.read(x), 1 << 20])
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        replay.run(timeout=60.0)


def _timeout(device: rl.Device) -> None:
    """A kernel that never ends; closing the replay cancels it."""
    graph = rl.Graph()
    flag = graph.buffer("flag", 4, role="in")
    graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    memory = {"flag": device.buffer(4)}
    memory["flag"].write(bytes(4))
    with device.instantiate(graph.compile(), memory) as replay:
        replay.run(timeout=0.05)


def _patch_in_flight(device: rl.Device) -> None:
    graph = two_launches()
    flag = graph.buffer("flag", 4, role="in")
    graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    memory = buffers(device, graph)
    memory["flag"].write(bytes(4))
    with device.instantiate(graph.compile(), memory) as replay:
        replay.patch(a=1.0)
        replay.submit()
        replay.patch(a=2.0)


def _bad_instruction(device: rl.Device) -> None:
    """Code overwritten with words that are no instruction."""
    graph = two_launches()
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        code = [row for row in device_memory(device).allocations if row.executable]
        for row in code:
            held = device_memory(device).bytes_at(row.address, row.nbytes)
            if replay.program.kernels[0].module and held.find(b"\xb0\xbf") >= 0:  # s_endpgm is 0xBFB00000
                device_memory(device).store(row.address, b"\xff" * row.nbytes)
        replay.run(timeout=20.0)


def _no_disassembler(device: rl.Device) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RADIOWAVE_LIBLLVM", "/nowhere/libLLVM.so")
        rl.open(f"sim:{TARGET}")


FAULTS: list[tuple[Callable[[rl.Device], None], type[Exception], str]] = [
    (_truncated, rl.CodeObjectError, "bytes"),
    (_other_machine, rl.CodeObjectError, "AMDGPU"),
    (_other_hash, rl.CodeObjectError, "sha256"),
    (_outside, rl.QueueFailed, r"(?i)aperture|memory"),
    (_timeout, rl.ReplayTimeout, "after 0.05 s"),
    (_patch_in_flight, rl.ReplayBusy, "in flight"),
    (_bad_instruction, rl.QueueFailed, r"(?i)instruction"),
    (_no_disassembler, radiowave.ToolchainError, "/nowhere/libLLVM.so"),
]


@pytest.mark.parametrize(("fault", "kind", "text"), FAULTS, ids=[f[0].__name__.strip("_") for f in FAULTS])
def test_a_fault_has_its_class_and_leaves_the_device_usable(
    device: rl.Device, fault: Callable[[rl.Device], None], kind: type[Exception], text: str
) -> None:
    """Four facts in the message; the same device then runs the demo graph bit-exact."""
    with pytest.raises(kind, match=text) as caught:
        fault(device)
    assert type(caught.value) is kind
    _four_facts(caught.value)
    result = demo.run(device, tokens=2)
    assert (result.exact, result.mismatch) == (True, "")


def test_a_failed_queue_stays_failed_and_says_what_ran(device: rl.Device) -> None:
    """Every later call raises the same; the plan and its first launches are named (case 44)."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024, role="in"), graph.buffer("y", 1024, role="out")
    graph.launch(module("copy")["copy"], grid=64, block=256, args=[rl.write(y), rl.read(x), 1 << 14], label="too far")
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(), memory) as replay:
        with pytest.raises(rl.QueueFailed, match="#0 too far.*do: close the replay and instantiate again"):
            replay.run(timeout=20.0)
        for call in (replay.submit, replay.wait, replay.patch):
            with pytest.raises(rl.QueueFailed):
                call()
        assert memory["x"].read("f4")[3] == 3  # no longer in flight


@given(data=st.data())
def test_a_flipped_byte_never_escapes_as_another_error(data: st.DataObject) -> None:
    """A code object with any byte changed loads and records, or raises one of Redline's classes, nothing else."""
    content = bytearray(kernels.build("saxpy", TARGET))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024), graph.buffer("y", 1024)
    try:
        kernel = rl.load(bytes(content))["saxpy"]
        graph.launch(kernel, grid=1, block=128, args=[rl.update(y), rl.read(x), 1.0, 256])
        graph.compile()
    except rl.RedlineError as error:
        _four_facts(error)


def test_results_are_right_after_a_storm_of_faults(device: rl.Device) -> None:
    """Faults one after another, then the same arithmetic as ever."""
    for fault, kind, _ in FAULTS:
        with pytest.raises(kind):
            fault(device)
    graph = two_launches()
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(), memory) as replay:
        replay.patch(a=3.0)
        replay.run()
    x = np.arange(256, dtype=np.float32)
    assert np.array_equal(memory["z"].read("f4"), x * np.float32(4.0))
