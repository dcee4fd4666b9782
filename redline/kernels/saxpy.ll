; SPDX-License-Identifier: Apache-2.0
; saxpy(y, x, a, n): y[i] = a * x[i] + y[i] for i < n, f32, one rounding (fma).
;
; Workgroups of 128; a workgroup covers 256 elements, so a work-item has two of them, 128 apart. In place on y.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @saxpy(
    ptr addrspace(1) noalias captures(none) %y,
    ptr addrspace(1) noalias readonly captures(none) %x,
    float %a, i32 %n) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %group = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 8
  %i0 = add i32 %base, %lane
  %inside0 = icmp ult i32 %i0, %n
  br i1 %inside0, label %first, label %done

first:
  %at0 = zext i32 %i0 to i64
  %px0 = getelementptr inbounds float, ptr addrspace(1) %x, i64 %at0
  %py0 = getelementptr inbounds float, ptr addrspace(1) %y, i64 %at0
  %x0 = load float, ptr addrspace(1) %px0, align 4
  %y0 = load float, ptr addrspace(1) %py0, align 4
  %r0 = tail call float @llvm.fma.f32(float %a, float %x0, float %y0)
  store float %r0, ptr addrspace(1) %py0, align 4
  %i1 = add i32 %i0, 128
  %inside1 = icmp ult i32 %i1, %n
  br i1 %inside1, label %second, label %done

second:
  %at1 = zext i32 %i1 to i64
  %px1 = getelementptr inbounds float, ptr addrspace(1) %x, i64 %at1
  %py1 = getelementptr inbounds float, ptr addrspace(1) %y, i64 %at1
  %x1 = load float, ptr addrspace(1) %px1, align 4
  %y1 = load float, ptr addrspace(1) %py1, align 4
  %r1 = tail call float @llvm.fma.f32(float %a, float %x1, float %y1)
  store float %r1, ptr addrspace(1) %py1, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare float @llvm.fma.f32(float, float, float)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,128" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 128, i32 1, i32 1}
