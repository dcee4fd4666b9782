# SPDX-License-Identifier: Apache-2.0
"""`redline doctor`: what is installed, what was found and where it was looked for, and why GPU paths are off.

Collects facts and never fails because of what it finds. Printing is `cli.py`'s.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import radiowave

from . import __version__
from .encoders import FAMILIES
from .errors import HsaError
from .sim import arena

PACKAGES = ("numba", "numpy", "llvmlite", "pyelftools", "msgpack", "rich", "rocm-llvm-python")


def report() -> dict[str, Any]:
    """Everything a bug report needs, as plain data with a `schema` version."""
    return {
        "schema": 2,
        "redline": __version__,
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "targets": {table.name: list(table.targets) for table in FAMILIES},
        "tools": [asdict(tool) for tool in radiowave.find_tools()],
        "software_device": _software_device(),
        "gpu": _gpu(),
    }


def shortened(report: dict[str, Any]) -> dict[str, Any]:
    """For people: where something was looked for matters only when it was not found."""
    tools = [_without(tool, "looked" if tool["found"] else "found") for tool in report["tools"]]
    gpu = _without(report["gpu"], "looked" if report["gpu"]["library"] else "library")
    return {**report, "tools": tools, "gpu": gpu}


def _without(facts: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if name != key}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _software_device() -> dict[str, Any]:
    """How much memory a new one has, and why it is less than usual."""
    limit = arena.address_space_limit()
    return {
        "memory_bytes": arena.arena_bytes(),
        "address_space": "unlimited" if limit is None else f"limited to {limit} bytes (ulimit -v)",
    }


def _gpu() -> dict[str, Any]:
    """The GPU agents, or why there are none."""
    from .hsa import Runtime
    from .hsa.lib import file_of, search_library

    library, attempts = search_library()
    facts: dict[str, Any] = {
        "library": None if library is None else attempts[-1].place,
        "looked": [f"{attempt.place}: {attempt.outcome}" for attempt in attempts],
        "rocm": "" if library is None else rocm_version(file_of(library)),
    }
    try:
        with Runtime.real() as runtime:
            agents = [
                {
                    "target": agent.target,
                    "name": agent.name,
                    "pci_id": agent.pci_id,
                    "compute_units": agent.compute_units,
                }
                for agent in runtime.agents()
            ]
    except HsaError as error:
        return {**facts, "agents": [], "off": str(error)}
    return {**facts, "agents": agents, "off": "" if agents else "the HSA runtime shows no GPU agent"}


def rocm_version(library: str) -> str:
    """The version of the ROCm installation that a library file belongs to, with a warning where it is old."""
    from .hsa.rocm_version import installed_version, what_is_old

    version = installed_version(library)
    old = what_is_old(version)
    return f"{version} ({old})" if old else version or "unknown: no .info/version beside the library"
