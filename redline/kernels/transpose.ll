; SPDX-License-Identifier: Apache-2.0
; transpose(dst, src, rows, cols, src_pitch, dst_pitch): dst[c * dst_pitch + r] = src[r * src_pitch + c], 32-bit words.
;
; A workgroup of 32 x 8 moves one tile of 32 x 32 through LDS, four rows for each work-item, so that reads and writes
; are both coalesced. LDS rows are 33 words long: a column then touches 32 different banks. The grid has
; ceil(cols / 32) x ceil(rows / 32) workgroups, all of them whole: each work-item has to reach the barrier.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

@tile = internal addrspace(3) global [32 x [33 x i32]] poison, align 16

define amdgpu_kernel void @transpose(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %src,
    i32 %rows, i32 %cols, i32 %src_pitch, i32 %dst_pitch) #0 !reqd_work_group_size !1 {
entry:
  %lx = tail call i32 @llvm.amdgcn.workitem.id.x()
  %ly = tail call i32 @llvm.amdgcn.workitem.id.y()
  %gx = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = tail call i32 @llvm.amdgcn.workgroup.id.y()
  %bc = shl i32 %gx, 5
  %br = shl i32 %gy, 5
  %c = add i32 %bc, %lx
  %r = add i32 %br, %ly
  %c.in = icmp ult i32 %c, %cols
  %r0 = add i32 %r, 0
  %r0.in = icmp ult i32 %r0, %rows
  %in0 = and i1 %r0.in, %c.in
  br i1 %in0, label %read0, label %was0

read0:
  %src0.row = mul i32 %r0, %src_pitch
  %src0.i = add i32 %src0.row, %c
  %src0.at = zext i32 %src0.i to i64
  %src0.p = getelementptr inbounds i32, ptr addrspace(1) %src, i64 %src0.at
  %src0.v = load i32, ptr addrspace(1) %src0.p, align 4
  %y0 = add nuw nsw i32 %ly, 0
  %tile0.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %y0, i32 %lx
  store i32 %src0.v, ptr addrspace(3) %tile0.p, align 4
  br label %was0

was0:
  %r1 = add i32 %r, 8
  %r1.in = icmp ult i32 %r1, %rows
  %in1 = and i1 %r1.in, %c.in
  br i1 %in1, label %read1, label %was1

read1:
  %src1.row = mul i32 %r1, %src_pitch
  %src1.i = add i32 %src1.row, %c
  %src1.at = zext i32 %src1.i to i64
  %src1.p = getelementptr inbounds i32, ptr addrspace(1) %src, i64 %src1.at
  %src1.v = load i32, ptr addrspace(1) %src1.p, align 4
  %y1 = add nuw nsw i32 %ly, 8
  %tile1.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %y1, i32 %lx
  store i32 %src1.v, ptr addrspace(3) %tile1.p, align 4
  br label %was1

was1:
  %r2 = add i32 %r, 16
  %r2.in = icmp ult i32 %r2, %rows
  %in2 = and i1 %r2.in, %c.in
  br i1 %in2, label %read2, label %was2

read2:
  %src2.row = mul i32 %r2, %src_pitch
  %src2.i = add i32 %src2.row, %c
  %src2.at = zext i32 %src2.i to i64
  %src2.p = getelementptr inbounds i32, ptr addrspace(1) %src, i64 %src2.at
  %src2.v = load i32, ptr addrspace(1) %src2.p, align 4
  %y2 = add nuw nsw i32 %ly, 16
  %tile2.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %y2, i32 %lx
  store i32 %src2.v, ptr addrspace(3) %tile2.p, align 4
  br label %was2

was2:
  %r3 = add i32 %r, 24
  %r3.in = icmp ult i32 %r3, %rows
  %in3 = and i1 %r3.in, %c.in
  br i1 %in3, label %read3, label %was3

read3:
  %src3.row = mul i32 %r3, %src_pitch
  %src3.i = add i32 %src3.row, %c
  %src3.at = zext i32 %src3.i to i64
  %src3.p = getelementptr inbounds i32, ptr addrspace(1) %src, i64 %src3.at
  %src3.v = load i32, ptr addrspace(1) %src3.p, align 4
  %y3 = add nuw nsw i32 %ly, 24
  %tile3.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %y3, i32 %lx
  store i32 %src3.v, ptr addrspace(3) %tile3.p, align 4
  br label %was3

was3:
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ; The tile is read along its columns: lx now walks source rows, ly source columns.
  %d = add i32 %bc, %ly
  %e = add i32 %br, %lx
  %e.in = icmp ult i32 %e, %rows
  %d0 = add i32 %d, 0
  %d0.in = icmp ult i32 %d0, %cols
  %out0 = and i1 %d0.in, %e.in
  br i1 %out0, label %write0, label %next0

write0:
  %x0 = add nuw nsw i32 %ly, 0
  %turned0.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %lx, i32 %x0
  %turned0.v = load i32, ptr addrspace(3) %turned0.p, align 4
  %dst0.row = mul i32 %d0, %dst_pitch
  %dst0.i = add i32 %dst0.row, %e
  %dst0.at = zext i32 %dst0.i to i64
  %dst0.p = getelementptr inbounds i32, ptr addrspace(1) %dst, i64 %dst0.at
  store i32 %turned0.v, ptr addrspace(1) %dst0.p, align 4
  br label %next0

next0:
  %d1 = add i32 %d, 8
  %d1.in = icmp ult i32 %d1, %cols
  %out1 = and i1 %d1.in, %e.in
  br i1 %out1, label %write1, label %next1

write1:
  %x1 = add nuw nsw i32 %ly, 8
  %turned1.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %lx, i32 %x1
  %turned1.v = load i32, ptr addrspace(3) %turned1.p, align 4
  %dst1.row = mul i32 %d1, %dst_pitch
  %dst1.i = add i32 %dst1.row, %e
  %dst1.at = zext i32 %dst1.i to i64
  %dst1.p = getelementptr inbounds i32, ptr addrspace(1) %dst, i64 %dst1.at
  store i32 %turned1.v, ptr addrspace(1) %dst1.p, align 4
  br label %next1

next1:
  %d2 = add i32 %d, 16
  %d2.in = icmp ult i32 %d2, %cols
  %out2 = and i1 %d2.in, %e.in
  br i1 %out2, label %write2, label %next2

write2:
  %x2 = add nuw nsw i32 %ly, 16
  %turned2.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %lx, i32 %x2
  %turned2.v = load i32, ptr addrspace(3) %turned2.p, align 4
  %dst2.row = mul i32 %d2, %dst_pitch
  %dst2.i = add i32 %dst2.row, %e
  %dst2.at = zext i32 %dst2.i to i64
  %dst2.p = getelementptr inbounds i32, ptr addrspace(1) %dst, i64 %dst2.at
  store i32 %turned2.v, ptr addrspace(1) %dst2.p, align 4
  br label %next2

next2:
  %d3 = add i32 %d, 24
  %d3.in = icmp ult i32 %d3, %cols
  %out3 = and i1 %d3.in, %e.in
  br i1 %out3, label %write3, label %next3

write3:
  %x3 = add nuw nsw i32 %ly, 24
  %turned3.p = getelementptr inbounds [32 x [33 x i32]], ptr addrspace(3) @tile, i32 0, i32 %lx, i32 %x3
  %turned3.v = load i32, ptr addrspace(3) %turned3.p, align 4
  %dst3.row = mul i32 %d3, %dst_pitch
  %dst3.i = add i32 %dst3.row, %e
  %dst3.at = zext i32 %dst3.i to i64
  %dst3.p = getelementptr inbounds i32, ptr addrspace(1) %dst, i64 %dst3.at
  store i32 %turned3.v, ptr addrspace(1) %dst3.p, align 4
  br label %next3

next3:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare void @llvm.amdgcn.s.barrier()

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 32, i32 8, i32 1}
