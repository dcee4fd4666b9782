; SPDX-License-Identifier: Apache-2.0
; activate(dst, src, gain, geometry, params): a clamped gate with a learned f16 gain (hard swish with a channel scale),
;
;     t = min(max(params.slope * src[i] + params.shift, params.low), params.high)      one fma
;     dst[i] = src[i] * t * f32(gain[i])                                              for i < params.n
;
; params is a struct passed by value (40 bytes, align 8):
;     f32 slope, f32 shift, f32 low, f32 high, u64 stamp, u32 n, u16 tag, 10 bytes of padding and reserve.
; Any grid and any block serve, partial workgroups too: the kernel reads its extents from the hidden arguments of code
; object version 5 and strides over the elements. Work-item 0 leaves what it saw in geometry, 16 words:
;     block counts x y z, group sizes x y z, remainders x y z, grid dimensions,
;     work-items, tag, stamp low, stamp high, n, 0.
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

%params = type { float, float, float, float, i64, i32, i16, [10 x i8] }

define amdgpu_kernel void @activate(
    ptr addrspace(1) noalias writeonly captures(none) %dst,
    ptr addrspace(1) noalias readonly captures(none) %src,
    ptr addrspace(1) noalias readonly captures(none) %gain,
    ptr addrspace(1) noalias writeonly captures(none) %geometry,
    ptr addrspace(4) noundef readonly byref(%params) align 8 captures(none) %params) #0 {
entry:
  %hidden = tail call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %count.x = load i32, ptr addrspace(4) %hidden, align 8
  %count.y.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 4
  %count.y = load i32, ptr addrspace(4) %count.y.p, align 4
  %count.z.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 8
  %count.z = load i32, ptr addrspace(4) %count.z.p, align 8
  %size.x.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 12
  %size.x.16 = load i16, ptr addrspace(4) %size.x.p, align 4
  %size.y.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 14
  %size.y.16 = load i16, ptr addrspace(4) %size.y.p, align 2
  %size.z.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 16
  %size.z.16 = load i16, ptr addrspace(4) %size.z.p, align 8
  %rest.x.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 18
  %rest.x.16 = load i16, ptr addrspace(4) %rest.x.p, align 2
  %rest.y.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 20
  %rest.y.16 = load i16, ptr addrspace(4) %rest.y.p, align 4
  %rest.z.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 22
  %rest.z.16 = load i16, ptr addrspace(4) %rest.z.p, align 2
  %dims.p = getelementptr inbounds i8, ptr addrspace(4) %hidden, i64 64
  %dims.16 = load i16, ptr addrspace(4) %dims.p, align 8
  %size.x = zext i16 %size.x.16 to i32
  %size.y = zext i16 %size.y.16 to i32
  %size.z = zext i16 %size.z.16 to i32
  %rest.x = zext i16 %rest.x.16 to i32
  %rest.y = zext i16 %rest.y.16 to i32
  %rest.z = zext i16 %rest.z.16 to i32
  %dims = zext i16 %dims.16 to i32
  ; Block counts are those of whole workgroups: the extent is count * size + remainder.
  %whole.x = mul i32 %count.x, %size.x
  %whole.y = mul i32 %count.y, %size.y
  %whole.z = mul i32 %count.z, %size.z
  %extent.x = add i32 %whole.x, %rest.x
  %extent.y = add i32 %whole.y, %rest.y
  %extent.z = add i32 %whole.z, %rest.z
  %extent.xy = mul i32 %extent.x, %extent.y
  %items = mul i32 %extent.xy, %extent.z
  %lx = tail call i32 @llvm.amdgcn.workitem.id.x()
  %ly = tail call i32 @llvm.amdgcn.workitem.id.y()
  %lz = tail call i32 @llvm.amdgcn.workitem.id.z()
  %gx = tail call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = tail call i32 @llvm.amdgcn.workgroup.id.y()
  %gz = tail call i32 @llvm.amdgcn.workgroup.id.z()
  %bx = mul i32 %gx, %size.x
  %by = mul i32 %gy, %size.y
  %bz = mul i32 %gz, %size.z
  %x = add i32 %bx, %lx
  %y = add i32 %by, %ly
  %z = add i32 %bz, %lz
  %plane = mul i32 %z, %extent.y
  %row = add i32 %plane, %y
  %row.at = mul i32 %row, %extent.x
  %item = add i32 %row.at, %x
  %slope.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 0
  %shift.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 1
  %low.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 2
  %high.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 3
  %stamp.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 4
  %n.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 5
  %tag.p = getelementptr inbounds %params, ptr addrspace(4) %params, i64 0, i32 6
  %n = load i32, ptr addrspace(4) %n.p, align 8
  %first = icmp eq i32 %item, 0
  br i1 %first, label %tell, label %told

tell:
  %stamp = load i64, ptr addrspace(4) %stamp.p, align 8
  %tag.16 = load i16, ptr addrspace(4) %tag.p, align 4
  %tag = zext i16 %tag.16 to i32
  %stamp.low = trunc i64 %stamp to i32
  %stamp.shifted = lshr i64 %stamp, 32
  %stamp.high = trunc nuw i64 %stamp.shifted to i32
  %tell.0 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 0
  store i32 %count.x, ptr addrspace(1) %tell.0, align 4
  %tell.1 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 1
  store i32 %count.y, ptr addrspace(1) %tell.1, align 4
  %tell.2 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 2
  store i32 %count.z, ptr addrspace(1) %tell.2, align 4
  %tell.3 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 3
  store i32 %size.x, ptr addrspace(1) %tell.3, align 4
  %tell.4 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 4
  store i32 %size.y, ptr addrspace(1) %tell.4, align 4
  %tell.5 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 5
  store i32 %size.z, ptr addrspace(1) %tell.5, align 4
  %tell.6 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 6
  store i32 %rest.x, ptr addrspace(1) %tell.6, align 4
  %tell.7 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 7
  store i32 %rest.y, ptr addrspace(1) %tell.7, align 4
  %tell.8 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 8
  store i32 %rest.z, ptr addrspace(1) %tell.8, align 4
  %tell.9 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 9
  store i32 %dims, ptr addrspace(1) %tell.9, align 4
  %tell.10 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 10
  store i32 %items, ptr addrspace(1) %tell.10, align 4
  %tell.11 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 11
  store i32 %tag, ptr addrspace(1) %tell.11, align 4
  %tell.12 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 12
  store i32 %stamp.low, ptr addrspace(1) %tell.12, align 4
  %tell.13 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 13
  store i32 %stamp.high, ptr addrspace(1) %tell.13, align 4
  %tell.14 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 14
  store i32 %n, ptr addrspace(1) %tell.14, align 4
  %tell.15 = getelementptr inbounds i32, ptr addrspace(1) %geometry, i64 15
  store i32 0, ptr addrspace(1) %tell.15, align 4
  br label %told

told:
  %any = icmp ult i32 %item, %n
  br i1 %any, label %start, label %done

start:
  %slope = load float, ptr addrspace(4) %slope.p, align 8
  %shift = load float, ptr addrspace(4) %shift.p, align 4
  %low = load float, ptr addrspace(4) %low.p, align 8
  %high = load float, ptr addrspace(4) %high.p, align 4
  br label %each

each:
  %i = phi i32 [ %item, %start ], [ %i.next, %each ]
  %at = zext i32 %i to i64
  %p.src = getelementptr inbounds float, ptr addrspace(1) %src, i64 %at
  %p.gain = getelementptr inbounds half, ptr addrspace(1) %gain, i64 %at
  %p.dst = getelementptr inbounds float, ptr addrspace(1) %dst, i64 %at
  %v = load float, ptr addrspace(1) %p.src, align 4
  %gain.16 = load half, ptr addrspace(1) %p.gain, align 2
  %line = tail call float @llvm.fma.f32(float %slope, float %v, float %shift)
  %above = fcmp ogt float %line, %low
  %floor = select i1 %above, float %line, float %low
  %below = fcmp olt float %floor, %high
  %t = select i1 %below, float %floor, float %high
  %vt = fmul float %v, %t
  %gain.32 = fpext half %gain.16 to float
  %r = fmul float %vt, %gain.32
  store float %r, ptr addrspace(1) %p.dst, align 4
  ; The walk ends where the next index would wrap, too.
  %i.next = add i32 %i, %items
  %grew = icmp ugt i32 %i.next, %i
  %less = icmp ult i32 %i.next, %n
  %more = and i1 %grew, %less
  br i1 %more, label %each, label %done

done:
  ret void
}

declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare float @llvm.fma.f32(float, float, float)

attributes #0 = { norecurse nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="false" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!1 = !{i32 256, i32 1, i32 1}
