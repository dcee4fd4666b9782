# SPDX-License-Identifier: Apache-2.0
"""Replays back to back on the software device: the same bits, and the warm entry exactly when nobody came between.

Which entry a submit took is read from its AQL packet: the address and the size of the indirect buffer in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import redline as rl
from redline import hsa
from tests.devices import buffers, expect, module, spin, two_launches

ENTRIES = ("cold", "warm")


class _Starts:
    """The entries that a replay's submits took: "cold" or "warm", in order."""

    def __init__(self, replay: rl.Replay, monkeypatch: pytest.MonkeyPatch) -> None:
        self.row = replay.program.ibs[0]
        self.taken: list[str] = []
        self.base: int | None = None
        submit = hsa.Submission.submit

        def watched(submission: hsa.Submission, timeout_s: float = 1.0) -> list[int]:
            lasts = submit(submission, timeout_s)
            queue, packets, _ = submission.parts[0]
            if queue in replay._queues:
                self._note([int(word) for word in packets[0]])
            return lasts

        monkeypatch.setattr(hsa.Submission, "submit", watched)

    def _note(self, packet: list[int]) -> None:
        """Dwords 2 and 3 are the address, the low 20 bits of dword 4 the size; the first submit is cold, at 0."""
        address, size = packet[3] << 32 | packet[2], packet[4] & 0xFFFFF
        self.base = address if self.base is None else self.base
        start = (address - self.base) // 4
        name = next(entry for entry in ENTRIES if int(self.row[entry]) == start)
        assert size == int(self.row["end_release"]) - start
        self.taken.append(name)


def _loop(target: str = "gfx1201", boundary: str = "queue") -> rl.Plan:
    """y = a * x + y, t = y, z = t, as a loop: RAW and WAR within and between replays."""
    return two_launches(target).compile(boundary=boundary)


@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
@pytest.mark.parametrize("boundary", ["queue", "other-queue"])
def test_many_replays_with_patches_between_are_bit_exact(
    target: str, boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is cold, the others warm; each takes its own patch."""
    graph = two_launches(target)
    values = [float(i % 7) - 3 for i in range(24)]
    with rl.open(f"sim:{target}") as device:
        memory = buffers(device, graph)
        x = y = np.arange(256, dtype=np.float32)
        with device.instantiate(graph.compile(boundary=boundary), memory) as replay:
            starts = _Starts(replay, monkeypatch)
            for a in values:
                replay.patch(a=a)
                replay.run()
                y = expect(a, x, y)
            assert starts.taken == ["cold"] + ["warm"] * (len(values) - 1)
            assert np.array_equal(memory["y"].read("f4"), y)
            assert np.array_equal(memory["z"].read("f4"), y)


def test_a_loop_gives_the_bits_of_single_replays(device: rl.Device) -> None:
    """The boundary changes fences, never results."""
    results = []
    for boundary in ("host", "queue", "other-queue"):
        graph = two_launches()
        memory = buffers(device, graph)
        with device.instantiate(graph.compile(boundary=boundary), memory) as replay:
            for a in (0.5, -3.0, 2.0, 1024.0):
                replay.patch(a=a)
                replay.run()
        results.append(memory["z"].read().tobytes() + memory["y"].read().tobytes())
    assert len(set(results)) == 1


def _touches(device: rl.Device, memory: dict[Any, rl.DeviceBuffer]) -> dict[str, Callable[[], object]]:
    return {
        "host read": lambda: memory["z"].read(count=1),
        "host write": lambda: memory["x"].write(np.arange(256, dtype=np.float32)),
        "host write of what is written": lambda: memory["y"].write(np.arange(256, dtype=np.float32)),
    }


def test_the_cold_entry_follows_any_host_access(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory model F10: reading counts as writing does; patches do not. Memory of others does not either."""
    memory = buffers(device, two_launches())
    with device.buffer(64) as other, device.instantiate(_loop(), memory) as replay:
        starts = _Starts(replay, monkeypatch)
        replay.patch(a=1.0)
        replay.run()
        for touch in _touches(device, memory).values():
            replay.run()
            other.write(bytes(64))
            replay.patch(a=2.0)
            replay.run()
            touch()
            replay.run()
        assert starts.taken == ["cold", *["warm", "warm", "cold"] * 3]


def test_the_cold_entry_follows_a_bind(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory model F4: x and y trade places. Derived on names this is WAW only; in memory, y is what x was."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 1024, role="inout"), graph.buffer("y", 1024, role="inout")
    args: list[Any] = [rl.update(y), rl.read(x), rl.slot("a", "f4", default=1.0), 256]
    graph.launch(module("saxpy")["saxpy"], grid=1, block=128, args=args)
    one, two = device.buffer(1024), device.buffer(1024)
    values = [np.ones(256, np.float32), np.full(256, 2, np.float32)]
    one.write(values[0])
    two.write(values[1])
    with device.instantiate(graph.compile(boundary="queue"), {"x": one, "y": two}) as replay:
        starts = _Starts(replay, monkeypatch)
        for turn in range(6):
            replay.run()
            values[1 - turn % 2] = values[1 - turn % 2] + values[turn % 2]
            pair = (two, one) if turn % 2 == 0 else (one, two)
            replay.bind({"x": pair[0], "y": pair[1]})
        replay.run()
        values[1] = values[1] + values[0]
        replay.run()
        values[1] = values[1] + values[0]
        assert starts.taken == ["cold"] * 7 + ["warm"]
    for memory, expected in zip((one, two), values, strict=True):
        assert np.array_equal(memory.read("f4"), expected)


def test_the_cold_entry_follows_another_replay_on_the_memory(
    device: rl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same plan or another, on another queue; one on memory of its own changes nothing."""
    plan, memory, apart = _loop(), buffers(device, two_launches()), buffers(device, two_launches())
    with (
        device.instantiate(plan, memory) as one,
        device.instantiate(plan, memory) as same,
        device.instantiate(plan, apart) as alone,
    ):
        starts = _Starts(one, monkeypatch)
        for replay in (one, same, alone):
            replay.patch(a=1.0)
        for between in ((), (alone,), (same,), ()):
            for other in between:
                other.run()
            one.run()
        assert starts.taken == ["cold", "warm", "cold", "warm"]


def test_the_cold_entry_follows_a_refused_submit(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was submitted, and nobody knows any more what the memory has seen."""
    with device.instantiate(_loop(), buffers(device, two_launches())) as replay:
        starts = _Starts(replay, monkeypatch)
        replay.patch(a=1.0)
        replay.run()
        replay.run()
        with monkeypatch.context() as patched:

            def full(*_: object, **__: object) -> int:
                raise rl.ReplayTimeout("RL1101", where="ring", seen="full", allowed="room", do="wait")

            patched.setattr(hsa.Submission, "submit", full)
            with pytest.raises(rl.ReplayTimeout):
                replay.submit()
        replay.run()
        replay.run()
        assert starts.taken == ["cold", "warm", "cold", "warm"]


def test_nobody_comes_between_while_in_flight(device: rl.Device) -> None:
    """Memory model F11, as far as one submission goes: until it has been waited for, neither the next replay nor the
    host may touch its memory. Rotated buffers for more than one in flight come with `in_flight=`.
    """
    graph = rl.Graph()
    flag = graph.buffer("flag", 4, role="inout")
    graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    memory = {"flag": device.buffer(4)}
    memory["flag"].write(bytes(4))
    replay = device.instantiate(graph.compile(boundary="queue"), memory)
    replay.submit()
    touches: tuple[Callable[[], object], ...] = (
        replay.submit,
        memory["flag"].read,
        lambda: memory["flag"].write(bytes(4)),
        lambda: replay.bind({"flag": memory["flag"]}),
    )
    for refused in touches:
        with pytest.raises(rl.ReplayBusy):
            refused()
    replay.close()


def test_one_replay_has_only_the_cold_entry(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """boundary="host": anyone may have touched memory between."""
    graph = two_launches()
    with device.instantiate(graph.compile(), buffers(device, graph)) as replay:
        starts = _Starts(replay, monkeypatch)
        replay.patch(a=1.0)
        for _ in range(3):
            replay.run()
        assert starts.taken == ["cold"] * 3


@pytest.mark.parametrize("boundary", ["host", "queue", "other-queue"])
def test_the_ib_row_has_both_ends(boundary: str) -> None:
    """`end` leaves the final drain and release out, `end_release` is behind them: 10 dwords on gfx1201."""
    program = _loop(boundary=boundary).program
    cold, warm, end, end_release = (int(at) for at in program.ibs[0].tolist())
    assert (cold, warm > 0) == (0, boundary != "host")
    assert end_release == len(program.words) == end + 10
    words = program.words[end:].tolist()
    assert words[:3] == [0xC0004600, 0x00000407, 0xC0065800]
    assert words[-1] == 0x8000


DIGESTS = {
    "gfx1010": "6e3c846cbca99519",
    "gfx1030": "6e3c846cbca99519",
    "gfx1100": "d185a70e3accd5b7",
    "gfx1151": "d185a70e3accd5b7",
    "gfx1201": "66598854aba92c75",
}


@pytest.mark.parametrize(("target", "digest"), DIGESTS.items())
def test_later_forms_changed_no_word_of_single_replays(target: str, digest: str) -> None:
    """Digests of columns from before there were lanes. A deliberate change of words changes them; nothing else may."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 8, role="inout"), graph.buffer("y", 8)
    kernel = rl.Kernel.synthetic("k", pointers=2, scalars=(4,), target=target)
    for i in range(3):
        source, sink = (x, y) if i % 2 == 0 else (y, x)
        args: list[Any] = [rl.read(source), rl.write(sink), rl.slot("s", "i4", default=0)]
        graph.launch(kernel, grid=1, block=1, args=args)
    assert _columns_digest(graph.compile().program) == digest
    assert _columns_digest(graph.compile(boundary="queue").program) != digest


def _columns_digest(program: rl.Program) -> str:
    total = hashlib.sha256()
    streams = program.words, program.relocs, program.ibs
    for column in (*streams, program.kernarg, program.kernarg_relocs, program.patches, program.slot_offsets):
        total.update(column.tobytes())
    return total.hexdigest()[:16]


@pytest.mark.parametrize("access", ["write", "read"])
def test_no_replay_starts_during_a_copy_of_the_host(access: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay between the check and the end of a copy would make the next one warm: old bytes, silently."""
    graph = two_launches()
    with rl.open("sim:gfx1201") as device:
        bound = buffers(device, graph)
        with device.instantiate(graph.compile(boundary="queue"), bound) as replay:
            starts = _Starts(replay, monkeypatch)
            replay.patch(a=1.0)
            replay.run()
            memory = bound["y"]
            copy = getattr(memory._memory, access)

            def meanwhile(*args: Any) -> Any:
                with pytest.raises(rl.ReplayBusy, match="another thread is reading or writing") as caught:
                    replay.submit()
                assert caught.value.code == "RL1405"
                return copy(*args)

            monkeypatch.setattr(memory._memory, access, meanwhile)
            memory.write(np.zeros(4, np.float32)) if access == "write" else memory.read()
            replay.run()
            assert starts.taken == ["cold", "cold"]
