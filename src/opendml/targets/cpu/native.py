"""The native part of the runtime, as LLVM assembly: dispatch, work sharing between threads, sleeping and
waking.

A job is an array of 64-bit words: HEADER words, of which the first is the number of launches, then LAUNCH
words for each of them, of which the first is the address of its function.

Threads claim items by adding to NEXT and report them by adding to DONE; a launch is over when DONE reaches
its items, whoever worked on them. So a thread that comes late, or never, delays nobody. A launch that is
claimed at once is the caller's: from one such launch to the next, data stays in the caches of its core.

A pool holds one job at a time: a caller that finds it taken does its work alone. Workers spin for a while on
the pool's epoch, then sleep in the system until it changes.

A caller whose patience ends returns between two claims, so that the interpreter can handle signals, and goes
on with `go_on`; meanwhile the workers work on, and the pool stays taken. `cancel` instead claims all that is
left, the last launch first, and reports it as done: then every thread finds its way out by itself.

Kernels run in the default floating-point mode, whatever the caller's is: a mode belongs to a thread, and who
computes an item must not matter.
"""

from __future__ import annotations

import re
import sys

HEADER = 16
"""Words in front of a job's launches; those without a name are reserved."""
THREADS = 1
"""The word that holds how many threads may take part."""
PATIENCE = 2
"""The word that holds the milliseconds after which the caller pauses; 0: never."""
_NEXT_LAUNCH = 3
_NEXT_ITEM = 4
"""The words that hold where a lone caller goes on after a pause."""
_STATE = 5
"""The word that holds how the caller has paused: _ALONE, _SHARED, or 0."""
ROOM = 8
"""The first of three words that hold a thread's room for values of its own: buffer, offset, bytes."""

LAUNCH = 24
"""Words of a launch. The counts of items claimed and done, which threads contend for, have cache lines of
their own."""
PARAMETERS = 1
"""The word that holds the address of the parameters."""
FIRST = 2
"""The first of three words: the first item, the number of items, the items that a thread claims at a time."""
BACKWARDS = 5
"""The word that holds whether the last items are claimed first: what a launch before has read last may still
be in a cache."""
_NEXT = 8
_DONE = 16

_ALONE = 1
_SHARED = 2

FINISHED = 0
"""Returned by `begin` and `go_on`: all is done."""
PAUSED = 1
"""Returned where the caller's patience is at its end."""
WORKERS_MISSING = 2
"""Returned by `begin` where the process is a fork's child that has to start workers first."""
WORK_LOST = 3
"""Returned by `go_on` where the process became a fork's child while the caller paused: what workers had
claimed is lost."""

POOL_WORDS = 64
"""Words of a pool: the first is a lock; each of the others that are used has a cache line of its own."""
MISSING = 56
"""The word of a pool that holds whether workers are missing."""

_SPINS = 6000
"""Turns for which an idle worker waits for new work before it sleeps: some tens of microseconds."""
_WAITING = 1000
"""Turns for which a thread waits for another that holds work before it offers its processor to it."""

# Clock 6 is CLOCK_MONOTONIC_COARSE; 128 and 129 are FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG.
_SLEEP_LINUX = """
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
  %r = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %word, i64 128, i32 %value, ptr null, ptr null, i64 0)
  ret void
}
define private void @wake_all(ptr %word) {
  %r = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %word, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  ret void
}
"""

_SLEEP_DARWIN = """
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
"""

_SLEEP_WINDOWS = """
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
"""

_RUNTIME = """
define private void @wait_a_turn(i32 %turn) {
  call void @relax()
  %impatient = icmp ugt i32 %turn, {WAITING}
  br i1 %impatient, label %offer, label %back
offer:
  call void @give_way()
  br label %back
back:
  ret void
}

define private ptr @room(ptr %job, ptr %buffers, i64 %index) {
  %pb = getelementptr i64, ptr %job, i64 {ROOM}
  %buffer = load i64, ptr %pb
  %pa = getelementptr ptr, ptr %buffers, i64 %buffer
  %arena = load ptr, ptr %pa
  %po = getelementptr i64, ptr %pb, i64 1
  %offset = load i64, ptr %po
  %ps = getelementptr i64, ptr %pb, i64 2
  %size = load i64, ptr %ps
  %before = mul i64 %size, %index
  %at = add i64 %offset, %before
  %room = getelementptr i8, ptr %arena, i64 %at
  ret ptr %room
}

define private i64 @deadline(ptr %job) {
entry:
  %pp = getelementptr i64, ptr %job, i64 {PATIENCE}
  %patience = load i64, ptr %pp
  %endless = icmp eq i64 %patience, 0
  br i1 %endless, label %never, label %some
never:
  ret i64 -1
some:
  %now = call i64 @milliseconds()
  %then = add i64 %now, %patience
  ret i64 %then
}

define private i1 @is_over(i64 %deadline) {
entry:
  %endless = icmp eq i64 %deadline, -1
  br i1 %endless, label %no, label %look
no:
  ret i1 false
look:
  %now = call i64 @milliseconds()
  %over = icmp uge i64 %now, %deadline
  ret i1 %over
}

define private { i64, i64 } @turned(ptr %launch, i64 %at, i64 %stop) alwaysinline {
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pb = getelementptr i64, ptr %launch, i64 {BACKWARDS}
  %word = load i64, ptr %pb
  %backwards = icmp ne i64 %word, 0
  %low = sub i64 %items, %stop
  %high = sub i64 %items, %at
  %from = select i1 %backwards, i64 %low, i64 %at
  %to = select i1 %backwards, i64 %high, i64 %stop
  %one = insertvalue { i64, i64 } undef, i64 %from, 0
  %both = insertvalue { i64, i64 } %one, i64 %to, 1
  ret { i64, i64 } %both
}

define private i32 @run_alone(ptr %job, ptr %buffers) {
entry:
  %launches = load i64, ptr %job
  %head = getelementptr i64, ptr %job, i64 {HEADER}
  %pk = getelementptr i64, ptr %job, i64 {NEXT_LAUNCH}
  %k0 = load i64, ptr %pk
  %pa = getelementptr i64, ptr %job, i64 {NEXT_ITEM}
  %a0 = load i64, ptr %pa
  %px = getelementptr i64, ptr %job, i64 {STATE}
  %room = call ptr @room(ptr %job, ptr %buffers, i64 0)
  %deadline = call i64 @deadline(ptr %job)
  %endless = icmp eq i64 %deadline, -1
  br label %test
test:
  %k = phi i64 [ %k0, %entry ], [ %k1, %over ]
  %begun = phi i64 [ %a0, %entry ], [ 0, %over ]
  %more = icmp ult i64 %k, %launches
  br i1 %more, label %body, label %out
body:
  %skip = mul i64 %k, {LAUNCH}
  %launch = getelementptr i64, ptr %head, i64 %skip
  %function = load ptr, ptr %launch
  %pp = getelementptr i64, ptr %launch, i64 {PARAMETERS}
  %parameters = load ptr, ptr %pp
  %pf = getelementptr i64, ptr %launch, i64 {FIRST}
  %first = load i64, ptr %pf
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pg = getelementptr i64, ptr %launch, i64 {GRAIN}
  %grain = load i64, ptr %pg
  %step = select i1 %endless, i64 %items, i64 %grain
  br label %next
next:
  %at = phi i64 [ %begun, %body ], [ %stop, %look ]
  %left = icmp ult i64 %at, %items
  br i1 %left, label %work, label %over
work:
  %upto = add i64 %at, %step
  %within = icmp ult i64 %upto, %items
  %stop = select i1 %within, i64 %upto, i64 %items
  %turned = call { i64, i64 } @turned(ptr %launch, i64 %at, i64 %stop)
  %low = extractvalue { i64, i64 } %turned, 0
  %high = extractvalue { i64, i64 } %turned, 1
  %from = add i64 %first, %low
  %to = add i64 %first, %high
  call void %function(i64 %from, i64 %to, ptr %parameters, ptr %buffers, ptr %room)
  br label %look
look:
  %late = call i1 @is_over(i64 %deadline)
  br i1 %late, label %pause, label %next
pause:
  store i64 %k, ptr %pk
  store i64 %stop, ptr %pa
  store i64 {ALONE}, ptr %px
  ret i32 {PAUSED}
over:
  %k1 = add i64 %k, 1
  br label %test
out:
  store i64 0, ptr %px
  ret i32 {FINISHED}
}

define private i1 @run_shared(ptr %job, ptr %buffers, i64 %index, i64 %deadline) {
entry:
  %launches = load i64, ptr %job
  %head = getelementptr i64, ptr %job, i64 {HEADER}
  %room = call ptr @room(ptr %job, ptr %buffers, i64 %index)
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k1, %over ]
  %more = icmp ult i64 %k, %launches
  br i1 %more, label %begin, label %out
begin:
  %skip = mul i64 %k, {LAUNCH}
  %launch = getelementptr i64, ptr %head, i64 %skip
  %function = load ptr, ptr %launch
  %pp = getelementptr i64, ptr %launch, i64 {PARAMETERS}
  %parameters = load ptr, ptr %pp
  %pf = getelementptr i64, ptr %launch, i64 {FIRST}
  %first = load i64, ptr %pf
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pg = getelementptr i64, ptr %launch, i64 {GRAIN}
  %grain = load i64, ptr %pg
  %next = getelementptr i64, ptr %launch, i64 {NEXT}
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  %helps = icmp ne i64 %index, 0
  %one = icmp ule i64 %items, %grain
  %idle = and i1 %helps, %one
  br i1 %idle, label %wait, label %claim
claim:
  %claimed = atomicrmw add ptr %next, i64 %grain monotonic
  %left = icmp ult i64 %claimed, %items
  br i1 %left, label %work, label %wait
work:
  %upto = add i64 %claimed, %grain
  %within = icmp ult i64 %upto, %items
  %stop = select i1 %within, i64 %upto, i64 %items
  %turned = call { i64, i64 } @turned(ptr %launch, i64 %claimed, i64 %stop)
  %low = extractvalue { i64, i64 } %turned, 0
  %high = extractvalue { i64, i64 } %turned, 1
  %from = add i64 %first, %low
  %to = add i64 %first, %high
  call void %function(i64 %from, i64 %to, ptr %parameters, ptr %buffers, ptr %room)
  %count = sub i64 %stop, %claimed
  %before = atomicrmw add ptr %done, i64 %count release
  %late = call i1 @is_over(i64 %deadline)
  br i1 %late, label %pause, label %claim
pause:
  ret i1 false
wait:
  %turn = phi i32 [ 0, %begin ], [ 0, %claim ], [ %turn1, %again ]
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %finished, %items
  br i1 %all, label %over, label %again
again:
  %turn1 = add i32 %turn, 1
  call void @wait_a_turn(i32 %turn)
  br label %wait
over:
  %k1 = add i64 %k, 1
  br label %test
out:
  ret i1 true
}

define private void @give_back(ptr %pool) {
entry:
  %pj = getelementptr i64, ptr %pool, i64 {JOB}
  store atomic ptr null, ptr %pj seq_cst, align 8
  %pv = getelementptr i64, ptr %pool, i64 {VISITORS}
  br label %leave
leave:
  %turn = phi i32 [ 0, %entry ], [ %turn1, %linger ]
  %visitors = load atomic i64, ptr %pv seq_cst, align 8
  %empty = icmp eq i64 %visitors, 0
  br i1 %empty, label %unlock, label %linger
linger:
  %turn1 = add i32 %turn, 1
  call void @wait_a_turn(i32 %turn)
  br label %leave
unlock:
  store atomic i64 0, ptr %pool release, align 8
  ret void
}

define private i32 @share(ptr %job, ptr %buffers, ptr %pool) {
entry:
  %px = getelementptr i64, ptr %job, i64 {STATE}
  store i64 {SHARED}, ptr %px
  %deadline = call i64 @deadline(ptr %job)
  %finished = call i1 @run_shared(ptr %job, ptr %buffers, i64 0, i64 %deadline)
  br i1 %finished, label %over, label %pause
pause:
  ret i32 {PAUSED}
over:
  call void @give_back(ptr %pool)
  store i64 0, ptr %px
  ret i32 {FINISHED}
}

define private i32 @run(ptr %job, ptr %buffers, ptr %pool) {
entry:
  %pt = getelementptr i64, ptr %job, i64 {THREADS}
  %threads = load i64, ptr %pt
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %ask, label %alone
ask:
  %pm = getelementptr i64, ptr %pool, i64 {MISSING}
  %missing = load i64, ptr %pm
  %none = icmp ne i64 %missing, 0
  br i1 %none, label %refuse, label %take
refuse:
  ret i32 {WORKERS_MISSING}
take:
  %lock = cmpxchg ptr %pool, i64 0, i64 1 acquire monotonic
  %free = extractvalue { i64, i1 } %lock, 1
  br i1 %free, label %prepare, label %alone
alone:
  %pk = getelementptr i64, ptr %job, i64 {NEXT_LAUNCH}
  store i64 0, ptr %pk
  %pa = getelementptr i64, ptr %job, i64 {NEXT_ITEM}
  store i64 0, ptr %pa
  %r = call i32 @run_alone(ptr %job, ptr %buffers)
  ret i32 %r
prepare:
  %launches = load i64, ptr %job
  br label %reset
reset:
  %k = phi i64 [ 0, %prepare ], [ %k1, %clear ]
  %more = icmp ult i64 %k, %launches
  br i1 %more, label %clear, label %publish
clear:
  %skip = mul i64 %k, {LAUNCH}
  %at = add i64 %skip, {HEADER}
  %launch = getelementptr i64, ptr %job, i64 %at
  %next = getelementptr i64, ptr %launch, i64 {NEXT}
  store i64 0, ptr %next
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  store i64 0, ptr %done
  %k1 = add i64 %k, 1
  br label %reset
publish:
  %pb = getelementptr i64, ptr %pool, i64 {BUFFERS}
  store ptr %buffers, ptr %pb
  %pj = getelementptr i64, ptr %pool, i64 {JOB}
  store atomic ptr %job, ptr %pj seq_cst, align 8
  %pe = getelementptr i64, ptr %pool, i64 {EPOCH}
  %old = atomicrmw add ptr %pe, i32 1 seq_cst
  %ps = getelementptr i64, ptr %pool, i64 {SLEEPERS}
  %sleepers = load atomic i64, ptr %ps seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %wake, label %start
wake:
  call void @wake_all(ptr %pe)
  br label %start
start:
  %s = call i32 @share(ptr %job, ptr %buffers, ptr %pool)
  ret i32 %s
}

define void @dispatch_alone(ptr %job, ptr %buffers) {
  %mode = call i64 @set_default_mode()
  %r = call i32 @run_alone(ptr %job, ptr %buffers)
  call void @restore_mode(i64 %mode)
  ret void
}

define i32 @begin(ptr %job, ptr %buffers, ptr %pool) {
  %mode = call i64 @set_default_mode()
  %r = call i32 @run(ptr %job, ptr %buffers, ptr %pool)
  call void @restore_mode(i64 %mode)
  ret i32 %r
}

define i32 @go_on(ptr %job, ptr %buffers, ptr %pool) {
entry:
  %px = getelementptr i64, ptr %job, i64 {STATE}
  %state = load i64, ptr %px
  %mode = call i64 @set_default_mode()
  %lone = icmp eq i64 %state, {ALONE}
  br i1 %lone, label %alone, label %together
together:
  %taken = load atomic i64, ptr %pool monotonic, align 8
  %ours = icmp ne i64 %taken, 0
  br i1 %ours, label %shared, label %lost
alone:
  %a = call i32 @run_alone(ptr %job, ptr %buffers)
  br label %out
shared:
  %s = call i32 @share(ptr %job, ptr %buffers, ptr %pool)
  br label %out
lost:
  store i64 0, ptr %px
  br label %out
out:
  %r = phi i32 [ %a, %alone ], [ %s, %shared ], [ {WORK_LOST}, %lost ]
  call void @restore_mode(i64 %mode)
  ret i32 %r
}

define void @cancel(ptr %job, ptr %pool) {
entry:
  %px = getelementptr i64, ptr %job, i64 {STATE}
  %state = load i64, ptr %px
  store i64 0, ptr %px
  %shared = icmp eq i64 %state, {SHARED}
  br i1 %shared, label %prepare, label %out
prepare:
  %launches = load i64, ptr %job
  br label %test
test:
  %k = phi i64 [ %launches, %prepare ], [ %k1, %take ], [ %k1, %report ]
  %more = icmp ne i64 %k, 0
  br i1 %more, label %take, label %leave
take:
  %k1 = sub i64 %k, 1
  %skip = mul i64 %k1, {LAUNCH}
  %at = add i64 %skip, {HEADER}
  %launch = getelementptr i64, ptr %job, i64 %at
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %next = getelementptr i64, ptr %launch, i64 {NEXT}
  %claimed = atomicrmw xchg ptr %next, i64 {BEYOND_ALL} monotonic
  %left = icmp ult i64 %claimed, %items
  br i1 %left, label %report, label %test
report:
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  %count = sub i64 %items, %claimed
  %before = atomicrmw add ptr %done, i64 %count release
  br label %test
leave:
  call void @give_back(ptr %pool)
  br label %out
out:
  ret void
}

define void @work(ptr %pool, i64 %index) {
entry:
  %pe = getelementptr i64, ptr %pool, i64 {EPOCH}
  %pj = getelementptr i64, ptr %pool, i64 {JOB}
  %pv = getelementptr i64, ptr %pool, i64 {VISITORS}
  %ps = getelementptr i64, ptr %pool, i64 {SLEEPERS}
  %pt = getelementptr i64, ptr %pool, i64 {STOP}
  %pb = getelementptr i64, ptr %pool, i64 {BUFFERS}
  %mode = call i64 @set_default_mode()
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %epoch, %return ], [ %seen, %sleep ]
  br label %spin
spin:
  %turn = phi i32 [ 0, %idle ], [ %turn1, %again ]
  %epoch = load atomic i32, ptr %pe seq_cst, align 4
  %same = icmp eq i32 %epoch, %seen
  br i1 %same, label %again, label %visit
again:
  call void @relax()
  %turn1 = add i32 %turn, 1
  %patient = icmp ult i32 %turn1, {SPINS}
  br i1 %patient, label %spin, label %sleep
sleep:
  %s0 = atomicrmw add ptr %ps, i64 1 seq_cst
  call void @sleep_while(ptr %pe, i32 %seen)
  %s1 = atomicrmw sub ptr %ps, i64 1 seq_cst
  br label %idle
visit:
  %stop = load atomic i64, ptr %pt seq_cst, align 8
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %out, label %enter
enter:
  %v0 = atomicrmw add ptr %pv, i64 1 seq_cst
  %job = load atomic ptr, ptr %pj seq_cst, align 8
  %none = icmp eq ptr %job, null
  br i1 %none, label %return, label %join
join:
  %pn = getelementptr i64, ptr %job, i64 {THREADS}
  %threads = load i64, ptr %pn
  %wanted = icmp ult i64 %index, %threads
  br i1 %wanted, label %share, label %return
share:
  %buffers = load ptr, ptr %pb
  %finished = call i1 @run_shared(ptr %job, ptr %buffers, i64 %index, i64 -1)
  br label %return
return:
  %v1 = atomicrmw sub ptr %pv, i64 1 seq_cst
  br label %idle
out:
  ret void
}
"""

_X86 = """
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
"""

_ARM = """
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
"""
_PROCESSORS = {"x86_64": _X86, "aarch64": _ARM, "arm64": _ARM}
"""Waiting a little, and the floating-point mode: rounding to nearest, with denormals, without exceptions."""
_FUTEX = {"x86_64": "202", "aarch64": "98"}

_NUMBERS = {
    "HEADER": HEADER,
    "THREADS": THREADS,
    "PATIENCE": PATIENCE,
    "NEXT_LAUNCH": _NEXT_LAUNCH,
    "NEXT_ITEM": _NEXT_ITEM,
    "STATE": _STATE,
    "ALONE": _ALONE,
    "SHARED": _SHARED,
    "ROOM": ROOM,
    "LAUNCH": LAUNCH,
    "PARAMETERS": PARAMETERS,
    "FIRST": FIRST,
    "ITEMS": FIRST + 1,
    "GRAIN": FIRST + 2,
    "BACKWARDS": BACKWARDS,
    "NEXT": _NEXT,
    "DONE": _DONE,
    "BEYOND_ALL": 2**62,
    "EPOCH": 8,
    "JOB": 16,
    "VISITORS": 24,
    "SLEEPERS": 32,
    "STOP": 40,
    "BUFFERS": 48,
    "MISSING": MISSING,
    "FINISHED": FINISHED,
    "PAUSED": PAUSED,
    "WORKERS_MISSING": WORKERS_MISSING,
    "WORK_LOST": WORK_LOST,
    "SPINS": _SPINS,
    "WAITING": _WAITING,
    "MXCSR_CONTROLS": 0xFFC0,  # all but the flags of exceptions that were met
    "MXCSR_DEFAULT": 0x1F80,  # every exception masked
}
"""The numbers of the assembly, by their names there."""

FUNCTIONS = ("dispatch_alone", "begin", "go_on", "cancel", "work")


def runtime_assembly(triple: str) -> str:
    """The functions of FUNCTIONS: dispatch_alone(job, buffers) for a job without patience, begin(job,
    buffers, pool), go_on(job, buffers, pool), cancel(job, pool) and work(pool, index)."""
    architecture = triple.split("-")[0]
    if sys.platform == "darwin":
        sleep = _SLEEP_DARWIN
    elif sys.platform == "win32":
        sleep = _SLEEP_WINDOWS
    else:
        sleep = _SLEEP_LINUX.replace("NUMBER", _FUTEX[architecture])
    text = _PROCESSORS[architecture] + sleep + _RUNTIME
    return f'target triple = "{triple}"\n' + re.sub(r"\{(\w+)\}", lambda name: str(_NUMBERS[name[1]]), text)
