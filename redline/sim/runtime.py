# SPDX-License-Identifier: Apache-2.0
"""The HSA table of a software device: every call that `redline/hsa` makes, answered by Python behind C addresses.

`open_sim` gives the table; `SimRuntime` is the device itself, for tests that look inside. Each call goes through
one wrapper: a `Refusal` becomes its status, anything else is remembered and becomes HSA_STATUS_ERROR. What agents,
pools, executables, signals and queues do is in their own files.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading
import traceback
from collections import deque
from collections.abc import Callable
from ctypes import c_uint64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from redline.errors import UnsupportedTarget
from redline.hsa.abi import AGENT_CALLBACK, POOL_CALLBACK, QueuePriority, Status, SystemInfo
from redline.hsa.lib import RuntimeTable, callback_table
from redline.hsa.prototypes import PROTOTYPES
from redline.sim.agents import (
    COMPUTE_UNITS,
    CPU_AGENT,
    GPU_AGENT,
    POOLS,
    QUEUE_MAX_SIZE,
    QUEUE_MIN_SIZE,
    agent_info,
    pool_info,
)
from redline.sim.aql import AqlProcessor
from redline.sim.clock import DEVICE_TICKS_PER_SECOND, device_ticks
from redline.sim.dispatch import Backend
from redline.sim.errors import Refusal
from redline.sim.executables import Executables
from redline.sim.families import TARGETS
from redline.sim.memory import Memory
from redline.sim.packet import Executed
from redline.sim.packets import Pm4Reader
from redline.sim.pools import Pools
from redline.sim.queues import SimQueue
from redline.sim.signals import Signals

if TYPE_CHECKING:
    from redline.sim.executor import Executor
    from redline.sim.observed import Observer

PATIENCE_SECONDS = 30.0  # of waits inside a stream; host waits end long before
TRACED_PACKETS, TRACED_WORDS = 4096, 64  # the latest packets and the first words of each: a NOP alone may have 64 KiB
LONGEST_WAIT_SECONDS = 3600.0


def open_sim(target: str, backend: Backend | None = None, observer: Observer | None = None) -> RuntimeTable:
    """The table of a new software device.

    `backend` runs the dispatches; without one, the executor of machine code does, with an `observer` if one is given,
    and a missing disassembler shows here as `radiowave.ToolchainError`.
    """
    return SimRuntime(target, backend, observer=observer).table


class SimRuntime:
    """One software device. Initialised by hsa_init, gone with the matching hsa_shut_down."""

    def __init__(
        self,
        target: str,
        backend: Backend | None = None,
        *,
        observer: Observer | None = None,
        patience_s: float = PATIENCE_SECONDS,
    ) -> None:
        if target not in TARGETS:
            raise UnsupportedTarget(
                "RL0301",
                where=f"software device {target!r}",
                seen=repr(target),
                allowed=", ".join(TARGETS),
                do="name one of these",
            )
        self.target = TARGETS[target]
        self.patience_s = patience_s
        # Another user of the hardware queue may change its registers between two buffers: with this set, all
        # of them are unset then, and a stream that assumes anything at its start faults.
        self.forgetful_queues = False
        self.memory = Memory()  # first: it may be refused, and a back end has a process to end
        self._executor: Executor | None = None
        if backend is None:
            backend = self._executor = _executor(target, observer)
        self.backend = backend
        self.signals = Signals(self.memory)
        self.trace: deque[Executed] = deque(maxlen=TRACED_PACKETS)
        self.errors: list[BaseException] = []  # what raised inside a callback: bugs of this device
        self.queues: dict[int, SimQueue] = {}
        self._lock = threading.RLock()  # the collector may destroy queues from inside, as in `memory.py`
        self._references = 0
        self._stuck = False  # a queue did not stop: its thread may still use the arena
        self._numbers = itertools.count()
        self._fault = ""
        self._pools = Pools(self.memory, self.target)
        self._executables = Executables(self.memory, self.target)
        self.table = callback_table(
            "sim",
            self._functions(),
            remember=self._remember_error,
            fault_text=lambda: self._fault,
            approximate=lambda: self._executor.approximate if self._executor else (),
            device=self,
        )

    # The wrapper of every call

    def _functions(self) -> dict[str, Callable[..., Any]]:
        calls: dict[str, Callable[..., Any]] = {
            "hsa_init": self._init,
            "hsa_shut_down": self._shut_down,
            "hsa_system_get_info": self._system_info,
            "hsa_iterate_agents": self._iterate_agents,
            "hsa_agent_get_info": self._agent_info,
            "hsa_amd_register_system_event_handler": self._register_handler,
            "hsa_amd_agent_iterate_memory_pools": self._iterate_pools,
            "hsa_amd_memory_pool_get_info": self._pool_info,
            "hsa_signal_create": self._signal_create,
            "hsa_signal_destroy": self.signals.destroy,
            "hsa_signal_load_scacquire": self.signals.load,
            "hsa_signal_store_screlease": self.signals.store,
            "hsa_signal_wait_scacquire": self._signal_wait,
            "hsa_queue_create": self._queue_create,
            "hsa_queue_destroy": self._queue_destroy,
            "hsa_queue_load_read_index_scacquire": lambda queue: self._queue(queue).read_index(),
            "hsa_queue_load_write_index_relaxed": lambda queue: self._queue(queue).write_index(),
            "hsa_queue_add_write_index_scacq_screl": lambda queue, n: self._queue(queue).add_write_index(n),
            "hsa_amd_queue_cu_set_mask": self._queue_cu_mask,
            "hsa_amd_queue_set_priority": self._queue_priority,
            "hsa_amd_profiling_set_profiler_enabled": self._queue_profiled,
            "hsa_amd_profiling_get_dispatch_time": self._dispatch_time,
            **self._pools.calls(),
            **self._executables.calls(),
        }
        return {name: self._answering(name, function) for name, function in calls.items()}

    def _answering(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        returns_status = PROTOTYPES[name].result == "hsa_status_t"

        def call(*args: Any) -> Any:
            try:
                if name != "hsa_init" and not self._references:
                    raise Refusal(Status.HSA_STATUS_ERROR_NOT_INITIALIZED, "hsa_init was not called")
                result = function(*args)
            except Refusal as refusal:
                self.remember(f"{name}: {refusal.text}")
                if returns_status:
                    return int(refusal.status)
                raise
            return Status.HSA_STATUS_SUCCESS if returns_status else result

        return call

    def remember(self, text: str) -> None:
        """Keep the last fault's account."""
        self._fault = text

    def _remember_error(self, error: BaseException) -> None:
        if not isinstance(error, Refusal):
            self.errors.append(error)
            self.remember("".join(traceback.format_exception(error)))

    # Life

    def _init(self) -> None:
        with self._lock:
            self._references += 1

    def _shut_down(self) -> None:
        with self._lock:
            self._references -= 1
            if self._references:
                return
            queues, self.queues = list(self.queues.values()), {}
        stopped = [queue.destroy() for queue in queues]
        self.backend.close()
        if all(stopped) and not self._stuck:
            self.memory.close()

    # System, agents, pools

    def _system_info(self, key: int, out: int | None) -> None:
        answers = {
            SystemInfo.HSA_SYSTEM_INFO_VERSION_MAJOR: struct.pack("<H", 1),
            SystemInfo.HSA_SYSTEM_INFO_VERSION_MINOR: struct.pack("<H", 1),
            SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP: struct.pack("<Q", device_ticks()),
            SystemInfo.HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY: struct.pack("<Q", DEVICE_TICKS_PER_SECOND),
        }
        if key not in answers:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, f"system attribute {key:#x} is not covered")
        _put(out, answers[SystemInfo(key)])

    def _iterate_agents(self, callback: int | None, data: int | None) -> None:
        self._visit(AGENT_CALLBACK, callback, (CPU_AGENT, GPU_AGENT), data)

    def _iterate_pools(self, agent: int, callback: int | None, data: int | None) -> None:
        if agent not in (CPU_AGENT, GPU_AGENT):
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_AGENT, f"agent {agent:#x}")
        pools = tuple(pool.handle for pool in POOLS.values() if pool.agent == agent)
        self._visit(POOL_CALLBACK, callback, pools, data)

    def _visit(self, prototype: Any, callback: int | None, handles: tuple[int, ...], data: int | None) -> None:
        """Call back once a handle, until one answers with anything but success."""
        if not callback:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null callback")
        visit = prototype(callback)
        for handle in handles:
            status = visit(handle, data)
            if status != Status.HSA_STATUS_SUCCESS:
                raise Refusal(status, "the callback ended the iteration")

    def _agent_info(self, agent: int, key: int, out: int | None) -> None:
        _put(out, agent_info(agent, key, self.target.name))

    def _pool_info(self, pool: int, key: int, out: int | None) -> None:
        _put(out, pool_info(pool, key))

    def _register_handler(self, callback: int | None, _data: int | None) -> None:
        """Accepted and never called: every fault of this device arrives at its queue."""
        if not callback:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null callback")

    # Signals and queues

    def _signal_create(self, initial: int, _count: int, _consumers: int | None, out: int | None) -> None:
        if not out:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer")
        c_uint64.from_address(out).value = self.signals.create(initial)

    def _signal_wait(self, handle: int, condition: int, compare: int, ticks: int, _state: int) -> int:
        seconds = min(ticks / DEVICE_TICKS_PER_SECOND, LONGEST_WAIT_SECONDS)
        return self.signals.wait(handle, condition, compare, seconds)

    def _queue_create(
        self,
        agent: int,
        slots: int,
        _type: int,
        callback: int | None,
        data: int | None,
        _private: int,
        _group: int,
        out: int | None,
    ) -> None:
        if agent != GPU_AGENT:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_AGENT, f"agent {agent:#x} has no queues")
        if not out or slots & (slots - 1) or not QUEUE_MIN_SIZE <= slots <= QUEUE_MAX_SIZE:
            text = f"{slots} slots; allowed: a power of two from {QUEUE_MIN_SIZE} to {QUEUE_MAX_SIZE}"
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, text)
        queue = self._new_queue(slots, (callback or 0, data or 0))
        with self._lock:
            self.queues[queue.address] = queue
        c_uint64.from_address(out).value = queue.address

    def _new_queue(self, slots: int, on_error: tuple[int, int]) -> SimQueue:
        reader = Pm4Reader(self.target.family, self.memory, self.backend, self._traced, self.patience_s)
        reader.forgetful = self.forgetful_queues
        processor = AqlProcessor(reader, self.signals, self.patience_s)
        number = next(self._numbers)
        return SimQueue(number, slots, processor, self.memory, self.signals, on_error, self.remember)

    def _traced(self, executed: Executed) -> None:
        self.trace.append(replace(executed, words=executed.words[:TRACED_WORDS]))

    def _queue_destroy(self, address: int | None) -> None:
        queue = self._queue(address)
        with self._lock:
            del self.queues[queue.address]
        if not queue.destroy():
            self._stuck = True
            text = f"queue {queue.number} did not stop; its memory is kept"
            raise Refusal(Status.HSA_STATUS_ERROR, text)

    def _queue_cu_mask(self, address: int | None, bits: int, mask: int | None) -> None:
        """Checked and kept; this device runs everything at once, whatever the mask.

        Sources: ROCr's AqlQueue::SetCUMasking (bits beyond the units are dropped; what the driver refuses is
        HSA_STATUS_ERROR) and Linux's pqm_update_mqd (from gfx10 on units come in pairs).
        """
        queue = self._queue(address)
        if bits % 32 or (bits and not mask):
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, f"{bits} bits; allowed: a multiple of 32")
        words = tuple((ctypes.c_uint32 * (bits // 32)).from_address(mask or 0)) if bits else ()
        pairs = {words[0] >> at & 3 for at in range(0, COMPUTE_UNITS, 2)} if words else {3}
        if not pairs <= {0, 3} or 3 not in pairs:
            raise Refusal(Status.HSA_STATUS_ERROR, f"mask {words}; allowed: whole pairs of units, at least one")
        queue.cu_mask = words

    def _queue_priority(self, address: int | None, priority: int) -> None:
        queue = self._queue(address)
        if priority not in QueuePriority.__members__.values():
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, f"priority {priority}; allowed: 0 to 2")
        queue.priority = priority

    def _queue_profiled(self, address: int | None, enable: int) -> None:
        self._queue(address).processor.profiled = bool(enable)

    def _dispatch_time(self, agent: int, signal: int, out: int | None) -> None:
        """What the packet processor left in the completion signal of a profiled dispatch."""
        if agent != GPU_AGENT:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_AGENT, f"agent {agent:#x} runs no dispatches")
        _put(out, self.signals.times(signal))

    def _queue(self, address: int | None) -> SimQueue:
        queue = self.queues.get(address or 0)
        if queue is None:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_QUEUE, f"{address or 0:#x} is no queue")
        return queue


def _put(out: int | None, data: bytes) -> None:
    if not out:
        raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer")
    ctypes.memmove(out, data, len(data))


def _executor(target: str, observer: Observer | None) -> Executor:
    """The machine-code executor; imported here so that a fuzz back end needs no disassembler."""
    from redline.sim.executor import Executor

    return Executor(target, observer=observer)
