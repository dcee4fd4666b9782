# SPDX-License-Identifier: Apache-2.0
"""Damaged AQL packets and rings: a queue does what it can or stops with a status, and the device stays usable.

Through the whole software device, with its threads, signals and error callbacks, and a back end that runs no kernel.
Behind each damaged batch another queue must still work, and everything must close in time.
"""

from __future__ import annotations

import ctypes
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redline.errors import QueueFailed, RedlineError
from redline.hsa import Agent, Buffer, Queue, Runtime, Signal
from redline.hsa.abi import hsa_queue_t
from redline.hsa.publish import publish
from redline.sim.runtime import SimRuntime
from redline_fuzz import bounded
from redline_fuzz.no_kernels import NoKernels
from redline_fuzz.oracles import FIVE

_RING_SLOTS = 64
_SECONDS = 5.0
_PATIENCE_S = 0.005
_NOP_STREAM = (0xFFFF1000,)

Words = NDArray[np.uint32]


def judge(seed: int, index: int) -> tuple[str, str]:
    """One damaged batch on a queue of its own; then a whole one on another queue."""
    random = Random(f"{seed} rings {index}")
    sim = SimRuntime(random.choice(FIVE), NoKernels(), patience_s=_PATIENCE_S)
    with Runtime.of_table(sim.table) as runtime:
        agent = runtime.agents()[0]
        with agent.allocate(4096, "kernarg", executable=True) as memory, agent.signal(0) as signal:
            memory.view(np.uint32)[:1] = _NOP_STREAM
            answer = _damaged(random, agent, memory, signal)
            wrong = _whole(agent, memory)
    if sim.errors:
        wrong = wrong or f"a callback of the device raised {sim.errors[0]!r}"
    return answer, wrong


def _damaged(random: Random, agent: Agent, memory: Buffer, signal: Signal) -> str:
    """Publish damaged packets behind some whole ones, so that they also wrap around; "ran", "failed" or "waiting"."""
    with agent.queue(_RING_SLOTS) as queue:
        for _ in range(random.randrange(3)):
            _batch(queue, [_vendor(memory, 0)] * random.randrange(1, _RING_SLOTS))
        signal.store(1)
        packets = [_mutated(random, _packet(random, memory, signal)) for _ in range(random.randrange(1, 6))]
        try:
            if random.random() < 0.2:
                return _half_written(random, queue, packets)
            _batch(queue, [*packets, _vendor(memory, signal.handle)])
            signal.wait_below(1, 0.05, poll=queue.check)
        except QueueFailed:
            return "failed"
        except RedlineError as error:
            return error.code
        return "ran"


def _half_written(random: Random, queue: Queue, packets: list[Words]) -> str:
    """A doorbell for packets that are not there: too far, backwards, or before the header."""
    rung = random.choice((0, 1, 5, 2**31, 2**62, len(packets)))
    queue.runtime.hsa.call("hsa_signal_store_screlease", queue.doorbell, rung)
    if random.random() < 0.5:
        publish(_ring(queue), np.uint64(random.randrange(_RING_SLOTS)), np.vstack(packets))
        queue.runtime.hsa.call("hsa_signal_store_screlease", queue.doorbell, random.randrange(_RING_SLOTS))
    return "rung"


def _ring(queue: Queue) -> Words:
    """The ring where the queue's public struct says that it is: what any process with the queue may write."""
    public = hsa_queue_t.from_address(queue.address)
    slots = (ctypes.c_uint32 * 16 * int(public.size)).from_address(int(public.base_address))
    return np.ctypeslib.as_array(slots).reshape(-1)


def _batch(queue: Queue, packets: list[Words]) -> None:
    queue.submit(np.vstack(packets))


def _whole(agent: Agent, memory: Buffer) -> str:
    """Whether another queue of the same device still works."""
    with agent.queue(_RING_SLOTS) as queue, agent.signal(1) as signal:
        queue.submit(_vendor(memory, signal.handle)[None, :])
        signal.wait_below(1, _SECONDS, poll=queue.check)
    return ""


def _vendor(memory: Buffer, signal: int) -> Words:
    """A PM4 indirect buffer of one NOP."""
    va = memory.address
    words = [0x00011500, 0xC0023F00, va & 0xFFFFFFFF, va >> 32, 0x00800001, 0xA, *[0] * 8]
    return np.array([*words, signal & 0xFFFFFFFF, signal >> 32], np.uint32)


def _packet(random: Random, memory: Buffer, signal: Signal) -> Words:
    """A vendor packet, a dispatch of nothing sensible, a barrier, or noise."""
    kind = random.randrange(4)
    if kind == 0:
        return _vendor(memory, random.choice((0, signal.handle)))
    if kind == 1:
        va = memory.address
        low, high = va & 0xFFFFFFFF, va >> 32
        words = [0x00011502, 64 | 1 << 16, 1, 64, 1, 1, 0, 0, low, high, low, high, 0, 0, 0, 0]
        return np.array(words, np.uint32)
    if kind == 2:
        handles = [random.choice((0, signal.handle, random.getrandbits(48))) for _ in range(5)]
        halves = [half for handle in handles for half in (handle & 0xFFFFFFFF, handle >> 32)]
        return np.array([random.choice((0x1503, 0x1505)), 0, *halves, 0, 0, 0, 0], np.uint32)
    return np.array([random.getrandbits(32) for _ in range(16)], np.uint32)


def _mutated(random: Random, words: Words) -> Words:
    """None to three bits flipped or words replaced."""
    changed = words.copy()
    for _ in range(random.randrange(4)):
        at = random.randrange(16)
        flip = np.uint32(1 << random.randrange(32))
        changed[at] = changed[at] ^ flip if random.random() < 0.7 else np.uint32(random.getrandbits(32))
    return changed


def run(count: int, seed: int = 1) -> dict[str, Any]:
    """`count` damaged batches."""
    return bounded.run(judge, count, seed)
