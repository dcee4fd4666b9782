# SPDX-License-Identifier: Apache-2.0
"""The assembler process of the tests: AMDGPU assembly in, relocatable objects out, by the LLVM that disassembles.

LLVM's C interface has no assembler, but code generation of an empty module assembles the module's inline assembly.
Runs alone in a process because LLVM ends it at the first error in the text. `assemble.py` starts it.
"""

from __future__ import annotations

import ctypes
import sys

from radiowave.child import pack_message, private_stdout, read_message
from radiowave.find_llvm import places

TRIPLE = b"amdgcn-amd-amdhsa"
OBJECT_FILE = 1  # LLVMObjectFile
DEFAULT_LEVEL, PIC, DEFAULT_MODEL = 2, 2, 0  # LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault
_INITIALISERS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")
_POINTERS = (
    "LLVMModuleCreateWithName",
    "LLVMCreateTargetMachine",
    "LLVMGetBufferStart",
)


class Assembler:
    """One loaded LLVM."""

    def __init__(self, path: str) -> None:
        self.llvm = ctypes.CDLL(path)
        for name in _INITIALISERS:
            getattr(self.llvm, f"LLVMInitializeAMDGPU{name}")()
        for name in _POINTERS:
            getattr(self.llvm, name).restype = ctypes.c_void_p
        self.llvm.LLVMGetBufferSize.restype = ctypes.c_size_t

    def assemble(self, text: str, target: str, wave: int) -> bytes:
        """The relocatable object of one text."""
        raw, module = text.encode(), ctypes.c_void_p(self.llvm.LLVMModuleCreateWithName(b"text"))
        self.llvm.LLVMSetTarget(module, TRIPLE)
        self.llvm.LLVMSetModuleInlineAsm2(module, raw, ctypes.c_size_t(len(raw)))
        buffer, message = ctypes.c_void_p(), ctypes.c_char_p()
        failed = self.llvm.LLVMTargetMachineEmitToMemoryBuffer(
            self._machine(target, wave), module, OBJECT_FILE, ctypes.byref(message), ctypes.byref(buffer)
        )
        if failed:
            raise ValueError((message.value or b"LLVM does not say why").decode())
        start = ctypes.c_void_p(self.llvm.LLVMGetBufferStart(buffer))
        assert start.value is not None
        return ctypes.string_at(start.value, self.llvm.LLVMGetBufferSize(buffer))

    def _machine(self, target: str, wave: int) -> ctypes.c_void_p:
        found, message = ctypes.c_void_p(), ctypes.c_char_p()
        if self.llvm.LLVMGetTargetFromTriple(TRIPLE, ctypes.byref(found), ctypes.byref(message)):
            raise ValueError((message.value or b"no AMDGPU target").decode())
        features = f"+wavefrontsize{wave}".encode()
        options = (DEFAULT_LEVEL, PIC, DEFAULT_MODEL)
        return ctypes.c_void_p(self.llvm.LLVMCreateTargetMachine(found, TRIPLE, target.encode(), features, *options))


def load() -> Assembler:
    """The first library that serves."""
    looked = []
    for source, path in places():
        try:
            return Assembler(path)
        except (OSError, AttributeError) as error:
            looked.append(f"{source}: {path} ({error})")
    raise RuntimeError("no LLVM with the AMDGPU assembler; looked at " + "; ".join(looked))


def main() -> int:
    """Assemble until stdin ends."""
    replies = private_stdout()
    assembler = load()
    while (job := read_message(sys.stdin.buffer)) is not None:
        replies.write(pack_message(assembler.assemble(job["text"], job["target"], job["wave"])))
        replies.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
