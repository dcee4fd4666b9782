; SPDX-License-Identifier: Apache-2.0
; fill(dst, value, step, rest, limit, pitch, plane): a ramp and a constant behind it in a 3-D box of f32,
;
;     dst[z * plane + y * pitch + x] = step * (y * pitch + x) + value    if x < limit (one rounding: fma), else rest.
;
; The kernel knows no extent: the grid itself is the box that is written, one work-item for each element in workgroups
; of 16 x 4 x 2, and partial workgroups at the edges keep what lies outside the box as it was. With step 0 it sets
; constants (also infinities: an attention mask), otherwise a ramp that starts anew in each plane.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @fill(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    float %value, float %step, float %rest, i32 %limit, i32 %pitch, i32 %plane) #0 !reqd_work_group_size !1 {
entry:
  %lx = tail call i32 @llvm.amdgcn.workitem.id.x()
  %ly = tail call i32 @llvm.amdgcn.workitem.id.y()
  %lz = tail call i32 @llvm.amdgcn.workitem.id.z()
  %gx = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = tail call i32 @llvm.amdgcn.workgroup.id.y()
  %gz = tail call i32 @llvm.amdgcn.workgroup.id.z()
  %bx = shl i32 %gx, 4
  %by = shl i32 %gy, 2
  %bz = shl i32 %gz, 1
  %x = add i32 %bx, %lx
  %y = add i32 %by, %ly
  %z = add i32 %bz, %lz
  %row = mul i32 %y, %pitch
  %i = add i32 %row, %x
  %ramp = uitofp i32 %i to float
  %slope = tail call float @llvm.fma.f32(float %step, float %ramp, float %value)
  %inside = icmp ult i32 %x, %limit
  %r = select i1 %inside, float %slope, float %rest
  ; Planes may lie far apart: their offset is 64 bits wide.
  %z64 = zext i32 %z to i64
  %plane64 = zext i32 %plane to i64
  %off.z = mul i64 %z64, %plane64
  %at = zext i32 %i to i64
  %to.z = getelementptr inbounds float, ptr addrspace(1) %dst, i64 %off.z
  %to = getelementptr inbounds float, ptr addrspace(1) %to.z, i64 %at
  store float %r, ptr addrspace(1) %to, align 4
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare float @llvm.fma.f32(float, float, float)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,128" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 16, i32 4, i32 2}
