; Time, and threads that wait, on macOS.
; Clock 5 is CLOCK_MONOTONIC_RAW_APPROX; 1 is UL_COMPARE_AND_WAIT, 257 the same for all that wait.
declare i64 @clock_gettime_nsec_np(i32)
define private i64 @milliseconds() {
  %n = call i64 @clock_gettime_nsec_np(i32 5)
  %now = udiv i64 %n, 1000000
  ret i64 %now
}
declare i32 @sched_yield()
define private void @give_way() {
  %r = call i32 @sched_yield()
  ret void
}
declare i32 @__ulock_wait(i32, ptr, i64, i32)
declare i32 @__ulock_wake(i32, ptr, i64)
define private void @sleep_while(ptr %word, i32 %value) {
  %wide = zext i32 %value to i64
  %r = call i32 @__ulock_wait(i32 1, ptr %word, i64 %wide, i32 0)
  ret void
}
define private void @wake_all(ptr %word) {
  %r = call i32 @__ulock_wake(i32 257, ptr %word, i64 0)
  ret void
}
