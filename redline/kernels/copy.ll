; SPDX-License-Identifier: Apache-2.0
; copy(dst, src, n): dst[i] = src[i] for i < n, 32-bit words.
;
; One work-item for each word, workgroups of 256. The last workgroup may be partial: the work-item id and a constant
; give the index, never the hidden group size.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @copy(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %src,
    i32 %n) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %group = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 8
  %i = add i32 %base, %lane
  %inside = icmp ult i32 %i, %n
  br i1 %inside, label %move, label %done

move:
  %at = zext i32 %i to i64
  %from = getelementptr inbounds i32, ptr addrspace(1) %src, i64 %at
  %to = getelementptr inbounds i32, ptr addrspace(1) %dst, i64 %at
  %word = load i32, ptr addrspace(1) %from, align 4
  store i32 %word, ptr addrspace(1) %to, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 256, i32 1, i32 1}
