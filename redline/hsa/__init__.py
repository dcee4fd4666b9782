# SPDX-License-Identifier: Apache-2.0
"""The HSA runtime by ctypes: agents, buffers, queues, signals and loaded code, real or simulated.

::

    lib.py          find the library; one prototype table; status -> HsaError
    callbacks.py    C callbacks that cannot raise; Ctrl-C inside one
    abi.py          handles, enums and structures as the public headers state them
    runtime.py      Runtime.real(), .sim(target), .null(target): initialise, list agents
    agent.py        target name, limits, memory pools
    memory.py       Buffer: runtime copies, views of host kinds; pointer_info
    signal.py       Signal: store, load, wait with a deadline
    queue.py        Queue: a ring, its state, QueueFailed
    submission.py   Submission: packets for one or several queues, submitted again and again
    publish.py      compiled: reserve, publish, ring; the order of the stores into a ring
    rocm_version.py the ROCm that the library belongs to, and a warning where it is old
    code_object.py  LoadedCode: kernel objects by name
    null.py         Runtime.null(target): takes packets and runs nothing, for benchmarks
    null_calls.py   compiled: its signals, queue indices and doorbell

Imports nothing of graphs, plans, encoders or kernels. Public names load at first use: listing agents needs
neither numpy nor numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redline.hsa.agent import Agent
    from redline.hsa.code_object import LoadedCode
    from redline.hsa.memory import Buffer, PointerInfo, pointer_info
    from redline.hsa.queue import Queue
    from redline.hsa.rocm_version import OldRuntimeWarning
    from redline.hsa.runtime import Runtime
    from redline.hsa.signal import Signal
    from redline.hsa.submission import Submission

__all__ = [
    "Agent",
    "Buffer",
    "LoadedCode",
    "OldRuntimeWarning",
    "PointerInfo",
    "Queue",
    "Runtime",
    "Signal",
    "Submission",
    "pointer_info",
]

_HOMES = {
    "Agent": "agent",
    "Buffer": "memory",
    "LoadedCode": "code_object",
    "OldRuntimeWarning": "rocm_version",
    "PointerInfo": "memory",
    "Queue": "queue",
    "Runtime": "runtime",
    "Signal": "signal",
    "Submission": "submission",
    "pointer_info": "memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
