; SPDX-License-Identifier: Apache-2.0
; softmax(dst, src, scale, n, pitch): the softmax of the first n columns of each row, f32,
;
;     dst[row * pitch + i] = exp(scale * src[row * pitch + i] - max) / sum    for i < n; other columns stay as they were.
;
; One workgroup of 128 for each row; n is the active length (the tokens in a KV cache), pitch the row's length.
; exp(x) is 2^(x * log2(e)), log2(e) multiplied into the scale; exponents below -126 give 0, so no result is denormal
; before the division. Maximum and sum are trees in LDS. 2^x is the hardware's approximation (1 ULP).
; A work-item keeps its exponentials in dst and divides them in the last pass.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

@tree = internal addrspace(3) global [128 x float] poison, align 16

define amdgpu_kernel void @softmax(
    ptr addrspace(1) noalias captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %src,
    float %scale, i32 %n, i32 %pitch) #0 !reqd_work_group_size !1 {
entry:
  %lane = tail call i32 @llvm.amdgcn.workitem.id.x()
  %row = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %row64 = zext i32 %row to i64
  %pitch64 = zext i32 %pitch to i64
  %row.at = mul i64 %row64, %pitch64
  %row.src = getelementptr inbounds float, ptr addrspace(1) %src, i64 %row.at
  %row.dst = getelementptr inbounds float, ptr addrspace(1) %dst, i64 %row.at
  %factor = fmul float %scale, 0x3FF7154760000000
  %slot = getelementptr inbounds [128 x float], ptr addrspace(3) @tree, i32 0, i32 %lane
  %any = icmp ult i32 %lane, %n
  br i1 %any, label %greatest, label %put.max

greatest:
  %i = phi i32 [ %lane, %entry ], [ %i.next, %greatest ]
  %max = phi float [ 0xFFF0000000000000, %entry ], [ %max.next, %greatest ]
  %at = zext i32 %i to i64
  %p = getelementptr inbounds float, ptr addrspace(1) %row.src, i64 %at
  %x = load float, ptr addrspace(1) %p, align 4
  %t = fmul float %x, %factor
  %max.next = tail call float @llvm.maxnum.f32(float %max, float %t)
  %i.next = add i32 %i, 128
  %more = icmp ult i32 %i.next, %n
  br i1 %more, label %greatest, label %put.max

put.max:
  %mine = phi float [ 0xFFF0000000000000, %entry ], [ %max.next, %greatest ]
  store float %mine, ptr addrspace(3) %slot, align 4
  br label %max.tree

max.tree:
  %half = phi i32 [ 64, %put.max ], [ %half.next, %max.joined ]
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %joins = icmp ult i32 %lane, %half
  br i1 %joins, label %max.join, label %max.joined

max.join:
  %other = add nuw nsw i32 %lane, %half
  %other.slot = getelementptr inbounds [128 x float], ptr addrspace(3) @tree, i32 0, i32 %other
  %a = load float, ptr addrspace(3) %slot, align 4
  %b = load float, ptr addrspace(3) %other.slot, align 4
  %ab = tail call float @llvm.maxnum.f32(float %a, float %b)
  store float %ab, ptr addrspace(3) %slot, align 4
  br label %max.joined

max.joined:
  %half.next = lshr i32 %half, 1
  %again = icmp ne i32 %half.next, 0
  br i1 %again, label %max.tree, label %have.max

have.max:
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %row.max = load float, ptr addrspace(3) @tree, align 16
  br i1 %any, label %exponents, label %put.sum

exponents:
  %e.i = phi i32 [ %lane, %have.max ], [ %e.next, %exponents ]
  %sum = phi float [ 0.0, %have.max ], [ %sum.next, %exponents ]
  %e.at = zext i32 %e.i to i64
  %e.src = getelementptr inbounds float, ptr addrspace(1) %row.src, i64 %e.at
  %e.dst = getelementptr inbounds float, ptr addrspace(1) %row.dst, i64 %e.at
  %e.x = load float, ptr addrspace(1) %e.src, align 4
  %e.t = fmul float %e.x, %factor
  %e.d = fsub float %e.t, %row.max
  %e.2 = tail call float @llvm.amdgcn.exp2.f32(float %e.d)
  %tiny = fcmp olt float %e.d, -1.260000e+02
  %e.v = select i1 %tiny, float 0.0, float %e.2
  store float %e.v, ptr addrspace(1) %e.dst, align 4
  %sum.next = fadd float %sum, %e.v
  %e.next = add i32 %e.i, 128
  %e.more = icmp ult i32 %e.next, %n
  br i1 %e.more, label %exponents, label %put.sum

put.sum:
  %mine.sum = phi float [ 0.0, %have.max ], [ %sum.next, %exponents ]
  ; Everybody has read the maximum before its slot takes a sum.
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  store float %mine.sum, ptr addrspace(3) %slot, align 4
  br label %sum.tree

sum.tree:
  %s.half = phi i32 [ 64, %put.sum ], [ %s.half.next, %sum.joined ]
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %s.joins = icmp ult i32 %lane, %s.half
  br i1 %s.joins, label %sum.join, label %sum.joined

sum.join:
  %s.other = add nuw nsw i32 %lane, %s.half
  %s.other.slot = getelementptr inbounds [128 x float], ptr addrspace(3) @tree, i32 0, i32 %s.other
  %s.a = load float, ptr addrspace(3) %slot, align 4
  %s.b = load float, ptr addrspace(3) %s.other.slot, align 4
  %s.ab = fadd float %s.a, %s.b
  store float %s.ab, ptr addrspace(3) %slot, align 4
  br label %sum.joined

sum.joined:
  %s.half.next = lshr i32 %s.half, 1
  %s.again = icmp ne i32 %s.half.next, 0
  br i1 %s.again, label %sum.tree, label %have.sum

have.sum:
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %row.sum = load float, ptr addrspace(3) @tree, align 16
  br i1 %any, label %divide, label %done

divide:
  %o = phi i32 [ %lane, %have.sum ], [ %o.next, %divide ]
  %o.at = zext i32 %o to i64
  %o.p = getelementptr inbounds float, ptr addrspace(1) %row.dst, i64 %o.at
  %o.e = load float, ptr addrspace(1) %o.p, align 4
  %o.r = fdiv float %o.e, %row.sum
  store float %o.r, ptr addrspace(1) %o.p, align 4
  %o.next = add i32 %o, 128
  %o.more = icmp ult i32 %o.next, %n
  br i1 %o.more, label %divide, label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.amdgcn.exp2.f32(float)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,128" "uniform-work-group-size"="true" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 128, i32 1, i32 1}
