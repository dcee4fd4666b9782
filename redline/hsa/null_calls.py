# SPDX-License-Identifier: Apache-2.0
"""The null engine's hot calls: signals, queue indices and the doorbell, as C functions on plain memory.

A store to a doorbell takes every published packet before it returns: the slot is INVALID again, the completion signal
one less, the read index behind it. Packets are taken unread: nothing runs, and barriers wait for nothing. `null.py`
makes a table of these; only one thread may ring a queue's doorbell at a time.

Compiled code: numba's cache does not notice edits in other files, so this file imports nothing of ours, and offsets are
constants here (`null.py` compares them with the structures). Each access to memory has a Python twin, for tests.
"""

from __future__ import annotations

from ctypes import c_int64, c_uint32
from functools import partial
from typing import Any

from llvmlite import ir
from numba import cfunc, config, types
from numba.extending import intrinsic, overload, register_jitable

# amd_signal_t: kind, value, queue_ptr. A doorbell's kind is AMD_SIGNAL_KIND_DOORBELL.
KIND, VALUE, QUEUE_PTR = 0, 8, 48
DOORBELL = -1
# hsa_queue_t: base_address, size; behind it `null.NullQueue`'s own indices.
BASE, SIZE, WRITE, READ = 8, 24, 40, 48
# A packet: 64 bytes, its header first, its completion signal last.
PACKET_BYTES, COMPLETION, INVALID = 64, 56, 1


def load_u32(address: Any) -> Any:
    """The word at `address`, not after any later access."""
    return c_uint32.from_address(int(address)).value


def load_i64(address: Any) -> Any:
    """The eight bytes at `address`, signed, not after any later access."""
    return c_int64.from_address(int(address)).value


def store_u32(address: Any, value: Any) -> None:
    """Store a word, not before any earlier access."""
    c_uint32.from_address(int(address)).value = int(value)


def store_i64(address: Any, value: Any) -> None:
    """Store eight bytes, not before any earlier access."""
    c_int64.from_address(int(address)).value = int(value)


def add_i64(address: Any, value: Any) -> Any:
    """Add to the eight bytes at `address` in one step; what was there before."""
    before = load_i64(address)
    c_int64.from_address(int(address)).value = before + int(value)
    return before


def _loader(bits: int, result: Any) -> Any:
    def load(_typing: Any, address: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            return builder.load_atomic(pointer, "acquire", bits // 8)

        return result(types.int64), codegen

    return intrinsic(load)


def _storer(bits: int, kind: Any) -> Any:
    def store(_typing: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            builder.store_atomic(args[1], pointer, "release", bits // 8)
            return context.get_dummy_value()

        return types.void(types.int64, kind), codegen

    return intrinsic(store)


@intrinsic
def _add_i64(_typing: Any, address: Any, value: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), codegen


_load_u32, _load_i64 = _loader(32, types.uint32), _loader(64, types.int64)
_store_u32, _store_i64 = _storer(32, types.uint32), _storer(64, types.int64)


# What compiled code has in place of each twin. (Lambdas, for numba compares annotations with none.)
_compiled_as = partial(overload, inline="always")
_compiled_as(load_u32)(lambda address: lambda address: _load_u32(address))
_compiled_as(load_i64)(lambda address: lambda address: _load_i64(address))
_compiled_as(store_u32)(lambda address, value: lambda address, value: _store_u32(address, value))
_compiled_as(store_i64)(lambda address, value: lambda address, value: _store_i64(address, value))
_compiled_as(add_i64)(lambda address, value: lambda address, value: _add_i64(address, value))  # type: ignore[call-arg]


@register_jitable
def consume(queue: Any, last: Any) -> None:
    """Take the packets up to index `last`, or up to the first that is not published."""
    base, mask = load_i64(queue + BASE), load_u32(queue + SIZE) - 1
    read = load_i64(queue + READ)
    while read <= last:
        slot = base + (read & mask) * PACKET_BYTES
        if load_u32(slot) & 0xFF == INVALID:
            break
        signal = load_i64(slot + COMPLETION)
        store_u32(slot, INVALID)
        if signal != 0:
            add_i64(signal + VALUE, -1)
        read += 1
        store_i64(queue + READ, read)


def signal_load(signal: Any) -> Any:
    """hsa_signal_load_scacquire."""
    return load_i64(signal + VALUE)


def signal_store(signal: Any, value: Any) -> None:
    """hsa_signal_store_screlease; of a doorbell, its queue's packets."""
    if load_i64(signal + KIND) == DOORBELL:
        consume(load_i64(signal + QUEUE_PTR), value)
    else:
        store_i64(signal + VALUE, value)


def signal_wait(signal: Any, _condition: Any, _compare: Any, _timeout: Any, _state: Any) -> Any:
    """hsa_signal_wait_scacquire. HSA waits may end early: what is not done when the doorbell returns never will be."""
    return load_i64(signal + VALUE)


def read_index(queue: Any) -> Any:
    """hsa_queue_load_read_index_scacquire."""
    return load_i64(queue + READ)


def write_index(queue: Any) -> Any:
    """hsa_queue_load_write_index_relaxed."""
    return load_i64(queue + WRITE)


def add_write_index(queue: Any, count: Any) -> Any:
    """hsa_queue_add_write_index_scacq_screl."""
    return add_i64(queue + WRITE, count)


_i64, _u32 = types.int64, types.uint32
# Handles, pointers and indices are 64 bits each: signed here, so that no sum of two kinds becomes a float64.
_TYPES = {
    signal_load: _i64(_i64),
    signal_store: types.void(_i64, _i64),
    signal_wait: _i64(_i64, _u32, _i64, _i64, _u32),
    read_index: _i64(_i64),
    write_index: _i64(_i64),
    add_write_index: _i64(_i64, _i64),
}
#: C functions by name; none where numba is told to compile nothing (NUMBA_DISABLE_JIT=1).
COMPILED: dict[str, Any] = {
    function.__name__: cfunc(signature, cache=True, error_model="numpy")(function)
    for function, signature in _TYPES.items()
    if not config.DISABLE_JIT  # type: ignore[attr-defined]
}
