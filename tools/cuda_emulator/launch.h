// Runs blocks of the kernel, the last of which is before `end`.

namespace emulator {

constexpr int STACK_BYTES = 256 * 1024;
static const Parameters* parameters;

static void run_thread() {
    kernel(*parameters);
    const unsigned own = threadIdx.x;
    threads[own].is_done = true;
    for (Meeting* meeting : {&block, &warps[own / LANES].meeting}) {
        meeting->running--;
        meeting->pass();
    }
    while (true) let_others_run();
}

static void begin_thread(Thread& thread) {
    if (!thread.stack) thread.stack.reset(new char[STACK_BYTES]);
    thread.is_done = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&thread.context, run_thread, 0);
}

static void run_block(unsigned count) {
    block = {count, 0, 0};
    for (Warp& warp : warps) warp.meeting = {LANES, 0, 0};
    for (Thread& thread : threads) begin_thread(thread);
    for (unsigned left = count; left > 0; sched_yield()) {
        for (unsigned number = 0; number < count; number++) {
            if (threads[number].is_done) continue;
            threadIdx = {number, 0, 0};
            swapcontext(&scheduler, &threads[number].context);
            left -= threads[number].is_done;
        }
    }
}

}  // namespace emulator

extern "C" void launch(const Parameters* p, unsigned grid, unsigned begin, unsigned end, unsigned count, unsigned shared_bytes) {
    std::vector<uint4> memory(shared_bytes / sizeof(uint4) + 8);
    emulator::parameters = p;
    emulator::shared_memory = (char*)(((unsigned long long)memory.data() + 127) / 128 * 128);
    emulator::threads.resize(count);
    emulator::warps.resize(count / emulator::LANES);
    gridDim = {grid, 1, 1};
    blockDim = {count, 1, 1};
    for (unsigned number = begin; number < end; number++) {
        blockIdx = {number, 0, 0};
        emulator::run_block(count);
    }
}
