; SPDX-License-Identifier: Apache-2.0
; argmax(index, value, src, n, pitch): the greatest of n values of each row and its first position, f32 and i32,
;
;     value[row] = max(src[row * pitch : row * pitch + n]),   index[row] = where it stands first.
;
; One workgroup of 256 for each row. Each work-item walks its columns (every 256th), then a tree of eight steps in LDS
; joins the 256 candidates; equal values go to the smaller index, so the answer does not depend on the order.
; Rows without a value above -infinity give -infinity and index 2147483647. NaN is never chosen.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

@value.tree = internal addrspace(3) global [256 x float] poison, align 16
@index.tree = internal addrspace(3) global [256 x i32] poison, align 16

define amdgpu_kernel void @argmax(
    ptr addrspace(1) noalias writeonly captures(none) %index,
    ptr addrspace(1) noalias writeonly captures(none) %value,
    ptr addrspace(1) noalias readonly captures(none) %src,
    i32 %n, i32 %pitch) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %row = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %row64 = zext i32 %row to i64
  %pitch64 = zext i32 %pitch to i64
  %row.at = mul i64 %row64, %pitch64
  %row.src = getelementptr inbounds float, ptr addrspace(1) %src, i64 %row.at
  %any = icmp ult i32 %lane, %n
  br i1 %any, label %walk, label %put

walk:
  %i = phi i32 [ %lane, %entry ], [ %i.next, %walk ]
  %best = phi float [ 0xFFF0000000000000, %entry ], [ %best.next, %walk ]
  %best.i = phi i32 [ 2147483647, %entry ], [ %best.i.next, %walk ]
  %at = zext i32 %i to i64
  %p = getelementptr inbounds float, ptr addrspace(1) %row.src, i64 %at
  %v = load float, ptr addrspace(1) %p, align 4
  %better = fcmp ogt float %v, %best
  %best.next = select i1 %better, float %v, float %best
  %best.i.next = select i1 %better, i32 %i, i32 %best.i
  %i.next = add i32 %i, 256
  %more = icmp ult i32 %i.next, %n
  br i1 %more, label %walk, label %put

put:
  %mine = phi float [ 0xFFF0000000000000, %entry ], [ %best.next, %walk ]
  %mine.i = phi i32 [ 2147483647, %entry ], [ %best.i.next, %walk ]
  %value.slot = getelementptr inbounds [256 x float], ptr addrspace(3) @value.tree, i32 0, i32 %lane
  %index.slot = getelementptr inbounds [256 x i32], ptr addrspace(3) @index.tree, i32 0, i32 %lane
  store float %mine, ptr addrspace(3) %value.slot, align 4
  store i32 %mine.i, ptr addrspace(3) %index.slot, align 4
  br label %tree

tree:
  %half = phi i32 [ 128, %put ], [ %half.next, %joined ]
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %joins = icmp ult i32 %lane, %half
  br i1 %joins, label %join, label %joined

join:
  %other = add nuw nsw i32 %lane, %half
  %other.value = getelementptr inbounds [256 x float], ptr addrspace(3) @value.tree, i32 0, i32 %other
  %other.index = getelementptr inbounds [256 x i32], ptr addrspace(3) @index.tree, i32 0, i32 %other
  %a = load float, ptr addrspace(3) %value.slot, align 4
  %a.i = load i32, ptr addrspace(3) %index.slot, align 4
  %b = load float, ptr addrspace(3) %other.value, align 4
  %b.i = load i32, ptr addrspace(3) %other.index, align 4
  %greater = fcmp ogt float %b, %a
  %equal = fcmp oeq float %b, %a
  %earlier = icmp slt i32 %b.i, %a.i
  %tie = and i1 %equal, %earlier
  %take = or i1 %greater, %tie
  %w = select i1 %take, float %b, float %a
  %w.i = select i1 %take, i32 %b.i, i32 %a.i
  store float %w, ptr addrspace(3) %value.slot, align 4
  store i32 %w.i, ptr addrspace(3) %index.slot, align 4
  br label %joined

joined:
  %half.next = lshr i32 %half, 1
  %again = icmp ne i32 %half.next, 0
  br i1 %again, label %tree, label %write

write:
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %winner, label %done

winner:
  %win = load float, ptr addrspace(3) @value.tree, align 16
  %win.i = load i32, ptr addrspace(3) @index.tree, align 16
  %to.value = getelementptr inbounds float, ptr addrspace(1) %value, i64 %row64
  %to.index = getelementptr inbounds i32, ptr addrspace(1) %index, i64 %row64
  store float %win, ptr addrspace(1) %to.value, align 4
  store i32 %win.i, ptr addrspace(1) %to.index, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 256, i32 1, i32 1}
