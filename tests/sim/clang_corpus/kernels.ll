; SPDX-License-Identifier: Apache-2.0
; Kernels that C cannot say, and that keep no variables in memory, so that -O0 can run them. Oracles: ir.py.
; One output, up to two inputs, 512 work-items in workgroups of 128; the k-th result stands at 512 * k + i.

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.uadd.sat.i32(i32, i32)
declare i32 @llvm.ssub.sat.i32(i32, i32)
declare { i32, i1 } @llvm.uadd.with.overflow.i32(i32, i32)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare float @llvm.canonicalize.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.smax.i32(i32, i32)
declare <4 x i32> @llvm.amdgcn.s.buffer.load.v4i32(<4 x i32>, i32, i32)

define amdgpu_kernel void @ir_integer(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %pa = getelementptr i32, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr i32, ptr addrspace(1) %b, i32 %i
  %x = load i32, ptr addrspace(1) %pa
  %y = load i32, ptr addrspace(1) %pb
  %sum = call i32 @llvm.uadd.sat.i32(i32 %x, i32 %y)
  %less = call i32 @llvm.ssub.sat.i32(i32 %x, i32 %y)
  %both = call { i32, i1 } @llvm.uadd.with.overflow.i32(i32 %x, i32 %y)
  %plain = extractvalue { i32, i1 } %both, 0
  %over = extractvalue { i32, i1 } %both, 1
  %flag = zext i1 %over to i32
  %three = xor i32 %plain, %flag
  %turned = call i32 @llvm.fshl.i32(i32 %x, i32 %y, i32 9)
  %count = call i32 @llvm.ctpop.i32(i32 %x)
  %most = call i32 @llvm.smax.i32(i32 %x, i32 %y)
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %q1 = getelementptr i32, ptr addrspace(1) %q0, i32 512
  %q2 = getelementptr i32, ptr addrspace(1) %q0, i32 1024
  %q3 = getelementptr i32, ptr addrspace(1) %q0, i32 1536
  %q4 = getelementptr i32, ptr addrspace(1) %q0, i32 2048
  %q5 = getelementptr i32, ptr addrspace(1) %q0, i32 2560
  store i32 %sum, ptr addrspace(1) %q0
  store i32 %less, ptr addrspace(1) %q1
  store i32 %three, ptr addrspace(1) %q2
  store i32 %turned, ptr addrspace(1) %q3
  store i32 %count, ptr addrspace(1) %q4
  store i32 %most, ptr addrspace(1) %q5
  ret void
}

; Every value of f32 and f64 has an answer: saturated, NaN is 0.
define amdgpu_kernel void @ir_saturating(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr double, ptr addrspace(1) %b, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load double, ptr addrspace(1) %pb
  %signed = call i32 @llvm.fptosi.sat.i32.f32(float %x)
  %unsigned = call i32 @llvm.fptoui.sat.i32.f32(float %x)
  %wide = call i32 @llvm.fptosi.sat.i32.f64(double %y)
  %clean = call float @llvm.canonicalize.f32(float %x)
  %bits = bitcast float %clean to i32
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %q1 = getelementptr i32, ptr addrspace(1) %q0, i32 512
  %q2 = getelementptr i32, ptr addrspace(1) %q0, i32 1024
  %q3 = getelementptr i32, ptr addrspace(1) %q0, i32 1536
  store i32 %signed, ptr addrspace(1) %q0
  store i32 %unsigned, ptr addrspace(1) %q1
  store i32 %wide, ptr addrspace(1) %q2
  store i32 %bits, ptr addrspace(1) %q3
  ret void
}

define amdgpu_kernel void @ir_float(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %sum = fadd float %x, %y
  %product = fmul float %x, %y
  %fused = call float @llvm.fma.f32(float %x, float %y, float 1.5)
  %quotient = fdiv float %x, %y
  %q0 = getelementptr float, ptr addrspace(1) %out, i32 %i
  %q1 = getelementptr float, ptr addrspace(1) %q0, i32 512
  %q2 = getelementptr float, ptr addrspace(1) %q0, i32 1024
  %q3 = getelementptr float, ptr addrspace(1) %q0, i32 1536
  store float %sum, ptr addrspace(1) %q0
  store float %product, ptr addrspace(1) %q1
  store float %fused, ptr addrspace(1) %q2
  store float %quotient, ptr addrspace(1) %q3
  ret void
}

; Atomics that C has no name for: increment and decrement with a limit, minimum and maximum of floats.
define amdgpu_kernel void @ir_atomics(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %pa = getelementptr i32, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr i32, ptr addrspace(1) %b, i32 %i
  %x = load i32, ptr addrspace(1) %pa
  %y = load i32, ptr addrspace(1) %pb
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %q1 = getelementptr i32, ptr addrspace(1) %q0, i32 512
  %q2 = getelementptr i32, ptr addrspace(1) %q0, i32 1024
  %q3 = getelementptr i32, ptr addrspace(1) %q0, i32 1536
  %q4 = getelementptr i32, ptr addrspace(1) %q0, i32 2048
  store i32 %x, ptr addrspace(1) %q0
  %up = atomicrmw uinc_wrap ptr addrspace(1) %q0, i32 %y syncscope("agent") monotonic
  %down = atomicrmw udec_wrap ptr addrspace(1) %q0, i32 %x syncscope("agent") monotonic
  %both = atomicrmw nand ptr addrspace(1) %q0, i32 %y syncscope("agent") monotonic
  %last = load atomic i32, ptr addrspace(1) %q0 syncscope("agent") monotonic, align 4
  store i32 %up, ptr addrspace(1) %q1
  store i32 %down, ptr addrspace(1) %q2
  store i32 %both, ptr addrspace(1) %q3
  store i32 %last, ptr addrspace(1) %q4
  ret void
}

@tile = internal addrspace(3) global [128 x i32] poison

define amdgpu_kernel void @ir_lds(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %pa = getelementptr i32, ptr addrspace(1) %a, i32 %i
  %x = load i32, ptr addrspace(1) %pa
  %here = getelementptr [128 x i32], ptr addrspace(3) @tile, i32 0, i32 %lane
  store i32 %x, ptr addrspace(3) %here
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %other = xor i32 %lane, 127
  %there = getelementptr [128 x i32], ptr addrspace(3) @tile, i32 0, i32 %other
  %y = load i32, ptr addrspace(3) %there
  %old = atomicrmw add ptr addrspace(3) %here, i32 %y syncscope("workgroup") monotonic
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %q1 = getelementptr i32, ptr addrspace(1) %q0, i32 512
  store i32 %y, ptr addrspace(1) %q0
  ret void
}

declare void @llvm.amdgcn.s.barrier()

; A loop and a select: the exit differs by lane.
define amdgpu_kernel void @ir_loop(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
entry:
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %pa = getelementptr i32, ptr addrspace(1) %a, i32 %i
  %x = load i32, ptr addrspace(1) %pa
  %turns = and i32 %x, 15
  br label %loop

loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %r = phi i32 [ %x, %entry ], [ %s, %loop ]
  %t = mul i32 %r, 33
  %s = add i32 %t, %k
  %next = add i32 %k, 1
  %done = icmp uge i32 %next, %turns
  br i1 %done, label %exit, label %loop

exit:
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %s, ptr addrspace(1) %q0
  ret void
}

; A scalar load through a buffer descriptor of 64 bytes: what lies outside is 0.
define amdgpu_kernel void @ir_scalar_buffer(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, 128
  %i = add i32 %start, %lane
  %address = ptrtoint ptr addrspace(1) %a to i64
  %pair = bitcast i64 %address to <2 x i32>
  %low = extractelement <2 x i32> %pair, i32 0
  %high = extractelement <2 x i32> %pair, i32 1
  %d0 = insertelement <4 x i32> poison, i32 %low, i32 0
  %d1 = insertelement <4 x i32> %d0, i32 %high, i32 1
  %d2 = insertelement <4 x i32> %d1, i32 64, i32 2
  %d3 = insertelement <4 x i32> %d2, i32 822099968, i32 3
  %at = mul i32 %group, 20
  %v = call <4 x i32> @llvm.amdgcn.s.buffer.load.v4i32(<4 x i32> %d3, i32 %at, i32 0)
  %v0 = extractelement <4 x i32> %v, i32 0
  %v3 = extractelement <4 x i32> %v, i32 3
  %sum = add i32 %v0, %v3
  %result = add i32 %sum, %lane
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %result, ptr addrspace(1) %q0
  ret void
}

attributes #0 = { "amdgpu-flat-work-group-size"="128,128" "uniform-work-group-size"="true" "amdgpu-no-hostcall-ptr" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-heap-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-default-queue" "amdgpu-no-completion-action" "amdgpu-no-lds-kernel-id" "amdgpu-no-workgroup-id-y" "amdgpu-no-workgroup-id-z" "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z" "amdgpu-no-flat-scratch-init" }
