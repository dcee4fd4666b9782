# SPDX-License-Identifier: Apache-2.0
"""The null engine, `null:gfx...`: an HSA table that completes a packet inside the store to the doorbell.

For benchmarks of the host's side only. It never computes: no word of an indirect buffer is read and no kernel runs, so
memory stays as it was. The calls that repeat (signals, queue indices, doorbell) are compiled, `null_calls.py`; all
others are the software device's, over its memory, loader and limits. Masks, priorities and times are refused.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from ctypes import c_int64, c_uint64, sizeof
from typing import Any, Final

from redline.errors import HsaError
from redline.hsa import null_calls
from redline.hsa.abi import (
    AMD_SIGNAL_KIND_DOORBELL,
    HSA_QUEUE_TYPE_MULTI,
    Status,
    amd_signal_t,
    hsa_queue_t,
)
from redline.hsa.lib import RuntimeTable, callback_table
from redline.sim.agents import GPU_AGENT, QUEUE_MAX_SIZE, QUEUE_MIN_SIZE
from redline.sim.aql_packet import PACKET_BYTES
from redline.sim.dispatch import Dispatch, InOrder
from redline.sim.memory import Memory
from redline.sim.queues import INVALID_SLOT, KERNEL_DISPATCH_FEATURE
from redline.sim.runtime import SimRuntime

_COMPILED: Final = {
    "hsa_signal_load_scacquire": "signal_load",
    "hsa_signal_store_screlease": "signal_store",
    "hsa_signal_wait_scacquire": "signal_wait",
    "hsa_queue_load_read_index_scacquire": "read_index",
    "hsa_queue_load_write_index_relaxed": "write_index",
    "hsa_queue_add_write_index_scacq_screl": "add_write_index",
}
_REFUSED: Final = (
    "hsa_amd_queue_cu_set_mask",
    "hsa_amd_queue_set_priority",
    "hsa_amd_profiling_set_profiler_enabled",
    "hsa_amd_profiling_get_dispatch_time",
)


class NullQueue(ctypes.Structure):
    """What a queue's address points to: the public part, then the indices."""

    _fields_ = [("public", hsa_queue_t), ("write_index", c_int64), ("read_index", c_int64)]


def open_null(target: str) -> RuntimeTable:
    """The table of a new null engine.

    Raises UnsupportedTarget for a target outside the list, HsaError where numba compiles nothing.
    """
    if not null_calls.COMPILED:
        raise HsaError(
            "RL0915",
            where=f"null engine {target!r}",
            seen="NUMBA_DISABLE_JIT=1: no compiled code",
            allowed="a process in which numba compiles",
            do='unset NUMBA_DISABLE_JIT, or use the software device: redline.open("sim:gfx1201")',
        )
    return _NullRuntime(target).table


class _NullRuntime:
    """A software device that nothing runs on, with calls of its own for what repeats."""

    def __init__(self, target: str) -> None:
        self._sim = SimRuntime(target, _Nothing())
        self._numbers = itertools.count()
        self._queues: dict[int, tuple[int, ...]] = {}  # by address, all memory of each
        own = callback_table("null", self._functions(), remember=self._remember)
        compiled = {name: null_calls.COMPILED[function].address for name, function in _COMPILED.items()}
        addresses = {**self._sim.table.addresses, **own.addresses, **compiled}
        self.table = RuntimeTable("null", addresses, (self, own), self._sim.table.fault_text, device=self)

    def _functions(self) -> dict[str, Any]:
        unsupported = dict.fromkeys(_REFUSED, _unsupported)
        return {"hsa_queue_create": self._create, "hsa_queue_destroy": self._destroy, **unsupported}

    def _remember(self, error: BaseException) -> None:
        self._sim.remember(repr(error))

    def _create(self, agent: int, slots: int, _type: int, *rest: Any) -> int:
        """The last argument is where the address goes; the error callback before it is never called."""
        out = rest[-1]
        if agent != GPU_AGENT:
            return Status.HSA_STATUS_ERROR_INVALID_AGENT
        if not out or slots & (slots - 1) or not QUEUE_MIN_SIZE <= slots <= QUEUE_MAX_SIZE:
            return Status.HSA_STATUS_ERROR_INVALID_ARGUMENT
        c_uint64.from_address(out).value = self._new_queue(self._sim.memory, slots)
        return Status.HSA_STATUS_SUCCESS

    def _new_queue(self, memory: Memory, slots: int) -> int:
        """Allocate ring, doorbell and queue."""
        ring = memory.allocate(slots * PACKET_BYTES, align=4096, label="ring")
        for slot in range(slots):
            memory.store(ring + slot * PACKET_BYTES, INVALID_SLOT)
        doorbell = memory.allocate(sizeof(amd_signal_t), align=64, label="doorbell")
        address = memory.allocate(sizeof(NullQueue), align=64, label="queue")
        memory.store(doorbell, bytes(amd_signal_t(kind=AMD_SIGNAL_KIND_DOORBELL, queue_ptr=address)))
        public = hsa_queue_t(
            type=HSA_QUEUE_TYPE_MULTI,
            features=KERNEL_DISPATCH_FEATURE,
            base_address=ring,
            doorbell_signal=doorbell,
            size=slots,
            id=next(self._numbers),
        )
        memory.store(address, bytes(NullQueue(public=public)))
        self._queues[address] = (address, doorbell, ring)
        return address

    def _destroy(self, address: int | None) -> int:
        """Nothing runs that would have to be stopped."""
        memory = self._queues.pop(address or 0, None)
        if memory is None:
            return Status.HSA_STATUS_ERROR_INVALID_QUEUE
        for place in memory:
            self._sim.memory.free(place)
        return Status.HSA_STATUS_SUCCESS


def _unsupported(*_arguments: Any) -> int:
    return Status.HSA_STATUS_ERROR_NOT_SUPPORTED


class _Nothing(InOrder):
    """The back end of queues that are never made."""

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Never called."""

    def close(self) -> None:
        """Nothing is held."""
