# SPDX-License-Identifier: Apache-2.0
"""A packet processor in compiled code, for tests: takes packets from a ring while another thread publishes.

Also two publishers that break the rule in known ways. Without the GIL, so that both run at once; `racing.py` starts the
threads. Imports nothing of ours: numba's cache does not notice edits in other files.

Each packet is told by its sequence number: words 1 to 14 hold it, the upper half of the header its low 16 bits, word 15
the number of packets behind it in its batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

PACKET_WORDS = np.uint64(16)
BATCH_WORD = np.uint64(15)
INVALID = np.uint32(1)

# Places in the consumer's state, an array of uint64; the first is its read index, the last is the publisher's.
TAKEN, TORN, OUT_OF_ORDER, SPLIT, CAUGHT_UP, STOP = range(6)


@intrinsic
def load_acquire(typing_context: Any, address: Any) -> Any:  # numba passes the first
    """The 32-bit word at an address, before any later load."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(32).as_pointer())
        return builder.load_atomic(pointer, "acquire", 4)

    return types.uint32(types.uint64), codegen


@intrinsic
def load_acquire_u64(typing_context: Any, address: Any) -> Any:
    """The 64-bit word at an address, before any later load."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.uint64(types.uint64), codegen


@intrinsic
def store_release(typing_context: Any, address: Any, value: Any) -> Any:
    """Store a 32-bit word, not before any earlier load or store."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(32).as_pointer())
        builder.store_atomic(args[1], pointer, "release", 4)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint32), codegen


@intrinsic
def store_release_u64(typing_context: Any, address: Any, value: Any) -> Any:
    """Store a 64-bit word, not before any earlier load or store."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        builder.store_atomic(args[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@njit(cache=True, nogil=True, error_model="numpy")
def taken(state: Any) -> Any:
    """The read index, as a publisher must load it: the slots before it are free."""
    return load_acquire_u64(np.uint64(state.ctypes.data))  # type: ignore[call-arg]


@njit(cache=True, nogil=True, error_model="numpy")
def consume(ring: Any, state: Any, seen: Any) -> None:
    """Take packets 0, 1, 2, ... until each place of `seen` had its turn or the publisher stops this.

    Counts in `state`: packets whose words disagree (torn), whole packets with another's number (out of order), packets
    that were not there yet when the packet before them in their batch was (split), and how often there was nothing to
    take (caught up). `seen` counts each number's coming.
    """
    base, state_at = np.uint64(ring.ctypes.data), np.uint64(state.ctypes.data)
    mask = np.uint64(ring.shape[0]) // PACKET_WORDS - np.uint64(1)
    wanted = np.uint64(seen.shape[0])
    index, behind = np.uint64(0), np.uint32(0)
    waited = False
    while index < wanted:
        word = (index & mask) * PACKET_WORDS
        at = base + np.uint64(4) * word
        header: Any = load_acquire(at)  # type: ignore[call-arg]
        if header & np.uint32(0xFF) == INVALID:
            waited = True
            if load_acquire_u64(state_at + np.uint64(8 * STOP)):
                return
            continue
        number = ring[word + np.uint64(1)]
        torn = (number & np.uint32(0xFFFF)) != header >> np.uint32(16)
        for j in range(np.uint64(2), BATCH_WORD):
            torn |= ring[word + np.uint64(j)] != number
        if torn:
            state[TORN] += np.uint64(1)
        elif np.uint64(number) != index:
            state[OUT_OF_ORDER] += np.uint64(1)
        if not torn and np.uint64(number) < wanted:
            seen[number] += np.uint8(1)
        if waited:
            state[CAUGHT_UP] += np.uint64(1)
            state[SPLIT] += np.uint64(behind != 0)
        behind, waited = ring[word + BATCH_WORD], False
        store_release(at, INVALID)
        index += np.uint64(1)
        store_release_u64(state_at, index)


@njit(cache=True, nogil=True, error_model="numpy")
def header_first(ring: Any, first: Any, packets: Any) -> None:
    """The rule broken: each header goes before its body, and the body waits until the consumer has taken the slot.

    At most a hundred million looks, so that it ends without a consumer too.
    """
    base = np.uint64(ring.ctypes.data)
    mask = np.uint64(ring.shape[0]) // PACKET_WORDS - np.uint64(1)
    for i in range(np.uint64(packets.shape[0])):
        word = ((np.uint64(first) + np.uint64(i)) & mask) * PACKET_WORDS
        store_release(base + np.uint64(4) * word, packets[i, 0])  # type: ignore[call-arg]
        looks = 100_000_000
        while looks and load_acquire(base + np.uint64(4) * word) & np.uint32(0xFF) != INVALID:
            looks -= 1
        for j in range(np.uint64(1), PACKET_WORDS):
            ring[word + np.uint64(j)] = packets[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def first_header_first(ring: Any, first: Any, packets: Any) -> None:
    """The rule broken: bodies before headers, but headers in order, and slowly: a batch appears piece by piece."""
    base = np.uint64(ring.ctypes.data)
    mask = np.uint64(ring.shape[0]) // PACKET_WORDS - np.uint64(1)
    for i in range(np.uint64(packets.shape[0])):
        word = ((np.uint64(first) + np.uint64(i)) & mask) * PACKET_WORDS
        for j in range(np.uint64(1), PACKET_WORDS):
            ring[word + np.uint64(j)] = packets[i, j]
    for i in range(np.uint64(packets.shape[0])):
        word = ((np.uint64(first) + np.uint64(i)) & mask) * PACKET_WORDS
        store_release(base + np.uint64(4) * word, packets[i, 0])  # type: ignore[call-arg]
        looks = 100_000_000
        while looks and load_acquire(base + np.uint64(4) * word) & np.uint32(0xFF) != INVALID:
            looks -= 1
