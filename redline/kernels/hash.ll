; SPDX-License-Identifier: Apache-2.0
; hash(dst, key, seed, n, shift): dst[i] = mix(key[i >> shift] + seed + i * 0x9E3779B97F4A7C15) for i < n, i64.
;
; mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014). Each key gives 2^shift different words: a vector of
; hashed features, or one word for each key with shift 0. One work-item for each word, workgroups of 64.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @hash(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %key,
    i64 %seed, i32 %n, i32 %shift) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %group = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 6
  %i = add i32 %base, %lane
  %inside = icmp ult i32 %i, %n
  br i1 %inside, label %mix, label %done

mix:
  ; A count is 0..31; masked, so that other values have a defined result too.
  %shift.5 = and i32 %shift, 31
  %key.i = lshr i32 %i, %shift.5
  %key.at = zext i32 %key.i to i64
  %from = getelementptr inbounds i64, ptr addrspace(1) %key, i64 %key.at
  %k = load i64, ptr addrspace(1) %from, align 8
  %at = zext i32 %i to i64
  %stream = mul i64 %at, -7046029254386353131
  %seeded = add i64 %k, %seed
  %z0 = add i64 %seeded, %stream
  %h0 = lshr i64 %z0, 30
  %x0 = xor i64 %z0, %h0
  %z1 = mul i64 %x0, -4658895280553007687
  %h1 = lshr i64 %z1, 27
  %x1 = xor i64 %z1, %h1
  %z2 = mul i64 %x1, -7723592293110705685
  %h2 = lshr i64 %z2, 31
  %r = xor i64 %z2, %h2
  %to = getelementptr inbounds i64, ptr addrspace(1) %dst, i64 %at
  store i64 %r, ptr addrspace(1) %to, align 8
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
