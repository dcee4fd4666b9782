# SPDX-License-Identifier: Apache-2.0
"""Replays on the software device: results, patches, what is refused in flight.

What ends when is `test_replay_lives.py`'s.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline import hsa
from tests.devices import buffers, device_memory, expect, module, spin, spinning, two_launches

PAIRS = [(t, w) for t in ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201") for w in (32, 64)]


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_one_kernel_all_the_way(target: str, wave: int) -> None:
    """IR to code object to graph to words to ring to packet reader to executor to numpy, patched between replays."""
    graph = two_launches(target, wave, count=300)
    with rl.open(f"sim:{target}") as device:
        memory = buffers(device, graph)
        x = y = np.arange(300, dtype=np.float32)
        with device.instantiate(graph.compile(), memory) as replay:
            for a in (0.5, -3.0, 1024.0):
                replay.patch(a=a)
                replay.run()
                y = expect(a, x, y)
                assert np.array_equal(memory["y"].read("f4"), y)
                assert np.array_equal(memory["z"].read("f4"), y)


def test_minimal_and_full_fences_give_the_same_bits(device: rl.Device) -> None:
    """Case 65: the paranoid mode is a second lowering of the same graph."""
    results = []
    for fences in ("minimal", "full"):
        graph = two_launches()
        memory = buffers(device, graph)
        with device.instantiate(graph.compile(fences=fences), memory) as replay:
            replay.patch(a=2.0)
            replay.run()
        results.append(memory["z"].read().tobytes())
    assert results[0] == results[1]


def test_a_default_needs_no_patch_and_a_slot_without_one_must_be_set(device: rl.Device) -> None:
    """An unset slot at submit is an error that names it; nothing was submitted."""
    graph = two_launches()
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        with pytest.raises(rl.NotRecorded, match="slots without a value: a"):
            replay.submit()
        with pytest.raises(rl.NotRecorded, match="nothing in flight"):
            replay.wait(timeout=0.1)
        replay.patch(a=1.0)
        replay.run()


def test_a_patch_is_all_or_nothing(device: rl.Device) -> None:
    """One bad value or name leaves every slot as it was: the next replay uses the old value."""
    graph = two_launches()
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(), memory) as replay:
        replay.patch(a=2.0)
        for wrong in ({"a": 4.0, "b": 1}, {"a": 1e300}, {"a": "four"}):
            with pytest.raises(rl.RedlineError):
                replay.patch(**wrong)
        replay.run()
    x = np.arange(256, dtype=np.float32)
    assert np.array_equal(memory["y"].read("f4"), expect(2.0, x, x))


def test_any_choice_of_slots_follows_any_other(device: rl.Device) -> None:
    """One, the other, both, none, in any order: each patch writes its own slots and no others."""
    graph = rl.Graph()
    x, y, z = (graph.buffer(name, 256, role="inout") for name in "xyz")
    for name, memory in (("a", y), ("b", z)):
        args: list[Any] = [rl.update(memory), rl.read(x), rl.slot(name, "f4", default=0.0), 64]
        graph.launch(module("saxpy")["saxpy"], grid=1, block=128, args=args)
    now = {"a": 0.0, "b": 0.0}
    steps = [{"a": 1.0}, {"b": 2.0}, {"a": 3.0}, {"a": 4.0}, {"b": 5.0, "a": 6.0}, {}, {"a": 7.0, "b": 8.0}, {"b": 9.0}]
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        points = [(int(row["offset"]), int(row["slot"])) for row in replay.program.patches]
        for values in steps:
            replay.patch(**values)
            now |= values
            for offset, slot in points:
                held = replay.placed.kernarg[offset : offset + 4].view("<f4")[0]
                assert held == now[replay.plan.slots[slot].name], values


def test_one_slot_patches_every_use(device: rl.Device) -> None:
    """The same name at several launches is one value."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024, role="in"), graph.buffer("y", 1024, role="inout")
    for _ in range(3):
        args: list[Any] = [rl.update(y), rl.read(x), rl.slot("a", "f4"), 256]
        graph.launch(module("saxpy")["saxpy"], grid=1, block=128, args=args)
    memory = buffers(device, graph)
    with device.instantiate(graph.compile(), memory) as replay:
        replay.patch(a=0.25)
        replay.run()
    values = np.arange(256, dtype=np.float32)
    assert np.array_equal(memory["y"].read("f4"), values * np.float32(1.75))


def test_a_slice_passes_its_own_address(device: rl.Device) -> None:
    """The kernel gets the start of the slice; bytes outside are not touched."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024, role="in"), graph.buffer("y", 1024, role="out")
    args: list[Any] = [rl.write(y[256:512]), rl.read(x[64:320]), 64]
    graph.launch(module("copy")["copy"], grid=1, block=256, args=args)
    memory = buffers(device, graph)
    memory["y"].write(np.full(256, -1, np.float32))
    with device.instantiate(graph.compile(), memory) as replay:
        replay.run()
    expected = np.full(256, -1, np.float32)
    expected[64:128] = np.arange(16, 80)
    assert np.array_equal(memory["y"].read("f4"), expected)


def test_an_internal_alias_is_the_same_memory(device: rl.Device) -> None:
    """Written by one name, read by the other, at the offset of the alias."""
    graph = rl.Graph()
    x, z = graph.buffer("x", 256, role="in"), graph.buffer("z", 256, role="out")
    t = graph.buffer("t", 1024)
    part = graph.buffer("part", 256, alias_of=t[512:768])
    copy = module("copy")["copy"]
    graph.launch(copy, grid=1, block=256, args=[rl.write(t[512:768]), rl.read(x), 64])
    graph.launch(copy, grid=1, block=256, args=[rl.write(z), rl.read(part), 64])
    plan = graph.compile()
    assert plan.fences.drains == 1
    memory = buffers(device, graph)
    with device.instantiate(plan, memory) as replay:
        replay.run()
    assert np.array_equal(memory["z"].read("f4"), np.arange(64, dtype=np.float32))


def test_two_replays_share_a_device_and_a_plan(device: rl.Device) -> None:
    """Each has its own arguments, queue and internal memory."""
    graph = two_launches()
    plan, memories = graph.compile(), [buffers(device, graph) for _ in range(2)]
    with device.instantiate(plan, memories[0]) as one, device.instantiate(plan, memories[1]) as two:
        one.patch(a=1.0)
        two.patch(a=2.0)
        one.submit()
        two.submit()
        two.wait()
        one.wait()
    x = np.arange(256, dtype=np.float32)
    assert [m["z"].read("f4")[5] for m in memories] == [expect(a, x, x)[5] for a in (1.0, 2.0)]


def test_replays_in_flight_share_only_what_they_read(device: rl.Device) -> None:
    """Queues are not ordered with one another: a second replay that touches written memory is refused meanwhile."""
    plan, memory = spinning(device)
    others = {**memory, "z": device.buffer(256)}
    with (
        device.instantiate(plan, memory) as one,
        device.instantiate(plan, memory) as same,
        device.instantiate(plan, others) as apart,
    ):
        one.submit()
        with pytest.raises(rl.ReplayBusy, match="RL1404"):
            same.submit()
        apart.submit()  # shares flag and y, which both only read
        device_memory(device).store(memory["flag"].address, b"\1\0\0\0")
        one.wait()
        apart.wait()
        same.run()


def test_a_waiter_that_comes_late_does_not_land_the_next_replay(device: rl.Device) -> None:
    """Each wait is for the submission that it saw."""
    plan, memory = spinning(device)
    device_memory(device).store(memory["flag"].address, b"\1\0\0\0")
    with device.instantiate(plan, memory) as replay:
        replay.submit()
        late = replay._flight.ticket()
        replay.wait()
        device_memory(device).store(memory["flag"].address, bytes(4))
        replay.submit()
        replay._flight.land(late)
        with pytest.raises(rl.ReplayBusy):
            memory["z"].read()
        device_memory(device).store(memory["flag"].address, b"\1\0\0\0")
        replay.wait()


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), True, "1"])
def test_timeouts_are_seconds(device: rl.Device, timeout: Any) -> None:
    """Finite and not negative; nothing is submitted with another."""
    graph = two_launches()
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        replay.patch(a=1.0)
        with pytest.raises(rl.HsaError, match="a number of seconds from 0"):
            replay.run(timeout=timeout)
        replay.run(timeout=20)


def test_nothing_may_change_while_a_replay_is_in_flight(device: rl.Device) -> None:
    """Patch, submit and host access are refused with ReplayBusy; a time-out leaves it in flight; then it ends well."""
    graph = rl.Graph()
    flag = graph.buffer("flag", 4, role="inout")
    graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    memory = {"flag": device.buffer(4)}
    memory["flag"].write(bytes(4))
    with device.instantiate(graph.compile(), memory) as replay:
        replay.submit()
        for refused in (replay.submit, replay.patch, memory["flag"].read, memory["flag"].close):
            with pytest.raises(rl.ReplayBusy, match="in flight"):
                refused()
        where = rf"RL1101 Replay.wait on {device.name}, packet 0 \(plan [0-9a-f]{{16}}: #0 spin\): "
        do = "do: wait again .*; or close the replay, which cancels it, and instantiate again"
        with pytest.raises(rl.ReplayTimeout, match=f"{where}not done after 0.05 s; it is still in flight; .*{do}"):
            replay.wait(timeout=0.05)
        device_memory(device).store(memory["flag"].address, bytes([1, 0, 0, 0]))
        replay.wait(timeout=20.0)
        assert memory["flag"].read("u4").tolist() == [1]
        replay.run(timeout=20.0)


def test_an_interrupt_is_not_lost_in_the_software_device(device: rl.Device) -> None:
    """Ctrl-C in a wait reaches the caller at once; the replay is still in flight and can be closed."""
    plan, memory = spinning(device)
    with device.instantiate(plan, memory) as replay:
        replay.submit()
        # A shell's background job begins with SIGINT ignored; the test is about a program that takes it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            replay.wait(timeout=30.0)
        timer.join()
        signal.signal(signal.SIGINT, before)
        assert time.monotonic() - started < 20
        with pytest.raises(rl.ReplayBusy):
            replay.submit()


def test_an_interrupted_submit_stays_in_flight(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packet may be published: the memory stays held until the replay is waited for or closed."""
    plan, memory = spinning(device)
    with device.instantiate(plan, memory) as replay:

        def interrupted(*_: object, **__: object) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr(hsa.Submission, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replay.submit()
        with pytest.raises(rl.ReplayBusy):
            memory["z"].read()
    assert memory["z"].read("u1", count=1).shape == (1,)
