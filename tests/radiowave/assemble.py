# SPDX-License-Identifier: Apache-2.0
"""Kernels written as AMDGPU assembly, assembled and linked into code objects: for tests of what compilers do not write.

Needs what the disassembler needs and no clang. `assemble_child.py` is the process that LLVM may end.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from radiowave import link
from radiowave.child import command, environment, how_it_ended, pack_message, read_message

TARGETS = ("gfx1030", "gfx1100", "gfx1201")

# gfx10 counts dwords where later targets count bits; texts are written as for gfx11.
_DWORDS = {"_b32": "_dword", "_b64": "_dwordx2", "_b128": "_dwordx4", "_b256": "_dwordx8", "_b512": "_dwordx16"}
_MEMORY = re.compile(r"\b((?:s|s_buffer|global|flat|buffer|scratch)_(?:load|store))(_b\d+)\b")
_ATOMIC = re.compile(r"\b(global_atomic_\w+)_u32\b")


@dataclass(frozen=True)
class Kernel:
    """One kernel of an object. Wave size 32 or 64 is the object's.

    `body` is its code, starting at the descriptor's entry; it may hold other functions. `pointers` and `numbers` are
    offsets in bytes of 8-byte global pointers and 4-byte numbers in a kernarg segment of `kernarg_bytes`. `directives`
    are lines for the descriptor, `.amdhsa_` left out. The kernarg pointer is s[0:1] unless these say otherwise.
    """

    name: str
    body: str
    pointers: tuple[int, ...] = (0, 8)
    numbers: tuple[int, ...] = (16, 20)
    kernarg_bytes: int = 24
    directives: tuple[str, ...] = ()


def spelled(text: str, target: str) -> str:
    """The text in the target's own names. `RETURNED` marks an atomic that gives back the old value."""
    if target.startswith("gfx12"):
        return text.replace("RETURNED", "th:TH_ATOMIC_RETURN")
    text = text.replace("RETURNED", "glc")
    if target.startswith("gfx10"):
        text = _MEMORY.sub(lambda found: found[1] + _DWORDS[found[2]], text)
        text = _ATOMIC.sub(r"\1", text)
    return text


def object_text(kernels: Sequence[Kernel], target: str, wave: int, data: str = "") -> str:
    """The assembly of one object; `data` is further text behind the kernels, for other sections."""
    code = "".join(_function(kernel) for kernel in kernels)
    descriptors = "".join(_descriptor(kernel, wave) for kernel in kernels)
    symbols = "".join(f".globl {k.name}\n.type {k.name},@function\n" for k in kernels)
    written = spelled(f"{code}\n{data}", target)
    return f".text\n{symbols}{written}\n{descriptors}{_metadata(kernels, target, wave)}"


def _function(kernel: Kernel) -> str:
    size = f".size {kernel.name}, . - {kernel.name}\n"
    return f".p2align 8\n{kernel.name}:\n{kernel.body}\ns_endpgm\n{size}{_CODE_END}"


# LLVM pads the end of its code so that prefetches meet instructions.
_CODE_END = ".rept 4\ns_code_end\n.endr\n"


def _descriptor(kernel: Kernel, wave: int) -> str:
    values = {
        "kernarg_size": str(kernel.kernarg_bytes),
        "user_sgpr_kernarg_segment_ptr": "1",
        "next_free_vgpr": "64",
        "next_free_sgpr": "106",
        "wavefront_size32": str(int(wave == 32)),
        **dict(row.split() for row in kernel.directives),
    }
    lines = "".join(f".amdhsa_{name} {value}\n" for name, value in values.items())
    return f'.section .rodata,"a"\n.p2align 6\n.amdhsa_kernel {kernel.name}\n{lines}.end_amdhsa_kernel\n.text\n'


def _metadata(kernels: Sequence[Kernel], target: str, wave: int) -> str:
    rows = "".join(_kernel_metadata(kernel, wave) for kernel in kernels)
    head = f"amdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--{target}\namdhsa.kernels:\n"
    return f".amdgpu_metadata\n---\n{head}{rows}...\n.end_amdgpu_metadata\n"


def _kernel_metadata(kernel: Kernel, wave: int) -> str:
    pointer = "{{.offset: {}, .size: 8, .value_kind: global_buffer, .address_space: global}}"
    number = "{{.offset: {}, .size: 4, .value_kind: by_value}}"
    arguments = [(offset, pointer) for offset in kernel.pointers] + [(offset, number) for offset in kernel.numbers]
    listed = ", ".join(form.format(offset) for offset, form in sorted(arguments))
    return (
        f"  - {{.name: {kernel.name}, .symbol: {kernel.name}.kd, .args: [{listed}],\n"
        f"     .kernarg_segment_size: {kernel.kernarg_bytes}, .kernarg_segment_align: 8, .wavefront_size: {wave},\n"
        "     .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .max_flat_workgroup_size: 256,\n"
        "     .sgpr_count: 106, .vgpr_count: 64}\n"
    )


def assemble(kernels: Sequence[Kernel], target: str, wave: int = 32, data: str = "") -> bytes:
    """One linked code object."""
    return next(iter(assemble_many([(object_text(kernels, target, wave, data), target, wave)])))


def assemble_many(jobs: Iterable[tuple[str, str, int]]) -> list[bytes]:
    """The linked code objects of texts, each with its target and wave size, from one child process."""
    messages = [pack_message({"text": text, "target": target, "wave": wave}) for text, target, wave in jobs]
    with subprocess.Popen(
        command("tests.radiowave.assemble_child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        linked = []
        for message in messages:
            child.stdin.write(message)
            child.stdin.flush()
            answer = read_message(child.stdout)
            if answer is None:
                assert child.stderr is not None
                said = child.stderr.read().decode(errors="replace")
                raise AssertionError(f"the assembler ended with {how_it_ended(child.wait())}: {said[-2000:]}")
            linked.append(link(answer))
        child.stdin.close()
    return linked
