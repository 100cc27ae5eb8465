; What the interpreter calls, and how a caller shares its job with the pool's workers.
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
  %claimed = getelementptr i64, ptr %launch, i64 {CLAIMED}
  store <{CLAIM_WORDS} x i64> zeroinitializer, ptr %claimed, align 8
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

define void @dispatch_alone(ptr %job) {
  %pt = getelementptr i64, ptr %job, i64 {TABLE}
  %buffers = load ptr, ptr %pt
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
  %k = phi i64 [ %launches, %prepare ], [ %k1, %take ]
  %more = icmp ne i64 %k, 0
  br i1 %more, label %take, label %leave
take:
  %k1 = sub i64 %k, 1
  %skip = mul i64 %k1, {LAUNCH}
  %at = add i64 %skip, {HEADER}
  %launch = getelementptr i64, ptr %job, i64 %at
  call void @drop(ptr %launch)
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
