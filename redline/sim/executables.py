# SPDX-License-Identifier: Apache-2.0
"""Code object readers, executables and symbols: the loading calls of the software device's table.

Handles are small numbers that this file alone gives out. The loading itself is `loader.py`.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable
from ctypes import c_uint64
from dataclasses import dataclass, field
from typing import Any

from redline.hsa.abi import HSA_SYMBOL_KIND_KERNEL, HSA_SYMBOL_KIND_VARIABLE, Status, SymbolInfo
from redline.sim.agents import GPU_AGENT
from redline.sim.errors import Refusal
from redline.sim.families import Target
from redline.sim.loader import LoadedImage, LoaderError, Symbol, load_image
from redline.sim.memory import Memory

_KERNEL_OBJECT = SymbolInfo.HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT
_VARIABLE = SymbolInfo.HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS
_TYPE = SymbolInfo.HSA_EXECUTABLE_SYMBOL_INFO_TYPE


@dataclass
class _Executable:
    images: list[LoadedImage] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)  # handles given out
    frozen: bool = False


class Executables:
    """The table's loading calls, by name in `calls`."""

    def __init__(self, memory: Memory, target: Target) -> None:
        self._memory, self._target = memory, target
        self._numbers = itertools.count(1)
        self._readers: dict[int, bytes] = {}
        self._executables: dict[int, _Executable] = {}
        self._symbols: dict[int, Symbol] = {}

    def calls(self) -> dict[str, Callable[..., Any]]:
        return {
            "hsa_code_object_reader_create_from_memory": self._create_reader,
            "hsa_code_object_reader_destroy": self._destroy_reader,
            "hsa_executable_create_alt": self._create,
            "hsa_executable_destroy": self._destroy,
            "hsa_executable_load_agent_code_object": self._load,
            "hsa_executable_freeze": self._freeze,
            "hsa_executable_get_symbol_by_name": self._symbol,
            "hsa_executable_symbol_get_info": self._symbol_info,
        }

    def _create_reader(self, code: int | None, nbytes: int, out: int | None) -> None:
        if not code or not nbytes or not out:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer or a size of 0")
        handle = next(self._numbers)
        self._readers[handle] = ctypes.string_at(code, nbytes)
        c_uint64.from_address(out).value = handle

    def _destroy_reader(self, reader: int) -> None:
        if self._readers.pop(reader, None) is None:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, f"reader {reader}")

    def _create(self, _profile: int, _rounding: int, _options: bytes | None, out: int | None) -> None:
        if not out:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer")
        handle = next(self._numbers)
        self._executables[handle] = _Executable()
        c_uint64.from_address(out).value = handle

    def _destroy(self, executable: int) -> None:
        gone = self._executable(executable)
        del self._executables[executable]
        for handle in gone.symbols.values():
            del self._symbols[handle]
        for image in gone.images:
            self._memory.free(image.address)

    def _load(self, executable: int, agent: int, reader: int, _options: bytes | None, out: int | None) -> None:
        holder = self._executable(executable)
        if agent != GPU_AGENT:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_AGENT, f"agent {agent:#x} runs no code objects")
        if reader not in self._readers:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, f"reader {reader}")
        if holder.frozen:
            raise Refusal(Status.HSA_STATUS_ERROR_FROZEN_EXECUTABLE, f"executable {executable}")
        holder.images.append(self._image(self._readers[reader]))
        if out:
            c_uint64.from_address(out).value = next(self._numbers)

    def _image(self, code: bytes) -> LoadedImage:
        try:
            return load_image(code, self._target, self._memory)
        except LoaderError as error:
            status = (
                Status.HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS
                if error.incompatible
                else Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT
            )
            raise Refusal(status, str(error)) from error
        except MemoryError as error:
            raise Refusal(Status.HSA_STATUS_ERROR_OUT_OF_RESOURCES, str(error)) from error

    def _freeze(self, executable: int, _options: bytes | None) -> None:
        holder = self._executable(executable)
        if holder.frozen:
            raise Refusal(Status.HSA_STATUS_ERROR_FROZEN_EXECUTABLE, f"executable {executable}")
        holder.frozen = True

    def _symbol(self, executable: int, name: bytes | None, agent: int | None, out: int | None) -> None:
        holder = self._executable(executable)
        if name is None or not agent or not out:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer")
        text = name.decode("utf-8", "replace")
        found = [image.symbols[text] for image in holder.images if text in image.symbols]
        if not found or c_uint64.from_address(agent).value != GPU_AGENT:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, f"no symbol {text!r} on this agent")
        if text not in holder.symbols:
            holder.symbols[text] = next(self._numbers)
            self._symbols[holder.symbols[text]] = found[0]
        c_uint64.from_address(out).value = holder.symbols[text]

    def _symbol_info(self, handle: int, key: int, out: int | None) -> None:
        symbol = self._symbols.get(handle)
        if symbol is None:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL, f"symbol {handle}")
        if not out:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, "a null pointer")
        kind = HSA_SYMBOL_KIND_KERNEL if symbol.is_kernel else HSA_SYMBOL_KIND_VARIABLE
        answers = {_TYPE: struct.pack("<I", kind)}
        answers[_KERNEL_OBJECT if symbol.is_kernel else _VARIABLE] = struct.pack("<Q", symbol.address)
        if key not in answers:
            text = f"attribute {key} of {symbol.name!r} is not covered"
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_ARGUMENT, text)
        ctypes.memmove(out, answers[SymbolInfo(key)], len(answers[SymbolInfo(key)]))

    def _executable(self, handle: int) -> _Executable:
        if handle not in self._executables:
            raise Refusal(Status.HSA_STATUS_ERROR_INVALID_EXECUTABLE, f"executable {handle}")
        return self._executables[handle]
