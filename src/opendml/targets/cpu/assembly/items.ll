; How one thread runs a job: alone, or claiming items beside others.
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

define private ptr @scratch(ptr %job, ptr %buffers, i64 %index) {
  %pb = getelementptr i64, ptr %job, i64 {SCRATCH}
  %buffer = load i64, ptr %pb
  %pa = getelementptr ptr, ptr %buffers, i64 %buffer
  %arena = load ptr, ptr %pa
  %po = getelementptr i64, ptr %pb, i64 1
  %offset = load i64, ptr %po
  %ps = getelementptr i64, ptr %pb, i64 2
  %size = load i64, ptr %ps
  %before = mul i64 %size, %index
  %at = add i64 %offset, %before
  %scratch = getelementptr i8, ptr %arena, i64 %at
  ret ptr %scratch
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

define private void @compute(ptr %launch, i64 %low, i64 %high, ptr %buffers, ptr %scratch) {
  %function = load ptr, ptr %launch
  %pp = getelementptr i64, ptr %launch, i64 {PARAMETERS}
  %parameters = load ptr, ptr %pp
  %pf = getelementptr i64, ptr %launch, i64 {FIRST}
  %first = load i64, ptr %pf
  %from = add i64 %first, %low
  %to = add i64 %first, %high
  call void %function(i64 %from, i64 %to, ptr %parameters, ptr %buffers, ptr %scratch)
  ret void
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
  %scratch = call ptr @scratch(ptr %job, ptr %buffers, i64 0)
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
  call void @compute(ptr %launch, i64 %low, i64 %high, ptr %buffers, ptr %scratch)
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

define private i64 @claims(ptr %launch) alwaysinline {
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pg = getelementptr i64, ptr %launch, i64 {GRAIN}
  %grain = load i64, ptr %pg
  %rounded = add i64 %items, %grain
  %beyond = sub i64 %rounded, 1
  %claims = udiv i64 %beyond, %grain
  ret i64 %claims
}

; Claims the items of a number, and returns the first of them and the end. Both are 0 if another thread has claimed them. The bit is read
; first: if it is set, nothing is written to the cache line, which threads contend for.
define private { i64, i64 } @take(ptr %launch, i64 %number) alwaysinline {
entry:
  %word = lshr i64 %number, 6
  %shift = and i64 %number, 63
  %bit = shl i64 1, %shift
  %first = getelementptr i64, ptr %launch, i64 {CLAIMED}
  %claimed = getelementptr i64, ptr %first, i64 %word
  %seen = load atomic i64, ptr %claimed monotonic, align 8
  %gone = and i64 %seen, %bit
  %open = icmp eq i64 %gone, 0
  br i1 %open, label %claim, label %taken
claim:
  %before = atomicrmw or ptr %claimed, i64 %bit monotonic
  %known = and i64 %before, %bit
  %free = icmp eq i64 %known, 0
  br i1 %free, label %ours, label %taken
taken:
  ret { i64, i64 } zeroinitializer
ours:
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pg = getelementptr i64, ptr %launch, i64 {GRAIN}
  %grain = load i64, ptr %pg
  %at = mul i64 %number, %grain
  %upto = add i64 %at, %grain
  %within = icmp ult i64 %upto, %items
  %stop = select i1 %within, i64 %upto, i64 %items
  %one = insertvalue { i64, i64 } undef, i64 %at, 0
  %both = insertvalue { i64, i64 } %one, i64 %stop, 1
  ret { i64, i64 } %both
}

; Computes those of `count` claims that no thread has made, from the number `start` on. `way` is 1 or -1, and the numbers go around: 0
; follows the last one. Returns how many this thread has computed, or -1 if the caller's patience ends.
define private i64 @work_through(ptr %launch, i64 %start, i64 %way, i64 %count, i64 %claims, ptr %buffers, ptr %scratch, i64 %deadline) {
entry:
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  %last = sub i64 %claims, 1
  br label %test
test:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %step ]
  %number = phi i64 [ %start, %entry ], [ %number1, %step ]
  %ours = phi i64 [ 0, %entry ], [ %ours1, %step ]
  %more = icmp ult i64 %turn, %count
  br i1 %more, label %claim, label %out
claim:
  %below = icmp slt i64 %number, 0
  %beyond = icmp sgt i64 %number, %last
  %up = select i1 %below, i64 %last, i64 %number
  %within = select i1 %beyond, i64 0, i64 %up
  %taken = call { i64, i64 } @take(ptr %launch, i64 %within)
  %at = extractvalue { i64, i64 } %taken, 0
  %stop = extractvalue { i64, i64 } %taken, 1
  %items = sub i64 %stop, %at
  %none = icmp eq i64 %items, 0
  br i1 %none, label %step, label %work
work:
  call void @compute(ptr %launch, i64 %at, i64 %stop, ptr %buffers, ptr %scratch)
  %before = atomicrmw add ptr %done, i64 %items release
  %another = add i64 %ours, 1
  %late = call i1 @is_over(i64 %deadline)
  br i1 %late, label %pause, label %step
step:
  %ours1 = phi i64 [ %ours, %claim ], [ %another, %work ]
  %turn1 = add i64 %turn, 1
  %number1 = add i64 %within, %way
  br label %test
pause:
  ret i64 -1
out:
  ret i64 %ours
}

; Computes this thread's share of a launch, or all of it if the thread ran the launch before `alone`. Waits then for other threads, and
; computes what they have not claimed if they are late. Returns how many claims this thread has computed, or -1 if patience ends.
define private i64 @run_launch(ptr %job, ptr %launch, ptr %buffers, ptr %scratch, i64 %index, i64 %deadline, i1 %alone) {
entry:
  %pt = getelementptr i64, ptr %job, i64 {THREADS}
  %threads = load i64, ptr %pt
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pb = getelementptr i64, ptr %launch, i64 {BACKWARDS}
  %word = load i64, ptr %pb
  %backwards = icmp ne i64 %word, 0
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  %claims = call i64 @claims(ptr %launch)
  %round = sub i64 %threads, 1
  %a = mul i64 %index, %claims
  %a1 = add i64 %a, %round
  %begin = udiv i64 %a1, %threads
  %b1 = add i64 %a1, %claims
  %end = udiv i64 %b1, %threads
  %low = select i1 %alone, i64 0, i64 %begin
  %high = select i1 %alone, i64 %claims, i64 %end
  %behind = sub i64 %high, 1
  %before = sub i64 %low, 1
  %start = select i1 %backwards, i64 %behind, i64 %low
  %next = select i1 %backwards, i64 %before, i64 %high
  %way = select i1 %backwards, i64 -1, i64 1
  %share = sub i64 %high, %low
  %others = sub i64 %claims, %share
  %own = call i64 @work_through(ptr %launch, i64 %start, i64 %way, i64 %share, i64 %claims, ptr %buffers, ptr %scratch, i64 %deadline)
  %own_paused = icmp slt i64 %own, 0
  br i1 %own_paused, label %pause, label %wait
wait:
  %ours = phi i64 [ %own, %entry ], [ %ours, %again ], [ %both, %help ]
  %turn = phi i32 [ 0, %entry ], [ %turn1, %again ], [ %turn1, %help ]
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %finished, %items
  br i1 %all, label %over, label %again
again:
  %turn1 = add i32 %turn, 1
  call void @wait_a_turn(i32 %turn)
  %long = icmp eq i32 %turn1, {LATE}
  br i1 %long, label %help, label %wait
help:
  %theirs = call i64 @work_through(ptr %launch, i64 %next, i64 %way, i64 %others, i64 %claims, ptr %buffers, ptr %scratch, i64 %deadline)
  %both = add i64 %ours, %theirs
  %paused = icmp slt i64 %theirs, 0
  br i1 %paused, label %pause, label %wait
pause:
  ret i64 -1
over:
  ret i64 %ours
}

define private i1 @run_shared(ptr %job, ptr %buffers, i64 %index, i64 %deadline) {
entry:
  %launches = load i64, ptr %job
  %head = getelementptr i64, ptr %job, i64 {HEADER}
  %scratch = call ptr @scratch(ptr %job, ptr %buffers, i64 %index)
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k1, %over ]
  %alone = phi i1 [ false, %entry ], [ %still, %over ]
  %more = icmp ult i64 %k, %launches
  br i1 %more, label %begin, label %out
begin:
  %skip = mul i64 %k, {LAUNCH}
  %launch = getelementptr i64, ptr %head, i64 %skip
  %pi = getelementptr i64, ptr %launch, i64 {ITEMS}
  %items = load i64, ptr %pi
  %pg = getelementptr i64, ptr %launch, i64 {GRAIN}
  %grain = load i64, ptr %pg
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  %helps = icmp ne i64 %index, 0
  %one = icmp ule i64 %items, %grain
  %idle = and i1 %helps, %one
  br i1 %idle, label %wait, label %work
work:
  %ours = call i64 @run_launch(ptr %job, ptr %launch, ptr %buffers, ptr %scratch, i64 %index, i64 %deadline, i1 %alone)
  %claims = call i64 @claims(ptr %launch)
  %all_ours = icmp eq i64 %ours, %claims
  %whole = select i1 %one, i1 %alone, i1 %all_ours
  %paused = icmp slt i64 %ours, 0
  br i1 %paused, label %pause, label %over
pause:
  ret i1 false
wait:
  %turn = phi i32 [ 0, %begin ], [ %turn1, %again ]
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %finished, %items
  br i1 %all, label %over, label %again
again:
  %turn1 = add i32 %turn, 1
  call void @wait_a_turn(i32 %turn)
  br label %wait
over:
  %still = phi i1 [ %whole, %work ], [ %alone, %wait ]
  %k1 = add i64 %k, 1
  br label %test
out:
  ret i1 true
}

; Claims all that is left of a launch, and reports it as done without computing it.
define private void @drop(ptr %launch) {
entry:
  %done = getelementptr i64, ptr %launch, i64 {DONE}
  %claims = call i64 @claims(ptr %launch)
  br label %test
test:
  %number = phi i64 [ 0, %entry ], [ %number1, %take ]
  %more = icmp ult i64 %number, %claims
  br i1 %more, label %take, label %out
take:
  %taken = call { i64, i64 } @take(ptr %launch, i64 %number)
  %at = extractvalue { i64, i64 } %taken, 0
  %stop = extractvalue { i64, i64 } %taken, 1
  %dropped = sub i64 %stop, %at
  %earlier = atomicrmw add ptr %done, i64 %dropped release
  %number1 = add i64 %number, 1
  br label %test
out:
  ret void
}
