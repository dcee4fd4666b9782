# SPDX-License-Identifier: Apache-2.0
"""LLVM IR modules that several Radiowave tests compile. Holds text alone."""

from __future__ import annotations

ATTRIBUTES = 'attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,256" }\n'
TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'

# Uses workgroup id x alone and 1 KiB of LDS, and has 129..256 bytes of code on every target: the kernel that the
# descriptor table of LLVM's output was read from.
SAXPY = (
    TRIPLE
    + """
@lds = internal addrspace(3) global [256 x float] poison, align 16
define amdgpu_kernel void @saxpy(
    ptr addrspace(1) noalias %y, ptr addrspace(1) noalias readonly %x, float %a, i32 %n) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %g, 256
  %i = add i32 %b, %l
  %c = icmp ult i32 %i, %n
  br i1 %c, label %then, label %end
then:
  %i64 = zext i32 %i to i64
  %px = getelementptr float, ptr addrspace(1) %x, i64 %i64
  %py = getelementptr float, ptr addrspace(1) %y, i64 %i64
  %vx = load float, ptr addrspace(1) %px
  %vy = load float, ptr addrspace(1) %py
  %sp = getelementptr [256 x float], ptr addrspace(3) @lds, i32 0, i32 %l
  store volatile float %vx, ptr addrspace(3) %sp
  %m = call float @llvm.fma.f32(float %a, float %vx, float %vy)
  store float %m, ptr addrspace(1) %py
  br label %end
end:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare float @llvm.fma.f32(float, float, float)
"""
    + ATTRIBUTES
)

# Two kernels, a call, a constant table, a pointer table, exported and internal variables with and without values.
GLOBALS = (
    TRIPLE
    + """
@table = internal addrspace(4) constant [4 x float] [float 1.0, float 2.0, float 3.0, float 5.0], align 16
@public_counter = addrspace(1) global i32 7, align 4
@public_gate = addrspace(1) global i32 8, align 4
@private = internal addrspace(1) global i32 9, align 4
@zeros = internal addrspace(1) global [16 x i32] zeroinitializer, align 4
@hidden = hidden addrspace(1) global i32 11, align 4
@pointers = internal addrspace(4) constant
    [2 x ptr addrspace(1)] [ptr addrspace(1) @public_counter, ptr addrspace(1) @private], align 8
define amdgpu_kernel void @one(ptr addrspace(1) %y, i32 %i) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr [4 x float], ptr addrspace(4) @table, i32 0, i32 %l
  %v = load float, ptr addrspace(4) %p
  %q = getelementptr float, ptr addrspace(1) %y, i32 %l
  store float %v, ptr addrspace(1) %q
  %a = load i32, ptr addrspace(1) @public_counter
  store i32 %a, ptr addrspace(1) @private
  %g = load i32, ptr addrspace(1) @public_gate
  %h0 = load i32, ptr addrspace(1) @hidden
  %h = add i32 %h0, %g
  %z = getelementptr [16 x i32], ptr addrspace(1) @zeros, i32 0, i32 %i
  store i32 %h, ptr addrspace(1) %z
  ret void
}
define amdgpu_kernel void @two(ptr addrspace(1) %y, i32 %i) #0 {
  %pp = getelementptr [2 x ptr addrspace(1)], ptr addrspace(4) @pointers, i32 0, i32 %i
  %p = load ptr addrspace(1), ptr addrspace(4) %pp
  %v = load i32, ptr addrspace(1) %p
  %z = getelementptr [16 x i32], ptr addrspace(1) @zeros, i32 0, i32 %i
  %zv = load i32, ptr addrspace(1) %z
  %s = add i32 %v, %zv
  %r = call i32 @callee(i32 %s)
  store i32 %r, ptr addrspace(1) %y
  ret void
}
define internal i32 @callee(i32 %x) noinline {
  %y = mul i32 %x, 17
  ret i32 %y
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""
    + ATTRIBUTES
)

# saxpy that reads the implicit argument at +12 (its group size x).
IMPLICIT = (
    TRIPLE
    + """
define amdgpu_kernel void @saxpy(ptr addrspace(1) %y, ptr addrspace(1) %x, float %a, i32 %n) {
  %p = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %g = getelementptr i8, ptr addrspace(4) %p, i64 12
  %w = load i16, ptr addrspace(4) %g
  %wi = zext i16 %w to i32
  store i32 %wi, ptr addrspace(1) %y
  ret void
}
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
"""
)

# Arguments whose places C rules alone would not give, and a 100-byte struct by value.
ARGUMENTS = (
    TRIPLE
    + """
%block = type { [100 x i8] }
define amdgpu_kernel void @mixed(
    i8 %a, double %b, i16 %c, <3 x i32> %d, ptr addrspace(1) %e) "amdgpu-no-implicitarg-ptr" {
  store i16 %c, ptr addrspace(1) %e
  ret void
}
define amdgpu_kernel void @by_value(
    %block %s, ptr addrspace(1) noalias writeonly %out, ptr addrspace(1) noalias readonly %in) {
  %v = load i32, ptr addrspace(1) %in
  store i32 %v, ptr addrspace(1) %out
  ret void
}
define amdgpu_kernel void @sized(ptr addrspace(1) %out) !reqd_work_group_size !0 {
  store i32 1, ptr addrspace(1) %out
  ret void
}
!0 = !{i32 64, i32 2, i32 1}
"""
)
