# SPDX-License-Identifier: Apache-2.0
"""Find and load an HSA runtime, and call it by one prototype table.

A runtime is a table of names and integer addresses (`RuntimeTable`). The real one is read from
libhsa-runtime64.so.1, the software device's is made of Python callbacks (`redline/sim/runtime.py`), the null engine's
of compiled functions (`null.py`); from there on `Hsa` makes ctypes functions of the addresses in the same way for all,
and compiled code may use the same addresses. Knows nothing of agents, queues or buffers, and initialises nothing:
`runtime.py` does.

To add an HSA call: see `prototypes.py`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from ctypes import c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from radiowave import rocm
from redline.errors import HsaError
from redline.hsa.abi import Status, status_text
from redline.hsa.callbacks import guarded, interrupts
from redline.hsa.causes import cause
from redline.hsa.prototypes import PROTOTYPES

LIBRARY_NAME = "libhsa-runtime64.so.1"
#: Names the library file to use and no other.
VARIABLE = "REDLINE_LIBHSA"


@dataclass(frozen=True)
class RuntimeTable:
    """Names and addresses of one HSA runtime. `keep` holds what the addresses point into."""

    kind: str  # "real", "sim", "null", or what a test calls its own
    addresses: Mapping[str, int]
    keep: object = None
    fault_text: Callable[[], str] = field(default=lambda: "")
    approximate: Callable[[], tuple[str, ...]] = field(default=lambda: ())
    device: object = None  # what is behind a software device's table, for tests


class Hsa:
    """ctypes functions made from a table's addresses."""

    def __init__(self, table: RuntimeTable) -> None:
        self.table = table
        self._functions = {
            name: ctypes.CFUNCTYPE(*PROTOTYPES[name].ctypes)(address) for name, address in table.addresses.items()
        }

    def call(self, name: str, *args: Any) -> Any:
        """The function's own result, unchecked."""
        result = self._functions[name](*args)
        if interrupts:
            raise interrupts.pop()
        return result

    def check(self, name: str, *args: Any) -> None:
        """Call a function that returns a status; anything but success is an `HsaError`."""
        status = self.call(name, *args)
        if status != Status.HSA_STATUS_SUCCESS:
            raise self.refused(name, status)

    def visited(self, name: str, prototype: Any, *args: Any) -> list[int]:
        """The handles that a call of the hsa_iterate kind visits, in its order."""
        found: list[int] = []
        errors: list[BaseException] = []

        def visit(handle: int, _data: object) -> int:
            found.append(int(handle))
            return Status.HSA_STATUS_SUCCESS

        status = self.call(name, *args, guarded(prototype, visit, errors.append), None)
        if errors and not isinstance(errors[0], Exception):
            raise errors[0]  # Ctrl-C inside a callback
        if errors or status != Status.HSA_STATUS_SUCCESS:
            raise self.refused(name, status) from (errors[0] if errors else None)
        return found

    def refused(self, name: str, status: int) -> HsaError:
        """The error for a call that returned `status`."""
        if name == "hsa_init" and status == Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES:
            return _no_device(status)
        fault = self.table.fault_text()
        return HsaError(
            "RL0902",
            where=name,
            seen=f"{status_text(status)}{f' ({fault})' if fault else ''}",
            allowed="HSA_STATUS_SUCCESS (0x0)",
            do=cause(name, status),
        )


# What a function of ours returns when it fails: a bad status, a value no wait is satisfied by, an index 0.
_ON_ERROR: dict[Any, int] = {
    c_uint32: Status.HSA_STATUS_ERROR,
    c_int64: (1 << 63) - 1,
    c_uint64: 0,
    None: 0,
}


def callback_table(
    kind: str,
    functions: Mapping[str, Callable[..., Any]],
    *,
    remember: Callable[[BaseException], None],
    fault_text: Callable[[], str] = lambda: "",
    approximate: Callable[[], tuple[str, ...]] = lambda: (),
    device: object = None,
) -> RuntimeTable:
    """A table of Python functions behind C addresses, each through `guarded`."""
    callbacks = [
        guarded(ctypes.CFUNCTYPE(*PROTOTYPES[name].ctypes), function, remember, _ON_ERROR[PROTOTYPES[name].ctypes[0]])
        for name, function in functions.items()
    ]
    addresses = {name: _address(callback) for name, callback in zip(functions, callbacks, strict=True)}
    return RuntimeTable(kind, addresses, callbacks, fault_text, approximate, device)


def _address(function: Any) -> int:
    address = ctypes.cast(function, c_void_p).value
    if address is None:
        do = "update ROCm; a runtime table without this function is of another version"
        raise HsaError("RL0904", where="HSA table", seen="a null address", allowed="a function", do=do)
    return address


@dataclass(frozen=True)
class Attempt:
    """One place where the library was looked for, and what came of it."""

    place: str
    outcome: str  # "loaded", "not there", or the loader's own words


def search_library() -> tuple[ctypes.CDLL | None, list[Attempt]]:
    """Try each place in order until one loads. The list ends with the one that did."""
    attempts: list[Attempt] = []
    for place in _places():
        if os.sep in place and not Path(place).exists():
            attempts.append(Attempt(place, "not there"))
            continue
        try:
            library = ctypes.CDLL(place)
        except OSError as error:
            attempts.append(Attempt(place, str(error).removeprefix(f"{place}: ")))
            continue
        attempts.append(Attempt(place, "loaded"))
        return library, attempts
    return None, attempts


def _places() -> list[str]:
    """What REDLINE_LIBHSA names, alone; else in ROCm's folders, then on the loader's own path."""
    if os.environ.get(VARIABLE):
        return [os.environ[VARIABLE]]
    return [*rocm.places(f"lib/{LIBRARY_NAME}"), LIBRARY_NAME]


def load_real_table() -> RuntimeTable:
    """The table of the machine's own HSA runtime. Loads it, initialises nothing."""
    library, attempts = search_library()
    if library is None:
        raise HsaError(
            "RL0901",
            where=LIBRARY_NAME,
            seen="; ".join(f"{attempt.place}: {attempt.outcome}" for attempt in attempts),
            allowed="one that loads",
            do="install ROCm's HSA runtime (package hsa-rocr, rocr-runtime or libhsa-runtime64-1), "
            f'set ROCM_PATH, or {VARIABLE} to the file; or use a software device: redline.open("sim:gfx1201")',
        )
    return RuntimeTable("real", {name: _symbol(library, name) for name in PROTOTYPES}, library)


def _symbol(library: ctypes.CDLL, name: str) -> int:
    try:
        return _address(getattr(library, name))
    except AttributeError:
        raise HsaError(
            "RL0904",
            where=str(library._name),
            seen=f"no symbol {name}",
            allowed="a runtime with the core and AMD extension calls of ROCm 5.2 or later",
            do="update ROCm, or set ROCM_PATH to a newer one",
        ) from None


def file_of(library: ctypes.CDLL) -> str:
    """The file that a library was loaded from; empty when it cannot be told.

    One that the loader found by its name alone is known by where its code is mapped.
    """
    address = _address(library.hsa_init) if hasattr(library, "hsa_init") else 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *_, file = line.split(maxsplit=5)
        first, last = (int(bound, 16) for bound in span.split("-"))
        if first <= address < last and file.startswith(os.sep):
            return file
    return ""


def _no_device(status: int) -> HsaError:
    """0x1008 from hsa_init means that the kernel driver cannot be reached; say why in words."""
    node = Path("/dev/kfd")
    if not node.exists():
        why = "no /dev/kfd: the amdgpu driver is not loaded, or the container was started without the device"
        remedy = "load amdgpu, or start the container with --device /dev/kfd --device /dev/dri"
    elif not os.access(node, os.R_OK | os.W_OK):
        why = "/dev/kfd may not be opened by this user"
        remedy = "join the group that owns /dev/kfd (render or video)"
    else:
        why = "/dev/kfd is there, but the runtime found no usable device"
        remedy = "look into dmesg and at ROCR_VISIBLE_DEVICES"
    return HsaError(
        "RL0903",
        where="hsa_init",
        seen=f"{status_text(status)}: {why}",
        allowed="HSA_STATUS_SUCCESS (0x0)",
        do=f'{remedy}; or use a software device: redline.open("sim:gfx1201")',
    )
