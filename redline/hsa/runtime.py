# SPDX-License-Identifier: Apache-2.0
"""One initialised HSA runtime: the machine's own, or a software device.

`hsa_init` counts references. A full shut-down of the real runtime and a new start in the same process is
fragile, so the first `Runtime.real()` takes one reference for the life of the process and later ones share
it. A software device is made and shut down with its `Runtime`; one that is dropped, or still open when the
interpreter ends, is shut down then, so that neither its threads nor its disassembler stay behind. Also listens for
the runtime's memory-fault event: without a listener ROCr ends the process, with ours the queues of that agent fail.

Nothing here survives a fork: neither a software device's threads nor a process's mapping of the GPU are in the child.
There every use is refused and every close does nothing; open a device in the child, or start it with "spawn". The
real runtime can be used by the process that opened it alone.

Source of calls, keys and events: ROCR-Runtime's hsa.h and hsa_ext_amd.h.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import threading
import weakref
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
from redline.hsa.callbacks import guarded
from redline.hsa.handle import Resources
from redline.hsa.lib import Hsa, RuntimeTable, load_real_table

if TYPE_CHECKING:
    from redline.hsa.queue import Queue
    from redline.sim.observed import Observer

_real_lock = threading.Lock()
_real: Hsa | None = None
_real_listener: tuple[object, bool] = (None, False)
_real_is_the_parents = False
_real_queues: weakref.WeakSet[Queue] = weakref.WeakSet()

_real_resources: list[Resources] = []  # of every real runtime, dropped ones too: callbacks must outlive their queues

_open_runtimes: weakref.WeakSet[Runtime] = weakref.WeakSet()
# Software devices that nobody has shut down yet, by a number of their own, and what their callbacks live in.
_software: dict[int, tuple[Hsa, Resources]] = {}
_numbers = itertools.count()


class Runtime:
    """Agents of one HSA runtime. A context manager; closing it takes every resource made from it along.

    The end of its `with` raises what `close` raises, HsaError.
    """

    def __init__(self, hsa: Hsa) -> None:
        """`hsa` is initialised already; `of_table`, `real` and `sim` see to that."""
        self.hsa = hsa
        self.closed = False
        self.resources = Resources(hsa)
        #: Whether memory faults reach us. If not, another library of this process listens, and decides.
        self.listens = False
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._listener: object = None
        self._shut_down: weakref.finalize[[int], Runtime] | None = None  # of a software device, once
        self._number = -1  # in `_software`
        self._is_the_parents = False
        _open_runtimes.add(self)

    @classmethod
    def real(cls) -> Runtime:
        """The machine's HSA runtime. Raises HsaError that says where it was looked for, or why there is no device."""
        global _real, _real_listener
        if _real_is_the_parents:
            raise _inherited("real", "start the process with the multiprocessing method spawn")
        with _real_lock:
            if _real is None:
                hsa = Hsa(load_real_table())
                hsa.check("hsa_init")
                _real, _real_listener = hsa, _listen(hsa, _real_queues)
        runtime = cls(_real)
        runtime._queues, runtime.listens = _real_queues, _real_listener[1]
        _real_resources.append(runtime.resources)
        return runtime

    @classmethod
    def sim(cls, target: str, observer: Observer | None = None) -> Runtime:
        """A software device of one target, below its own HSA table; an observer is told of every memory access.

        Raises UnsupportedTarget for a target outside the list, radiowave's ToolchainError without a disassembler,
        HsaError when it does not start.
        """
        from redline.sim.runtime import open_sim

        return cls.of_table(open_sim(target, observer=observer))

    @classmethod
    def null(cls, target: str) -> Runtime:
        """The null engine for one target: benchmarks of the host's side; runs nothing.

        Raises UnsupportedTarget for a target outside the list, HsaError where numba compiles nothing and when it does
        not start. No ToolchainError: nothing is disassembled.
        """
        from redline.hsa.null import open_null

        return cls.of_table(open_null(target))

    @classmethod
    def of_table(cls, table: RuntimeTable) -> Runtime:
        """Initialise the runtime behind `table`, and shut it down at `close`.

        Raises HsaError when it does not start.
        """
        hsa = Hsa(table)
        hsa.check("hsa_init")
        runtime = cls(hsa)
        number = next(_numbers)
        _software[number] = hsa, runtime.resources
        runtime._number, runtime._shut_down = number, weakref.finalize(runtime, _shut_down_elsewhere, number)
        runtime._shut_down.atexit = False  # `_at_exit` does it, in the main thread
        runtime._listener, runtime.listens = _listen(hsa, runtime._queues)
        return runtime

    def agents(self) -> list[Agent]:
        """The GPU agents, in the runtime's order. Raises HsaError when the runtime is closed or refuses the query."""
        self.require_open()
        handles = self.hsa.visited("hsa_iterate_agents", AGENT_CALLBACK)
        cpus = [agent for agent in handles if device_type(self.hsa, agent) == DeviceType.HSA_DEVICE_TYPE_CPU]
        return [
            Agent(self, agent, cpus)
            for agent in handles
            if device_type(self.hsa, agent) == DeviceType.HSA_DEVICE_TYPE_GPU
        ]

    def fault_text(self) -> str:
        """The software device's account of its last fault; empty on hardware."""
        return self.hsa.table.fault_text()

    def approximate(self) -> tuple[str, ...]:
        """Instructions that the software device ran and computes with bits of its own; empty on hardware."""
        return self.hsa.table.approximate()

    def ticks_per_second(self) -> int:
        """Frequency of the clock that wait hints and timestamps count in, in Hz.

        Raises HsaError when it is not told.
        """
        frequency = c_uint64()
        key = SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY
        self.hsa.check("hsa_system_get_info", key, byref(frequency))
        return frequency.value

    def require_open(self) -> None:
        """Refuse the use of a closed runtime, and of one that a parent process opened: raises HsaError."""
        if self._is_the_parents:
            raise _inherited(self.hsa.table.kind, "open a device in this process")
        if self.closed:
            raise HsaError(
                "RL0908",
                where=f"{self.hsa.table.kind} runtime",
                seen="closed",
                allowed="an open one",
                do="keep the Runtime open for as long as its agents, buffers and queues are used",
            )

    @property
    def is_software(self) -> bool:
        """Whether the device is shut down with this runtime, and not kept for the life of the process."""
        return self._shut_down is not None

    def watch(self, queue: Queue) -> None:
        """Let `queue` fail when its agent reports a memory fault."""
        self._queues.add(queue)

    def close(self) -> None:
        """Release everything that was made here and is still open, queues first; shut a software device down.

        The real runtime keeps its one reference. Raises HsaError for a resource that the runtime does not give back; a
        queue that does not end keeps all memory allocated, for what it runs may still write there.
        """
        if self.closed:
            return
        self.closed = True
        try:
            self.resources.release_all()
        finally:
            if self._shut_down is not None and self._shut_down.detach() and _software.pop(self._number, None):
                self.hsa.check("hsa_shut_down")

    def forked(self) -> None:
        """This is a child process: what is here is the parent's."""
        self._is_the_parents = self.closed = True
        if self._shut_down is not None:
            self._shut_down.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _listen(hsa: Hsa, queues: weakref.WeakSet[Queue]) -> tuple[object, bool]:
    """Register for system events: what must live as long as the runtime may call it, and whether it will.

    A second listener may be refused, when another library of this process has one: then that one decides.
    """

    def event(address: int, _data: object) -> int:
        seen = hsa_amd_event_t.from_address(address)
        if seen.event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT:
            return Status.HSA_STATUS_ERROR
        for queue in list(queues):
            queue.memory_fault(seen.memory_fault.agent, seen.memory_fault.virtual_address)
        return Status.HSA_STATUS_SUCCESS

    def lost(error: BaseException) -> None:
        for queue in list(queues):
            queue.lost(error)

    callback = guarded(SYSTEM_EVENT_CALLBACK, event, lost)
    status = hsa.call("hsa_amd_register_system_event_handler", callback, None)
    return callback, status == Status.HSA_STATUS_SUCCESS


# The end of software devices that nobody closed


def _shut_down_elsewhere(number: int) -> None:
    """Called by the collector, anywhere: in the device's own thread, or where one of the device's locks is held.

    Only a thread of its own may wait for these.
    """
    if number in _software:
        threading.Thread(target=_shut_down, args=(number,), name="redline-shut-down", daemon=True).start()


def _shut_down(number: int) -> None:
    device = _software.pop(number, None)
    if device is not None:
        device[0].call("hsa_shut_down")


def _at_exit() -> None:
    """Closed, not only shut down: handles that are closed later at exit have nothing left to do."""
    for runtime in list(_open_runtimes):
        if runtime.is_software:
            with contextlib.suppress(HsaError):  # there is nobody left to tell
                runtime.close()
    for number in list(_software):
        _shut_down(number)


# Forks


def _in_child() -> None:
    global _real_is_the_parents
    _real_is_the_parents = _real_is_the_parents or _real is not None
    _software.clear()
    for runtime in list(_open_runtimes):
        runtime.forked()


def _inherited(kind: str, do: str) -> HsaError:
    return HsaError(
        "RL0913",
        where=f"{kind} runtime in process {os.getpid()}",
        seen="opened by the process that this one was forked from",
        allowed="the process that opened it",
        do=do,
    )


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
