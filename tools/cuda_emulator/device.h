// What CUDA C++ knows without a header, for a processor: each thread of a block is a context of its own, which runs until it
// waits for others. Blocks run one after the other; those of a cooperative launch each in a copy of the library, by a thread of
// the system.

#include <sched.h>
#include <setjmp.h>
#include <ucontext.h>

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static

struct uint2 {
    unsigned x, y;
};

struct uint4 {
    unsigned x, y, z, w;
};

namespace emulator {

struct Place {
    unsigned x, y, z;
};

}  // namespace emulator

static emulator::Place threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

constexpr int LANES = 32;

// Threads that wait for each other: when all that still run have come, a new round begins.
struct Meeting {
    unsigned running, arrived, round;

    void pass() {
        if (arrived < running || arrived == 0) return;
        arrived = 0;
        round++;
    }
};

struct Warp {
    Meeting meeting;
    unsigned long long words[2][LANES];
};

// Begins as a context, and goes on by jumps: swapcontext asks the system for the mask of signals each time.
struct Thread {
    ucontext_t context;
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    const volatile unsigned* awaited;  // The round of a meeting that it waits for to end, or null.
    unsigned round;
    bool is_begun, is_done;

    bool can_run() const { return !is_done && !(awaited && *awaited == round); }
};

// The blocks of a cluster run at the same time: their memory, and where their threads meet.
struct Block {
    char* memory;
    Meeting meeting, warpgroups[16];
};

static std::vector<Thread> threads;
static std::vector<Warp> warps;
static std::vector<Block> blocks;
static jmp_buf scheduler;
// The running thread among those of the cluster, its block there, and the memory of that.
static unsigned running, rank;
static char* shared_memory;

static void let_others_run() {
    if (!_setjmp(threads[running].place)) _longjmp(scheduler, 1);
}

static void wait(Meeting& meeting) {
    const unsigned round = meeting.round;
    meeting.arrived++;
    meeting.pass();
    Thread& own = threads[running];
    own.awaited = &meeting.round;
    own.round = round;
    while (!own.can_run()) let_others_run();
    own.awaited = nullptr;
}

// What each lane of the warp brings.
template <typename T>
static void exchange(T mine, T (&all)[LANES]) {
    static_assert(sizeof(T) <= 8);
    Warp& warp = warps[running / LANES];
    auto& words = warp.words[warp.meeting.round % 2];
    memcpy(&words[threadIdx.x % LANES], &mine, sizeof(T));
    wait(warp.meeting);
    for (int lane = 0; lane < LANES; lane++) memcpy(&all[lane], &words[lane], sizeof(T));
}

template <typename To, typename From>
static To bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

}  // namespace emulator

static void __syncthreads() { emulator::wait(emulator::blocks[emulator::rank].meeting); }

static int __syncthreads_or(int mine) {
    static int found;
    __syncthreads();
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    found |= mine != 0;
    __syncthreads();
    return found;
}

template <typename T>
static T __shfl_sync(unsigned, T mine, int lane, int width = emulator::LANES) {
    T all[emulator::LANES];
    emulator::exchange(mine, all);
    return all[threadIdx.x % emulator::LANES / width * width + lane % width];
}

template <typename T>
static T __shfl_down_sync(unsigned, T mine, int distance, int width = emulator::LANES) {
    T all[emulator::LANES];
    emulator::exchange(mine, all);
    const int lane = threadIdx.x % emulator::LANES;
    return lane % width + distance < width ? all[lane + distance] : mine;
}

template <typename T>
static T __shfl_up_sync(unsigned, T mine, int distance, int width = emulator::LANES) {
    T all[emulator::LANES];
    emulator::exchange(mine, all);
    const int lane = threadIdx.x % emulator::LANES;
    return lane % width >= distance ? all[lane - distance] : mine;
}

template <typename T>
static T __shfl_xor_sync(unsigned, T mine, int distance, int width = emulator::LANES) {
    T all[emulator::LANES];
    emulator::exchange(mine, all);
    return all[threadIdx.x % emulator::LANES ^ distance];
}

static unsigned __ballot_sync(unsigned, int mine) {
    int all[emulator::LANES];
    emulator::exchange(int(mine != 0), all);
    unsigned result = 0;
    for (int lane = 0; lane < emulator::LANES; lane++) result |= unsigned(all[lane]) << lane;
    return result;
}

static bool __any_sync(unsigned mask, int mine) { return __ballot_sync(mask, mine) != 0; }
static bool __all_sync(unsigned mask, int mine) { return __ballot_sync(mask, mine) == ~0u; }
static void __syncwarp(unsigned = ~0u) { __ballot_sync(~0u, 0); }
static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <typename T, typename Change>
static T changed(T* at, Change change) {
    T before = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(at, &before, change(before), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return before;
}

template <typename T, typename U>
static T atomicAdd(T* at, U value) { return changed(at, [=](T before) -> T { return before + value; }); }
template <typename T, typename U>
static T atomicExch(T* at, U value) { return changed(at, [=](T) -> T { return value; }); }
template <typename T, typename U>
static T atomicMax(T* at, U value) { return changed(at, [=](T before) -> T { return before < T(value) ? T(value) : before; }); }
template <typename T, typename U>
static T atomicMin(T* at, U value) { return changed(at, [=](T before) -> T { return T(value) < before ? T(value) : before; }); }
static unsigned atomicInc(unsigned* at, unsigned last) {
    return changed(at, [=](unsigned before) { return before >= last ? 0 : before + 1; });
}

static float __fdividef(float a, float b) { return a / b; }
static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static float __fsqrt_rn(float x) { return sqrtf(x); }
static double __dsqrt_rn(double x) { return sqrt(x); }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static int __ffs(int x) { return __builtin_ffs(x); }
static float __int_as_float(int x) { return emulator::bits<float>(x); }
static float __uint_as_float(unsigned x) { return emulator::bits<float>(x); }
static int __float_as_int(float x) { return emulator::bits<int>(x); }
static unsigned __float_as_uint(float x) { return emulator::bits<unsigned>(x); }
static double __longlong_as_double(long long x) { return emulator::bits<double>(x); }
static long long __double_as_longlong(double x) { return emulator::bits<long long>(x); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }

static unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
    const unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= unsigned(bytes >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

static int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 4; i++) sum += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
    return sum;
}

static unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 4; i++) sum += (a >> 8 * i & 255) * (b >> 8 * i & 255);
    return sum;
}
