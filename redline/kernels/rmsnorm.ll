; SPDX-License-Identifier: Apache-2.0
; rmsnorm(dst, src, weight, eps, n, pitch): root-mean-square normalisation of each row, f32,
;
;     dst[row * pitch + i] = src[row * pitch + i] * rsq(sum(src[row]^2) / n + eps) * weight[i]    for i < n.
;
; One workgroup of 128 for each row. A work-item sums the squares of its columns (every 128th) by fma, a tree of seven
; steps in LDS adds the 128 sums. rsq is the hardware's approximation (1 ULP); everything else is rounded to nearest.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

@tree = internal addrspace(3) global [128 x float] poison, align 16

define amdgpu_kernel void @rmsnorm(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %src,
    ptr addrspace(1) noalias readonly captures(none) %weight,
    float %eps, i32 %n, i32 %pitch) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %row = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %row64 = zext i32 %row to i64
  %pitch64 = zext i32 %pitch to i64
  %row.at = mul i64 %row64, %pitch64
  %row.src = getelementptr inbounds float, ptr addrspace(1) %src, i64 %row.at
  %row.dst = getelementptr inbounds float, ptr addrspace(1) %dst, i64 %row.at
  %any = icmp ult i32 %lane, %n
  br i1 %any, label %squares, label %put

squares:
  %i = phi i32 [ %lane, %entry ], [ %i.next, %squares ]
  %sum = phi float [ 0.0, %entry ], [ %sum.next, %squares ]
  %at = zext i32 %i to i64
  %p = getelementptr inbounds float, ptr addrspace(1) %row.src, i64 %at
  %x = load float, ptr addrspace(1) %p, align 4
  %sum.next = tail call float @llvm.fma.f32(float %x, float %x, float %sum)
  %i.next = add i32 %i, 128
  %more = icmp ult i32 %i.next, %n
  br i1 %more, label %squares, label %put

put:
  %mine = phi float [ 0.0, %entry ], [ %sum.next, %squares ]
  %slot = getelementptr inbounds [128 x float], ptr addrspace(3) @tree, i32 0, i32 %lane
  store float %mine, ptr addrspace(3) %slot, align 4
  br label %tree

tree:
  %half = phi i32 [ 64, %put ], [ %half.next, %joined ]
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %joins = icmp ult i32 %lane, %half
  br i1 %joins, label %join, label %joined

join:
  %other = add nuw nsw i32 %lane, %half
  %other.slot = getelementptr inbounds [128 x float], ptr addrspace(3) @tree, i32 0, i32 %other
  %a = load float, ptr addrspace(3) %slot, align 4
  %b = load float, ptr addrspace(3) %other.slot, align 4
  %ab = fadd float %a, %b
  store float %ab, ptr addrspace(3) %slot, align 4
  br label %joined

joined:
  %half.next = lshr i32 %half, 1
  %again = icmp ne i32 %half.next, 0
  br i1 %again, label %tree, label %scale

scale:
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %total = load float, ptr addrspace(3) @tree, align 16
  %n.f = uitofp i32 %n to float
  %mean = fdiv float %total, %n.f
  %kept = fadd float %mean, %eps
  %factor = tail call float @llvm.amdgcn.rsq.f32(float %kept)
  br i1 %any, label %write, label %done

write:
  %o = phi i32 [ %lane, %scale ], [ %o.next, %write ]
  %o.at = zext i32 %o to i64
  %o.src = getelementptr inbounds float, ptr addrspace(1) %row.src, i64 %o.at
  %o.weight = getelementptr inbounds float, ptr addrspace(1) %weight, i64 %o.at
  %o.dst = getelementptr inbounds float, ptr addrspace(1) %row.dst, i64 %o.at
  %o.x = load float, ptr addrspace(1) %o.src, align 4
  %o.w = load float, ptr addrspace(1) %o.weight, align 4
  %o.normal = fmul float %o.x, %factor
  %o.r = fmul float %o.normal, %o.w
  store float %o.r, ptr addrspace(1) %o.dst, align 4
  %o.next = add i32 %o, 128
  %o.more = icmp ult i32 %o.next, %n
  br i1 %o.more, label %write, label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.amdgcn.rsq.f32(float)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,128" "uniform-work-group-size"="true" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 128, i32 1, i32 1}
