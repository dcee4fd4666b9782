; SPDX-License-Identifier: Apache-2.0
; axpy_f16(y, x, a, n): y[i] = a * x[i] + y[i] for i < n, f16, one rounding (fma).
;
; A work-item has two neighbours and does them with one packed instruction; the last one of an odd n stands alone.
; Workgroups of 64. y and x start at a multiple of four bytes. In place on y; a is a 2-byte argument.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @axpy_f16(
    ptr addrspace(1) noalias captures(none) %y,
    ptr addrspace(1) noalias readonly captures(none) %x,
    half %a, i32 %n) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %group = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 6
  %pair = add i32 %base, %lane
  %i = shl i32 %pair, 1
  %at = zext i32 %i to i64
  %px = getelementptr inbounds half, ptr addrspace(1) %x, i64 %at
  %py = getelementptr inbounds half, ptr addrspace(1) %y, i64 %at
  %i.last = or disjoint i32 %i, 1
  %both = icmp ult i32 %i.last, %n
  br i1 %both, label %packed, label %tail

packed:
  %a.0 = insertelement <2 x half> poison, half %a, i64 0
  %aa = shufflevector <2 x half> %a.0, <2 x half> poison, <2 x i32> zeroinitializer
  %xx = load <2 x half>, ptr addrspace(1) %px, align 4
  %yy = load <2 x half>, ptr addrspace(1) %py, align 4
  %rr = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %aa, <2 x half> %xx, <2 x half> %yy)
  store <2 x half> %rr, ptr addrspace(1) %py, align 4
  br label %done

tail:
  %one = icmp ult i32 %i, %n
  br i1 %one, label %single, label %done

single:
  %x0 = load half, ptr addrspace(1) %px, align 4
  %y0 = load half, ptr addrspace(1) %py, align 4
  %r0 = tail call half @llvm.fma.f16(half %a, half %x0, half %y0)
  store half %r0, ptr addrspace(1) %py, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare half @llvm.fma.f16(half, half, half)
declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 64, i32 1, i32 1}
