# SPDX-License-Identifier: Apache-2.0
"""LLVM IR kernels with the verdict that each must get from the certifier, for compilers that take no HIP.

Each kernel writes `%v` to y[global id]. Holds text and verdicts alone.
"""

from __future__ import annotations

G, C = "ptr addrspace(1)", "ptr addrspace(4)"
X, Y, N = f"{G} noalias readonly %x", f"{G} noalias %y", "i32 %n"
PLAIN = f"{G} %x"

# Name: (kernarg offsets of the arguments that scalar loads go through, None for any; parameters; body).
KERNELS: dict[str, tuple[tuple[int, ...] | None, str, str]] = {
    "copy": ((), f"{X}, {Y}", f"%p = getelementptr i32, {G} %x, i64 %t\n%v = load i32, {G} %p"),
    "numbers": ((), f"{X}, {Y}, {N}, i32 %m", "%v = mul i32 %n, %m"),
    "by_lane_and_number": (
        (),
        f"{X}, {Y}, {N}",
        (
            f"%k = add i32 %lane, %n\n%k64 = zext i32 %k to i64\n%p = getelementptr i32, {G} %x, i64 %k64\n"
            f"%v = load i32, {G} %p"
        ),
    ),
    "store_first": (
        (),
        f"{PLAIN}, {G} %y, {N}",
        (
            f"%d = getelementptr i32, {G} %y, i64 3\nstore i32 1, {G} %d\n%n64 = sext i32 %n to i64\n"
            f"%p = getelementptr i32, {G} %x, i64 %n64\n%v = load i32, {G} %p"
        ),
    ),
    "volatile": (
        (),
        f"{PLAIN}, {Y}, {N}",
        f"%n64 = sext i32 %n to i64\n%p = getelementptr i32, {G} %x, i64 %n64\n%v = load volatile i32, {G} %p",
    ),
    "relaxed": (
        (),
        f"{PLAIN}, {Y}, {N}",
        (
            f"%n64 = sext i32 %n to i64\n%p = getelementptr i32, {G} %x, i64 %n64\n"
            f'%v = load atomic i32, {G} %p syncscope("wavefront") monotonic, align 4'
        ),
    ),
    "add_atomic": ((), f"{PLAIN}, {Y}", f"%v = atomicrmw add {G} %x, i32 1 monotonic"),
    "gather": (
        (),
        f"{X}, {Y}",
        (
            f"%p = getelementptr i32, {G} %x, i64 %t\n%a = load i32, {G} %p\n%a64 = sext i32 %a to i64\n"
            f"%q = getelementptr i32, {G} %x, i64 %a64\n%v = load i32, {G} %q"
        ),
    ),
    "table": (
        (),
        f"{Y}, {N}",
        f"%k = and i32 %n, 3\n%p = getelementptr [4 x i32], {C} @fixed, i32 0, i32 %k\n%v = load i32, {C} %p",
    ),
    "lane_select": (
        (),
        f"{X}, {G} noalias readonly %z, {Y}",
        f"%c = icmp ult i32 %lane, 7\n%p = select i1 %c, {G} %x, {G} %z\n%v = load i32, {G} %p",
    ),
    "lds": (
        (),
        f"{X}, {Y}",
        (
            f"%p = getelementptr i32, {G} %x, i64 %t\n%a = load i32, {G} %p\n"
            "%s = getelementptr [256 x i32], ptr addrspace(3) @shared, i32 0, i32 %lane\n"
            "store volatile i32 %a, ptr addrspace(3) %s\n%v = load volatile i32, ptr addrspace(3) %s"
        ),
    ),
    "ballot": (
        (),
        f"{X}, {Y}",
        (
            f"%p = getelementptr i32, {G} %x, i64 %t\n%a = load i32, {G} %p\n%c = icmp sgt i32 %a, 3\n"
            "%m = call i64 @llvm.amdgcn.ballot.i64(i1 %c)\n%v = trunc i64 %m to i32"
        ),
    ),
    "calls": ((), f"{X}, {Y}", f"%v = call i32 @third({G} %x, i64 %t)"),
    "uniform": (
        (0,),
        f"{X}, {Y}, {N}",
        f"%n64 = sext i32 %n to i64\n%p = getelementptr i32, {G} %x, i64 %n64\n%v = load i32, {G} %p",
    ),
    "first_word": ((8,), f"{Y}, {X}", f"%v = load i32, {G} %x"),
    "by_group": (
        (0,),
        f"{X}, {Y}",
        f"%g64 = zext i32 %group to i64\n%p = getelementptr i32, {G} %x, i64 %g64\n%v = load i32, {G} %p",
    ),
    "long_index": (
        (0,),
        f"{X}, {Y}, i64 %n",
        f"%p = getelementptr i32, {G} %x, i64 %n\n%v = load i32, {G} %p",
    ),
    "negative_index": (
        (0,),
        f"{X}, {Y}",
        f"%p = getelementptr i32, {G} %x, i64 -3\n%v = load i32, {G} %p",
    ),
    "second_step": (
        (0, 8),
        f"{X}, {G} noalias readonly %z, {Y}",
        (
            f"%a = load i32, {G} %x\n%a64 = sext i32 %a to i64\n%p = getelementptr i32, {G} %z, i64 %a64\n"
            f"%v = load i32, {G} %p"
        ),
    ),
    "uniform_select": (
        (0, 8),
        f"{X}, {G} noalias readonly %z, {Y}, {N}",
        f"%c = icmp ult i32 %n, 7\n%p = select i1 %c, {G} %x, {G} %z\n%v = load i32, {G} %p",
    ),
    "walk": (
        (0,),
        f"{X}, {Y}, {N}",
        (
            "br label %loop\nloop:\n%k = phi i32 [ 0, %0 ], [ %k1, %loop ]\n%s = phi i32 [ 0, %0 ], [ %s1, %loop ]\n"
            f"%k64 = zext i32 %k to i64\n%p = getelementptr i32, {G} %x, i64 %k64\n%a = load i32, {G} %p\n"
            "%s1 = xor i32 %s, %a\n%k1 = add i32 %k, 1\n%c = icmp ult i32 %k1, %n\n"
            "br i1 %c, label %loop, label %end\nend:\n%v = add i32 %s1, 0"
        ),
    ),
    "row_pointer": (
        None,
        f"{C} noalias %x, {Y}, {N}",
        (
            f"%q = load {C}, {C} %x\n%n64 = sext i32 %n to i64\n%p = getelementptr i32, {C} %q, i64 %n64\n"
            f"%v = load i32, {C} %p"
        ),
    ),
    "number_as_pointer": (
        None,
        f"i64 %x, {Y}, {N}",
        (
            f"%q = inttoptr i64 %x to {C}\n%n64 = sext i32 %n to i64\n%p = getelementptr i32, {C} %q, i64 %n64\n"
            f"%v = load i32, {C} %p"
        ),
    ),
    "variable": (
        None,
        f"{Y}, {N}",
        f"%k = and i32 %n, 3\n%p = getelementptr [4 x i32], {G} @changing, i32 0, i32 %k\n%v = load i32, {G} %p",
    ),
    "packet": (
        None,
        f"{Y}",
        f"%q = call {C} @llvm.amdgcn.dispatch.ptr()\n%p = getelementptr i32, {C} %q, i64 3\n%v = load i32, {C} %p",
    ),
    "first_lane": (
        None,
        f"{X}, {Y}",
        (
            f"%p = getelementptr i64, {G} %x, i64 %t\n%a = load i64, {G} %p\n"
            "%f = call i64 @llvm.amdgcn.readfirstlane.i64(i64 %a)\n"
            f"%q = inttoptr i64 %f to {C}\n%v = load i32, {C} %q"
        ),
    ),
}

DECLARATIONS = f"""
@fixed = internal addrspace(4) constant [4 x i32] [i32 2, i32 3, i32 5, i32 7], align 16
@changing = addrspace(1) global [4 x i32] zeroinitializer, align 16
@shared = internal addrspace(3) global [256 x i32] poison, align 16
define internal i32 @third({G} %p, i64 %t) noinline {{
  %q = getelementptr i32, {G} %p, i64 %t
  %a = load i32, {G} %q
  %b = mul i32 %a, 3
  ret i32 %b
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i64 @llvm.amdgcn.ballot.i64(i1)
declare i64 @llvm.amdgcn.readfirstlane.i64(i64)
declare {C} @llvm.amdgcn.dispatch.ptr()
attributes #0 = {{ nounwind "amdgpu-flat-work-group-size"="1,256" }}
"""

PROLOGUE = f"""
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 8
  %i = add i32 %base, %lane
  %t = zext i32 %i to i64
  %o = getelementptr i32, {G} %y, i64 %t
"""


def source() -> str:
    """All kernels as one module."""
    kernels = (
        f"define amdgpu_kernel void @{name}({parameters}) #0 {{{PROLOGUE}{body}\nstore i32 %v, {G} %o\nret void\n}}"
        for name, (_, parameters, body) in KERNELS.items()
    )
    return "\n".join(['target triple = "amdgcn-amd-amdhsa"', DECLARATIONS, *kernels, ""])
