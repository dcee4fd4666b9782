# SPDX-License-Identifier: Apache-2.0
"""One initialised HSA runtime: the machine's own, or a software device.

`hsa_init` counts references. A full shut-down of the real runtime and a new start in the same process is
fragile, so the first `Runtime.real()` takes one reference for the life of the process and later ones share
it. A software device is made and shut down with its `Runtime`. Also listens for the runtime's memory-fault
event: without a listener ROCr ends the process, with ours the queues of that agent fail.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from ctypes import byref, c_uint64
from typing import TYPE_CHECKING, Self

from redline.errors import HsaError
from redline.hsa.abi import (
    AGENT_CALLBACK,
    HSA_AMD_GPU_MEMORY_FAULT_EVENT,
    SYSTEM_EVENT_CALLBACK,
    DeviceType,
    Status,
    SystemInfo,
    hsa_amd_event_t,
)
from redline.hsa.agent import Agent, device_type
from redline.hsa.lib import Hsa, RuntimeTable, guarded, load_real_table

if TYPE_CHECKING:
    from redline.hsa.queue import Queue

_real_lock = threading.Lock()
_real: Hsa | None = None
_real_listener: object = None
_real_runtimes: weakref.WeakSet[Runtime] = weakref.WeakSet()


class Runtime:
    """Agents of one HSA runtime. A context manager; closing it takes every resource made from it along."""

    def __init__(self, hsa: Hsa) -> None:
        """`hsa` is initialised already; `of_table`, `real` and `sim` see to that."""
        self.hsa = hsa
        self.closed = False
        self._owns_init = False
        self._errors: list[BaseException] = []
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._listener: object = None

    @classmethod
    def real(cls) -> Runtime:
        """The machine's HSA runtime; HsaError says where it was looked for, or why there is no device."""
        global _real, _real_listener
        with _real_lock:
            if _real is None:
                hsa = Hsa(load_real_table())
                hsa.check("hsa_init")
                _real, _real_listener = hsa, _listen(hsa, _tell_real_runtimes)
        runtime = cls(_real)
        _real_runtimes.add(runtime)
        return runtime

    @classmethod
    def sim(cls, target: str) -> Runtime:
        """A software device of one target, below its own HSA table."""
        from redline.sim.runtime import open_sim

        return cls.of_table(open_sim(target))

    @classmethod
    def of_table(cls, table: RuntimeTable) -> Runtime:
        """Initialise the runtime behind `table`, and shut it down at `close`."""
        hsa = Hsa(table)
        hsa.check("hsa_init")
        runtime = cls(hsa)
        runtime._owns_init = True
        runtime._listener = _listen(hsa, runtime.memory_fault)
        return runtime

    def agents(self) -> list[Agent]:
        """The GPU agents, in the runtime's order."""
        self.require_open()
        handles = self._agent_handles()
        cpus = [agent for agent in handles if device_type(self.hsa, agent) == DeviceType.HSA_DEVICE_TYPE_CPU]
        return [
            Agent(self, agent, cpus)
            for agent in handles
            if device_type(self.hsa, agent) == DeviceType.HSA_DEVICE_TYPE_GPU
        ]

    def fault_text(self) -> str:
        """The software device's account of its last fault; empty on hardware."""
        return self.hsa.table.fault_text()

    def ticks_per_second(self) -> int:
        """Frequency of the clock that wait hints and timestamps count in."""
        frequency = c_uint64()
        key = SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY
        self.hsa.check("hsa_system_get_info", key, byref(frequency))
        return frequency.value

    def require_open(self) -> None:
        """Refuse the use of a closed runtime."""
        if self.closed:
            raise HsaError(
                "RL0908",
                where=f"{self.hsa.table.kind} runtime",
                seen="closed",
                allowed="an open one",
                do="keep the Runtime open for as long as its agents, buffers and queues are used",
            )

    def watch(self, queue: Queue) -> None:
        """Let `queue` fail when its agent reports a memory fault."""
        self._queues.add(queue)

    def memory_fault(self, agent: int, address: int) -> None:
        """Fail the queues of `agent`."""
        for queue in list(self._queues):
            queue.memory_fault(agent, address)

    def close(self) -> None:
        """Shut a software device down; the real runtime keeps its one reference."""
        if self.closed:
            return
        self.closed = True
        if self._owns_init:
            self.hsa.check("hsa_shut_down")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _agent_handles(self) -> list[int]:
        found: list[int] = []

        def visit(agent: int, _data: object) -> int:
            found.append(agent)
            return Status.HSA_STATUS_SUCCESS

        self.hsa.check("hsa_iterate_agents", guarded(AGENT_CALLBACK, visit, self._errors.append), None)
        return found


def _tell_real_runtimes(agent: int, address: int) -> None:
    for runtime in list(_real_runtimes):
        runtime.memory_fault(agent, address)


def _listen(hsa: Hsa, tell: Callable[[int, int], None]) -> object:
    """Register for system events. What is returned must live as long as the runtime may call it.

    A second listener may be refused, when another library of this process has one: then that one decides.
    """

    def event(address: int, _data: object) -> int:
        seen = hsa_amd_event_t.from_address(address)
        if seen.event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT:
            return Status.HSA_STATUS_ERROR
        tell(seen.memory_fault.agent, seen.memory_fault.virtual_address)
        return Status.HSA_STATUS_SUCCESS

    errors: list[BaseException] = []
    callback = guarded(SYSTEM_EVENT_CALLBACK, event, errors.append)
    hsa.call("hsa_amd_register_system_event_handler", callback, None)
    return callback
