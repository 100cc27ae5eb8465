; Time, and threads that wait, on Windows.
declare i64 @GetTickCount64()
define private i64 @milliseconds() {
  %now = call i64 @GetTickCount64()
  ret i64 %now
}
declare i32 @SwitchToThread()
define private void @give_way() {
  %r = call i32 @SwitchToThread()
  ret void
}
declare i32 @WaitOnAddress(ptr, ptr, i64, i32)
declare void @WakeByAddressAll(ptr)
define private void @sleep_while(ptr %word, i32 %value) {
  %expected = alloca i32
  store i32 %value, ptr %expected
  %r = call i32 @WaitOnAddress(ptr %word, ptr %expected, i64 4, i32 -1)
  ret void
}
define private void @wake_all(ptr %word) {
  call void @WakeByAddressAll(ptr %word)
  ret void
}
