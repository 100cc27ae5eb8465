; Waiting a little, and the floating-point mode: rounding to nearest, with denormals, without exceptions;
; on x86-64.
declare void @llvm.x86.sse2.pause()
define private void @relax() alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define private i64 @set_default_mode() {
entry:
  %word = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  %old = load i32, ptr %word
  %wide = zext i32 %old to i64
  %controls = and i32 %old, {MXCSR_CONTROLS}
  %usual = icmp eq i32 %controls, {MXCSR_DEFAULT}
  br i1 %usual, label %out, label %change
change:
  store i32 {MXCSR_DEFAULT}, ptr %word
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  br label %out
out:
  ret i64 %wide
}
define private void @restore_mode(i64 %mode) {
entry:
  %word = alloca i32
  %old = trunc i64 %mode to i32
  %controls = and i32 %old, {MXCSR_CONTROLS}
  %usual = icmp eq i32 %controls, {MXCSR_DEFAULT}
  br i1 %usual, label %out, label %change
change:
  store i32 %old, ptr %word
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  br label %out
out:
  ret void
}
