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
