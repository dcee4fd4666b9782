# SPDX-License-Identifier: Apache-2.0
"""Redline: record a kernel DAG once, derive the fences it needs, replay it as one retained submission.

::

    Graph --Plan.of--> Plan --derive--> Fences --lower--> Program --instantiate--> Replay
    record             order, hazards   drains, acquires  words, relocations       patch, submit, wait
    <---------------- pure: no device needed ---------------------------------->   on "sim:gfx1201" or "hsa:0"

Names load at first use: `import redline` pulls in neither numpy nor numba nor llvmlite.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import compiled_cache
from .errors import (
    BindingError,
    CodeObjectError,
    EncodeError,
    HazardError,
    HsaError,
    KernargPoolExhausted,
    NotRecorded,
    QueueFailed,
    RecordError,
    RedlineError,
    ReplayBusy,
    ReplayTimeout,
    StalePlan,
    UnsupportedKernel,
    UnsupportedTarget,
)

if TYPE_CHECKING:
    from .audited import AccessSite, Audit, Declared, LaunchAudit, Undeclared
    from .auditing import audit
    from .device import Device, DeviceBuffer, open
    from .fences import Fence, Fences, derive
    from .foreign import verify_words
    from .forms import lower
    from .graph import Graph
    from .hazards import Hazard
    from .kernarg import (
        ArgumentWarning,
        Scalar,
        Slot,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        slot,
        u8,
        u16,
        u32,
        u64,
    )
    from .kernel import Argument, Certificate, Kernel, Module, load
    from .lane_safety import verify_program
    from .launch import Launch
    from .ordering import UnorderedPair
    from .plan import Plan
    from .program import Program
    from .ranges import Access, Buffer, View, access, read, update, write
    from .replay import Replay
    from .safety import Finding, verify

__version__ = "0.1.0"

compiled_cache.provide(__path__[0])
compiled_cache.remove_damaged(__path__[0])

_HOMES = {
    "audited": ("AccessSite", "Audit", "Declared", "LaunchAudit", "Undeclared"),
    "auditing": ("audit",),
    "ranges": ("Access", "Buffer", "View", "access", "read", "update", "write"),
    "device": ("Device", "DeviceBuffer", "open"),
    "fences": ("Fence", "Fences", "derive"),
    "foreign": ("verify_words",),
    "graph": ("Graph",),
    "lane_safety": ("verify_program",),
    "launch": ("Launch",),
    "hazards": ("Hazard",),
    "kernarg": (
        *("ArgumentWarning", "Scalar", "Slot", "slot"),
        *("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    ),
    "kernel": ("Argument", "Certificate", "Kernel", "Module", "load"),
    "ordering": ("UnorderedPair",),
    "plan": ("Plan",),
    "program": ("Program",),
    "forms": ("lower",),
    "replay": ("Replay",),
    "safety": ("Finding", "verify"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Access",
    "AccessSite",
    "Argument",
    "ArgumentWarning",
    "Audit",
    "BindingError",
    "Buffer",
    "Certificate",
    "CodeObjectError",
    "Declared",
    "Device",
    "DeviceBuffer",
    "EncodeError",
    "Fence",
    "Fences",
    "Finding",
    "Graph",
    "Hazard",
    "HazardError",
    "HsaError",
    "KernargPoolExhausted",
    "Kernel",
    "Launch",
    "LaunchAudit",
    "Module",
    "NotRecorded",
    "Plan",
    "Program",
    "QueueFailed",
    "RecordError",
    "RedlineError",
    "Replay",
    "ReplayBusy",
    "ReplayTimeout",
    "Scalar",
    "Slot",
    "StalePlan",
    "Undeclared",
    "UnorderedPair",
    "UnsupportedKernel",
    "UnsupportedTarget",
    "View",
    "access",
    "audit",
    "derive",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "load",
    "lower",
    "open",
    "read",
    "slot",
    "u8",
    "u16",
    "u32",
    "u64",
    "update",
    "verify",
    "verify_program",
    "verify_words",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
