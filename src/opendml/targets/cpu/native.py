"""The native part of the runtime, as LLVM assembly: dispatch, work sharing between threads, sleeping and
waking.

A job is an array of 64-bit words:

    0 number of launches   1 threads that may take part   2.. reserved up to HEADER
    per launch, LAUNCH words: function, parameters, first item, items, grain, ..., next item (NEXT), items
    done (DONE)

Threads claim items by adding to NEXT and report them by adding to DONE; a launch is over when DONE reaches
its items, whoever
worked on them. So a thread that comes late, or never, delays nobody. A pool holds one job at a time: a caller
that finds it taken
does its work alone. Workers spin for a while on the pool's epoch, then sleep in the system until it changes.
"""

from __future__ import annotations

import sys

HEADER = 8
LAUNCH = 24
NEXT = 8
DONE = 16

POOL_WORDS = 64
"""Words of a pool: 0 lock, 8 epoch, 16 job, 24 visitors, 32 sleepers, 40 stop, 48 buffers; a cache line
apart."""

_SPINS = 6000
"""Turns for which an idle worker waits for new work before it sleeps: some tens of microseconds."""
_PATIENCE = 1000
"""Turns for which a thread waits for another that holds work before it offers its processor to it."""

_SLEEP_LINUX = """
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
  %impatient = icmp ugt i32 %turn, {PATIENCE}
  br i1 %impatient, label %offer, label %back
offer:
  call void @give_way()
  br label %back
back:
  ret void
}

define private void @run_alone(ptr %job, ptr %buffers) {
entry:
  %launches = load i64, ptr %job
  %head = getelementptr i64, ptr %job, i64 {HEADER}
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k1, %body ]
  %more = icmp ult i64 %k, %launches
  br i1 %more, label %body, label %out
body:
  %skip = mul i64 %k, {LAUNCH}
  %launch = getelementptr i64, ptr %head, i64 %skip
  %function = load ptr, ptr %launch
  %pp = getelementptr i64, ptr %launch, i64 1
  %parameters = load ptr, ptr %pp
  %pf = getelementptr i64, ptr %launch, i64 2
  %first = load i64, ptr %pf
  %pi = getelementptr i64, ptr %launch, i64 3
  %items = load i64, ptr %pi
  %end = add i64 %first, %items
  call void %function(i64 %first, i64 %end, ptr %parameters, ptr %buffers)
  %k1 = add i64 %k, 1
  br label %test
out:
  ret void
}

define private void @run_shared(ptr %job, ptr %buffers) {
entry:
  %launches = load i64, ptr %job
  %head = getelementptr i64, ptr %job, i64 {HEADER}
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k1, %over ]
  %more = icmp ult i64 %k, %launches
  br i1 %more, label %begin, label %out
begin:
  %skip = mul i64 %k, {LAUNCH}
  %launch = getelementptr i64, ptr %head, i64 %skip
  %function = load ptr, ptr %launch
  %pp = getelementptr i64, ptr %launch, i64 1
  %parameters = load ptr, ptr %pp
  %pf = getelementptr i64, ptr %launch, i64 2
  %first = load i64, ptr %pf
  %pi = getelementptr i64, ptr %launch, i64 3
  %items = load i64, ptr %pi
  %pg = getelementptr i64, ptr %launch, i64 4
  %grain = load i64, ptr %pg
  %next = getelementptr i64, ptr %launch, i64 {NEXT}
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  br label %claim
claim:
  %claimed = atomicrmw add ptr %next, i64 %grain monotonic
  %left = icmp ult i64 %claimed, %items
  br i1 %left, label %work, label %wait
work:
  %upto = add i64 %claimed, %grain
  %within = icmp ult i64 %upto, %items
  %stop = select i1 %within, i64 %upto, i64 %items
  %from = add i64 %first, %claimed
  %to = add i64 %first, %stop
  call void %function(i64 %from, i64 %to, ptr %parameters, ptr %buffers)
  %count = sub i64 %stop, %claimed
  %before = atomicrmw add ptr %done, i64 %count release
  br label %claim
wait:
  %turn = phi i32 [ 0, %claim ], [ %turn1, %pause ]
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %finished, %items
  br i1 %all, label %over, label %pause
pause:
  %turn1 = add i32 %turn, 1
  call void @wait_a_turn(i32 %turn)
  br label %wait
over:
  %k1 = add i64 %k, 1
  br label %test
out:
  ret void
}

define void @dispatch_alone(ptr %job, ptr %buffers) {
  call void @run_alone(ptr %job, ptr %buffers)
  ret void
}

define void @dispatch_shared(ptr %job, ptr %buffers, ptr %pool) {
entry:
  %lock = cmpxchg ptr %pool, i64 0, i64 1 acquire monotonic
  %free = extractvalue { i64, i1 } %lock, 1
  br i1 %free, label %prepare, label %alone
alone:
  call void @run_alone(ptr %job, ptr %buffers)
  ret void
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
  %pb = getelementptr i64, ptr %pool, i64 48
  store ptr %buffers, ptr %pb
  %pj = getelementptr i64, ptr %pool, i64 16
  store atomic ptr %job, ptr %pj seq_cst, align 8
  %pe = getelementptr i64, ptr %pool, i64 8
  %old = atomicrmw add ptr %pe, i32 1 seq_cst
  %ps = getelementptr i64, ptr %pool, i64 32
  %sleepers = load atomic i64, ptr %ps seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %wake, label %run
wake:
  call void @wake_all(ptr %pe)
  br label %run
run:
  call void @run_shared(ptr %job, ptr %buffers)
  store atomic ptr null, ptr %pj seq_cst, align 8
  %pv = getelementptr i64, ptr %pool, i64 24
  br label %leave
leave:
  %turn = phi i32 [ 0, %run ], [ %turn1, %linger ]
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

define void @work(ptr %pool, i64 %index) {
entry:
  %pe = getelementptr i64, ptr %pool, i64 8
  %pj = getelementptr i64, ptr %pool, i64 16
  %pv = getelementptr i64, ptr %pool, i64 24
  %ps = getelementptr i64, ptr %pool, i64 32
  %pt = getelementptr i64, ptr %pool, i64 40
  %pb = getelementptr i64, ptr %pool, i64 48
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
  %pn = getelementptr i64, ptr %job, i64 1
  %threads = load i64, ptr %pn
  %wanted = icmp ult i64 %index, %threads
  br i1 %wanted, label %share, label %return
share:
  %buffers = load ptr, ptr %pb
  call void @run_shared(ptr %job, ptr %buffers)
  br label %return
return:
  %v1 = atomicrmw sub ptr %pv, i64 1 seq_cst
  br label %idle
out:
  ret void
}
"""

_RELAX = {
    "x86_64": "declare void @llvm.x86.sse2.pause()\ndefine private void @relax() alwaysinline {\n"
    "  call void @llvm.x86.sse2.pause()\n  ret void\n}\n",
    "aarch64": "declare void @llvm.aarch64.hint(i32)\ndefine private void @relax() alwaysinline {\n"
    "  call void @llvm.aarch64.hint(i32 1)\n  ret void\n}\n",
}
_RELAX["arm64"] = _RELAX["aarch64"]
_FUTEX = {"x86_64": "202", "aarch64": "98"}


def runtime_assembly(triple: str) -> str:
    """The functions dispatch_alone(job, buffers), dispatch_shared(job, buffers, pool) and work(pool,
    index)."""
    architecture = triple.split("-")[0]
    if sys.platform == "darwin":
        sleep = _SLEEP_DARWIN
    elif sys.platform == "win32":
        sleep = _SLEEP_WINDOWS
    else:
        sleep = _SLEEP_LINUX.replace("NUMBER", _FUTEX[architecture])
    numbers = {
        "HEADER": HEADER,
        "LAUNCH": LAUNCH,
        "NEXT": NEXT,
        "DONE": DONE,
        "SPINS": _SPINS,
        "PATIENCE": _PATIENCE,
    }
    body = _RUNTIME
    for name, value in numbers.items():
        body = body.replace("{" + name + "}", str(value))
    return f'target triple = "{triple}"\n' + _RELAX[architecture] + sleep + body
