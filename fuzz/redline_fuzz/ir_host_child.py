# SPDX-License-Identifier: Apache-2.0
"""The child process that compiles host functions with LLVM's MCJIT and runs them.

A request on standard input is one line of JSON and then the module's text and the input bytes; the answer on
standard output is the output bytes of all its functions. Optimisation is off on purpose: this side is the
plain one.

It runs apart from everything else because LLVM ends its process on an error, and because compiled code that
is wrong may do anything. `ir_host` starts it and talks to it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import BinaryIO

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

# What LLVM calls for arithmetic that the host's instructions lack. MCJIT would turn an unknown name into address 0.
LIBGCC_NAMES = ("__truncdfhf2", "__truncsfhf2", "__extendhfsf2")
LIBM_NAMES = tuple(
    name + suffix
    for name in ("fma", "floor", "ceil", "trunc", "rint", "round", "roundeven", "ldexp", "frexp")
    for suffix in ("", "f")
)
FILL = 0xA5


def bind_names() -> None:
    """Give MCJIT the addresses of the functions above."""
    for library, names in (("libgcc_s.so.1", LIBGCC_NAMES), ("libm.so.6", LIBM_NAMES)):
        try:
            opened = ctypes.CDLL(library)
            addresses = [ctypes.cast(getattr(opened, name), ctypes.c_void_p).value for name in names]
        except (OSError, AttributeError) as missing:
            raise SystemExit(f"the host side needs {library} of GCC 12 and glibc 2.25 or later: {missing}") from None
        for name, address in zip(names, addresses, strict=True):
            llvm.add_symbol(name, address)


def run_module(text: str, functions: list[tuple[str, int]], inputs: NDArray[np.uint64], lanes: int) -> list[bytes]:
    """Compile the module and call each `(name, slots)`. Outputs keep FILL where nothing stores."""
    module = llvm.parse_assembly(text)
    module.verify()
    # The engine owns its target machine: one that is used twice is freed twice.
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        return [_call(engine.get_function_address(name), slots, inputs, lanes) for name, slots in functions]


def _call(address: int, slots: int, inputs: NDArray[np.uint64], lanes: int) -> bytes:
    output = np.full(len(inputs) * slots * 8, FILL, np.uint8)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)(address)
    function(inputs.ctypes.data, output.ctypes.data, lanes)
    return output.tobytes()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until standard input closes."""
    while header := requests.readline():
        wanted = json.loads(header)
        text = requests.read(wanted["text_bytes"]).decode()
        inputs = np.frombuffer(requests.read(wanted["input_bytes"]), "<u8").reshape(-1, wanted["columns"]).copy()
        functions = [(str(name), int(slots)) for name, slots in wanted["functions"]]
        for output in run_module(text, functions, inputs, wanted["lanes"]):
            answers.write(output)
        answers.flush()


def main() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    bind_names()
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
