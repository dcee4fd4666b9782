; SPDX-License-Identifier: Apache-2.0
; kv_write(k_cache, v_cache, k, v, position, width, capacity): one token's row of keys and values, written in place,
;
;     k_cache[position * width + i] = k[i],  v_cache[position * width + i] = v[i]    for i < width, 32-bit words.
;
; position is an argument that a replay patches for each token; at or behind capacity nothing is written.
; One work-item for each word, workgroups of 64. All other rows of both caches stay as they were.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @kv_write(
    ptr addrspace(1) noalias writeonly captures(none) %k_cache,
    ptr addrspace(1) noalias writeonly captures(none) %v_cache,
    ptr addrspace(1) noalias readonly captures(none) %k,
    ptr addrspace(1) noalias readonly captures(none) %v,
    i32 %position, i32 %width, i32 %capacity) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %group = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 6
  %i = add i32 %base, %lane
  %i.in = icmp ult i32 %i, %width
  %row.in = icmp ult i32 %position, %capacity
  %inside = and i1 %i.in, %row.in
  br i1 %inside, label %move, label %done

move:
  %from = zext i32 %i to i64
  %position64 = zext i32 %position to i64
  %width64 = zext i32 %width to i64
  %row = mul i64 %position64, %width64
  %to = add i64 %row, %from
  %pk = getelementptr inbounds i32, ptr addrspace(1) %k, i64 %from
  %pv = getelementptr inbounds i32, ptr addrspace(1) %v, i64 %from
  %qk = getelementptr inbounds i32, ptr addrspace(1) %k_cache, i64 %to
  %qv = getelementptr inbounds i32, ptr addrspace(1) %v_cache, i64 %to
  %wk = load i32, ptr addrspace(1) %pk, align 4
  %wv = load i32, ptr addrspace(1) %pv, align 4
  store i32 %wk, ptr addrspace(1) %qk, align 4
  store i32 %wv, ptr addrspace(1) %qv, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 64, i32 1, i32 1}
