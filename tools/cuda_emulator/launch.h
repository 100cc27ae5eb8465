// Runs blocks of the kernel, the last of which is before `end`.

namespace emulator {

constexpr int STACK_BYTES = 256 * 1024;
static const void* parameters;

// Returns the parameters of a kernel as it takes them.
template <typename T>
static const T& parameters_of(void (*)(T)) {
    return *(const T*)parameters;
}

static void run_thread() {
    kernel(parameters_of(kernel));
    const unsigned own = running;
    threads[own].is_done = true;
    for (Meeting* meeting : {&blocks[rank].meeting, &warps[own / LANES].meeting}) {
        meeting->running--;
        meeting->pass();
    }
    while (true) let_others_run();
}

static void begin_thread(Thread& thread) {
    if (!thread.stack) thread.stack.reset(new char[STACK_BYTES]);
    thread.awaited = nullptr;
    thread.is_begun = thread.is_done = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&thread.context, run_thread, 0);
}

// Runs a thread until it waits or has ended.
__attribute__((noinline)) static void run(Thread& thread) {
    if (_setjmp(scheduler)) return;
    if (thread.is_begun) _longjmp(thread.place, 1);
    thread.is_begun = true;
    setcontext(&thread.context);
}

// Runs the blocks of a cluster, each of `count` threads, from block `first` of a row of the grid on.
static void run_cluster(unsigned first, unsigned y, unsigned count) {
    for (Block& block : blocks) block.meeting = {count, 0, 0};
    // The last warp of a block may be partial.
    for (unsigned number = 0; number < warps.size(); number++) {
        const unsigned left = threads.size() - number * LANES;
        warps[number].meeting = {left < LANES ? left : LANES, 0, 0};
    }
    for (Thread& thread : threads) begin_thread(thread);
    for (unsigned left = threads.size(); left > 0; sched_yield()) {
        for (running = 0; running < threads.size(); running++) {
            if (!threads[running].can_run()) continue;
            rank = running / count;
            shared_memory = blocks[rank].memory;
            threadIdx = {running % count, 0, 0};
            blockIdx = {first + rank, y, 0};
            run(threads[running]);
            left -= threads[running].is_done;
        }
    }
}

}  // namespace emulator

extern "C" void launch(
    const void* p, unsigned grid, unsigned rows, unsigned begin, unsigned end, unsigned count, unsigned shared_bytes, unsigned cluster) {
    const unsigned each = shared_bytes / sizeof(uint4) + 64;
    std::vector<uint4> memory(each * cluster);
    emulator::parameters = p;
    emulator::blocks.resize(cluster);
    emulator::threads.resize(count * cluster);
    emulator::warps.resize((count * cluster + emulator::LANES - 1) / emulator::LANES);
    for (unsigned rank = 0; rank < cluster; rank++) {
        emulator::blocks[rank].memory = (char*)(((unsigned long long)&memory[each * rank] + 1023) / 1024 * 1024);
    }
    gridDim = {grid, rows, 1};
    blockDim = {count, 1, 1};
    for (unsigned y = 0; y < rows; y++) {
        for (unsigned number = begin; number < end; number += cluster) emulator::run_cluster(number, y, count);
    }
}
