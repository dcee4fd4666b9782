# SPDX-License-Identifier: Apache-2.0
"""Wrap program bodies: as kernels of one AMDGPU module, or as loop functions of one host module.

Both wrappings hold the same body text, but for the pointer type and one name: the host computes a half-
precision fma through double, because LLVM computes it through float there, which rounds twice. A product of
two halves and its sum with a third are exact in double, so double gives the right half.

It does not compile; radiowave does for the device and `ir_host` for the host.
"""

from __future__ import annotations

from collections.abc import Sequence

from redline_fuzz.ir_programs import Program, body

BLOCK = 96  # items of a workgroup: three waves of 32, or one and a half of 64
KERNEL_ATTRIBUTES = f'nounwind "amdgpu-flat-work-group-size"="{BLOCK},{BLOCK}" "uniform-work-group-size"="false"'
# Where LLVM 22 computes a scalar half in vector registers, its true16 code for gfx11 sometimes loses a half on the way
# between register files (llvm/llvm-project pull request 211848). gfx1100 always computes them so and gets the older
# 16-bit code here; gfx1151, which has scalar float instructions, keeps true16.
FEATURES = {"gfx1100": "+wavefrontsize{wave},-real-true16"}

HOST_HALF_FMA = """
define internal half @fma.half(half %a, half %b, half %c) {
  %x = fpext half %a to double
  %y = fpext half %b to double
  %z = fpext half %c to double
  %p = fmul double %x, %y
  %s = fadd double %p, %z
  %r = fptrunc double %s to half
  ret half %r
}
define internal <2 x half> @fma.pair(<2 x half> %a, <2 x half> %b, <2 x half> %c) {
  %a0 = extractelement <2 x half> %a, i32 0
  %b0 = extractelement <2 x half> %b, i32 0
  %c0 = extractelement <2 x half> %c, i32 0
  %a1 = extractelement <2 x half> %a, i32 1
  %b1 = extractelement <2 x half> %b, i32 1
  %c1 = extractelement <2 x half> %c, i32 1
  %r0 = call half @fma.half(half %a0, half %b0, half %c0)
  %r1 = call half @fma.half(half %a1, half %b1, half %c1)
  %l = insertelement <2 x half> poison, half %r0, i32 0
  %r = insertelement <2 x half> %l, half %r1, i32 1
  ret <2 x half> %r
}
"""


def kernel_module(programs: Sequence[tuple[Program, Sequence[int]]], target: str, wave: int) -> str:
    """One kernel per (program, outputs), named like the program."""
    kernels = [_kernel(program, outputs) for program, outputs in programs]
    head = 'target triple = "amdgcn-amd-amdhsa"'
    features = f'"target-features"="{FEATURES[target].format(wave=wave)}"' if target in FEATURES else ""
    tail = f"attributes #0 = {{ {KERNEL_ATTRIBUTES} {features} }}"
    return "\n".join([head, *kernels, tail, ""])


def _kernel(program: Program, outputs: Sequence[int]) -> str:
    pointer = "ptr addrspace(1)"
    lines = "\n  ".join(body(program, outputs, pointer))
    return f"""
define amdgpu_kernel void @{program.name}({pointer} noalias readonly %in, {pointer} noalias %out, i32 %n) #0 {{
entry:
  %local = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, {BLOCK}
  %lane = add i32 %base, %local
  %inside = icmp ult i32 %lane, %n
  br i1 %inside, label %body, label %done
body:
  %lane64 = zext i32 %lane to i64
  %group64 = zext i32 %group to i64
  {lines}
  br label %done
done:
  ret void
}}"""


def host_module(programs: Sequence[tuple[Program, Sequence[int]]]) -> str:
    """One `void (in, out, n)` function per (program, outputs), named like the program."""
    return "\n".join([HOST_HALF_FMA, *(_loop(program, outputs) for program, outputs in programs), ""])


def _loop(program: Program, outputs: Sequence[int]) -> str:
    lines = "\n  ".join(body(program, outputs, "ptr"))
    lines = lines.replace("@llvm.fma.f16(", "@fma.half(").replace("@llvm.fma.v2f16(", "@fma.pair(")
    return f"""
define void @{program.name}(ptr %in, ptr %out, i32 %n) {{
entry:
  br label %head
head:
  %lane = phi i32 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i32 %lane, %n
  br i1 %more, label %body, label %done
body:
  %group = udiv i32 %lane, {BLOCK}
  %lane64 = zext i32 %lane to i64
  %group64 = zext i32 %group to i64
  {lines}
  %next = add i32 %lane, 1
  br label %head
done:
  ret void
}}"""
