; Waiting a little, and the floating-point mode: rounding to nearest, with denormals, without exceptions;
; on 64-bit ARM.
declare void @llvm.aarch64.hint(i32)
define private void @relax() alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define private i64 @set_default_mode() {
entry:
  %old = call i64 @llvm.aarch64.get.fpcr()
  %usual = icmp eq i64 %old, 0
  br i1 %usual, label %out, label %change
change:
  call void @llvm.aarch64.set.fpcr(i64 0)
  br label %out
out:
  ret i64 %old
}
define private void @restore_mode(i64 %mode) {
entry:
  %usual = icmp eq i64 %mode, 0
  br i1 %usual, label %out, label %change
change:
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  br label %out
out:
  ret void
}
