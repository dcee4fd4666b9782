# SPDX-License-Identifier: Apache-2.0
"""Software devices and kernels for tests that run: small modules, a graph of two launches, a replay that waits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import radiowave
import redline as rl
from redline import kernels
from redline.sim.memory import Memory

Memories = dict[Any, rl.DeviceBuffer]

#: Waits until a word in memory is not 0. Volatile, so that it reads again and again.
SPIN = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @spin(ptr addrspace(1) %flag) #0 {
entry:
  br label %again
again:
  %seen = load volatile i32, ptr addrspace(1) %flag, align 4
  %zero = icmp eq i32 %seen, 0
  br i1 %zero, label %again, label %done
done:
  ret void
}
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,1024" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
"""


@cache
def module(name: str, target: str = "gfx1201", wave: int = 32) -> rl.Module:
    """One of the example kernels as a loaded code object."""
    return rl.load(kernels.build(name, target, wave))


@cache
def spin(target: str = "gfx1201") -> rl.Module:
    """The kernel that waits."""
    return rl.load(radiowave.compile_ir(SPIN, target=target))


def two_launches(target: str = "gfx1201", wave: int = 32, count: int = 256) -> rl.Graph:
    """y = a * x + y, then z = y: a RAW hazard, one slot, an internal buffer."""
    graph = rl.Graph()
    x = graph.buffer("x", 4 * count, role="in")
    y = graph.buffer("y", 4 * count, role="inout")
    t = graph.buffer("t", 4 * count)
    z = graph.buffer("z", 4 * count, role="out")
    saxpy, copy = module("saxpy", target, wave)["saxpy"], module("copy", target, wave)["copy"]
    args: list[Any] = [rl.update(y), rl.read(x), rl.slot("a", "f4"), count]
    graph.launch(saxpy, grid=-(-count // 256), block=128, args=args)
    graph.launch(copy, grid=-(-count // 256), block=256, args=[rl.write(t), rl.read(y), count])
    graph.launch(copy, grid=-(-count // 256), block=256, args=[rl.write(z), rl.read(t), count])
    return graph


def waiting_replay(device: rl.Device) -> tuple[rl.Replay, Memories]:
    """A replay that waits for `release`, then copies y to z; its slot `count` has a default."""
    graph = rl.Graph()
    flag, y, z = (
        graph.buffer("flag", 256, role="in"),
        graph.buffer("y", 256, role="in"),
        graph.buffer("z", 256, role="out"),
    )
    first = graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    count = rl.slot("count", "u4", default=64)
    graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(z), rl.read(y), count], after=[first])
    memory = buffers(device, graph)
    memory["flag"].write(bytes(256))
    return device.instantiate(graph.compile(), memory), memory


def release(device: rl.Device, memory: Memories) -> None:
    """Let a waiting replay go on, while it is in flight."""
    device_memory(device).store(memory["flag"].address, b"\1\0\0\0")


def buffers(device: rl.Device, graph: rl.Graph) -> dict[Any, rl.DeviceBuffer]:
    """Memory for every outside buffer, filled with small numbers."""
    made: dict[Any, rl.DeviceBuffer] = {}
    for buffer in graph.buffers:
        if buffer.role != "internal":
            made[buffer.name] = device.buffer(buffer.nbytes)
            made[buffer.name].write(np.arange(buffer.nbytes // 4, dtype=np.float32))
    return made


def expect(a: float, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """saxpy with one rounding: exact in double for the small numbers used here."""
    exact: np.ndarray[Any, Any] = (np.float64(np.float32(a)) * x + y).astype(np.float32)
    return exact


def device_memory(device: rl.Device) -> Memory:
    """The software device's own memory, behind Redline's back."""
    simulated: Any = device.runtime.hsa.table.device
    found: Memory = simulated.memory
    return found


def wait_until(done: Callable[[], bool]) -> bool:
    """Whether `done()` came true within ten seconds."""
    deadline = time.monotonic() + 10
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def child_processes() -> set[int]:
    """Processes whose parent is this one."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        if int(status.rsplit(")", 1)[1].split()[1]) == os.getpid():
            found.add(int(name))
    return found


def spinning(device: rl.Device) -> tuple[rl.Plan, dict[Any, rl.DeviceBuffer]]:
    """A plan that waits for flag and then copies y to z; memory with the flag down."""
    graph = rl.Graph()
    flag, y, z = (graph.buffer(n, 256, role=r) for n, r in (("flag", "in"), ("y", "in"), ("z", "out")))  # type: ignore[arg-type]
    first = graph.launch(spin()["spin"], grid=1, block=1, args=[rl.read(flag)])
    graph.launch(module("copy")["copy"], grid=1, block=256, args=[rl.write(z), rl.read(y), 64], after=[first])
    memory = buffers(device, graph)
    memory["flag"].write(bytes(256))
    return graph.compile(), memory
