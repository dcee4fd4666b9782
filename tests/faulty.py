# SPDX-License-Identifier: Apache-2.0
"""Devices that fail when a test says so: the n-th call refused, doorbells lost, dispatches that fault."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import redline as rl
from redline.hsa import Runtime
from redline.hsa.abi import HSA_AMD_GPU_MEMORY_FAULT_EVENT, QUEUE_ERROR_CALLBACK, hsa_amd_event_t
from redline.hsa.lib import Hsa
from redline.hsa.prototypes import PROTOTYPES
from redline.sim.dispatch import Dispatch, InOrder
from redline.sim.errors import MemoryFault
from redline.sim.memory import Memory
from redline.sim.runtime import SimRuntime
from tests.hsa.fakes import table_with

OUT_OF_RESOURCES = 0x1008


class Acting(InOrder):
    """A back end that computes nothing, keeps nothing, and does what `act` says at each dispatch."""

    def __init__(self) -> None:
        self.act: Callable[[Dispatch], None] = lambda _: None

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        self.act(dispatch)

    def close(self) -> None:
        """Nothing is held."""


def write_far_outside(_dispatch: Dispatch) -> None:
    """An `act`."""
    raise MemoryFault(0xBAD0, 4, "write")


class Faulty:
    """A software device's table, and what to do wrong."""

    def __init__(self) -> None:
        self.backend = Acting()
        self.sim = SimRuntime("gfx1201", self.backend)
        self.calls: list[str] = []  # those that return a status, since `count_from_here`
        self.refuse = 0  # the n-th of them is refused; 0: none
        self.refuse_all_behind = False
        self.lost_doorbells: list[tuple[int, int]] | None = None  # handle and value; None: none is lost
        self.found_in_wait = False  # lost doorbells arrive once the host waits for a signal
        self.queues: dict[int, int] = {}  # of live queues the address, and that of the error callback
        self._handler = 0
        self._beneath = Hsa(self.sim.table)
        self.errors: list[BaseException] = []
        self.table = table_with(self.sim.table, {name: self._call(name) for name in PROTOTYPES}, self.errors)

    def count_from_here(self, refuse: int = 0, *, all_behind: bool = False) -> None:
        """Start again with call 1, and refuse the n-th, or all from there on."""
        self.calls, self.refuse, self.refuse_all_behind = [], refuse, all_behind

    @contextmanager
    def device(self) -> Iterator[rl.Device]:
        """A device of its own on this table."""
        with Runtime.of_table(self.table) as runtime:
            yield rl.Device(runtime, runtime.agents()[0], "sim:gfx1201")

    def holds(self) -> tuple[Any, ...]:
        """What the device has given out: allocations, signals, queues, code."""
        code = self.sim._executables
        counts = len(self.sim.queues), len(code._readers), len(code._executables)
        return tuple(row.label for row in self.sim.memory.allocations), len(self.sim.signals._live), *counts

    def ring_lost_doorbells(self) -> None:
        """Deliver them after all."""
        lost, self.lost_doorbells = self.lost_doorbells or [], None
        for handle, value in lost:
            self._beneath.call("hsa_signal_store_screlease", handle, value)

    def report_memory_fault(self, agent: int, address: int) -> None:
        """The system event, as ROCr's own thread sends it."""
        event = hsa_amd_event_t(event_type=HSA_AMD_GPU_MEMORY_FAULT_EVENT)
        event.memory_fault.agent, event.memory_fault.virtual_address = agent, address
        call = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)(self._handler)
        _on_a_thread_of_its_own(partial(call, ctypes.addressof(event), None))

    def report_queue_errors(self, status: int) -> None:
        """The error callback of every queue."""
        for queue, callback in self.queues.items():
            call = QUEUE_ERROR_CALLBACK(callback)
            _on_a_thread_of_its_own(partial(call, status, queue, None))

    def _call(self, name: str) -> Callable[..., Any]:
        # A shut-down that is refused would leave the device open for other tests of the process.
        counted = PROTOTYPES[name].result == "hsa_status_t" and name != "hsa_shut_down"

        def call(*args: Any) -> Any:
            if counted:
                self.calls.append(name)
                behind = self.refuse_all_behind and len(self.calls) > self.refuse > 0
                if len(self.calls) == self.refuse or behind:
                    return OUT_OF_RESOURCES
            doorbells = [queue.doorbell for queue in self.sim.queues.values()]
            if self.lost_doorbells is not None and name == "hsa_signal_store_screlease" and args[0] in doorbells:
                self.lost_doorbells.append((args[0], args[1]))
                return None
            if self.found_in_wait and name == "hsa_signal_wait_scacquire":
                self.ring_lost_doorbells()
            result = self._beneath.call(name, *args)
            self._note(name, args)
            return result

        return call

    def _note(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "hsa_amd_register_system_event_handler":
            self._handler = args[0]
        elif name == "hsa_queue_create":
            self.queues[ctypes.c_uint64.from_address(args[7]).value] = args[3]
        elif name == "hsa_queue_destroy":
            self.queues.pop(args[0], None)


def _on_a_thread_of_its_own(function: Callable[[], Any]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
