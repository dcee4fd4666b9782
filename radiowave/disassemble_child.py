# SPDX-License-Identifier: Apache-2.0
"""The disassembler process: LLVM's C disassembler through ctypes, one request after another on pipes.

Runs alone in a process because hostile bytes can crash LLVM and an unknown CPU name ends it. It first says
which library it loaded, or where it looked in vain. `disassemble.py` starts it and knows what to do when it
dies.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import Any

from radiowave.child import pack_message, private_stdout, read_message
from radiowave.find_llvm import places

TRIPLE = b"amdgcn-amd-amdhsa"
# Far above the longest instruction text (a dual-issue instruction has about 200 characters).
TEXT_BYTES = 2048
# LLVM 22 reads a literal behind the end of the bytes it was given and crashes (a VOP3 whose third dword is cut off).
# Zeros behind the code keep it alive; an instruction that needed them does not decode.
PADDING_BYTES = 32

_INITIALISERS = (
    "LLVMInitializeAMDGPUTargetInfo",
    "LLVMInitializeAMDGPUTarget",
    "LLVMInitializeAMDGPUTargetMC",
    "LLVMInitializeAMDGPUDisassembler",
)


class Library:
    """One loaded LLVM and its disassembler contexts, one for each target and wave size."""

    def __init__(self, path: str) -> None:
        self.llvm = ctypes.CDLL(path)
        for name in _INITIALISERS:
            getattr(self.llvm, name)()
        self.create = self.llvm.LLVMCreateDisasmCPUFeatures
        self.create.restype = ctypes.c_void_p
        pointer, word = ctypes.c_void_p, ctypes.c_size_t
        text = ctypes.c_char_p
        self.create.argtypes = [text, text, text, pointer, ctypes.c_int, pointer, pointer]
        self.one = self.llvm.LLVMDisasmInstruction
        self.one.restype = word
        self.one.argtypes = [pointer, pointer, ctypes.c_uint64, ctypes.c_uint64, text, word]
        self.contexts: dict[tuple[str, int], int] = {}

    def version(self) -> str:
        """The library's own version; LLVM before 16 does not tell."""
        if not hasattr(self.llvm, "LLVMGetVersion"):
            return "below 16"
        numbers = [ctypes.c_uint() for _ in range(3)]
        self.llvm.LLVMGetVersion(*(ctypes.byref(number) for number in numbers))
        return ".".join(str(number.value) for number in numbers)

    def context(self, target: str, wave: int) -> int:
        """The context for a target, made at first use. `disassemble.py` has checked the name."""
        key = (target, wave)
        if key not in self.contexts:
            features = f"+wavefrontsize{wave},-wavefrontsize{96 - wave}"
            made = self.create(TRIPLE, target.encode(), features.encode(), None, 0, None, None)
            if not made:
                raise ValueError(f"this LLVM has no disassembler for {target}")
            self.contexts[key] = made
        return self.contexts[key]

    def decode(self, code: bytes, pc: int, target: str, wave: int) -> tuple[list[int], list[str]]:
        """Lengths and texts from the first byte on, up to the first that does not decode (length 0)."""
        context = self.context(target, wave)
        start = ctypes.create_string_buffer(code, len(code) + PADDING_BYTES)
        address, text = ctypes.addressof(start), ctypes.create_string_buffer(TEXT_BYTES)
        lengths: list[int] = []
        texts: list[str] = []
        at = 0
        while at < len(code):
            left = len(code) - at
            length = self.one(context, address + at, left + PADDING_BYTES, pc + at, text, TEXT_BYTES)
            length = length if length <= left else 0
            lengths.append(length)
            texts.append(_plain(text.value) if length else "")
            if not length:
                break
            at += length
        return lengths, texts


def _plain(raw: bytes) -> str:
    """LLVM's text with one blank behind the mnemonic and without the comments that it adds."""
    line = raw.decode("ascii", errors="replace").strip()
    for mark in (";", "//"):
        line = line.split(mark, 1)[0].rstrip()
    return line.replace("\t", " ", 1)


def load() -> tuple[Library | None, dict[str, Any]]:
    """The first library that serves, and the greeting: what was loaded and where we looked."""
    looked: list[list[str]] = []
    for source, path in places():
        try:
            library = Library(path)
        except (OSError, AttributeError) as error:
            looked.append([source, path, str(error)])
            continue
        return library, {"library": path, "source": source, "version": library.version(), "looked": looked}
    return None, {"library": None, "looked": looked}


def _answer(library: Library, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        lengths, texts = library.decode(request["code"], request["pc"], request["target"], request["wave"])
    except ValueError as error:
        return {"error": str(error)}
    return {"lengths": lengths, "texts": texts}


def main() -> int:
    """Greet, then answer until stdin ends."""
    replies = private_stdout()
    library, greeting = load()
    replies.write(pack_message(greeting))
    replies.flush()
    while library and (request := read_message(sys.stdin.buffer)) is not None:
        replies.write(pack_message(_answer(library, request)))
        replies.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
