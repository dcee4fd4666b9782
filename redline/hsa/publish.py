# SPDX-License-Identifier: Apache-2.0
"""Submit AQL packets: reserve slots, write packets so that no consumer ever sees half of one, ring the doorbells.

`publish` writes: all bodies first, while each slot's header says INVALID; then each header (with its setup or format
half) by one 32-bit release store, the first packet's last, so that a batch appears at once: a packet processor stops
at the first INVALID header. `submit` is a whole submission in one call, which no signal handler interrupts between the
reservation and the doorbell. It calls the runtime by address and waits for nothing: locks, failures, time-outs and the
wait for room are `submission.py`'s. Source of the order: the HSA Runtime specification's user mode queues.

Compiled code: numba's cache does not notice edits in other files, so this file imports nothing of ours.
What touches memory or the runtime has two bodies: the Python one (NUMBA_DISABLE_JIT=1, and tests that record every
store) and the intrinsic that compiled code gets, an LLVM atomic store or call; inline assembly would end the process.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int64, c_uint32, c_uint64
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray

PACKET_WORDS = np.uint64(16)
INVALID_HEADER = np.uint32(1)  # HSA_PACKET_TYPE_INVALID, no setup

# The words of a submission, int64. First the addresses of these functions, and how many queues and signals follow.
FUNCTIONS = (
    "hsa_signal_store_screlease",
    "hsa_queue_load_read_index_scacquire",
    "hsa_queue_load_write_index_relaxed",
    "hsa_queue_add_write_index_scacq_screl",
)
STORE, READ_INDEX, WRITE_INDEX, RESERVE, QUEUES, SIGNALS, HEAD = range(7)
# Then a row for each queue: its address and its doorbell's handle, its ring's address and slots, the packets' address
# and number; `submit` writes the index of the last one. The signals' handles stand behind the rows.
QUEUE, DOORBELL, RING, SLOTS, PACKETS, COUNT, LAST, ROW = range(8)


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


def words_at(address: Any, count: Any) -> Any:
    """The `count` 32-bit words at `address`, as an array."""
    return np.ctypeslib.as_array((c_uint32 * int(count)).from_address(int(address)))


def ask(function: Any, queue: Any) -> Any:
    """Call the function at an address: an index of a queue."""
    return CFUNCTYPE(c_int64, c_uint64)(int(function))(int(queue))


def add(function: Any, queue: Any, count: Any) -> Any:
    """Call the function at an address: an index of a queue moves; what it was before."""
    return CFUNCTYPE(c_int64, c_uint64, c_uint64)(int(function))(int(queue), int(count))


def store(function: Any, signal: Any, value: Any) -> None:
    """Call the function at an address: store into a signal, or ring a doorbell."""
    CFUNCTYPE(None, c_uint64, c_int64)(int(function))(int(signal), int(value))


@intrinsic
def _pointer_u32(_typing: Any, address: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(32).as_pointer())

    return types.CPointer(types.uint32)(types.int64), codegen  # type: ignore[no-untyped-call]


def _call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Call the C function whose address is the first argument; all others are 64 bits each."""
    word = ir.IntType(64)
    nothing = signature.return_type == types.void
    prototype = ir.FunctionType(ir.VoidType() if nothing else word, [word] * (len(args) - 1))
    result = builder.call(builder.inttoptr(args[0], prototype.as_pointer()), args[1:])
    return context.get_dummy_value() if nothing else result


@intrinsic
def _ask(_typing: Any, function: Any, queue: Any) -> Any:
    return types.int64(types.int64, types.int64), _call


@intrinsic
def _add(_typing: Any, function: Any, queue: Any, count: Any) -> Any:
    return types.int64(types.int64, types.int64, types.int64), _call


@intrinsic
def _store(_typing: Any, function: Any, signal: Any, value: Any) -> Any:
    return types.void(types.int64, types.int64, types.int64), _call


# What compiled code has in place of each twin. (Lambdas, for numba compares annotations with none.)
_compiled_as = partial(overload, inline="always")
_compiled_as(words_at)(lambda address, count: lambda address, count: carray(_pointer_u32(address), count))  # type: ignore[call-arg]
_compiled_as(ask)(lambda function, queue: lambda function, queue: _ask(function, queue))  # type: ignore[call-arg]
_compiled_as(add)(lambda function, queue, count: lambda function, queue, count: _add(function, queue, count))  # type: ignore[call-arg]
_compiled_as(store)(lambda function, signal, value: lambda function, signal, value: _store(function, signal, value))  # type: ignore[call-arg]


@njit(cache=True, error_model="numpy")  # with the GIL, for it never blocks; giving that up costs more than the call
def load(function: Any, signal: Any) -> Any:
    """The value of a signal, by the address of hsa_signal_load_scacquire."""
    return ask(function, signal)


@njit(cache=True, error_model="numpy")  # with the GIL: it blocks nowhere, and no thread may end a queue meanwhile
def submit(words: Any) -> Any:
    """Submit what the `words` say: -1, or the place of the first queue without room for its packets.

    Nothing has happened then. Otherwise every signal was set to 1, all packets were published, and then all doorbells
    rung. Nobody else may reserve slots of these queues meanwhile.
    """
    behind = HEAD + ROW * words[QUEUES]
    for row in range(HEAD, behind, ROW):
        taken = ask(words[WRITE_INDEX], words[row + QUEUE]) - ask(words[READ_INDEX], words[row + QUEUE])
        if taken + words[row + COUNT] > words[row + SLOTS]:
            return (row - HEAD) // ROW
    for at in range(behind, behind + words[SIGNALS]):
        store(words[STORE], words[at], 1)
    for row in range(HEAD, behind, ROW):
        count = words[row + COUNT]
        first = add(words[RESERVE], words[row + QUEUE], count)
        words[row + LAST] = first + count - 1
        packets = words_at(words[row + PACKETS], 16 * count).reshape((count, 16))
        publish(words_at(words[row + RING], 16 * words[row + SLOTS]), np.uint64(first), packets)
    for row in range(HEAD, behind, ROW):
        store(words[STORE], words[row + DOORBELL], words[row + LAST])
    return -1
