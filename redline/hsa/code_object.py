# SPDX-License-Identifier: Apache-2.0
"""A code object loaded into an agent: kernel objects by name.

The runtime's loader does the loading. Nothing is read from the kernel descriptors here: what a kernel needs
was read from the ELF by `radiowave`, and the 64 bytes at a kernel object are never read through the host. Source of
calls and symbol queries: ROCR-Runtime's hsa.h.
"""

from __future__ import annotations

from ctypes import Array, byref, c_char, c_uint64, create_string_buffer
from typing import TYPE_CHECKING

from redline.errors import CodeObjectError, HsaError
from redline.hsa.abi import (
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
    HSA_PROFILE_FULL,
    Status,
    SymbolInfo,
    hsa_agent_t,
    hsa_code_object_reader_t,
    hsa_executable_symbol_t,
    hsa_executable_t,
    status_text,
)
from redline.hsa.handle import Handle, Rank

if TYPE_CHECKING:
    from redline.hsa.agent import Agent

DESCRIPTOR_SUFFIX = ".kd"

# What the runtime says when the bytes, not the call, are at fault.
_BAD_BYTES = frozenset(
    {
        Status.HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
        Status.HSA_STATUS_ERROR_INVALID_ISA,
        Status.HSA_STATUS_ERROR_INVALID_ISA_NAME,
        Status.HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS,
        Status.HSA_STATUS_ERROR_INVALID_FILE,
    }
)


class LoadedCode(Handle):
    """One frozen executable with one code object in it.

    Raises CodeObjectError for bytes that the runtime's loader cannot use on the agent, HsaError for another failure.
    """

    def __init__(self, agent: Agent, code: bytes) -> None:
        super().__init__(agent.runtime)
        self.agent = agent
        self._executable = hsa_executable_t()
        held = create_string_buffer(code, len(code))  # the reader points into it
        try:
            reader = self._make_reader(held)
            self._load(reader)
        except BaseException:
            self.abandon()
            raise

    def kernel_object(self, name: str) -> int:
        """Device address of the descriptor of kernel `name` (a name that ends in .kd is the symbol's own).

        Raises HsaError for a name that the code object does not have, when the runtime refuses and when it is closed.
        """
        symbol_name = name if name.endswith(DESCRIPTOR_SUFFIX) else name + DESCRIPTOR_SUFFIX
        return self._symbol_u64(symbol_name, SymbolInfo.HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT)

    def variable_address(self, name: str) -> int:
        """Device address of a module's variable. Raises HsaError for a name that the code object does not have."""
        return self._symbol_u64(name, SymbolInfo.HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS)

    def _make_reader(self, held: Array[c_char]) -> int:
        """The reader, which goes with the executable: both are this handle's."""
        hsa, reader = self.runtime.hsa, hsa_code_object_reader_t()
        hsa.check("hsa_code_object_reader_create_from_memory", held, len(held), byref(reader))
        self._own(Rank.CODE, "hsa_code_object_reader_destroy", reader.value, keep=held)
        return reader.value

    def _load(self, reader: int) -> None:
        hsa, agent = self.runtime.hsa, self.agent.handle
        profile, rounding = HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT
        hsa.check("hsa_executable_create_alt", profile, rounding, None, byref(self._executable))
        self._own(Rank.CODE, "hsa_executable_destroy", self._executable.value)
        load = "hsa_executable_load_agent_code_object"
        status = hsa.call(load, self._executable, agent, reader, None, None)
        if status in _BAD_BYTES:
            raise self._unusable(load, status)
        if status != Status.HSA_STATUS_SUCCESS:
            raise hsa.refused(load, status)
        hsa.check("hsa_executable_freeze", self._executable, None)

    def _symbol_u64(self, name: str, key: SymbolInfo) -> int:
        self.runtime.require_open()
        hsa = self.runtime.hsa
        agent, symbol, value = hsa_agent_t(self.agent.handle), hsa_executable_symbol_t(), c_uint64()
        find = "hsa_executable_get_symbol_by_name"
        status = hsa.call(find, self._executable, name.encode(), byref(agent), byref(symbol))
        if status == Status.HSA_STATUS_ERROR_INVALID_SYMBOL_NAME:
            raise HsaError(
                "RL0909",
                where=f"symbol {name!r} on {self.agent.target}",
                seen=status_text(status),
                allowed="a symbol of the loaded code object",
                do="list the kernels with `radiowave inspect`; never strip the symbol table",
            )
        if status != Status.HSA_STATUS_SUCCESS:
            raise hsa.refused(find, status)
        hsa.check("hsa_executable_symbol_get_info", symbol, key, byref(value))
        return value.value

    def _unusable(self, call: str, status: int) -> CodeObjectError:
        fault = self.runtime.fault_text()
        return CodeObjectError(
            "RL0610",
            where=f"{call} on {self.agent.target}",
            seen=f"{status_text(status)}{f': {fault}' if fault else ''}",
            allowed=f"a linked AMDGPU code object for {self.agent.target}",
            do=f"compile for {self.agent.target}, keep .symtab, and load the whole file",
        )
