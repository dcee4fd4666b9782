; SPDX-License-Identifier: Apache-2.0
; q8dot(dst, weight, x, row_scale, x_scale, rows, words): a matrix-vector product of int8, scaled to f32,
;
;     dst[r] = f32(sum over i of weight[r][i] * x[i]) * (row_scale[r] * x_scale)    for r < rows, i < 4 * words.
;
; weight has rows of 4 * words int8, each row starting at a multiple of four bytes; sums are 32 bits wide and wrap.
; One work-item for each row, workgroups of 64. All work-items of a wave read the same x: those are scalar loads.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @q8dot(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %weight,
    ptr addrspace(1) noalias readonly captures(none) %x,
    ptr addrspace(1) noalias readonly captures(none) %row_scale,
    float %x_scale, i32 %rows, i32 %words) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %group = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %base = shl i32 %group, 6
  %r = add i32 %base, %lane
  %inside = icmp ult i32 %r, %rows
  br i1 %inside, label %start, label %done

start:
  %r64 = zext i32 %r to i64
  %words64 = zext i32 %words to i64
  %row.at = mul i64 %r64, %words64
  %row = getelementptr inbounds i32, ptr addrspace(1) %weight, i64 %row.at
  %some = icmp ne i32 %words, 0
  br i1 %some, label %dot, label %scale

dot:
  %i = phi i64 [ 0, %start ], [ %i.next, %dot ]
  %sum = phi i32 [ 0, %start ], [ %sum.next, %dot ]
  %pw = getelementptr inbounds i32, ptr addrspace(1) %row, i64 %i
  %px = getelementptr inbounds i32, ptr addrspace(1) %x, i64 %i
  %w = load <4 x i8>, ptr addrspace(1) %pw, align 4
  %v = load <4 x i8>, ptr addrspace(1) %px, align 4
  %w.wide = sext <4 x i8> %w to <4 x i32>
  %v.wide = sext <4 x i8> %v to <4 x i32>
  %products = mul nsw <4 x i32> %w.wide, %v.wide
  %four = tail call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %products)
  %sum.next = add i32 %four, %sum
  %i.next = add nuw i64 %i, 1
  %more = icmp ult i64 %i.next, %words64
  br i1 %more, label %dot, label %scale

scale:
  %total = phi i32 [ 0, %start ], [ %sum.next, %dot ]
  %total.f = sitofp i32 %total to float
  %ps = getelementptr inbounds float, ptr addrspace(1) %row_scale, i64 %r64
  %s = load float, ptr addrspace(1) %ps, align 4
  %factor = fmul float %s, %x_scale
  %result = fmul float %total.f, %factor
  %to = getelementptr inbounds float, ptr addrspace(1) %dst, i64 %r64
  store float %result, ptr addrspace(1) %to, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 64, i32 1, i32 1}
