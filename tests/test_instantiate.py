# SPDX-License-Identifier: Apache-2.0
"""Instantiating a plan: which memory its buffers are bound to, and what does not fit the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import redline as rl
from tests.devices import buffers, module, two_launches


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"y": None}, "not bound: y"),
        ({"t": 1024}, "binding t: no such outside buffer"),
        ({"nonsense": 1024}, "no such outside buffer"),
        ({"x": 1000}, "1000 bytes.*at least 1024"),
    ],
)
def test_bindings_are_checked(device: rl.Device, change: dict[str, Any], text: str) -> None:
    """Every outside buffer, and no other, with enough memory."""
    graph = two_launches()
    memory = buffers(device, graph)
    for name, nbytes in change.items():
        memory.pop(name, None)
        if nbytes is not None:
            memory[name] = device.buffer(nbytes)
    with pytest.raises(rl.BindingError, match=text):
        device.instantiate(graph.compile(), memory)


def test_bindings_are_memory_of_this_device(device: rl.Device) -> None:
    """Keys that are no buffer, values that are no memory, memory of another device, closed or bound twice."""
    graph = two_launches()
    plan, memory = graph.compile(), buffers(device, graph)
    closed = device.buffer(1024)
    closed.close()
    y = next(b for b in graph.buffers if b.name == "y")
    with rl.open("sim:gfx1201") as other, other.buffer(1024) as elsewhere:
        wrong_bindings: tuple[Any, ...] = (
            {**memory, 7: memory["y"]},
            {**memory, "y": 7},
            {**memory, "y": elsewhere},
            {**memory, "y": closed},
            {**memory, y: device.buffer(1024)},
        )
        for wrong in wrong_bindings:
            with pytest.raises(rl.BindingError):
                device.instantiate(plan, wrong)


def test_an_alias_has_no_role_and_no_binding(device: rl.Device) -> None:
    """It is memory of its root: the root has the role, and the alias is found inside what the root is bound to."""
    graph = rl.Graph()
    x, z = graph.buffer("x", 1024, role="inout"), graph.buffer("z", 256, role="out")
    part = graph.buffer("part", 256, alias_of=x[512:768])
    with pytest.raises(rl.RecordError, match="give 'x' the role"):
        graph.buffer("other", 64, role="out", alias_of=x)
    graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(z), rl.read(part), 64])
    memory = buffers(device, graph)
    with pytest.raises(rl.BindingError, match="no such outside buffer"):
        device.instantiate(graph.compile(), {**memory, "part": memory["x"]})
    with device.instantiate(graph.compile(), memory) as replay:
        replay.run()
    assert np.array_equal(memory["z"].read("f4"), np.arange(128, 192, dtype=np.float32))


def test_what_is_no_plan_or_mapping_is_refused(device: rl.Device) -> None:
    """With the class's own message."""
    graph = two_launches()
    for plan in (graph, None, graph.compile().program):
        with pytest.raises(rl.BindingError, match="a Plan"):
            device.instantiate(plan, {})  # type: ignore[arg-type]
    with pytest.raises(rl.BindingError, match="a mapping"):
        device.instantiate(graph.compile(), [1])  # type: ignore[arg-type]


def test_memory_that_overlaps_is_refused(device: rl.Device) -> None:
    """Distinct buffers are derived as distinct memory, so they must be."""
    graph = two_launches()
    memory = buffers(device, graph)
    memory["z"] = memory["y"]
    with pytest.raises(rl.BindingError, match="'y' and 'z'.*overlapping"):
        device.instantiate(graph.compile(), memory)


def test_a_kind_that_is_cached_more_than_declared_is_refused(device: rl.Device) -> None:
    """Declared uncached, bound to coarse-grained memory: the fences would be too narrow. The other way is fine."""
    for declared, bound, allowed in (("uncached", "host", False), ("device", "fine", True), ("fine", "device", False)):
        graph = rl.Graph()
        x = graph.buffer("x", 256, role="in", kind=declared)  # type: ignore[arg-type]
        y = graph.buffer("y", 256, role="out")
        graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(y), rl.read(x), 64])
        with device.buffer(256, kind=bound) as mx, device.buffer(256) as my:  # type: ignore[arg-type]
            if allowed:
                device.instantiate(graph.compile(), {x: mx, y: my}).close()
                continue
            with pytest.raises(rl.BindingError, match=f"{bound} memory.*{declared}"):
                device.instantiate(graph.compile(), {x: mx, y: my})


def test_a_plan_for_another_target_is_refused(device: rl.Device) -> None:
    """Case 52: both names are in the message."""
    graph = two_launches("gfx1100")
    with pytest.raises(rl.BindingError, match=r"gfx1100.*gfx1201"):
        device.instantiate(graph.compile(), buffers(device, graph))


def test_grids_beyond_the_agents_limits_are_refused(device: rl.Device) -> None:
    """Case 53: y is limited to 65,535 work-items on this agent."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 256, role="in"), graph.buffer("y", 256, role="out")
    graph.launch(module("copy")["copy"], grid=(1, 65536), block=256, args=[rl.write(y), rl.read(x), 64])
    with pytest.raises(rl.BindingError, match=r"65536.*65535"):
        device.instantiate(graph.compile(), buffers(device, graph))


def test_a_kernel_without_code_is_refused(device: rl.Device) -> None:
    """Synthetic kernels plan and encode; they do not run."""
    graph = rl.Graph()
    x = graph.buffer("x", 64, role="inout")
    graph.launch(rl.Kernel.synthetic("nothing"), grid=1, block=1, args=[rl.update(x)])
    with pytest.raises(rl.BindingError, match="without code"):
        device.instantiate(graph.compile(), buffers(device, graph))
