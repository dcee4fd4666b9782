; SPDX-License-Identifier: Apache-2.0
; matmul(c, a, b, m, n, k, lda, ldb, ldc, batch_a, batch_b, batch_c): C = A x B for each of grid-z matrices, f32,
;
;     c[z * batch_c + i * ldc + j] = sum over l of a[z * batch_a + i * lda + l] * b[z * batch_b + l * ldb + j]
;
; for i < m, j < n, l < k. A workgroup of 16 x 16 makes a tile of 16 x 16 through LDS, one element for each work-item;
; the grid has ceil(n / 16) x ceil(m / 16) x batches whole workgroups. Sums run over rising l, one fma for each, from
; +0, and the last tile of l is padded with zeros: the result is fixed to the bit. m = 1 is a matrix-vector product.
; Pitches and batch strides count elements; offsets within one matrix are 32 bits wide, between matrices 64.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

@a.tile = internal addrspace(3) global [16 x [16 x float]] poison, align 16
@b.tile = internal addrspace(3) global [16 x [16 x float]] poison, align 16

define amdgpu_kernel void @matmul(
    ptr addrspace(1) noalias writeonly captures(none) %c,
    ptr addrspace(1) noalias readonly captures(none) %a,
    ptr addrspace(1) noalias readonly captures(none) %b,
    i32 %m, i32 %n, i32 %k, i32 %lda, i32 %ldb, i32 %ldc,
    i32 %batch_a, i32 %batch_b, i32 %batch_c) #0 !reqd_work_group_size !1 {
entry:
  %lx = tail call i32 @llvm.amdgcn.workitem.id.x()
  %ly = tail call i32 @llvm.amdgcn.workitem.id.y()
  %gx = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = tail call i32 @llvm.amdgcn.workgroup.id.y()
  %z = tail call i32 @llvm.amdgcn.workgroup.id.z()
  %z64 = zext i32 %z to i64
  %step.a = zext i32 %batch_a to i64
  %step.b = zext i32 %batch_b to i64
  %step.c = zext i32 %batch_c to i64
  %off.a = mul i64 %z64, %step.a
  %off.b = mul i64 %z64, %step.b
  %off.c = mul i64 %z64, %step.c
  %za = getelementptr inbounds float, ptr addrspace(1) %a, i64 %off.a
  %zb = getelementptr inbounds float, ptr addrspace(1) %b, i64 %off.b
  %zc = getelementptr inbounds float, ptr addrspace(1) %c, i64 %off.c
  %bj = shl i32 %gx, 4
  %bi = shl i32 %gy, 4
  %j = add i32 %bj, %lx
  %i = add i32 %bi, %ly
  %i.in = icmp ult i32 %i, %m
  %j.in = icmp ult i32 %j, %n
  %a.row = mul i32 %i, %lda
  %a.slot = getelementptr inbounds [16 x [16 x float]], ptr addrspace(3) @a.tile, i32 0, i32 %ly, i32 %lx
  %b.slot = getelementptr inbounds [16 x [16 x float]], ptr addrspace(3) @b.tile, i32 0, i32 %ly, i32 %lx
  %some = icmp ne i32 %k, 0
  br i1 %some, label %tiles, label %sum

tiles:
  %l0 = phi i32 [ 0, %entry ], [ %l0.next, %used ]
  %acc = phi float [ 0.0, %entry ], [ %acc.next, %used ]
  %la = add i32 %l0, %lx
  %la.in = icmp ult i32 %la, %k
  %a.in = and i1 %i.in, %la.in
  br i1 %a.in, label %get.a, label %got.a

get.a:
  %a.i = add i32 %a.row, %la
  %a.at = zext i32 %a.i to i64
  %a.p = getelementptr inbounds float, ptr addrspace(1) %za, i64 %a.at
  %a.v = load float, ptr addrspace(1) %a.p, align 4
  br label %got.a

got.a:
  %a.x = phi float [ %a.v, %get.a ], [ 0.0, %tiles ]
  store float %a.x, ptr addrspace(3) %a.slot, align 4
  %lb = add i32 %l0, %ly
  %lb.in = icmp ult i32 %lb, %k
  %b.in = and i1 %j.in, %lb.in
  br i1 %b.in, label %get.b, label %got.b

get.b:
  %b.row = mul i32 %lb, %ldb
  %b.i = add i32 %b.row, %j
  %b.at = zext i32 %b.i to i64
  %b.p = getelementptr inbounds float, ptr addrspace(1) %zb, i64 %b.at
  %b.v = load float, ptr addrspace(1) %b.p, align 4
  br label %got.b

got.b:
  %b.x = phi float [ %b.v, %get.b ], [ 0.0, %got.a ]
  store float %b.x, ptr addrspace(3) %b.slot, align 4
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br label %inner

inner:
  %l = phi i32 [ 0, %got.b ], [ %l.next, %inner ]
  %part = phi float [ %acc, %got.b ], [ %acc.next, %inner ]
  %a.l = getelementptr inbounds [16 x [16 x float]], ptr addrspace(3) @a.tile, i32 0, i32 %ly, i32 %l
  %b.l = getelementptr inbounds [16 x [16 x float]], ptr addrspace(3) @b.tile, i32 0, i32 %l, i32 %lx
  %al = load float, ptr addrspace(3) %a.l, align 4
  %bl = load float, ptr addrspace(3) %b.l, align 4
  %acc.next = tail call float @llvm.fma.f32(float %al, float %bl, float %part)
  %l.next = add nuw nsw i32 %l, 1
  %inner.more = icmp ult i32 %l.next, 16
  br i1 %inner.more, label %inner, label %used

used:
  ; Nobody may overwrite the tiles before everybody has used them.
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %l0.next = add i32 %l0, 16
  %more = icmp ult i32 %l0.next, %k
  br i1 %more, label %tiles, label %sum

sum:
  %r = phi float [ 0.0, %entry ], [ %acc.next, %used ]
  %c.in = and i1 %i.in, %j.in
  br i1 %c.in, label %write, label %done

write:
  %c.row = mul i32 %i, %ldc
  %c.i = add i32 %c.row, %j
  %c.at = zext i32 %c.i to i64
  %c.p = getelementptr inbounds float, ptr addrspace(1) %zc, i64 %c.at
  store float %r, ptr addrspace(1) %c.p, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.fma.f32(float, float, float)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 16, i32 16, i32 1}
