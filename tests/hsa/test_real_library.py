# SPDX-License-Identifier: Apache-2.0
"""Our tables against Debian's own HSA headers and library: a C compiler compares every size, offset, number and type.

Needs a C compiler and the packages libhsa-runtime64-1 and libhsa-runtime-dev, which CI installs (marker `hsalib`).
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any

import pytest

from redline.hsa import abi
from redline.hsa.lib import file_of, load_real_table, search_library
from redline.hsa.prototypes import CTYPES, PROTOTYPES

pytestmark = pytest.mark.hsalib

#: What Debian's 5.2.3 headers do not have, and where it stands.
NEWER = {
    "HSA_AMD_MEMORY_POOL_STANDARD_FLAG": "rocm-systems hsa_ext_amd.h, hsa_amd_memory_pool_flag_t",
    "HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG": "rocm-systems hsa_ext_amd.h, hsa_amd_memory_pool_flag_t",
    "HSA_AMD_MEMORY_POOL_UNCACHED_FLAG": "rocm-systems hsa_ext_amd.h, hsa_amd_memory_pool_flag_t",
    "HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED": "rocm-systems hsa_ext_amd.h",
    "HSA_STATUS_ERROR_NOT_SUPPORTED": "rocm-systems hsa_ext_amd.h",
    "HSA_STATUS_ERROR_OUT_OF_REGISTERS": "rocm-systems hsa_ext_amd.h",
    "HSA_STATUS_ERROR_RESOURCE_BUSY": "rocm-systems hsa_ext_amd.h",
    "HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY": "rocm-systems hsa_ext_amd.h, hsa_amd_agent_info_t",
    # A member of a structure whose first member says how much of it both sides know.
    "hsa_amd_pointer_info_t.registered": "rocm-systems hsa_ext_amd.h",
}
#: Structures of aqlprofile's amd_aql_pm4_ib_packet.h, which no HSA header declares.
ELSEWHERE = ("amd_aql_pm4_ib_packet_t",)


#: Callbacks of ours by their name in `abi.py`, as the headers declare them.
CALLBACKS = {
    "AGENT_CALLBACK": "hsa_status_t (*)(hsa_agent_t, void*)",
    "POOL_CALLBACK": "hsa_status_t (*)(hsa_amd_memory_pool_t, void*)",
    "QUEUE_ERROR_CALLBACK": "void (*)(hsa_status_t, hsa_queue_t*, void*)",
    "SYSTEM_EVENT_CALLBACK": "hsa_status_t (*)(const hsa_amd_event_t*, void*)",
}
_EVENT = CALLBACKS["SYSTEM_EVENT_CALLBACK"]


def _enumerators() -> Iterator[tuple[str, int]]:
    for _, kind in inspect.getmembers(abi, inspect.isclass):
        if issubclass(kind, IntEnum | IntFlag) and kind.__module__ == abi.__name__:
            yield from ((name, int(member)) for name, member in kind.__members__.items())
    for name, value in vars(abi).items():
        if name.startswith(("HSA_", "AMD_SIGNAL_KIND")) and isinstance(value, int):
            yield name, value


def _structures() -> Iterator[Any]:
    for name, kind in inspect.getmembers(abi, inspect.isclass):
        if issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure and name not in ELSEWHERE:
            yield kind


def _members(kind: Any) -> list[str]:
    return [name for name, *_ in kind._fields_ if f"{kind.__name__}.{name}" not in NEWER]


def _by_value() -> list[str]:
    return [name for name, kind in CTYPES.items() if kind is not None]


def _probe() -> str:
    """A program that prints what the compiler knows, and does not compile where a type differs."""
    lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <hsa/hsa.h>", "#include <hsa/hsa_ext_amd.h>"]
    lines += ["#include <hsa/amd_hsa_signal.h>", "int main(void) {"]
    for name, row in PROTOTYPES.items():
        types = ", ".join(row.arguments) or "void"
        wanted = f"{row.result} ({types})"
        lines.append(f'_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {wanted}), "{name}");')
    lines.append(f'_Static_assert(__builtin_types_compatible_p(hsa_amd_system_event_callback_t, {_EVENT}), "event");')
    for name, _ in _enumerators():
        if name not in NEWER:
            lines.append(f'printf("{name} %lld\\n", (long long){name});')
    for number, name in enumerate(_by_value()):
        lines.append(f'printf("passed{number} %zu\\n", sizeof({name}));')
    for kind in _structures():
        name = kind.__name__
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for member in _members(kind):
            lines.append(f'printf("{name}.{member} %zu\\n", offsetof({name}, {member}));')
    return "\n".join([*lines, "return 0;", "}"])


@pytest.fixture(scope="module", name="numbers")
def _numbers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """What the compiled probe prints."""
    compiler = shutil.which("cc") or shutil.which("clang-22") or shutil.which("clang-19")
    assert compiler, "a C compiler"
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text(_probe())
    command = [compiler, "-std=gnu11", "-Werror", "-o", str(folder / "probe"), str(folder / "probe.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = subprocess.run([str(folder / "probe")], capture_output=True, text=True, check=True).stdout
    return {name: int(value) for name, value in (line.split() for line in printed.splitlines())}


def test_every_enumerator_is_the_headers(numbers: dict[str, int]) -> None:
    """All of them, but for those that these headers do not know, which are named with their source."""
    listed = dict(_enumerators())
    assert {name for name in NEWER if "." not in name} <= set(listed)
    assert {name: value for name, value in listed.items() if name not in NEWER} == {
        name: numbers[name] for name in listed if name not in NEWER
    }


def test_every_size_and_offset_is_the_compilers(numbers: dict[str, int]) -> None:
    """The event has a union that other events make larger; what we read of it stands where we read it."""
    for kind in _structures():
        name = kind.__name__
        assert [getattr(kind, m).offset for m in _members(kind)] == [numbers[f"{name}.{m}"] for m in _members(kind)]
        assert ctypes.sizeof(kind) == numbers[name], name


def test_every_type_passed_by_value_is_as_large_as_the_compilers(numbers: dict[str, int]) -> None:
    """The words of the prototypes are C's; what ctypes passes for each has its size."""
    sizes = [ctypes.sizeof(CTYPES[name]) for name in _by_value()]
    assert sizes == [numbers[f"passed{number}"] for number in range(len(sizes))]


def _of_ctypes(c_type: str) -> Any:
    return ctypes.c_void_p if c_type.endswith("*") else CTYPES[c_type]


def test_callbacks_are_the_headers(numbers: dict[str, int]) -> None:
    """The texts are those that the probe compared, as arguments of calls or by the typedef; ours say the same."""
    assert numbers
    compared = {argument for row in PROTOTYPES.values() for argument in row.arguments} | {_EVENT}
    names = {name for name in vars(abi) if name.endswith("_CALLBACK")}
    assert names == set(CALLBACKS)
    for name, text in CALLBACKS.items():
        assert text in compared
        result, arguments = text.split(" (*)(")
        kind = getattr(abi, name)
        assert kind._restype_ is _of_ctypes(result)
        assert list(kind._argtypes_) == [_of_ctypes(argument) for argument in arguments.rstrip(")").split(", ")]


def test_the_probe_can_fail(tmp_path: Path) -> None:
    """A wrong argument type does not compile."""
    compiler = shutil.which("cc") or shutil.which("clang-22") or shutil.which("clang-19")
    assert compiler
    wrong = _probe().replace("hsa_status_t (hsa_agent_t, uint32_t,", "hsa_status_t (hsa_agent_t, uint64_t,")
    assert wrong != _probe()
    (tmp_path / "probe.c").write_text(wrong)
    command = [compiler, "-std=gnu11", "-Werror", "-o", str(tmp_path / "probe"), str(tmp_path / "probe.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "hsa_queue_create" in done.stderr


def test_every_call_resolves_in_the_real_library() -> None:
    """By the loader's own search, as a user without ROCm's folders has it."""
    table = load_real_table()
    assert set(table.addresses) == set(PROTOTYPES)
    assert all(table.addresses.values())


def test_the_file_of_a_library_found_by_name_is_known() -> None:
    """Its ROCm version is looked for beside it."""
    library, _ = search_library()
    assert library is not None
    assert Path(file_of(library)).name.startswith("libhsa-runtime64.so.1")
    assert file_of(ctypes.CDLL(None)) == ""


def test_without_a_gpu_hsa_init_says_so_and_doctor_explains_it(tmp_path: Path) -> None:
    """0x1008 where there is no /dev/kfd; nothing else of the library is called. The version is the library's own, and
    not that of the folder in which the command runs."""
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info" / "version").write_text("5.0.0\n")
    here = tmp_path / "here"
    here.mkdir()
    assert not os.path.exists("/dev/kfd"), "this test is for machines without a GPU"
    environment = {name: value for name, value in os.environ.items() if name != "REDLINE_LIBHSA"}
    command = [sys.executable, "-m", "redline", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=here)
    gpu = json.loads(done.stdout)["gpu"]
    assert gpu["library"].endswith("libhsa-runtime64.so.1")
    assert gpu["rocm"].startswith("unknown")
    assert gpu["agents"] == []
    assert "RL0903 hsa_init: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008): no /dev/kfd" in gpu["off"]
