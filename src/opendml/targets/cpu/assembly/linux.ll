; Time, and threads that wait, on Linux.
; Clock 6 is CLOCK_MONOTONIC_COARSE; 128 and 129 are FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG.
declare i32 @clock_gettime(i32, ptr)
define private i64 @milliseconds() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 6, ptr %time)
  %s = load i64, ptr %time
  %pn = getelementptr i64, ptr %time, i64 1
  %n = load i64, ptr %pn
  %a = mul i64 %s, 1000
  %b = sdiv i64 %n, 1000000
  %now = add i64 %a, %b
  ret i64 %now
}
declare i32 @sched_yield()
define private void @give_way() {
  %r = call i32 @sched_yield()
  ret void
}
declare i64 @syscall(i64, ...)
define private void @sleep_while(ptr %word, i32 %value) {
  %r = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %word, i64 128, i32 %value, ptr null, ptr null, i64 0)
  ret void
}
define private void @wake_all(ptr %word) {
  %r = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %word, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  ret void
}
