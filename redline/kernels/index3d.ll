; SPDX-License-Identifier: Apache-2.0
; index3d(dst, src, nx, ny, nz, sx, sy, sz, offset): a strided 3-D gather of 32-bit words into a dense array,
;
;     dst[(z * ny + y) * nx + x] = src[offset + z * sz + y * sy + x * sx]    for x < nx, y < ny, z < nz.
;
; One work-item for each element, workgroups of 8 x 4 x 2. A stride of 0 repeats, a patched offset takes a row of a
; table, permuted strides split or join attention heads. Indices are 32 bits wide: arrays have less than 2^32 words.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @index3d(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %src,
    i32 %nx, i32 %ny, i32 %nz, i32 %sx, i32 %sy, i32 %sz, i32 %offset) #0 !reqd_work_group_size !1 {
entry:
  %lx = tail call i32 @llvm.amdgcn.workitem.id.x()
  %ly = tail call i32 @llvm.amdgcn.workitem.id.y()
  %lz = tail call i32 @llvm.amdgcn.workitem.id.z()
  %gx = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = tail call i32 @llvm.amdgcn.workgroup.id.y()
  %gz = tail call i32 @llvm.amdgcn.workgroup.id.z()
  %bx = shl i32 %gx, 3
  %by = shl i32 %gy, 2
  %bz = shl i32 %gz, 1
  %x = add i32 %bx, %lx
  %y = add i32 %by, %ly
  %z = add i32 %bz, %lz
  %x.in = icmp ult i32 %x, %nx
  %y.in = icmp ult i32 %y, %ny
  %z.in = icmp ult i32 %z, %nz
  %xy.in = and i1 %x.in, %y.in
  %inside = and i1 %xy.in, %z.in
  br i1 %inside, label %gather, label %done

gather:
  %zs = mul i32 %z, %sz
  %ys = mul i32 %y, %sy
  %xs = mul i32 %x, %sx
  %from.z = add i32 %offset, %zs
  %from.y = add i32 %from.z, %ys
  %from.x = add i32 %from.y, %xs
  %plane = mul i32 %z, %ny
  %row = add i32 %plane, %y
  %row.at = mul i32 %row, %nx
  %to.x = add i32 %row.at, %x
  %from.at = zext i32 %from.x to i64
  %to.at = zext i32 %to.x to i64
  %from = getelementptr inbounds i32, ptr addrspace(1) %src, i64 %from.at
  %to = getelementptr inbounds i32, ptr addrspace(1) %dst, i64 %to.at
  %word = load i32, ptr addrspace(1) %from, align 4
  store i32 %word, ptr addrspace(1) %to, align 4
  br label %done

done:
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 8, i32 4, i32 2}
