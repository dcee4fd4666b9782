# SPDX-License-Identifier: Apache-2.0
"""What devices, buffers and replays own and when it ends: closed, dropped, or closed beneath; and names of devices.

What replays compute is `test_replay.py`'s.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import redline as rl
from tests.devices import buffers, device_memory, expect, spinning, two_launches

PAIRS = [(t, w) for t in ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201") for w in (32, 64)]


def test_a_dropped_replay_is_closed_by_the_collector(device: rl.Device) -> None:
    """Its memory, queue and holds go; in flight or not."""
    plan, memory = spinning(device)
    before = len(device_memory(device).allocations)
    for submit in (False, True):
        replay = device.instantiate(plan, memory)
        if submit:
            replay.submit()
        del replay
        gc.collect()
        assert len(device_memory(device).allocations) == before
        assert memory["z"].read("u1", count=1).shape == (1,)
    memory["z"].close()


def test_dropped_buffers_are_freed_after_the_replay_that_used_them(device: rl.Device) -> None:
    """Nobody can read them any more; the queue that could write them ends first."""
    plan, memory = spinning(device)
    before = len(device_memory(device).allocations) - len(memory)
    replay = device.instantiate(plan, memory)
    replay.submit()
    memory.clear()
    gc.collect()
    assert len(device_memory(device).allocations) > before + 3
    del replay
    gc.collect()
    assert len(device_memory(device).allocations) == before


def test_nothing_works_after_the_device_is_closed() -> None:
    """Its memory may belong to another device by then: patch, submit and host access are refused."""
    graph = two_launches()
    closed = rl.open("sim:gfx1201")
    memory = buffers(closed, graph)
    replay = closed.instantiate(graph.compile(), memory)
    closed.close()
    with rl.open("sim:gfx1201") as other:
        assert other.target == "gfx1201"
        calls: tuple[Callable[[], Any], ...] = (lambda: replay.patch(a=1.0), replay.submit, memory["x"].read)
        for call in calls:
            with pytest.raises(rl.HsaError, match="closed"):
                call()
    replay.close()


def test_a_closed_replay_does_nothing(device: rl.Device) -> None:
    """Patch, submit and wait after close are refused; closing again is nothing; memory in use cannot be closed."""
    graph = two_launches()
    memory = buffers(device, graph)
    replay = device.instantiate(graph.compile(), memory)
    with pytest.raises(rl.ReplayBusy, match="open replays that use it: 1;"):
        memory["y"].close()
    replay.close()
    replay.close()
    calls: tuple[Callable[[], Any], ...] = (lambda: replay.patch(a=1.0), replay.submit, replay.wait)
    for call in calls:
        with pytest.raises(rl.NotRecorded, match="closed replay"):
            call()
    replay.cancel()
    memory["y"].close()
    assert memory["y"].closed


def test_closing_frees_everything(device: rl.Device) -> None:
    """Arena, indirect buffer, internal memory, code, signal and queue: as many allocations as before."""
    graph = two_launches()
    memory = buffers(device, graph)
    before = len(device_memory(device).allocations)
    for _ in range(3):
        with device.instantiate(graph.compile(), memory) as replay:
            replay.patch(a=1.0)
            replay.run()
            assert len(device_memory(device).allocations) > before
        assert len(device_memory(device).allocations) == before
    wrong = dict(memory)
    wrong["z"] = memory["y"]
    with pytest.raises(rl.BindingError):
        device.instantiate(graph.compile(), wrong)
    assert len(device_memory(device).allocations) == before


def test_patching_uses_no_memory(device: rl.Device) -> None:
    """Case 28: patches are in place, whatever their number; the last value is the one used."""
    graph = two_launches()
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(), memory) as replay:
        before = len(device_memory(device).allocations)
        for i in range(2000):
            replay.patch(a=float(i % 7))
        assert len(device_memory(device).allocations) == before
        replay.patch(a=4.0)
        replay.run()
    x = np.arange(256, dtype=np.float32)
    assert np.array_equal(memory["y"].read("f4"), expect(4.0, x, x))


@pytest.mark.parametrize("name", ["sim", "sim:", "hsa:", "cuda:0", ""])
def test_names_of_devices(name: str) -> None:
    """Only the documented forms; an empty string is no name."""
    with pytest.raises(rl.HsaError, match="sim:<target>"):
        rl.open(name)


def test_an_unknown_software_target_is_refused() -> None:
    """The list is explicit."""
    with pytest.raises(rl.UnsupportedTarget, match="gfx1250"):
        rl.open("sim:gfx1250")


def test_device_buffers_check_ranges_and_kinds(device: rl.Device) -> None:
    """Host access stays inside the buffer; the kind is one of four."""
    with device.buffer(64) as memory:
        memory.write(np.arange(4, dtype=np.int16), offset=8)
        assert memory.read("i2", offset=8, count=4).tolist() == [0, 1, 2, 3]
        for access in (lambda: memory.write(bytes(65)), lambda: memory.read("u4", offset=64, count=1)):
            with pytest.raises(rl.BindingError, match=r"\[0:64\]"):
                access()
        for dtype in ("O", "V0", "S"):
            with pytest.raises(rl.BindingError, match="plain bytes"):
                memory.read(dtype)
        with pytest.raises(rl.BindingError, match="plain bytes"):
            memory.write(np.array([None]))
        for offset, count in ((None, 1), (0.5, 1), (0, 0.5), (0, -1)):
            with pytest.raises(rl.BindingError, match=r"RL0701 .*\[0:64\]"):
                memory.read("u1", offset, count)  # type: ignore[arg-type]
        for data in (7, [1, 2, 3], "text", 1.5):
            with pytest.raises(rl.BindingError, match="bytes, or a numpy array"):
                memory.write(data)  # type: ignore[arg-type]
        memory.write(np.float32(1.5))
        assert memory.read("f4", count=1)[0] == 1.5
    for size in (0, -1, True, 1.5, 2**64 + 64):
        with pytest.raises(rl.BindingError, match="at least 1"):
            device.buffer(size)  # type: ignore[arg-type]
    with pytest.raises(rl.BindingError, match="device, host, fine, uncached"):
        device.buffer(64, kind="managed")  # type: ignore[arg-type]
