# SPDX-License-Identifier: Apache-2.0
"""Write AQL packets into a ring so that no consumer ever sees half of one.

All bodies first, while each slot's header says INVALID; then each header (with its setup or format half) by
one 32-bit release store, the first packet's last, so that a batch appears at once: a packet processor stops
at the first INVALID header. Does not reserve slots and does not ring the doorbell; `queue.py` does.

Compiled code: numba's cache does not notice edits in other files, so this file imports nothing of ours.
`store_release` has two bodies: the Python one (NUMBA_DISABLE_JIT=1, and tests that record every store) and
the intrinsic that compiled code gets, an LLVM atomic store; inline assembly would end the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

PACKET_WORDS = np.uint64(16)
INVALID_HEADER = np.uint32(1)  # HSA_PACKET_TYPE_INVALID, no setup


def store_release(ring: Any, word: Any, value: Any) -> None:
    """ring[word] = value, not before any earlier store. (A store of x86 is a release store already.)"""
    ring[word] = value


@intrinsic
def _store_release_u32(typing_context: Any, address: Any, value: Any) -> Any:  # numba passes the first
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(32).as_pointer())
        builder.store_atomic(args[1], pointer, "release", 4)
        return _context.get_dummy_value()

    return types.void(types.uint64, types.uint32), codegen


@overload(store_release, inline="always")
def _store_release(ring: Any, word: Any, value: Any) -> Any:
    def compiled(ring: Any, word: Any, value: Any) -> None:
        address = np.uint64(ring.ctypes.data) + np.uint64(4) * np.uint64(word)
        _store_release_u32(address, np.uint32(value))  # type: ignore[call-arg]

    return compiled


@njit(cache=True, nogil=True, error_model="numpy")
def publish(ring: Any, first: Any, packets: Any) -> None:
    """Put `packets` (n rows of 16 words) into slots first, first + 1, ... of `ring` (flat, 2**k slots).

    `first` is an absolute packet index. The caller has reserved the slots and seen that they are free.
    """
    slots = np.uint64(ring.shape[0]) // PACKET_WORDS
    mask = slots - np.uint64(1)
    count = np.uint64(packets.shape[0])
    for i in range(count):
        at = ((np.uint64(first) + np.uint64(i)) & mask) * PACKET_WORDS
        # A free slot says INVALID already; the store costs nothing and does not depend on who freed it.
        store_release(ring, at, INVALID_HEADER)
        for j in range(np.uint64(1), PACKET_WORDS):
            ring[at + np.uint64(j)] = packets[i, j]
    for i in range(count):
        last = count - np.uint64(1) - np.uint64(i)
        at = ((np.uint64(first) + last) & mask) * PACKET_WORDS
        store_release(ring, at, packets[last, 0])
